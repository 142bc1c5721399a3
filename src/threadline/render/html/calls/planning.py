"""Views of todo lists, tasks, questions to the user, and plans."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from markupsafe import Markup

from threadline.model.calls import Call, Outcome
from threadline.model.results import (
    AskUserQuestionResult,
    ExitPlanModeResult,
    TaskListResult,
    TaskResult,
    TaskUpdateResult,
    TodoWriteResult,
)
from threadline.model.text import count
from threadline.render import list_of, shorten, text_of, value_of, visible
from threadline.render.html.calls.components import (
    ToolView,
    bounded_list,
    bullet_list,
    facts_line,
    link_to_rest,
    output_block,
    prose_block,
    strip_program_tags,
)
from threadline.render.html.element import EMPTY, el, join
from threadline.render.html.scene import Scene

_MAX_TODO = 400
STATUS_SIGNS = {"completed": "☒", "in_progress": "◐", "deleted": "✗", "cancelled": "✗"}
"""How the state of a todo or a task is shown; one that is to be done has an empty box."""
_STATUSES = frozenset({"completed", "in_progress", "pending", "deleted", "cancelled"})


def status_row(status: str, text: str, *after: Markup | str) -> Markup:
    """One todo or task: its state is a sign and a class."""
    name = status if status in _STATUSES else "pending"
    said = f"{STATUS_SIGNS.get(status, '☐')} {shorten(text, _MAX_TODO)}"
    return el("li", said, *after, class_=name, title=shorten(status, 40) or None)


def _todo_write_result(made: Call, scene: Scene) -> Markup:
    """The list as the call left it, and what it was before where that changed."""
    result = made.result
    items: list[Any] = list_of(result, "new_todos") if isinstance(result, TodoWriteResult) else []
    items = items or list_of(made.input, "todos")
    before = {text_of(item, "content"): text_of(item, "status") for item in list_of(result, "old_todos")}
    done = sum(text_of(item, "status") == "completed" for item in items)
    gone = [text for text in before if text not in {text_of(item, "content") for item in items}]
    said = f"{done:,} of {len(items):,} done" if items else "an empty list"
    went = count(len(gone), "item went", "items went") if gone and items else ""
    return join(
        (facts_line(said, went), bounded_list(items, lambda item: _todo_row(item, before), "todos", made, scene))
    )


def _todo_row(item: Any, before: dict[str, str]) -> Markup:
    text, status = text_of(item, "content", "subject"), text_of(item, "status")
    was = before.get(text)
    if not before or was == status:
        return status_row(status, text)
    return status_row(status, text, " ", el("i", "new" if was is None else f"was {shorten(was, 40)}", class_="was"))


def _task_create_result(made: Call, scene: Scene) -> Markup:
    """`TaskCreate`: the task that was made."""
    task = made.result.task if isinstance(made.result, TaskResult) else None
    return join((_single_task(task, made.input), prose_block(text_of(made.input, "description"), made, scene)))


def _task_create_input(made: Call, scene: Scene) -> Markup:
    return join((_single_task(None, made.input), prose_block(text_of(made.input, "description"), made, scene)))


def _single_task(task: Any, given: Any) -> Markup:
    number = text_of(task, "id")
    subject = text_of(task, "subject") or text_of(given, "subject")
    if not subject:
        return EMPTY
    return bullet_list([status_row(text_of(task, "status"), f"#{number} {subject}" if number else subject)], "todos")


def _task_get_result(made: Call, scene: Scene) -> Markup:
    """`TaskGet`: a task as it stands."""
    task = made.result.task if isinstance(made.result, TaskResult) else None
    if task is None:
        return output_block(strip_program_tags(made.output), made, scene)
    return join(
        (_single_task(task, {}), facts_line(*_task_relations(task)), prose_block(task.description or "", made, scene))
    )


def _task_relations(task: Any) -> Iterator[str]:
    if owner := text_of(task, "owner"):
        yield f"owner {owner}"
    for name, said in (("blocked_by", "waits for"), ("blocks", "is waited for by")):
        if numbers := [str(number) for number in list_of(task, name)][:20]:
            yield f"{said} #{', #'.join(numbers)}"


def _task_list_result(made: Call, scene: Scene) -> Markup:
    """`TaskList`: every task."""
    tasks: list[Any] = list_of(made.result, "tasks") if isinstance(made.result, TaskListResult) else []
    if not tasks:
        return output_block(strip_program_tags(made.output), made, scene) or facts_line("no tasks")
    done = sum(text_of(task, "status") == "completed" for task in tasks)
    return join((facts_line(f"{done:,} of {len(tasks):,} done"), bounded_list(tasks, _task_row, "todos", made, scene)))


def _task_row(task: Any) -> Markup:
    ties = " · ".join(_task_relations(task))
    row = f"#{text_of(task, 'id')} {text_of(task, 'subject')}"
    return status_row(text_of(task, "status"), row, *((" ", el("i", shorten(ties, 200), class_="was")) if ties else ()))


def _task_update_result(made: Call, scene: Scene) -> Markup:
    """`TaskUpdate`: what changed about a task."""
    result, given = made.result, made.input
    number = text_of(result, "task_id") or text_of(given, "taskId")
    change = value_of(result, "status_change")
    status = text_of(given, "status")
    was = text_of(change, "from_")
    now = text_of(change, "to") or status
    said = f"#{number} {text_of(given, 'subject')}".strip()
    after = (" ", el("i", f"was {shorten(was, 40)}", class_="was")) if was else ()
    rows = [status_row(now, f"{said}: {now}" if now else said, *after)] if number else []
    error = text_of(result, "error") if isinstance(result, TaskUpdateResult) else ""
    return join(
        (bullet_list(rows, "todos"), facts_line(*_changed_fields(given), error), _task_description(given, made, scene))
    )


def _changed_fields(given: Any) -> Iterable[str]:
    """What else was asked to be changed."""
    said = {"owner": "owner", "addBlockedBy": "waits for", "addBlocks": "is waited for by", "activeForm": "meanwhile"}
    for name, words in said.items():
        value = value_of(given, name)
        if isinstance(value, list):
            value = ", ".join(f"#{one_}" for one_ in value[:20])
        if isinstance(value, str) and value:
            yield f"{words} {value}"


def _task_description(given: Any, made: Call, scene: Scene) -> Markup:
    return prose_block(text_of(given, "description"), made, scene)


def _todo_read_result(made: Call, scene: Scene) -> Markup:
    return output_block(strip_program_tags(made.output), made, scene)


TODO_VIEWS: dict[str, ToolView] = {
    "TodoWrite": ToolView(_todo_write_result, _todo_write_result),
    "TodoRead": ToolView(_todo_read_result),
    "TaskCreate": ToolView(_task_create_result, _task_create_input),
    "TaskGet": ToolView(_task_get_result),
    "TaskList": ToolView(_task_list_result),
    "TaskUpdate": ToolView(_task_update_result, _task_update_result),
}


_MAX_QUESTIONS, _MAX_OPTIONS = 4, 12
"""The tool takes no more questions, nor as many options."""
_MAX_QUESTION = 2000


def _question_input(made: Call, scene: Scene) -> Markup:
    """The questions, unanswered."""
    return _render_questions(made, scene, list_of(made.input, "questions"), {}, {})


def _question_result(made: Call, scene: Scene) -> Markup:
    """The questions, what was chosen, and what was written instead."""
    result = made.result
    answers = result.answers if isinstance(result, AskUserQuestionResult) else None
    if not isinstance(answers, dict):
        return join((_question_input(made, scene), output_block(strip_program_tags(made.output), made, scene)))
    questions = list_of(made.input, "questions") or list_of(result, "questions")
    known = {text_of(question, "question") for question in questions}
    others = [{"question": name} for name in answers if isinstance(name, str) and name not in known]
    notes = value_of(result, "annotations")
    return _render_questions(made, scene, [*questions, *others], answers, notes if isinstance(notes, dict) else {})


def _render_questions(
    made: Call, scene: Scene, questions: list[Any], answers: dict[str, Any], notes: dict[str, Any]
) -> Markup:
    most = len(questions) if scene.whole else _MAX_QUESTIONS
    drawn = [_render_question(question, answers, notes) for question in questions[:most]]
    rest = questions[most:]
    if not rest:
        return join(drawn)
    more = link_to_rest(
        f"{len(rest):,} more", made, scene, lambda: join(_render_question(one_, answers, notes) for one_ in rest)
    )
    return join((*drawn, more))


def _render_question(question: Any, answers: dict[str, Any], notes: dict[str, Any]) -> Markup:
    asked = text_of(question, "question")
    answer = answers.get(asked)
    options = list_of(question, "options")[:_MAX_OPTIONS]
    chosen, own = _match_options(answer, [text_of(option, "label") for option in options])
    header = text_of(question, "header")
    note = text_of(notes.get(asked), "notes")
    return el(
        "div",
        el("p", el("b", shorten(header, 60), " ") if header else EMPTY, visible(asked[:_MAX_QUESTION]), class_="asks"),
        bullet_list((_render_option(option, chosen, answered=answer is not None) for option in options), "options"),
        *(el("p", visible(text[:_MAX_QUESTION]), class_="own") for text in (own, note) if text),
        class_="question",
    )


def _render_option(option: Any, chosen: frozenset[str], *, answered: bool) -> Markup:
    label, more = text_of(option, "label"), text_of(option, "description")
    is_chosen = label in chosen
    sign = "◉" if is_chosen else "○"
    after = (" ", el("span", shorten(more, 400), class_="told")) if more else ()
    said = el("b", shorten(label, 200)) if is_chosen else shorten(label, 200)
    state = "chosen" if is_chosen else "passed" if answered else None
    return el("li", f"{sign} ", said, *after, class_=state, title="chosen" if is_chosen else None)


def _match_options(answer: Any, labels: list[str]) -> tuple[frozenset[str], str]:
    """The options that an answer names, and what else it says; several are joined by commas."""
    parts = [str(part) for part in answer] if isinstance(answer, list) else [answer] if isinstance(answer, str) else []
    found: set[str] = set()
    own: list[str] = []
    for part in parts:
        rest = part
        for label in sorted({label for label in labels if label}, key=len, reverse=True):
            padded = f", {rest}, "
            if f", {label}, " in padded:
                found.add(label)
                rest = padded.replace(f", {label}, ", ", ", 1).removeprefix(", ").removesuffix(", ").strip(", ")
        if rest:
            own.append(rest)
    return frozenset(found), ", ".join(own)


def _plan_input(made: Call, scene: Scene) -> Markup:
    """A plan as it was shown to the person."""
    result = made.result
    text = text_of(result, "plan") or text_of(made.input, "plan")
    return el("div", prose_block(text, made, scene), class_="plan") if text else EMPTY


def _plan_result(made: Call, scene: Scene) -> Markup:
    result = made.result
    is_known = isinstance(result, ExitPlanModeResult) and made.outcome is Outcome.OK
    edited = "changed by the person" if value_of(result, "plan_was_edited") else ""
    kept = text_of(result, "file_path")
    said = facts_line("approved" if is_known else "", edited, f"kept in {kept}" if kept else "")
    plan = _plan_input(made, scene)
    return join((plan, said)) if plan else join((said, prose_block(strip_program_tags(made.output), made, scene)))


QUESTION_VIEWS: dict[str, ToolView] = {
    "AskUserQuestion": ToolView(_question_result, _question_input),
    **dict.fromkeys(("ExitPlanMode", "exit_plan_mode"), ToolView(_plan_result, _plan_input)),
}
