"""A call: its line, and what came of it, folded below."""

from __future__ import annotations

from markupsafe import Markup

from threadline.model.call import Call, Outcome
from threadline.render.call_text import OUTCOMES
from threadline.render.diff import tally
from threadline.render.figures import span_of_time
from threadline.render.html.calls.views import view_of
from threadline.render.html.element import EMPTY, Child, el
from threadline.render.html.scene import Scene
from threadline.render.html.view import Amount
from threadline.render.html.words import one
from threadline.render.telling import FILE_TOOLS, telling

_TELLING = 160
# Tools whose view is what a reader wants to see at once, folded or not.
_OPEN = frozenset(
    {"Edit", "MultiEdit", "Write", "Replace", "NotebookEdit", "TodoWrite", "AskUserQuestion", "ExitPlanMode"}
    | {"exit_plan_mode"}
)


def call(made: Call, anchor: str, scene: Scene, *below: Child) -> Markup:
    """A call; `below` stands under it: its feedback, its agents."""
    body = view_of(made, anchor, scene)
    head = el("summary" if body else "div", *_line(made, scene), class_="line")
    # A link inside a summary could not be reached by those who hear the page: it stands beside.
    address = None if scene.whole else scene.links.call(made.id)
    beside = el("a", "whole", href=address, class_="whole") if address else EMPTY
    if not body:
        return el("div", head, beside, *below, class_="made")
    is_open = scene.view.calls is Amount.FULL or made.tool in _OPEN or made.outcome is Outcome.ERROR
    folded = el("details", head, el("div", body, class_="result"), open=is_open)
    return el("div", folded, beside, *below, class_="made")


def tool_name(name: str) -> str:
    """`server: tool` for what an MCP server offers."""
    server, _, tool = name.removeprefix("mcp__").partition("__")
    return f"{server}: {tool}" if name.startswith("mcp__") and tool else name or "(no name)"


def _line(made: Call, scene: Scene) -> tuple[Markup, ...]:
    mark = OUTCOMES[made.outcome]
    said = telling(made.tool, made.input)
    told = one(scene.near(said) if made.tool in FILE_TOOLS else said, _TELLING)
    return (
        el("span", mark.sign, class_=f"outcome {made.outcome}", title=str(made.outcome)),
        el("b", one(tool_name(made.tool), 60), class_="tool"),
        el("code", told, class_="told") if told else EMPTY,
        el("span", changed, class_="tally") if (changed := tally(made)) else EMPTY,
        el("span", str(made.outcome), class_="how") if made.outcome is not Outcome.OK else EMPTY,
        el("span", span_of_time(made.duration), class_="took") if made.duration else EMPTY,
    )
