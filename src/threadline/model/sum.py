"""Sum: charges added up, and the rows of a report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any

from msgspec import Struct

from threadline.model import frames
from threadline.model.rate import EXACT


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
            amount=added(amounts) if amounts else None,
            unpriced=sum(one.unpriced for one in some),
            lower_bound=sum(one.lower_bound for one in some),
        )


class Row(Sum, frozen=True):
    """A row of a report: what its charges have in common, and their sum."""

    keys: dict[str, str] = {}

    def record(self) -> dict[str, Any]:
        """The row as one flat record: the keys, and then the figures."""
        return {**self.keys, **figures(self)}


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
        return tuple(summed(dict(zip(names, key, strict=True)), Sum.of(some)) for key, some in parts.items())

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
        return frames.arrow(self.columns, self.records())

    def polars(self) -> Any:
        """The rows as a `polars.DataFrame`, where polars is installed."""
        return frames.polars(self.columns, self.records())

    def pandas(self) -> Any:
        """The rows as a `pandas.DataFrame`, where pandas is installed."""
        return frames.pandas(self.columns, self.records())


def added(amounts: Iterable[Decimal]) -> Decimal:
    """The exact sum of amounts."""
    total = Decimal(0)
    for amount in amounts:
        total = EXACT.add(total, amount)
    return total


def figures(one: Sum) -> dict[str, Any]:
    """The figures of a sum by name, in the order in which reports show them."""
    return {name: getattr(one, name) for name in Sum.__struct_fields__}


def summed(keys: dict[str, str], one: Sum) -> Row:
    """A row of a sum."""
    return Row(**figures(one), keys=keys)
