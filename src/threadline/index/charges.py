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
from threadline.index.store import QUARTER_MS, decode_time, encode_path, encode_time, storable_text
from threadline.index.totals import RateIds, ShareIds
from threadline.model.homes import NO_HOMES, Homes
from threadline.model.ledger import EXACT, Charge, Rate
from threadline.model.text import format_decimal
from threadline.model.times import timestamp_from_mtime
from threadline.model.usage import Sighting
from threadline.parse import is_compacted_at_end
from threadline.reports import RecentUsage, SessionRef, is_main_request

_INSERT_CHARGE = f"INSERT INTO charged VALUES({', '.join('?' * 17)})"
_INSERT_TIE = "INSERT OR IGNORE INTO ties(transcript_id, sharers, is_end, offset, message_id) VALUES(?, ?, ?, ?, ?)"
_SELECT_STALE_SHARERS = "SELECT DISTINCT sharers FROM stale CROSS JOIN ties USING(message_id)"
_DELETE_STALE_TIES = "DELETE FROM ties WHERE message_id IN (SELECT message_id FROM stale)"
_MARK_WIDENED = "INSERT OR IGNORE INTO stale SELECT message_id, 1 FROM ties WHERE transcript_id = ? AND sharers = ?"
_BATCH_ROWS = 2_000
_RangesByKey = dict[tuple[int, str], tuple[int, int]]
_Calls = list[list[Sighting]]
_ChargeRow = tuple[object, ...]


def charge_stale(connection: sqlite3.Connection, homes: Homes = NO_HOMES) -> int:
    """Charge the stale messages again, and return how many charges they have. New prices make all messages stale."""
    rates = shipped_rates()
    connection.execute("BEGIN IMMEDIATE")
    _update_prices(connection, rates)
    _update_home_ranks(connection, homes)
    count = 0
    if connection.execute("SELECT 1 FROM stale LIMIT 1").fetchone() is not None:
        count = _ChargeRun(connection, homes, rates).run()
        _delete_unused(connection)
    connection.execute("COMMIT")
    return count


def _update_prices(connection: sqlite3.Connection, rates: Rates) -> None:
    row = connection.execute("SELECT value FROM meta WHERE name = 'prices'").fetchone()
    if row is None or row[0] != rates.digest:
        connection.execute("INSERT OR IGNORE INTO stale(message_id) SELECT DISTINCT message_id FROM sightings")
        for name in ("charged", "spent", "rates"):
            connection.execute(f"DELETE FROM {name}")  # noqa: S608 - our own names
        connection.execute("INSERT OR REPLACE INTO meta VALUES('prices', ?)", (rates.digest,))


def _update_home_ranks(connection: sqlite3.Connection, homes: Homes) -> None:
    """Store the order of the homes. Of equal copies, the one in the home that was named first is the original."""
    if homes and home_ranks(connection, homes) != homes.ranks():
        paths = json.dumps([os.fspath(home.path) for home in homes])
        connection.execute("INSERT OR IGNORE INTO stale(message_id) SELECT DISTINCT message_id FROM ties")
        connection.execute("INSERT OR REPLACE INTO meta VALUES('ranks', ?)", (paths,))


