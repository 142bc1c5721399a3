"""Lists of work: todos and tasks, their states, and what a call changed in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from markupsafe import Markup

from threadline.model.call import Call
from threadline.model.results import TaskListResult, TaskResult, TaskUpdateResult, TodoWriteResult
from threadline.render.figures import count
from threadline.render.html.calls.ended import clean
from threadline.render.html.calls.pieces import facts, listed, printed, prose, some
from threadline.render.html.calls.tool_view import ToolView
from threadline.render.html.element import EMPTY, el, join
from threadline.render.html.given import list_of, text_of, value_of
from threadline.render.html.scene import Scene
from threadline.render.html.words import one

_LONGEST = 400
SIGNS = {"completed": "☒", "in_progress": "◐", "deleted": "✗", "cancelled": "✗"}
"""How the state of a todo or a task is shown; one that is to be done has an empty box."""
_STATES = frozenset({"completed", "in_progress", "pending", "deleted", "cancelled"})


def state_row(status: str, text: str, *after: Markup | str) -> Markup:
    """One todo or task: its state is a sign and a class."""
    name = status if status in _STATES else "pending"
    said = f"{SIGNS.get(status, '☐')} {one(text, _LONGEST)}"
    return el("li", said, *after, class_=name, title=one(status, 40) or None)


def _todos(made: Call, scene: Scene) -> Markup:
    """The list as the call left it, and what it was before where that changed."""
    result = made.result
    items: list[Any] = list_of(result, "new_todos") if isinstance(result, TodoWriteResult) else []
    items = items or list_of(made.input, "todos")
    before = {text_of(item, "content"): text_of(item, "status") for item in list_of(result, "old_todos")}
    done = sum(text_of(item, "status") == "completed" for item in items)
    gone = [text for text in before if text not in {text_of(item, "content") for item in items}]
    said = f"{done:,} of {len(items):,} done" if items else "an empty list"
    went = count(len(gone), "item went", "items went") if gone and items else ""
    return join((facts(said, went), some(items, lambda item: _todo(item, before), "todos", made, scene)))


def _todo(item: Any, before: dict[str, str]) -> Markup:
    text, status = text_of(item, "content", "subject"), text_of(item, "status")
    was = before.get(text)
    if not before or was == status:
        return state_row(status, text)
    return state_row(status, text, " ", el("i", "new" if was is None else f"was {one(was, 40)}", class_="was"))


def _created(made: Call, scene: Scene) -> Markup:
    """`TaskCreate`: the task that was made."""
    task = made.result.task if isinstance(made.result, TaskResult) else None
    return join((_one_task(task, made.input), prose(text_of(made.input, "description"), made, scene)))


def _tried(made: Call, scene: Scene) -> Markup:
    return join((_one_task(None, made.input), prose(text_of(made.input, "description"), made, scene)))


def _one_task(task: Any, given: Any) -> Markup:
    number = text_of(task, "id")
    subject = text_of(task, "subject") or text_of(given, "subject")
    if not subject:
        return EMPTY
    return listed([state_row(text_of(task, "status"), f"#{number} {subject}" if number else subject)], "todos")


def _got(made: Call, scene: Scene) -> Markup:
    """`TaskGet`: a task as it stands."""
    task = made.result.task if isinstance(made.result, TaskResult) else None
    if task is None:
        return printed(clean(made.output), made, scene)
    return join((_one_task(task, {}), facts(*_ties(task)), prose(task.description or "", made, scene)))


def _ties(task: Any) -> Iterator[str]:
    if owner := text_of(task, "owner"):
        yield f"owner {owner}"
    for name, said in (("blocked_by", "waits for"), ("blocks", "is waited for by")):
        if numbers := [str(number) for number in list_of(task, name)][:20]:
            yield f"{said} #{', #'.join(numbers)}"


def _all(made: Call, scene: Scene) -> Markup:
    """`TaskList`: every task."""
    tasks: list[Any] = list_of(made.result, "tasks") if isinstance(made.result, TaskListResult) else []
    if not tasks:
        return printed(clean(made.output), made, scene) or facts("no tasks")
    done = sum(text_of(task, "status") == "completed" for task in tasks)
    return join((facts(f"{done:,} of {len(tasks):,} done"), some(tasks, _listed_task, "todos", made, scene)))


def _listed_task(task: Any) -> Markup:
    ties = " · ".join(_ties(task))
    row = f"#{text_of(task, 'id')} {text_of(task, 'subject')}"
    return state_row(text_of(task, "status"), row, *((" ", el("i", one(ties, 200), class_="was")) if ties else ()))


def _updated(made: Call, scene: Scene) -> Markup:
    """`TaskUpdate`: what changed about a task."""
    result, given = made.result, made.input
    number = text_of(result, "task_id") or text_of(given, "taskId")
    change = value_of(result, "status_change")
    status = text_of(given, "status")
    was = text_of(change, "from_")
    now = text_of(change, "to") or status
    said = f"#{number} {text_of(given, 'subject')}".strip()
    after = (" ", el("i", f"was {one(was, 40)}", class_="was")) if was else ()
    rows = [state_row(now, f"{said}: {now}" if now else said, *after)] if number else []
    error = text_of(result, "error") if isinstance(result, TaskUpdateResult) else ""
    return join((listed(rows, "todos"), facts(*_fields(given), error), _text(given, made, scene)))


def _fields(given: Any) -> Iterable[str]:
    """What else was asked to be changed."""
    said = {"owner": "owner", "addBlockedBy": "waits for", "addBlocks": "is waited for by", "activeForm": "meanwhile"}
    for name, words in said.items():
        value = value_of(given, name)
        if isinstance(value, list):
            value = ", ".join(f"#{one_}" for one_ in value[:20])
        if isinstance(value, str) and value:
            yield f"{words} {value}"


def _text(given: Any, made: Call, scene: Scene) -> Markup:
    return prose(text_of(given, "description"), made, scene)


def _read(made: Call, scene: Scene) -> Markup:
    return printed(clean(made.output), made, scene)


VIEWS: dict[str, ToolView] = {
    "TodoWrite": ToolView(_todos, _todos),
    "TodoRead": ToolView(_read),
    "TaskCreate": ToolView(_created, _tried),
    "TaskGet": ToolView(_got),
    "TaskList": ToolView(_all),
    "TaskUpdate": ToolView(_updated, _updated),
}
