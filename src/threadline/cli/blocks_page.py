"""The table of windows, for a person."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta, tzinfo
from decimal import Decimal

from threadline.model.sum import Sum
from threadline.model.window import UsageWindow, WindowLimit
from threadline.model.zone import in_zone, zone_name
from threadline.render.context import bar, tokens
from threadline.render.figures import count, model_name
from threadline.render.layout import cut, wrap
from threadline.render.style import Role, Span, Spans, Style
from threadline.render.terminal_text import clip, columns, plain

_GAP = "  "
_ROOMY = 110
_LEAST_MODELS, _MOST_BAR = 12, 20
_WARNING = Decimal("0.8")
_HOUR = timedelta(hours=1)
_NUMBERS = (3, 4, 5)


def page(
    shown: Sequence[UsageWindow],
    limit: WindowLimit | None,
    *,
    now: datetime,
    zone: tzinfo,
    width: int,
    coloured: bool,
    timeless: int = 0,
) -> Iterator[str]:
    """The windows in columns, then what the active one leads to, the total, and what is not in it."""
    style = Style(colour=coloured)
    lines = list(_columns(shown, limit, now, zone, width))
    running = next((one for one in shown if one.is_active), None)
    if running is not None:
        lines += [(), *_running(running, limit, zone, width)]
    lines += [(), *_foot(shown, limit, zone, width, timeless)]
    return map(style.line, lines)


def _columns(
    shown: Sequence[UsageWindow], limit: WindowLimit | None, now: datetime, zone: tzinfo, width: int
) -> Iterator[Spans]:
    roomy = width >= _ROOMY
    cells = [
        ("window", "", "models", "tokens", "USD", "share"),
        *(_cells(one, limit, now, zone, roomy) for one in shown),
    ]
    sizes = [max(columns(row[at]) for row in cells) for at in range(len(cells[0]))]
    spare = width - sum(sizes) - len(_GAP) * (len(sizes) + 1)
    room = max(0, min(_MOST_BAR, max(spare, spare + sizes[2] - _LEAST_MODELS if spare < 6 else 0)))  # noqa: PLR2004
    room = room if room >= 4 else 0  # noqa: PLR2004 - a shorter bar tells nothing
    sizes[2] = max(_LEAST_MODELS, sizes[2] + min(0, spare - room))
    yield cut(_line(cells[0], sizes, Role.FAINT), width)
    for one, row in zip(shown, cells[1:], strict=True):
        role = Role.FAINT if one.is_gap else Role.GOOD if one.is_active else Role.BODY
        drawn = bar(float(limit.share(one.sum.tokens)), room) if limit is not None and not one.is_gap else ""
        yield cut((*_line(row, sizes, role), Span(_GAP + drawn.rstrip(), _alarm(one, limit))), width)


def _cells(one: UsageWindow, limit: WindowLimit | None, now: datetime, zone: tzinfo, roomy: bool) -> tuple[str, ...]:
    begins = in_zone(one.begins, zone).replace(tzinfo=None).isoformat(" ", "minutes")
    if one.is_gap:
        return begins, f"gap {_long(one.duration)}", "", "", "", ""
    state = f"{_long(one.ends - now)} left" if one.is_active else _long(one.duration)
    return (
        begins,
        state,
        plain(", ".join(dict.fromkeys(model_name(model) for model in one.models))),
        f"{one.sum.tokens:,}" if roomy else tokens(one.sum.tokens),
        usd(one.sum.amount),
        f"{limit.share(one.sum.tokens):.0%}" if limit is not None else "",
    )


def _line(cells: Sequence[str], sizes: Sequence[int], role: Role) -> Spans:
    spans = []
    for at, (cell, size) in enumerate(zip(cells, sizes, strict=True)):
        shown = clip(cell, size)
        space = " " * (size - columns(shown))
        spans.append(Span(_GAP + (space + shown if at in _NUMBERS else shown + space), role))
    return tuple(spans)


def _alarm(one: UsageWindow, limit: WindowLimit | None) -> Role:
    share = limit.share(one.sum.tokens) if limit is not None else 0
    return Role.BAD if share > 1 else Role.NOTICE if share > _WARNING else Role.GOOD


def _running(one: UsageWindow, limit: WindowLimit | None, zone: tzinfo, width: int) -> Iterator[Spans]:
    burn, projection = one.burn, one.projection
    if burn is None or projection is None:
        yield from _told("burn   One moment only, so no rate yet.", width, Role.BODY)
    else:
        hourly = f", {usd(burn.amount_per_hour)} USD an hour" if burn.amount_per_hour is not None else ""
        yield from _told(
            f"burn   {burn.tokens_per_minute:,.0f} tokens a minute"
            f" ({burn.new_tokens_per_minute:,.0f} without the cache){hourly}",
            width,
            Role.BODY,
        )
        cost = f", {usd(projection.amount)} USD" if projection.amount is not None else ""
        yield from _told(
            f"ahead  {projection.tokens:,} tokens{cost} by {in_zone(one.ends, zone):%H:%M}, going on so",
            width,
            Role.BODY,
        )
    if limit is not None and limit.is_given:
        left = max(0, limit.tokens - one.sum.tokens)
        projected = projection.tokens if projection is not None else one.sum.tokens
        status = limit.status(projected)
        role = {"exceeds": Role.BAD, "warning": Role.NOTICE}.get(status, Role.GOOD)
        leads = {"exceeds": "going on so exceeds it", "warning": "going on so comes near it"}.get(status, "enough")
        yield from _told(f"limit  {limit.tokens:,} tokens: {left:,} left; {leads}", width, role)


def _foot(
    shown: Sequence[UsageWindow], limit: WindowLimit | None, zone: tzinfo, width: int, timeless: int
) -> Iterator[Spans]:
    spent = [one for one in shown if not one.is_gap]
    whole = Sum.of(one.sum for one in spent)
    told = f"{count(len(spent), 'window')}: {whole.tokens:,} tokens, {usd(whole.amount) or 'no'} USD."
    if limit is not None:
        of = "the limit" if limit.is_given else "the biggest window that is over"
        told += f" The share is of {of}, {limit.tokens:,} tokens."
    yield from _told(f"{told} Times are {zone_name(zone)}.", width)
    if whole.unpriced:
        yield from _told(
            f"{count(whole.unpriced, 'charge')} without a price: their amount is missing.", width, Role.NOTICE
        )
    if timeless:
        yield from _told(f"{count(timeless, 'charge')} without a time: in no window.", width, Role.NOTICE)


def _told(text: str, width: int, role: Role = Role.FAINT) -> Iterator[Spans]:
    return wrap((Span(text, role),), width, first=(Span(_GAP),), rest=(Span(_GAP),))


def _long(duration: timedelta) -> str:
    """`40m`, `3h 20m`, `43h`, `12d`: no seconds, which no limit counts."""
    minutes = max(0, duration // timedelta(minutes=1))
    if minutes < 60:  # noqa: PLR2004 - minutes of an hour
        return f"{minutes}m"
    if duration < 24 * _HOUR:
        return f"{minutes // 60}h {minutes % 60:02d}m"
    return f"{duration // _HOUR}h" if duration < 100 * _HOUR else f"{duration.days:,}d"


def usd(amount: Decimal | None) -> str:
    """An amount in whole cents; nothing where it is not known."""
    return f"{amount:,.2f}" if amount is not None else ""
