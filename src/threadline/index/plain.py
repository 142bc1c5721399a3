"""Plain charges: of messages that one sighting tells of and that nothing is special about, which nearly all are.

They are what `account.charges.alone` makes of them, without making a sighting first: the first index has them by the
hundred thousand.
"""

from __future__ import annotations

from collections.abc import Mapping

from threadline.account.rates import Rates
from threadline.index.priced import RateNumbers, ShareNumbers
from threadline.index.seen import Kept
from threadline.index.stamp import written
from threadline.index.told import unpacked
from threadline.model.rate import EXACT, Rate, plain_number

_A_DAY = 24 * 60 * 60 * 1000
_UTC_DAY = 10
_Numbered = tuple[Rate | None, int]


class Plain:
    """Rows of `charged`, by the rates of a table; `models` are by their numbers."""

    def __init__(
        self, table: Rates, numbers: RateNumbers, shares: ShareNumbers, models: Mapping[int | None, str | None]
    ) -> None:
        self._table = table
        self._shares = shares
        self._numbers = numbers
        self._models = models
        self._tiers: dict[tuple[int | None, int], tuple[int, Rate | None, Rate | None]] = {}

    def row(self, message: int, kept: Kept) -> tuple[object, ...] | None:
        """What a message is charged; None where something about it has a price of its own."""
        _offset, origin, model, time, packed = kept
        told = unpacked(packed)
        if isinstance(time, str) or told.speed or told.geo or told.tier or told.passes is not None:
            return None
        day = model, time // _A_DAY
        tiers = self._tiers.get(day)
        if tiers is None:
            tiers = self._tiers[day] = self._table.tiers(self._models[model], written(time)[:_UTC_DAY])
        sent, output, read = told.input, told.output, told.cache_read
        five, hour, searches = told.cache_write_5m, told.cache_write_1h, told.web_searches
        rate = tiers[2] if sent + five + hour + read > tiers[0] else tiers[1]
        amount = None
        if rate is not None:
            cost = rate.amount(input=sent, output=output, cache_write_5m=five, cache_write_1h=hour, cache_read=read)
            amount = plain_number(EXACT.add(cost, EXACT.multiply(rate.web_search, searches)) if searches else cost)
        number = self._numbers.of(self._models[model], rate)
        shared = self._shares.of(tuple(told.calls[1::2]))
        counts = sent, output, five, hour, read, searches
        return (message, 0, origin, number, time, None, *counts, amount, told.partial, 0, shared)
