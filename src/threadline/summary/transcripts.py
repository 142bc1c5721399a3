"""Summary and statistics of one transcript, with the resumable state of each; nothing here reads files.

Kept apart from `fold`, which needs the entry model: with a fresh index, `list` and the overview load only this
module.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec import Struct

from threadline.model.homes import TranscriptKind
from threadline.model.places import Problem, SessionId
from threadline.model.text import choose_title
from threadline.model.times import parse_timestamp
from threadline.model.usage import Head

if TYPE_CHECKING:
    from threadline.model.entries import ChainEntry


class TranscriptSummary(Struct, frozen=True):
    """What one pass tells. `spoken` is how many entries of the main conversation there are: none is no session.

    `inline` are the agents whose entries stand in the main transcript itself; `started` are the agents that its calls
    started, and `unnamed` is how many more of those calls do not name theirs.
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


class SummaryState(Struct, array_like=True):
    """What a pass has come to: all that is needed to go on with it. Times are text; acts are known by their words."""

    titles: dict[str, str] = {}
    words: dict[str, str] = {}
    inline: list[str] = []
    types: dict[str, int] = {}
    asked: dict[str, str | None] = {}
    named: list[str] = []
    first: str | None = None
    last: str | None = None
    cwd: str | None = None
    model: str | None = None
    count: int = 0
    spoken: int = 0
    turns: int = 0
    act_kind: str = ""
    act_text: bytes = b""
    newest: tuple[int, ...] = ()
    unqueued: bool = False


def summary_from_state(state: SummaryState) -> TranscriptSummary:
    """What a pass tells that has come to this."""
    title = choose_title(state.titles, state.words)
    return TranscriptSummary(
        title=title.text,
        title_source=str(title.source),
        cwd=state.cwd,
        first=parse_timestamp(state.first),
        last=parse_timestamp(state.last),
        turns=state.turns,
        inline=tuple(state.inline),
        started=tuple(state.named),
        unnamed=len(state.asked),
        agent_types={kind: count for kind, count in state.types.items() if count > 0},
        model=state.model,
        entries=state.count,
        spoken=state.spoken,
    )


ISO_TIMESTAMP = re.compile(r"2\d{3}-[01]\d-[0-3]\d[T ][0-2]\d:[0-5]\d")
"""How a time that sorts as text begins."""
_MESSAGE_KINDS = ("assistant", "user")
_SUMMARY_KINDS = ("user", "summary")
_INSPECTED_KINDS = frozenset({*_MESSAGE_KINDS, *_SUMMARY_KINDS, "system"})
_UNCOUNTED_KINDS = frozenset({"damaged", "pending", "blank"})


class TranscriptStats(Struct, frozen=True):
    """What one pass over a transcript's heads tells."""

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


class StatsFold(Struct, array_like=True):
    """A glance, while heads are added to it."""

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

    def add(self, head: Head | ChainEntry, line: int) -> None:
        """One more head, or an entry of the conversation, which says the same; and its line's number."""
        kind, uuid, version, written = head.kind, head.uuid, head.version, head.timestamp_text
        kinds = self.kinds
        kinds[kind] = kinds.get(kind, 0) + 1
        if line == 1:
            self.starts_with_summary = kind == "summary"
        if version is not None:
            self.versions[version] = self.versions.get(version, 0) + 1
        # Times are ISO 8601 in UTC, so that text sorts as time does; other shapes are not counted here.
        if isinstance(written, str) and ISO_TIMESTAMP.match(written):
            self.first = written if self.first is None or written < self.first else self.first
            self.last = written if self.last is None or written > self.last else self.last
        if uuid is not None:
            self.first_uuid = self.first_uuid or uuid
            if head.session_id is not None:
                self.sessions[head.session_id] = self.sessions.get(head.session_id, 0) + 1
            if head.is_agent:
                self.agent_entries += 1
                self.agent_roots += head.parent_uuid is None and kind == "user"
        if kind in _INSPECTED_KINDS:
            self._say(head, kind)

    def _say(self, head: Head | ChainEntry, kind: str) -> None:
        """What only some kinds tell: where lines ran into one another, a row may have what only other kinds do."""
        if kind in _MESSAGE_KINDS and not self.first_message:
            message = getattr(head, "message", None)
            if message is not None and message.id is not None:
                self.first_message = message.id
        if kind == "system":
            self.boundaries += getattr(head, "subtype", None) == "compact_boundary"
        elif kind in _SUMMARY_KINDS:
            self.summaries += bool(getattr(head, "is_compact_summary", None))

    def glance(self, kind: TranscriptKind) -> TranscriptStats:
        """What the heads so far tell, of a transcript of that kind."""
        sessions = self.sessions
        return TranscriptStats(
            entries=sum(count for kind, count in self.kinds.items() if kind not in _UNCOUNTED_KINDS),
            kinds=dict(self.kinds),
            versions=dict(self.versions),
            first=self.first,
            last=self.last,
            session=SessionId(max(sessions, key=sessions.__getitem__)) if sessions else None,
            # Each compaction of the newer era writes a boundary and a summary, of the older a summary alone.
            compactions=max(self.boundaries, self.summaries),
            agent_entries=self.agent_entries,
            inline_agents=self.agent_roots if kind is TranscriptKind.MAIN else 0,
            starts_with_summary=self.starts_with_summary,
            first_uuid=self.first_uuid,
            first_message=self.first_message,
        )
