"""Windowing: windows of five hours from the index; their sums from quarters of an hour where no window cuts one."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from threadline.account.adding import COUNTS, Priced, rows_of
from threadline.account.ledger import within
from threadline.account.windows import add_window, parted
from threadline.index.chosen import Chosen
from threadline.index.priced import priced
from threadline.index.stamp import QUARTER
from threadline.index.summing import OF_CHARGES, instants
from threadline.model.sum import Sum
from threadline.model.time import parse_timestamp
from threadline.model.window import UsageWindow

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ENDS = f"SELECT time / {QUARTER}, rate_id, MIN(time), MAX(time) FROM charged WHERE {{0}} GROUP BY 1, 2"  # noqa: S608 - numbers
_TIMES = "SELECT time, rate_id FROM charged WHERE {0} ORDER BY time, message_id, number"
_KEPT = f"SELECT quarter, rate_id, {', '.join(f'SUM({name})' for name in COUNTS)} FROM spent WHERE {{0}} GROUP BY 1, 2"  # noqa: S608 - our own names
_CHARGES = f"SELECT rate_id, {OF_CHARGES} FROM charged WHERE time = ? GROUP BY 1"  # noqa: S608 - the same
_Told = tuple[int | str, int]
_Timed = tuple[datetime, _Told]
_Quarter = int | str
_AN_HOUR = timedelta(hours=1)  # windows that are shorter than what they begin with may begin anywhere


class Windowing:
    """The windows of charges of a time.

    The first and last time of each quarter of an hour are enough to tell windows, where a quarter lies wholly in one.
    """

    def __init__(self, connection: sqlite3.Connection, chosen: Chosen) -> None:
        self._connection = connection
        self._chosen = chosen
        self._rates = priced(connection)
        self._sums: list[dict[Priced, list[int]]] = []

    def windows(self, now: datetime, length: timedelta) -> list[UsageWindow]:
        """All of them, and the gaps between."""
        torn: set[_Quarter] = set(map(_quarter, instants(self._chosen))) if self._chosen.is_timed else set()
        ends = self._ends(torn, is_short=length < _AN_HOUR)
        parts = list(parted(self._timed(ends, torn), length))
        window = self._windows(parts, torn)
        if torn:
            parts = list(parted(self._timed(ends, torn), length))
        self._add_up(parts, window, torn)
        found: list[UsageWindow] = []
        for some, sums in zip(parts, self._sums, strict=True):
            models = (self._rates[rate][0] for _, (_, rate) in some)
            add_window(found, (some[0][0], some[-1][0]), Sum.of(rows_of(sums, ())), models, now, length)
        return found

    def _ends(self, torn: set[_Quarter], *, is_short: bool) -> list[tuple[int, int, int, int]]:
        """Each quarter's first and last time of each rate; where it does not say which came first, it is torn."""
        first, last = instants(self._chosen)
        ends = self._connection.execute(_ENDS.format(f"time BETWEEN {first} AND {last}")).fetchall()
        begun: set[tuple[int, int]] = set()
        for quarter, _rate, begins, _ends in ends:
            if is_short or (quarter, begins) in begun:
                torn.add(quarter)
            begun.add((quarter, begins))
        return ends

    def _timed(self, ends: list[tuple[int, int, int, int]], torn: set[_Quarter]) -> Iterator[_Timed]:
        """Times in order: of torn quarters all, of others the first and last of each rate."""
        chosen, (first, last) = self._chosen, instants(self._chosen)
        usual = [(time, rate) for quarter, rate, *both in ends if quarter not in torn for time in both]
        for quarter in {quarter for quarter, *_ in ends if quarter in torn}:
            low, high = max(first, quarter * QUARTER), min(last, quarter * QUARTER + QUARTER - 1)
            usual += self._connection.execute(_TIMES.format(f"time BETWEEN {low} AND {high}"))
        usual.sort(key=lambda told: (told[0], self._rates[told[1]][0] or ""))
        timed = [(_EPOCH + timedelta(milliseconds=told[0]), told) for told in usual]
        odd = [(parse_timestamp(told[0]), told) for told in self._connection.execute(_TIMES.format("time >= ''"))]
        if odd:
            timed += [(when, told) for when, told in odd if when is not None and _is_in(when, chosen)]
            timed.sort(key=lambda one: (one[0], self._rates[one[1][1]][0] or ""))
        return iter(timed)

    def _windows(self, parts: list[list[_Timed]], torn: set[_Quarter]) -> dict[_Quarter, int]:
        """The window of each quarter; those that lie in several are torn."""
        window: dict[_Quarter, int] = {}
        for at, some in enumerate(parts):
            for _when, (time, _rate) in some:
                quarter = _quarter(time)
                if window.setdefault(quarter, at) != at:
                    torn.add(quarter)
        return window

    def _add_up(self, parts: list[list[_Timed]], window: dict[_Quarter, int], torn: set[_Quarter]) -> None:
        """Quarters that lie in one window wholly, and all else time by time."""
        self._sums = [{} for _ in parts]
        first, last = map(_quarter, instants(self._chosen))
        for quarter, rate, *counts in self._connection.execute(
            _KEPT.format(f"quarter BETWEEN {first} AND {last} OR quarter >= ''")
        ):
            if quarter in window and quarter not in torn:
                self._add(window[quarter], rate, counts)
        for at, some in enumerate(parts if torn else ()):
            for time in {time for _when, (time, _rate) in some if _quarter(time) in torn}:
                for rate, *counts in self._connection.execute(_CHARGES, (time,)):
                    self._add(at, rate, counts)

    def _add(self, at: int, rate: int, counts: list[int]) -> None:
        sums = self._sums[at]
        key: Priced = (), self._rates[rate][1]
        held = sums.get(key)
        sums[key] = counts if held is None else [mine + its for mine, its in zip(held, counts, strict=True)]


def _quarter(time: int | str) -> int | str:
    return time // QUARTER if isinstance(time, int) else time


def _is_in(when: datetime, chosen: Chosen) -> bool:
    return within(when, chosen.since, chosen.until)
