"""Charging: the charges of messages whose sightings changed, made anew by the rule over all transcripts."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from sys import intern

from threadline.account.charges import charges
from threadline.account.rates import Rates, shipped
from threadline.index.sighted import unpacked
from threadline.index.texts import as_text, stored
from threadline.model.charge import Charge
from threadline.model.rate import plain_number
from threadline.model.side_agent import kind_by_id
from threadline.model.sighting import Sighting
from threadline.parse.line_numbers import LineNumbers

_STALE = """
SELECT s.told, t.transcript_id, t.path, COALESCE(p.path, p.folder), h.path
FROM sightings s
JOIN transcripts t USING(transcript_id)
JOIN projects p USING(project_id)
JOIN homes h ON h.home_id = t.home_id
WHERE s.message IN (SELECT message FROM stale)
"""
# Which of several transcripts owns what they share is told by all that they share, and by what each has alone. So where
# one of them changed, all that it shares is stale, and what those that share it have alone is looked at, too.
_CHANGED = """
CREATE TEMP TABLE changed AS SELECT DISTINCT transcript_id FROM sightings WHERE message IN (SELECT message FROM stale)
"""
_SHARED = """
CREATE TEMP TABLE shared AS SELECT DISTINCT s.message FROM changed JOIN sightings s USING(transcript_id)
WHERE EXISTS(SELECT 1 FROM sightings o WHERE o.message = s.message AND o.transcript_id <> s.transcript_id)
"""
_ALONE = """
INSERT OR IGNORE INTO stale SELECT s.message FROM sightings s
WHERE s.transcript_id IN (SELECT transcript_id FROM shared JOIN sightings USING(message))
AND NOT EXISTS(SELECT 1 FROM sightings o WHERE o.message = s.message AND o.transcript_id <> s.transcript_id)
"""
_COLUMNS = 23


def charge_stale(connection: sqlite3.Connection) -> int:
    """Make the charges of stale messages anew; how many there are. New prices make all of them stale."""
    table = shipped()
    connection.execute("BEGIN IMMEDIATE")
    _note_prices(connection, table)
    _widen(connection)
    connection.execute("DELETE FROM charges WHERE message IN (SELECT message FROM stale)")
    seen = _Seen(connection)
    made = [_row(one, seen.numbers[one.origin.transcript]) for one in charges(seen, table)]
    connection.executemany(f"INSERT INTO charges VALUES(NULL{', ?' * (_COLUMNS - 1)})", made)
    connection.execute("DELETE FROM stale")
    connection.execute("COMMIT")
    return len(made)


def _note_prices(connection: sqlite3.Connection, table: Rates) -> None:
    known = connection.execute("SELECT value FROM meta WHERE name = 'prices'").fetchone()
    if known is None or known[0] != table.digest:
        connection.execute("INSERT OR IGNORE INTO stale SELECT DISTINCT message FROM sightings")
        connection.execute("INSERT OR REPLACE INTO meta VALUES('prices', ?)", (table.digest,))


def _widen(connection: sqlite3.Connection) -> None:
    """Add what depends on the same transcripts to what is stale."""
    connection.execute(_CHANGED)
    connection.execute(_SHARED)
    connection.execute(_ALONE)
    connection.execute("INSERT OR IGNORE INTO stale SELECT message FROM shared")
    connection.execute("DROP TABLE changed")
    connection.execute("DROP TABLE shared")


class _Seen:
    """The sightings of stale messages, with what the index knows of where they stand."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._lines: dict[str, LineNumbers] = {}
        self.numbers: dict[str, int] = {}

    def __iter__(self) -> Iterator[Sighting]:
        for told, number, path, project, home in self._connection.execute(_STALE):
            began, origin, sighting = unpacked(told)
            path, project, home = map(os.fsdecode, (path, project, home))  # noqa: PLW2901 - as they are on disk
            origin.transcript, origin.project, origin.home = intern(path), intern(project), intern(home)
            origin.began = began
            origin.side = origin.agent is not None and kind_by_id(origin.agent) is not None
            origin.lines = self._lines.get(path) or self._lines.setdefault(path, LineNumbers(path))
            sighting.origin = origin
            sighting.time = sighting.time or began
            self.numbers[path] = number
            yield sighting


def _row(one: Charge, transcript: int) -> tuple[object, ...]:
    origin, counted = one.origin, one.counted
    amount = one.amount
    return (
        one.message,
        one.part,
        transcript,
        as_text(origin.session),
        as_text(origin.agent),
        stored(origin.project),
        stored(origin.home),
        as_text(one.model),
        as_text(one.owner.time),
        as_text(origin.version),
        as_text(origin.git_branch),
        as_text(origin.skill),
        origin.side,
        counted.input,
        counted.output,
        counted.cache_write_5m,
        counted.cache_write_1h,
        counted.cache_read,
        one.web_searches,
        plain_number(amount) if amount is not None else None,
        one.is_lower_bound,
        one.is_copied,
    )
