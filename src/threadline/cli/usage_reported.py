"""What Claude Code reports, for a usage report: beside the computed figures, or by itself; never among the totals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import tzinfo
from decimal import Decimal
from typing import Any

from msgspec.structs import replace

from threadline.account.ledger import Ledger
from threadline.cli.usage_wanted import Wanted
from threadline.model.found import Found
from threadline.model.reported import Reported, ReportedSession
from threadline.model.sum import added
from threadline.render.layout import cut, wrap
from threadline.render.reconciliation import exact, lines, session_record
from threadline.render.style import Role, Span, Spans, Style
from threadline.render.terminal_text import clip, columns, one_line, plain
from threadline.survey.reported import reported
from threadline.survey.usage_swept import is_within

_GAP = "  "
_ID = 8
_LEAST, _MOST = 10, 400
_SAME = "same"
_HEADINGS = ("session", "source", "reported", "computed", "difference")


def reported_for(
    found: Sequence[Found], whole: Ledger, chosen: Ledger, wanted: Wanted, *, zone: tzinfo, jobs: int | None = None
) -> Reported:
    """What is reported of the sessions that are wanted, and of the days in that time; amounts are of whole sessions."""
    told = reported(found, whole, jobs, zone=zone)
    if wanted == Wanted():
        return told
    ids = {one.session or "" for one in chosen}
    sessions = tuple(one for one in told.sessions if one.session in ids)
    silent = ids - {one.session for one in sessions}
    amounts = [row.amount for row in whole.where(lambda one: (one.session or "") in silent).by("session")]
    named = any(value is not None for value in (wanted.project, wanted.model, wanted.session))
    days = () if named else tuple(one for one in told.swept if is_within(one, wanted.since, wanted.until, zone))
    return replace(
        told,
        sessions=sessions,
        silent=len(silent),
        silent_computed=added(one for one in amounts if one is not None),
        swept=days,
    )


def below(told: Reported, width: int) -> Iterator[Spans]:
    """The reconciliation, to stand below a table."""
    yield (Span(f"{_GAP}Reported by Claude Code", Role.TITLE),)
    for line in lines(told):
        yield from wrap((Span(line, Role.FAINT),), width, first=(Span(_GAP),), rest=(Span(_GAP * 2),))


def rows(told: Reported) -> Iterator[dict[str, Any]]:
    """A row for each session that reports an amount, for programs."""
    for one in told.sessions:
        yield session_record(one)


def figures(told: Reported) -> dict[str, Any]:
    """The total of what is reported, for programs."""
    return {
        "sessions": len(told.sessions),
        "reported": exact(told.reported),
        "computed": exact(told.computed),
        "difference": exact(told.difference),
    }


def page(
    told: Reported,
    *,
    width: int,
    coloured: bool = False,
    titles: Mapping[str, str] | None = None,
    limit: int | None = None,
) -> Iterator[str]:
    """The reported amounts as a table of their own, the greatest difference first, and the reconciliation."""
    style = Style(colour=coloured)
    table = [*_table(told, width, titles or {}, limit), ()] if told.sessions else []
    for line in (*table, *below(told, width)):
        yield style.line(line)


def _table(told: Reported, width: int, titles: Mapping[str, str], limit: int | None) -> Iterator[Spans]:
    shown, others = told.sessions[:limit], told.sessions[len(told.sessions[:limit]) :]
    cells = [_cells(one, titles) for one in shown]
    if others:
        rest = replace(told, sessions=others)
        name = f"{len(others):,} more: see --limit"
        cells.append((name, "", _usd(rest.reported), _usd(rest.computed), _off(rest)))
    total = ("total", "", _usd(told.reported), _usd(told.computed), _off(told))
    every = [_HEADINGS, *cells, total]
    sizes = [max(columns(row[at]) for row in every) for at in range(len(_HEADINGS))]
    room = width - len(_GAP) - sum(sizes[1:]) - len(_GAP) * (len(sizes) - 1)
    sizes[0] = max(_LEAST, min(sizes[0], room))
    for row in every:
        first = clip(row[0], sizes[0])
        text = f"{_GAP}{first}{' ' * (sizes[0] - columns(first))}{_GAP}{row[1]:<{sizes[1]}}"
        text += "".join(f"{_GAP}{cell:>{size}}" for cell, size in zip(row[2:], sizes[2:], strict=True))
        role = Role.FAINT if row is _HEADINGS else Role.TITLE if row is total else Role.BODY
        yield cut((Span(text, role),), width)


def _cells(one: ReportedSession, titles: Mapping[str, str]) -> tuple[str, ...]:
    titled = one_line(titles.get(one.session, ""), _MOST)
    name = f"{plain(one.session)[:_ID]}{_GAP if titled else ''}{titled}"
    off = _SAME if one.agrees else _signed(one.difference)
    return name, one.source.value, _usd(one.reported), _usd(one.computed), off


def _off(told: Reported) -> str:
    return _SAME if all(one.agrees for one in told.sessions) else _signed(told.difference)


def _usd(amount: Decimal) -> str:
    return f"${amount:,.4f}"


def _signed(amount: Decimal) -> str:
    return f"{'+' if amount > 0 else '-' if amount < 0 else ''}{_usd(amount.copy_abs())}"
