"""Track todo and task lists during replay."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec

from threadline.model.attachments import TaskReminder, TodoReminder
from threadline.model.calls import Call, Outcome
from threadline.model.entries import AttachmentEntry, UserEntry
from threadline.model.places import AgentId
from threadline.model.results import Task, TaskListResult, TaskResult, TaskUpdateResult, Todo, TodoWriteResult
from threadline.model.state import State, TaskState, TodoState
from threadline.shape import fit
from threadline.thread.state.events import ReplayEvent

_TASK_FIELDS = {"subject": "subject", "description": "description", "activeForm": "active_form", "status": "status",
           "owner": "owner"}  # fmt: skip
_DELETED = "deleted"


class TrackedLists:
    """The lists of a session, replayed event by event: todos by agent, and the one list of tasks."""

    def __init__(self, tasks: Iterable[TaskState] = ()) -> None:
        """`tasks` are those of an earlier replay."""
        self._todos: dict[AgentId | None, TodoState] = {}
        self._tasks: dict[str, TaskState] = {state.task.id: state for state in tasks if state.task.id is not None}

    def apply_event(self, event: ReplayEvent) -> None:
        """Apply the next event."""
        entry = event.entry
        if event.call is not None and event.call.outcome is Outcome.OK:
            self._apply_call(event, event.call)
        elif isinstance(entry, AttachmentEntry):
            self._apply_reminder(event, entry)
        elif isinstance(entry, UserEntry) and entry.todos:
            self._set_todos(event, _parse_items(entry.todos, Todo))

    def todos(self) -> tuple[TodoState, ...]:
        """Return each agent's list, the main one's first."""
        return tuple(sorted(self._todos.values(), key=lambda todo: todo.agent or ""))

    def tasks(self) -> tuple[TaskState, ...]:
        """Return the tasks in the order of their creation."""
        return tuple(self._tasks.values())

    def _apply_call(self, event: ReplayEvent, call: Call) -> None:
        fields = call.input if isinstance(call.input, dict) else {}
        match call.tool, call.result:
            case "TodoWrite", TodoWriteResult(new_todos=list(todos)):
                self._set_todos(event, todos)
            case "TodoWrite", _:
                self._set_todos(event, _parse_items(fields.get("todos"), Todo))
            case "TaskCreate", TaskResult(task=Task(id=str(name)) as task):
                created = _updated_task(Task(id=name, status="pending"), fields)
                self._set_task(event, name, msgspec.structs.replace(created, subject=task.subject))
            case "TaskGet", TaskResult(task=Task(id=str(name)) as task):
                self._set_task(event, name, _merge_task(self._tasks.get(name), task))
            case "TaskUpdate", TaskUpdateResult(success=True, task_id=str(name)):
                self._update_task(event, name, fields)
            case "TaskUpdate", None if isinstance(fields.get("taskId"), str):
                self._update_task(event, fields["taskId"], fields)
            case "TaskList", TaskListResult(tasks=list(tasks)):
                self._set_tasks(event, tasks)

    def _apply_reminder(self, event: ReplayEvent, entry: AttachmentEntry) -> None:
        """Apply a reminder: Claude Code repeats complete lists to the model from time to time."""
        match entry.attachment:
            case TodoReminder(content=list(items)) if items:
                self._set_todos(event, _parse_items(items, Todo))
            case TaskReminder(content=list(items)) if items:
                self._set_tasks(event, _parse_items(items, Task))

    def _set_todos(self, event: ReplayEvent, todos: Iterable[Todo]) -> None:
        entry = event.entry
        self._todos[event.agent] = TodoState(event.agent, entry.place, tuple(todos), entry.timestamp)

    def _set_task(self, event: ReplayEvent, name: str, task: Task) -> None:
        self._tasks[name] = TaskState(task, event.entry.place, event.entry.timestamp)

    def _update_task(self, event: ReplayEvent, name: str, fields: dict[str, Any]) -> None:
        if fields.get("status") == _DELETED:
            self._tasks.pop(name, None)
            return
        before = self._tasks.get(name)
        task = before.task if before is not None else Task(id=name)
        self._set_task(event, name, _updated_task(task, fields))

    def _set_tasks(self, event: ReplayEvent, tasks: Iterable[Task]) -> None:
        """Apply a complete list: other tasks were removed. Listings have no order, so known tasks keep theirs."""
        by_id = {task.id: task for task in tasks if task.id is not None}
        ordered = [name for name in self._tasks if name in by_id] + [name for name in by_id if name not in self._tasks]
        before, self._tasks = self._tasks, {}
        for name in ordered:
            self._set_task(event, name, _merge_task(before.get(name), by_id[name]))


def merge_side_lists(state: State, todos: Iterable[TodoState], tasks: Iterable[TaskState]) -> State:
    """Return the state at the end of a session with the lists of side files: the newest state of each wins.

    A side file with the same content as the transcript adds nothing, and neither does an empty one: Claude Code empties
    a list when all of it is done.
    """
    todos_by_agent = {todo.agent: todo for todo in state.todos}
    for todo in todos:
        known = todos_by_agent.get(todo.agent)
        if todo.todos and (known is None or (todo.todos != known.todos and _is_newer(todo.time, known.time))):
            todos_by_agent[todo.agent] = todo
    tasks_by_id = {task.task.id: task for task in state.tasks}
    for task in sorted(tasks, key=lambda task: _task_order(task.task)):
        before = tasks_by_id.get(task.task.id)
        if before is None or (not _is_same(before.task, task.task) and _is_newer(task.time, before.time)):
            tasks_by_id[task.task.id] = task
    return msgspec.structs.replace(
        state,
        todos=tuple(sorted(todos_by_agent.values(), key=lambda todo: todo.agent or "")),
        tasks=tuple(tasks_by_id.values()),
    )


def _is_newer(time: datetime | None, known: datetime | None) -> bool:
    return known is None or (time is not None and time > known)


def _is_same(known: Task, task: Task) -> bool:
    """Whether a task file adds nothing to what is known. Transcripts may lack some fields."""
    names = ("subject", "status", "owner", "blocked_by")
    return all((getattr(known, name) or None) == (getattr(task, name) or None) for name in names)


def _task_order(task: Task) -> tuple[int, str]:
    """Order tasks by number."""
    id_ = task.id or ""
    return (int(id_[:18]) if id_.isascii() and id_.isdecimal() else 0), id_


def _updated_task(task: Task, changes: dict[str, Any]) -> Task:
    """Return the task after an update, as its input says."""
    fields = {ours: changes[wire] for wire, ours in _TASK_FIELDS.items() if isinstance(changes.get(wire), str)}
    if isinstance(metadata := changes.get("metadata"), dict):
        fields["metadata"] = metadata
    for wire, ours, before in (("addBlocks", "blocks", task.blocks), ("addBlockedBy", "blocked_by", task.blocked_by)):
        if isinstance(added := changes.get(wire), list):
            fields[ours] = list(dict.fromkeys([*(before or []), *(str(id_) for id_ in added)]))
    return msgspec.structs.replace(task, **fields)


def _merge_task(before: TaskState | None, listed: Task) -> Task:
    """Return a task as a listing describes it, with what the listing leaves out."""
    if before is None:
        return listed
    fields = {name: value for name in listed.__struct_fields__ if (value := getattr(listed, name)) is not None}
    return msgspec.structs.replace(before.task, **fields)


def _parse_items(items: Any, shape: Any) -> list[Any]:
    parsed = fit(items, list[shape])[0] if isinstance(items, list) else None
    return parsed or []
