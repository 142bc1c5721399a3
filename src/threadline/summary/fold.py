"""Fold the entries of a main transcript into its summary, incrementally; read the titles of many sessions cheaply."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from threadline.errors import Error
from threadline.files import blake2b
from threadline.model.attachments import EnvironmentSnapshot
from threadline.model.blocks import ToolResultBlock, ToolUseBlock
from threadline.model.entries import (
    CHAIN_TYPES,
    AssistantEntry,
    AttachmentEntry,
    ChainEntry,
    Entry,
    FileHistorySnapshotEntry,
    QueueOperationEntry,
    SummaryEntry,
    UserEntry,
)
from threadline.model.homes import Found, Transcript, TranscriptKind, side_agent_kind
from threadline.model.names import AGENT_TOOLS, parse_version
from threadline.model.places import AgentId, Place
from threadline.model.session import Act, conversation_time
from threadline.model.times import sortable_time
from threadline.model.titles import SummaryLinks, SummaryRef, choose_summary, shorten_title
from threadline.model.usage import SYNTHETIC_MODEL
from threadline.parse import (
    Chunk,
    TranscriptLinks,
    TranscriptReader,
    decode_object,
    entries,
    find_lines,
    find_named_entries,
)
from threadline.summary.transcripts import SummaryState, TranscriptSummary, summary_from_state
from threadline.thread import (
    act_of,
    begins_turn,
    can_miss_steering,
    can_summary_replace,
    find_acts,
    is_repeat,
    normalise_spaces,
    title_from_parts,
    title_in_entry,
    title_words,
)

# Prompts have no result. That of a refused call is text, and may contain what the person said.
_RESULTS_WITH_WORDS = frozenset({type(None), str})


def summarize_transcript(transcript: Transcript, title: str | None = None) -> TranscriptSummary:
    """Read a main transcript and summarize it. If it cannot be read, the summary has a `problem`.

    `title` is the summary that titles it, if any.
    """
    try:
        return fold_entries(entries(transcript.path)).summary(title)
    except Error as error:
        return TranscriptSummary(problem=str(error), spoken=1)


class ReadSummary(Struct, frozen=True):
    """The summary of a transcript that was read.

    If a summary in another transcript may title it, `state` is that of the fold, and `entry_hashes` are the hashes of
    the ids of its entries.
    """

    summary: TranscriptSummary
    state: SummaryState | None = None
    entry_hashes: array[int] = array("q")

    def with_title(self, refs: Iterable[SummaryRef], transcript: str) -> TranscriptSummary:
        """Return the summary, with the title that one of these summaries gives it."""
        if self.state is None:
            return self.summary
        hashes = {hash(ref.leaf): ref.leaf for ref in refs}
        if hashes.keys().isdisjoint(self.entry_hashes):
            return self.summary
        positions = {hashes[number]: at for at, number in enumerate(self.entry_hashes) if number in hashes}
        return summary_from_state(self.state, choose_summary(refs, positions, transcript))


def read_summary(transcript: Transcript) -> ReadSummary:
    """Read a main transcript and summarize it, with its summaries. If it cannot be read, it has a `problem`."""
    hashes = array("q")
    fold = SummaryFold(entry_hashes=hashes)
    try:
        for entry in entries(transcript.path):
            fold.add(entry)
    except Error as error:
        return ReadSummary(TranscriptSummary(problem=str(error), spoken=1))
    path = str(transcript.path)
    refs = tuple(SummaryRef(row.leaf, row.text, path, row.offset, transcript.session) for row in fold.summaries)
    summary = replace(fold.summary(), summaries=refs)
    if summary.spoken and can_summary_replace(summary.title_source):
        return ReadSummary(summary, fold.state, hashes)
    return ReadSummary(summary)


def fold_entries(transcript_entries: Iterable[Entry]) -> SummaryFold:
    """Return a fold over all entries of a transcript."""
    fold = SummaryFold()
    for entry in transcript_entries:
        fold.add(entry)
    return fold


class PromptRow(Struct, frozen=True, array_like=True):
    """What a person typed, its place, and the number of the turn it begins or joins."""

    line: int
    offset: int
    turn: int
    kind: str
    text: str


class SummaryRow(Struct, frozen=True, array_like=True):
    """A summary, its place, and the id of the entry that it names."""

    line: int
    offset: int
    leaf: str
    text: str


class SummaryFold:
    """Summarizes the entries of a main transcript, from the first one or from a stored state on.

    `prompts` and `summaries` are those of the entries added to this fold. `entry_hashes` collects a hash of the id of
    each entry of the main conversation, to find those that summaries elsewhere name.

    Up to 2.1.97, prompts typed while the model worked can only be recognised with the whole transcript. A fold that
    continues from a state is then not `is_reliable`, and the transcript has to be folded from its first entry.
    """

    def __init__(self, state: SummaryState | None = None, entry_hashes: array[int] | None = None) -> None:
        self.state = state or SummaryState()
        self.prompts: list[PromptRow] = []
        self.summaries: list[SummaryRow] = []
        self._entry_hashes = entry_hashes
        # Those in the state, which is stored as lists.
        self._inline, self._started = set(self.state.inline), set(self.state.started)
        # The entries that may contain acts, as long as they are needed; None if the fold continues from a state.
        self._act_entries: list[Entry] | None = [] if state is None else None

    @property
    def is_reliable(self) -> bool:
        """Whether its turns and titles are right."""
        return self._act_entries is not None or not self._needs_all_entries

    @property
    def _needs_all_entries(self) -> bool:
        return self.state.has_removed and can_miss_steering(self.state.version)

    def summary(self, title: str | None = None) -> TranscriptSummary:
        """Return the summary of the entries so far. `title` is the summary that titles the session, if any."""
        if self._needs_all_entries and self._act_entries is not None:
            self._replay_acts(self._act_entries)
        return summary_from_state(self.state, title)

    def add(self, entry: Entry, time: str | None = None) -> None:
        """Add the next entry. `time` is its `sortable_time`, if the caller knows it."""
        self.state.entries += 1
        if type(entry) not in CHAIN_TYPES:
            self._add_other(entry)
        elif entry.is_agent:  # type: ignore[attr-defined] # as all of these types have
            self._add_inline_agent(entry)  # type: ignore[arg-type]
        else:
            if self._entry_hashes is not None:
                self._entry_hashes.append(hash(entry.uuid))
            self._add_main(entry, time)  # type: ignore[arg-type]

    def _add_other(self, entry: Entry) -> None:
        """An entry outside of the conversation: a title, or an operation on the queue of prompts."""
        self._remember(entry)
        if type(entry) is QueueOperationEntry and entry.operation == "remove":
            self.state.has_removed = True
        if type(entry) is FileHistorySnapshotEntry:
            self._add_time(sortable_time(conversation_time(entry)))
        title = title_in_entry(entry)
        if title is not None:
            self.state.titles[title[0]] = shorten_title(title[1])
        if type(entry) is SummaryEntry and entry.summary and entry.summary.strip():
            self.state.last_summary = shorten_title(entry.summary)
            if entry.leaf_uuid:
                self.summaries.append(SummaryRow(entry.line.number, entry.line.offset, entry.leaf_uuid, entry.summary))

    def _remember(self, entry: Entry) -> None:
        if self._act_entries is not None and can_miss_steering(self.state.version):
            self._act_entries.append(entry)

    def _add_inline_agent(self, entry: ChainEntry) -> None:
        """Add an agent's entry in the main transcript: each root is an agent, unless it is a side agent."""
        if isinstance(entry, UserEntry) and entry.parent_uuid is None:
            agent = AgentId(entry.author_agent_id or entry.uuid or str(entry.line.number))
            if side_agent_kind(agent, entry.text) is None and agent not in self._inline:
                self._inline.add(agent)
                self.state.inline.append(agent)

    def _add_main(self, entry: ChainEntry, time: str | None) -> None:
        state = self.state
        state.spoken += 1
        state.cwd = state.cwd or entry.cwd
        state.slug = state.slug or entry.slug
        self._add_time(time or sortable_time(entry.timestamp_text))
        # Comparing types takes a sixth of the time of `isinstance`, which asks the metaclass of all entries.
        if type(entry) is AssistantEntry:
            self._add_reply(entry)
            return
        if type(entry) is UserEntry and state.pending_agents:
            self._add_agent_results(entry)
        if type(entry) is AttachmentEntry:
            self._add_environment(entry)
        if type(entry) is AttachmentEntry or (
            type(entry) is UserEntry and type(entry.tool_use_result) in _RESULTS_WITH_WORDS
        ):
            self._remember(entry)
            if entry.version:
                state.version = max(state.version, parse_version(entry.version))
            act = act_of(entry)
            if act is not None:
                self._add_act(act)

    def _add_time(self, time: str | None) -> None:
        state = self.state
        if time is not None:
            if state.last is None or time > state.last:
                state.last = time
            if state.first is None or time < state.first:
                state.first = time

    def _add_environment(self, entry: AttachmentEntry) -> None:
        """Add the platform and OS that an attachment describes; the last one counts, as in `Session.environment`."""
        snapshot = entry.attachment.snapshot if type(entry.attachment) is EnvironmentSnapshot else None
        if snapshot is not None and snapshot.platform:
            self.state.platform, self.state.os_version = snapshot.platform, snapshot.os_version

    def _add_act(self, act: Act) -> None:
        """Add an act, unless it repeats the one before."""
        state = self.state
        act_hash = _hash_text(act.text)
        if act_hash == state.act_hash and is_repeat(state.act_kind, act.kind):
            return
        state.act_kind, state.act_hash = str(act.kind), act_hash
        state.turns += begins_turn(act)
        for source, text in title_words(act):
            state.prompt_titles.setdefault(source, shorten_title(text))
        self.prompts.append(PromptRow(act.place.line, act.place.offset, state.turns, str(act.kind), act.text))

    def _replay_acts(self, act_entries: list[Entry]) -> None:
        """Find all acts again, with those that only queue operations record."""
        state = self.state
        self.prompts = []
        state.prompt_titles, state.turns, state.act_kind, state.act_hash = {}, 0, "", b""
        for act in find_acts(act_entries):
            self._add_act(act)

    def _add_reply(self, entry: AssistantEntry) -> None:
        message, state = entry.message, self.state
        if message is None:
            return
        if message.model is not None and message.model != SYNTHETIC_MODEL:
            state.model = message.model
        for block in message.content if type(message.content) is list else ():
            if type(block) is ToolUseBlock and block.name in AGENT_TOOLS and isinstance(block.input, dict):
                type_ = block.input.get("subagent_type")
                if block.id is not None and block.id not in state.pending_agents:
                    state.pending_agents[block.id] = type_ if isinstance(type_, str) else None
                    self._count_type(type_, 1)

    def _add_agent_results(self, entry: UserEntry) -> None:
        """Add the results of calls for agents: a call that failed or was refused started none."""
        state = self.state
        for block in entry.message.blocks if entry.message is not None else ():
            if not isinstance(block, ToolResultBlock) or block.tool_use_id not in state.pending_agents:
                continue
            result = entry.tool_use_result
            agent = result.get("agentId") if isinstance(result, dict) else None
            if block.is_error:
                self._count_type(state.pending_agents.pop(block.tool_use_id), -1)
            elif isinstance(agent, str):
                del state.pending_agents[block.tool_use_id]
                if agent not in self._started:
                    self._started.add(agent)
                    state.started.append(agent)

    def _count_type(self, type_: object, number: int) -> None:
        if isinstance(type_, str):
            self.state.agent_types[type_] = self.state.agent_types.get(type_, 0) + number


