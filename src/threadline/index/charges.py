"""Charge the messages whose sightings changed, and rebuild charges from stored sightings.

A message with one sighting is charged on its own. Who owns a message with several sightings can depend on what else
the same transcripts share. The tables `ties` and `owned` record what was consulted to decide, so that a refresh knows
which other messages it has to decide again: usually none.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from operator import mul

from threadline.account import (
    COUNTS,
    CopyEvidence,
    Ledger,
    Rates,
    charge_groups,
    charge_single,
    earliest,
    group_by_call,
    most_complete,
    shipped_rates,
    transcripts_of,
)
from threadline.index.sightings import (
    STALE_MESSAGES,
    WIDENED_MESSAGES,
    StoredSighting,
    StoredSightings,
    decode_sighting,
    home_ranks,
)
from threadline.index.store import QUARTER_MS, decode_time, encode_path, encode_time
from threadline.index.totals import RateIds, ShareIds
from threadline.model.homes import NO_HOMES, Homes
from threadline.model.ledger import EXACT, Charge, Rate
from threadline.model.text import format_decimal
from threadline.model.times import timestamp_from_mtime
from threadline.model.usage import Sighting
from threadline.parse import is_compacted_at_end
from threadline.reports import RecentUsage, SessionRef, is_main_request

_INSERT_CHARGE = f"INSERT INTO charged VALUES({', '.join('?' * 16)})"
_INSERT_TIE = "INSERT OR IGNORE INTO ties(transcript_id, sharers, is_end, offset, message_id) VALUES(?, ?, ?, ?, ?)"
_SELECT_STALE_SHARERS = "SELECT DISTINCT sharers FROM stale CROSS JOIN ties USING(message_id)"
_DELETE_STALE_TIES = "DELETE FROM ties WHERE message_id IN (SELECT message_id FROM stale)"
_MARK_WIDENED = "INSERT OR IGNORE INTO stale SELECT message_id, 1 FROM ties WHERE transcript_id = ? AND sharers = ?"
_BATCH_ROWS = 2_000
_Ends = dict[tuple[int, str], tuple[int, int]]
_Parts = list[list[Sighting]]
_ChargeRow = tuple[object, ...]


def charge_stale(connection: sqlite3.Connection, homes: Homes = NO_HOMES) -> int:
    """Make the charges of stale messages anew; how many there are. New prices make all of them stale."""
    table = shipped_rates()
    connection.execute("BEGIN IMMEDIATE")
    _update_prices(connection, table)
    _update_home_ranks(connection, homes)
    made = 0
    if connection.execute("SELECT 1 FROM stale LIMIT 1").fetchone() is not None:
        made = _ChargeRun(connection, homes, table).run()
        _delete_unused(connection)
    connection.execute("COMMIT")
    return made


def _update_prices(connection: sqlite3.Connection, table: Rates) -> None:
    known = connection.execute("SELECT value FROM meta WHERE name = 'prices'").fetchone()
    if known is None or known[0] != table.digest:
        connection.execute("INSERT OR IGNORE INTO stale(message_id) SELECT DISTINCT message_id FROM sightings")
        for name in ("charged", "spent", "rates"):
            connection.execute(f"DELETE FROM {name}")  # noqa: S608 - our own names
        connection.execute("INSERT OR REPLACE INTO meta VALUES('prices', ?)", (table.digest,))


def _update_home_ranks(connection: sqlite3.Connection, homes: Homes) -> None:
    """Of copies that nothing tells apart, the one in the home that was named first is the original."""
    if homes and home_ranks(connection, homes) != homes.ranks():
        named = json.dumps([os.fspath(home.path) for home in homes])
        connection.execute("INSERT OR IGNORE INTO stale(message_id) SELECT DISTINCT message_id FROM ties")
        connection.execute("INSERT OR REPLACE INTO meta VALUES('ranks', ?)", (named,))


def _delete_unused(connection: sqlite3.Connection) -> None:
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


class _ChargeRun:
    """One charging, while it lasts."""

    def __init__(self, connection: sqlite3.Connection, homes: Homes, table: Rates) -> None:
        self._connection = connection
        self._table = table
        self._seen = StoredSightings(connection, homes)
        self._rates = RateIds(connection)
        self._shares = ShareIds(connection)
        self._earliest: dict[int, str] = {}
        self._made = 0

    def run(self) -> int:
        subtract_charges(self._connection, STALE_MESSAGES)
        sets = {sharers for (sharers,) in self._connection.execute(_SELECT_STALE_SHARERS)}
        before = self._ends(sets)
        several: dict[int, _Parts] = {}
        self._insert(self._alone(several))
        self._connection.execute(_DELETE_STALE_TIES)
        tied: list[tuple[int, TieRow]] = [
            (number, tie) for number, parts in several.items() for tie in tie_rows(parts, self._seen.numbers)
        ]
        self._connection.executemany(_INSERT_TIE, [(*tie, number) for number, tie in tied])
        before |= {key: (0, 0) for key in self._keys({tie[1] for _, tie in tied}) if key not in before}
        self._widen(before)
        spread = StoredCopyEvidence(self._connection, self._seen.numbers, writes=True)
        subtract_charges(self._connection, WIDENED_MESSAGES)
        wider = {number: group_by_call(key, group) for number, key, group in self._seen.groups(WIDENED_MESSAGES)}
        self._insert(
            row
            for some in (several, wider)
            for number, parts in some.items()
            for row in self._rows(number, list(charge_groups(parts, spread, self._table)))
        )
        add_charges(self._connection)
        return self._made

    def _alone(self, several: dict[int, _Parts]) -> Iterator[_ChargeRow]:
        """The charges of messages that one sighting tells of; the others are put aside."""
        owning = {number for (number,) in self._connection.execute("SELECT transcript_id FROM owned")}
        plain = PlainCharges(self._table, self._rates, self._shares, self._seen.models)
        for number, key, kept in self._seen.rows(STALE_MESSAGES):
            if owning:
                self._note_times(kept, owning)
            row = plain.row(number, kept[0]) if len(kept) == 1 else None
            if row is not None:
                yield row
                continue
            group = self._seen.sightings(key, kept)
            if len(group) == 1:
                yield from self._rows(number, charge_single(group[0], self._table))
            else:
                several[number] = group_by_call(key, group)

    def _note_times(self, kept: list[StoredSighting], owning: set[int]) -> None:
        """The earliest time of what is stale in each transcript that was asked when what is its own began."""
        for _offset, origin_id, _model, time, _told in kept:
            origin = self._seen.origin(origin_id)
            number = self._seen.numbers[origin.transcript]
            if number in owning:
                when = decode_time(time) or origin.began
                self._earliest[number] = min(when, self._earliest.get(number, when))

    def _keys(self, sets: Iterable[str]) -> Iterator[tuple[int, str]]:
        return ((int(number), sharers) for sharers in sets for number in sharers.split(" "))

    def _ends(self, sets: Iterable[str]) -> _Ends:
        return {key: shared_range(self._connection, *key) for key in self._keys(sets)}

    def _widen(self, before: _Ends) -> None:
        """Add messages to what is stale whose owner may be another now, for what tells owners has changed."""
        changed = {
            sharers
            for (number, sharers), was in before.items()
            if shared_range(self._connection, number, sharers) != was
        }
        for number in self._owning_anew():
            asked = "SELECT DISTINCT sharers FROM ties WHERE transcript_id = ?"
            changed |= {sharers for (sharers,) in self._connection.execute(asked, (number,))}
        self._connection.executemany(_MARK_WIDENED, self._keys(changed))

    def _owning_anew(self) -> Iterator[int]:
        """The transcripts whose own messages begin at another time now."""
        for number, time in self._earliest.items():
            known = self._connection.execute("SELECT began FROM owned WHERE transcript_id = ?", (number,)).fetchone()
            if known is None or (known[0] and time > known[0]):
                continue  # what came later, or goes on, begins nothing
            began = own_start(self._connection, number)
            if began != known[0]:
                self._connection.execute("UPDATE owned SET began = ? WHERE transcript_id = ?", (began, number))
                yield number

    def _insert(self, some: Iterable[_ChargeRow]) -> None:
        waiting: list[_ChargeRow] = []
        for row in some:
            waiting.append(row)
            if len(waiting) >= _BATCH_ROWS:
                self._flush(waiting)
        self._flush(waiting)

    def _flush(self, waiting: list[_ChargeRow]) -> None:
        self._connection.executemany(_INSERT_CHARGE, waiting)
        self._made += len(waiting)
        waiting.clear()

    def _rows(self, number: int, charges: Iterable[Charge]) -> Iterator[_ChargeRow]:
        for at, charge in enumerate(charges):
            counted, amount = charge.counted, charge.amount
            yield (
                number,
                at,
                charge.owner.origin_number,
                self._rates.of(counted.model, charge.rate),
                encode_time(charge.owner.time),
                charge.part or None,
                counted.input,
                counted.output,
                counted.cache_write_5m,
                counted.cache_write_1h,
                counted.cache_read,
                charge.web_searches,
                format_decimal(amount) if amount is not None else None,
                charge.is_lower_bound,
                charge.is_copied,
                self._shares.of(charge.calls),
            )


_DAY_MS = 24 * 60 * 60 * 1000
_DATE_LENGTH = 10
_MILLION_DIGITS = 6


class _StoredRate:
    """The id of a rate, and its prices as integers.

    A sum of integers is as exact as one of `Decimal`, and takes a third of the time.
    """

    def __init__(self, number: int, rate: Rate | None) -> None:
        self.number = number
        self._prices: tuple[int, ...] | None = None
        if rate is not None:
            per_million = (rate.input, rate.output, rate.cache_write_5m, rate.cache_write_1h, rate.cache_read)
            prices = (*(EXACT.scaleb(price, -_MILLION_DIGITS) for price in per_million), rate.web_search)
            self._digits = max(_MILLION_DIGITS, *(-int(price.as_tuple().exponent) for price in prices))
            self._prices = tuple(int(EXACT.scaleb(price, self._digits)) for price in prices)

    def amount(self, counts: tuple[int, ...]) -> str | None:
        """The price of tokens and web searches in USD, as text without zeros at the end; None without a price."""
        if self._prices is None:
            return None
        text = str(sum(map(mul, counts, self._prices))).zfill(self._digits + 1)
        fraction = text[-self._digits :].rstrip("0")
        return f"{text[: -self._digits]}.{fraction}" if fraction else text[: -self._digits]


class PlainCharges:
    """Makes rows of `charged` for messages with one sighting and usual prices, which most are.

    `rates` are the price list, `rate_ids` and `share_ids` its numbers in the index; `models` are by their numbers.
    """

    def __init__(
        self, rates: Rates, rate_ids: RateIds, share_ids: ShareIds, models: Mapping[int | None, str | None]
    ) -> None:
        self._rates = rates
        self._rate_ids = rate_ids
        self._share_ids = share_ids
        self._models = models
        self._thresholds: dict[tuple[int | None, int], int] = {}  # by model and day: the tokens of a long prompt
        self._stored_rates: dict[tuple[int | None, int, bool], _StoredRate] = {}

    def row(self, message: int, sighting: StoredSighting) -> tuple[object, ...] | None:
        """The charge of a message; None if something about it has a price of its own."""
        _offset, origin, model, time, encoded = sighting
        usage = decode_sighting(encoded)
        if isinstance(time, str) or usage.speed or usage.geo or usage.tier or usage.passes is not None:
            return None
        day = time // _DAY_MS
        threshold = self._thresholds.get((model, day))
        if threshold is None:
            threshold = self._thresholds[model, day] = self._find_tiers(model, time)[0]
        sent, five, hour, read = usage.input, usage.cache_write_5m, usage.cache_write_1h, usage.cache_read
        is_long = sent + five + hour + read > threshold
        rate = self._stored_rates.get((model, day, is_long))
        if rate is None:
            rate = self._stored_rates[model, day, is_long] = self._store_rate(model, time, is_long=is_long)
        counts = (sent, usage.output, five, hour, read, usage.web_searches)
        share = self._share_ids.of(tuple(usage.calls[1::2]))
        return (message, 0, origin, rate.number, time, None, *counts, rate.amount(counts), usage.partial, 0, share)

    def _find_tiers(self, model: int | None, time: int) -> tuple[int, Rate | None, Rate | None]:
        return self._rates.tiers(self._models[model], decode_time(time)[:_DATE_LENGTH])

    def _store_rate(self, model: int | None, time: int, *, is_long: bool) -> _StoredRate:
        _, short, long = self._find_tiers(model, time)
        rate = long if is_long else short
        return _StoredRate(self._rate_ids.of(self._models[model], rate), rate)


_SELECT_RANGE = "SELECT MIN(offset), MAX(offset) FROM ties WHERE transcript_id = ? AND sharers = ? AND is_end = 1"
_SELECT_OWN = """
SELECT s.time, o.began, t.mtime_ns FROM sightings s JOIN origins o USING(origin_id)
JOIN transcripts t ON t.transcript_id = s.transcript_id
WHERE s.transcript_id = ?1
AND NOT EXISTS(SELECT 1 FROM sightings x WHERE x.message_id = s.message_id AND x.transcript_id <> ?1)
"""
TieRow = tuple[int, str, bool, int]
OffsetRange = tuple[int, int]


class StoredCopyEvidence(CopyEvidence):
    """What `ties` and `owned` tell; `numbers` are those of transcripts by their paths.

    One that writes keeps down what it had to look up, so that a later refresh can tell whether that has changed.
    """

    def __init__(self, connection: sqlite3.Connection, numbers: Mapping[str, int], *, writes: bool = False) -> None:
        self._connection = connection
        self._numbers = numbers
        self._writes = writes
        self._ends: dict[tuple[frozenset[str], str], OffsetRange] = {}
        self._own: dict[str, str] = {}

    def offset_range(self, shared: frozenset[str], transcript: str) -> OffsetRange:
        """The first and last offset of what exactly these transcripts share, in one of them."""
        key = shared, transcript
        if key not in self._ends:
            self._ends[key] = shared_range(
                self._connection, self._numbers[transcript], sharers_key(shared, self._numbers)
            )
        return self._ends[key]

    def own_start(self, transcript: str) -> str:
        """When what only this transcript tells began; empty where there is nothing."""
        if transcript not in self._own:
            self._own[transcript] = self._owned(self._numbers[transcript])
        return self._own[transcript]

    def _owned(self, number: int) -> str:
        known = self._connection.execute("SELECT began FROM owned WHERE transcript_id = ?", (number,)).fetchone()
        if known is not None:
            return str(known[0])
        began = own_start(self._connection, number)
        if self._writes:
            self._connection.execute("INSERT INTO owned VALUES(?, ?)", (number, began))
        return began


def own_start(connection: sqlite3.Connection, number: int) -> str:
    """When what only a transcript tells began; empty where there is nothing."""
    told = connection.execute(_SELECT_OWN, (number,))
    return min(
        (decode_time(time) or began or timestamp_from_mtime(mtime_ns) for time, began, mtime_ns in told), default=""
    )


def shared_range(connection: sqlite3.Connection, number: int, shared: str) -> OffsetRange:
    """The first and last offset in a transcript of what some transcripts share."""
    first, last = connection.execute(_SELECT_RANGE, (number, shared)).fetchone()
    return (first, last) if first is not None else (0, 0)


def sharers_key(shared: Iterable[str], numbers: Mapping[str, int]) -> str:
    """Transcripts by their numbers."""
    return " ".join(map(str, sorted(numbers[path] for path in shared)))


def tie_rows(parts: Iterable[list[Sighting]], numbers: Mapping[str, int]) -> Iterator[TieRow]:
    """The rows of `ties` for the calls of a message: whatever `CopyEvidence.original` is going to ask for."""
    for part in parts:
        found = earliest(part)
        yield from _tie_rows_of(found, numbers, is_end=True)
        among = earliest(most_complete(part))
        if transcripts_of(among) != transcripts_of(found):
            yield from _tie_rows_of(among, numbers, is_end=False)


def _tie_rows_of(found: list[Sighting], numbers: Mapping[str, int], *, is_end: bool) -> Iterator[TieRow]:
    shared = transcripts_of(found)
    if len(shared) > 1:
        names = sharers_key(shared, numbers)
        for sighting in found:
            yield numbers[sighting.origin.transcript], names, is_end, sighting.offsets[0]


_SUMS_SQL = """
SELECT CASE typeof(time) WHEN 'integer' THEN time / {quarter} ELSE time END, origin_id, rate_id,
    {sign} SUM(part IS NULL), {sign} SUM(input), {sign} SUM(output), {sign} SUM(cache_write_5m),
    {sign} SUM(cache_write_1h), {sign} SUM(cache_read), {sign} SUM(web_searches), {sign} SUM(lower_bound),
    {sign} SUM(part IS NOT NULL)
