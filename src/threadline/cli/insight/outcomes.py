"""`threadline outcomes`: what sessions produced, and what that cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import tzinfo
from typing import TYPE_CHECKING, Any

import click

from threadline.cli import output as out
from threadline.cli.filters import CrossSessionFilter, explain_project
from threadline.cli.insight.period import format_count, print_agents_only
from threadline.cli.options import (
    complete_with,
    home_option,
    limit_option,
    output_options,
    project_option,
    since_option,
    timezone_option,
    until_option,
)
from threadline.cli.resolve import open_archive, session_id
from threadline.insight import OUTCOME_KEYS, outcome_group_record, outcome_record
from threadline.model.insight.outcomes import OutcomeGroup, OutcomeGroups, OutcomeKind, SessionOutcome
from threadline.model.ledger import NONE
from threadline.model.text import count, format_amount, format_changes, format_time, short_id
from threadline.model.times import zone_name
from threadline.render import clip_left, clip_path

if TYPE_CHECKING:
    from threadline.archive import Archive

_DEFAULT_LIMIT = 30
_DROPPED_FIRST = ("$/PR", "removed", "$/100 lines", "files", "added", "failed", "tests", "PRs", "$/commit")
_EPILOG = """
\b
Examples:
  threadline outcomes --since 7d              a line for each session
  threadline outcomes --by project --since 30d
  threadline outcomes last                    a line for each outcome
  threadline outcomes last --kind test
  threadline outcomes --list --kind commit --since yesterday
  threadline outcomes --repo . --since 30d    what git still has of it
  threadline outcomes --by day --json
