"""`threadline calls`: list tool calls of a session, or of all sessions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import tzinfo
from typing import NamedTuple

import click

from threadline.archive import Archive
from threadline.cli import output as out
from threadline.cli.filters import CrossSessionFilter, explain_project
from threadline.cli.options import (
    complete_with,
    cross_session_options,
    exact_tools_option,
    home_option,
    output_options,
    tools_option,
)
from threadline.cli.resolve import open_archive, read_session
from threadline.model.call_summary import summarize_call
from threadline.model.calls import Call, ListedCall, Outcome
from threadline.model.entry_filter import names_agent
from threadline.model.names import names_tool
from threadline.model.text import format_duration, format_time, join_some, short_id
from threadline.model.times import FIRST_MOMENT, in_zone, zone_name
from threadline.render import OUTCOME_MARKS, clip, one_line, plain

_OUTCOMES = tuple(map(str, Outcome))
_PROJECT_WIDTH = 24
_EPILOG = """
\b
Examples:
  threadline calls last                           all calls, agents included
  threadline calls last --tool Bash --outcome error
  threadline calls last --limit 10                the last ten
  threadline calls 55604662 --agent main --csv    without agents
  threadline calls --tool Bash --outcome error    across all sessions
  threadline calls --since 7d --project app
"""


@click.command(epilog=_EPILOG)
@click.argument("session", required=False, shell_complete=complete_with("sessions"))
@tools_option()
@exact_tools_option
@click.option(
    "--outcome",
    "outcomes",
    multiple=True,
    type=click.Choice(_OUTCOMES),
    metavar="OUTCOME",
    help=f"Only calls with this outcome: {', '.join(_OUTCOMES)}. Repeatable.",
)
@click.option("--agent", metavar="ID", help="Only calls of this agent. ID may be a prefix, or `main`.")
@cross_session_options
@home_option
@output_options
def calls(
    session: str | None,
    *,
    tools: tuple[str, ...],
    exact_tools: bool,
    outcomes: tuple[str, ...],
    agent: str | None,
    project: str | None,
    since: str | None,
    until: str | None,
    zone: tzinfo,
    limit: int | None,
    homes: tuple[str, ...],
    output: str,
) -> int:
    """List tool calls with input, outcome and duration.

    SESSION is the start of a session id, a transcript, or `last`. Without it, lists the newest calls of all sessions,
    from the index. The table has no dates if all calls are from one day.
    """
    criteria = CrossSessionFilter.parse(project, since, until, limit, zone)
    tool_filter = ToolFilter(tools, exact_tools)
    if session is None:
        if agent is not None:
            raise click.UsageError("--agent requires a SESSION.")
        return _list_all_calls(criteria.with_default_limit(output), tool_filter, outcomes, homes, output)
    return _list_session_calls(session, criteria.for_single_session(), tool_filter, outcomes, agent, homes, output)


class ToolFilter(NamedTuple):
    """The tools of `--tool`, and whether their names have to be those in the transcript."""

    names: tuple[str, ...] = ()
    is_exact: bool = False

    def matches(self, tool: str) -> bool:
        """Whether calls of a tool are listed."""
        return not self.names or names_tool(self.names, tool, exact=self.is_exact)


def _list_session_calls(  # noqa: PLR0917 - what the command line has
    name: str,
    criteria: CrossSessionFilter,
    tools: ToolFilter,
    outcomes: Sequence[str],
    agent: str | None,
    homes: Sequence[str],
    output: str,
) -> int:
    from threadline.cli.rows import call_row  # noqa: PLC0415 - loads the entry model, which the index does without

    session = read_session(name, homes)
    project = next(iter(session.cwds), None)
    in_time = [call for call in session.calls if call.timestamp in criteria.time]
    matches = [
        call
        for call in in_time
        if tools.matches(call.tool) and (not outcomes or call.outcome in outcomes) and _is_by(call, agent)
    ]
    if criteria.limit is not None:
        matches = _newest(matches, criteria.limit)

    def explain_nothing() -> str:
        if in_time or not session.calls:
            return _explain_no_session_calls(in_time, tools, outcomes)
        times = [call.timestamp for call in session.calls if call.timestamp is not None]
        if not times:
            return "No calls in that time. The session's calls have no times."
        first, last = (format_time(when, criteria.zone) for when in (min(times), max(times)))
        return f"No calls in that time. The session's calls are from {first} to {last} ({zone_name(criteria.zone)})."

    return out.print_listing(
        matches,
        output,
        row=lambda call: call_row(call, session.id, project),
        table=lambda calls: _session_call_table(calls, criteria.zone),
        nothing=explain_nothing,
    )


def _newest(calls: Sequence[Call], limit: int) -> list[Call]:
    """The last calls by time, in the session's order, which has each agent's calls together."""
    by_time = sorted(range(len(calls)), key=lambda at: calls[at].timestamp or FIRST_MOMENT)
    return [calls[at] for at in sorted(by_time[-limit:])]


def _is_by(call: Call, agent: str | None) -> bool:
    if agent is None:
        return True
    return call.agent is None if agent == "main" else names_agent(agent, call.agent)


def _explain_no_session_calls(calls: Sequence[Call], tools: ToolFilter, outcomes: Sequence[str]) -> str:
    """Why no call is listed, and which filters would match."""
    if not calls:
        return "No calls: no agent of this session called a tool."
    tool_counts = Counter(call.tool for call in calls)
    if unused := [tool for tool in tools.names if not any(map(tools._replace(names=(tool,)).matches, tool_counts))]:
        used = join_some(f"{tool} ({number})" for tool, number in tool_counts.most_common())
        return f"No calls of {' or '.join(unused)}. Tools in this session: {used}."
    if outcomes:
        counts = Counter(str(call.outcome) for call in calls if tools.matches(call.tool))
        others = join_some(f"{name} ({number})" for name, number in counts.items())
        return f"No calls with that outcome. Outcomes: {others}."
    return f"No calls by that agent. Agents with calls: {join_some(Counter(str(c.agent or 'main') for c in calls))}."


def _session_call_table(calls: Sequence[Call], zone: tzinfo) -> str:
    days = {in_zone(call.timestamp, zone).date() for call in calls if call.timestamp is not None}
    clock = "%H:%M:%S" if len(days) == 1 else "%m-%d %H:%M:%S"
    rows = [
        (
            format_time(call.timestamp, zone, clock),
            str(call.turn) if call.turn is not None else "",
            clip(plain(call.agent or "main"), 8),
            f"{call.place.line}",
            f"{OUTCOME_MARKS[call.outcome].sign} {call.outcome}",
            format_duration(call.duration),
            clip(plain(call.tool), 16),
            one_line(summarize_call(call.tool, call.input), 400),
        )
        for call in calls
    ]
    headings = (f"time ({zone_name(zone)})", "turn", "agent", "line", "outcome", "took", "tool", "input")
    return out.format_table(headings, rows, right=(1, 3, 5), shrink=(6,), drop=("line", "agent", "turn", "took"))


def _list_all_calls(
    criteria: CrossSessionFilter, tools: ToolFilter, outcomes: Sequence[str], homes: Sequence[str], output: str
) -> int:
    with open_archive(homes, require_home=True) as archive:
        calls = archive.calls(
            tools=tools.names, exact_tools=tools.is_exact, outcomes=outcomes, **criteria.archive_arguments()
        )

        def call_input(call: ListedCall) -> str:
            return summarize_call(call.tool, archive.call_input(call))

        return out.print_listing(
            calls,
            output,
            row=lambda call: call.record(call_input(call)),
            table=lambda calls: _listed_call_table(calls, [call_input(call) for call in calls], criteria.zone),
            nothing=lambda: _explain_no_calls(archive, criteria, tools),
            limit=criteria.limit,
        )


def _explain_no_calls(archive: Archive, criteria: CrossSessionFilter, tools: ToolFilter) -> str:
    """Why no call is listed, and which filters would match."""
    unknown_project = explain_project(archive, criteria.project)
    if unknown_project is not None:
        return unknown_project
    unused = archive.explain_unused_tools(tools.names, exact_tools=tools.is_exact)
    if unused is not None:
        return f"No matching calls in any session: {unused}" + ("" if unused.endswith("?") else ".")
    newest = archive.calls(limit=1)
    if criteria.time and newest and newest[0].timestamp is not None:
        last = f"{format_time(newest[0].timestamp, criteria.zone)} ({zone_name(criteria.zone)})"
        return f"No matching calls in any session. The newest call is from {last}."
    return "No matching calls in any session. `threadline calls SESSION` lists the calls of one session."


def _listed_call_table(calls: Sequence[ListedCall], inputs: Sequence[str], zone: tzinfo) -> str:
    rows = [
        (
            format_time(call.timestamp, zone),
            short_id(call.session),
            f"{OUTCOME_MARKS[call.outcome].sign} {call.outcome}",
            format_duration(call.duration),
            clip(plain(call.tool), 16),
            out.shorten_path(call.project, _PROJECT_WIDTH),
            one_line(text, 400),
        )
        for call, text in zip(calls, inputs, strict=True)
    ]
    headings = (f"time ({zone_name(zone)})", "session", "outcome", "took", "tool", "project", "input")
    return out.format_table(headings, rows, right=(3,), shrink=(4,), drop=("project", "took", "tool"))
