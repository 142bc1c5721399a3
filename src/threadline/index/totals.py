"""Sum charges by any combination of keys, from stored sums per quarter hour.

Days start on a quarter hour in nearly every time zone. Single charges are read only where a requested time range
starts or ends within a quarter, and on days when the clocks change.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import Decimal
from itertools import pairwise
from typing import Any

from threadline.account import COUNTS, TIME_KEYS, Calendar, ChargeFilter
from threadline.index.store import QUARTER_MS, decode_path, decode_time, encode_path, epoch_milliseconds
from threadline.model.homes import Homes
from threadline.model.ledger import MAIN, NO_CALL, NONE, STANDARD_TIER, GroupKey, Rate, RatedGroup
from threadline.model.times import is_within, parse_timestamp, utc_offset

_MAX_VALUES = 500
"""How many values a statement gets at most. SQLite has a limit, which differs."""


def sql_conditions(connection: sqlite3.Connection, selection: ChargeFilter) -> list[str]:
    """The conditions of a filter, except for time, on an origin `o`, its transcript `t`, and a `rate_id`."""
    conditions: list[str] = []
    if selection.projects:
        names = connection.execute("SELECT project_id, COALESCE(path, folder) FROM projects")
        ids = [
            number
            for number, name in names
            if all(project in decode_path(name).casefold() for project in selection.projects)
        ]
        conditions.append(f"t.project_id IN ({', '.join(map(str, ids))})")
    if selection.models:
        names = connection.execute("SELECT rate_id, model FROM rates")
        ids = [number for number, name in names if all(model in (name or "").casefold() for model in selection.models)]
        conditions.append(f"rate_id IN ({', '.join(map(str, ids))})")
    if selection.sessions or selection.exact_sessions:
        sessions = connection.execute("SELECT DISTINCT session FROM origins").fetchall()
        matches = [quote_sql(session) for (session,) in sessions if selection.matches_session(session)]
        conditions.append(f"o.session IN ({', '.join(matches)})")
    if selection.transcripts is not None:
        numbers = map(str, _transcript_ids(connection, selection.transcripts))
        conditions.append(f"o.transcript_id IN ({', '.join(numbers)})")
    return conditions


def _transcript_ids(connection: sqlite3.Connection, paths: Collection[str]) -> Iterator[int]:
    """The ids of transcripts, by their paths."""
    stored = [encode_path(path) for path in paths]
    for start in range(0, len(stored), _MAX_VALUES):
        some = stored[start : start + _MAX_VALUES]
        marks = ", ".join("?" * len(some))
        rows = connection.execute(f"SELECT transcript_id FROM transcripts WHERE path IN ({marks})", some)  # noqa: S608 - marks
        yield from (number for (number,) in rows)


def quote_sql(text: str) -> str:
    """A text as an SQL literal; NULL, which matches nothing, if SQLite cannot store it."""
    try:
        return f"CAST(x'{text.encode().hex()}' AS TEXT)"
    except UnicodeEncodeError:
        return "NULL"


_AGENT_KIND_SQL = "CASE WHEN o.agent IS NULL THEN 0 WHEN o.agent = '' THEN 1 ELSE 2 END"
_MIXED_SHARE_SQL = "CASE WHEN c.share_id IN ({0})"
KEY_COLUMNS = {
    "session": ("o.session",),
    "transcript": ("o.transcript_id",),
    "project": ("t.project_id",),
    "model": (),
    "agent": ("o.agent",),
    "agent-type": (_AGENT_KIND_SQL, "o.agent_type", "o.origin_id"),
    "skill": ("o.skill",),
    "branch": ("o.git_branch",),
    "version": ("o.version",),
    "home": ("t.home_id",),
    "machine": ("t.home_id",),
    "part": (_AGENT_KIND_SQL, "o.is_side"),
    "service-tier": ("c.tier",),
    "tool": ("c.share_id", f"{_MIXED_SHARE_SQL} THEN c.message_id END", f"{_MIXED_SHARE_SQL} THEN c.number END"),
}
"""The columns that each key needs: of an origin `o`, its transcript `t`, or a charge `c`."""
_DEFAULT_LABELS = {"agent": MAIN, "service-tier": STANDARD_TIER}
_LabelRow = tuple[Any, ...]


class GroupLabels:
    """Turns the columns of a row into the values of its keys."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        homes: Homes,
        names: GroupKey,
        rates: Mapping[int, ModelRate],
        types: Mapping[int, str | None],
    ) -> None:
        self._names = names
        self._rates = rates
        self._types = types
        self._paths: dict[str, dict[int | None, str]] = {}
        if "project" in names:
            self._paths["project"] = _load_paths(connection, "SELECT project_id, COALESCE(path, folder) FROM projects")
        if "transcript" in names:
            self._paths["transcript"] = _load_paths(connection, "SELECT transcript_id, path FROM transcripts")
        # The index has only the paths of homes.
        for name, label in (("home", homes.name_of), ("machine", homes.machine_of)):
            if name in names:
                paths = _load_paths(connection, "SELECT home_id, path FROM homes")
                self._paths[name] = {number: label(path) for number, path in paths.items()}
        self.shares = _load_shares(connection) if "tool" in names else {}
        self._tool = names.index("tool") if self.shares else 0
        self.needs_charges = bool(self.shares) or "service-tier" in names  # the stored sums do not contain these
        mixed = ", ".join(str(number) for number, tools in self.shares.items() if len(tools) > 1)
        self.columns: list[str] = []
        self._readers: list[tuple[str, int]] = []
        for name in names:
            columns = KEY_COLUMNS.get(name, ())
            if name == "agent-type" and not types:
                columns = columns[:2]
            self._readers.append((name, len(self.columns)))
            self.columns += (column.format(mixed) for column in columns)

    def group(self, time: Mapping[str, str], row: _LabelRow, rate: int) -> GroupKey:
        """The values of all keys."""
        return tuple([self._value(name, at, time, row, rate) for name, at in self._readers])

    def _value(self, name: str, at: int, time: Mapping[str, str], row: _LabelRow, rate: int) -> str:
        if name in TIME_KEYS:
            return time[name]
        if name in self._paths:
            return self._paths[name].get(row[at], NONE)
        if name in {"model", "tool"}:
            return (self._rates[rate][0] or NONE) if name == "model" else ""
        if name == "part":
            return "side agents" if row[at + 1] else "agents" if row[at] > 1 else MAIN
        if name == "agent-type":
            return self._agent_type(row[at : at + 3])
        return row[at] or _DEFAULT_LABELS.get(name, NONE)

    def shared(self, row: _LabelRow, counts: _LabelRow) -> Iterator[tuple[str, Sequence[int]]]:
        """The share of each tool in the counts, as `account.totals` shares charges.

        Charges that several tools share come one by one, since the remainders go to the first tools.
        """
        tools = self.shares[row[self._readers[self._tool][1]]]
        if len(tools) == 1:
            yield tools[0], counts
            return
        for number, tool in enumerate(tools):
            yield tool, [count // len(tools) + (number < count % len(tools)) for count in counts]

    def with_tool(self, group: GroupKey, tool: str) -> GroupKey:
        """The values of all keys, including the tool's."""
        return *group[: self._tool], tool, *group[self._tool + 1 :]

    def _agent_type(self, columns: Sequence[Any]) -> str:
        agent_kind, agent_type = columns[0], columns[1]
        if agent_kind and agent_type is None and self._types:
            agent_type = self._types.get(columns[2])
        return agent_type or (NONE if agent_kind > 1 else MAIN)


def _load_shares(connection: sqlite3.Connection) -> dict[int | None, tuple[str, ...]]:
    """The tools that share a charge, by the number of the share. If they are all the same, that one."""
    shares: dict[int | None, tuple[str, ...]] = {None: (NO_CALL,)}
    for number, encoded in connection.execute("SELECT share_id, tools FROM shares"):
        tools = tuple(json.loads(encoded))
        shares[number] = tools[:1] if len(set(tools)) == 1 else tools
    return shares


def _load_paths(connection: sqlite3.Connection, select: str) -> dict[int | None, str]:
    return {number: decode_path(path) or NONE for number, path in connection.execute(select)}


_HOUR_QUARTERS, _DAY_QUARTERS = 4, 96  # quarters
_FAR_FUTURE = 2**60
_MAX_ODD_DAYS = 40
_FIRST_DAY = date(1970, 1, 1).toordinal()
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_A_QUARTER = timedelta(minutes=15)
_STORED_SUMS = ", ".join(f"SUM({name})" for name in COUNTS)
CHARGE_SUMS = ", ".join(f"SUM({({'charges': 'part IS NULL', 'parts': 'part IS NOT NULL'}).get(n, n)})" for n in COUNTS)
TOTAL_KEYS = frozenset({*KEY_COLUMNS, *TIME_KEYS})
"""The keys that the stored sums can be grouped by."""
_SumRow = tuple[Any, ...]


class ChargeTotals:
    """Sums of the selected charges.

    `types` are the types of agents whose rows do not say it, by the number of their origin.
    """

    def __init__(
        self, connection: sqlite3.Connection, homes: Homes, selection: ChargeFilter, types: Mapping[int, str | None]
    ) -> None:
        self._connection = connection
        self._homes = homes
        self._selection = selection
        self._types = types
        self._conditions = sql_conditions(connection, selection)
        self._rates = load_rates(connection)
        self._sums: dict[RatedGroup, list[int]] = {}

    def by(self, names: GroupKey, zone: tzinfo) -> dict[RatedGroup, list[int]]:
        """The counts of each group and rate."""
        self._sums = {}
        labels = GroupLabels(self._connection, self._homes, names, self._rates, self._types)
        timed = any(name in TIME_KEYS for name in names)
        if not timed and not self._selection.has_time_range:
            self._add(labels, self._ask("charged c" if labels.needs_charges else "spent s", "NULL", labels, []))
            return self._sums
        self._add_usual(labels, zone, unit=_HOUR_QUARTERS if "hour" in names else _DAY_QUARTERS, timed=timed)
        self._add_odd(labels, Calendar(zone))
        return self._sums

    def _add_usual(self, labels: GroupLabels, zone: tzinfo, *, unit: int, timed: bool) -> None:
        """Add what was spent at times in the usual form."""
        days = _ZoneDays(self._connection, zone) if timed and zone is not UTC else None
        span, ends = _quarter_range(self._selection)
        if labels.needs_charges:
            span, ends = None, ["c.time BETWEEN {} AND {}".format(*time_range_ms(self._selection))]
        if days is not None and len(days.odd) > _MAX_ODD_DAYS:
            first, last = time_range_ms(self._selection)
            self._add_charges(labels, Calendar(zone), [f"c.time BETWEEN {first} AND {last}"])
            return
        shift = days.shift if days is not None else "0"
        excluded = [
            f"{{0}} NOT BETWEEN {day * _DAY_QUARTERS} AND {day * _DAY_QUARTERS + _DAY_QUARTERS - 1}"
            for day in (days.odd if days else ())
        ]
        for source, quarter, limits in (
            *([("spent s", "s.quarter", span)] if span is not None else ()),
            *(("charged c", f"c.time / {QUARTER_MS}", end) for end in ends),
        ):
            # A day is added before the division and subtracted after it, because SQLite rounds negative numbers up.
            slot = (
                f"({quarter} + {shift.format(quarter)} + {_DAY_QUARTERS}) / {unit} - {_DAY_QUARTERS // unit}"
                if timed
                else "NULL"
            )
            limited = [limits, *(condition.format(quarter) for condition in excluded)]
            self._add(labels, self._ask(source, slot, labels, limited), lambda slot: _slot_names(slot, unit))
        for day in days.odd if days is not None else ():
            self._add_odd_day(labels, Calendar(zone), day, span, ends)

    def _add_odd_day(
        self, labels: GroupLabels, calendar: Calendar, day: int, span: str | None, ends: list[str]
    ) -> None:
        """Add a day on which the clocks change, quarter by quarter."""
        quarters = range(day * _DAY_QUARTERS, day * _DAY_QUARTERS + _DAY_QUARTERS)
        names = {quarter: _quarter_names(calendar, quarter) for quarter in quarters}
        split = [quarter for quarter, name in names.items() if name is None]
        low, high = quarters.start * QUARTER_MS, quarters.stop * QUARTER_MS - 1
        if span is not None:
            limits = [span, f"s.quarter BETWEEN {quarters.start} AND {quarters.stop - 1}"]
            limits += [f"s.quarter NOT IN ({', '.join(map(str, split))})"] if split else []
            self._add(labels, self._ask("spent s", "s.quarter", labels, limits), lambda quarter: names[quarter] or {})
        for end in ends:
            self._add_charges(labels, calendar, [end, f"c.time BETWEEN {low} AND {high}"])
        first, last = time_range_ms(self._selection)
        for quarter in split:
            begins, over = -(-first // QUARTER_MS), (last + 1) // QUARTER_MS
            if begins <= quarter < over and not labels.needs_charges:  # otherwise it is among the ends
                self._add_charges(
                    labels, calendar, [f"c.time / {QUARTER_MS} = {quarter}", f"c.time BETWEEN {low} AND {high}"]
                )

    def _add_charges(self, labels: GroupLabels, calendar: Calendar, limits: list[str]) -> None:
        """Add charge by charge."""
        rows = self._ask("charged c", "c.time", labels, limits)
        self._add(labels, rows, lambda time: _time_names(calendar, decode_time(time)))

    def _add_odd(self, labels: GroupLabels, calendar: Calendar) -> None:
        """Add what was spent at times in other forms."""
        selection = self._selection
        source, time = ("charged c", "c.time") if labels.needs_charges else ("spent s", "s.quarter")
        rows = self._ask(source, time, labels, [f"{time} >= ''"])
        if selection.has_time_range:
            rows = (row for row in rows if is_within(parse_timestamp(row[0]), selection.since, selection.until))
        self._add(labels, rows, lambda time: _time_names(calendar, time))

    def _ask(self, source: str, slot: str, labels: GroupLabels, limits: list[str]) -> Iterator[_SumRow]:
        where = " AND ".join(filter(None, (*self._conditions, *limits)))
        joined = "o." in where or "t." in where or labels.columns
        joins = " LEFT JOIN origins o USING(origin_id) LEFT JOIN transcripts t USING(transcript_id)" if joined else ""
        columns = ", ".join((slot, *labels.columns, "rate_id"))
        counts = _STORED_SUMS if source == "spent s" else CHARGE_SUMS
        numbers = ", ".join(str(at + 1) for at in range(len(labels.columns) + 2))
        return self._connection.execute(
            f"SELECT {columns}, {counts} FROM {source}{joins}"  # noqa: S608 - our own names, and numbers
            f"{' WHERE ' if where else ''}{where} GROUP BY {numbers}"
        )

    def _add(
        self,
        labels: GroupLabels,
        rows: Iterator[_SumRow],
        label_time: Callable[[Any], Mapping[str, str]] = lambda _slot: {},
    ) -> None:
        at = len(labels.columns) + 2
        times: dict[Any, Mapping[str, str]] = {}
        for row in rows:
            slot = row[0]
            time = times.get(slot)
            if time is None:
                time = times[slot] = label_time(slot)
            group, rate = labels.group(time, row[1 : at - 1], row[at - 1]), self._rates[row[at - 1]][1]
            if labels.shares:
                for tool, counts in labels.shared(row[1 : at - 1], row[at:]):
                    self._add_to((labels.with_tool(group, tool), rate), counts)
            else:
                self._add_to((group, rate), row[at:])

    def _add_to(self, key: RatedGroup, counts: Sequence[int]) -> None:
        sums = self._sums.get(key)
        if sums is None:
            self._sums[key] = list(counts)
        else:
            for at, count in enumerate(counts):
                sums[at] += count


class _ZoneDays:
    """By how many quarters a time zone shifts each UTC day on which something was spent.

    `odd` are the days whose shift changes, or is not a whole number of quarters.
    """

    def __init__(self, connection: sqlite3.Connection, zone: tzinfo) -> None:
        self.odd: list[int] = []
        shifts: list[tuple[int, int]] = []
        select = f"SELECT DISTINCT quarter / {_DAY_QUARTERS} FROM spent WHERE quarter < {_FAR_FUTURE} ORDER BY 1"  # noqa: S608 - numbers
        for (day,) in connection.execute(select):
            shift = _zone_shift(day, zone)
            if shift is None:
                self.odd.append(day)
            elif not shifts or shifts[-1][1] != shift:
                shifts.append((day, shift))
        last = shifts[-1][1] if shifts else 0
        whens = "".join(
            f" WHEN {{0}} < {after * _DAY_QUARTERS} THEN {shift}" for (_, shift), (after, _) in pairwise(shifts)
        )
        self.shift = f"CASE{whens} ELSE {last} END" if whens else str(last)


def _zone_shift(day: int, zone: tzinfo) -> int | None:
    begins = _EPOCH + timedelta(days=day)
    offsets = {utc_offset(zone, begins + timedelta(hours=hours)) for hours in (0, 6, 12, 18, 24)}
    if len(offsets) > 1 or (offset := offsets.pop()) is None or offset % _A_QUARTER:
        return None
    return offset // _A_QUARTER


def _quarter_range(selection: ChargeFilter) -> tuple[str | None, list[str]]:
    """The conditions for the whole quarters of a time range, and for the rest at its ends."""
    first, last = time_range_ms(selection)
    whole, over = -(-first // QUARTER_MS), (last + 1) // QUARTER_MS  # the first, and the one after the last
    if whole >= over:
        return None, [f"c.time BETWEEN {first} AND {last}"]
    ends = [(first, whole * QUARTER_MS - 1), (over * QUARTER_MS, last)]
    return (
        f"s.quarter >= {whole} AND s.quarter < {over}",
        [f"c.time BETWEEN {low} AND {high}" for low, high in ends if low <= high],
    )


def time_range_ms(selection: ChargeFilter) -> tuple[int, int]:
    """The first and last millisecond of a time range."""
    first = epoch_milliseconds(selection.since, up=True) if selection.since is not None else 0
    return max(0, first), epoch_milliseconds(
        selection.until
    ) if selection.until is not None else _FAR_FUTURE * QUARTER_MS - 1


def _quarter_names(calendar: Calendar, quarter: int) -> dict[str, str] | None:
    """The day, week, month and hour of a quarter; None if it is split between two."""
    first, last = (_time_names(calendar, decode_time(quarter * QUARTER_MS + at)) for at in (0, QUARTER_MS - 1))
    return first if first == last else None


def _slot_names(slot: int | None, unit: int) -> dict[str, str]:
    """The day, week, month and hour of a slot."""
    if slot is None:
        return {}
    hours, hour = (slot // 24, f"{slot % 24:02}:00") if unit == _HOUR_QUARTERS else (slot, "")
    day = date.fromordinal(_FIRST_DAY + hours)
    text = day.isoformat()
    week = (day - timedelta(days=day.weekday())).isoformat()
    return {"day": text, "week": week, "month": text[:7], "hour": hour}


def _time_names(calendar: Calendar, time: str) -> dict[str, str]:
    return {
        "day": calendar.day(time),
        "week": calendar.week(time),
        "month": calendar.month(time),
        "hour": calendar.hour(time),
    }


ModelRate = tuple[str | None, Rate | None]
_RATE_COLUMNS = (
    "rate_id, model, priced_as, input, output, cache_write_5m, cache_write_1h, cache_read, web_search, begins, ends,"
    " long_context, multipliers, source"
)


def load_rates(connection: sqlite3.Connection) -> dict[int, ModelRate]:
    """All rates with their models, by number."""
    select = f"SELECT {_RATE_COLUMNS} FROM rates"  # noqa: S608 - our own names
    return {number: (model, _decode_rate(*columns)) for number, model, *columns in connection.execute(select)}


class RateIds:
    """The number of each rate. New rates are inserted."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._numbers = {rate: number for number, rate in load_rates(connection).items()}

    def of(self, model: str | None, rate: Rate | None) -> int:
        """The number of a model with its rate."""
        number = self._numbers.get((model, rate))
        if number is None:
            number = self._numbers[model, rate] = self._insert(model, rate)
        return number

    def _insert(self, model: str | None, rate: Rate | None) -> int:
        cursor = self._connection.execute(
            f"INSERT INTO rates({_RATE_COLUMNS}) VALUES(NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (model, *(_rate_values(rate) if rate is not None else (None,) * 12)),
        )
        return cursor.lastrowid or 0


class ShareIds:
    """The number of each combination of tools that share a charge. New ones are inserted."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._numbers: dict[tuple[str, ...], int] = {
            tuple(json.loads(tools)): number
            for number, tools in connection.execute("SELECT share_id, tools FROM shares")
        }

    def of(self, tools: tuple[str, ...]) -> int | None:
        """The number of a combination; None without tools."""
        if not tools:
            return None
        number = self._numbers.get(tools)
        if number is None:
            cursor = self._connection.execute("INSERT INTO shares VALUES(NULL, ?)", (json.dumps(tools),))
            number = self._numbers[tools] = cursor.lastrowid or 0
        return number


def _rate_values(rate: Rate) -> tuple[object, ...]:
    prices = (rate.input, rate.output, rate.cache_write_5m, rate.cache_write_1h, rate.cache_read, rate.web_search)
    by = json.dumps([(name, str(number)) for name, number in rate.multipliers])
    return rate.model, *map(str, prices), rate.begins, rate.ends, rate.long_context, by, rate.source


def _decode_rate(  # noqa: PLR0917 - the columns of a row
    model: str | None,
    sent: str,
    output: str,
    five: str,
    hour: str,
    read: str,
    search: str,
    begins: str | None,
    ends: str | None,
    long_context: int | None,
    multipliers: str,
    source: str,
) -> Rate | None:
    if model is None:
        return None
    return Rate(
        model,
        Decimal(sent),
        Decimal(output),
        Decimal(five),
        Decimal(hour),
        Decimal(read),
        begins=begins,
        ends=ends,
        long_context=long_context,
        multipliers=tuple((name, Decimal(by)) for name, by in json.loads(multipliers)),
        source=source,
        web_search=Decimal(search),
    )
