"""`threadline blocks`: five-hour usage windows with burn rate and projection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal
from typing import Any, Literal

import click
from msgspec.structs import replace

from threadline.account import Ledger, load_rates, window_limit
from threadline.cli import EXIT_OK
from threadline.cli import output as out
from threadline.cli.options import (
    WholeNumber,
    colour_option,
    home_option,
    jobs_option,
    limit_option,
    output_options,
    pager_option,
    prices_option,
    since_option,
    timezone_option,
    until_option,
)
from threadline.cli.resolve import open_archive
from threadline.model.ledger import Sum, UsageWindow, WindowLimit, sum_fields
from threadline.model.text import (
    count,
    format_amount,
    format_duration,
    format_percent,
    format_time,
    format_tokens,
    short_model_name,
)
from threadline.model.times import TimeRange, parse_moment, zone_name
from threadline.render import (
    Role,
    Span,
    Spans,
    Style,
    cut_line,
    display_width,
    dropped_note,
    fit_columns,
    padded_bar,
    plain,
)
from threadline.reports import ccusage_blocks

_RECENT_DAYS = 3
_MAX_HOURS = 720
_MAX = "max"
_EPILOG = """
\b
Examples:
  threadline blocks                              all windows and gaps
  threadline blocks --active                     the current window
  threadline blocks --recent --tz Europe/Berlin  last three days, Berlin time
  threadline blocks --active --limit-tokens max  against the largest window
  threadline blocks --json                       exact, for a program
  threadline blocks --shape ccusage              as ccusage blocks --json
