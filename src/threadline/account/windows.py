"""Charges to windows of five hours, the active one's burn and what it comes to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal
from typing import TypeVar

from threadline.account.adding import add_up
from threadline.account.calendar import Calendar
from threadline.model.charge import Charge
from threadline.model.sum import Sum
from threadline.model.window import CENT, Burn, Projection, UsageWindow, WindowLimit

HOURS = 5
# Dividing does not end by itself: 28 digits are kept, and whoever shows them rounds.
_DIVIDED = Context(prec=28, rounding=ROUND_HALF_EVEN)
_ROUNDED = Context(prec=60, rounding=ROUND_HALF_UP)
_MICROSECOND = timedelta(microseconds=1)
_MICROSECONDS_A_MINUTE = Decimal(60_000_000)
_MINUTES_AN_HOUR = 60
_T = TypeVar("_T")


def windows(charges: Iterable[Charge], *, now: datetime, hours: float = HOURS) -> list[UsageWindow]:
    """The windows of charges and the gaps between them, in the order of time. Charges without a time are in none.

    A window begins with the hour (in UTC) of its first charge. Another one begins with a charge that lies more than
    `hours` after that, or more than `hours` after the charge before; in the second case there is a gap between.
    """
    length = timedelta(hours=hours)
    timed = [(when, one) for one in charges if (when := one.timestamp) is not None]
    # Models of the same moment come by their names: charges themselves have no order then.
    timed.sort(key=lambda pair: (pair[0], pair[1].model or ""))
    found: list[UsageWindow] = []
    for some in parted(timed, length):
        first, last = some[0][0], some[-1][0]
        add_window(found, (first, last), total([one for _, one in some]), [one.model for _, one in some], now, length)
    return found


def add_window(  # noqa: PLR0917 - all that a window is made of
    found: list[UsageWindow],
    times: tuple[datetime, datetime],
    whole: Sum,
    models: Iterable[str | None],
    now: datetime,
    length: timedelta,
) -> None:
    """One more window, and the gap before it if there is one. `models` are those of its charges, in order."""
    if found and (last := found[-1].last) is not None and times[0] - last > length:
        found.append(UsageWindow(last + length, times[0]))
    found.append(_window(times, whole, tuple(dict.fromkeys(one for one in models if one)), now, length))


def active(some: Iterable[UsageWindow]) -> UsageWindow | None:
    """The window that is running, if there is one."""
    return next((one for one in some if one.is_active), None)


def limit_of(some: Iterable[UsageWindow], given: int | None = None, *, asked: bool = False) -> WindowLimit | None:
    """The limit that was given, or else the tokens of the biggest window that is over; None where none is.

    `asked` is whether anybody wants to be warned of it.
    """
    if given is not None:
        return WindowLimit(given, is_given=True)
    most = max((one.sum.tokens for one in some if not one.is_gap and not one.is_active), default=0)
    return WindowLimit(most, is_given=asked) if most else None


def parted(timed: Iterable[tuple[datetime, _T]], length: timedelta) -> Iterator[list[tuple[datetime, _T]]]:
    """What has a time, in the order of it, parted into windows."""
    part: list[tuple[datetime, _T]] = []
    begins = last = datetime.min.replace(tzinfo=UTC)
    for when, charge in timed:
        if part and (when - begins > length or when - last > length):
            yield part
            part = []
        if not part:
            begins = _hour(when)
        part.append((when, charge))
        last = when
    if part:
        yield part


def _hour(when: datetime) -> datetime:
    return when.replace(minute=0, second=0, microsecond=0)


def _window(
    times: tuple[datetime, datetime], whole: Sum, models: tuple[str, ...], now: datetime, length: timedelta
) -> UsageWindow:
    first, last = times
    begins = _hour(first)
    ends = begins + length if begins <= datetime.max.replace(tzinfo=UTC) - length else last
    is_active = begins <= now < ends and now - last < length
    burn = _burn(whole, last - first) if is_active else None
    return UsageWindow(
        begins=begins,
        ends=ends,
        first=first,
        last=last,
        is_active=is_active,
        sum=whole,
        models=models,
        burn=burn,
        projection=_projection(whole, burn, ends - now) if burn is not None else None,
    )


def total(charges: Iterable[Charge]) -> Sum:
    """The sum of charges."""
    return Sum.of(add_up(charges, (), Calendar(), {}))


def _burn(whole: Sum, took: timedelta) -> Burn | None:
    """The burn; None where all was spent at one moment, which says nothing about what follows."""
    if not took:
        return None
    minutes = _minutes(took)

    def by_minute(number: Decimal | int) -> Decimal:
        return _DIVIDED.divide(Decimal(number), minutes)

    amount = whole.amount
    return Burn(
        tokens_per_minute=by_minute(whole.tokens),
        new_tokens_per_minute=by_minute(whole.input + whole.output),
        amount_per_hour=None if amount is None else by_minute(_DIVIDED.multiply(amount, Decimal(_MINUTES_AN_HOUR))),
    )


def _minutes(some: timedelta) -> Decimal:
    return _DIVIDED.divide(Decimal(some // _MICROSECOND), _MICROSECONDS_A_MINUTE)


def _projection(whole: Sum, burn: Burn, left: timedelta) -> Projection:
    minutes = int(_ROUNDED.quantize(_minutes(left), Decimal(1)))
    more = _DIVIDED.multiply(burn.tokens_per_minute, Decimal(minutes))
    amount = None
    if whole.amount is not None and burn.amount_per_hour is not None:
        rest = _DIVIDED.divide(_DIVIDED.multiply(burn.amount_per_hour, Decimal(minutes)), Decimal(_MINUTES_AN_HOUR))
        amount = _ROUNDED.quantize(_DIVIDED.add(whole.amount, rest), CENT)
    return Projection(minutes, whole.tokens + int(_ROUNDED.quantize(more, Decimal(1))), amount)
