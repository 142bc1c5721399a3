"""The charges of a ledger from the index: the same totals and charges as without one, queried instead of read.

Totals come from stored sums. Charges with all their lines are rebuilt only when asked for. Usage windows come from the
first and last charge of each quarter hour, unless a window starts or ends within it.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, overload

from threadline.account import (
    COUNTS,
    SHIPPED,
    Calendar,
    ChargeFilter,
    ChargeList,
    append_window,
    rows_from_counts,
    shipped_digest,
    split_into_windows,
)
from threadline.index.store import (
    ORIGIN_TYPE_SQL,
    QUARTER_MS,
    decode_path,
    encode_path,
    encode_time,
    read_transaction,
    storable_text,
)
from threadline.index.totals import CHARGE_SUMS, TOTAL_KEYS, ChargeTotals, load_rates, sql_conditions, time_range_ms
from threadline.model.ledger import Charge, GroupKey, Key, MissingAgent, RatedGroup, Row, Sum, UsageWindow
from threadline.model.names import AGENT_TOOLS
from threadline.model.places import Place
from threadline.model.times import is_within, parse_timestamp

if TYPE_CHECKING:
    from threadline.account import AgentTypeReader, Rates
    from threadline.model.homes import Homes

_CHARGED_MESSAGES = """(SELECT DISTINCT message_id FROM charged c JOIN origins o USING(origin_id)
LEFT JOIN transcripts t USING(transcript_id) {0})"""


_HELD_MESSAGES = """(SELECT DISTINCT s.message_id FROM origins o
CROSS JOIN sightings s ON s.transcript_id = o.transcript_id AND s.origin_id = o.origin_id
WHERE o.session = ? OR o.transcript_id IN (SELECT transcript_id FROM transcripts WHERE path IN ({0})))"""
_SELECT_TYPES = f"""SELECT o.origin_id, {ORIGIN_TYPE_SQL} FROM origins o
WHERE o.agent IS NOT NULL AND o.agent_type IS NULL"""  # noqa: S608 - our own words
# The same rule as `account.missing_agents`. Starts with no transcript come first (CROSS JOIN keeps the order): joined
# from the calls, every call would read all starts of its transcript.
_SELECT_MISSING_AGENTS = f"""SELECT s.agent, s.call, t.session, COALESCE(p.path, p.folder), e.timestamp, s.tokens,
    t.path, e.line
