"""`threadline explain`: the receipt of a session, a message, a day or a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from threadline.cli import FOUND, NOTHING
from threadline.cli.options import home_option, jobs_option, output_options
from threadline.cli.screen import pager_option
from threadline.cli.zone import zone_option

if TYPE_CHECKING:
    from datetime import tzinfo

    from threadline.model.receipt import Receipt

_SHOWN = 20
_EPILOG = """
\b
Examples:
  threadline explain last                     the session of last use
  threadline explain 55604662 --all           every message of a session
  threadline explain msg_01XFDUDYJg           one message, by the start of its id
  threadline explain 55604662:17              the message that a line belongs to
  threadline explain yesterday --tz UTC       a day
  threadline explain last --json              exact, for a program
"""


@click.command(epilog=_EPILOG)
@click.argument("what", default="last")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"Show no more than this many messages; by default {_SHOWN}. The sum is always of all.",
)
@click.option("--all", "everything", is_flag=True, help="Show every message.")
@click.option(
    "--prices",
    "files",
    multiple=True,
    metavar="FILE",
    help="A price file, ours or LiteLLM's, whose models are added or replace; may be given several times.",
)
@zone_option
@click.option("--no-color", is_flag=True, help="No colours; NO_COLOR in the environment says the same.")
@pager_option
@home_option
@jobs_option
@output_options
def explain(
    what: str,
    *,
    limit: int | None,
    everything: bool,
    files: tuple[str, ...],
    tz: str | None,
    no_color: bool,
    pager: bool,
    homes: tuple[str, ...],
    jobs: int | None,
    output: str,
) -> int:
    """Show how an amount came to be: each message, every line that tells of it, which one counted, and the sum.

    WHAT is a session (the start of its id, a transcript, `last`), a message's id or its start, a day (2026-11-03,
    today, yesterday), or a place (FILE:LINE). Every message of all homes is counted once, so that a session's receipt
    also names those that it only has copies of; they are not in its sum. Ends with what is known to be missing.
    """
    from threadline.account.rates import rates
    from threadline.cli import screen
    from threadline.cli.opening import archive_of
    from threadline.cli.question import question
    from threadline.cli.reading import say_no_home
    from threadline.model.zone import zone as zone_of
    from threadline.survey.ledger import ledger_of
    from threadline.survey.receipts import receipt

    if limit is not None and everything:
        raise click.UsageError("Give --limit or --all, not both.")
    zone, table = zone_of(tz), rates(*files)
    with archive_of(homes, jobs) as archive:
        wanted = question(what, archive, zone)
        if not wanted.found:
            say_no_home()
            return NOTHING
        is_whole = wanted.found is archive.found
        ledger = archive.ledger(table) if is_whole else ledger_of(wanted.found, table, jobs=jobs)
        made = receipt(ledger, wanted.asked(ledger), wanted.found)
    if output != "table":
        _print(made, output)
    elif made.items:
        _show(made, None if everything else limit or _SHOWN, zone, coloured=not no_color, pager=pager)
    if made.items:
        return FOUND
    return screen.nothing(f"Nothing was spent: no line tells the usage of a message of {made.kind} {made.name!r}.")


def _print(made: Receipt, output: str) -> None:
    from threadline.cli import output as out
    from threadline.cli.receipt_rows import document, line_rows

    if output == "json":
        out.print_json(document(made))
    else:
        out.print_rows(line_rows(made), output)


def _show(made: Receipt, limit: int | None, zone: tzinfo, *, coloured: bool, pager: bool) -> None:
    from threadline.cli import screen
    from threadline.cli.places import short_path
    from threadline.render.receipt import draw

    use = screen.colour(wanted=coloured)
    lines = draw(made, screen.width(), colour=use, limit=limit, path=short_path, zone=zone)
    screen.show_lines(lines, coloured=use, pager=pager)