"""


@click.command(epilog=_EPILOG)
@click.argument("session", required=False, shell_complete=complete_with("sessions"))
@click.option("--by", type=click.Choice(OUTCOME_KEYS), help="Add up by this key. Default: session.")
@click.option("--list", "as_list", is_flag=True, help="List every outcome instead of sums. Default with a SESSION.")
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    type=click.Choice([str(kind) for kind in OutcomeKind]),
    metavar="KIND",
    help="List only this kind: commit, pull-request, push, test or file. Repeatable.",
)
@click.option(
    "--repo",
    metavar="PATH",
    type=click.Path(),
    help="Compare with this git repository: which commits exist or were reverted, which lines survive.",
)
@project_option()
@since_option()
@until_option()
@timezone_option
@limit_option(f"Show at most N rows. Default: {_DEFAULT_LIMIT} in a table, otherwise all.")
@home_option
@output_options
def outcomes(
    session: str | None,
    *,
    by: str | None,
    as_list: bool,
    kinds: tuple[str, ...],
    repo: str | None,
    project: str | None,
    since: str | None,
    until: str | None,
    zone: tzinfo,
    limit: int | None,
    homes: tuple[str, ...],
    output: str,
) -> int:
    """Show what sessions produced, and what that cost.

    Commits, pushes and pull requests are those that git, gh, glab and similar tools reported; tests are those whose
    report was recognised, or whose exit code is known. Lines are those that edits added and removed; surviving lines
    are added ones that no later edit of the session removed. The cost is everything that was spent, divided by each
    outcome. A commit, an edit and a charge count once, also if a fork or a resumed session repeats them.

    SESSION is the start of a session id, a transcript, or `last`. With it, or with --list or --kind, every outcome is
    listed with its place.
    """
    criteria = CrossSessionFilter.parse(project, since, until, limit, zone)
    lists = by is None and (as_list or bool(kinds) or session is not None)
    if by is not None and (as_list or kinds):
        raise click.UsageError("--by adds up; omit --list and --kind.")
    with open_archive(homes, require_home=True) as archive:
        archive.zone = zone
        full_id = session_id(session, archive)
        if lists:
            return _print_list(archive, full_id, criteria, kinds, repo, output)
        return _print_groups(archive, full_id, by or "session", criteria, repo, output)


def _print_list(  # noqa: PLR0917 - what the command line has
    archive: Archive,
    session: str | None,
    criteria: CrossSessionFilter,
    kinds: tuple[str, ...],
    repo: str | None,
    output: str,
) -> int:
    limited = criteria.with_default_limit(output) if session is None else criteria
    rows = archive.outcomes(session, kinds=kinds, repo=repo, **limited.archive_arguments())
    code = out.print_listing(
        rows,
        output,
        row=outcome_record,
        table=lambda items: _list_table(items, criteria.zone, has_session=session is None),
        nothing=lambda: _explain_nothing(archive, session, criteria, repo, kinds),
        limit=limited.limit,
    )
    if rows and output == "table" and session is not None and not kinds:
        total = archive.outcome_groups(
            session=session, repo=repo, **criteria.archive_arguments() | {"limit": None}
        ).total
        if total is not None:
            click.echo(f"\n{out.wrap_text(_describe(total))}")
    return code


def _print_groups(  # noqa: PLR0917 - what the command line has
    archive: Archive, session: str | None, by: str, criteria: CrossSessionFilter, repo: str | None, output: str
) -> int:
    limit = criteria.limit or (_DEFAULT_LIMIT if output == "table" else None)
    groups = archive.outcome_groups(by, session=session, repo=repo, **criteria.archive_arguments() | {"limit": limit})
    titles = archive.titles([group.key for group in groups]) if by == "session" else {}

    def row(group: OutcomeGroup) -> dict[str, Any]:
        record = outcome_group_record(group, by)
        return {**record, "title": titles.get(group.key)} if by == "session" else record

    code = out.print_listing(
        groups,
        output,
        row=row,
        table=lambda _items: _group_table(groups, by, titles),
        nothing=lambda: _explain_nothing(archive, session, criteria, repo),
    )
    if groups and output == "table" and by == "session" and not groups.more:
        print_agents_only(archive, (group.key for group in groups if group.key != NONE))
    return code


def _explain_nothing(
    archive: Archive, session: str | None, criteria: CrossSessionFilter, repo: str | None, kinds: Sequence[str] = ()
) -> str:
    reason = explain_project(archive, criteria.project)
    if reason is not None:
        return reason
    if repo is not None and session is None and criteria.project is None:
        return (
            "No session worked in that repository in that period. To compare the sessions of another checkout with it,"
            " name a SESSION or use --project."
        )
    nothing = "No commits, pull requests, test runs or edits"
    if session is not None:
        return f"{nothing} in this session."
    return f"{nothing} match. Remove a filter." if criteria.has_filters or kinds else f"{nothing} in any session."


def _group_table(groups: OutcomeGroups, by: str, titles: dict[str, str]) -> str:
    total = groups.total
    rows = [*groups, total] if total is not None and len(groups) + (groups.more or 0) > 1 else list(groups)
    columns: dict[str, Callable[[OutcomeGroup], str]] = {
        "amount": lambda group: format_amount(group.amount),
        "commits": lambda group: format_count(group.commits),
        "PRs": lambda group: format_count(group.pull_requests),
        "tests": lambda group: format_count(group.test_runs),
        "failed": lambda group: format_count(group.failed_runs),
        "files": lambda group: format_count(group.files),
        "added": lambda group: format_count(group.added),
        "removed": lambda group: format_count(group.removed),
        "survive": lambda group: format_count(group.surviving),
        "$/commit": lambda group: format_amount(group.per_commit),
        "$/PR": lambda group: format_amount(group.per_pull_request),
        "$/100 lines": lambda group: format_amount(group.per_100_lines),
    }
    cells = [[*(show(group) for show in columns.values()), _format_key(group.key, by, titles)] for group in rows]
    table = out.format_table(
        [*columns, by], cells, right=range(len(columns)), drop=_DROPPED_FIRST, ends=by == "project"
    )
    if not groups.more:
        return table
    return f"{table}\n\n{count(groups.more, f'more {by}')}: use --limit N. The total includes them."


def _format_key(key: str, by: str, titles: dict[str, str]) -> str:
    if by != "session" or key in ("total", NONE):
        return key
    title = titles.get(key)
    return f"{short_id(key)} {title}" if title else short_id(key)


def _list_table(rows: Sequence[SessionOutcome], zone: tzinfo, *, has_session: bool) -> str:
    has_state = any(row.state is not None for row in rows)
    headings = [
        f"time ({zone_name(zone)})",
        *(["session"] if has_session else []),
        "line",
        "kind",
        "action",
        "result",
        "what",
    ]
    cells = [
        [
            format_time(row.timestamp, zone),
            *([short_id(row.session)] if has_session else []),
            out.format_transcript_place(row.place) if row.agent else str(row.place.line),
            str(row.kind),
            clip_left(row.action, 24) + (" (replaced)" if row.is_replaced else ""),
            _format_result(row, has_state=has_state),
            _format_label(row),
        ]
        for row in rows
    ]
    return out.format_table(
        headings,
        cells,
        right=(headings.index("line"),),
        shrink=(headings.index("action"), headings.index("result")),
        drop=("line", "action"),
        cut=clip_path,
    )


def _format_label(row: SessionOutcome) -> str:
    if row.kind is OutcomeKind.COMMIT:
        return " ".join(filter(None, ((row.ref or "")[:9], row.label)))
    if row.kind is OutcomeKind.PUSH:
        return f"{row.branch} to {row.label}" if row.label else row.branch or ""
    return row.ref or row.label if row.kind is OutcomeKind.PULL_REQUEST else row.label


def _format_result(row: SessionOutcome, *, has_state: bool) -> str:
    match row.kind:
        case OutcomeKind.COMMIT:
            changes = format_changes(row.added, row.removed) if row.added is not None else ""
            return " ".join(filter(None, (str(row.state or "unknown") if has_state else "", changes)))
        case OutcomeKind.FILE:
            return f"{format_changes(row.added, row.removed)}, {row.surviving:,} survive"
        case OutcomeKind.TEST if row.passed is not None:
            parts = [f"{row.passed:,} passed", f"{row.failed:,} failed" if row.failed else ""]
            return ", ".join(filter(None, (*parts, f"{row.skipped:,} skipped" if row.skipped else "")))
        case OutcomeKind.TEST:
            return "result unknown" if row.is_ok is None else "passed" if row.is_ok else "failed"
    return ""


def _describe(group: OutcomeGroup) -> str:
    """A session's outcomes in a sentence."""
    parts = [
        f"{format_amount(group.amount)} spent" if group.amount is not None else "no cost known",
        count(group.commits, "commit") + (f" ({format_amount(group.per_commit)} each)" if group.per_commit else ""),
        count(group.pull_requests, "pull request"),
        f"{count(group.files, 'file')} changed ({format_changes(group.added, group.removed)})",
        f"{count(group.surviving, 'line')} survive"
        + (f" ({format_amount(group.per_100_lines)} per 100)" if group.per_100_lines else ""),
        count(group.test_runs, "test run") + (f", {group.failed_runs:,} failed" if group.failed_runs else ""),
    ]
    return "; ".join(parts) + "."
