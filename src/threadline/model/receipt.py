"""The receipt: charges with every line that tells of them, the multiplication, the sum, and what is missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from decimal import Decimal

from msgspec import Struct

from threadline.model.charge import Charge
from threadline.model.place import Place
from threadline.model.rate import EXACT, Rate
from threadline.model.reported import ReportedSession
from threadline.model.sum import Sum, added

_PER = -6  # prices are per million


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


class Product(Struct, frozen=True, gc=False):
    """Tokens of one kind times their price; `price` is per million, that of a web search for one."""

    kind: str
    number: int
    price: Decimal
    amount: Decimal


class Item(Struct, frozen=True, gc=False):
    """One charge of a receipt. `here` is False where another session owns the message: then it is not in the sum.

    `notes` are its flags in words.
    """

    charge: Charge
    mentions: tuple[Mention, ...]
    here: bool = True
    notes: tuple[str, ...] = ()

    @property
    def products(self) -> tuple[Product, ...]:
        """The multiplication, kind by kind; empty where no price is known."""
        one = self.charge
        return tuple(_products(one.rate, (one,))) if one.rate is not None else ()


class RateSum(Struct, frozen=True):
    """All that was charged by one rate."""

    rate: Rate
    charges: int
    products: tuple[Product, ...]

    @property
    def amount(self) -> Decimal:
        """What it comes to, in USD, exact."""
        return added(one.amount for one in self.products)


class Missing(Struct, frozen=True):
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
    items: tuple[Item, ...]
    rates: tuple[RateSum, ...]
    total: Sum
    missing: tuple[Missing, ...] = ()
    reported: ReportedSession | None = None
    digest: str = ""

    @property
    def lines(self) -> int:
        """How many lines tell of its messages."""
        return sum(len(one.mentions) for one in self.items)

    @property
    def times(self) -> tuple[datetime, datetime] | None:
        """When the first and the last message was, in UTC."""
        when = [moment for one in self.items if (moment := one.charge.timestamp) is not None]
        return (min(when), max(when)) if when else None


def rate_sums(charges: Iterable[Charge]) -> Iterator[RateSum]:
    """Charges added up by the rate that applies to each, the dearest first. What has no price is left out."""
    by_rate: dict[Rate, list[Charge]] = {}
    for charge in charges:
        if charge.rate is not None:
            by_rate.setdefault(charge.rate, []).append(charge)
    sums = [RateSum(rate, len(some), tuple(_products(rate, some))) for rate, some in by_rate.items()]
    yield from sorted(sums, key=lambda one: (one.amount.copy_negate(), one.rate.describe()))


def _products(rate: Rate, charges: Iterable[Charge]) -> Iterator[Product]:
    some = tuple(charges)
    kinds = (
        ("input", sum(one.input for one in some), rate.input),
        ("output", sum(one.output for one in some), rate.output),
        ("cache write 5m", sum(one.cache_write_5m for one in some), rate.cache_write_5m),
        ("cache write 1h", sum(one.cache_write_1h for one in some), rate.cache_write_1h),
        ("cache read", sum(one.cache_read for one in some), rate.cache_read),
    )
    for kind, number, price in kinds:
        if number:
            yield Product(kind, number, price, EXACT.scaleb(EXACT.multiply(price, number), _PER))
    searches = sum(one.web_searches for one in some)
    if searches:
        yield Product("web search", searches, rate.web_search, EXACT.multiply(rate.web_search, searches))
