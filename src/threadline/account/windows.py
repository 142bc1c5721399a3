"""Five-hour usage windows: their totals, the burn rate and the projection of the active one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal
from typing import TypeVar

from threadline.account.keys import Calendar
from threadline.account.totals import sum_charges
from threadline.model.charges import Charge
from threadline.model.totals import CENT, BurnRate, Projection, Sum, UsageWindow, WindowLimit

WINDOW_HOURS = 5
# Dividing does not end by itself: 28 digits are kept, and whoever shows them rounds.
_DIVISION = Context(prec=28, rounding=ROUND_HALF_EVEN)
_ROUNDING = Context(prec=60, rounding=ROUND_HALF_UP)
_MICROSECOND = timedelta(microseconds=1)
_MICROSECONDS_A_MINUTE = Decimal(60_000_000)
_MINUTES_AN_HOUR = 60
_T = TypeVar("_T")


def usage_windows(charges: Iterable[Charge], *, now: datetime, hours: float = WINDOW_HOURS) -> list[UsageWindow]:
    """The windows of charges and the gaps between them, in the order of time. Charges without a time are in none.

    A window begins with the hour (in UTC) of its first charge. Another one begins with a charge that lies more than
    `hours` after that, or more than `hours` after the charge before; in the second case there is a gap between.
    """
    length = timedelta(hours=hours)
    timed = [(when, charge) for charge in charges if (when := charge.timestamp) is not None]
    # Models of the same moment come by their names: charges themselves have no order then.
    timed.sort(key=lambda pair: (pair[0], pair[1].model or ""))
    found: list[UsageWindow] = []
    for some in split_into_windows(timed, length):
        first, last = some[0][0], some[-1][0]
        append_window(
            found, (first, last), sum_of([one for _, one in some]), [one.model for _, one in some], now, length
        )
    return found


def append_window(  # noqa: PLR0917 - all that a window is made of
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
    found.append(_make_window(times, whole, tuple(dict.fromkeys(text for text in models if text)), now, length))


def active_window(some: Iterable[UsageWindow]) -> UsageWindow | None:
    """The window that is running, if there is one."""
    return next((usage_window for usage_window in some if usage_window.is_active), None)


def window_limit(some: Iterable[UsageWindow], given: int | None = None, *, asked: bool = False) -> WindowLimit | None:
    """The limit that was given, or else the tokens of the biggest window that is over; None where none is.

    `asked` is whether anybody wants to be warned of it.
    """
    if given is not None:
        return WindowLimit(given, is_given=True)
    most = max(
        (usage_window.sum.tokens for usage_window in some if not usage_window.is_gap and not usage_window.is_active),
        default=0,
    )
    return WindowLimit(most, is_given=asked) if most else None


def split_into_windows(timed: Iterable[tuple[datetime, _T]], length: timedelta) -> Iterator[list[tuple[datetime, _T]]]:
    """What has a time, in the order of it, parted into windows."""
    part: list[tuple[datetime, _T]] = []
    begins = last = datetime.min.replace(tzinfo=UTC)
    for when, charge in timed:
        if part and (when - begins > length or when - last > length):
            yield part
            part = []
        if not part:
            begins = _start_of_hour(when)
        part.append((when, charge))
        last = when
    if part:
        yield part


def _start_of_hour(when: datetime) -> datetime:
    return when.replace(minute=0, second=0, microsecond=0)


def _make_window(
    times: tuple[datetime, datetime], whole: Sum, models: tuple[str, ...], now: datetime, length: timedelta
) -> UsageWindow:
    first, last = times
    begins = _start_of_hour(first)
    ends = begins + length if begins <= datetime.max.replace(tzinfo=UTC) - length else last
    is_active = begins <= now < ends and now - last < length
    burn = _burn_rate(whole, last - first) if is_active else None
    return UsageWindow(
        begins=begins,
        ends=ends,
        first=first,
        last=last,
        is_active=is_active,
        sum=whole,
        models=models,
        burn=burn,
        projection=_project(whole, burn, ends - now) if burn is not None else None,
    )


def sum_of(charges: Iterable[Charge]) -> Sum:
    """The sum of charges."""
    return Sum.of(sum_charges(charges, (), Calendar(), {}))


def _burn_rate(whole: Sum, took: timedelta) -> BurnRate | None:
    """The burn; None where all was spent at one moment, which says nothing about what follows."""
    if not took:
        return None
    minutes = _minutes(took)

    def by_minute(number: Decimal | int) -> Decimal:
        return _DIVISION.divide(Decimal(number), minutes)

    amount = whole.amount
    return BurnRate(
        tokens_per_minute=by_minute(whole.tokens),
        new_tokens_per_minute=by_minute(whole.input + whole.output),
        amount_per_hour=None if amount is None else by_minute(_DIVISION.multiply(amount, Decimal(_MINUTES_AN_HOUR))),
    )


def _minutes(some: timedelta) -> Decimal:
    return _DIVISION.divide(Decimal(some // _MICROSECOND), _MICROSECONDS_A_MINUTE)


def _project(whole: Sum, burn: BurnRate, left: timedelta) -> Projection:
    minutes = int(_ROUNDING.quantize(_minutes(left), Decimal(1)))
    more = _DIVISION.multiply(burn.tokens_per_minute, Decimal(minutes))
    amount = None
    if whole.amount is not None and burn.amount_per_hour is not None:
        rest = _DIVISION.divide(_DIVISION.multiply(burn.amount_per_hour, Decimal(minutes)), Decimal(_MINUTES_AN_HOUR))
        amount = _ROUNDING.quantize(_DIVISION.add(whole.amount, rest), CENT)
    return Projection(minutes, whole.tokens + int(_ROUNDING.quantize(more, Decimal(1))), amount)
