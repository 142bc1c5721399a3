"""Render a tool call: a summary line with its outcome, and below it the view of its tool."""

from __future__ import annotations

from markupsafe import Markup

from threadline.model.calls import Call, Outcome
from threadline.model.results import OtherResult, ToolResult
from threadline.model.text import format_duration
from threadline.render import FILE_TOOLS, OUTCOME_MARKS, Detail, change_tally, shorten, summarize_input, visible
from threadline.render.html.calls import agents, files, other, planning, search, shell, web
from threadline.render.html.calls.components import ToolView, outcome_sentence, render_failure
from threadline.render.html.calls.other import DEFAULT_VIEW
from threadline.render.html.element import EMPTY, Child, el, join
from threadline.render.html.scene import Scene

_MAX_SUMMARY = 160
# Tools whose view is what a reader wants to see at once, folded or not.
_OPEN_TOOLS = frozenset(
    {"Edit", "MultiEdit", "Write", "Replace", "NotebookEdit", "TodoWrite", "AskUserQuestion", "ExitPlanMode"}
    | {"exit_plan_mode"}
)


def render_call(made: Call, anchor: str, scene: Scene, *below: Child) -> Markup:
    """A call; `below` stands under it: its feedback, its agents."""
    body = render_tool_view(made, anchor, scene)
    head = el("summary" if body else "div", *_summary_line(made, scene), class_="line")
    # A link inside a summary could not be reached by those who hear the page: it stands beside.
    address = None if scene.whole else scene.links.call(made.id)
    beside = el("a", "whole", href=address, class_="whole") if address else EMPTY
    if not body:
        return el("div", head, beside, *below, class_="made")
    is_open = scene.view.calls is Detail.FULL or made.tool in _OPEN_TOOLS or made.outcome is Outcome.ERROR
    folded = el("details", head, el("div", body, class_="result"), open=is_open)
    return el("div", folded, beside, *below, class_="made")


def tool_name(name: str) -> str:
    """`server: tool` for what an MCP server offers."""
    server, _, tool = name.removeprefix("mcp__").partition("__")
    return f"{server}: {tool}" if name.startswith("mcp__") and tool else name or "(no name)"


def _summary_line(made: Call, scene: Scene) -> tuple[Markup, ...]:
    mark = OUTCOME_MARKS[made.outcome]
    said = summarize_input(made.tool, made.input)
    told = shorten(scene.near(said) if made.tool in FILE_TOOLS else said, _MAX_SUMMARY)
    return (
        el("span", mark.sign, class_=f"outcome {made.outcome}", title=str(made.outcome)),
        el("b", shorten(tool_name(made.tool), 60), class_="tool"),
        el("code", told, class_="told") if told else EMPTY,
        el("span", changed, class_="tally") if (changed := change_tally(made)) else EMPTY,
        el("span", str(made.outcome), class_="how") if made.outcome is not Outcome.OK else EMPTY,
        el("span", format_duration(made.duration), class_="took") if made.duration else EMPTY,
    )


TOOL_VIEWS: dict[str, ToolView] = {
    **agents.AGENT_VIEWS,
    **planning.QUESTION_VIEWS,
    **files.EDIT_VIEWS,
    **search.SEARCH_VIEWS,
    **planning.TODO_VIEWS,
    **other.PROGRAM_VIEWS,
    **files.READ_VIEWS,
    **shell.SHELL_VIEWS,
    **web.WEB_VIEWS,
}
"""The tools that have a view of their own."""


def render_tool_view(made: Call, _anchor: str, scene: Scene) -> Markup:
    """What a call did and what came of it, in the view of its tool; empty where there is nothing to say."""
    view = TOOL_VIEWS.get(made.tool, DEFAULT_VIEW)
    return join((_render_body(view, made, scene), _persisted_note(made)))


def _render_body(view: ToolView, made: Call, scene: Scene) -> Markup:
    if made.outcome is Outcome.OK:
        return view.finished(made, scene)
    if isinstance(made.result, ToolResult) and not isinstance(made.result, OtherResult):
        # The tool told what it did even so: a command that was interrupted has printed something.
        after = render_failure(made, scene) if made.outcome is Outcome.ERROR else outcome_sentence(made)
        return join((view.finished(made, scene), after))
    return join((view.unfinished(made, scene) if view.unfinished is not None else EMPTY, render_failure(made, scene)))


def _persisted_note(made: Call) -> Markup:
    """Where the whole output lies, where it was too long for the transcript."""
    if made.persisted is None:
        return EMPTY
    return el("p", "The whole output was put into ", el("code", visible(str(made.persisted))), class_="persisted")
