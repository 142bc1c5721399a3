"""Queries on the full-text table. Expressions are FTS5's, built by `threadline.search.fts` from quoted tokens.

FTS5 is quick to start at a row id, and slow to stop at one. Words of deleted entries may still be in the table.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Mapping

from threadline.index.entries import ENTRY_JOINS, EntryFilter
from threadline.index.schema import FIELDS

# ruff: noqa: S608 - statements are built from our own names and numbers

_NO_FILTER = EntryFilter()
_JOIN_ENTRIES = f"CROSS JOIN entries e ON e.entry_id = text.rowid {ENTRY_JOINS}"


class FullText:
    """The full-text table of an index: which entries match an FTS5 expression."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def has(self, match: str) -> bool:
        """Whether any entry matches."""
        return self.has_more_than(match, 0)

    def has_more_than(self, match: str, count: int) -> bool:
        """Whether more than `count` entries match."""
        select = f"SELECT 1 FROM text WHERE text MATCH ? LIMIT 1 OFFSET {count}"
        return self._connection.execute(select, (match,)).fetchone() is not None

    def count(self, match: str, limit: int) -> int:
        """The number of entries that match, counted up to `limit`."""
        select = f"SELECT COUNT(*) FROM (SELECT 1 FROM text WHERE text MATCH ? LIMIT {limit})"
        return int(self._connection.execute(select, (match,)).fetchone()[0])

    def ids(self, match: str, selection: EntryFilter = _NO_FILTER, limit: int | None = None) -> Iterator[int]:
        """The ids of matching entries, those indexed last first."""
        select, values = _select_ids(match, selection)
        rows = self._connection.execute(
            f"{select} ORDER BY text.rowid DESC" + (f" LIMIT {limit}" if limit is not None else ""), values
        )
        return (entry_id for (entry_id,) in rows)

    def ids_after(self, entry_id: int, match: str, selection: EntryFilter = _NO_FILTER) -> list[int]:
        """The ids of matching entries that are larger than `entry_id`, those indexed last first."""
        select, values = _select_ids(match, selection)
        rows = self._connection.execute(f"{select} AND text.rowid > ? ORDER BY text.rowid", (*values, entry_id))
        return [entry_id for (entry_id,) in rows][::-1]

    def dated_ids(self, match: str, selection: EntryFilter, limit: int | None) -> list[tuple[str, int]]:
        """The timestamps and ids of matching entries, those indexed last first."""
        condition, values = selection.to_sql()
        rows = self._connection.execute(
            f"SELECT e.timestamp, e.entry_id FROM text {_JOIN_ENTRIES} WHERE text MATCH ?{condition}"
            " ORDER BY text.rowid DESC" + (f" LIMIT {limit}" if limit is not None else ""),
            (match, *values),
        )
        return [(timestamp or "", entry_id) for timestamp, entry_id in rows]

    def scores(self, match: str, entry_ids: Collection[int], weights: Mapping[str, float]) -> dict[int, float]:
        """The BM25 scores of those of these entries that match; larger is better. `weights` has one for each field."""
        chosen = set(entry_ids)
        listed = ", ".join(str(weights[field]) for field in FIELDS)
        rows = self._connection.execute(
            f"SELECT rowid, bm25(text, {listed}) FROM text WHERE text MATCH ? AND rowid >= ? AND rowid <= ?",
            (match, min(chosen), max(chosen)),
        )
        return {entry_id: -score for entry_id, score in rows if entry_id in chosen}


def _select_ids(match: str, selection: EntryFilter) -> tuple[str, tuple[object, ...]]:
    condition, values = selection.to_sql()
    joins = f"{_JOIN_ENTRIES} " if condition else ""
    return f"SELECT text.rowid FROM text {joins}WHERE text MATCH ?{condition}", (match, *values)