def _hash_text(text: str) -> bytes:
    """Return a hash by which the text of an act is recognised when it is repeated."""
    return blake2b(normalise_spaces(text).encode(errors="surrogatepass"), digest_size=12).digest()


# Titles, last prompts and summaries may be anywhere, and are found by their bytes.
_TITLE_MARKERS = (b'-title"', b'"last-prompt"', b'"summary"')


def read_session_titles(found: Iterable[Found], sessions: Collection[str]) -> dict[str, str]:
    """Read the titles of these sessions from their files. Most lines are not decoded."""
    transcripts = [transcript for home in found for transcript in home.transcripts]
    links = TranscriptLinks(transcripts)
    titles: dict[str, str] = {}
    for transcript in transcripts:
        session = transcript.session
        if transcript.kind is TranscriptKind.MAIN and session in sessions and session is not None:
            title = _read_title(transcript, links)
            if title:
                titles.setdefault(session, title)
    return titles


def _read_title(transcript: Transcript, links: SummaryLinks) -> str:
    title = title_from_parts(_read_entries(transcript), _title_entries(transcript))
    if not can_summary_replace(title.source) or not links.summaries:
        return title.text
    named = find_named_entries(transcript, {ref.leaf for ref in links.summaries})
    positions = {entry.id: entry.offset for entry in named if not entry.is_agent}
    text = choose_summary(links.summaries, positions, str(transcript.path))
    return shorten_title(text) if text else title.text


