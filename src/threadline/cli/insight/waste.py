"""`threadline waste`: what a session spent without need."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import click

from threadline.cli import output as out
from threadline.cli.options import complete_with, home_option, output_options
from threadline.cli.output import print_listing
from threadline.cli.resolve import read_session
from threadline.insight import DETECTORS, SessionFacts, add_amounts, find_waste, waste_record
from threadline.model.session import Session
from threadline.model.text import format_amount, format_tokens
from threadline.model.waste import Waste, WasteLimits

_DEFAULTS = WasteLimits()
_EPILOG = """
\b
Examples:
  threadline waste                    the newest session
  threadline waste last --only cache-break
  threadline waste last --min 0.50    only what cost at least 50 cents
  threadline waste last --json        with places, evidence and advice
"""


@click.command(epilog=_EPILOG)
@click.argument("session", default="last", shell_complete=complete_with("sessions"))
@click.option(
    "--only",
    "detectors",
    multiple=True,
    metavar="DETECTOR",
    type=click.Choice(list(DETECTORS)),
    help=f"Run only this detector; may be used several times. Default: all of {', '.join(DETECTORS)}.",
)
@click.option(
    "--min",
    "min_amount",
    type=click.FloatRange(min=0),
    default=float(_DEFAULTS.min_amount),
    show_default=True,
    metavar="USD",
    help="Leave out what cost less.",
)
@click.option(
    "--large-output",
    type=click.IntRange(min=1),
    default=_DEFAULTS.large_output,
    show_default=True,
    metavar="TOKENS",
    help="Size from which an output counts as large.",
)
@home_option
@output_options
def waste(
    session: str,
    *,
    detectors: tuple[str, ...],
    min_amount: float,
    large_output: int,
    homes: tuple[str, ...],
    output: str,
) -> int:
    """Show what a session spent without need.

    Finds cache breaks, files read again unchanged, repeated commands, large outputs that nothing refers to, failed,
    refused and interrupted calls, abandoned branches, agents without a result, and MCP tools that were never called.
    Each finding has its places, what it cost, and what to do about it. Findings may overlap, so their sum can count
    something twice.

    SESSION is the start of a session id, a transcript, or `last`.
    """
    loaded = read_session(session, homes)
    limits = WasteLimits(large_output, Decimal(str(min_amount)))
    found = find_waste(SessionFacts(loaded, loaded.ledger), limits, detectors)
    return print_listing(
        found,
        output,
        row=waste_record,
        table=lambda rows: _table(loaded, rows),
        nothing=lambda: (
            f"Nothing that cost at least {format_amount(limits.min_amount)}. --min 0 shows smaller findings."
        ),
    )


def _table(session: Session, findings: Sequence[Waste]) -> str:
    cells = [
        (
            format_amount(finding.amount),
            ("~" if finding.estimated else "") + format_tokens(finding.tokens),
            finding.detector,
            str(finding.turn) if finding.turn is not None else "",
            out.format_place(session, finding.places[0] if finding.places else None),
            finding.label,
        )
        for finding in findings
    ]
    table = out.format_table(("amount", "tokens", "detector", "turn", "line", "what"), cells, right=(0, 1, 3, 4))
    return "\n".join([table, "", *_advice(findings)])


def _advice(findings: Sequence[Waste]) -> list[str]:
    """What to do, once for each advice, the most expensive first."""
    totals = {
        advice: add_amounts(finding.amount for finding in findings if finding.advice == advice)
        for advice in {finding.advice: None for finding in findings}
    }
    return [
        out.wrap_text(advice, f"{format_amount(total)}: ")
        for advice, total in sorted(totals.items(), key=lambda item: -item[1])
    ]
