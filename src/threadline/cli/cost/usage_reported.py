"""Costs that Claude Code reports, compared with computed amounts (`usage --mode reported|both`).

Reported amounts are shown next to computed ones and never added to totals. Separate from `usage` because it loads
worker processes, which a plain `usage` does not need.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import tzinfo
from typing import Any

from msgspec.structs import replace

from threadline.account import Ledger
from threadline.cli.cost.usage import ChargeFilter
from threadline.cli.output import GAP, pad_cells
from threadline.model.homes import Found
from threadline.model.ledger import sum_amounts
from threadline.model.reported_costs import ReportedSession, ReportedUsage
from threadline.model.text import format_amount, plain_decimal, short_id
from threadline.render import (
    Role,
    Span,
    Spans,
    Style,
    cut_line,
    display_width,
    one_line,
    plain,
    reconciliation_lines,
    wrap,
)
from threadline.reports import is_day_within, reconcile, reported_session_record

_MIN_WIDTH, _MAX_TITLE = 10, 400
_NO_DIFFERENCE = "same"
_HEADINGS = ("session", "source", "reported", "computed", "difference")
_AMOUNT_COLUMNS = (2, 3, 4)


def filter_reported(
    found: Sequence[Found],
    ledger: Ledger,
    selected: Ledger,
    criteria: ChargeFilter,
    *,
    zone: tzinfo,
    jobs: int | None = None,
) -> ReportedUsage:
    """The reported costs of the selected sessions and days. Amounts are always of whole sessions."""
    reported = reconcile(found, ledger, jobs, zone=zone)
    if criteria == ChargeFilter():
        return reported
    ids = {charge.session or "" for charge in selected}
    sessions = tuple(session for session in reported.sessions if session.session in ids)
    silent = ids - {session.session for session in sessions}
    amounts = [row.amount for row in ledger.where(lambda charge: (charge.session or "") in silent).by("session")]
    is_by_time = criteria.project is criteria.model is criteria.session is None
    since, until = criteria.time.since, criteria.time.until
    days = tuple(day for day in reported.swept if is_day_within(day, since, until, zone)) if is_by_time else ()
    return replace(
        reported,
        sessions=sessions,
        silent=len(silent),
        silent_computed=sum_amounts(amount for amount in amounts if amount is not None),
        swept=days,
    )


def reported_notes(reported: ReportedUsage, width: int) -> Iterator[Spans]:
    """The reconciliation, for the end of a page."""
    yield (Span(f"{GAP}Reported by Claude Code", Role.TITLE),)
    for line in reconciliation_lines(reported):
        yield from wrap((Span(line, Role.FAINT),), width, first=(Span(GAP),), rest=(Span(GAP * 2),))


def reported_rows(reported: ReportedUsage, limit: int | None = None) -> Iterator[dict[str, Any]]:
    """One row per session with a reported cost, at most `limit` of them, for programs."""
    for session in reported.sessions[:limit]:
        yield reported_session_record(session)


def reported_total(reported: ReportedUsage) -> dict[str, Any]:
    """The total of all reported costs, for programs."""
    return {
        "sessions": len(reported.sessions),
        "reported": plain_decimal(reported.reported),
        "computed": plain_decimal(reported.computed),
        "difference": plain_decimal(reported.difference),
    }


def reported_page(
    reported: ReportedUsage,
    *,
    width: int,
    colour: bool = False,
    titles: Mapping[str, str] | None = None,
    limit: int | None = None,
) -> Iterator[str]:
    """A table of reported costs, largest difference first, and the reconciliation."""
    style = Style(colour=colour)
    table = [*_table_lines(reported, width, titles or {}, limit), ()] if reported.sessions else []
    for line in (*table, *reported_notes(reported, width)):
        yield style.line(line)


def _table_lines(reported: ReportedUsage, width: int, titles: Mapping[str, str], limit: int | None) -> Iterator[Spans]:
    shown, others = reported.sessions[:limit], reported.sessions[len(reported.sessions[:limit]) :]
    cells = [_session_cells(session, titles) for session in shown]
    if others:
        cells.append(_sum_cells(f"{len(others):,} more: use --limit N", replace(reported, sessions=others)))
    total = _sum_cells("total", reported)
    rows = [_HEADINGS, *cells, total]
    widths = [max(display_width(row[at]) for row in rows) for at in range(len(_HEADINGS))]
    room = width - len(GAP) * len(widths) - sum(widths[1:])
    widths[0] = max(_MIN_WIDTH, min(widths[0], room))
    for row in rows:
        role = Role.FAINT if row is _HEADINGS else Role.TITLE if row is total else Role.BODY
        yield cut_line((Span("".join(pad_cells(row, widths, _AMOUNT_COLUMNS)), role),), width)


def _session_cells(session: ReportedSession, titles: Mapping[str, str]) -> tuple[str, ...]:
    title = one_line(titles.get(session.session, ""), _MAX_TITLE)
    name = f"{short_id(plain(session.session))}{GAP if title else ''}{title}"
    difference = _NO_DIFFERENCE if session.agrees else format_amount(session.difference, signed=True)
    return name, session.source.value, format_amount(session.reported), format_amount(session.computed), difference


def _sum_cells(label: str, reported: ReportedUsage) -> tuple[str, ...]:
    agrees = all(session.agrees for session in reported.sessions)
    difference = _NO_DIFFERENCE if agrees else format_amount(reported.difference, signed=True)
    return label, "", format_amount(reported.reported), format_amount(reported.computed), difference
