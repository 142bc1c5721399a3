"""Rates as the index keeps them: each model as it is written, with the rate that it was charged by."""

from __future__ import annotations

import json
import sqlite3
from decimal import Decimal

from threadline.model.rate import Rate

Priced = tuple[str | None, Rate | None]
_COLUMNS = (
    "rate_id, model, priced_as, input, output, cache_write_5m, cache_write_1h, cache_read, web_search, begins, ends,"
    " long_context, multipliers, source"
)


def priced(connection: sqlite3.Connection) -> dict[int, Priced]:
    """All rates with their models, by number."""
    asked = f"SELECT {_COLUMNS} FROM rates"  # noqa: S608 - our own names
    return {number: (model, _rate(*told)) for number, model, *told in connection.execute(asked)}


class RateNumbers:
    """The number of each rate; one that is new gets one."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._known = {one: number for number, one in priced(connection).items()}

    def of(self, model: str | None, rate: Rate | None) -> int:
        """The number of a model with its rate."""
        number = self._known.get((model, rate))
        if number is None:
            number = self._known[model, rate] = self._insert(model, rate)
        return number

    def _insert(self, model: str | None, rate: Rate | None) -> int:
        made = self._connection.execute(
            f"INSERT INTO rates({_COLUMNS}) VALUES(NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (model, *(_row(rate) if rate is not None else (None,) * 12)),
        )
        return made.lastrowid or 0


class ShareNumbers:
    """The number of the tools that share a charge; those that are new get one."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._known: dict[tuple[str, ...], int] = {
            tuple(json.loads(tools)): number
            for number, tools in connection.execute("SELECT share_id, tools FROM shares")
        }

    def of(self, tools: tuple[str, ...]) -> int | None:
        """The number of some tools; None for none."""
        if not tools:
            return None
        number = self._known.get(tools)
        if number is None:
            made = self._connection.execute("INSERT INTO shares VALUES(NULL, ?)", (json.dumps(tools),))
            number = self._known[tools] = made.lastrowid or 0
        return number


def _row(rate: Rate) -> tuple[object, ...]:
    prices = (rate.input, rate.output, rate.cache_write_5m, rate.cache_write_1h, rate.cache_read, rate.web_search)
    by = json.dumps([(name, str(number)) for name, number in rate.multipliers])
    return rate.model, *map(str, prices), rate.begins, rate.ends, rate.long_context, by, rate.source


def _rate(  # noqa: PLR0917 - the columns of a row
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
