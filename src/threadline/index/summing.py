"""Summing: charges added up by keys, from the sums that are kept, and from charges only where those do not tell.

Sums are kept by quarter of an hour, and a day in nearly every zone begins with one. Charges themselves are asked where
a time that is wanted begins or ends within a quarter, and on days when the clock is changed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from itertools import pairwise
from typing import Any

from threadline.account.adding import COUNTS, Group, Priced
from threadline.account.calendar import Calendar, ahead
from threadline.account.keys import TIMES
from threadline.account.ledger import within
from threadline.index.chosen import Chosen
from threadline.index.labels import COLUMNS, Labels
from threadline.index.priced import priced
from threadline.index.stamp import QUARTER, milliseconds, written
from threadline.model.time import parse_timestamp

_HOUR, _DAY = 4, 96  # quarters
_EVER = 2**60
_MANY_ODD_DAYS = 40
_FIRST_DAY = date(1970, 1, 1).toordinal()
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_A_QUARTER = timedelta(minutes=15)
_KEPT = ", ".join(f"SUM({name})" for name in COUNTS)
OF_CHARGES = ", ".join(f"SUM({({'charges': 'part IS NULL', 'parts': 'part IS NOT NULL'}).get(n, n)})" for n in COUNTS)
KEYS = frozenset({*COLUMNS, *TIMES})
"""What the sums that are kept can be asked by."""
_Row = tuple[Any, ...]


class Summing:
    """Sums of chosen charges. `types` are those of agents whose rows do not say it, by the number of the transcript."""

    def __init__(self, connection: sqlite3.Connection, chosen: Chosen, types: Mapping[int, str | None]) -> None:
        self._connection = connection
        self._chosen = chosen
        self._types = types
        self._conditions = chosen.conditions(connection)
        self._rates = priced(connection)
        self._sums: dict[Priced, list[int]] = {}

    def by(self, names: Group, zone: tzinfo) -> dict[Priced, list[int]]:
        """The counts of each group and rate."""
        self._sums = {}
        labels = Labels(self._connection, names, self._rates, self._types)
        timed = any(name in TIMES for name in names)
        if not timed and not self._chosen.is_timed:
            self._add(labels, self._ask("charged c" if labels.shares else "spent s", "NULL", labels, []))
            return self._sums
        self._add_usual(labels, zone, unit=_HOUR if "hour" in names else _DAY, timed=timed)
        self._add_odd(labels, Calendar(zone))
        return self._sums

    def _add_usual(self, labels: Labels, zone: tzinfo, *, unit: int, timed: bool) -> None:
        """What was spent at times that are written as usual."""
        days = _Days(self._connection, zone) if timed and zone is not UTC else None
        span, ends = _span(self._chosen)
        if labels.shares:  # which tools share what is not among the sums that are kept
            span, ends = None, ["c.time BETWEEN {} AND {}".format(*instants(self._chosen))]
        if days is not None and len(days.odd) > _MANY_ODD_DAYS:
            first, last = instants(self._chosen)
            self._add_charges(labels, Calendar(zone), [f"c.time BETWEEN {first} AND {last}"])
            return
        shift = days.shift if days is not None else "0"
        apart = [f"{{0}} NOT BETWEEN {day * _DAY} AND {day * _DAY + _DAY - 1}" for day in (days.odd if days else ())]
        for source, quarter, limits in (
            *([("spent s", "s.quarter", span)] if span is not None else ()),
            *(("charged c", f"c.time / {QUARTER}", some) for some in ends),
        ):
            # A day is added first, and taken off again: the first hours of 1970 would else be rounded up.
            slot = f"({quarter} + {shift.format(quarter)} + {_DAY}) / {unit} - {_DAY // unit}" if timed else "NULL"
            limited = [limits, *(one.format(quarter) for one in apart)]
            self._add(labels, self._ask(source, slot, labels, limited), lambda slot: _named(slot, unit))
        for day in days.odd if days is not None else ():
            self._add_odd_day(labels, Calendar(zone), day, span, ends)

    def _add_odd_day(self, labels: Labels, calendar: Calendar, day: int, span: str | None, ends: list[str]) -> None:
        """A day on which the clock is changed, quarter by quarter."""
        quarters = range(day * _DAY, day * _DAY + _DAY)
        named = {quarter: _whole(calendar, quarter) for quarter in quarters}
        torn = [quarter for quarter, told in named.items() if told is None]
        low, high = quarters.start * QUARTER, quarters.stop * QUARTER - 1
        if span is not None:
            limits = [span, f"s.quarter BETWEEN {quarters.start} AND {quarters.stop - 1}"]
            limits += [f"s.quarter NOT IN ({', '.join(map(str, torn))})"] if torn else []
            self._add(labels, self._ask("spent s", "s.quarter", labels, limits), lambda quarter: named[quarter] or {})
        for some in ends:
            self._add_charges(labels, calendar, [some, f"c.time BETWEEN {low} AND {high}"])
        first, last = instants(self._chosen)
        for quarter in torn:
            begins, over = -(-first // QUARTER), (last + 1) // QUARTER
            if begins <= quarter < over and not labels.shares:  # else it is among the ends
                self._add_charges(
                    labels, calendar, [f"c.time / {QUARTER} = {quarter}", f"c.time BETWEEN {low} AND {high}"]
                )

    def _add_charges(self, labels: Labels, calendar: Calendar, limits: list[str]) -> None:
        """Charge by charge."""
        rows = self._ask("charged c", "c.time", labels, limits)
        self._add(labels, rows, lambda time: _read(calendar, written(time)))

    def _add_odd(self, labels: Labels, calendar: Calendar) -> None:
        """What was spent at times that are written in other ways."""
        chosen = self._chosen
        source, time = ("charged c", "c.time") if labels.shares else ("spent s", "s.quarter")
        rows = self._ask(source, time, labels, [f"{time} >= ''"])
        if chosen.is_timed:
            rows = (row for row in rows if within(parse_timestamp(row[0]), chosen.since, chosen.until))
        self._add(labels, rows, lambda time: _read(calendar, time))

    def _ask(self, source: str, slot: str, labels: Labels, limits: list[str]) -> Iterator[_Row]:
        where = " AND ".join(filter(None, (*self._conditions, *limits)))
        joined = "o." in where or "t." in where or labels.columns
        joins = " LEFT JOIN origins o USING(origin_id) LEFT JOIN transcripts t USING(transcript_id)" if joined else ""
        columns = ", ".join((slot, *labels.columns, "rate_id"))
        counts = _KEPT if source == "spent s" else OF_CHARGES
        numbers = ", ".join(str(at + 1) for at in range(len(labels.columns) + 2))
        return self._connection.execute(
            f"SELECT {columns}, {counts} FROM {source}{joins}"  # noqa: S608 - our own names, and numbers
            f"{' WHERE ' if where else ''}{where} GROUP BY {numbers}"
        )

    def _add(
        self, labels: Labels, rows: Iterator[_Row], named: Callable[[Any], Mapping[str, str]] = lambda _slot: {}
    ) -> None:
        at = len(labels.columns) + 2
        times: dict[Any, Mapping[str, str]] = {}
        for row in rows:
            slot = row[0]
            time = times.get(slot)
            if time is None:
                time = times[slot] = named(slot)
            group, rate = labels.group(time, row[1 : at - 1], row[at - 1]), self._rates[row[at - 1]][1]
            if labels.shares:
                for tool, counts in labels.shared(row[1 : at - 1], row[at:]):
                    self._add_to((labels.with_tool(group, tool), rate), counts)
            else:
                self._add_to((group, rate), row[at:])

    def _add_to(self, key: Priced, counts: Sequence[int]) -> None:
        held = self._sums.get(key)
        if held is None:
            self._sums[key] = list(counts)
        else:
            for what, count in enumerate(counts):
                held[what] += count


class _Days:
    """The days of UTC that something was spent on: by how many quarters each is shifted in a zone.

    `odd` are days whose shift changes, or is no whole number of quarters.
    """

    def __init__(self, connection: sqlite3.Connection, zone: tzinfo) -> None:
        self.odd: list[int] = []
        shifts: list[tuple[int, int]] = []
        asked = f"SELECT DISTINCT quarter / {_DAY} FROM spent WHERE quarter < {_EVER} ORDER BY 1"  # noqa: S608 - numbers
        for (day,) in connection.execute(asked):
            shift = _shift(day, zone)
            if shift is None:
                self.odd.append(day)
            elif not shifts or shifts[-1][1] != shift:
                shifts.append((day, shift))
        last = shifts[-1][1] if shifts else 0
        whens = "".join(f" WHEN {{0}} < {after * _DAY} THEN {shift}" for (_, shift), (after, _) in pairwise(shifts))
        self.shift = f"CASE{whens} ELSE {last} END" if whens else str(last)


def _shift(day: int, zone: tzinfo) -> int | None:
    begins = _EPOCH + timedelta(days=day)
    offsets = {ahead(zone, begins + timedelta(hours=hours)) for hours in (0, 6, 12, 18, 24)}
    if len(offsets) > 1 or (offset := offsets.pop()) is None or offset % _A_QUARTER:
        return None
    return offset // _A_QUARTER


def _span(chosen: Chosen) -> tuple[str | None, list[str]]:
    """The quarters that lie wholly in a time, and what of its ends does not fill one."""
    first, last = instants(chosen)
    whole, over = -(-first // QUARTER), (last + 1) // QUARTER  # the first, and the one after the last
    if whole >= over:
        return None, [f"c.time BETWEEN {first} AND {last}"]
    ends = [(first, whole * QUARTER - 1), (over * QUARTER, last)]
    return (
        f"s.quarter >= {whole} AND s.quarter < {over}",
        [f"c.time BETWEEN {low} AND {high}" for low, high in ends if low <= high],
    )


def instants(chosen: Chosen) -> tuple[int, int]:
    """The first and last millisecond of a time."""
    first = milliseconds(chosen.since, up=True) if chosen.since is not None else 0
    return max(0, first), milliseconds(chosen.until) if chosen.until is not None else _EVER * QUARTER - 1


def _whole(calendar: Calendar, quarter: int) -> dict[str, str] | None:
    """What a quarter is called, where all of it is called so."""
    first, last = (_read(calendar, written(quarter * QUARTER + at)) for at in (0, QUARTER - 1))
    return first if first == last else None


def _named(slot: int | None, unit: int) -> dict[str, str]:
    """The day and hour of a slot, as they are called."""
    if slot is None:
        return {}
    hours, hour = (slot // 24, f"{slot % 24:02}:00") if unit == _HOUR else (slot, "")
    day = date.fromordinal(_FIRST_DAY + hours)
    text = day.isoformat()
    week = (day - timedelta(days=day.weekday())).isoformat()
    return {"day": text, "week": week, "month": text[:7], "hour": hour}


def _read(calendar: Calendar, time: str) -> dict[str, str]:
    return {
        "day": calendar.day(time),
        "week": calendar.week(time),
        "month": calendar.month(time),
        "hour": calendar.hour(time),
    }