FROM {of} CROSS JOIN charged USING(message_id) GROUP BY 1, 2, 3
"""
_ADD_SQL = f"""
INSERT INTO spent {{sums}}
ON CONFLICT DO UPDATE SET {", ".join(f"{name} = {name} + excluded.{name}" for name in COUNTS)}
"""


def subtract_charges(connection: sqlite3.Connection, of: str) -> None:
    """Take out the charges of messages that a query (`of`) names, and subtract them."""
    if connection.execute("SELECT 1 FROM charged LIMIT 1").fetchone() is None:
        return
    connection.execute(_ADD_SQL.format(sums=_SUMS_SQL.format(quarter=QUARTER_MS, sign="-", of=of)))
    connection.execute(f"DELETE FROM charged WHERE message_id IN {of}")  # noqa: S608 - our own names


def add_charges(connection: sqlite3.Connection) -> None:
    """Add the charges of stale messages; what comes to nothing goes."""
    connection.execute(_ADD_SQL.format(sums=_SUMS_SQL.format(quarter=QUARTER_MS, sign="", of="stale")))
    connection.execute("DELETE FROM spent WHERE charges = 0 AND parts = 0")


def rebuild_charges(
    connection: sqlite3.Connection,
    messages: str,
    parameters: Iterable[object],
    *,
    homes: Homes,
    rates: Rates,
    types: Mapping[int, str | None],
) -> Iterator[Charge]:
    """Yield the charges of the messages that a query selects. `types` are those of agents whose rows do not say it."""
    seen = StoredSightings(connection, homes, types)
    spread = StoredCopyEvidence(connection, seen.numbers)
    for _number, key, group in seen.groups(messages, parameters):
        if len(group) == 1:
            yield from charge_single(group[0], rates)
        else:
            yield from charge_groups(group_by_call(key, group), spread, rates)


_LAST_MESSAGES = """(SELECT DISTINCT message_id FROM (
    SELECT message_id FROM sightings WHERE transcript_id = ? ORDER BY offset DESC LIMIT 20))"""


def recent_usage(
    connection: sqlite3.Connection, homes: Homes, named: SessionRef, ledger: Ledger, *, since: datetime
) -> RecentUsage:
    """Return the same as `reports.read_recent_usage`. It is always complete: everything has been read."""
    last = _last_request(connection, homes, named) if named.main is not None else None
    return RecentUsage(named, since, ledger, last)


def _last_request(connection: sqlite3.Connection, homes: Homes, named: SessionRef) -> Sighting | None:
    """The last request of the session's main agent; None where a compaction came after it."""
    path = str(named.main)
    number = connection.execute("SELECT transcript_id FROM transcripts WHERE path = ?", (encode_path(path),)).fetchone()
    if number is None or named.main is None or is_compacted_at_end(named.main):
        return None
    groups = StoredSightings(connection, homes).groups(_LAST_MESSAGES, number)
    found = [one for _number, _key, some in groups for one in some if one.origin.transcript == path]
    return max(filter(is_main_request, found), key=lambda one: one.offsets[0], default=None)