FROM start_rows s CROSS JOIN transcripts t USING(transcript_id) CROSS JOIN projects p USING(project_id)
CROSS JOIN call_rows c ON substr(c.call, -3) = substr(s.call, -3) AND c.call = s.call
CROSS JOIN entries e ON e.entry_id = c.entry_id AND e.transcript_id = s.transcript_id
CROSS JOIN tools k ON k.tool_id = c.tool_id
WHERE s.step = 'result' AND k.tool IN ({", ".join(map(repr, sorted(AGENT_TOOLS)))}) AND s.agent NOT IN (
    SELECT agent FROM agent_rows UNION SELECT agent FROM transcripts WHERE agent IS NOT NULL)"""  # noqa: S608 - our own words
_DAY_MS = 24 * 60 * 60 * 1000
_NO_FILTER = ChargeFilter()


class IndexedCharges:
    """The charges in an index, as the source of a `Ledger`.

    Sums come from those that the index stores, and charges are rebuilt only when asked for. With other `rates` than
    those of the index, everything is charged again from the stored usage.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        homes: Homes,
        rates: Rates | None = None,
        selection: ChargeFilter = _NO_FILTER,
        agent_types: dict[int, str | None] | None = None,
    ) -> None:
        self._connection = connection
        self._homes = homes
        self._rates = rates
        self._selection = selection
        self._agent_types: dict[int, str | None] = {} if agent_types is None else agent_types
        self.charges: Sequence[Charge] = _LazyCharges(self._count, self._build)
        prices = connection.execute("SELECT value FROM meta WHERE name = 'prices'").fetchone()
        self._has_prices = prices == (rates.digest if rates is not None else shipped_digest(),)

    @property
    def rates(self) -> Rates:
        """The prices that were applied. Those shipped with threadline are loaded only if needed: sums are not."""
        if self._rates is None:
            from threadline.account import shipped_rates  # noqa: PLC0415 - takes a while, and sums do without

            self._rates = shipped_rates()
        return self._rates

    @property
    def price_files(self) -> tuple[tuple[str, str], ...]:
        """The name and SHA-256 of each price file."""
        return self._rates.digests if self._rates is not None else ((SHIPPED, shipped_digest()),)

    def select(self, selection: ChargeFilter) -> IndexedCharges:
        """Return the matching charges. They share the agent types that were filled in."""
        combined = self._selection.combine(selection)
        return IndexedCharges(self._connection, self._homes, self._rates, combined, self._agent_types)

    def sums(self, names: GroupKey, zone: tzinfo, extra: Mapping[str, Key]) -> list[Row]:
        """Return the sums by keys."""
        if extra or not self._has_prices or not TOTAL_KEYS.issuperset(names):
            return self._list().sums(names, zone, extra)
        with read_transaction(self._connection):
            totals = ChargeTotals(self._connection, self._homes, self._selection, self._agent_types).by(names, zone)
        return rows_from_counts(totals, names)

    def holding(self, session: str | None, transcripts: Collection[str]) -> Sequence[Charge]:
        """Return the charges that a session or one of the transcripts contains."""
        paths = [encode_path(transcript) for transcript in transcripts]
        messages = _HELD_MESSAGES.format(", ".join("?" * len(paths)))
        charges = self._rebuild(messages, (storable_text(session), *paths))
        return ChargeList(charges, self.rates).holding(session, transcripts)

    def messages(self, start: str) -> list[str]:
        """Return the ids of messages that start with a text, sorted."""
        if self._selection != _NO_FILTER:
            return self._list().messages(start)
        select = "SELECT message FROM message_ids WHERE message >= ? AND message < ? ORDER BY message"
        first = storable_text(start)
        return [message for (message,) in self._connection.execute(select, (first, f"{first}{chr(sys.maxunicode)}"))]

    def of_messages(self, ids: Collection[str]) -> Sequence[Charge]:
        """Return the charges of messages."""
        messages = "(SELECT message_id FROM message_ids WHERE message IN (SELECT value FROM json_each(?)))"
        return list(self._rebuild(messages, (json.dumps(list(ids)),)))

    def of_sessions(self, ids: Collection[str | None]) -> Sequence[Charge]:
        """Return the charges of sessions."""
        where = "WHERE o.session IS NULL OR o.session IN (SELECT value FROM json_each(?))"
        charges = self._rebuild(_CHARGED_MESSAGES.format(where), (json.dumps(list(ids)),))
        return [charge for charge in charges if charge.session in ids]

    def of_day(self, day: str, zone: tzinfo) -> Sequence[Charge]:
        """Return the charges of a day in a time zone."""
        calendar = Calendar(zone)
        midnight = encode_time(f"{day}T00:00:00.000Z")
        if isinstance(midnight, str):
            return self._list().of_day(day, zone)
        # No zone is more than a day away from UTC.
        where = f"WHERE c.time BETWEEN {midnight - _DAY_MS} AND {midnight + 2 * _DAY_MS} OR c.time >= ''"
        charges = self._rebuild(_CHARGED_MESSAGES.format(where))
        return [charge for charge in charges if calendar.day(charge.owner.time) == day]

    def sessions(self) -> frozenset[str]:
        """Return the ids of the sessions that spent anything."""
        if self._selection != _NO_FILTER:
            return self._list().sessions()
        select = "SELECT DISTINCT session FROM origins WHERE origin_id IN (SELECT origin_id FROM spent)"
        return frozenset(session for (session,) in self._connection.execute(select) if session is not None)

    def missing_agents(self) -> tuple[MissingAgent, ...]:
        """Return the subagents whose transcripts are gone."""
        rows = self._connection.execute(_SELECT_MISSING_AGENTS).fetchall()
        if not rows:
            return ()
        from threadline.account import merge_missing_agents  # noqa: PLC0415 - few indexes have any

        missing = merge_missing_agents(
            MissingAgent(
                agent,
                call,
                session,
                decode_path(project),
                parse_timestamp(timestamp),
                tokens,
                Place(decode_path(path), line),
            )
            for agent, call, session, project, timestamp, tokens, path, line in rows
        )
        return tuple(filter(self._selection.matches, missing))

    def count_timeless(self) -> int:
        """Return how many charges have no time."""
        if self._selection != _NO_FILTER:
            return self._list().count_timeless()
        rows = self._connection.execute("SELECT quarter, charges + parts FROM spent WHERE quarter >= ''")
        return sum(count for time, count in rows if parse_timestamp(time) is None)

    def windows(self, now: datetime, hours: float) -> list[UsageWindow]:
        """Return the usage windows and the gaps between them."""
        if not self._has_prices or self._selection.has_names:
            return self._list().windows(now, hours)
        with read_transaction(self._connection):
            return WindowTotals(self._connection, self._selection).windows(now, timedelta(hours=hours))

    def fill_agent_types(self, read: AgentTypeReader | None) -> None:
        """Set the type of agents whose rows do not say it. The index knows it, so nothing has to be read."""
        del read
        if not self._agent_types:
            self._agent_types.update(self._connection.execute(_SELECT_TYPES).fetchall())

    def _list(self) -> ChargeList:
        """The charges in memory, for questions that the stored sums cannot answer."""
        return ChargeList(self.charges, self.rates, self.missing_agents())

    def _count(self) -> int:
        with read_transaction(self._connection):
            totals = ChargeTotals(self._connection, self._homes, self._selection, self._agent_types).by((), UTC)
        return sum(counts[0] + counts[-1] for counts in totals.values())

    def _build(self) -> Iterator[Charge]:
        conditions = sql_conditions(self._connection, self._selection)
        if self._selection.has_time_range:
            first, last = time_range_ms(self._selection)
            conditions.append(f"(c.time BETWEEN {first} AND {last} OR c.time >= '')")
        where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
        return self._rebuild(_CHARGED_MESSAGES.format(where))

    def _rebuild(self, messages: str, values: Iterable[object] = ()) -> Iterator[Charge]:
        """The selected charges of the messages that a subquery gives, with all lines they were counted from."""
        from threadline.index.charges import rebuild_charges  # noqa: PLC0415 - takes a while, and sums do without

        self.fill_agent_types(None)
        with read_transaction(self._connection):
            charges = rebuild_charges(
                self._connection, messages, values, homes=self._homes, rates=self.rates, types=self._agent_types
            )
            for charge in charges:
                if self._selection == _NO_FILTER or self._selection.matches(charge):
                    yield charge


