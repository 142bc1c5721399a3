"""What Claude Code itself reports as cost, compared with the computed amounts (`usage --mode reported|both`).

Reported amounts are shown beside computed ones and never added to totals. Apart from `usage_table` because it imports
worker processes, which a plain `usage` must not load.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import tzinfo
from decimal import Decimal
from typing import Any

from msgspec.structs import replace

from threadline.account import Ledger
from threadline.cli.filters import ChargeFilter
from threadline.model.homes import Found
from threadline.model.reconciliation import ReportedSession, ReportedUsage
from threadline.model.totals import sum_amounts
from threadline.render import (
    Role,
    Span,
    Spans,
    Style,
    clip,
    cut_line,
    display_width,
    exact_amount,
    one_line,
    plain,
    reconciliation_lines,
    reported_session_record,
    wrap,
)
from threadline.reports import is_day_within, reconcile

_GAP = "  "
_ID_LENGTH = 8
_MIN_WIDTH, _MAX_TITLE = 10, 400
_NO_DIFFERENCE = "same"
_HEADINGS = ("session", "source", "reported", "computed", "difference")


def filter_reported(
    found: Sequence[Found],
    whole: Ledger,
    chosen: Ledger,
    wanted: ChargeFilter,
    *,
    zone: tzinfo,
    jobs: int | None = None,
) -> ReportedUsage:
    """What is reported of the sessions that are wanted, and of the days in that time; amounts are of whole sessions."""
    told = reconcile(found, whole, jobs, zone=zone)
    if wanted == ChargeFilter():
        return told
    ids = {one.session or "" for one in chosen}
    sessions = tuple(session for session in told.sessions if session.session in ids)
    silent = ids - {session.session for session in sessions}
    amounts = [row.amount for row in whole.where(lambda one: (one.session or "") in silent).by("session")]
    named = any(value is not None for value in (wanted.project, wanted.model, wanted.session))
    days = () if named else tuple(one for one in told.swept if is_day_within(one, wanted.since, wanted.until, zone))
    return replace(
        told,
        sessions=sessions,
        silent=len(silent),
        silent_computed=sum_amounts(amount for amount in amounts if amount is not None),
        swept=days,
    )


def reported_notes(told: ReportedUsage, width: int) -> Iterator[Spans]:
    """The reconciliation, to stand below a table."""
    yield (Span(f"{_GAP}Reported by Claude Code", Role.TITLE),)
    for line in reconciliation_lines(told):
        yield from wrap((Span(line, Role.FAINT),), width, first=(Span(_GAP),), rest=(Span(_GAP * 2),))


def reported_rows(told: ReportedUsage) -> Iterator[dict[str, Any]]:
    """A row for each session that reports an amount, for programs."""
    for session in told.sessions:
        yield reported_session_record(session)


def reported_total(told: ReportedUsage) -> dict[str, Any]:
    """The total of what is reported, for programs."""
    return {
        "sessions": len(told.sessions),
        "reported": exact_amount(told.reported),
        "computed": exact_amount(told.computed),
        "difference": exact_amount(told.difference),
    }


def reported_page(
    told: ReportedUsage,
    *,
    width: int,
    coloured: bool = False,
    titles: Mapping[str, str] | None = None,
    limit: int | None = None,
) -> Iterator[str]:
    """The reported amounts as a table of their own, the greatest difference first, and the reconciliation."""
    style = Style(colour=coloured)
    table = [*_table_lines(told, width, titles or {}, limit), ()] if told.sessions else []
    for line in (*table, *reported_notes(told, width)):
        yield style.line(line)


def _table_lines(told: ReportedUsage, width: int, titles: Mapping[str, str], limit: int | None) -> Iterator[Spans]:
    shown, others = told.sessions[:limit], told.sessions[len(told.sessions[:limit]) :]
    cells = [_session_cells(one, titles) for one in shown]
    if others:
        rest = replace(told, sessions=others)
        name = f"{len(others):,} more: see --limit"
        cells.append((name, "", _format_usd(rest.reported), _format_usd(rest.computed), _total_difference(rest)))
    total = ("total", "", _format_usd(told.reported), _format_usd(told.computed), _total_difference(told))
    every = [_HEADINGS, *cells, total]
    sizes = [max(display_width(row[at]) for row in every) for at in range(len(_HEADINGS))]
    room = width - len(_GAP) - sum(sizes[1:]) - len(_GAP) * (len(sizes) - 1)
    sizes[0] = max(_MIN_WIDTH, min(sizes[0], room))
    for row in every:
        first = clip(row[0], sizes[0])
        text = f"{_GAP}{first}{' ' * (sizes[0] - display_width(first))}{_GAP}{row[1]:<{sizes[1]}}"
        text += "".join(f"{_GAP}{cell:>{size}}" for cell, size in zip(row[2:], sizes[2:], strict=True))
        role = Role.FAINT if row is _HEADINGS else Role.TITLE if row is total else Role.BODY
        yield cut_line((Span(text, role),), width)


def _session_cells(session: ReportedSession, titles: Mapping[str, str]) -> tuple[str, ...]:
    titled = one_line(titles.get(session.session, ""), _MAX_TITLE)
    name = f"{plain(session.session)[:_ID_LENGTH]}{_GAP if titled else ''}{titled}"
    off = _NO_DIFFERENCE if session.agrees else _format_signed(session.difference)
    return name, session.source.value, _format_usd(session.reported), _format_usd(session.computed), off


def _total_difference(told: ReportedUsage) -> str:
    return _NO_DIFFERENCE if all(session.agrees for session in told.sessions) else _format_signed(told.difference)


def _format_usd(amount: Decimal) -> str:
    return f"${amount:,.4f}"


def _format_signed(amount: Decimal) -> str:
    return f"{'+' if amount > 0 else '-' if amount < 0 else ''}{_format_usd(amount.copy_abs())}"
