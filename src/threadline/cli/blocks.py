"""`threadline blocks`: five-hour usage windows with burn rate and projection."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta, tzinfo
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

import click

from threadline.cli import EXIT_OK
from threadline.cli.options import home_option, jobs_option, output_options, timezone_option
from threadline.cli.screen import pager_option
from threadline.model.text import count, short_model_name
from threadline.model.times import in_zone, zone_name
from threadline.model.totals import Sum, UsageWindow, WindowLimit
from threadline.render import (
    Role,
    Span,
    Spans,
    Style,
    clip,
    cut_line,
    display_width,
    padded_bar,
    plain,
    short_tokens,
    wrap,
)

if TYPE_CHECKING:
    from threadline.account import Ledger

_RECENT_DAYS = 3
_MAX_HOURS = 720
_MAX = "max"
_EPILOG = """
\b
Examples:
  threadline blocks                              all windows, and the gaps between
  threadline blocks --active                     the one that is running
  threadline blocks --recent --tz Europe/Berlin  of the last three days, in Berlin's time
  threadline blocks --active --limit-tokens max  against the biggest window so far
  threadline blocks --json                       exact, for a program
  threadline blocks --shape ccusage              JSON as `ccusage blocks --json` has it
"""


@click.command(epilog=_EPILOG)
@click.option("--active", "only_active", is_flag=True, help="Only the window that is running.")
@click.option("--recent", is_flag=True, help=f"Only windows that began in the last {_RECENT_DAYS} days.")
@click.option("--since", metavar="WHEN", help="Only windows that began after then: 2026-11-03, 7d, yesterday.")
@click.option("--until", metavar="WHEN", help="Only windows that began before then.")
@click.option("--hours", type=click.IntRange(1, _MAX_HOURS), default=5, metavar="N", help="How long a window is; 5.")
@click.option(
    "--limit-tokens", "limited", metavar="N", help="A limit to measure by: tokens, or `max`, the most so far."
)
@click.option("--order", type=click.Choice(["asc", "desc"]), default="asc", help="Oldest first (asc), or newest first.")
@click.option("--prices", multiple=True, metavar="FILE", help="A price file whose models are added or replace.")
@click.option("--shape", type=click.Choice(["ccusage"]), help="JSON in the shape of another program's.")
@click.option("--now", metavar="WHEN", hidden=True)
@click.option("--no-color", is_flag=True, help="No colours; NO_COLOR in the environment says the same.")
@timezone_option
@pager_option
@home_option
@jobs_option
@output_options
def blocks(
    *,
    only_active: bool,
    recent: bool,
    since: str | None,
    until: str | None,
    hours: int,
    limited: str | None,
    order: Literal["asc", "desc"],
    prices: tuple[str, ...],
    shape: str | None,
    now: str | None,
    no_color: bool,
    tz: str | None,
    pager: bool,
    homes: tuple[str, ...],
    jobs: int | None,
    output: str,
) -> int:
    """List the windows of five hours that limits count by, and the gaps between: tokens, amount, burn, projection.

    A window begins with the hour of its first charge. The share is of the biggest window that is over, or of the limit
    that is given. ccusage calls a window a block.
    """
    from datetime import timedelta

    from threadline.account import window_limit
    from threadline.cli import output as out
    from threadline.cli import screen
    from threadline.model.times import parse_moment, parse_zone

    if shape is not None and output not in {"table", "json"}:
        raise click.UsageError("--shape is JSON; leave --jsonl and --csv out.")
    here = parse_zone(tz)
    present = parse_moment(now or "now")
    start = parse_moment(since, now=present, zone=here) if since is not None else None
    end = parse_moment(until, now=present, end=True, zone=here) if until is not None else None
    ledger = _open_ledger(homes, prices, jobs)
    if ledger is None:
        return screen.report_nothing("No home, no windows.")
    every = ledger.windows(now=present, hours=hours)
    limit = window_limit(every, _parse_token_limit(limited), asked=limited is not None)
    if recent:
        begin = present - timedelta(days=_RECENT_DAYS)
        start = max(start, begin) if start is not None else begin
    shown = [one for one in every if _is_in_range(one, start, end) and (one.is_active or not only_active)]
    if order == "desc":
        shown.reverse()
    if shape is not None:
        _print_ccusage(shown, limit if limited is not None else None)
    elif output != "table":
        _print_windows(shown, limit, ledger, output, present)
    elif shown:
        coloured = screen.use_colour(wanted=not no_color)
        timeless = ledger.timeless
        lines = window_page(
            shown, limit, now=present, zone=here, width=out.terminal_width(), coloured=coloured, timeless=timeless
        )
        screen.print_lines(lines, coloured=coloured, pager=pager)
    return EXIT_OK if shown else screen.report_nothing(_explain_nothing(every, only_active=only_active))


def _open_ledger(homes: tuple[str, ...], prices: tuple[str, ...], jobs: int | None) -> Ledger | None:
    from threadline.account import load_rates
    from threadline.cli.resolve import open_archive
    from threadline.cli.screen import report_no_home

    table = load_rates(*prices)
    archive = click.get_current_context().with_resource(open_archive(homes, jobs))
    if not archive.homes:
        report_no_home()
        return None
    return archive.ledger(table)


def _parse_token_limit(text: str | None) -> int | None:
    """The limit that was given; None for that of the biggest window."""
    if text is None or text.strip().lower() == _MAX:
        return None
    digits = text.strip().replace(",", "").replace("_", "")
    if not (digits.isascii() and digits.isdecimal() and len(digits) < len("1" * 19) and int(digits)):
        raise click.UsageError(f"--limit-tokens is a number of tokens, or {_MAX}; {text!r} is neither.")
    return int(digits)


def _is_in_range(usage_window: UsageWindow, start: datetime | None, end: datetime | None) -> bool:
    """Whether a window began in a time; one that is running belongs to every time that is not over."""
    late = start is not None and usage_window.begins < start and not usage_window.is_active
    return not late and (end is None or usage_window.begins <= end)


def _print_ccusage(shown: list[UsageWindow], limit: WindowLimit | None) -> None:
    from threadline.cli import output as out
    from threadline.reports import ccusage_blocks

    out.print_json(ccusage_blocks(shown, limit=limit))


def _print_windows(
    shown: list[UsageWindow], limit: WindowLimit | None, ledger: Ledger, output: str, now: datetime
) -> None:
    from threadline.cli import output as out
    from threadline.model.totals import Sum, sum_fields

    rows = [_json_record(usage_window.record(limit)) for usage_window in shown]
    if output != "json":
        out.print_rows(rows, output)
        return
    total = Sum.of(usage_window.sum for usage_window in shown)
    out.print_json(
        {
            "total": _json_record({**sum_fields(total), "tokens": total.tokens}),
            "rows": rows,
            "limit": {"tokens": limit.tokens, "given": limit.is_given} if limit is not None else None,
            "now": now,
            "timeless": ledger.timeless,
            "prices": {"digest": ledger.rates.digest},
        }
    )


def _json_record(record: dict[str, Any]) -> dict[str, Any]:
    """A record for programs: amounts are strings without an exponent, so that no reader makes them floats."""
    from decimal import Decimal

    from threadline.cli import output as out
    from threadline.model.charges import format_decimal

    told = {name: format_decimal(one) if isinstance(one, Decimal) else one for name, one in record.items()}
    plain: dict[str, Any] = out.to_json_value(told)
    return plain


def _explain_nothing(every: list[UsageWindow], *, only_active: bool) -> str:
    spent = [usage_window for usage_window in every if not usage_window.is_gap]
    if not spent:
        return "No charges, so no windows."
    last = spent[-1]
    if only_active:
        return f"No window is active; the last one ended at {last.ends:%Y-%m-%d %H:%M} UTC."
    return f"No window of {len(spent):,} fits; the last one began at {last.begins:%Y-%m-%d %H:%M} UTC."


_GAP = "  "
_MIN_WIDTH_FOR_DIGITS = 110
_MIN_MODELS, _MAX_BAR = 12, 20
_WARNING_SHARE = Decimal("0.8")
_HOUR = timedelta(hours=1)
_NUMBER_COLUMNS = (3, 4, 5)


def window_page(
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
    lines = list(_table_lines(shown, limit, now, zone, width))
    running = next((usage_window for usage_window in shown if usage_window.is_active), None)
    if running is not None:
        lines += [(), *_active_window_lines(running, limit, zone, width)]
    lines += [(), *_footer(shown, limit, zone, width, timeless)]
    return map(style.line, lines)


def _table_lines(
    shown: Sequence[UsageWindow], limit: WindowLimit | None, now: datetime, zone: tzinfo, width: int
) -> Iterator[Spans]:
    roomy = width >= _MIN_WIDTH_FOR_DIGITS
    cells = [
        ("window", "", "models", "tokens", "USD", "share"),
        *(_window_cells(usage_window, limit, now, zone, roomy) for usage_window in shown),
    ]
    sizes = [max(display_width(row[at]) for row in cells) for at in range(len(cells[0]))]
    spare = width - sum(sizes) - len(_GAP) * (len(sizes) + 1)
    room = max(0, min(_MAX_BAR, max(spare, spare + sizes[2] - _MIN_MODELS if spare < 6 else 0)))  # noqa: PLR2004
    room = room if room >= 4 else 0  # noqa: PLR2004 - a shorter bar tells nothing
    sizes[2] = max(_MIN_MODELS, sizes[2] + min(0, spare - room))
    yield cut_line(_row_spans(cells[0], sizes, Role.FAINT), width)
    for one, row in zip(shown, cells[1:], strict=True):
        role = Role.FAINT if one.is_gap else Role.GOOD if one.is_active else Role.BODY
        drawn = padded_bar(float(limit.share(one.sum.tokens)), room) if limit is not None and not one.is_gap else ""
        yield cut_line((*_row_spans(row, sizes, role), Span(_GAP + drawn.rstrip(), _share_role(one, limit))), width)


def _window_cells(
    usage_window: UsageWindow, limit: WindowLimit | None, now: datetime, zone: tzinfo, roomy: bool
) -> tuple[str, ...]:
    begins = in_zone(usage_window.begins, zone).replace(tzinfo=None).isoformat(" ", "minutes")
    if usage_window.is_gap:
        return begins, f"gap {_format_duration(usage_window.duration)}", "", "", "", ""
    state = (
        f"{_format_duration(usage_window.ends - now)} left"
        if usage_window.is_active
        else _format_duration(usage_window.duration)
    )
    return (
        begins,
        state,
        plain(", ".join(dict.fromkeys(short_model_name(model) for model in usage_window.models))),
        f"{usage_window.sum.tokens:,}" if roomy else short_tokens(usage_window.sum.tokens),
        format_usd(usage_window.sum.amount),
        f"{limit.share(usage_window.sum.tokens):.0%}" if limit is not None else "",
    )


def _row_spans(cells: Sequence[str], sizes: Sequence[int], role: Role) -> Spans:
    spans = []
    for at, (cell, size) in enumerate(zip(cells, sizes, strict=True)):
        shown = clip(cell, size)
        space = " " * (size - display_width(shown))
        spans.append(Span(_GAP + (space + shown if at in _NUMBER_COLUMNS else shown + space), role))
    return tuple(spans)


def _share_role(usage_window: UsageWindow, limit: WindowLimit | None) -> Role:
    share = limit.share(usage_window.sum.tokens) if limit is not None else 0
    return Role.BAD if share > 1 else Role.NOTICE if share > _WARNING_SHARE else Role.GOOD


def _active_window_lines(
    usage_window: UsageWindow, limit: WindowLimit | None, zone: tzinfo, width: int
) -> Iterator[Spans]:
    burn, projection = usage_window.burn, usage_window.projection
    if burn is None or projection is None:
        yield from _wrapped_note("burn   One moment only, so no rate yet.", width, Role.BODY)
    else:
        hourly = f", {format_usd(burn.amount_per_hour)} USD an hour" if burn.amount_per_hour is not None else ""
        yield from _wrapped_note(
            f"burn   {burn.tokens_per_minute:,.0f} tokens a minute"
            f" ({burn.new_tokens_per_minute:,.0f} without the cache){hourly}",
            width,
            Role.BODY,
        )
        cost = f", {format_usd(projection.amount)} USD" if projection.amount is not None else ""
        yield from _wrapped_note(
            f"ahead  {projection.tokens:,} tokens{cost} by {in_zone(usage_window.ends, zone):%H:%M}, going on so",
            width,
            Role.BODY,
        )
    if limit is not None and limit.is_given:
        left = max(0, limit.tokens - usage_window.sum.tokens)
        projected = projection.tokens if projection is not None else usage_window.sum.tokens
        status = limit.status(projected)
        role = {"exceeds": Role.BAD, "warning": Role.NOTICE}.get(status, Role.GOOD)
        leads = {"exceeds": "going on so exceeds it", "warning": "going on so comes near it"}.get(status, "enough")
        yield from _wrapped_note(f"limit  {limit.tokens:,} tokens: {left:,} left; {leads}", width, role)


def _footer(
    shown: Sequence[UsageWindow], limit: WindowLimit | None, zone: tzinfo, width: int, timeless: int
) -> Iterator[Spans]:
    spent = [usage_window for usage_window in shown if not usage_window.is_gap]
    whole = Sum.of(usage_window.sum for usage_window in spent)
    told = f"{count(len(spent), 'window')}: {whole.tokens:,} tokens, {format_usd(whole.amount) or 'no'} USD."
    if limit is not None:
        of = "the limit" if limit.is_given else "the biggest window that is over"
        told += f" The share is of {of}, {limit.tokens:,} tokens."
    yield from _wrapped_note(f"{told} Times are {zone_name(zone)}.", width)
    if whole.unpriced:
        yield from _wrapped_note(
            f"{count(whole.unpriced, 'charge')} without a price: their amount is missing.", width, Role.NOTICE
        )
    if timeless:
        yield from _wrapped_note(f"{count(timeless, 'charge')} without a time: in no window.", width, Role.NOTICE)


def _wrapped_note(text: str, width: int, role: Role = Role.FAINT) -> Iterator[Spans]:
    return wrap((Span(text, role),), width, first=(Span(_GAP),), rest=(Span(_GAP),))


def _format_duration(duration: timedelta) -> str:
    """`40m`, `3h 20m`, `43h`, `12d`: no seconds, which no limit counts."""
    minutes = max(0, duration // timedelta(minutes=1))
    if minutes < 60:  # noqa: PLR2004 - minutes of an hour
        return f"{minutes}m"
    if duration < 24 * _HOUR:
        return f"{minutes // 60}h {minutes % 60:02d}m"
    return f"{duration // _HOUR}h" if duration < 100 * _HOUR else f"{duration.days:,}d"


def format_usd(amount: Decimal | None) -> str:
    """An amount in whole cents; nothing where it is not known."""
    return f"{amount:,.2f}" if amount is not None else ""
