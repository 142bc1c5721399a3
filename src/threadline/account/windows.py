"""Five-hour usage windows: their totals, the burn rate and the projection of the active one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal
from typing import TypeVar

from threadline.account.totals import Calendar, sum_charges
from threadline.model.ledger import CENT, BurnRate, Charge, Projection, Sum, UsageWindow, WindowLimit
from threadline.model.times import FIRST_MOMENT

WINDOW_HOURS = 5
# Division is not exact: 28 digits are kept, and they are rounded for display.
_DIVISION = Context(prec=28, rounding=ROUND_HALF_EVEN)
_ROUNDING = Context(prec=60, rounding=ROUND_HALF_UP)
_MICROSECOND = timedelta(microseconds=1)
_MICROSECONDS_A_MINUTE = Decimal(60_000_000)
_MINUTES_AN_HOUR = 60
_T = TypeVar("_T")


def usage_windows(charges: Iterable[Charge], *, now: datetime, hours: float = WINDOW_HOURS) -> list[UsageWindow]:
    """Return the windows of charges and the gaps between them, oldest first. Charges without a time are left out.

    A window begins with the UTC hour of its first charge. A charge more than `hours` after that begins another window.
    If it is more than `hours` after the previous charge, too, there is a gap between them.
    """
    length = timedelta(hours=hours)
    timed = [(when, charge) for charge in charges if (when := charge.timestamp) is not None]
    # Charges of the same moment have no order of their own: sort them by model.
    timed.sort(key=lambda pair: (pair[0], pair[1].model or ""))
    windows: list[UsageWindow] = []
    for group in split_into_windows(timed, length):
        first, last = group[0][0], group[-1][0]
        append_window(
            windows,
            (first, last),
            sum_of([charge for _, charge in group]),
            [charge.model for _, charge in group],
            now,
            length,
        )
    return windows


def append_window(  # noqa: PLR0917 - everything that a window consists of
    windows: list[UsageWindow],
    times: tuple[datetime, datetime],
    total: Sum,
    models: Iterable[str | None],
    now: datetime,
    length: timedelta,
) -> None:
    """Append a window, and the gap before it if there is one. `models` are those of its charges, in order."""
    if windows and (last := windows[-1].last) is not None and times[0] - last > length:
        windows.append(UsageWindow(last + length, times[0]))
    windows.append(_make_window(times, total, tuple(dict.fromkeys(model for model in models if model)), now, length))


def active_window(windows: Iterable[UsageWindow]) -> UsageWindow | None:
    """Return the window that is running now, if there is one."""
    return next((window for window in windows if window.is_active), None)


def window_limit(
    windows: Iterable[UsageWindow], tokens: int | None = None, *, is_given: bool = False
) -> WindowLimit | None:
    """Return a limit of this many tokens, or else of the largest finished window; None if there is none.

    `is_given` says whether the user asked for a limit, and so wants warnings about it.
    """
    if tokens is not None:
        return WindowLimit(tokens, is_given=True)
    largest = max(
        (window.sum.tokens for window in windows if not window.is_gap and not window.is_active),
        default=0,
    )
    return WindowLimit(largest, is_given=is_given) if largest else None


def split_into_windows(timed: Iterable[tuple[datetime, _T]], length: timedelta) -> Iterator[list[tuple[datetime, _T]]]:
    """Split timed items, oldest first, into windows."""
    window: list[tuple[datetime, _T]] = []
    begins = FIRST_MOMENT
    for when, item in timed:
        if window and when - begins > length:
            yield window
            window = []
        if not window:
            begins = _start_of_hour(when)
        window.append((when, item))
    if window:
        yield window


def _start_of_hour(when: datetime) -> datetime:
    return when.replace(minute=0, second=0, microsecond=0)


def _make_window(
    times: tuple[datetime, datetime], total: Sum, models: tuple[str, ...], now: datetime, length: timedelta
) -> UsageWindow:
    first, last = times
    begins = _start_of_hour(first)
    ends = begins + length if begins <= datetime.max.replace(tzinfo=UTC) - length else last
    is_active = begins <= now < ends and now - last < length
    burn = _burn_rate(total, last - first) if is_active else None
    return UsageWindow(
        begins=begins,
        ends=ends,
        first=first,
        last=last,
        is_active=is_active,
        sum=total,
        models=models,
        burn=burn,
        projection=_project(total, burn, ends - now) if burn is not None else None,
    )


def sum_of(charges: Iterable[Charge]) -> Sum:
    """Sum charges."""
    return Sum.of(sum_charges(charges, (), Calendar(), {}))


def _burn_rate(total: Sum, duration: timedelta) -> BurnRate | None:
    """Return the burn rate; None if everything was spent at one moment, which says nothing about what follows."""
    if not duration:
        return None
    minutes = _minutes(duration)

    def by_minute(number: Decimal | int) -> Decimal:
        return _DIVISION.divide(Decimal(number), minutes)

    amount = total.amount
    return BurnRate(
        tokens_per_minute=by_minute(total.tokens),
        new_tokens_per_minute=by_minute(total.input + total.output),
        amount_per_hour=None if amount is None else by_minute(_DIVISION.multiply(amount, Decimal(_MINUTES_AN_HOUR))),
    )


def _minutes(duration: timedelta) -> Decimal:
    return _DIVISION.divide(Decimal(duration // _MICROSECOND), _MICROSECONDS_A_MINUTE)


def _project(total: Sum, burn: BurnRate, remaining: timedelta) -> Projection:
    minutes = int(_ROUNDING.quantize(_minutes(remaining), Decimal(1)))
    more = _DIVISION.multiply(burn.tokens_per_minute, Decimal(minutes))
    amount = None
    if total.amount is not None and burn.amount_per_hour is not None:
        rest = _DIVISION.divide(_DIVISION.multiply(burn.amount_per_hour, Decimal(minutes)), Decimal(_MINUTES_AN_HOUR))
        amount = _ROUNDING.quantize(_DIVISION.add(total.amount, rest), CENT)
    return Projection(minutes, total.tokens + int(_ROUNDING.quantize(more, Decimal(1))), amount)
