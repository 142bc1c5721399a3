"""Fold the entries of a main transcript into its summary, incrementally; read titles of many sessions cheaply."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from hashlib import blake2b
from itertools import islice

from msgspec import Struct

from threadline.errors import Error
from threadline.model.blocks import ToolResultBlock, ToolUseBlock
from threadline.model.entries import AssistantEntry, AttachmentEntry, ChainEntry, Entry, QueueOperationEntry, UserEntry
from threadline.model.homes import Found, Transcript, TranscriptKind
from threadline.model.places import AgentId, Place
from threadline.model.session import Act
from threadline.model.side_agents import side_agent_kind
from threadline.model.text import shorten_title
from threadline.parse import decode_object, entries, find_lines, find_lines_in_block
from threadline.render import AGENT_TOOLS
from threadline.summary.transcripts import ISO_TIMESTAMP, SummaryState, TranscriptSummary, summary_from_state
from threadline.thread import (
    act_of,
    begins_turn,
    can_miss_steering,
    find_acts,
    is_repeat,
    normalise_spaces,
    parse_version,
    session_title,
    title_in_entry,
    title_words,
)

_SYNTHETIC_MODEL = "<synthetic>"


def summarize_transcript(transcript: Transcript) -> TranscriptSummary:
    """One pass over a main transcript. Refusals of the machine become a problem."""
    try:
        return fold_entries(entries(transcript.path)).light()
    except Error as error:
        return TranscriptSummary(problem=str(error), spoken=1)


def fold_entries(found: Iterable[Entry]) -> SummaryFold:
    """A pass over all entries of a transcript."""
    lighting = SummaryFold()
    for entry in found:
        lighting.add(entry)
    return lighting


class PromptRow(Struct, frozen=True, array_like=True):
    """What a person typed, the line that tells of it, and the number of its turn, or of the one it joins."""

    line: int
    turn: int
    kind: str
    text: str


class SummaryFold:
    """A pass over the entries of a transcript, from its first one or from where another pass stood.

    `prompts` are those of this pass alone. Up to 2.1.97, what was typed while the model worked is told by the whole
    transcript only: a pass that began later `is_sure` of nothing then, and has to be made from the first entry.
    """

    def __init__(self, state: SummaryState | None = None) -> None:
        self.state = state or SummaryState()
        self.prompts: list[PromptRow] = []
        self._kept: list[Entry] | None = [] if state is None else None

    @property
    def is_reliable(self) -> bool:
        """Whether what it tells of turns and titles is so."""
        return self._kept is not None or not self._is_told_by_the_whole

    @property
    def _is_told_by_the_whole(self) -> bool:
        return self.state.unqueued and can_miss_steering(self.state.newest)

    def light(self) -> TranscriptSummary:
        """What the entries so far tell."""
        state = self.state
        if self._is_told_by_the_whole and self._kept is not None:
            self._act_anew(self._kept)
        return summary_from_state(state)

    def add(self, entry: Entry) -> None:
        """One more entry."""
        state = self.state
        state.count += 1
        if not isinstance(entry, ChainEntry):
            self._keep(entry)
            state.unqueued = state.unqueued or (isinstance(entry, QueueOperationEntry) and entry.operation == "remove")
            titled = title_in_entry(entry)
            if titled is not None:
                state.titles[titled[0]] = shorten_title(titled[1])
        elif entry.is_agent:
            self._agent(entry)
        else:
            self._main(entry)

    def _keep(self, entry: Entry) -> None:
        if self._kept is not None:
            self._kept.append(entry)

    def _agent(self, entry: ChainEntry) -> None:
        """An agent's entry among the main ones: each root is an agent, unless the program ran it for itself."""
        if isinstance(entry, UserEntry) and entry.parent_uuid is None:
            name = AgentId(entry.agent_id or entry.uuid or str(entry.line.number))
            if side_agent_kind(name, entry.text) is None and name not in self.state.inline:
                self.state.inline.append(name)

    def _main(self, entry: ChainEntry) -> None:
        state = self.state
        state.spoken += 1
        state.cwd = state.cwd or entry.cwd
        written = entry.timestamp_text
        # Times are ISO 8601 in UTC, so that text sorts as time does; other shapes are not counted here.
        if isinstance(written, str) and ISO_TIMESTAMP.match(written):
            state.first = written if state.first is None or written < state.first else state.first
            state.last = written if state.last is None or written > state.last else state.last
        if isinstance(entry, AssistantEntry):
            self._reply(entry)
            return
        if isinstance(entry, UserEntry) and state.asked:
            self._answers(entry)
        if isinstance(entry, AttachmentEntry) or (isinstance(entry, UserEntry) and entry.tool_use_result is None):
            self._keep(entry)
            if entry.version:
                state.newest = max(state.newest, parse_version(entry.version))
            act = act_of(entry)
            if act is not None:
                self._act(act)

    def _act(self, act: Act) -> None:
        """One more act, unless the one before told of it already."""
        state = self.state
        words = _hash_text(act.text)
        if words == state.act_text and is_repeat(state.act_kind, act.kind):
            return
        state.act_kind, state.act_text = str(act.kind), words
        state.turns += begins_turn(act)
        for source, text in title_words(act):
            state.words.setdefault(source, shorten_title(text))
        self.prompts.append(PromptRow(act.place.line, state.turns, str(act.kind), act.text))

    def _act_anew(self, kept: list[Entry]) -> None:
        """All acts of the transcript, with those that only queue operations tell of."""
        state = self.state
        self.prompts = []
        state.words, state.turns, state.act_kind, state.act_text = {}, 0, "", b""
        for act in find_acts(kept):
            self._act(act)

    def _reply(self, entry: AssistantEntry) -> None:
        message, state = entry.message, self.state
        if message is None:
            return
        if message.model is not None and message.model != _SYNTHETIC_MODEL:
            state.model = message.model
        for block in message.content if isinstance(message.content, list) else ():
            if isinstance(block, ToolUseBlock) and block.name in AGENT_TOOLS and isinstance(block.input, dict):
                kind = block.input.get("subagent_type")
                if block.id is not None and block.id not in state.asked:
                    state.asked[block.id] = kind if isinstance(kind, str) else None
                    self._count(kind, 1)

    def _answers(self, entry: UserEntry) -> None:
        """What came of calls for agents: one that failed or was refused started none."""
        state = self.state
        for block in entry.message.blocks if entry.message is not None else ():
            if not isinstance(block, ToolResultBlock) or block.tool_use_id not in state.asked:
                continue
            given = entry.tool_use_result
            name = given.get("agentId") if isinstance(given, dict) else None
            if block.is_error:
                self._count(state.asked.pop(block.tool_use_id), -1)
            elif isinstance(name, str):
                del state.asked[block.tool_use_id]
                if name not in state.named:
                    state.named.append(name)

    def _count(self, kind: object, number: int) -> None:
        if isinstance(kind, str):
            self.state.types[kind] = self.state.types.get(kind, 0) + number


