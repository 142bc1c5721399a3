"""Receipts: charges with every line that mentions them, the multiplication, the sum, and what is missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from decimal import Decimal

from msgspec import Struct

from threadline.model.ledger import EXACT, Charge, Rate, Sum, sum_amounts
from threadline.model.places import Place
from threadline.model.reported_costs import ReportedSession

_PER_MILLION = -6  # prices are per million


class LineCounts(Struct, frozen=True, gc=False):
    """The counts of one line that mentions a message."""

    input: int = 0
    output: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    cache_read: int = 0
    stop_reason: str | None = None
    request: str | None = None

    @property
    def sent(self) -> tuple[int, int, int]:
        """Uncached input, cache writes and cache reads: rows of one API call agree on them."""
        return self.input, self.cache_write_5m + self.cache_write_1h, self.cache_read


class Mention(Struct, frozen=True, gc=False):
    """One line that mentions a message: its own counts, whether it is the one that counted, and why.

    `counts` is None if the line could not be read again or has changed; `why` says so.
    """

    place: Place
    session: str | None
    agent: str | None
    counts: LineCounts | None
    counted: bool
    why: str


class PricedTokens(Struct, frozen=True, gc=False):
    """Tokens of one kind times their price. `price` is per million tokens, or for one web search."""

    kind: str
    number: int
    price: Decimal
    amount: Decimal


class ReceiptItem(Struct, frozen=True, gc=False):
    """One charge of a receipt. `here` is False if another session owns the message: then it is not in the sum.

    `notes` describe its flags.
    """

    charge: Charge
    mentions: tuple[Mention, ...]
    here: bool = True
    notes: tuple[str, ...] = ()

    @property
    def products(self) -> tuple[PricedTokens, ...]:
        """The multiplication for each kind of token; empty if no price is known."""
        charge = self.charge
        return tuple(_price_tokens(charge.rate, (charge,))) if charge.rate is not None else ()


class RateSum(Struct, frozen=True):
    """The sum of all charges with one rate."""

    rate: Rate
    charges: int
    products: tuple[PricedTokens, ...]

    @property
    def amount(self) -> Decimal:
        """The amount in USD, exact."""
        return sum_amounts(product.amount for product in self.products)


class ReceiptGap(Struct, frozen=True):
    """Something that is missing from the sum. `number` is how often, `places` are the evidence."""

    kind: str
    text: str
    number: int | None = None
    places: tuple[Place, ...] = ()


class Receipt(Struct, frozen=True):
    """How a sum came to be.

    `kind` is the kind of subject (`session`, `agent`, `message`, `day`, `place`), and `name` identifies it. `total` and
    `rates` cover the items that are counted here. `reported` is what Claude Code itself reports for a session.
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
        """How many lines mention its messages."""
        return sum(len(item.mentions) for item in self.items)

    @property
    def times(self) -> tuple[datetime, datetime] | None:
        """The times of the first and the last message, in UTC."""
        times = [moment for item in self.items if (moment := item.charge.timestamp) is not None]
        return (min(times), max(times)) if times else None


def sum_by_rate(charges: Iterable[Charge]) -> Iterator[RateSum]:
    """Yield the sum of charges for each rate, the most expensive first. Charges without a price are left out."""
    by_rate: dict[Rate, list[Charge]] = {}
    for charge in charges:
        if charge.rate is not None:
            by_rate.setdefault(charge.rate, []).append(charge)
    sums = [RateSum(rate, len(group), tuple(_price_tokens(rate, group))) for rate, group in by_rate.items()]
    yield from sorted(sums, key=lambda rate_sum: (rate_sum.amount.copy_negate(), rate_sum.rate.describe()))


def _price_tokens(rate: Rate, charges: Iterable[Charge]) -> Iterator[PricedTokens]:
    charges = tuple(charges)
    kinds = (
        ("input", sum(charge.input for charge in charges), rate.input),
        ("output", sum(charge.output for charge in charges), rate.output),
        ("cache write 5m", sum(charge.cache_write_5m for charge in charges), rate.cache_write_5m),
        ("cache write 1h", sum(charge.cache_write_1h for charge in charges), rate.cache_write_1h),
        ("cache read", sum(charge.cache_read for charge in charges), rate.cache_read),
    )
    for kind, number, price in kinds:
        if number:
            yield PricedTokens(kind, number, price, EXACT.scaleb(EXACT.multiply(price, number), _PER_MILLION))
    searches = sum(charge.web_searches for charge in charges)
    if searches:
        yield PricedTokens("web search", searches, rate.web_search, EXACT.multiply(rate.web_search, searches))
