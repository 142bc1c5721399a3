"""`threadline waste`: avoidable costs in a session, or in all sessions of a period."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo
from decimal import Decimal
from typing import TYPE_CHECKING

import click

from threadline.cli import output as out
from threadline.cli.filters import explain_project
from threadline.cli.insight.period import (
    Period,
    default_limit,
    format_share,
    format_where,
    insight_options,
    place_headings,
    turn_cell,
    with_session_heading,
)
from threadline.cli.options import Number
from threadline.cli.resolve import open_session
from threadline.insight import waste_record
from threadline.model.context import BreakCause
from threadline.model.insight.waste import DETECTOR_NAMES, Waste, WasteLimits, WasteList
from threadline.model.ledger import sum_amounts
from threadline.model.text import count, format_amount, format_tokens
from threadline.render import clip_path

if TYPE_CHECKING:
    from threadline.model.session import Session

_DEFAULTS = WasteLimits()
_EPILOG = """
\b
Examples:
  threadline waste                    the newest session
  threadline waste --since 7d         all sessions of the last seven days
  threadline waste last --only cache-break
  threadline waste last --min 0.50    only what cost at least 50 cents
  threadline waste last --json        with places, evidence and advice
"""


@click.command(epilog=_EPILOG)
@click.option(
    "--only",
    "detectors",
    multiple=True,
    metavar="DETECTOR",
    type=click.Choice(DETECTOR_NAMES),
    help=f"Run only this detector: {', '.join(DETECTOR_NAMES)}. Repeatable. Default: all.",
)
@click.option(
    "--min",
    "min_amount",
    type=Number(min=0),
    default=float(_DEFAULTS.min_amount),
    metavar="USD",
    help=f"Only findings that cost at least this much. Default: {float(_DEFAULTS.min_amount)}.",
)
@click.option(
    "--min-tokens",
    type=click.IntRange(min=0),
    default=_DEFAULTS.min_tokens,
    metavar="TOKENS",
    help=f"Only findings that added at least this many tokens. Default: {_DEFAULTS.min_tokens}.",
)
@click.option(
    "--large-output",
    type=click.IntRange(min=1),
    default=_DEFAULTS.large_output,
    metavar="TOKENS",
    help=f"An output of at least this size is large. Default: {_DEFAULTS.large_output}.",
)
@click.option(
    "--repeats",
    type=click.IntRange(min=2),
    default=_DEFAULTS.repeats,
    metavar="N",
    help=f"Only files that were read, and commands that were run, at least N times. Default: {_DEFAULTS.repeats}.",
)
@insight_options
def waste(
    session: str | None,
    *,
    detectors: tuple[str, ...],
    min_amount: float,
    min_tokens: int,
    large_output: int,
    repeats: int,
    since: str | None,
    until: str | None,
    project: str | None,
    zone: tzinfo,
    price_files: tuple[str, ...],
    limit: int | None,
    homes: tuple[str, ...],
    jobs: int | None,
    output: str,
) -> int:
    """Show avoidable costs in a session, or in all sessions of a period.

    Finds cache breaks, files read again unchanged, repeated commands, large outputs that nothing refers to, failed,
    refused and interrupted calls, abandoned branches, agents without a result, and MCP tools that were never called.
    Each finding has its places, what it cost, and what to do about it. Findings may overlap, so their sum can count
    something twice.

    SESSION is the start of a session id, a transcript, or `last`, the default. A period counts what was paid in it,
    even if the cause is older.
    """
    period = Period.parse(session, since, until, project, zone, price_files, homes, jobs)
    limits = WasteLimits(large_output, Decimal(str(min_amount)), min_tokens, repeats)
    loaded = reason = None
    if period.is_across_sessions:
        with period.open() as (archive, arguments):
            findings = archive.waste(detectors=detectors, limits=limits, **arguments)
            reason = None if findings else explain_project(archive, project)
    else:
        with open_session(session or "last", homes) as (loaded, archive):
            findings = archive.session_waste(loaded, detectors=detectors, limits=limits, prices=period.rates)
    return out.print_listing(
        findings[: default_limit(limit, output)],
        output,
        row=waste_record,
        table=lambda shown: _format_waste(loaded, findings, shown),
        nothing=lambda: reason or _explain_nothing(findings, limits),
    )


def _explain_nothing(findings: WasteList, limits: WasteLimits) -> str:
    if not findings.total:
        return "Nothing was spent, so nothing was avoidable."
    if not limits.min_amount:
        return "No avoidable costs found."
    return f"No avoidable costs of at least {format_amount(limits.min_amount)}. Use --min 0 to see smaller ones."


def _format_waste(session: Session | None, findings: WasteList, shown: Sequence[Waste]) -> str:
    cells = [
        (
            format_amount(finding.amount),
            format_share(finding.amount, findings.total),
            ("~" if finding.estimated else "") + format_tokens(finding.tokens),
            finding.detector,
            *turn_cell(session, finding.turn),
            format_where(session, finding.session, finding.places[0] if finding.places else None),
            finding.label,
        )
        for finding in shown
    ]
    headings = ("amount", "share", "tokens", "detector", *place_headings(session), "what")
    right = [at for at, heading in enumerate(headings) if heading not in {"detector", "what"}]
    table = out.format_table(headings, cells, right=right, drop=("share", "tokens", "turn"), cut=clip_path)
    more = f" {count(len(findings) - len(shown), 'more row')}: use --limit N." if len(findings) > len(shown) else ""
    summary = f"{count(len(findings), 'finding')}; {format_amount(findings.total)} was spent in all.{more}"
    return "\n".join([with_session_heading(session, table), "", out.wrap_text(summary), "", *_suggestions(findings)])


def _suggestions(findings: WasteList) -> list[str]:
    """What to do, once for each detector, cause and advice: the most expensive first, those without a cause last."""
    same: dict[tuple[str, BreakCause | None, str], list[Waste]] = {}
    for finding in findings:
        same.setdefault((finding.detector, finding.cause, finding.advice), []).append(finding)
    sums = {key: sum_amounts(finding.amount for finding in group) for key, group in same.items()}
    ordered = sorted(sums.items(), key=lambda item: (item[0][1] is BreakCause.UNKNOWN, -item[1]))
    return [
        out.wrap_text(
            f"{detector}{f' ({cause})' if cause is not None else ''}, {format_amount(amount)}"
            f" ({format_share(amount, findings.total)}): {advice}",
            indent="  ",
        )
        for (detector, cause, advice), amount in ordered
    ]
