"""Charging: the charges of messages whose sightings changed, made anew by the rule over all transcripts.

A message that one sighting tells of is charged by itself, as it comes. Of those that several tell of, who owns them
can depend on what else the same transcripts share; `ties` and `owned` keep what was asked for to tell, so that a
refresh knows which other messages it has to look at again: mostly none.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence

from threadline.account.charges import alone, charged
from threadline.account.rates import Rates, shipped
from threadline.account.rule import parted, settled
from threadline.index.plain import Plain
from threadline.index.priced import RateNumbers, ShareNumbers
from threadline.index.seen import STALE, WIDER, Kept, SeenAgain, ranks
from threadline.index.spending import add_spent, take_out
from threadline.index.spread import KeptSpread, Tie, ends, own, ties
from threadline.index.stamp import stamp, written
from threadline.model.charge import Charge
from threadline.model.found import Home
from threadline.model.kept import ranks as ranks_of
from threadline.model.rate import plain_number
from threadline.model.sighting import Sighting

_INSERT = f"INSERT INTO charged VALUES({', '.join('?' * 16)})"
_TIE = "INSERT OR IGNORE INTO ties(transcript_id, sharers, is_end, offset, message_id) VALUES(?, ?, ?, ?, ?)"
_SETS_OF_STALE = "SELECT DISTINCT sharers FROM stale CROSS JOIN ties USING(message_id)"
_UNTIE = "DELETE FROM ties WHERE message_id IN (SELECT message_id FROM stale)"
_WIDEN = "INSERT OR IGNORE INTO stale SELECT message_id, 1 FROM ties WHERE transcript_id = ? AND sharers = ?"
_AT_ONCE = 2_000
_Ends = dict[tuple[int, str], tuple[int, int]]
_Parts = list[list[Sighting]]
_Row = tuple[object, ...]


def charge_stale(connection: sqlite3.Connection, homes: Sequence[Home] = ()) -> int:
    """Make the charges of stale messages anew; how many there are. New prices make all of them stale."""
    table = shipped()
    connection.execute("BEGIN IMMEDIATE")
    _note_prices(connection, table)
    _note_homes(connection, homes)
    made = 0
    if connection.execute("SELECT 1 FROM stale LIMIT 1").fetchone() is not None:
        made = _Charging(connection, table).run()
        _tidy(connection)
    connection.execute("COMMIT")
    return made


def _note_prices(connection: sqlite3.Connection, table: Rates) -> None:
    known = connection.execute("SELECT value FROM meta WHERE name = 'prices'").fetchone()
    if known is None or known[0] != table.digest:
        connection.execute("INSERT OR IGNORE INTO stale(message_id) SELECT DISTINCT message_id FROM sightings")
        for name in ("charged", "spent", "rates"):
            connection.execute(f"DELETE FROM {name}")  # noqa: S608 - our own names
        connection.execute("INSERT OR REPLACE INTO meta VALUES('prices', ?)", (table.digest,))


def _note_homes(connection: sqlite3.Connection, homes: Sequence[Home]) -> None:
    """Of copies that nothing tells apart, the one in the home that was named first is the original."""
    named = json.dumps([os.fspath(home.path) for home in homes])
    if homes and ranks(connection) != ranks_of(json.loads(named)):
        connection.execute("INSERT OR IGNORE INTO stale(message_id) SELECT DISTINCT message_id FROM ties")
        connection.execute("INSERT OR REPLACE INTO meta VALUES('ranks', ?)", (named,))


def _tidy(connection: sqlite3.Connection) -> None:
    """Take out what nothing refers to any more."""
    connection.execute(
        "DELETE FROM message_ids WHERE message_id IN (SELECT message_id FROM stale)"
        " AND NOT EXISTS(SELECT 1 FROM sightings s WHERE s.message_id = message_ids.message_id)"
    )
    connection.execute(
        "DELETE FROM origins WHERE NOT EXISTS(SELECT 1 FROM sightings s"
        " WHERE s.transcript_id = origins.transcript_id AND s.origin_id = origins.origin_id)"
    )
    connection.execute("DELETE FROM stale")


class _Charging:
    """One charging, while it lasts."""

    def __init__(self, connection: sqlite3.Connection, table: Rates) -> None:
        self._connection = connection
        self._table = table
        self._seen = SeenAgain(connection, ranks(connection))
        self._rates = RateNumbers(connection)
        self._shares = ShareNumbers(connection)
        self._earliest: dict[int, str] = {}
        self._made = 0

    def run(self) -> int:
        take_out(self._connection, STALE)
        sets = {sharers for (sharers,) in self._connection.execute(_SETS_OF_STALE)}
        before = self._ends(sets)
        several: dict[int, _Parts] = {}
        self._insert(self._alone(several))
        self._connection.execute(_UNTIE)
        tied: list[tuple[int, Tie]] = [
            (number, tie) for number, parts in several.items() for tie in ties(parts, self._seen.numbers)
        ]
        self._connection.executemany(_TIE, [(*tie, number) for number, tie in tied])
        before |= {key: (0, 0) for key in self._keys({tie[1] for _, tie in tied}) if key not in before}
        self._widen(before)
        spread = KeptSpread(self._connection, self._seen.numbers, writes=True)
        take_out(self._connection, WIDER)
        wider = {number: parted(key, group) for number, key, group in self._seen.groups(WIDER)}
        self._insert(
            row
            for some in (several, wider)
            for number, parts in some.items()
            for row in self._rows(
                number, [one for part in parts for one in charged(settled(part, spread), self._table)]
            )
        )
        add_spent(self._connection)
        return self._made

    def _alone(self, several: dict[int, _Parts]) -> Iterator[_Row]:
        """The charges of messages that one sighting tells of; the others are put aside."""
        owning = {number for (number,) in self._connection.execute("SELECT transcript_id FROM owned")}
        plain = Plain(self._table, self._rates, self._shares, self._seen.models)
        for number, key, kept in self._seen.kept(STALE):
            if owning:
                self._note_times(kept, owning)
            row = plain.row(number, kept[0]) if len(kept) == 1 else None
            if row is not None:
                yield row
                continue
            group = self._seen.sightings(key, kept)
            if len(group) == 1:
                yield from self._rows(number, alone(group[0], self._table))
            else:
                several[number] = parted(key, group)

    def _note_times(self, kept: list[Kept], owning: set[int]) -> None:
        """The earliest time of what is stale in each transcript that was asked when what is its own began."""
        for _offset, origin_id, _model, time, _told in kept:
            origin = self._seen.origin(origin_id)
            number = self._seen.numbers[origin.transcript]
            if number in owning:
                when = written(time) or origin.began
                self._earliest[number] = min(when, self._earliest.get(number, when))

    def _keys(self, sets: Iterable[str]) -> Iterator[tuple[int, str]]:
        return ((int(number), sharers) for sharers in sets for number in sharers.split(" "))

    def _ends(self, sets: Iterable[str]) -> _Ends:
        return {key: ends(self._connection, *key) for key in self._keys(sets)}

    def _widen(self, before: _Ends) -> None:
        """Add messages to what is stale whose owner may be another now, for what tells owners has changed."""
        changed = {
            sharers for (number, sharers), was in before.items() if ends(self._connection, number, sharers) != was
        }
        for number in self._owning_anew():
            asked = "SELECT DISTINCT sharers FROM ties WHERE transcript_id = ?"
            changed |= {sharers for (sharers,) in self._connection.execute(asked, (number,))}
        self._connection.executemany(_WIDEN, self._keys(changed))

    def _owning_anew(self) -> Iterator[int]:
        """The transcripts whose own messages begin at another time now."""
        for number, time in self._earliest.items():
            known = self._connection.execute("SELECT began FROM owned WHERE transcript_id = ?", (number,)).fetchone()
            if known is None or (known[0] and time > known[0]):
                continue  # what came later, or goes on, begins nothing
            began = own(self._connection, number)
            if began != known[0]:
                self._connection.execute("UPDATE owned SET began = ? WHERE transcript_id = ?", (began, number))
                yield number

    def _insert(self, some: Iterable[_Row]) -> None:
        waiting: list[_Row] = []
        for row in some:
            waiting.append(row)
            if len(waiting) >= _AT_ONCE:
                self._flush(waiting)
        self._flush(waiting)

    def _flush(self, waiting: list[_Row]) -> None:
        self._connection.executemany(_INSERT, waiting)
        self._made += len(waiting)
        waiting.clear()

    def _rows(self, number: int, charges: Iterable[Charge]) -> Iterator[_Row]:
        for at, one in enumerate(charges):
            counted, amount = one.counted, one.amount
            yield (
                number,
                at,
                one.owner.origin_number,
                self._rates.of(counted.model, one.rate),
                stamp(one.owner.time),
                one.part or None,
                counted.input,
                counted.output,
                counted.cache_write_5m,
                counted.cache_write_1h,
                counted.cache_read,
                one.web_searches,
                plain_number(amount) if amount is not None else None,
                one.is_lower_bound,
                one.is_copied,
                self._shares.of(one.calls),
            )
