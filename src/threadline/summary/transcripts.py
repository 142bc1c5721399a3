"""Summary and statistics of one transcript, and their state, to which later lines can be added.

Reads no files. `fold` is separate because it needs the entry model: with a fresh index, `list` and the overview load
only this module.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from itertools import islice, takewhile
from typing import TYPE_CHECKING

from msgspec import Struct

from threadline.errors import Error
from threadline.model.homes import Transcript, TranscriptKind
from threadline.model.places import Place, Problem, ProblemKind, SessionId
from threadline.model.times import parse_timestamp, sortable_time
from threadline.model.titles import SummaryRef, Title, TitleSource, choose_title
from threadline.model.usage import Head

if TYPE_CHECKING:
    from threadline.model.entries import ChainEntry


class TranscriptSummary(Struct, frozen=True):
    """A main transcript in one line.

    `spoken` counts the entries of the main conversation; without any, the transcript is not a session. `inline` are the
    agents whose entries are in the main transcript itself. `started` are the agents that results of calls name, and
    `unnamed` counts the calls for agents whose results name none. `summaries` are those in the transcript, whatever
    session they title.
    """

    title: str = ""
    title_source: str = ""
    cwd: str | None = None
    first: datetime | None = None
    last: datetime | None = None
    turns: int = 0
    inline: tuple[str, ...] = ()
    started: tuple[str, ...] = ()
    unnamed: int = 0
    agent_types: dict[str, int] = {}
    model: str | None = None
    entries: int = 0
    spoken: int = 0
    problem: str | None = None
    summaries: tuple[SummaryRef, ...] = ()
    slug: str | None = None
    platform: str | None = None
    os_version: str | None = None


class SummaryState(Struct, array_like=True):
    """What `SummaryFold` has to remember between entries. The index stores it: do not reorder the fields.

    `titles` and `prompt_titles` are the candidates for the title by source. `first` and `last` are sortable times.
    `pending_agents` are the calls for agents without a result so far, with the type they ask for; `started` are the
    agents that results name. `act_kind` and `act_hash` identify the last act. `has_removed` says that a
    prompt was taken out of the queue, and `version` is the newest version of Claude Code so far: together they decide
    whether steering can be missing (`can_miss_steering`). `last_summary` is the last summary in the transcript.
    """

    titles: dict[str, str] = {}
    prompt_titles: dict[str, str] = {}
    inline: list[str] = []
    agent_types: dict[str, int] = {}
    pending_agents: dict[str, str | None] = {}
    started: list[str] = []
    first: str | None = None
    last: str | None = None
    cwd: str | None = None
    model: str | None = None
    entries: int = 0
    spoken: int = 0
    turns: int = 0
    act_kind: str = ""
    act_hash: bytes = b""
    version: tuple[int, ...] = ()
    has_removed: bool = False
    last_summary: str = ""
    slug: str | None = None
    platform: str | None = None
    os_version: str | None = None


def title_from_state(state: SummaryState, summary: str | None = None) -> Title:
    """Return the title after the entries that led to a state.

    `summary` is the one that names an entry of this conversation, if any. If there is no conversation, the last summary
    in the transcript is all there is.
    """
    text = summary or (state.last_summary if not state.spoken else None)
    titles = {**state.titles, TitleSource.SUMMARY.value: text} if text else state.titles
    return choose_title(titles, state.prompt_titles)


def summary_from_state(state: SummaryState, summary: str | None = None) -> TranscriptSummary:
    """Return the summary of the entries that led to a state. `summary` is that of `title_from_state`."""
    title = title_from_state(state, summary)
    return TranscriptSummary(
        title=title.text,
        title_source=str(title.source),
        cwd=state.cwd,
        first=parse_timestamp(state.first),
        last=parse_timestamp(state.last),
        turns=state.turns,
        inline=tuple(state.inline),
        started=tuple(state.started),
        unnamed=len(state.pending_agents),
        agent_types={type_: count for type_, count in state.agent_types.items() if count > 0},
        model=state.model,
        entries=state.entries,
        spoken=state.spoken,
        slug=state.slug,
        platform=state.platform,
        os_version=state.os_version,
    )


def count_started_agents(agents: Collection[str], started: Collection[str], unnamed: int) -> int:
    """Return how many agents a session had: those with transcripts, those that results name, and `unnamed` calls.

    Old versions do not name the agents in results: those that no result names are among the agents with transcripts.
    """
    named = set(started)
    return len(named.union(agents)) + max(0, unnamed - len(set(agents) - named))


_MESSAGE_KINDS = ("assistant", "user")
_SUMMARY_KINDS = ("user", "summary")
_CHAIN_KINDS = frozenset({*_MESSAGE_KINDS, "system", "attachment", "progress"})
_UNCOUNTED_KINDS = frozenset({"damaged", "pending", "blank"})


class TranscriptStats(Struct, frozen=True):
    """What is in a transcript of any kind, counted from the heads of its entries.

    `first` and `last` are sortable times of all entries, bookkeeping included. `spoken` counts the entries of the main
    conversation. `inline_agents` counts the first prompts of agents inside a main transcript.
    """

    entries: int = 0
    kinds: dict[str, int] = {}
    versions: dict[str, int] = {}
    first: str | None = None
    last: str | None = None
    session: SessionId | None = None
    compactions: int = 0
    agent_entries: int = 0
    inline_agents: int = 0
    starts_with_summary: bool = False
    first_uuid: str | None = None
    first_message: str | None = None
    problem: Problem | None = None
    spoken: int = 0


def _add_counts(counts: dict[str, int], names: Iterable[str]) -> None:
    for name, number in Counter(names).items():
        counts[name] = counts.get(name, 0) + number


class StatsFold(Struct, array_like=True):
    """Counts what is in a transcript, head by head. The index stores it: do not reorder the fields."""

    kinds: dict[str, int] = {}
    versions: dict[str, int] = {}
    sessions: dict[str, int] = {}
    first: str | None = None
    last: str | None = None
    first_uuid: str | None = None
    first_message: str | None = None
    boundaries: int = 0
    summaries: int = 0
    agent_entries: int = 0
    agent_roots: int = 0
    starts_with_summary: bool = False
    spoken: int = 0

    def add(
        self,
        heads: Sequence[Head | ChainEntry],
        kinds: Sequence[str],
        lines: Sequence[int],
        times: Iterable[str | None],
    ) -> None:
        """Add heads, or entries of the conversation, which have the same fields.

        With them come the kind, line and `sortable_time` of each.
        """
        _add_counts(self.kinds, kinds)
        _add_counts(self.versions, [head.version for head in heads if head.version is not None])
        for kind, _ in takewhile(lambda row: row[1] == 1, zip(kinds, lines, strict=True)):
            self.starts_with_summary = kind == "summary"
        if known := list(filter(None, times)):
            self.first = min(known) if self.first is None else min(self.first, *known)
            self.last = max(known) if self.last is None else max(self.last, *known)
        named = [head for head in heads if head.uuid is not None]
        if named:
            self.first_uuid = self.first_uuid or next((head.uuid for head in named if head.uuid), named[-1].uuid)
            _add_counts(self.sessions, [head.session_id for head in named if head.session_id is not None])
        self._add_roles(heads, kinds)
        if not self.first_message:
            self._find_first_message(heads, kinds)

    def _add_roles(self, heads: Sequence[Head | ChainEntry], kinds: Sequence[str]) -> None:
        """Read fields that belong to some kinds only: if lines ran into each other, a row may have fields of others."""
        for head, kind in zip(heads, kinds, strict=True):
            if head.is_agent:
                if head.uuid is not None:
                    self.agent_entries += 1
                    self.agent_roots += head.parent_uuid is None and kind == "user"
            elif kind in _CHAIN_KINDS:
                self.spoken += 1
            if kind == "assistant":
                continue
            if kind == "system":
                self.boundaries += getattr(head, "subtype", None) == "compact_boundary"
            elif kind in _SUMMARY_KINDS and getattr(head, "is_compact_summary", None):
                self.summaries += 1

    def _find_first_message(self, heads: Sequence[Head | ChainEntry], kinds: Sequence[str]) -> None:
        for head, kind in zip(heads, kinds, strict=True):
            message = getattr(head, "message", None) if kind in _MESSAGE_KINDS else None
            if message is not None and message.id is not None:
                self.first_message = message.id
                if message.id:
                    return

    def stats(self, kind: TranscriptKind) -> TranscriptStats:
        """Return the statistics of the heads so far, for a transcript of that kind."""
        sessions = self.sessions
        return TranscriptStats(
            entries=sum(count for kind, count in self.kinds.items() if kind not in _UNCOUNTED_KINDS),
            kinds=dict(self.kinds),
            versions=dict(self.versions),
            first=self.first,
            last=self.last,
            session=SessionId(max(sessions, key=sessions.__getitem__)) if sessions else None,
            # A compaction of the newer era writes a boundary and a summary, one of the older era only a summary.
            compactions=max(self.boundaries, self.summaries),
            agent_entries=self.agent_entries,
            inline_agents=self.agent_roots if kind is TranscriptKind.MAIN else 0,
            starts_with_summary=self.starts_with_summary,
            first_uuid=self.first_uuid,
            first_message=self.first_message,
            spoken=self.spoken,
        )


_HEADS_AT_ONCE = 1000


def read_stats(transcript: Transcript) -> TranscriptStats:
    """Count what is in a transcript. If it cannot be read, the statistics have a `problem`."""
    from threadline.parse import heads  # noqa: PLC0415 - a fresh index needs no reader

    fold = StatsFold()
    try:
        all_heads = heads(transcript.path)
        while batch := list(islice(all_heads, _HEADS_AT_ONCE)):
            times = [sortable_time(head.timestamp_text) for head in batch]
            fold.add(batch, [head.kind for head in batch], [head.line for head in batch], times)
    except Error as error:
        problem = Problem(ProblemKind.UNREADABLE, Place(str(transcript.path)), str(error), recovered=False)
        return TranscriptStats(problem=problem)
    return fold.stats(transcript.kind)
