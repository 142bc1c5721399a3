"""Views of todo lists, tasks, questions to the user, and plans."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from markupsafe import Markup

from threadline.model.call_summary import list_of, strip_program_tags, text_of, value_of
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
from threadline.render import shorten, visible
from threadline.render.html.calls.components import (
    ToolView,
    bounded_list,
    bullet_list,
    facts_line,
    link_to_rest,
    plain_output,
    prose_block,
)
from threadline.render.html.element import EMPTY, el, join
from threadline.render.html.sections import Scene

_MAX_TODO = 400
STATUS_SIGNS = {"completed": "☒", "in_progress": "◐", "deleted": "✗", "cancelled": "✗"}
"""Signs of todo and task statuses. Any other status has an empty box."""
_STATUSES = frozenset({"completed", "in_progress", "pending", "deleted", "cancelled"})


def status_row(status: str, text: str, *after: Markup | str) -> Markup:
    """One todo or task. Its status is a sign and a CSS class."""
    name = status if status in _STATUSES else "pending"
    label = f"{STATUS_SIGNS.get(status, '☐')} {shorten(text, _MAX_TODO)}"
    return el("li", label, *after, class_=name, title=shorten(status, 40) or None)


def _todo_write_result(call: Call, scene: Scene) -> Markup:
    """The list after the call, with the previous status of changed items."""
    result = call.result
    items: list[Any] = list_of(result, "new_todos") if isinstance(result, TodoWriteResult) else []
    items = items or list_of(call.input, "todos")
    before = {text_of(item, "content"): text_of(item, "status") for item in list_of(result, "old_todos")}
    done = sum(text_of(item, "status") == "completed" for item in items)
    removed_items = [text for text in before if text not in {text_of(item, "content") for item in items}]
    progress = f"{done:,} of {len(items):,} done" if items else "an empty list"
    removed = count(len(removed_items), "item removed", "items removed") if removed_items and items else ""
    return join(
        (facts_line(progress, removed), bounded_list(items, lambda item: _todo_row(item, before), "todos", call, scene))
    )


def _todo_row(item: Any, before: dict[str, str]) -> Markup:
    text, status = text_of(item, "content", "subject"), text_of(item, "status")
    was = before.get(text)
    if not before or was == status:
        return status_row(status, text)
    return status_row(
        status, text, " ", el("i", "new" if was is None else f"was {shorten(was, 40)}", class_="previous")
    )


def _task_create_result(call: Call, scene: Scene) -> Markup:
    """`TaskCreate`: the new task."""
    task = call.result.task if isinstance(call.result, TaskResult) else None
    return join((_single_task(task, call.input), prose_block(text_of(call.input, "description"), call, scene)))


def _task_create_input(call: Call, scene: Scene) -> Markup:
    return join((_single_task(None, call.input), prose_block(text_of(call.input, "description"), call, scene)))


def _single_task(task: Any, arguments: Any) -> Markup:
    number = text_of(task, "id")
    subject = text_of(task, "subject") or text_of(arguments, "subject")
    if not subject:
        return EMPTY
    return bullet_list([status_row(text_of(task, "status"), f"#{number} {subject}" if number else subject)], "todos")


def _task_get_result(call: Call, scene: Scene) -> Markup:
    """`TaskGet`: the current state of a task."""
    task = call.result.task if isinstance(call.result, TaskResult) else None
    if task is None:
        return plain_output(call, scene)
    return join(
        (_single_task(task, {}), facts_line(*_task_relations(task)), prose_block(task.description or "", call, scene))
    )


def _task_relations(task: Any) -> Iterator[str]:
    if owner := text_of(task, "owner"):
        yield f"owner {owner}"
    for name, verb in (("blocked_by", "waits for"), ("blocks", "blocks")):
        if numbers := [str(number) for number in list_of(task, name)][:20]:
            yield f"{verb} #{', #'.join(numbers)}"


def _task_list_result(call: Call, scene: Scene) -> Markup:
    """`TaskList`: every task."""
    tasks: list[Any] = list_of(call.result, "tasks") if isinstance(call.result, TaskListResult) else []
    if not tasks:
        return plain_output(call, scene) or facts_line("no tasks")
    done = sum(text_of(task, "status") == "completed" for task in tasks)
    return join((facts_line(f"{done:,} of {len(tasks):,} done"), bounded_list(tasks, _task_row, "todos", call, scene)))


def _task_row(task: Any) -> Markup:
    relations = " · ".join(_task_relations(task))
    row = f"#{text_of(task, 'id')} {text_of(task, 'subject')}"
    return status_row(
        text_of(task, "status"), row, *((" ", el("i", shorten(relations, 200), class_="previous")) if relations else ())
    )


def _task_update_result(call: Call, scene: Scene) -> Markup:
    """`TaskUpdate`: what changed about a task."""
    result, arguments = call.result, call.input
    number = text_of(result, "task_id") or text_of(arguments, "taskId")
    change = value_of(result, "status_change")
    status = text_of(arguments, "status")
    was = text_of(change, "from_")
    now = text_of(change, "to") or status
    label = f"#{number} {text_of(arguments, 'subject')}".strip()
    after = (" ", el("i", f"was {shorten(was, 40)}", class_="previous")) if was else ()
    rows = [status_row(now, f"{label}: {now}" if now else label, *after)] if number else []
    error = text_of(result, "error") if isinstance(result, TaskUpdateResult) else ""
    return join(
        (
            bullet_list(rows, "todos"),
            facts_line(*_changed_fields(arguments), error),
            _task_description(arguments, call, scene),
        )
    )


def _changed_fields(arguments: Any) -> Iterable[str]:
    """The other fields that the call changes."""
    labels = {"owner": "owner", "addBlockedBy": "waits for", "addBlocks": "blocks", "activeForm": "meanwhile"}
    for name, label in labels.items():
        value = value_of(arguments, name)
        if isinstance(value, list):
            value = ", ".join(f"#{number}" for number in value[:20])
        if isinstance(value, str) and value:
            yield f"{label} {value}"


def _task_description(arguments: Any, call: Call, scene: Scene) -> Markup:
    return prose_block(text_of(arguments, "description"), call, scene)


TODO_VIEWS: dict[str, ToolView] = {
    "TodoWrite": ToolView(_todo_write_result, _todo_write_result),
    "TodoRead": ToolView(plain_output),
    "TaskCreate": ToolView(_task_create_result, _task_create_input),
    "TaskGet": ToolView(_task_get_result),
    "TaskList": ToolView(_task_list_result),
    "TaskUpdate": ToolView(_task_update_result, _task_update_result),
}


_MAX_QUESTIONS, _MAX_OPTIONS = 4, 12
"""The tool accepts at most four questions, with fewer options each."""
_MAX_QUESTION = 2000


def _question_input(call: Call, scene: Scene) -> Markup:
    """The questions, unanswered."""
    return _render_questions(call, scene, list_of(call.input, "questions"), {}, {})


def _question_result(call: Call, scene: Scene) -> Markup:
    """The questions with the chosen options and the user's own answers."""
    result = call.result
    answers = result.answers if isinstance(result, AskUserQuestionResult) else None
    if not isinstance(answers, dict):
        return join((_question_input(call, scene), plain_output(call, scene)))
    questions = list_of(call.input, "questions") or list_of(result, "questions")
    question_texts = {text_of(question, "question") for question in questions}
    others = [{"question": name} for name in answers if isinstance(name, str) and name not in question_texts]
    notes = value_of(result, "annotations")
    return _render_questions(call, scene, [*questions, *others], answers, notes if isinstance(notes, dict) else {})


