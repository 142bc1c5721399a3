"""Receipts: charges with every line that mentions them, the multiplication, the sum, and what is missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from decimal import Decimal

from msgspec import Struct

from threadline.model.ledger import EXACT, Charge, Rate, ReportedSession, Sum, sum_amounts
from threadline.model.places import Place

_PER_MILLION = -6  # prices are per million


class LineCounts(Struct, frozen=True, gc=False):
    """What one line itself tells of a message."""

    input: int = 0
    output: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    cache_read: int = 0
    stop_reason: str | None = None

    @property
    def sent(self) -> tuple[int, int, int]:
        """What was sent, by which rows of one call know one another."""
        return self.input, self.cache_write_5m + self.cache_write_1h, self.cache_read


class Mention(Struct, frozen=True, gc=False):
    """One line that tells of a message: its own counts, whether it is the one that counted, and why.

    `counts` is None where the line could not be read again as it was; `why` says so.
    """

    place: Place
    session: str | None
    agent: str | None
    counts: LineCounts | None
    counted: bool
    why: str


class PricedTokens(Struct, frozen=True, gc=False):
    """Tokens of one kind times their price; `price` is per million, that of a web search for one."""

    kind: str
    number: int
    price: Decimal
    amount: Decimal


class ReceiptItem(Struct, frozen=True, gc=False):
    """One charge of a receipt. `here` is False where another session owns the message: then it is not in the sum.

    `notes` are its flags in words.
    """

    charge: Charge
    mentions: tuple[Mention, ...]
    here: bool = True
    notes: tuple[str, ...] = ()

    @property
    def products(self) -> tuple[PricedTokens, ...]:
        """The multiplication, kind by kind; empty where no price is known."""
        one = self.charge
        return tuple(_price_tokens(one.rate, (one,))) if one.rate is not None else ()


class RateSum(Struct, frozen=True):
    """All that was charged by one rate."""

    rate: Rate
    charges: int
    products: tuple[PricedTokens, ...]

    @property
    def amount(self) -> Decimal:
        """What it comes to, in USD, exact."""
        return sum_amounts(product.amount for product in self.products)


class ReceiptGap(Struct, frozen=True):
    """Something that the sum is known to lack, in words. `number` is how often, `places` are where that shows."""

    kind: str
    text: str
    number: int | None = None
    places: tuple[Place, ...] = ()


class Receipt(Struct, frozen=True):
    """How a sum came to be.

    `kind` is what was asked for (`session`, `agent`, `message`, `day`, `place`) and `name` which. `total` is the sum of
    the items that are counted here, and so are the `rates`. `reported` is what Claude Code itself says of a session.
    """

    kind: str
    name: str
    items: tuple[ReceiptItem, ...]
    rates: tuple[RateSum, ...]
    total: Sum
    missing: tuple[ReceiptGap, ...] = ()
    reported: ReportedSession | None = None
    digest: str = ""

    @property
    def lines(self) -> int:
        """How many lines tell of its messages."""
        return sum(len(item.mentions) for item in self.items)

    @property
    def times(self) -> tuple[datetime, datetime] | None:
        """When the first and the last message was, in UTC."""
        when = [moment for item in self.items if (moment := item.charge.timestamp) is not None]
        return (min(when), max(when)) if when else None


def sum_by_rate(charges: Iterable[Charge]) -> Iterator[RateSum]:
    """Charges added up by the rate that applies to each, the dearest first. What has no price is left out."""
    by_rate: dict[Rate, list[Charge]] = {}
    for charge in charges:
        if charge.rate is not None:
            by_rate.setdefault(charge.rate, []).append(charge)
    sums = [RateSum(rate, len(some), tuple(_price_tokens(rate, some))) for rate, some in by_rate.items()]
    yield from sorted(sums, key=lambda one: (one.amount.copy_negate(), one.rate.describe()))


def _price_tokens(rate: Rate, charges: Iterable[Charge]) -> Iterator[PricedTokens]:
    some = tuple(charges)
    kinds = (
        ("input", sum(charge.input for charge in some), rate.input),
        ("output", sum(charge.output for charge in some), rate.output),
        ("cache write 5m", sum(charge.cache_write_5m for charge in some), rate.cache_write_5m),
        ("cache write 1h", sum(charge.cache_write_1h for charge in some), rate.cache_write_1h),
        ("cache read", sum(charge.cache_read for charge in some), rate.cache_read),
    )
    for kind, number, price in kinds:
        if number:
            yield PricedTokens(kind, number, price, EXACT.scaleb(EXACT.multiply(price, number), _PER_MILLION))
    searches = sum(charge.web_searches for charge in some)
    if searches:
        yield PricedTokens("web search", searches, rate.web_search, EXACT.multiply(rate.web_search, searches))
