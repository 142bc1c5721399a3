"""`threadline why`: what caused a session's cost, or that of all sessions in a period."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo
from typing import TYPE_CHECKING, Any

import click

from threadline.cli import EXIT_OK
from threadline.cli import output as out
from threadline.cli.filters import explain_project
from threadline.cli.insight.period import (
    Period,
    default_limit,
    format_share,
    format_where,
    insight_options,
    place_headings,
    print_agents_only,
    turn_cell,
    with_session_heading,
)
from threadline.cli.resolve import open_session
from threadline.insight import (
    GROUP_KEYS,
    AttributedSessions,
    CauseGroup,
    CauseList,
    attribution_record,
    causes_record,
)
from threadline.model.insight.attribution import CauseKind, CostCause
from threadline.model.text import count, format_amount, format_percent, format_tokens, short_id
from threadline.render import clip_path

if TYPE_CHECKING:
    from threadline.model.session import Session

_AMOUNT_HEADINGS = ("amount", "share", "write", "read", "output")
_DROPPED_FIRST = ("output", "write", "read", "requests", "turn", "share")
_EPILOG = """
\b
Examples:
  threadline why                      the newest session
  threadline why 55604662 --by tool   what each tool cost, with its results
  threadline why last --by file       which files were expensive to read
  threadline why --since 7d           all sessions of the last seven days
  threadline why --since 'this month' --by project
  threadline why --project app --by tool
  threadline why last --limit 0       every cause
  threadline why last --json          rows that sum to the amount exactly
"""


@click.command(epilog=_EPILOG)
@click.option("--by", type=click.Choice(list(GROUP_KEYS)), help="Add up the causes by this key.")
@insight_options
def why(
    session: str | None,
    *,
    by: str | None,
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
    """Show what made a session expensive, or all sessions in a period.

    Distributes every dollar over what caused it. Each prompt, result, reply, injected text and the system prompt pays
    for being sent, for every later request that carried it, and for being sent again after a cache break. Replies also
    pay for being written. The rows sum to the cost exactly.

    SESSION is the start of a session id, a transcript, or `last`, the default. A period counts what was paid in it, so
    the total is that of `threadline usage`. A size marked ~ is an estimate, scaled to the measured window.
    """
    period = Period.parse(session, since, until, project, zone, price_files, homes, jobs)
    limit = default_limit(limit, output)
    if period.is_across_sessions:
        with period.open() as (archive, arguments):
            causes = archive.causes(**arguments)
            titles = archive.titles([group.key for group in causes.by("session")]) if by == "session" else {}
            code = _print_causes(causes, lambda: causes_record(causes, by, limit), by, limit, output, titles=titles)
            if code is not None:
                if output == "table":
                    print_agents_only(archive, {group.key for group in causes.by("session")})
                return code
            where = f" by projects that match {project!r}" if project is not None else ""
            when = " in that period" if period.time else ""
            return out.report_nothing(explain_project(archive, project) or f"Nothing was spent{where}{when}.")
    with open_session(session or "last", homes) as (loaded, archive):
        attribution = archive.attribution(loaded, prices=period.rates)
    causes = CauseList([AttributedSessions([attribution])])
    code = _print_causes(causes, lambda: attribution_record(attribution, by, limit), by, limit, output, session=loaded)
    if code is not None:
        return code
    if loaded.sharing or loaded.continuations:
        return out.report_nothing("No cost of its own: its messages are counted in the session that it is a copy of.")
    return out.report_nothing("No cost: no model with a known price replied in this session.")


def _print_causes(
    causes: CauseList,
    record: Callable[[], dict[str, Any]],
    by: str | None,
    limit: int | None,
    output: str,
    *,
    session: Session | None = None,
    titles: Mapping[str, str] | None = None,
) -> int | None:
    """Print causes, or groups of them; return None if there are none."""
    if output == "json":
        out.print_json(record())
    elif output != "table":
        out.print_rows(record()["rows"], output)
    elif causes.largest(1):
        click.echo(_format_causes(causes, by, limit, session, titles or {}))
    return EXIT_OK if causes.largest(1) else None


def _format_causes(
    causes: CauseList, by: str | None, limit: int | None, session: Session | None, titles: Mapping[str, str]
) -> str:
    if by is None:
        total = sum(group.causes for group in causes.by("kind"))
        rows = list(causes) if limit is None else causes.largest(limit)
        table, shown = _cause_table(causes, rows, session), len(rows)
    else:
        groups = causes.by(by)
        total, shown = len(groups), len(groups[:limit])
        table = _group_table(causes, groups[:limit], by, titles, is_period=session is None)
    footer = _footer(causes, total - shown, is_period=session is None)
    return f"{with_session_heading(session, table)}\n\n{out.wrap_text(footer)}"


def _cause_table(causes: CauseList, rows: Sequence[CostCause], session: Session | None) -> str:
    cells = [
        (
            *_amount_cells(causes, row),
            ("~" if row.estimated else "") + format_tokens(row.tokens),
            f"{row.requests:,}",
            *turn_cell(session, row.turn),
            format_where(session, row.session, row.place),
            row.label + (f" (agent {short_id(row.agent)})" if row.agent and row.kind is not CauseKind.AGENT else ""),
        )
        for row in rows
    ]
    headings = (*_AMOUNT_HEADINGS, "tokens", "requests", *place_headings(session), "cause")
    return out.format_table(headings, cells, right=range(len(headings) - 1), drop=_DROPPED_FIRST, cut=clip_path)


def _group_table(
    causes: CauseList, groups: Sequence[CauseGroup], by: str, titles: Mapping[str, str], *, is_period: bool
) -> str:
    cells = [
        (
            *_amount_cells(causes, group),
            ("~" if group.estimated else "") + format_tokens(group.tokens),
            f"{group.causes:,}",
            _group_label(group, by, titles, is_period=is_period),
        )
        for group in groups
    ]
    headings = (*_AMOUNT_HEADINGS, "tokens", "causes", by)
    return out.format_table(headings, cells, right=range(len(headings) - 1), drop=_DROPPED_FIRST, cut=clip_path)


def _amount_cells(causes: CauseList, row: CostCause | CauseGroup) -> tuple[str, ...]:
    """What it cost, its share, and for what."""
    amounts = (format_amount(part) if part else "" for part in (row.write, row.read, row.output))
    return format_amount(row.amount), format_share(row.amount, causes.amount), *amounts


def _group_label(group: CauseGroup, by: str, titles: Mapping[str, str], *, is_period: bool) -> str:
    if by == "turn" and is_period:
        return f"{short_id(group.session)}: {group.key}"
    if by == "session":
        return f"{short_id(group.session)} {titles.get(group.key, '')}".rstrip()
    return group.key


def _footer(causes: CauseList, more: int, *, is_period: bool) -> str:
    parts = [f"{format_amount(causes.amount)} in all" + (f", {count(causes.sessions, 'session')}" if is_period else "")]
    if more:
        parts.append(f"{count(more, 'more row')}: use --limit N")
    if causes.error is not None:
        parts.append(f"Estimated sizes differ from measured ones by {format_percent(causes.error)} on average")
    if causes.unpriced:
        parts.append(f"Not included: {count(causes.unpriced, 'request')} without a known price")
    return ". ".join(parts) + "."