def _render_questions(
    call: Call, scene: Scene, questions: list[Any], answers: dict[str, Any], notes: dict[str, Any]
) -> Markup:
    limit = len(questions) if scene.uncut else _MAX_QUESTIONS
    html = [_render_question(question, answers, notes) for question in questions[:limit]]
    rest = questions[limit:]
    if not rest:
        return join(html)
    more = link_to_rest(
        f"{len(rest):,} more",
        call,
        scene,
        lambda: join(_render_question(question, answers, notes) for question in rest),
    )
    return join((*html, more))


def _render_question(question: Any, answers: dict[str, Any], notes: dict[str, Any]) -> Markup:
    question_text = text_of(question, "question")
    answer = answers.get(question_text)
    options = list_of(question, "options")[:_MAX_OPTIONS]
    chosen, other_text = _match_options(answer, [text_of(option, "label") for option in options])
    header = text_of(question, "header")
    note = text_of(notes.get(question_text), "notes")
    return el(
        "div",
        el(
            "p",
            el("b", shorten(header, 60), " ") if header else EMPTY,
            visible(question_text[:_MAX_QUESTION]),
            class_="question-text",
        ),
        bullet_list((_render_option(option, chosen, answered=answer is not None) for option in options), "options"),
        *(el("p", visible(text[:_MAX_QUESTION]), class_="own-answer") for text in (other_text, note) if text),
        class_="question",
    )


def _render_option(option: Any, chosen: frozenset[str], *, answered: bool) -> Markup:
    label, more = text_of(option, "label"), text_of(option, "description")
    is_chosen = label in chosen
    sign = "◉" if is_chosen else "○"
    after = (" ", el("span", shorten(more, 400), class_="description")) if more else ()
    label_element = el("b", shorten(label, 200)) if is_chosen else shorten(label, 200)
    state = "chosen" if is_chosen else "passed" if answered else None
    return el("li", f"{sign} ", label_element, *after, class_=state, title="chosen" if is_chosen else None)


def _match_options(answer: Any, labels: list[str]) -> tuple[frozenset[str], str]:
    """The options that an answer contains, and the rest of the answer. Several options are separated by commas."""
    parts = [str(part) for part in answer] if isinstance(answer, list) else [answer] if isinstance(answer, str) else []
    chosen: set[str] = set()
    other_parts: list[str] = []
    for part in parts:
        rest = part
        for label in sorted({label for label in labels if label}, key=len, reverse=True):
            padded = f", {rest}, "
            if f", {label}, " in padded:
                chosen.add(label)
                rest = padded.replace(f", {label}, ", ", ", 1).removeprefix(", ").removesuffix(", ").strip(", ")
        if rest:
            other_parts.append(rest)
    return frozenset(chosen), ", ".join(other_parts)


def _plan_input(call: Call, scene: Scene) -> Markup:
    """The plan that was shown to the person."""
    result = call.result
    text = text_of(result, "plan") or text_of(call.input, "plan")
    return el("div", prose_block(text, call, scene), class_="plan") if text else EMPTY


def _plan_result(call: Call, scene: Scene) -> Markup:
    result = call.result
    is_approved = isinstance(result, ExitPlanModeResult) and call.outcome is Outcome.OK
    edited = "edited by the user" if value_of(result, "plan_was_edited") else ""
    file_path = text_of(result, "file_path")
    facts = facts_line("approved" if is_approved else "", edited, f"saved to {file_path}" if file_path else "")
    plan = _plan_input(call, scene)
    return join((plan, facts)) if plan else join((facts, prose_block(strip_program_tags(call.output), call, scene)))


QUESTION_VIEWS: dict[str, ToolView] = {
    "AskUserQuestion": ToolView(_question_result, _question_input),
    **dict.fromkeys(("ExitPlanMode", "exit_plan_mode"), ToolView(_plan_result, _plan_input)),
}
