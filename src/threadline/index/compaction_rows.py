"""Compactions of a transcript, entry by entry, as `threadline.thread.compactions` tells them."""

from __future__ import annotations

import sqlite3

from msgspec import Struct

from threadline.index.call_rows import EntryIds
from threadline.index.texts import as_number, as_text
from threadline.model.entries import SystemEntry, UserEntry
from threadline.model.thread import CompactionKind

# A boundary is the parent of its summary, which follows it; so many of them are remembered.
_MOST = 200


class CompactionState(Struct, array_like=True):
    """The ids of boundaries so far, and the summaries that hang off an entry which is none, by that entry's id."""

    boundaries: list[str] = []
    summaries: dict[str, list[str]] = {}


class CompactionRow(Struct, array_like=True, gc=False):
    """A compaction as it is written; without a kind, it turned out to be none."""

    uuid: str
    at: int = 0
    kind: str | None = None
    trigger: str | None = None
    before: int | None = None
    after: int | None = None
    agent: str | None = None


class Compacting:
    """The compactions, while entries are added."""

    def __init__(self, state: CompactionState) -> None:
        self.state = state
        self._rows: dict[str, CompactionRow] = {}

    def system(self, at: int, entry: SystemEntry, agent: str | None) -> None:
        """One more entry of the program's."""
        uuid = as_text(entry.uuid)
        if uuid is None:
            return
        if entry.subtype == "compact_boundary":
            told = entry.compact_metadata
            tokens = (as_number(told.pre_tokens), as_number(told.post_tokens)) if told is not None else (None, None)
            trigger = told.trigger if told is not None else None
            self._add(CompactionRow(uuid, at, CompactionKind.BOUNDARY, as_text(trigger), *tokens, agent))
            self.state.boundaries = [*(one for one in self.state.boundaries if one != uuid), uuid][-_MOST:]
            for summary in self.state.summaries.pop(uuid, ()):
                self._add(CompactionRow(summary))
        elif entry.subtype == "microcompact_boundary":
            micro = entry.microcompact_metadata
            before = micro.pre_tokens if micro is not None else None
            after = before - (micro.tokens_saved or 0) if micro is not None and before is not None else None
            trigger = micro.trigger if micro is not None else None
            tokens = as_number(before), as_number(after)
            self._add(CompactionRow(uuid, at, CompactionKind.MICRO, as_text(trigger), *tokens, agent))

    def summary(self, at: int, entry: UserEntry, agent: str | None) -> None:
        """A summary of what was said before: a compaction itself, where it does not follow a boundary."""
        uuid, parent = as_text(entry.uuid), as_text(entry.parent_uuid)
        if uuid is None or parent in self.state.boundaries:
            return
        self._add(CompactionRow(uuid, at, CompactionKind.SUMMARY, agent=agent))
        if parent is not None:
            some = self.state.summaries.setdefault(parent, [])
            some += [uuid] if uuid not in some else []

    def _add(self, row: CompactionRow) -> None:
        self._rows[row.uuid] = row

    def done(self) -> list[CompactionRow]:
        """The rows, when all entries have been added."""
        for parent in list(self.state.summaries)[:-_MOST]:
            del self.state.summaries[parent]
        return list(self._rows.values())


def write_compactions(
    connection: sqlite3.Connection, rows: list[CompactionRow], number: int, ids: EntryIds, *, is_whole: bool
) -> None:
    """Write them down for the transcript of that number; of one that is told again, the last telling counts."""
    if not is_whole:
        connection.executemany(
            "DELETE FROM compaction_rows WHERE transcript_id = ?"
            " AND ? = (SELECT uuid FROM entries WHERE entries.entry_id = compaction_rows.entry_id)",
            [(number, row.uuid) for row in rows],
        )
    connection.executemany(
        "INSERT INTO compaction_rows VALUES(?, ?, ?, ?, ?, ?, ?)",
        [
            (number, ids.of(row.at), row.kind, row.trigger, row.before, row.after, row.agent)
            for row in rows
            if row.kind is not None
        ],
    )
