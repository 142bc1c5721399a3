"""Rows of single entries, for search: by id, around a line, from the end of a transcript."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from msgspec import Struct

# ruff: noqa: S608 - statements are built from our own names and numbers

_BATCH = 900
_CONVERSATION = "e.kind IN ('user', 'assistant')"
_ZONE_MARGIN = timedelta(days=1)
ENTRY_JOINS = "JOIN transcripts t ON t.transcript_id = e.transcript_id JOIN projects p ON p.project_id = t.project_id"
"""Joins an entry `e` with its transcript `t` and project `p`, as an `EntryFilter` needs them."""
_SELECT_ROWS = f"""SELECT e.entry_id, e.transcript_id, t.path, e.line, e.offset, e.length, e.kind, e.uuid, e.timestamp,
    COALESCE(e.session, t.session), COALESCE(e.agent, t.agent), COALESCE(p.path, p.folder), e.session IS NULL, 0.0
    FROM entries e {ENTRY_JOINS}"""
_SELECT_FACTS = """SELECT e.entry_id, COALESCE(e.session, t.session, t.path), e.kind, e.length, e.timestamp
    FROM entries e JOIN transcripts t ON t.transcript_id = e.transcript_id WHERE e.entry_id IN ({0})"""
_SELECT_LAST_TIMES = """SELECT t.transcript_id,
    COALESCE(r.last, (SELECT MAX(o.last) FROM session_rows o WHERE o.session = t.session)), t.mtime_ns
    FROM transcripts t LEFT JOIN session_rows r USING(transcript_id)"""
_WITH_TOOLS = """t.transcript_id IN (SELECT DISTINCT u.transcript_id FROM call_rows k
    CROSS JOIN entries u ON u.entry_id = k.entry_id WHERE k.tool_id IN ({0}))"""


class EntryRow(NamedTuple):
    """What the index knows about an entry. `is_own`: the entry names the session of its own transcript."""

    entry_id: int
    transcript_id: int
    transcript: str
    line: int
    offset: int
    length: int
    kind: str
    uuid: str | None
    timestamp: str | None
    session: str | None
    agent: str | None
    project: str
    is_own: bool
    score: float = 0.0


class EntryFacts(NamedTuple):
    """The few columns of an entry that are needed to judge its session."""

    entry_id: int
    session: str
    kind: str
    length: int
    timestamp: str | None


class TranscriptEnd(NamedTuple):
    """When a transcript was last written to: the last timestamp of its session, if known, and its mtime."""

    transcript_id: int
    last: str | None
    mtime_ns: int


class EntryFilter(Struct, frozen=True):
    """A condition that SQL can check; each of the parts that are given has to hold.

    It may let more entries through than were asked for, never fewer. `with_tools` accepts all entries of transcripts
    that call one of these tools, since a result is not stored with its tool. Times are compared as text, with a margin
    for any time zone; entries with an unusual timestamp pass.
    """

    project_ids: tuple[Collection[int], ...] = ()
    with_tools: tuple[Collection[int], ...] = ()
    kinds: tuple[str, ...] = ()
    session_prefixes: tuple[str, ...] = ()
    sessions: tuple[Collection[str | None], ...] = ()
    since: tuple[datetime, ...] = ()
    until: tuple[datetime, ...] = ()

    def to_sql(self) -> tuple[str, tuple[object, ...]]:
        """The condition on an entry `e` joined by `ENTRY_JOINS`, beginning with AND, and its values."""
        parts = [f"t.project_id IN ({', '.join(map(str, ids))})" for ids in self.project_ids]
        parts += [_WITH_TOOLS.format(", ".join(map(str, ids))) for ids in self.with_tools]
        values: list[object] = []
        for kind in self.kinds:
            parts.append("lower(e.kind) = ?")
            values.append(kind.lower())
        for prefix in self.session_prefixes:
            parts.append("substr(lower(COALESCE(e.session, t.session)), 1, ?) = ?")
            values += len(prefix), prefix.lower()
        for sessions in self.sessions:
            parts.append(f"COALESCE(e.session, t.session) IN ({', '.join('?' * len(sessions))})")
            values += sessions
        for moment in self.since:
            parts.append(_time_condition(">="))
            values.append(_time_text(moment, -_ZONE_MARGIN))
        for moment in self.until:
            parts.append(_time_condition("<="))
            values.append(_time_text(moment, _ZONE_MARGIN))
        return "".join(f" AND {part}" for part in parts), tuple(values)


def _time_condition(operator: str) -> str:
    return f"(e.timestamp {operator} ? OR e.timestamp NOT GLOB '[12][0-9][0-9][0-9]-[01][0-9]-*')"


def _time_text(moment: datetime, margin: timedelta) -> str:
    try:
        return f"{moment + margin:%Y-%m-%dT%H:%M:%S}"
    except OverflowError:  # at the ends of the calendar: no margin is needed where nothing can lie beyond
        return "" if margin < timedelta(0) else "~"


class EntryTable:
    """The entries of an index."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def count(self) -> int:
        """How many entries there are."""
        return int(self._connection.execute("SELECT COUNT(*) FROM entries").fetchone()[0])

    def last_id(self) -> int:
        """The largest entry id, 0 if there are none. Entries indexed later have larger ids."""
        return int(self._connection.execute("SELECT MAX(entry_id) FROM entries").fetchone()[0] or 0)

    def rows(self, entry_ids: Iterable[int]) -> list[EntryRow]:
        """The rows of these entries, those indexed last first. Ids of deleted entries are left out."""
        listed = ", ".join(map(str, entry_ids))
        return list(self._select(f"WHERE e.entry_id IN ({listed}) ORDER BY e.entry_id DESC"))

    def all_rows(self) -> Iterator[EntryRow]:
        """The rows of all entries."""
        return self._select("")

    def facts(self, entry_ids: Collection[int]) -> Iterator[EntryFacts]:
        """The facts of these entries, in any order. Ids of deleted entries are left out."""
        numbers = list(entry_ids)
        for at in range(0, len(numbers), _BATCH):
            listed = ", ".join(map(str, numbers[at : at + _BATCH]))
            yield from map(EntryFacts._make, self._connection.execute(_SELECT_FACTS.format(listed)))

    def replies_before(self, row: EntryRow, max_lines: int) -> Iterator[EntryRow]:
        """The assistant entries in the lines before an entry, nearest first."""
        return self._select(
            "WHERE e.transcript_id = ? AND e.line < ? AND e.line >= ? AND e.kind = 'assistant' ORDER BY e.line DESC",
            (row.transcript_id, row.line, row.line - max_lines),
        )

    def conversation_around(self, entry_id: int, line: int, count: int) -> tuple[list[EntryRow], list[EntryRow]]:
        """Up to `count` user and assistant entries before a line of an entry's transcript, and after it."""
        sides = []
        for operator, order in (("<", "DESC"), (">", "ASC")):
            rows = self._select(
                f"WHERE e.transcript_id = (SELECT transcript_id FROM entries WHERE entry_id = ?) AND {_CONVERSATION}"
                f" AND e.line {operator} ? ORDER BY e.line {order} LIMIT ?",
                (entry_id, line, count),
            )
            sides.append(list(rows))
        before, after = sides
        return before[::-1], after

    def transcript_ends(self) -> list[TranscriptEnd]:
        """When each transcript was last written to."""
        return [TranscriptEnd(*row) for row in self._connection.execute(_SELECT_LAST_TIMES)]

    def from_end(self, transcript_id: int, selection: EntryFilter) -> Iterator[EntryRow]:
        """The entries of a transcript that pass a filter, last line first."""
        condition, values = selection.to_sql()
        order = "ORDER BY e.line DESC, e.entry_id DESC"
        return self._select(f"WHERE e.transcript_id = ?{condition} {order}", (transcript_id, *values))

    def agent_types(self, transcript_id: int, agent: str) -> list[str]:
        """The types an agent of a transcript was started with."""
        select = "SELECT type FROM agents WHERE transcript_id = ? AND agent = ? AND type IS NOT NULL"
        return [name for (name,) in self._connection.execute(select, (transcript_id, agent))]

    def _select(self, rest: str, values: tuple[object, ...] = ()) -> Iterator[EntryRow]:
        return map(_to_row, self._connection.execute(f"{_SELECT_ROWS} {rest}", values))


def _to_row(values: tuple[Any, ...]) -> EntryRow:
    row = EntryRow._make(values)
    if row.transcript.__class__ is str and row.project.__class__ is str:
        return row
    return row._replace(transcript=os.fsdecode(row.transcript), project=os.fsdecode(row.project))
