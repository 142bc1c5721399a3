"""Sums of charges, the rows of a report (also as data frames), and five-hour usage windows.

A usage window is the five hours that a limit counts from the first charge on; ccusage calls it a block. Data frame
libraries are imported only when asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from decimal import ROUND_HALF_EVEN, Context, Decimal
from importlib import import_module
from typing import Any

from msgspec import Struct

from threadline.errors import Missing
from threadline.model.charges import EXACT, format_decimal


class Sum(Struct, frozen=True):
    """Charges added up. `amount` is in USD and leaves out the `unpriced` charges; None where none has a price.

    `lower_bound` is how many charges have an output that is only the least that was spent.
    """

    charges: int = 0
    input: int = 0
    output: int = 0
    cache_write: int = 0
    cache_write_1h: int = 0
    cache_read: int = 0
    web_searches: int = 0
    amount: Decimal | None = None
    unpriced: int = 0
    lower_bound: int = 0

    @property
    def cache_write_5m(self) -> int:
        """What was written to the cache for five minutes."""
        return self.cache_write - self.cache_write_1h

    @property
    def tokens(self) -> int:
        """All tokens."""
        return self.input + self.output + self.cache_write + self.cache_read

    @staticmethod
    def of(sums: Iterable[Sum]) -> Sum:
        """Several sums as one."""
        some = list(sums)
        amounts = [one.amount for one in some if one.amount is not None]
        return Sum(
            charges=sum(one.charges for one in some),
            input=sum(one.input for one in some),
            output=sum(one.output for one in some),
            cache_write=sum(one.cache_write for one in some),
            cache_write_1h=sum(one.cache_write_1h for one in some),
            cache_read=sum(one.cache_read for one in some),
            web_searches=sum(one.web_searches for one in some),
            amount=sum_amounts(amounts) if amounts else None,
            unpriced=sum(one.unpriced for one in some),
            lower_bound=sum(one.lower_bound for one in some),
        )


class Row(Sum, frozen=True):
    """A row of a report: what its charges have in common, and their sum."""

    keys: dict[str, str] = {}

    def record(self) -> dict[str, Any]:
        """The row as one flat record: the keys, and then the figures."""
        return {**self.keys, **sum_fields(self)}


class Rows(Struct, frozen=True):
    """The rows of a report by one or more keys, in order; its charges are in exactly one row each."""

    by: tuple[str, ...]
    rows: tuple[Row, ...]

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, at: int) -> Row:
        return self.rows[at]

    @property
    def total(self) -> Sum:
        """All rows as one sum."""
        return Sum.of(self.rows)

    def subtotals(self, depth: int = 1) -> tuple[Row, ...]:
        """The sums by the first `depth` keys alone, in the order of the rows."""
        parts: dict[tuple[str, ...], list[Row]] = {}
        names = self.by[:depth]
        for row in self.rows:
            parts.setdefault(tuple(row.keys[name] for name in names), []).append(row)
        return tuple(make_row(dict(zip(names, key, strict=True)), Sum.of(some)) for key, some in parts.items())

    def records(self) -> list[dict[str, Any]]:
        """The rows as flat records, for a program; amounts are exact decimals."""
        return [row.record() for row in self.rows]

    @property
    def columns(self) -> dict[str, type]:
        """The columns of a frame: the keys, and then the figures."""
        kinds = {"amount": Decimal}
        return {**dict.fromkeys(self.by, str), **{name: kinds.get(name, int) for name in Sum.__struct_fields__}}

    def arrow(self) -> Any:
        """The rows as a `pyarrow.Table`, where pyarrow is installed."""
        return to_arrow(self.columns, self.records())

    def polars(self) -> Any:
        """The rows as a `polars.DataFrame`, where polars is installed."""
        return to_polars(self.columns, self.records())

    def pandas(self) -> Any:
        """The rows as a `pandas.DataFrame`, where pandas is installed."""
        return to_pandas(self.columns, self.records())


def sum_amounts(amounts: Iterable[Decimal]) -> Decimal:
    """The exact sum of amounts."""
    total = Decimal(0)
    for amount in amounts:
        total = EXACT.add(total, amount)
    return total


def sum_fields(one: Sum) -> dict[str, Any]:
    """The figures of a sum by name, in the order in which reports show them."""
    return {name: getattr(one, name) for name in Sum.__struct_fields__}


def make_row(keys: dict[str, str], one: Sum) -> Row:
    """A row of a sum."""
    return Row(**sum_fields(one), keys=keys)


MILLIONTH, CENT = Decimal("0.000001"), Decimal("0.01")
# Wide enough for all that JSON may count within a millionth of a second; whatever context the caller has set.
_ROUNDING = Context(prec=60, rounding=ROUND_HALF_EVEN)


class BurnRate(Struct, frozen=True):
    """How fast a window is being used up: its sum over the time from its first to its last charge.

    `new_tokens_per_minute` leaves the cache out: what ccusage takes for its indicator. Quotients have 28 digits.
    """

    tokens_per_minute: Decimal
    new_tokens_per_minute: Decimal
    amount_per_hour: Decimal | None


class Projection(Struct, frozen=True):
    """What a window comes to if it goes on as it did: its sum, and its burn for the minutes that remain.

    Minutes and tokens are whole, and the amount is in whole cents: it is an estimate.
    """

    remaining_minutes: int
    tokens: int
    amount: Decimal | None


class WindowLimit(Struct, frozen=True):
    """What windows are measured by: tokens that were given, or those of the biggest window that is over."""

    tokens: int
    is_given: bool

    def share(self, tokens: int) -> Decimal:
        """The share of it, to four places."""
        return _ROUNDING.quantize(_ROUNDING.divide(Decimal(tokens), Decimal(self.tokens)), Decimal("0.0001"))

    def status(self, tokens: int) -> str:
        """`ok`, `warning` above four fifths of it, `exceeds` above it."""
        return "exceeds" if tokens > self.tokens else "warning" if tokens * 5 > self.tokens * 4 else "ok"


class UsageWindow(Struct, frozen=True):
    """A time that a limit of five hours counts together, or a gap between two of them.

    It begins with the hour (in UTC) of its first charge. `first` and `last` are the times of its charges; a gap has
    none, and reaches from when nothing had happened for five hours to the next charge. `burn` and `projection` are the
    active one's alone.
    """

    begins: datetime
    ends: datetime
    first: datetime | None = None
    last: datetime | None = None
    is_active: bool = False
    sum: Sum = Sum()
    models: tuple[str, ...] = ()
    burn: BurnRate | None = None
    projection: Projection | None = None

    @property
    def is_gap(self) -> bool:
        """Whether nothing was spent in it."""
        return self.first is None

    @property
    def duration(self) -> timedelta:
        """From its begin to its last charge; of a gap, all of it."""
        return (self.last or self.ends) - self.begins

    def record(self, limit: WindowLimit | None = None) -> dict[str, Any]:
        """The window as one flat record. What was divided is rounded: rates to a millionth, shares to four places.

        The rest of a limit and its status are the active window's: what remains now, and where the projection leads.
        """
        burn, projection = self.burn, self.projection
        measured = limit if self.is_active else None
        return {
            "begins": self.begins,
            "ends": self.ends,
            "first": self.first,
            "last": self.last,
            "is_active": self.is_active,
            "is_gap": self.is_gap,
            "models": self.models,
            **sum_fields(self.sum),
            "tokens": self.sum.tokens,
            "tokens_per_minute": _round_rate(burn.tokens_per_minute) if burn is not None else None,
            "new_tokens_per_minute": _round_rate(burn.new_tokens_per_minute) if burn is not None else None,
            "amount_per_hour": _round_rate(burn.amount_per_hour) if burn is not None else None,
            "remaining_minutes": projection and projection.remaining_minutes,
            "projected_tokens": projection and projection.tokens,
            "projected_amount": projection and projection.amount,
            "share": float(limit.share(self.sum.tokens)) if limit is not None and not self.is_gap else None,
            "limit_remaining": max(0, measured.tokens - self.sum.tokens) if measured is not None else None,
            "limit_status": measured.status(projection.tokens if projection else self.sum.tokens) if measured else None,
        }


def _round_rate(number: Decimal | None) -> Decimal | None:
    return None if number is None else Decimal(format_decimal(_ROUNDING.quantize(number, MILLIONTH)))


Record = dict[str, Any]
# Wider than any sum of prices per token comes to: amounts stay exact.
_DECIMAL_DIGITS, _DECIMAL_PLACES = 38, 18


def to_arrow(columns: Mapping[str, type], records: list[Record]) -> Any:
    """The records as a `pyarrow.Table`; amounts are exact decimals, of one type whatever the records hold."""
    library = _import_library("pyarrow")
    types = {str: library.string(), int: library.int64(), Decimal: library.decimal128(_DECIMAL_DIGITS, _DECIMAL_PLACES)}
    schema = library.schema([(name, types[kind]) for name, kind in columns.items()])
    return library.Table.from_pylist(records, schema=schema)


def to_polars(columns: Mapping[str, type], records: list[Record]) -> Any:
    """The records as a `polars.DataFrame`; amounts are exact decimals."""
    return _import_library("polars").from_arrow(to_arrow(columns, records))


def to_pandas(columns: Mapping[str, type], records: list[Record]) -> Any:
    """The records as a `pandas.DataFrame`; amounts are Python's decimals, exact as they are."""
    return _import_library("pandas").DataFrame.from_records(records, columns=list(columns))


def _import_library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise Missing(f"{name} is not installed; install it with `pip install 'threadline[frames]'`.") from None
