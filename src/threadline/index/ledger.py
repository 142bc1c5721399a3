"""The ledger backed by the index: the same totals and charges as without one, queried instead of read.

Totals come from stored sums. Charges with all their lines are rebuilt only when asked for, and usage windows from the
first and last charge of each quarter hour, unless a window starts or ends within it.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, overload

from threadline.account import (
    COUNTS,
    WINDOW_HOURS,
    Calendar,
    GroupKey,
    Key,
    Ledger,
    RatedGroup,
    append_window,
    has_sighting_in,
    is_within,
    parse_moment,
    rows_from_counts,
    shipped_digest,
    sort_rows,
    split_into_windows,
)
from threadline.index.store import (
    QUARTER_MS,
    decode_path,
    encode_path,
    encode_time,
    read_transaction,
    storable_text,
)
from threadline.index.totals import CHARGE_SUMS, TOTAL_KEYS, ChargeFilter, ChargeTotals, load_rates, time_range_ms
from threadline.model.charges import Charge
from threadline.model.places import Problem
from threadline.model.times import parse_timestamp
from threadline.model.totals import Rows, Sum, UsageWindow

if TYPE_CHECKING:
    from threadline.account import Rates

_CHARGED_MESSAGES = """(SELECT DISTINCT message_id FROM charged c JOIN origins o USING(origin_id)
LEFT JOIN transcripts t USING(transcript_id) {0})"""


_HELD_MESSAGES = """(SELECT DISTINCT s.message_id FROM origins o
CROSS JOIN sightings s ON s.transcript_id = o.transcript_id AND s.origin_id = o.origin_id
WHERE o.session = ? OR o.transcript_id IN (SELECT transcript_id FROM transcripts WHERE path IN ({0})))"""
_SELECT_UNTYPED = """SELECT DISTINCT o.transcript_id, t.path FROM spent s JOIN origins o USING(origin_id)
JOIN transcripts t USING(transcript_id) JOIN homes h USING(home_id) WHERE {0}"""
_DAY_MS = 24 * 60 * 60 * 1000
_NO_FILTER = ChargeFilter()


class IndexedLedger(Ledger):
    """A ledger whose charges lie in an index. Sums are made of those that it keeps; charges only when asked for.

    Other `rates` than those of the index make it charge everything anew, by what it knows of messages.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        rates: Rates | None = None,
        problems: Iterable[Problem] = (),
        *,
        chosen: ChargeFilter = _NO_FILTER,
    ) -> None:
        self.calls = True
        self.problems = tuple(problems)
        self._made = {}
        self._given = rates
        self._connection = connection
        self._chosen = chosen
        self._types: dict[int, str | None] = {}
        self._charges = _LazyCharges(self._count, self._make)
        prices = connection.execute("SELECT value FROM meta WHERE name = 'prices'").fetchone()
        self._has_prices = prices == (rates.digest if rates is not None else shipped_digest(),)

    @property
    def rates(self) -> Rates:
        """The prices that were applied; those that come with threadline are read when somebody wants to see them."""
        if self._given is None:
            from threadline.account import shipped_rates  # noqa: PLC0415 - sums can do without, and it takes a while

            self._given = shipped_rates()
        return self._given

    def where(
        self,
        wanted: Callable[[Charge], bool] | None = None,
        *,
        since: datetime | date | str | None = None,
        until: datetime | date | str | None = None,
        project: str | None = None,
        model: str | None = None,
        session: str | None = None,
    ) -> Ledger:
        """The ledger of some of the charges: see `Ledger.where`."""
        if wanted is not None:
            some = self.where(since=since, until=until, project=project, model=model, session=session)
            return Ledger(filter(wanted, some), self.rates, self.problems)
        if all(given is None for given in (since, until, project, model, session)):
            return self
        narrowed = self._chosen.narrow(parse_moment(since), parse_moment(until, end=True), project, model, session)
        return self._of(narrowed)

    def _of(self, chosen: ChargeFilter) -> IndexedLedger:
        made = IndexedLedger(self._connection, self.rates, self.problems, chosen=chosen)
        made._types = self._types
        return made

    def holding(self, session: str | None = None, transcripts: Collection[str] = ()) -> Sequence[Charge]:
        """The charges that a session or one of some transcripts holds, copies of what others spent included."""
        paths = [encode_path(transcript) for transcript in transcripts]
        asked = _HELD_MESSAGES.format(", ".join("?" * len(paths)))
        return [
            charge
            for charge in self._made_of(asked, (storable_text(session), *paths))
            if has_sighting_in(charge, session, transcripts)
        ]

    def messages(self, start: str) -> list[str]:
        """The ids of messages that start so, in the order of the alphabet."""
        if self._chosen != _NO_FILTER:
            return super().messages(start)
        asked = "SELECT message FROM message_ids WHERE message >= ? AND message < ? ORDER BY message"
        named = self._connection.execute(asked, (storable_text(start), f"{storable_text(start)}{chr(sys.maxunicode)}"))
        return [message for (message,) in named]

    def of_messages(self, ids: Collection[str]) -> Sequence[Charge]:
        """The charges of messages, by their ids."""
        asked = "(SELECT message_id FROM message_ids WHERE message IN (SELECT value FROM json_each(?)))"
        return list(self._made_of(asked, (json.dumps(list(ids)),)))

    def of_sessions(self, ids: Collection[str | None]) -> Sequence[Charge]:
        """The charges of sessions, by their whole ids."""
        where = "WHERE o.session IS NULL OR o.session IN (SELECT value FROM json_each(?))"
        return [
            charge
            for charge in self._made_of(_CHARGED_MESSAGES.format(where), (json.dumps(list(ids)),))
            if charge.session in ids
        ]

    def of_day(self, day: str, zone: tzinfo = UTC) -> Sequence[Charge]:
        """The charges of a day in a time zone."""
        calendar = Calendar(zone)
        begins = encode_time(f"{day}T00:00:00.000Z")
        if isinstance(begins, str):
            return super().of_day(day, zone)
        # No zone is further from UTC than a day.
        where = f"WHERE c.time BETWEEN {begins - _DAY_MS} AND {begins + 2 * _DAY_MS} OR c.time >= ''"
        return [
            charge
            for charge in self._made_of(_CHARGED_MESSAGES.format(where))
            if calendar.day(charge.owner.time) == day
        ]

    @property
    def sessions(self) -> frozenset[str]:
        """The ids of the sessions that spent anything."""
        if self._chosen != _NO_FILTER:
            return super().sessions
        asked = "SELECT DISTINCT session FROM origins WHERE origin_id IN (SELECT origin_id FROM spent)"
        return frozenset(one for (one,) in self._connection.execute(asked) if one is not None)

    @property
    def timeless(self) -> int:
        """How many charges say no time."""
        if self._chosen != _NO_FILTER:
            return super().timeless
        rows = self._connection.execute("SELECT quarter, charges + parts FROM spent WHERE quarter >= ''")
        return sum(many for time, many in rows if parse_timestamp(time) is None)

    def windows(self, *, now: datetime, hours: float = WINDOW_HOURS) -> list[UsageWindow]:
        """The windows of five hours that limits count by, and the gaps between them, in the order of time."""
        if not self._has_prices or self._chosen.is_named:
            return super().windows(now=now, hours=hours)

        with read_transaction(self._connection):
            return WindowTotals(self._connection, self._chosen).windows(now, timedelta(hours=hours))

    def fill_agent_types(self, read: Callable[[str], str | None]) -> None:
        """Set the type of agents whose rows do not say it. `read` returns the type for an agent's transcript."""
        where = " AND ".join(
            ("o.agent IS NOT NULL AND o.agent_type IS NULL", *self._chosen.conditions(self._connection))
        )
        for number, path in self._connection.execute(_SELECT_UNTYPED.format(where)).fetchall():
            if number not in self._types:
                self._types[number] = read(decode_path(path))
        self._made.clear()
        self._charges = _LazyCharges(self._count, self._make)

    def _rows(self, names: GroupKey, zone: tzinfo, extra: Mapping[str, Key]) -> Rows:
        if extra or not self._has_prices or not TOTAL_KEYS.issuperset(names):
            return super()._rows(names, zone, extra)
        with read_transaction(self._connection):
            sums = ChargeTotals(self._connection, self._chosen, self._types).by(names, zone)
        return Rows(names, tuple(sort_rows(rows_from_counts(sums, names), names)))

    def _count(self) -> int:
        with read_transaction(self._connection):
            sums = ChargeTotals(self._connection, self._chosen, self._types).by((), UTC)
        return sum(counts[0] + counts[-1] for counts in sums.values())

    def _make(self) -> Iterator[Charge]:
        conditions = self._chosen.conditions(self._connection)
        if self._chosen.has_time_range:
            first, last = time_range_ms(self._chosen)
            conditions.append(f"(c.time BETWEEN {first} AND {last} OR c.time >= '')")
        where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
        return self._made_of(_CHARGED_MESSAGES.format(where))

    def _made_of(self, messages: str, given: Iterable[object] = ()) -> Iterator[Charge]:
        """The chosen charges of messages that a query names, with every line that tells of them."""
        from threadline.index.charges import rebuild_charges  # noqa: PLC0415 - sums can do without, and it takes a while

        with read_transaction(self._connection):
            for charge in rebuild_charges(self._connection, self.rates, self._types, messages, given):
                if self._chosen == _NO_FILTER or self._chosen.has(charge):
                    yield charge


