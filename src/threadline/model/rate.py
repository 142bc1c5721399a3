"""The rate: what each kind of token costs for a model during a period."""

from __future__ import annotations

from decimal import Context, Decimal

from msgspec import Struct

# Wide enough for every price that a file may hold times every count that JSON may: nothing is ever rounded.
EXACT = Context(prec=200)
"""Arithmetic that does not round, whatever context the caller has set."""

_PER = -6  # prices are per million


class Rate(Struct, frozen=True, gc=False, cache_hash=True):
    """What one call is charged by: USD per million tokens of each kind, after all multipliers.

    `model` is the key in the price file. `begins` and `ends` are the first day of the period and the day after its
    last (`YYYY-MM-DD`, UTC), None where it is open. `long_context` is the threshold when these are the prices for
    prompts above it. `multipliers` are those that have been applied, by name. `source` says where the prices are from;
    `web_search` is the fee for one search, in USD.
    """

    model: str
    input: Decimal
    output: Decimal
    cache_write_5m: Decimal
    cache_write_1h: Decimal
    cache_read: Decimal
    begins: str | None = None
    ends: str | None = None
    long_context: int | None = None
    multipliers: tuple[tuple[str, Decimal], ...] = ()
    source: str = ""
    web_search: Decimal = Decimal("0.01")

    def amount(
        self,
        *,
        input: int = 0,  # noqa: A002 - the word of the usage object
        output: int = 0,
        cache_write_5m: int = 0,
        cache_write_1h: int = 0,
        cache_read: int = 0,
    ) -> Decimal:
        """What so many tokens cost, in USD, exact to the last digit.

        >>> Rate("m", Decimal(4), Decimal(20), Decimal(5), Decimal(8), Decimal("0.2")).amount(input=3, cache_read=7)
        Decimal('0.0000134')
        """
        total = EXACT.multiply(self.input, input)
        total = EXACT.fma(self.output, output, total)
        total = EXACT.fma(self.cache_write_5m, cache_write_5m, total)
        total = EXACT.fma(self.cache_write_1h, cache_write_1h, total)
        return EXACT.scaleb(EXACT.fma(self.cache_read, cache_read, total), _PER)

    def describe(self) -> str:
        """The row in words, for a receipt.

        >>> Rate("m", Decimal(4), Decimal(20), Decimal(5), Decimal(8), Decimal("0.2"), ends="2026-03-13").describe()
        'm until 2026-03-13: input 4, output 20, cache write 5m 5, 1h 8, cache read 0.2 per million'
        """
        which = " ".join(filter(None, (self.model, period(self.begins, self.ends))))
        told = [which]
        if self.long_context is not None:
            told.append(f"long context over {self.long_context:,}")
        told += [f"{name} ×{plain_number(by)}" for name, by in self.multipliers]  # noqa: RUF001 - the sign for times
        prices = (
            f"input {plain_number(self.input)}",
            f"output {plain_number(self.output)}",
            f"cache write 5m {plain_number(self.cache_write_5m)}",
            f"1h {plain_number(self.cache_write_1h)}",
            f"cache read {plain_number(self.cache_read)} per million",
        )
        return f"{', '.join(told)}: {', '.join(prices)}"


def period(begins: str | None, ends: str | None) -> str:
    """A period in words; nothing where it is open at both ends.

    >>> period("2026-02-07", "2026-03-13")
    'from 2026-02-07 until 2026-03-13'
    """
    return " ".join(f"{word} {day}" for word, day in (("from", begins), ("until", ends)) if day is not None)


def plain_number(number: Decimal) -> str:
    """A number without exponent and without zeros at its end.

    >>> plain_number(Decimal("1E+1")), plain_number(Decimal("0.50"))
    ('10', '0.5')
    """
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