class _LazyCharges(Sequence[Charge]):
    """Charges that are built on first access; their number is known without."""

    def __init__(self, count: Callable[[], int], build: Callable[[], Iterator[Charge]]) -> None:
        self._count = count
        self._build = build
        self._charges: tuple[Charge, ...] | None = None

    def __len__(self) -> int:
        return self._count() if self._charges is None else len(self._charges)

    @overload
    def __getitem__(self, at: int) -> Charge: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Charge]: ...
    def __getitem__(self, at: int | slice) -> Charge | Sequence[Charge]:
        return self._all()[at]

    def __iter__(self) -> Iterator[Charge]:
        return iter(self._all())

    def _all(self) -> tuple[Charge, ...]:
        if self._charges is None:
            self._charges = tuple(self._build())
        return self._charges


# An id that several calls have in common does not say which of them a transcript contains.
_SELECT_SHARED = """SELECT h.path, w.path, SUM(tokens) FROM (
    SELECT DISTINCT c.message_id, c.number, s.transcript_id AS holder, o.transcript_id AS owner,
        c.input + c.output + c.cache_write_5m + c.cache_write_1h + c.cache_read AS tokens
    FROM charged c INDEXED BY copied_charges
    JOIN origins o USING(origin_id) JOIN sightings s ON s.message_id = c.message_id
    WHERE c.copied AND s.transcript_id <> o.transcript_id
    AND 1 = (SELECT COUNT(*) FROM charged d WHERE d.message_id = c.message_id AND d.part IS NULL))
JOIN transcripts h ON h.transcript_id = holder JOIN transcripts w ON w.transcript_id = owner GROUP BY holder, owner"""


def shared_tokens(connection: sqlite3.Connection) -> list[tuple[str, str, int]]:
    """The paths of two transcripts, and the tokens of messages that both contain and the second one owns."""
    rows = connection.execute(_SELECT_SHARED)
    return [(decode_path(holder), decode_path(owner), tokens) for holder, owner, tokens in rows]


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SELECT_ENDS = f"SELECT time / {QUARTER_MS}, rate_id, MIN(time), MAX(time) FROM charged WHERE {{0}} GROUP BY 1, 2"  # noqa: S608 - numbers
_SELECT_TIMES = "SELECT time, rate_id FROM charged WHERE {0} ORDER BY time, message_id, number"
_SELECT_SUMS = (
    f"SELECT quarter, rate_id, {', '.join(f'SUM({name})' for name in COUNTS)} FROM spent WHERE {{0}} GROUP BY 1, 2"  # noqa: S608 - our own names
)
_SELECT_SUMS_AT = f"SELECT rate_id, {CHARGE_SUMS} FROM charged WHERE time = ? GROUP BY 1"  # noqa: S608 - the same
_TimeAndRate = tuple[int | str, int]
_TimedCharge = tuple[datetime, _TimeAndRate]
_Quarter = int | str
_HOUR = timedelta(hours=1)  # a shorter window may begin within a quarter


