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
_TIMES = "SELECT time, rate_id FROM charged WHERE {0} ORDER BY time, message_id, number"
_KEPT = f"SELECT quarter, rate_id, {', '.join(f'SUM({name})' for name in COUNTS)} FROM spent GROUP BY 1, 2"  # noqa: S608 - our own names
_CHARGES = f"SELECT time, rate_id, {OF_CHARGES} FROM charged WHERE time = ? GROUP BY 1, 2"  # noqa: S608 - the same
_Told = tuple[int | str, int]


class Windowing:
    """The windows of charges of a time."""

    def __init__(self, connection: sqlite3.Connection, chosen: Chosen) -> None:
        self._connection = connection
        self._chosen = chosen
        self._rates = priced(connection)
        self._sums: list[dict[Priced, list[int]]] = []

    def windows(self, now: datetime, length: timedelta) -> list[UsageWindow]:
        """All of them, and the gaps between."""
        parts = list(parted(self._timed(), length))
        self._sums = [{} for _ in parts]
        self._add_up(parts)
        found: list[UsageWindow] = []
        for some, sums in zip(parts, self._sums, strict=True):
            rows = rows_of(sums, ())
            models = (self._rates[rate][0] for _, (_, rate) in some)
            add_window(found, (some[0][0], some[-1][0]), Sum.of(rows), models, now, length)
        return found

    def _timed(self) -> Iterator[tuple[datetime, _Told]]:
        """The charges in the order of time."""
        odd = self._connection.execute(_TIMES.format("time >= ''")).fetchall()
        first, last = instants(self._chosen)
        usual = (
            (_EPOCH + timedelta(milliseconds=time), (time, rate))
            for time, rate in self._connection.execute(_TIMES.format(f"time BETWEEN {first} AND {last}"))
        )
        if not odd:
            return usual
        parsed = ((parse_timestamp(time), (time, rate)) for time, rate in odd)
        chosen = [
            (when, told)
            for when, told in parsed
            if when is not None and within(when, self._chosen.since, self._chosen.until)
        ]
        return iter(sorted([*usual, *chosen], key=lambda pair: pair[0]))

    def _add_up(self, parts: list[list[tuple[datetime, _Told]]]) -> None:
        """Quarters of an hour that lie in one window wholly, and all else time by time."""
        window, torn = self._quarters(parts)
        for quarter, rate, *counts in self._connection.execute(_KEPT):
            if quarter in window and quarter not in torn:
                self._add(window[quarter], rate, counts)
        for at, some in enumerate(parts if torn else ()):
            for time in {time for _when, (time, _rate) in some if _quarter(time) in torn}:
                for _time, rate, *counts in self._connection.execute(_CHARGES, (time,)):
                    self._add(at, rate, counts)

    def _quarters(self, parts: list[list[tuple[datetime, _Told]]]) -> tuple[dict[int | str, int], set[int | str]]:
        """The window of each quarter, and the quarters that lie in several, or only partly in the time."""
        window: dict[int | str, int] = {}
        torn: set[int | str] = set(map(_quarter, instants(self._chosen))) if self._chosen.is_timed else set()
        for at, some in enumerate(parts):
            for _when, (time, _rate) in some:
                quarter = _quarter(time)
                if window.setdefault(quarter, at) != at:
                    torn.add(quarter)
        return window, torn

    def _add(self, at: int, rate: int, counts: list[int]) -> None:
        sums = self._sums[at]
        key: Priced = (), self._rates[rate][1]
        held = sums.get(key)
        sums[key] = counts if held is None else [mine + its for mine, its in zip(held, counts, strict=True)]


def _quarter(time: int | str) -> int | str:
    return time // QUARTER if isinstance(time, int) else time