class _LazyCharges(Sequence[Charge]):
    """Charges that are made when somebody wants to see them, and counted without."""

    def __init__(self, count: Callable[[], int], make: Callable[[], Iterator[Charge]]) -> None:
        self._count = count
        self._make = make
        self._made: tuple[Charge, ...] | None = None

    def __len__(self) -> int:
        return self._count() if self._made is None else len(self._made)

    @overload
    def __getitem__(self, at: int) -> Charge: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Charge]: ...
    def __getitem__(self, at: int | slice) -> Charge | Sequence[Charge]:
        return self._all()[at]

    def __iter__(self) -> Iterator[Charge]:
        return iter(self._all())

    def _all(self) -> tuple[Charge, ...]:
        if self._made is None:
            self._made = tuple(self._make())
        return self._made


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
_HOUR = timedelta(hours=1)  # windows that are shorter than what they begin with may begin anywhere


class WindowTotals:
    """The windows of charges of a time.

    The first and last time of each quarter of an hour are enough to tell windows, where a quarter lies wholly in one.
    """

    def __init__(self, connection: sqlite3.Connection, chosen: ChargeFilter) -> None:
        self._connection = connection
        self._chosen = chosen
        self._rates = load_rates(connection)
        self._sums: list[dict[RatedGroup, list[int]]] = []

    def windows(self, now: datetime, length: timedelta) -> list[UsageWindow]:
        """All of them, and the gaps between."""
        torn: set[_Quarter] = (
            set(map(_quarter_of, time_range_ms(self._chosen))) if self._chosen.has_time_range else set()
        )
        ends = self._ends(torn, is_short=length < _HOUR)
        parts = list(split_into_windows(self._timed(ends, torn), length))
        window = self._windows(parts, torn)
        if torn:
            parts = list(split_into_windows(self._timed(ends, torn), length))
        self._add_up(parts, window, torn)
        found: list[UsageWindow] = []
        for some, sums in zip(parts, self._sums, strict=True):
            models = (self._rates[rate][0] for _, (_, rate) in some)
            append_window(found, (some[0][0], some[-1][0]), Sum.of(rows_from_counts(sums, ())), models, now, length)
        return found

    def _ends(self, torn: set[_Quarter], *, is_short: bool) -> list[tuple[int, int, int, int]]:
        """Each quarter's first and last time of each rate; where it does not say which came first, it is torn."""
        first, last = time_range_ms(self._chosen)
        ends = self._connection.execute(_SELECT_ENDS.format(f"time BETWEEN {first} AND {last}")).fetchall()
        begun: set[tuple[int, int]] = set()
        for quarter, _rate, begins, _ends in ends:
            if is_short or (quarter, begins) in begun:
                torn.add(quarter)
            begun.add((quarter, begins))
        return ends

    def _timed(self, ends: list[tuple[int, int, int, int]], torn: set[_Quarter]) -> Iterator[_TimedCharge]:
        """Times in order: of torn quarters all, of others the first and last of each rate."""
        chosen, (first, last) = self._chosen, time_range_ms(self._chosen)
        usual = [(time, rate) for quarter, rate, *both in ends if quarter not in torn for time in both]
        for quarter in {quarter for quarter, *_ in ends if quarter in torn}:
            low, high = max(first, quarter * QUARTER_MS), min(last, quarter * QUARTER_MS + QUARTER_MS - 1)
            usual += self._connection.execute(_SELECT_TIMES.format(f"time BETWEEN {low} AND {high}"))
        usual.sort(key=lambda told: (told[0], self._rates[told[1]][0] or ""))
        timed = [(_EPOCH + timedelta(milliseconds=told[0]), told) for told in usual]
        odd = [
            (parse_timestamp(told[0]), told) for told in self._connection.execute(_SELECT_TIMES.format("time >= ''"))
        ]
        if odd:
            timed += [(when, told) for when, told in odd if when is not None and _is_within(when, chosen)]
            timed.sort(key=lambda one: (one[0], self._rates[one[1][1]][0] or ""))
        return iter(timed)

    def _windows(self, parts: list[list[_TimedCharge]], torn: set[_Quarter]) -> dict[_Quarter, int]:
        """The window of each quarter; those that lie in several are torn."""
        window: dict[_Quarter, int] = {}
        for at, some in enumerate(parts):
            for _when, (time, _rate) in some:
                quarter = _quarter_of(time)
                if window.setdefault(quarter, at) != at:
                    torn.add(quarter)
        return window

    def _add_up(self, parts: list[list[_TimedCharge]], window: dict[_Quarter, int], torn: set[_Quarter]) -> None:
        """Quarters that lie in one window wholly, and all else time by time."""
        self._sums = [{} for _ in parts]
        first, last = map(_quarter_of, time_range_ms(self._chosen))
        for quarter, rate, *counts in self._connection.execute(
            _SELECT_SUMS.format(f"quarter BETWEEN {first} AND {last} OR quarter >= ''")
        ):
            if quarter in window and quarter not in torn:
                self._add(window[quarter], rate, counts)
        for at, some in enumerate(parts if torn else ()):
            for time in {time for _when, (time, _rate) in some if _quarter_of(time) in torn}:
                for rate, *counts in self._connection.execute(_SELECT_SUMS_AT, (time,)):
                    self._add(at, rate, counts)

    def _add(self, at: int, rate: int, counts: list[int]) -> None:
        sums = self._sums[at]
        key: RatedGroup = (), self._rates[rate][1]
        held = sums.get(key)
        sums[key] = counts if held is None else [mine + its for mine, its in zip(held, counts, strict=True)]


def _quarter_of(time: int | str) -> int | str:
    return time // QUARTER_MS if isinstance(time, int) else time


def _is_within(when: datetime, chosen: ChargeFilter) -> bool:
    return is_within(when, chosen.since, chosen.until)
