"""The newest calls of all sessions, from the index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from threadline.cli import FOUND, NOTHING, screen
from threadline.cli import output as out
from threadline.cli.everywhere import Everywhere
from threadline.cli.opening import archive_of
from threadline.cli.places import short_path
from threadline.cli.reading import say_no_home
from threadline.model.ids import CallId
from threadline.model.listed import ListedCall
from threadline.render.call_text import OUTCOMES
from threadline.render.figures import span_of_time
from threadline.render.telling import about

if TYPE_CHECKING:
    from threadline.archive import Archive

_ROOMY = 120
_PROJECT = 24


def show(asked: Everywhere, tools: Sequence[str], outcomes: Sequence[str], homes: Sequence[str], output: str) -> int:
    """Print them; give the exit code."""
    with archive_of(homes) as archive:
        if not archive.homes:
            say_no_home()
            return NOTHING
        found = archive.calls(tools=tools, outcomes=outcomes, **asked.wanted())
        if output != "table":
            out.print_rows((_row(one, about(one.tool, archive.call_input(one))) for one in found), output)
        elif found:
            click.echo(_table(found, {one.id: about(one.tool, archive.call_input(one)) for one in found}))
            if len(found) == asked.limit:
                click.echo(f"\nThe newest {asked.limit:,}: see --limit N.")
        return FOUND if found else screen.nothing(_why(archive, asked, tools))


def _why(archive: Archive, asked: Everywhere, tools: Sequence[str]) -> str:
    """Why no call is listed, and what there would be."""
    unused = archive.never_called(tools)
    if unused is not None:
        return f"No call of any session fits: {unused}" + ("" if unused.endswith("?") else ".")
    newest = archive.calls(limit=1)
    if (asked.since is not None or asked.until is not None) and newest and newest[0].timestamp is not None:
        return f"No call of any session fits; the newest is of {newest[0].timestamp:%Y-%m-%d}."
    return "No call of any session fits; `threadline calls SESSION` lists those of one."


def _row(call: ListedCall, given: str) -> dict[str, Any]:
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


def _table(found: Sequence[ListedCall], given: Mapping[CallId, str]) -> str:
    # Where there is little room, it is for what was done.
    roomy = out.terminal_width() >= _ROOMY
    rows = [
        (
            call.timestamp.strftime("%Y-%m-%d %H:%M") if call.timestamp else "",
            str(call.session or "")[:8],
            f"{OUTCOMES[call.outcome].sign} {call.outcome}",
            *((span_of_time(call.duration),) if roomy else ()),
            out.clip(out.plain(call.tool), 16),
            *((short_path(call.project, _PROJECT),) if roomy else ()),
            out.one_line(given[call.id], 400),
        )
        for call in found
    ]
    headings = ("time (UTC)", "session", "outcome", *(("took",) if roomy else ()), "tool")
    headings = (*headings, *(("project",) if roomy else ()), "input")
    return out.table(headings, rows, right=(3,) if roomy else (), shrink=(headings.index("tool"),))