"""


@click.command(epilog=_EPILOG)
@click.option("--active", "only_active", is_flag=True, help="Only the current window.")
@click.option("--recent", is_flag=True, help=f"Only windows that started in the last {_RECENT_DAYS} days.")
@since_option("Only windows that started at or after WHEN: 2026-11-03, 7d, yesterday.")
@until_option("Only windows that started up to WHEN.")
@click.option(
    "--hours", type=WholeNumber(1, _MAX_HOURS), default=5, metavar="N", help="Length of a window. Default: 5."
)
@click.option(
    "--limit-tokens", metavar="N", help="Token limit to compare with, or `max` for the largest window so far."
)
@click.option(
    "--order",
    type=click.Choice(["asc", "desc"]),
    default="asc",
    help="Order of windows: asc (oldest first) or desc. Default: asc.",
)
@limit_option("Show at most the newest N windows. Default: all.")
@prices_option
@click.option("--shape", type=click.Choice(["ccusage"]), help="Print ccusage's JSON.")
@click.option("--now", metavar="WHEN", hidden=True)
@colour_option
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
    limit_tokens: str | None,
    order: Literal["asc", "desc"],
    limit: int | None,
    price_files: tuple[str, ...],
    shape: str | None,
    now: str | None,
    colour: bool,
    zone: tzinfo,
    pager: bool,
    homes: tuple[str, ...],
    jobs: int | None,
    output: str,
) -> int:
    """List the five-hour windows that usage limits apply to.

    Shows tokens, amount, burn rate and projection, and the gaps between windows. A window starts at the full hour of
    its first charge. ccusage calls a window a block. The share is of the largest finished window, or of --limit-tokens.
    """
    if shape is not None and output not in {"table", "json"}:
        raise click.UsageError("--shape prints JSON; it cannot be combined with --jsonl or --csv.")
    present = parse_moment(now or "now", tz=UTC)
    time = TimeRange.parse(since, until, now=present, tz=zone)
    if recent:
        start = present - timedelta(days=_RECENT_DAYS)
        time = TimeRange(max(time.since, start) if time.since is not None else start, time.until)
    rates = load_rates(*price_files)
    archive = click.get_current_context().with_resource(open_archive(homes, jobs, require_home=True))
    ledger = archive.ledger(rates)
    windows = ledger.windows(now=present, hours=hours)
    token_limit = window_limit(windows, _parse_token_limit(limit_tokens), is_given=limit_tokens is not None)
    rows = windows if shape is not None or output != "table" else list(_clip_gaps(windows))
    shown = [window for window in rows if _is_in_time(window, time) and (window.is_active or not only_active)]
    if limit is not None:
        shown = _newest(shown, limit)
    if order == "desc":
        shown.reverse()
    if shape is not None:
        out.print_json(ccusage_blocks(shown, limit=token_limit if limit_tokens is not None else None))
    elif output == "json":
        out.print_json(_window_document(shown, token_limit, ledger, present))
    elif output != "table":
        out.print_rows((out.json_record(window.record(token_limit)) for window in shown), output)
    elif shown:
        colour = out.use_colour(enabled=colour)
        lines = window_page(
            shown,
            token_limit,
            now=present,
            zone=zone,
            width=out.terminal_width(),
            colour=colour,
            timeless=ledger.timeless,
        )
        out.print_lines(lines, colour=colour, pager=pager)
    return EXIT_OK if shown else out.report_nothing(_explain_nothing(windows, zone, only_active=only_active))


def _newest(windows: Sequence[UsageWindow], limit: int) -> list[UsageWindow]:
    """The last `limit` windows, with the gaps between them."""
    positions = [position for position, window in enumerate(windows) if not window.is_gap]
    return list(windows[positions[-limit] :]) if len(positions) > limit else list(windows)


def _clip_gaps(windows: Sequence[UsageWindow]) -> Iterator[UsageWindow]:
    """The windows for a table, oldest first: a gap ends where the next window begins, which is on the hour.

    A gap that would begin after that is left out.
    """
    for at, window in enumerate(windows):
        if not window.is_gap:
            yield window
        elif window.begins < (ends := windows[at + 1].begins):
            yield replace(window, ends=ends)


def _parse_token_limit(text: str | None) -> int | None:
    """The limit; None for that of the largest window."""
    if text is None or text.strip().lower() == _MAX:
        return None
    digits = text.strip().replace(",", "").replace("_", "")
    if not (digits.isascii() and digits.isdecimal() and len(digits) < len("1" * 19) and int(digits)):
        raise click.UsageError(f"--limit-tokens must be a number of tokens or {_MAX!r}, not {text!r}.")
    return int(digits)


def _is_in_time(window: UsageWindow, time: TimeRange) -> bool:
    """Whether a window started in the time range; the active one only has to start before its end."""
    return window.begins in (TimeRange(None, time.until) if window.is_active else time)


def _window_document(
    windows: list[UsageWindow], limit: WindowLimit | None, ledger: Ledger, now: datetime
) -> dict[str, Any]:
    total = Sum.of(window.sum for window in windows)
    return {
        "total": out.json_record({**sum_fields(total), "tokens": total.tokens}),
        "rows": [out.json_record(window.record(limit)) for window in windows],
        "limit": {"tokens": limit.tokens, "given": limit.is_given} if limit is not None else None,
        "now": now,
        "timeless": ledger.timeless,
        "prices": {"digest": ledger.price_digest},
    }


def _explain_nothing(windows: list[UsageWindow], zone: tzinfo, *, only_active: bool) -> str:
    used = [window for window in windows if not window.is_gap]
    if not used:
        return "No windows: there are no charges."
    last = used[-1]
    if only_active:
        return f"No window is active. The last one ended at {format_time(last.ends, zone)} ({zone_name(zone)})."
    started = f"{format_time(last.begins, zone)} ({zone_name(zone)})"
    return f"None of {count(len(used), 'window')} matches. The last one started at {started}."


_MIN_MODELS, _MIN_BAR, _MAX_BAR = 12, 4, 20
_WARNING_SHARE = Decimal("0.8")
_NUMBER_COLUMNS = ("tokens", "amount", "share")


def window_page(
    shown: Sequence[UsageWindow],
    limit: WindowLimit | None,
    *,
    now: datetime,
    zone: tzinfo,
    width: int,
    colour: bool,
    timeless: int = 0,
) -> Iterator[str]:
    """The table of windows, the projection of the active one, the total, and what it does not include."""
    style = Style(colour=colour)
    lines = list(_table_lines(shown, limit, now, zone, width))
    active = next((window for window in shown if window.is_active), None)
    if active is not None:
        lines += [(), *_active_window_lines(active, limit, zone, width)]
    lines += [(), *_footer(shown, limit, zone, width, timeless)]
    return map(style.line, lines)


def _table_lines(
    shown: Sequence[UsageWindow], limit: WindowLimit | None, now: datetime, zone: tzinfo, width: int
) -> Iterator[Spans]:
    headings = ("window", "", "models", "tokens", "amount", "share")
    cells = [headings, *(_window_cells(window, limit, now, zone) for window in shown)]
    widths = {name: max(display_width(row[at]) for row in cells) for at, name in enumerate(headings)}
    least = {**widths, "models": min(widths["models"], _MIN_MODELS)}
    fitting = fit_columns(least, ("models",), width, gap=len(out.GAP))  # times and figures matter more
    spare = width - sum(widths[name] for name in fitting) - len(out.GAP) * (len(fitting) + 1)
    shrinkable = widths["models"] - least["models"] if "models" in fitting else 0
    bar = max(spare, spare + shrinkable if spare < _MIN_BAR + len(out.GAP) else 0)
    bar = min(_MAX_BAR, bar) if bar >= _MIN_BAR else 0
    widths["models"] -= min(shrinkable, max(0, bar - spare))
    rows = [{name: row[at] for at, name in enumerate(headings) if name in fitting} for row in cells]
    yield cut_line(_row_spans(rows[0], widths, Role.FAINT), width)
    for window, row in zip(shown, rows[1:], strict=True):
        role = Role.FAINT if window.is_gap else Role.GOOD if window.is_active else Role.BODY
        has_bar = limit is not None and not window.is_gap
        bar_text = padded_bar(float(limit.share(window.sum.tokens)), bar) if limit is not None and has_bar else ""
        share = Span(out.GAP + bar_text.rstrip(), _share_role(window, limit))
        yield cut_line((*_row_spans(row, widths, role), share), width)
    if "models" not in fitting:
        yield ()
        yield from out.wrap_note(dropped_note(["models"]), width)


def _window_cells(window: UsageWindow, limit: WindowLimit | None, now: datetime, zone: tzinfo) -> tuple[str, ...]:
    begins = format_time(window.begins, zone)
    if window.is_gap:
        return begins, f"gap {format_duration(window.duration, seconds=False)}", "", "", "", ""
    remaining = f"{format_duration(window.ends - now, seconds=False)} left"
    return (
        begins,
        remaining if window.is_active else format_duration(window.duration, seconds=False),
        plain(", ".join(dict.fromkeys(short_model_name(model) for model in window.models))),
        format_tokens(window.sum.tokens),
        format_amount(window.sum.amount),
        format_percent(limit.share(window.sum.tokens)) if limit is not None else "",
    )


def _row_spans(row: Mapping[str, str], widths: Mapping[str, int], role: Role) -> Spans:
    numbers = [at for at, name in enumerate(row) if name in _NUMBER_COLUMNS]
    cells = out.pad_cells(list(row.values()), [widths[name] for name in row], numbers)
    return tuple(Span(cell, role) for cell in cells)


def _share_role(window: UsageWindow, limit: WindowLimit | None) -> Role:
    share = limit.share(window.sum.tokens) if limit is not None else 0
    return Role.BAD if share > 1 else Role.NOTICE if share > _WARNING_SHARE else Role.GOOD


def _active_window_lines(window: UsageWindow, limit: WindowLimit | None, zone: tzinfo, width: int) -> Iterator[Spans]:
    burn, projection = window.burn, window.projection
    if burn is None or projection is None:
        yield from out.wrap_note("burn   No rate yet: all usage so far is from a single moment.", width, Role.BODY)
    else:
        hourly = f", {format_amount(burn.amount_per_hour)} per hour" if burn.amount_per_hour is not None else ""
        yield from out.wrap_note(
            f"burn   {format_tokens(round(burn.tokens_per_minute))} tokens per minute"
            f" ({format_tokens(round(burn.new_tokens_per_minute))} without the cache){hourly}",
            width,
            Role.BODY,
        )
        cost = f", {format_amount(projection.amount)}" if projection.amount is not None else ""
        ends = format_time(window.ends, zone, "%H:%M")
        yield from out.wrap_note(
            f"ahead  {format_tokens(projection.tokens)} tokens{cost} by {ends} at this rate", width, Role.BODY
        )
    if limit is not None and limit.is_given:
        left = max(0, limit.tokens - window.sum.tokens)
        projected = projection.tokens if projection is not None else window.sum.tokens
        status = limit.status(projected)
        role = {"exceeds": Role.BAD, "warning": Role.NOTICE}.get(status, Role.GOOD)
        outlook = {"exceeds": "this rate exceeds it", "warning": "this rate comes close to it"}.get(status, "enough")
        yield from out.wrap_note(
            f"limit  {format_tokens(limit.tokens)} tokens: {format_tokens(left)} left; {outlook}", width, role
        )


def _footer(
    shown: Sequence[UsageWindow], limit: WindowLimit | None, zone: tzinfo, width: int, timeless: int
) -> Iterator[Spans]:
    used = [window for window in shown if not window.is_gap]
    total = Sum.of(window.sum for window in used)
    amount = format_amount(total.amount) or "no known price"
    summary = f"{count(len(used), 'window')}: {format_tokens(total.tokens)} tokens, {amount}."
    if limit is not None:
        reference = "the limit" if limit.is_given else "the largest finished window"
        summary += f" The share is of {reference}, {format_tokens(limit.tokens)} tokens."
    yield from out.wrap_note(f"{summary} Times are {zone_name(zone)}.", width)
    if total.unpriced:
        note = f"{count(total.unpriced, 'charge')} without a price: their amount is not included."
        yield from out.wrap_note(note, width, Role.NOTICE)
    if timeless:
        yield from out.wrap_note(f"{count(timeless, 'charge')} without a time: not in any window.", width, Role.NOTICE)