def _read_entries(transcript: Transcript) -> Iterator[Entry]:
    """Yield the entries of a transcript, as far as it can be read."""
    with suppress(Error):
        yield from entries(transcript.path)


def _title_entries(transcript: Transcript) -> Iterator[Entry]:
    """Yield the titles, last prompts and summaries of a transcript in file order, as far as it can be read."""
    with suppress(Error):
        for match in find_lines(transcript.path, _TITLE_MARKERS[0]):
            for line in _lines_with_titles(match.block):
                yield from (entry for entry in _decode_line(transcript, line) if not isinstance(entry, ChainEntry))


def _lines_with_titles(block: bytes) -> Iterator[bytes]:
    ends: dict[int, int] = {}
    for marker in _TITLE_MARKERS:
        at = block.find(marker)
        while at >= 0:
            end = block.find(b"\n", at) + 1 or len(block)
            ends[block.rfind(b"\n", 0, at) + 1] = end
            at = block.find(marker, end)
    return (block[start : ends[start]] for start in sorted(ends))


def _decode_line(transcript: Transcript, line: bytes) -> list[Entry]:
    """Return the entry of a line; several if it is damaged, and none if it has no end."""
    path = str(transcript.path)
    try:
        return [decode_object(line, Place(path))[0]]
    except (ValueError, RecursionError):
        # A line that the block cuts comes again with the next one.
        is_cut = not line.endswith(b"\n")
        return [] if is_cut else list(TranscriptReader(path).decode_line_by_line(Chunk([line], 0), 1))
