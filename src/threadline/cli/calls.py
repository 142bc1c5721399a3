"""`threadline calls`: list tool calls of a session, or of all sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from threadline.cli import EXIT_NOTHING, EXIT_OK, screen
from threadline.cli import output as out
from threadline.cli.filters import CrossSessionFilter
from threadline.cli.options import cross_session_options, home_option, output_options
from threadline.cli.output import shorten_path
from threadline.cli.resolve import open_archive
from threadline.cli.screen import report_no_home
from threadline.model.calls import ListedCall
from threadline.model.places import CallId
from threadline.model.text import format_duration
from threadline.render import OUTCOME_MARKS, summarize_call

if TYPE_CHECKING:
    from threadline.archive import Archive
    from threadline.model.calls import Call

_OUTCOMES = ("ok", "error", "denied", "interrupted", "pending", "lost")
_MIN_WIDTH_FOR_AGENT = 100
_EPILOG = """
\b
Examples:
  threadline calls last                           all calls, also of agents
  threadline calls last --tool Bash --outcome error
  threadline calls last --limit 10                the last ten
  threadline calls 55604662 --agent main --csv    without those of agents
  threadline calls --tool Bash --outcome error    of all sessions
  threadline calls --since 7d --project app
"""


@click.command(epilog=_EPILOG)
@click.argument("session", required=False)
@click.option("--tool", "tools", multiple=True, metavar="TOOL", help="Only this tool; may be given several times.")
@click.option(
    "--outcome",
    "outcomes",
    multiple=True,
    type=click.Choice(_OUTCOMES),
    metavar="HOW",
    help=f"Only calls that ended so: {', '.join(_OUTCOMES)}; may be given several times.",
)
@click.option("--agent", metavar="ID", help="Only this agent's, by the start of its id; `main` for the main one.")
@cross_session_options
@home_option
@output_options
def calls(
    session: str | None,
    *,
    tools: tuple[str, ...],
    outcomes: tuple[str, ...],
    agent: str | None,
    project: str | None,
    since: str | None,
    until: str | None,
    limit: int | None,
    homes: tuple[str, ...],
    output: str,
) -> int:
    """List the calls of a session: time, tool, input, outcome, duration, agent, turn, place.

    SESSION is the start of its id, a transcript, or `last`. Without it, the newest calls of all sessions, from the
    index. On a page narrower than 100 columns, agent and line are left out, and the date where all is of one day.
    """
    from threadline.cli import output as out
    from threadline.cli import screen
    from threadline.cli.filters import CrossSessionFilter
    from threadline.cli.resolve import read_session
    from threadline.cli.rows import call_row

    asked = CrossSessionFilter.of(project, since, until, limit)
    if session is None:
        if agent is not None:
            raise click.UsageError("--agent goes with a SESSION.")
        return print_all_calls(asked.with_default_limit(output), tools, outcomes, homes, output)
    asked = asked.for_single_session()
    found = read_session(session, homes)
    timely = [call for call in found.calls if asked.holds(call.timestamp)]
    chosen = [
        call
        for call in timely
        if (not tools or call.tool in tools) and (not outcomes or call.outcome in outcomes) and _is_made_by(call, agent)
    ][-(limit or 0) :]
    if output != "table":
        out.print_rows(map(call_row, chosen), output)
    elif chosen:
        click.echo(_session_call_table(chosen))
    if chosen or timely or not found.calls:
        return EXIT_OK if chosen else screen.report_nothing(_explain_no_session_calls(timely, tools, outcomes))
    first, last = (
        f"{one.timestamp:%Y-%m-%d %H:%M}" if one.timestamp else "?" for one in (found.calls[0], found.calls[-1])
    )
    return screen.report_nothing(f"No calls in that time; the session's are from {first} to {last} (UTC).")


def _explain_no_session_calls(every: Sequence[Call], tools: tuple[str, ...], outcomes: tuple[str, ...]) -> str:
    """Why no call is listed, and what there would be."""
    from collections import Counter

    from threadline.model.text import join_some

    if not every:
        return "No calls: no agent of the session called a tool."
    used = Counter(call.tool for call in every)
    if unused := [tool for tool in tools if tool not in used]:
        seen = join_some(f"{tool} ({number})" for tool, number in used.most_common())
        return f"No calls of {' or '.join(unused)}; the session's tools are {seen}."
    if outcomes:
        ended = Counter(str(call.outcome) for call in every if not tools or call.tool in tools)
        return (
            f"No calls that ended so; they ended {join_some(f'{name} ({number})' for name, number in ended.items())}."
        )
    made = Counter(str(call.agent or "main") for call in every)
    return f"No calls of that agent; those that made some: {join_some(made)}."


def _is_made_by(call: Call, agent: str | None) -> bool:
    if agent is None:
        return True
    return call.agent is None if agent == "main" else (call.agent or "").startswith(agent)


def _session_call_table(chosen: list[Call]) -> str:
    from threadline.cli import output as out
    from threadline.model.text import format_duration
    from threadline.render import OUTCOME_MARKS, summarize_call

    days = {call.timestamp.date() for call in chosen if call.timestamp is not None}
    clock = "%H:%M:%S" if len(days) == 1 else "%m-%d %H:%M:%S"
    # Where there is little room, it is for what was done.
    narrow = out.terminal_width() < _MIN_WIDTH_FOR_AGENT
    rows = [
        (
            call.timestamp.strftime(clock) if call.timestamp else "",
            f"{call.turn}" if call.turn is not None else "",
            *(() if narrow else (out.clip(out.plain(call.agent or "main"), 8), f"{call.place.line}")),
            f"{OUTCOME_MARKS[call.outcome].sign} {call.outcome}",
            format_duration(call.duration),
            out.clip(out.plain(call.tool), 16),
            out.one_line(summarize_call(call.tool, call.input), 400),
        )
        for call in chosen
    ]
    headings = ("time (UTC)", "turn", *(() if narrow else ("agent", "line")), "outcome", "took", "tool", "input")
    return out.format_table(headings, rows, right=(1, 3) if narrow else (1, 3, 5), shrink=(len(headings) - 2,))


_MIN_WIDTH_FOR_PROJECT = 120
_PROJECT_WIDTH = 24


def print_all_calls(
    asked: CrossSessionFilter, tools: Sequence[str], outcomes: Sequence[str], homes: Sequence[str], output: str
) -> int:
    """Print them; give the exit code."""
    with open_archive(homes) as archive:
        if not archive.homes:
            report_no_home()
            return EXIT_NOTHING
        found = archive.calls(tools=tools, outcomes=outcomes, **asked.wanted())
        if output != "table":
            out.print_rows(
                (_listed_call_row(one, summarize_call(one.tool, archive.call_input(one))) for one in found), output
            )
        elif found:
            click.echo(
                _listed_call_table(found, {one.id: summarize_call(one.tool, archive.call_input(one)) for one in found})
            )
            if len(found) == asked.limit:
                click.echo(f"\nThe newest {asked.limit:,}: see --limit N.")
        return EXIT_OK if found else screen.report_nothing(_explain_no_calls(archive, asked, tools))


def _explain_no_calls(archive: Archive, asked: CrossSessionFilter, tools: Sequence[str]) -> str:
    """Why no call is listed, and what there would be."""
    unused = archive.never_called(tools)
    if unused is not None:
        return f"No call of any session fits: {unused}" + ("" if unused.endswith("?") else ".")
    newest = archive.calls(limit=1)
    if (asked.since is not None or asked.until is not None) and newest and newest[0].timestamp is not None:
        return f"No call of any session fits; the newest is of {newest[0].timestamp:%Y-%m-%d}."
    return "No call of any session fits; `threadline calls SESSION` lists those of one."


def _listed_call_row(call: ListedCall, given: str) -> dict[str, Any]:
    took = call.duration
    return {
        "timestamp": call.timestamp,
        "session": call.session,
        "project": call.project,
        "agent": call.agent,
        "tool": call.tool,
        "input": given,
        "outcome": str(call.outcome),
        "exit_code": call.exit_code,
        "seconds": took.total_seconds() if took is not None else None,
        "started_agent": call.started_agent,
        "call": call.id,
        "place": str(call.place),
        "result_place": str(call.result_place) if call.result_place is not None else None,
    }


def _listed_call_table(found: Sequence[ListedCall], given: Mapping[CallId, str]) -> str:
    # Where there is little room, it is for what was done.
    roomy = out.terminal_width() >= _MIN_WIDTH_FOR_PROJECT
    rows = [
        (
            call.timestamp.strftime("%Y-%m-%d %H:%M") if call.timestamp else "",
            str(call.session or "")[:8],
            f"{OUTCOME_MARKS[call.outcome].sign} {call.outcome}",
            *((format_duration(call.duration),) if roomy else ()),
            out.clip(out.plain(call.tool), 16),
            *((shorten_path(call.project, _PROJECT_WIDTH),) if roomy else ()),
            out.one_line(given[call.id], 400),
        )
        for call in found
    ]
    headings = ("time (UTC)", "session", "outcome", *(("took",) if roomy else ()), "tool")
    headings = (*headings, *(("project",) if roomy else ()), "input")
    return out.format_table(headings, rows, right=(3,) if roomy else (), shrink=(headings.index("tool"),))