class WindowTotals:
    """Usage windows of the selected charges.

    The first and last time of each quarter hour are enough to find the windows, if each quarter is within one window.
    A quarter that is not is *split*: its charges are read one by one.
    """

    def __init__(self, connection: sqlite3.Connection, selection: ChargeFilter) -> None:
        self._connection = connection
        self._selection = selection
        self._rates = load_rates(connection)
        self._sums: list[dict[RatedGroup, list[int]]] = []

    def windows(self, now: datetime, length: timedelta) -> list[UsageWindow]:
        """Return all windows, and the gaps between them."""
        split: set[_Quarter] = (
            set(map(_quarter_of, time_range_ms(self._selection))) if self._selection.has_time_range else set()
        )
        ends = self._quarter_ends(split, is_short=length < _HOUR)
        parts = list(split_into_windows(self._timed(ends, split), length))
        window_of = self._windows_of_quarters(parts, split)
        if split:
            parts = list(split_into_windows(self._timed(ends, split), length))
        self._add_up(parts, window_of, split)
        windows: list[UsageWindow] = []
        for charges, sums in zip(parts, self._sums, strict=True):
            models = (self._rates[rate][0] for _, (_, rate) in charges)
            span = (charges[0][0], charges[-1][0])
            append_window(windows, span, Sum.of(rows_from_counts(sums, ())), models, now, length)
        return windows

    def _quarter_ends(self, split: set[_Quarter], *, is_short: bool) -> list[tuple[int, int, int, int]]:
        """The first and last time of each rate in each quarter. If two rates begin at the same time, it is split."""
        first, last = time_range_ms(self._selection)
        ends = self._connection.execute(_SELECT_ENDS.format(f"time BETWEEN {first} AND {last}")).fetchall()
        starts: set[tuple[int, int]] = set()
        for quarter, _rate, start, _end in ends:
            if is_short or (quarter, start) in starts:
                split.add(quarter)
            starts.add((quarter, start))
        return ends

    def _timed(self, ends: list[tuple[int, int, int, int]], split: set[_Quarter]) -> Iterator[_TimedCharge]:
        """Times in order: all of a split quarter, of others the first and last of each rate."""
        first, last = time_range_ms(self._selection)
        usual = [(time, rate) for quarter, rate, *both in ends if quarter not in split for time in both]
        for quarter in {quarter for quarter, *_ in ends if quarter in split}:
            low, high = max(first, quarter * QUARTER_MS), min(last, quarter * QUARTER_MS + QUARTER_MS - 1)
            usual += self._connection.execute(_SELECT_TIMES.format(f"time BETWEEN {low} AND {high}"))
        usual.sort(key=lambda row: (row[0], self._rates[row[1]][0] or ""))
        timed = [(_EPOCH + timedelta(milliseconds=row[0]), row) for row in usual]
        unusual = [
            (parse_timestamp(row[0]), row) for row in self._connection.execute(_SELECT_TIMES.format("time >= ''"))
        ]
        if unusual:
            timed += [(moment, row) for moment, row in unusual if moment is not None and self._is_selected(moment)]
            timed.sort(key=lambda pair: (pair[0], self._rates[pair[1][1]][0] or ""))
        return iter(timed)

    def _is_selected(self, moment: datetime) -> bool:
        return is_within(moment, self._selection.since, self._selection.until)

    def _windows_of_quarters(self, parts: list[list[_TimedCharge]], split: set[_Quarter]) -> dict[_Quarter, int]:
        """The window of each quarter. Those that are in several are added to `split`."""
        window_of: dict[_Quarter, int] = {}
        for number, charges in enumerate(parts):
            for _moment, (time, _rate) in charges:
                quarter = _quarter_of(time)
                if window_of.setdefault(quarter, number) != number:
                    split.add(quarter)
        return window_of

    def _add_up(self, parts: list[list[_TimedCharge]], window_of: dict[_Quarter, int], split: set[_Quarter]) -> None:
        """Add the stored sums of whole quarters, and the charges of split ones time by time."""
        self._sums = [{} for _ in parts]
        first, last = map(_quarter_of, time_range_ms(self._selection))
        for quarter, rate, *counts in self._connection.execute(
            _SELECT_SUMS.format(f"quarter BETWEEN {first} AND {last} OR quarter >= ''")
        ):
            if quarter in window_of and quarter not in split:
                self._add(window_of[quarter], rate, counts)
        for number, charges in enumerate(parts if split else ()):
            for time in {time for _moment, (time, _rate) in charges if _quarter_of(time) in split}:
                for rate, *counts in self._connection.execute(_SELECT_SUMS_AT, (time,)):
                    self._add(number, rate, counts)

    def _add(self, number: int, rate: int, counts: list[int]) -> None:
        sums = self._sums[number]
        key: RatedGroup = (), self._rates[rate][1]
        before = sums.get(key)
        sums[key] = counts if before is None else [a + b for a, b in zip(before, counts, strict=True)]


def _quarter_of(time: int | str) -> int | str:
    return time // QUARTER_MS if isinstance(time, int) else time
