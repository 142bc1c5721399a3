"""What the person was asked: questions with their options, and plans."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from threadline.model.call import Call, Outcome
from threadline.model.results import AskUserQuestionResult, ExitPlanModeResult
from threadline.render.html.calls.cut import leads
from threadline.render.html.calls.ended import clean
from threadline.render.html.calls.pieces import facts, listed, printed, prose
from threadline.render.html.calls.tool_view import ToolView
from threadline.render.html.element import EMPTY, el, join
from threadline.render.html.given import list_of, text_of, value_of
from threadline.render.html.scene import Scene
from threadline.render.html.words import one, shown

_MOST_QUESTIONS, _MOST_OPTIONS = 4, 12
"""The tool takes no more questions, nor as many options."""
_LONGEST = 2000


def _asked(made: Call, scene: Scene) -> Markup:
    """The questions, unanswered."""
    return _questions(made, scene, list_of(made.input, "questions"), {}, {})


def _answered(made: Call, scene: Scene) -> Markup:
    """The questions, what was chosen, and what was written instead."""
    result = made.result
    answers = result.answers if isinstance(result, AskUserQuestionResult) else None
    if not isinstance(answers, dict):
        return join((_asked(made, scene), printed(clean(made.output), made, scene)))
    questions = list_of(made.input, "questions") or list_of(result, "questions")
    known = {text_of(question, "question") for question in questions}
    others = [{"question": name} for name in answers if isinstance(name, str) and name not in known]
    notes = value_of(result, "annotations")
    return _questions(made, scene, [*questions, *others], answers, notes if isinstance(notes, dict) else {})


def _questions(
    made: Call, scene: Scene, questions: list[Any], answers: dict[str, Any], notes: dict[str, Any]
) -> Markup:
    most = len(questions) if scene.whole else _MOST_QUESTIONS
    drawn = [_question(question, answers, notes) for question in questions[:most]]
    rest = questions[most:]
    if not rest:
        return join(drawn)
    more = leads(f"{len(rest):,} more", made, scene, lambda: join(_question(one_, answers, notes) for one_ in rest))
    return join((*drawn, more))


def _question(question: Any, answers: dict[str, Any], notes: dict[str, Any]) -> Markup:
    asked = text_of(question, "question")
    answer = answers.get(asked)
    options = list_of(question, "options")[:_MOST_OPTIONS]
    chosen, own = _chosen(answer, [text_of(option, "label") for option in options])
    header = text_of(question, "header")
    note = text_of(notes.get(asked), "notes")
    return el(
        "div",
        el("p", el("b", one(header, 60), " ") if header else EMPTY, shown(asked[:_LONGEST]), class_="asks"),
        listed((_option(option, chosen, answered=answer is not None) for option in options), "options"),
        *(el("p", shown(text[:_LONGEST]), class_="own") for text in (own, note) if text),
        class_="question",
    )


def _option(option: Any, chosen: frozenset[str], *, answered: bool) -> Markup:
    label, more = text_of(option, "label"), text_of(option, "description")
    is_chosen = label in chosen
    sign = "◉" if is_chosen else "○"
    after = (" ", el("span", one(more, 400), class_="told")) if more else ()
    said = el("b", one(label, 200)) if is_chosen else one(label, 200)
    state = "chosen" if is_chosen else "passed" if answered else None
    return el("li", f"{sign} ", said, *after, class_=state, title="chosen" if is_chosen else None)


def _chosen(answer: Any, labels: list[str]) -> tuple[frozenset[str], str]:
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


def _plan(made: Call, scene: Scene) -> Markup:
    """A plan as it was shown to the person."""
    result = made.result
    text = text_of(result, "plan") or text_of(made.input, "plan")
    return el("div", prose(text, made, scene), class_="plan") if text else EMPTY


def _approved(made: Call, scene: Scene) -> Markup:
    result = made.result
    is_known = isinstance(result, ExitPlanModeResult) and made.outcome is Outcome.OK
    edited = "changed by the person" if value_of(result, "plan_was_edited") else ""
    kept = text_of(result, "file_path")
    said = facts("approved" if is_known else "", edited, f"kept in {kept}" if kept else "")
    plan = _plan(made, scene)
    return join((plan, said)) if plan else join((said, prose(clean(made.output), made, scene)))


VIEWS: dict[str, ToolView] = {
    "AskUserQuestion": ToolView(_answered, _asked),
    **dict.fromkeys(("ExitPlanMode", "exit_plan_mode"), ToolView(_approved, _plan)),
}
