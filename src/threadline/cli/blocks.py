"""`threadline blocks`: windows of five hours, as limits count them, with burn and projection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import click

from threadline.cli import FOUND
from threadline.cli.options import home_option, jobs_option, output_options
from threadline.cli.screen import pager_option
from threadline.cli.zone import zone_option

if TYPE_CHECKING:
    from datetime import datetime

    from threadline.account.ledger import Ledger
    from threadline.model.window import UsageWindow, WindowLimit

_RECENT_DAYS = 3
_LONGEST = 720
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
@click.option("--hours", type=click.IntRange(1, _LONGEST), default=5, metavar="N", help="How long a window is; 5.")
@click.option(
    "--limit-tokens", "limited", metavar="N", help="A limit to measure by: tokens, or `max`, the most so far."
)
@click.option("--order", type=click.Choice(["asc", "desc"]), default="asc", help="Oldest first (asc), or newest first.")
@click.option("--prices", multiple=True, metavar="FILE", help="A price file whose models are added or replace.")
@click.option("--shape", type=click.Choice(["ccusage"]), help="JSON in the shape of another program's.")
@click.option("--now", metavar="WHEN", hidden=True)
@click.option("--no-color", is_flag=True, help="No colours; NO_COLOR in the environment says the same.")
@zone_option
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

    from threadline.account.windows import limit_of
    from threadline.cli import output as out
    from threadline.cli import screen
    from threadline.cli.when import moment
    from threadline.model.zone import zone

    if shape is not None and output not in {"table", "json"}:
        raise click.UsageError("--shape is JSON; leave --jsonl and --csv out.")
    here = zone(tz)
    present = moment(now or "now")
    start = moment(since, now=present, zone=here) if since is not None else None
    end = moment(until, now=present, end=True, zone=here) if until is not None else None
    ledger = _ledger(homes, prices, jobs)
    if ledger is None:
        return screen.nothing("No home, no windows.")
    every = ledger.windows(now=present, hours=hours)
    limit = limit_of(every, _tokens(limited), asked=limited is not None)
    if recent:
        begin = present - timedelta(days=_RECENT_DAYS)
        start = max(start, begin) if start is not None else begin
    shown = [one for one in every if _fits(one, start, end) and (one.is_active or not only_active)]
    if order == "desc":
        shown.reverse()
    if shape is not None:
        _print_shape(shown, limit if limited is not None else None)
    elif output != "table":
        _print(shown, limit, ledger, output, present)
    elif shown:
        from threadline.cli.blocks_page import page

        coloured = screen.colour(wanted=not no_color)
        timeless = ledger.timeless
        lines = page(
            shown, limit, now=present, zone=here, width=out.terminal_width(), coloured=coloured, timeless=timeless
        )
        screen.show_lines(lines, coloured=coloured, pager=pager)
    return FOUND if shown else screen.nothing(_why(every, only_active=only_active))


def _ledger(homes: tuple[str, ...], prices: tuple[str, ...], jobs: int | None) -> Ledger | None:
    from threadline.account.rates import rates
    from threadline.cli.opening import archive_of
    from threadline.cli.reading import say_no_home

    table = rates(*prices)
    archive = click.get_current_context().with_resource(archive_of(homes, jobs))
    if not archive.homes:
        say_no_home()
        return None
    return archive.ledger(table)


def _tokens(text: str | None) -> int | None:
    """The limit that was given; None for that of the biggest window."""
    if text is None or text.strip().lower() == _MAX:
        return None
    digits = text.strip().replace(",", "").replace("_", "")
    if not (digits.isascii() and digits.isdecimal() and len(digits) < len("1" * 19) and int(digits)):
        raise click.UsageError(f"--limit-tokens is a number of tokens, or {_MAX}; {text!r} is neither.")
    return int(digits)


def _fits(one: UsageWindow, start: datetime | None, end: datetime | None) -> bool:
    """Whether a window began in a time; one that is running belongs to every time that is not over."""
    late = start is not None and one.begins < start and not one.is_active
    return not late and (end is None or one.begins <= end)


def _print_shape(shown: list[UsageWindow], limit: WindowLimit | None) -> None:
    from threadline.account.ccusage import blocks_document
    from threadline.cli import output as out

    out.print_json(blocks_document(shown, limit=limit))


def _print(shown: list[UsageWindow], limit: WindowLimit | None, ledger: Ledger, output: str, now: datetime) -> None:
    from threadline.cli import output as out
    from threadline.model.sum import Sum, figures

    rows = [_plain(one.record(limit)) for one in shown]
    if output != "json":
        out.print_rows(rows, output)
        return
    total = Sum.of(one.sum for one in shown)
    out.print_json(
        {
            "total": _plain({**figures(total), "tokens": total.tokens}),
            "rows": rows,
            "limit": {"tokens": limit.tokens, "given": limit.is_given} if limit is not None else None,
            "now": now,
            "timeless": ledger.timeless,
            "prices": {"digest": ledger.rates.digest},
        }
    )


def _plain(record: dict[str, Any]) -> dict[str, Any]:
    """A record for programs: amounts are strings without an exponent, so that no reader makes them floats."""
    from decimal import Decimal

    from threadline.cli import output as out
    from threadline.model.rate import plain_number

    told = {name: plain_number(one) if isinstance(one, Decimal) else one for name, one in record.items()}
    plain: dict[str, Any] = out.to_plain(told)
    return plain


def _why(every: list[UsageWindow], *, only_active: bool) -> str:
    spent = [one for one in every if not one.is_gap]
    if not spent:
        return "No charges, so no windows."
    last = spent[-1]
    if only_active:
        return f"No window is active; the last one ended at {last.ends:%Y-%m-%d %H:%M} UTC."
    return f"No window of {len(spent):,} fits; the last one began at {last.begins:%Y-%m-%d %H:%M} UTC."
