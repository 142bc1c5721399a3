"""`threadline errors`: list failed calls and failed API requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import tzinfo

import click

from threadline.cli import output as out
from threadline.cli.filters import CrossSessionFilter
from threadline.cli.options import (
    complete_with,
    cross_session_options,
    exact_tools_option,
    home_option,
    jobs_option,
    output_options,
    tools_option,
)
from threadline.cli.resolve import open_archive, read_session
from threadline.json_values import to_json_value
from threadline.model.call_summary import summarize_input
from threadline.model.names import names_tool
from threadline.model.text import count, format_time, join_some, short_id
from threadline.model.times import TimeRange, zone_name
from threadline.render import clip, one_line, plain
from threadline.reports import Failure, FailureFilter, session_failures

_EPILOG = """
\b
Examples:
  threadline errors last              failed calls and requests of one session
  threadline errors --since 7d        of all sessions in the last seven days
  threadline errors --tool Bash --project app --limit 20
  threadline errors last --json
"""


@click.command(epilog=_EPILOG)
@click.argument("session", required=False, shell_complete=complete_with("sessions"))
@tools_option("Only failed calls of this tool, by old or new name. Repeatable.")
@exact_tools_option
@cross_session_options
@home_option
@jobs_option
@output_options
def errors(
    session: str | None,
    *,
    tools: tuple[str, ...],
    exact_tools: bool,
    project: str | None,
    since: str | None,
    until: str | None,
    zone: tzinfo,
    limit: int | None,
    homes: tuple[str, ...],
    jobs: int | None,
    output: str,
) -> int:
    """List failed, refused, interrupted or lost calls, and failed API requests.

    SESSION is the start of a session id, a transcript, or `last`. Without it, lists the newest failures of all
    sessions. The newest comes last. A failure that a fork or branch copied is listed once, with the original. Only
    failures that Claude Code recorded count, not every text that contains the word "error".
    """
    criteria = CrossSessionFilter.parse(project, since, until, limit, zone)
    if session is not None:
        criteria = criteria.for_single_session()
        failures = session_failures(read_session(session, homes), summarize_input)
    else:
        criteria = criteria.with_default_limit(output)
        archive = open_archive(homes, jobs, index=False, require_home=True)
        failures = list(archive.errors(criteria.time.since))
    selection = FailureFilter(
        project=project,
        tools=tools,
        exact_tools=exact_tools,
        since=criteria.time.since,
        until=criteria.time.until,
        limit=criteria.limit,
    )

    def explain_nothing() -> str:
        others = failures if session is not None or not criteria.time else list(archive.errors())
        return _explain_nothing(others, selection, criteria.time, zone)

    return out.print_listing(
        selection.select(failures),
        output,
        row=to_json_value,
        table=lambda matches: _failure_table(matches, zone, has_sessions=session is None),
        nothing=explain_nothing,
        limit=criteria.limit,
    )


def _explain_nothing(failures: Sequence[Failure], selection: FailureFilter, time: TimeRange, zone: tzinfo) -> str:
    """Why no failure is listed, and which filters would match."""
    if not failures:
        return "No failures: every call succeeded or is still open, and no request failed."
    tools = Counter(failure.tool for failure in failures if failure.tool is not None)
    if selection.tools and not any(names_tool(selection.tools, tool, exact=selection.exact_tools) for tool in tools):
        others = join_some(f"{tool} ({number})" for tool, number in tools.most_common()) or "none"
        return f"No failures of {' or '.join(selection.tools)}. Tools with failures: {others}."
    projects = dict.fromkeys(failure.project for failure in failures if failure.project is not None)
    part = (selection.project or "").casefold()
    if not any(part in project.casefold() for project in projects) and part:
        return (
            f"No failures in projects that match {selection.project!r}. Projects with failures: {join_some(projects)}."
        )
    if not time:
        return f"None of {count(len(failures), 'failure')} matches all filters. Remove one."
    times = [failure.timestamp for failure in failures if failure.timestamp is not None]
    first, last = (format_time(find(times, default=None), zone, "%Y-%m-%d") for find in (min, max))
    others = f" Other failures are from {first} to {last} ({zone_name(zone)})." if times else ""
    return f"No failures in that time.{others}"


def _failure_table(failures: Sequence[Failure], zone: tzinfo, *, has_sessions: bool) -> str:
    clock = "%Y-%m-%d %H:%M" if has_sessions else "%m-%d %H:%M:%S"
    rows = [
        (
            format_time(failure.timestamp, zone, clock),
            *((short_id(failure.session),) if has_sessions else ()),
            "" if failure.turn is None else str(failure.turn),
            failure.what,
            clip(plain(failure.tool or ""), 16),
            one_line(_failure_text(failure), 400),
        )
        for failure in failures
    ]
    headings = (f"time ({zone_name(zone)})", *(("session",) if has_sessions else ()), "turn", "what", "tool", "text")
    turn, tool = headings.index("turn"), headings.index("tool")
    return out.format_table(headings, rows, right=(turn,), shrink=(tool,), drop=("turn", "tool"))


def _failure_text(failure: Failure) -> str:
    if failure.input:
        return f"{failure.input[:60]} → {failure.text[:400]}"
    return failure.text[:400] or failure.evidence
