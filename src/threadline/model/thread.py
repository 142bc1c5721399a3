"""Thread, Branch, Compaction: the paths a conversation took."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from threadline.model.entries import AssistantEntry, ChainEntry, SystemEntry, UserEntry
from threadline.model.ids import EntryId
from threadline.model.place import Place


def is_visible(entry: ChainEntry, *, agent: bool = False) -> bool:
    """Whether Claude Code itself would show the entry as part of the conversation.

    `agent`: of a subagent's own conversation, where every entry is marked as a subagent's or a team's.
    """
    if not isinstance(entry, UserEntry | AssistantEntry) or entry.is_meta:
        return False
    return agent or not (entry.is_agent or entry.team_name)


class LeafSource(StrEnum):
    """How the leaf of the active thread became known."""

    LAST_IN_FILE = "last-in-file"
    LAST_PROMPT = "last-prompt"
    REWOUND_TO_START = "rewound-to-start"
    NONE = "none"


class Thread(Struct, frozen=True):
    """A path from a root to a leaf, with what parallel calls hung beside it put back in its place.

    `agent` says that it is a subagent's.
    """

    entries: tuple[ChainEntry, ...] = ()
    leaf: EntryId | None = None
    source: LeafSource = LeafSource.NONE
    agent: bool = False

    @property
    def visible(self) -> tuple[ChainEntry, ...]:
        """The entries that Claude Code itself would show."""
        return tuple(entry for entry in self.entries if is_visible(entry, agent=self.agent))

    def __repr__(self) -> str:
        return f"Thread({len(self.entries)} entries, leaf={self.leaf!r}, source={str(self.source)!r})"


class Branch(Struct, frozen=True):
    """A path that was left: an edit, a retry or a rewind made another.

    `fork` is the entry at which it parts from the path that was kept (None: it starts the conversation anew), and
    `entries` is all that was abandoned, in file order.
    """

    fork: EntryId | None
    entries: tuple[ChainEntry, ...]

    @property
    def first(self) -> ChainEntry:
        """The entry it begins with."""
        return self.entries[0]

    def __repr__(self) -> str:
        return f"Branch({len(self.entries)} entries from {self.first.place}, fork={self.fork!r})"


class CompactionKind(StrEnum):
    """The three ways a conversation is made smaller."""

    BOUNDARY = "boundary"
    SUMMARY = "summary"
    MICRO = "micro"


class Compaction(Struct, frozen=True):
    """A point where earlier entries were replaced by a summary, or (micro) old results were blanked.

    `before` is the entry the conversation had come to; when the boundary's own pointer leads nowhere (`dangling`), it
    is the last entry before it in the file. `preserved` are entries from before that stay after it.
    """

    kind: CompactionKind
    place: Place
    boundary: SystemEntry | None = None
    summary: UserEntry | None = None
    before: EntryId | None = None
    dangling: bool = False
    trigger: str | None = None
    tokens_before: int | None = None
    tokens_after: int | None = None
    preserved: tuple[EntryId, ...] = ()

    def __repr__(self) -> str:
        tokens = f"{self.tokens_before} -> {self.tokens_after}" if self.tokens_before is not None else "unknown"
        said = f", trigger={self.trigger!r}" if self.trigger else ""
        return f"Compaction({str(self.kind)!r}{said}, tokens {tokens}, line {self.place.line})"
