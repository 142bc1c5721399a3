"""`threadline why`: what a session's cost was caused by."""

from __future__ import annotations

from collections.abc import Sequence

import click

from threadline.cli import EXIT_OK
from threadline.cli import output as out
from threadline.cli.options import complete_with, home_option, output_options
from threadline.cli.resolve import read_session
from threadline.insight import GROUP_KEYS, CauseGroup, attribute_costs, attribution_record, group_rows
from threadline.model.attribution import Attribution, CauseKind, CostCause
from threadline.model.session import Session
from threadline.model.text import count, format_amount, format_tokens

_DEFAULT_LIMIT = 20
_EPILOG = """
\b
Examples:
  threadline why                      the newest session
  threadline why 55604662 --by tool   what each tool cost, with its results
  threadline why last --by file       which files were expensive to read
  threadline why last --limit 0       every cause
  threadline why last --json          rows that sum to the amount exactly
"""


@click.command(epilog=_EPILOG)
@click.argument("session", default="last", shell_complete=complete_with("sessions"))
@click.option("--by", type=click.Choice(list(GROUP_KEYS)), help="Add up the causes by this key.")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=_DEFAULT_LIMIT,
    show_default=True,
    metavar="N",
    help="Show at most this many rows in the table; 0 shows all. Other outputs have every row.",
)
@home_option
@output_options
def why(session: str, *, by: str | None, limit: int, homes: tuple[str, ...], output: str) -> int:
    """Show what made a session expensive.

    Distributes every dollar of a session over what caused it. Each prompt, result, reply, injected text and the system
    prompt pays for being sent, for every later request that carried it, and for being sent again after a cache break.
    Replies also pay for being written. The rows sum to the cost of the session exactly.

    SESSION is the start of a session id, a transcript, or `last`. A size marked ~ is an estimate, scaled to the
    measured window.
    """
    loaded = read_session(session, homes)
    attribution = attribute_costs(loaded, loaded.ledger)
    groups = group_rows(attribution.rows, by) if by is not None else None
    document = attribution_record(attribution, by)
    rows = document["rows"]
    if output == "json":
        out.print_json(document)
    elif output != "table":
        out.print_rows(rows, output)
    elif attribution.rows:
        shown = limit or max(len(rows), 1)
        table = (
            _group_table(groups[:shown], by or "") if groups is not None else _table(loaded, attribution.rows[:shown])
        )
        footer = out.wrap_text(_footer(attribution, len(rows), min(shown, len(rows))))
        out.print_text(f"{table}\n\n{footer}\n")
    if attribution.rows:
        return EXIT_OK
    if loaded.sharing or loaded.continuations:
        return out.report_nothing("No cost of its own: its messages are counted in the session that it is a copy of.")
    return out.report_nothing("No cost: no model with a known price replied in this session.")


def _table(session: Session, rows: Sequence[CostCause]) -> str:
    cells = [
        (
            format_amount(row.amount),
            ("~" if row.estimated else "") + format_tokens(row.tokens),
            f"{row.requests:,}",
            str(row.turn) if row.turn is not None else "",
            out.format_place(session, row.place),
            row.label + (f" (agent {row.agent[:8]})" if row.agent and row.kind is not CauseKind.AGENT else ""),
        )
        for row in rows
    ]
    return out.format_table(("amount", "tokens", "requests", "turn", "line", "cause"), cells, right=(0, 1, 2, 3, 4))


def _group_table(groups: Sequence[CauseGroup], by: str) -> str:
    cells = [
        (format_amount(group.amount), format_tokens(group.tokens), f"{group.causes:,}", group.key) for group in groups
    ]
    return out.format_table(("amount", "tokens", "causes", by), cells, right=(0, 1, 2))


def _footer(attribution: Attribution, total: int, shown: int) -> str:
    parts = [f"{format_amount(attribution.amount)} in all"]
    if shown < total:
        parts.append(f"{count(total - shown, 'more row')}: --limit 0 shows them")
    if attribution.error is not None and any(row.estimated for row in attribution.rows):
        parts.append(f"estimated sizes differ from measured ones by {attribution.error:.0%} on average")
    if attribution.unpriced:
        parts.append(f"{count(attribution.unpriced, 'request')} without a known price not included")
    return "; ".join(parts) + "."