def _hash_text(text: str) -> bytes:
    """What an act's words are known by again."""
    return blake2b(normalise_spaces(text).encode(errors="surrogatepass"), digest_size=12).digest()


# What a person said first stands among the first entries.
_TITLE_HEAD_ENTRIES = 200
# Titles, last prompts and summaries may stand anywhere, and are found by their bytes.
_TITLE_MARKER, _OTHER_MARKERS = b'-title"', (b'"last-prompt"', b'"summary"')


def read_session_titles(found: Iterable[Found], wanted: Collection[str]) -> dict[str, str]:
    """The titles of these sessions, as far as they are cheaply known: of most lines nothing is decoded."""
    titles: dict[str, str] = {}
    for transcript in (one for home in found for one in home.transcripts):
        session = transcript.session
        if transcript.kind is TranscriptKind.MAIN and session in wanted and session is not None:
            named = _read_title(transcript)
            if named:
                titles.setdefault(session, named)
    return titles


def _read_title(transcript: Transcript) -> str:
    said: list[Entry] = []
    given: list[Entry] = []
    with suppress(Error):
        said += filter(_can_give_title, islice(entries(transcript.path), _TITLE_HEAD_ENTRIES))
        given += _title_entries(transcript)
    return session_title([*said, *given], find_acts(said)).text


def _title_entries(transcript: Transcript) -> Iterator[Entry]:
    """The titles, last prompts and summaries of a transcript."""
    place = Place(str(transcript.path))
    for found in find_lines(transcript.path, _TITLE_MARKER):
        others = (line for needle in _OTHER_MARKERS for line in find_lines_in_block(found.block, needle))
        for line in (*found.lines, *others):
            with suppress(ValueError, RecursionError):  # a line that the block cuts comes again with the next
                entry, _ = decode_object(line, place)
                if not isinstance(entry, ChainEntry):
                    yield entry


def _can_give_title(entry: Entry) -> bool:
    """Whether a title can come from it: all that is no part of the conversation, and what a person said in it."""
    if not isinstance(entry, ChainEntry):
        return True
    said = isinstance(entry, UserEntry) and entry.tool_use_result is None
    return not entry.is_agent and (said or isinstance(entry, AttachmentEntry))
