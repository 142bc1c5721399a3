"""`threadline todos`: the todo and task lists of a session at any point."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from threadline.cli import EXIT_OK
from threadline.cli.options import home_option, output_options

if TYPE_CHECKING:
    from threadline.model.session import Session
    from threadline.model.state import State

_SIGNS = {"completed": "✓", "in_progress": "▶", "pending": "·"}
_MAX_LABEL = 24
_EPILOG = """
\b
Examples:
  threadline todos last               the lists as they stand
  threadline todos last --at 120      as they stood after line 120
  threadline todos 55604662 --jsonl
"""


@click.command(epilog=_EPILOG)
@click.argument("session")
@click.option("--at", "at", metavar="PLACE", help="As they stood after this place: FILE:LINE, or a line's number.")
@home_option
@output_options
def todos(session: str, *, at: str | None, homes: tuple[str, ...], output: str) -> int:
    """Show the todo lists of a session's agents and its task list, as they stood at a place.

    SESSION is the start of its id, a transcript, or `last`.
    """
    from threadline.cli import output as out
    from threadline.cli import screen
    from threadline.cli.output import parse_place
    from threadline.cli.resolve import read_session
    from threadline.thread import state_at

    found = read_session(session, homes)
    rows = list(_list_rows(state_at(found, parse_place(found, at))))
    if output != "table":
        out.print_rows(rows, output)
    elif rows:
        click.echo(_list_table(found, rows))
    if rows:
        return EXIT_OK
    if at is not None and any(_list_rows(state_at(found, None))):
        return screen.report_nothing(f"No todos or tasks up to {at}; without --at, those at the end of the session.")
    return screen.report_nothing("No todos or tasks: no agent of the session kept a list, or the last one was emptied.")


def _list_rows(state: State) -> Iterator[dict[str, Any]]:
    for one in state.todos:
        for number, todo in enumerate(one.todos, 1):
            yield _list_row("todo", todo.id or str(number), todo.status, todo.content, one.place, agent=one.agent)
    for known in state.tasks:
        task = known.task
        yield _list_row(
            "task", task.id, task.status, task.subject, known.place, owner=task.owner, blocked_by=task.blocked_by
        )


def _list_row(
    kind: str, id_: str | None, status: str | None, text: str | None, place: Any, **more: Any
) -> dict[str, Any]:
    return {
        "list": kind,
        "agent": more.get("agent"),
        "id": id_,
        "status": status,
        "text": text,
        "owner": more.get("owner"),
        "blocked_by": more.get("blocked_by") or [],
        "place": str(place),
    }


def _agent_label(session: Session, agent: str) -> str:
    """What an agent is called: one without an id of its own, by what it was to do."""
    from threadline.cli import output as out
    from threadline.model.session import AgentKind

    found = session.agent(agent)
    if found is None or found.kind is not AgentKind.INLINE:
        return agent[:8]
    return out.one_line(found.description or found.prompt or agent, _MAX_LABEL)


def _list_table(session: Session, rows: list[dict[str, Any]]) -> str:
    from threadline.cli import output as out
    from threadline.cli.output import format_place
    from threadline.model.places import Place

    cells = [
        (
            row["list"] if row["agent"] is None else f"{row['list']} {_agent_label(session, row['agent'])}",
            row["id"] or "",
            f"{_SIGNS.get(row['status'], ' ')} {row['status'] or ''}",
            row["owner"] or "",
            ", ".join(row["blocked_by"]),
            format_place(session, Place.parse(row["place"])),
            " ".join((row["text"] or "").split()),
        )
        for row in rows
    ]
    return out.format_table(("list", "id", "status", "owner", "blocked by", "line", "text"), cells, right=(1, 5))
