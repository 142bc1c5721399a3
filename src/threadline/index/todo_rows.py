"""Todo and task lists of a transcript, as they stood last: replayed entry by entry."""

from __future__ import annotations

import sqlite3
from typing import Any

import msgspec
from msgspec import Struct

from threadline.index.answer import Answered
from threadline.index.call_rows import EntryIds, Late
from threadline.index.texts import as_text
from threadline.model.attachments import TaskReminder
from threadline.model.call import Call, Outcome
from threadline.model.entries import AttachmentEntry, Entry, UserEntry
from threadline.model.ids import AgentId, CallId
from threadline.model.place import Place
from threadline.model.results.tasks import Task
from threadline.model.state import TaskState
from threadline.thread.state.lists import Lists
from threadline.thread.state.moments import Moment

_TODOS = "TodoWrite"
_TASK, _TASKS = "task ", "tasks"
_MOST = 500


class KnownTask(Struct, array_like=True, gc=False):
    """A task as it is remembered: where it was told last, and what a list shows of it."""

    line: int
    id: str
    subject: str | None = None
    status: str | None = None
    owner: str | None = None
    blocked_by: list[str] | None = None


class ListRow(Struct, array_like=True, gc=False):
    """One item of a list. `line` is where it was told last, `call` the call that told it."""

    list: str
    agent: str | None
    position: int
    item: str | None
    status: str | None
    content: str | None
    owner: str | None
    blocked_by: str | None
    line: int
    call: str | None = None


class ListRows(Struct, array_like=True, gc=False):
    """The lists that were told of: each is whole. `todos` are the agents whose lists those are."""

    todos: list[str | None]
    has_tasks: bool
    rows: list[ListRow]


class ListState(Struct, array_like=True):
    """What is remembered of lists: the tasks, and when and by which call each thing was told last."""

    tasks: list[KnownTask] = []
    times: dict[str, tuple[str, str]] = {}


class Listing:
    """The lists, while entries are added."""

    def __init__(self, state: ListState) -> None:
        self.state = state
        self._lists: Lists | None = None
        self._calls: dict[int, str] = {}

    def answered(self, one: Answered, agent: str | None) -> None:
        """A call of one of the tools that keep lists got its result."""
        if one.ending.outcome is not Outcome.OK or not isinstance(one.entry, UserEntry):
            return
        about = _todos_of(agent) if one.tool == _TODOS else _task_of(one)
        if not self._is_news(about, one.entry, one.call):
            return
        call = Call(
            id=CallId(one.call),
            tool=one.tool,
            input=one.input,
            entry=None,  # type: ignore[arg-type] # a list asks for what was given and what came back, and no more
            outcome=Outcome.OK,
            evidence="",
            answer=one.entry,
            block=one.block,
        )
        self._calls[one.entry.line.number] = one.call
        self._see(one.entry, agent, call)

    def told(self, entry: UserEntry | AttachmentEntry, agent: str | None) -> None:
        """An entry that repeats a list."""
        is_tasks = isinstance(entry, AttachmentEntry) and isinstance(entry.attachment, TaskReminder)
        if self._is_news(_TASKS if is_tasks else _todos_of(agent), entry, ""):
            self._see(entry, agent, None)

    def _is_news(self, about: str, entry: Entry, call: str) -> bool:
        """Whether it was not told before: after a compaction, rows from before it may be written again."""
        told = as_text(entry.timestamp_text) or "", call
        last = self.state.times.get(about)
        if last is not None and (told == last or told[0] < last[0]):
            return False
        self.state.times[about] = told
        if about.startswith(_TASK) and told > self.state.times.get(_TASKS, ("", "")):
            self.state.times[_TASKS] = told
        return True

    def _see(self, entry: Entry, agent: str | None, call: Call | None) -> None:
        if self._lists is None:
            self._lists = Lists(_remembered(one) for one in self.state.tasks)
        self._lists.see(Moment((0.0, 0, 0), entry, AgentId(agent) if agent is not None else None, call))

    def done(self) -> ListRows | None:
        """The rows, when all entries have been added."""
        if self._lists is None:
            return None
        todos, tasks = self._lists.todos(), self._lists.tasks()
        known = list({one.id: one for one in map(_known, tasks)}.values())  # ids that are no text become alike
        rows = [
            ListRow(
                "todo",
                as_text(one.agent),
                position,
                as_text(todo.id),
                as_text(todo.status),
                as_text(todo.content),
                None,
                None,
                one.place.line,
                self._calls.get(one.place.line),
            )
            for one in todos
            for position, todo in enumerate(one.todos, 1)
        ]
        has_tasks = known != self.state.tasks
        rows += (_task_row(position, one) for position, one in enumerate(known, 1) if has_tasks)
        self.state.tasks = known[-_MOST:]
        for about in list(self.state.times)[:-_MOST]:
            del self.state.times[about]
        return ListRows([as_text(one.agent) for one in todos], has_tasks, rows)


