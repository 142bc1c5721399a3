"""`threadline calls`: what a session's agents did, call by call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from threadline.cli import FOUND
from threadline.cli.options import everywhere_options, home_option, output_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from threadline.model.call import Call

_OUTCOMES = ("ok", "error", "denied", "interrupted", "pending", "lost")
_ROOMY = 100
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
@everywhere_options
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
    from threadline.cli.everywhere import Everywhere
    from threadline.cli.session import named
    from threadline.cli.session_rows import call_row

    asked = Everywhere.of(project, since, until, limit)
    if session is None:
        from threadline.cli.calls_everywhere import show

        if agent is not None:
            raise click.UsageError("--agent goes with a SESSION.")
        return show(asked.for_page(output), tools, outcomes, homes, output)
    asked = asked.of_one()
    found = named(session, homes)
    timely = [call for call in found.calls if asked.holds(call.timestamp)]
    chosen = [
        call
        for call in timely
        if (not tools or call.tool in tools) and (not outcomes or call.outcome in outcomes) and _made_by(call, agent)
    ][-(limit or 0) :]
    if output != "table":
        out.print_rows(map(call_row, chosen), output)
    elif chosen:
        click.echo(_table(chosen))
    if chosen or timely or not found.calls:
        return FOUND if chosen else screen.nothing(_why(timely, tools, outcomes))
    first, last = (
        f"{one.timestamp:%Y-%m-%d %H:%M}" if one.timestamp else "?" for one in (found.calls[0], found.calls[-1])
    )
    return screen.nothing(f"No calls in that time; the session's are from {first} to {last} (UTC).")


def _why(every: Sequence[Call], tools: tuple[str, ...], outcomes: tuple[str, ...]) -> str:
    """Why no call is listed, and what there would be."""
    from collections import Counter

    from threadline.render.figures import some

    if not every:
        return "No calls: no agent of the session called a tool."
    used = Counter(call.tool for call in every)
    if unused := [tool for tool in tools if tool not in used]:
        seen = some(f"{tool} ({number})" for tool, number in used.most_common())
        return f"No calls of {' or '.join(unused)}; the session's tools are {seen}."
    if outcomes:
        ended = Counter(str(call.outcome) for call in every if not tools or call.tool in tools)
        return f"No calls that ended so; they ended {some(f'{name} ({number})' for name, number in ended.items())}."
    made = Counter(str(call.agent or "main") for call in every)
    return f"No calls of that agent; those that made some: {some(made)}."


def _made_by(call: Call, agent: str | None) -> bool:
    if agent is None:
        return True
    return call.agent is None if agent == "main" else (call.agent or "").startswith(agent)


def _table(chosen: list[Call]) -> str:
    from threadline.cli import output as out
    from threadline.render.call_text import OUTCOMES
    from threadline.render.figures import span_of_time
    from threadline.render.telling import about

    days = {call.timestamp.date() for call in chosen if call.timestamp is not None}
    clock = "%H:%M:%S" if len(days) == 1 else "%m-%d %H:%M:%S"
    # Where there is little room, it is for what was done.
    narrow = out.terminal_width() < _ROOMY
    rows = [
        (
            call.timestamp.strftime(clock) if call.timestamp else "",
            f"{call.turn}" if call.turn is not None else "",
            *(() if narrow else (out.clip(out.plain(call.agent or "main"), 8), f"{call.place.line}")),
            f"{OUTCOMES[call.outcome].sign} {call.outcome}",
            span_of_time(call.duration),
            out.clip(out.plain(call.tool), 16),
            out.one_line(about(call.tool, call.input), 400),
        )
        for call in chosen
    ]
    headings = ("time (UTC)", "turn", *(() if narrow else ("agent", "line")), "outcome", "took", "tool", "input")
    return out.table(headings, rows, right=(1, 3) if narrow else (1, 3, 5), shrink=(len(headings) - 2,))