def _delete_unused(connection: sqlite3.Connection) -> None:
    """Delete messages and origins that nothing refers to any more, and the marks of stale messages."""
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
    """Charges all stale messages once."""

    def __init__(self, connection: sqlite3.Connection, homes: Homes, rates: Rates) -> None:
        self._connection = connection
        self._rates = rates
        self._sightings = StoredSightings(connection, homes)
        self._rate_ids = RateIds(connection)
        self._share_ids = ShareIds(connection)
        self._earliest: dict[int, str] = {}
        self._count = 0

    def run(self) -> int:
        """Charge them, and return the number of charges."""
        subtract_charges(self._connection, STALE_MESSAGES)
        sharer_sets = {sharers for (sharers,) in self._connection.execute(_SELECT_STALE_SHARERS)}
        ranges = self._shared_ranges(sharer_sets)
        shared: dict[int, _Calls] = {}
        self._insert(self._charge_unshared(shared))
        self._connection.execute(_DELETE_STALE_TIES)
        ties: list[tuple[int, TieRow]] = [
            (number, tie) for number, calls in shared.items() for tie in tie_rows(calls, self._sightings.numbers)
        ]
        self._connection.executemany(_INSERT_TIE, [(*tie, number) for number, tie in ties])
        ranges |= {key: (0, 0) for key in self._tie_keys({tie[1] for _, tie in ties}) if key not in ranges}
        self._widen(ranges)
        evidence = StoredCopyEvidence(self._connection, self._sightings.numbers, writes=True)
        subtract_charges(self._connection, WIDENED_MESSAGES)
        widened = {
            number: group_by_call(key, sightings) for number, key, sightings in self._sightings.groups(WIDENED_MESSAGES)
        }
        self._insert(
            row
            for messages in (shared, widened)
            for number, calls in messages.items()
            for row in self._charge_rows(number, list(charge_groups(calls, evidence, self._rates)))
        )
        add_charges(self._connection)
        return self._count

    def _charge_unshared(self, shared: dict[int, _Calls]) -> Iterator[_ChargeRow]:
        """Charge the messages with one sighting. The calls of the others are added to `shared`."""
        owners = {number for (number,) in self._connection.execute("SELECT transcript_id FROM owned")}
        plain = PlainCharges(self._rates, self._rate_ids, self._share_ids, self._sightings.models)
        for number, key, rows in self._sightings.rows(STALE_MESSAGES):
            if owners:
                self._note_times(rows, owners)
            charge_row = plain.row(number, rows[0]) if len(rows) == 1 else None
            if charge_row is not None:
                yield charge_row
                continue
            sightings = self._sightings.sightings(key, rows)
            if len(sightings) == 1:
                yield from self._charge_rows(number, charge_single(sightings[0], self._rates))
            else:
                shared[number] = group_by_call(key, sightings)

    def _note_times(self, rows: list[StoredSighting], owners: set[int]) -> None:
        """Note the earliest time of a stale message in each transcript whose own start was consulted before."""
        for _offset, origin_id, _model, stored_time, _encoded in rows:
            origin = self._sightings.origin(origin_id)
            number = self._sightings.numbers[origin.transcript]
            if number in owners:
                time = decode_time(stored_time) or origin.began
                self._earliest[number] = min(time, self._earliest.get(number, time))

    def _tie_keys(self, sharer_sets: Iterable[str]) -> Iterator[tuple[int, str]]:
        return ((int(number), sharers) for sharers in sharer_sets for number in sharers.split(" "))

    def _shared_ranges(self, sharer_sets: Iterable[str]) -> _RangesByKey:
        return {key: shared_range(self._connection, *key) for key in self._tie_keys(sharer_sets)}

    def _widen(self, ranges: _RangesByKey) -> None:
        """Mark more messages as stale: those whose owner may differ now, because the evidence has changed."""
        changed = {
            sharers
            for (number, sharers), before in ranges.items()
            if shared_range(self._connection, number, sharers) != before
        }
        for number in self._update_own_starts():
            query = "SELECT DISTINCT sharers FROM ties WHERE transcript_id = ?"
            changed |= {sharers for (sharers,) in self._connection.execute(query, (number,))}
        self._connection.executemany(_MARK_WIDENED, self._tie_keys(changed))

    def _update_own_starts(self) -> Iterator[int]:
        """Update the times at which the own messages of transcripts begin. Yield the transcripts that changed."""
        for number, time in self._earliest.items():
            row = self._connection.execute("SELECT began FROM owned WHERE transcript_id = ?", (number,)).fetchone()
            if row is None or (row[0] and time > row[0]):
                continue  # a later message does not change the start
            began = own_start(self._connection, number)
            if began != row[0]:
                self._connection.execute("UPDATE owned SET began = ? WHERE transcript_id = ?", (began, number))
                yield number

    def _insert(self, rows: Iterable[_ChargeRow]) -> None:
        batch: list[_ChargeRow] = []
        for row in rows:
            batch.append(row)
            if len(batch) >= _BATCH_ROWS:
                self._flush(batch)
        self._flush(batch)

    def _flush(self, batch: list[_ChargeRow]) -> None:
        self._connection.executemany(_INSERT_CHARGE, batch)
        self._count += len(batch)
        batch.clear()

    def _charge_rows(self, number: int, charges: Iterable[Charge]) -> Iterator[_ChargeRow]:
        for position, charge in enumerate(charges):
            counted, amount = charge.counted, charge.amount
            yield (
                number,
                position,
                charge.owner.origin_number,
                self._rate_ids.of(counted.model, charge.rate),
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
                self._share_ids.of(charge.calls),
                storable_text(counted.tier),
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
        amount = rate.amount(counts)
        return (message, 0, origin, rate.number, time, None, *counts, amount, usage.partial, 0, share, None)

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
    """The evidence in `ties` and `owned`. `numbers` are the numbers of transcripts by path.

    With `writes`, it stores what it had to look up, so that a later refresh can tell whether that has changed.
    """

    def __init__(self, connection: sqlite3.Connection, numbers: Mapping[str, int], *, writes: bool = False) -> None:
        self._connection = connection
        self._numbers = numbers
        self._writes = writes
        self._ranges: dict[tuple[frozenset[str], str], OffsetRange] = {}
        self._own_starts: dict[str, str] = {}

    def offset_range(self, shared: frozenset[str], transcript: str) -> OffsetRange:
        """The first and last offset, in one transcript, of the messages that exactly these transcripts share."""
        key = shared, transcript
        if key not in self._ranges:
            self._ranges[key] = shared_range(
                self._connection, self._numbers[transcript], sharers_key(shared, self._numbers)
            )
        return self._ranges[key]

    def own_start(self, transcript: str) -> str:
        """The time of the first message that only this transcript contains; empty if there is none."""
        if transcript not in self._own_starts:
            self._own_starts[transcript] = self._find_own_start(self._numbers[transcript])
        return self._own_starts[transcript]

    def _find_own_start(self, number: int) -> str:
        row = self._connection.execute("SELECT began FROM owned WHERE transcript_id = ?", (number,)).fetchone()
        if row is not None:
            return str(row[0])
        began = own_start(self._connection, number)
        if self._writes:
            self._connection.execute("INSERT INTO owned VALUES(?, ?)", (number, began))
        return began


def own_start(connection: sqlite3.Connection, number: int) -> str:
    """The time of the first message that only a transcript contains; empty if there is none."""
    rows = connection.execute(_SELECT_OWN, (number,))
    return min(
        (decode_time(time) or began or timestamp_from_mtime(mtime_ns) for time, began, mtime_ns in rows), default=""
    )


def shared_range(connection: sqlite3.Connection, number: int, shared: str) -> OffsetRange:
    """The first and last offset, in a transcript, of the messages that some transcripts share; zeros without any."""
    first, last = connection.execute(_SELECT_RANGE, (number, shared)).fetchone()
    return (first, last) if first is not None else (0, 0)


def sharers_key(shared: Iterable[str], numbers: Mapping[str, int]) -> str:
    """The numbers of transcripts, as `ties.sharers` stores them."""
    return " ".join(map(str, sorted(numbers[path] for path in shared)))


def tie_rows(calls: Iterable[list[Sighting]], numbers: Mapping[str, int]) -> Iterator[TieRow]:
    """The rows of `ties` for the calls of a message: everything that `CopyEvidence.original` can ask for."""
    for sightings in calls:
        first = earliest(sightings)
        yield from _tie_rows_of(first, numbers, is_end=True)
        first_complete = earliest(most_complete(sightings))
        if transcripts_of(first_complete) != transcripts_of(first):
            yield from _tie_rows_of(first_complete, numbers, is_end=False)


def _tie_rows_of(sightings: list[Sighting], numbers: Mapping[str, int], *, is_end: bool) -> Iterator[TieRow]:
    transcripts = transcripts_of(sightings)
    if len(transcripts) > 1:
        sharers = sharers_key(transcripts, numbers)
        for sighting in sightings:
            yield numbers[sighting.origin.transcript], sharers, is_end, sighting.offsets[0]


_SUMS_SQL = """
SELECT CASE typeof(time) WHEN 'integer' THEN time / {quarter} ELSE time END, origin_id, rate_id,
    {sign} SUM(part IS NULL), {sign} SUM(input), {sign} SUM(output), {sign} SUM(cache_write_5m),
    {sign} SUM(cache_write_1h), {sign} SUM(cache_read), {sign} SUM(web_searches), {sign} SUM(lower_bound),
    {sign} SUM(part IS NOT NULL)
FROM {messages} CROSS JOIN charged USING(message_id) GROUP BY 1, 2, 3
"""
_ADD_SQL = f"""
INSERT INTO spent {{sums}}
ON CONFLICT DO UPDATE SET {", ".join(f"{name} = {name} + excluded.{name}" for name in COUNTS)}
"""


def subtract_charges(connection: sqlite3.Connection, messages: str) -> None:
    """Delete the charges of the messages that a query selects, and subtract them from `spent`."""
    if connection.execute("SELECT 1 FROM charged LIMIT 1").fetchone() is None:
        return
    connection.execute(_ADD_SQL.format(sums=_SUMS_SQL.format(quarter=QUARTER_MS, sign="-", messages=messages)))
    connection.execute(f"DELETE FROM charged WHERE message_id IN {messages}")  # noqa: S608 - our own names


def add_charges(connection: sqlite3.Connection) -> None:
    """Add the charges of stale messages to `spent`, and delete its rows without charges."""
    connection.execute(_ADD_SQL.format(sums=_SUMS_SQL.format(quarter=QUARTER_MS, sign="", messages="stale")))
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
    stored = StoredSightings(connection, homes, types)
    evidence = StoredCopyEvidence(connection, stored.numbers)
    for _number, key, sightings in stored.groups(messages, parameters):
        if len(sightings) == 1:
            yield from charge_single(sightings[0], rates)
        else:
            yield from charge_groups(group_by_call(key, sightings), evidence, rates)


_LAST_MESSAGES = """(SELECT DISTINCT message_id FROM (
    SELECT message_id FROM sightings WHERE transcript_id = ? ORDER BY offset DESC LIMIT 20))"""


def recent_usage(
    connection: sqlite3.Connection, homes: Homes, session: SessionRef, ledger: Ledger, *, since: datetime
) -> RecentUsage:
    """Return the same as `reports.read_recent_usage`. It is always complete: everything has been read."""
    last = _last_request(connection, homes, session) if session.main is not None else None
    return RecentUsage(session, since, ledger, last, has_all=True)


def _last_request(connection: sqlite3.Connection, homes: Homes, session: SessionRef) -> Sighting | None:
    """The last request of the session's main agent; None if a compaction came after it."""
    path = str(session.main)
    number = connection.execute("SELECT transcript_id FROM transcripts WHERE path = ?", (encode_path(path),)).fetchone()
    if number is None or session.main is None or is_compacted_at_end(session.main):
        return None
    groups = StoredSightings(connection, homes).groups(_LAST_MESSAGES, number)
    requests = [
        sighting
        for _number, _key, sightings in groups
        for sighting in sightings
        if sighting.origin.transcript == path and is_main_request(sighting)
    ]
    return max(requests, key=lambda request: request.offsets[0], default=None)