def write_lists(connection: sqlite3.Connection, made: ListRows, number: int, ids: EntryIds) -> None:
    """Write down the lists of the transcript of that number: what is told now takes the place of what was."""
    execute = connection.execute
    for agent in made.todos:
        execute("DELETE FROM todo_rows WHERE transcript_id = ? AND list = 'todo' AND agent IS ?", (number, agent))
    if made.has_tasks:
        execute("DELETE FROM todo_rows WHERE transcript_id = ? AND list = 'task'", (number,))
    connection.executemany(
        "INSERT INTO todo_rows VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [(number, *_told(one), ids.of(-one.line), one.call) for one in made.rows],
    )


def write_again(connection: sqlite3.Connection, late: Late, number: int, ids: EntryIds) -> None:
    """Write down the todos that a result tells which came again, unless they were told later than that."""
    if late.answered.tool != _TODOS:
        return
    told = connection.execute(
        "SELECT MAX(e.timestamp) FROM todo_rows r JOIN entries e USING(entry_id)"
        " WHERE r.transcript_id = ? AND r.list = 'todo' AND r.agent IS ?",
        (number, late.agent),
    ).fetchone()
    listing = Listing(ListState(times={_todos_of(late.agent): (told[0] or "", "")}))
    listing.answered(late.answered, late.agent)
    if (made := listing.done()) is not None:
        write_lists(connection, made, number, ids)


def _todos_of(agent: str | None) -> str:
    return f"todos {agent or ''}"


def _task_of(one: Answered) -> str:
    """What a call tells of: one task, or all of them."""
    raw = one.entry.tool_use_result if isinstance(one.entry, UserEntry) else None
    told = raw if isinstance(raw, dict) else {}
    if one.tool == "TaskUpdate":
        given = one.input
        name = told.get("taskId") or (given.get("taskId") if isinstance(given, dict) else None)
    else:
        task = told.get("task")
        name = task.get("id") if isinstance(task, dict) else None
    return f"{_TASK}{as_text(name)}" if one.tool != "TaskList" else _TASKS


def _told(row: ListRow) -> tuple[Any, ...]:
    told = (row.item, row.status, row.content, row.owner, row.blocked_by)
    return row.list, row.agent, row.position, *told


def _known(one: TaskState) -> KnownTask:
    task = one.task
    blocked = [as_text(name) or "" for name in task.blocked_by] if task.blocked_by else None
    told = (as_text(task.subject), as_text(task.status), as_text(task.owner))
    return KnownTask(one.place.line, as_text(task.id) or "", *told, blocked)


def _remembered(one: KnownTask) -> TaskState:
    task = Task(id=one.id, subject=one.subject, status=one.status, owner=one.owner, blocked_by=one.blocked_by)
    return TaskState(task, Place("", one.line))


def _task_row(position: int, one: KnownTask) -> ListRow:
    blocked = msgspec.json.encode(one.blocked_by).decode() if one.blocked_by else None
    return ListRow("task", None, position, one.id, one.status, one.subject, one.owner, blocked, one.line)
