"""Render a tool call: a summary line with its outcome, and below it the view of its tool."""

from __future__ import annotations

from markupsafe import Markup

from threadline.model.call_summary import FILE_TOOLS, change_tally, summarize_input
from threadline.model.calls import Call, Outcome
from threadline.model.names import tool_label
from threadline.model.results import OtherResult, ToolResult
from threadline.model.text import format_duration
from threadline.render import OUTCOME_MARKS, Detail, shorten, visible
from threadline.render.html.calls import agents, files, other, planning, search, shell
from threadline.render.html.calls.components import ToolView, outcome_sentence, render_failure
from threadline.render.html.calls.other import DEFAULT_VIEW
from threadline.render.html.element import EMPTY, Child, el, join
from threadline.render.html.sections import Scene

_MAX_SUMMARY = 160
# Tools whose view is open by default.
_OPEN_TOOLS = frozenset(
    {"Edit", "MultiEdit", "Write", "Replace", "NotebookEdit", "TodoWrite", "AskUserQuestion", "ExitPlanMode"}
    | {"exit_plan_mode"}
)


def render_call(call: Call, scene: Scene, *below: Child) -> Markup:
    """Render a call. `below` is shown under it: its feedback and its agents."""
    body = render_tool_view(call, scene)
    head = el("summary" if body else "div", *_summary_line(call, scene), class_="line")
    # Screen readers cannot reach a link inside a summary, so the link is placed beside it.
    address = None if scene.uncut else scene.links.call(call.id)
    link = el("a", "full view", href=address, class_="open-link") if address else EMPTY
    if not body:
        return el("div", head, link, *below, class_="tool-call")
    is_open = scene.view.calls is Detail.FULL or call.tool in _OPEN_TOOLS or call.outcome is Outcome.ERROR
    folded = el("details", head, el("div", body, class_="result"), open=is_open)
    return el("div", folded, link, *below, class_="tool-call")


def _summary_line(call: Call, scene: Scene) -> tuple[Markup, ...]:
    mark = OUTCOME_MARKS[call.outcome]
    full_text = summarize_input(call.tool, call.input)
    text = shorten(scene.relative_path(full_text) if call.tool in FILE_TOOLS else full_text, _MAX_SUMMARY)
    return (
        el("span", mark.sign, class_=f"outcome {call.outcome}", title=str(call.outcome)),
        el("b", shorten(tool_label(call.tool), 60), class_="tool"),
        el("code", text, class_="excerpt") if text else EMPTY,
        el("span", tally, class_="tally") if (tally := change_tally(call.result)) else EMPTY,
        el("span", str(call.outcome), class_="outcome-name") if call.outcome is not Outcome.OK else EMPTY,
        el("span", format_duration(call.duration), class_="duration") if call.duration else EMPTY,
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
    **search.WEB_VIEWS,
}
"""Views by tool name. Other tools have `DEFAULT_VIEW`."""


def render_tool_view(call: Call, scene: Scene) -> Markup:
    """Render the input and result of a call with the view of its tool. May be empty."""
    view = TOOL_VIEWS.get(call.tool, DEFAULT_VIEW)
    return join((_render_body(view, call, scene), _persisted_note(call)))


def _render_body(view: ToolView, call: Call, scene: Scene) -> Markup:
    if call.outcome is Outcome.OK:
        return view.finished(call, scene)
    if isinstance(call.result, ToolResult) and not isinstance(call.result, OtherResult):
        # The call has a result despite its outcome: an interrupted command may have printed something.
        after = render_failure(call, scene) if call.outcome is Outcome.ERROR else outcome_sentence(call)
        return join((view.finished(call, scene), after))
    return join((view.unfinished(call, scene) if view.unfinished is not None else EMPTY, render_failure(call, scene)))


def _persisted_note(call: Call) -> Markup:
    """The path of the full output, if it was too long for the transcript."""
    if call.persisted is None:
        return EMPTY
    return el("p", "Full output: ", el("code", visible(str(call.persisted))), class_="persisted")
