"""A transcript at a glance: how much there is of what, told head by head, so that more can be added later."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct

from threadline.model.found import TranscriptKind
from threadline.model.head import Head
from threadline.model.ids import SessionId
from threadline.model.problem import Problem

if TYPE_CHECKING:
    from threadline.model.entries import ChainEntry

ISO = re.compile(r"2\d{3}-[01]\d-[0-3]\d[T ][0-2]\d:[0-5]\d")
"""How a time that sorts as text begins."""
_SAYING = ("assistant", "user")
_SUMMING_UP = ("user", "summary")
_TELLING = frozenset({*_SAYING, *_SUMMING_UP, "system"})
_RUNNING_TOTALS = frozenset({"damaged", "pending", "blank"})


class Glance(Struct, frozen=True):
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


class Glancing(Struct, array_like=True):
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
        if isinstance(written, str) and ISO.match(written):
            self.first = written if self.first is None or written < self.first else self.first
            self.last = written if self.last is None or written > self.last else self.last
        if uuid is not None:
            self.first_uuid = self.first_uuid or uuid
            if head.session_id is not None:
                self.sessions[head.session_id] = self.sessions.get(head.session_id, 0) + 1
            if head.is_agent:
                self.agent_entries += 1
                self.agent_roots += head.parent_uuid is None and kind == "user"
        if kind in _TELLING:
            self._say(head, kind)

    def _say(self, head: Head | ChainEntry, kind: str) -> None:
        """What only some kinds tell: where lines ran into one another, a row may have what only other kinds do."""
        if kind in _SAYING and not self.first_message:
            message = getattr(head, "message", None)
            if message is not None and message.id is not None:
                self.first_message = message.id
        if kind == "system":
            self.boundaries += getattr(head, "subtype", None) == "compact_boundary"
        elif kind in _SUMMING_UP:
            self.summaries += bool(getattr(head, "is_compact_summary", None))

    def glance(self, kind: TranscriptKind) -> Glance:
        """What the heads so far tell, of a transcript of that kind."""
        sessions = self.sessions
        return Glance(
            entries=sum(count for kind, count in self.kinds.items() if kind not in _RUNNING_TOTALS),
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
