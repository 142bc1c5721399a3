"""UsageWindow: the five hours that a limit counts from the first charge on; ccusage calls it a block."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Any

from msgspec import Struct

from threadline.model.rate import plain_number
from threadline.model.sum import Sum, figures

MILLIONTH, CENT = Decimal("0.000001"), Decimal("0.01")
# Wide enough for all that JSON may count within a millionth of a second; whatever context the caller has set.
_ROUNDING = Context(prec=60, rounding=ROUND_HALF_EVEN)


class Burn(Struct, frozen=True):
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
    burn: Burn | None = None
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
            **figures(self.sum),
            "tokens": self.sum.tokens,
            "tokens_per_minute": _rounded(burn.tokens_per_minute) if burn is not None else None,
            "new_tokens_per_minute": _rounded(burn.new_tokens_per_minute) if burn is not None else None,
            "amount_per_hour": _rounded(burn.amount_per_hour) if burn is not None else None,
            "remaining_minutes": projection and projection.remaining_minutes,
            "projected_tokens": projection and projection.tokens,
            "projected_amount": projection and projection.amount,
            "share": float(limit.share(self.sum.tokens)) if limit is not None and not self.is_gap else None,
            "limit_remaining": max(0, measured.tokens - self.sum.tokens) if measured is not None else None,
            "limit_status": measured.status(projection.tokens if projection else self.sum.tokens) if measured else None,
        }


def _rounded(number: Decimal | None) -> Decimal | None:
    return None if number is None else Decimal(plain_number(_ROUNDING.quantize(number, MILLIONTH)))
