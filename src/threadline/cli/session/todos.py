"""`threadline todos`: the todo and task lists of a session at any point in time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click

from threadline.cli import output as out
from threadline.cli.options import complete_with, home_option, output_options
from threadline.cli.resolve import parse_place, read_session
from threadline.model.places import Place
from threadline.model.session import AgentKind, Session
from threadline.model.state import ListSource, State, TaskState, TodoState
from threadline.model.text import short_id
from threadline.render import one_line

_SIGNS = {"completed": "✓", "in_progress": "▶", "pending": "·"}
_MAX_LABEL = 24
_EPILOG = """
\b
Examples:
  threadline todos                    the lists at the end of the session
  threadline todos last --at 120      the lists after line 120
  threadline todos 55604662 --jsonl
"""


@click.command(epilog=_EPILOG)
@click.argument("session", default="last", shell_complete=complete_with("sessions"))
@click.option("--at", metavar="PLACE", help="Show the state after this place: FILE:LINE, or a line number.")
@home_option
@output_options
def todos(session: str, *, at: str | None, homes: tuple[str, ...], output: str) -> int:
    """Show todo and task lists, at any point in time.

    Includes the lists of agents. SESSION is the start of a session id, a transcript, or `last`, the default.

    At the end of the session, the lists are also read from the files under `todos/` and `tasks/` of its home. The
    newest state of each list wins. These files have only the last state, so --at reads transcripts only.
    """
    loaded = read_session(session, homes)

    def explain_nothing() -> str:
        if at is not None and any(_list_rows(loaded.at())):
            return f"No todos or tasks up to {at}. Omit --at to see those at the end of the session."
        return "No todos or tasks: no agent of this session made a list, or the last list is empty."

    return out.print_listing(
        list(_list_rows(loaded.at(parse_place(loaded, at)))),
        output,
        row=lambda row: row,
        table=lambda rows: _list_table(loaded, rows),
        nothing=explain_nothing,
    )


def _list_rows(state: State) -> Iterator[dict[str, Any]]:
    for todo_list in state.todos:
        for number, todo in enumerate(todo_list.todos, 1):
            todo_id = todo.id or str(number)
            yield _list_row("todo", todo_id, todo.status, todo.content, todo_list, agent=todo_list.agent)
    for state_of_task in state.tasks:
        task = state_of_task.task
        more = {"owner": task.owner, "blocked_by": task.blocked_by}
        yield _list_row("task", task.id, task.status, task.subject, state_of_task, **more)


def _list_row(
    kind: str, id_: str | None, status: str | None, text: str | None, state: TodoState | TaskState, **more: Any
) -> dict[str, Any]:
    return {
        "list": kind,
        "agent": more.get("agent"),
        "id": id_,
        "status": status,
        "text": text,
        "owner": more.get("owner"),
        "blocked_by": more.get("blocked_by") or [],
        "place": str(state.place),
        "source": str(state.source),
        "updated": state.time,
    }


def _agent_label(session: Session, agent_id: str) -> str:
    """An agent's id, or its task if the id is not its own."""
    agent = session.agent(agent_id)
    if agent is None or agent.kind is not AgentKind.INLINE:
        return short_id(agent_id)
    return one_line(agent.description or agent.prompt or agent_id, _MAX_LABEL)


def _format_place(session: Session, row: dict[str, Any]) -> str:
    """The line in a transcript, or `file` for a list that is from `todos/` or `tasks/`."""
    return "file" if row["source"] == ListSource.FILE else out.format_place(session, Place.parse(row["place"]))


def _list_table(session: Session, rows: Sequence[dict[str, Any]]) -> str:
    cells = [
        (
            row["list"] if row["agent"] is None else f"{row['list']} {_agent_label(session, row['agent'])}",
            row["id"] or "",
            f"{_SIGNS.get(row['status'], ' ')} {row['status'] or ''}",
            row["owner"] or "",
            ", ".join(row["blocked_by"]),
            _format_place(session, row),
            " ".join((row["text"] or "").split()),
        )
        for row in rows
    ]
    headings = ("list", "id", "status", "owner", "blocked by", "line", "text")
    return out.format_table(headings, cells, right=(1, 5), shrink=(0,), drop=("line", "owner", "blocked by", "list"))
