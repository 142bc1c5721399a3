"""Agents and other sessions: what they were told, and what they answered."""

from __future__ import annotations

import re
from collections.abc import Iterator

from markupsafe import Markup

from threadline.model.call import Call
from threadline.model.results import AgentResult, SendMessageResult, WorkflowResult
from threadline.model.text import extract_text
from threadline.render.figures import count, model_name
from threadline.render.html.calls.ended import clean
from threadline.render.html.calls.pieces import code, facts, folded, printed, prose
from threadline.render.html.calls.tool_view import ToolView
from threadline.render.html.element import EMPTY, join
from threadline.render.html.given import text_of, value_of
from threadline.render.html.scene import Scene
from threadline.render.html.tidy import is_json

_LAUNCHED = {
    "async_launched": "works in the background",
    "teammate_spawned": "joined the team",
    "remote_launched": "works elsewhere",
}
_FEW, _SHORT = 30, 100
"""Elements of a task, which is folded inside what is folded, and stands on the agent's own page."""
_MACHINE_LINES = re.compile(r"^(?:agentId: |<usage>)", re.MULTILINE)
_TOOLS_USED = re.compile(r"\s*<tools-used-before-summary>.*?</tools-used-before-summary>\s*", re.DOTALL)


def _told(made: Call, scene: Scene) -> Markup:
    """The task of an agent, folded: the agent's own first line says it again."""
    given = made.input
    said = (
        text_of(given, "model"),
        "in the background" if value_of(given, "run_in_background") is True else "",
        f"in a {text_of(given, 'isolation')}" if text_of(given, "isolation") else "",
        f"goes on with agent {text_of(given, 'resume')}" if text_of(given, "resume") else "",
    )
    return join((facts(*said), folded("Prompt", prose(text_of(given, "prompt"), made, scene, _FEW))))


def _reported(made: Call, scene: Scene) -> Markup:
    result = made.result if isinstance(made.result, AgentResult) else None
    told = _told(made, scene)
    if result is not None and result.status in _LAUNCHED:
        where = f"its words go to {result.output_file}" if result.output_file else ""
        return join((told, facts(_LAUNCHED[result.status], where)))
    return join((told, prose(_report(made, result), made, scene), facts(*_figures(result))))


def _report(made: Call, result: AgentResult | None) -> str:
    """What the agent answered, without what the program adds for the model."""
    own = extract_text(result.content) if result is not None else ""
    return _MACHINE_LINES.split(_TOOLS_USED.sub("", own or clean(made.output)), maxsplit=1)[0]


def _figures(result: AgentResult | None) -> Iterator[str]:
    if result is None:
        return
    if result.resolved_model:
        yield model_name(result.resolved_model)
    if result.total_tool_use_count is not None:
        yield count(result.total_tool_use_count, "call")
    if result.total_tokens is not None:
        yield count(result.total_tokens, "token")
    if result.was_interrupted:
        yield "interrupted"
    if result.worktree_path:
        yield f"worked in {result.worktree_path}"


def _message(made: Call, scene: Scene) -> Markup:
    """`SendMessage`: to whom, and what."""
    given = made.input
    to = text_of(given, "to", "recipient")
    said = (f"to {to}" if to else "", text_of(given, "summary"))
    return join((facts(*said), prose(text_of(given, "message", "content"), made, scene)))


def _sent(made: Call, scene: Scene) -> Markup:
    result = made.result
    answer = text_of(result, "display") or text_of(result, "message") if isinstance(result, SendMessageResult) else ""
    text = "" if is_json(made.output) else clean(made.output)
    return join((_message(made, scene), facts(answer) if answer else printed(text, made, scene)))


def _workflow(made: Call, scene: Scene) -> Markup:
    """`Workflow`: its script."""
    given = made.input
    name = text_of(given, "title", "name", "workflow")
    script = code(text_of(given, "script"), "javascript", made, scene)
    return join((facts(name), script))


def _launched(made: Call, scene: Scene) -> Markup:
    result = made.result
    if not isinstance(result, WorkflowResult):
        return join((_workflow(made, scene), printed(clean(made.output), made, scene)))
    said = (
        result.summary,
        _LAUNCHED.get(result.status or "", result.status or ""),
        f"run {result.run_id}" if result.run_id else "",
        f"script {result.script_path}" if result.script_path else "",
    )
    return join((_workflow(made, scene), facts(*said)))


def _skill(made: Call, scene: Scene) -> Markup:
    """`Skill`, `SlashCommand`: what it was given, where the call's line has no room for it."""
    arguments = text_of(made.input, "args", "command")
    is_long = len(arguments) > _SHORT or "\n" in arguments
    return printed(arguments, made, scene, class_="given") if is_long else EMPTY


def _used(made: Call, scene: Scene) -> Markup:
    result = made.result
    tools = value_of(result, "allowed_tools")
    names = [name for name in tools if isinstance(name, str)] if isinstance(tools, list) else []
    model = text_of(result, "model")
    said = (f"with {', '.join(names[:20])}" if names else "", model_name(model) if model else "")
    text = clean(made.output)
    launching = f"Launching skill: {text_of(made.input, 'skill', 'command')}"
    shown = EMPTY if text == launching else prose(text, made, scene)
    return join((_skill(made, scene), facts(*said), shown))


VIEWS: dict[str, ToolView] = {
    **dict.fromkeys(("Task", "Agent"), ToolView(_reported, _told)),
    "SendMessage": ToolView(_sent, _message),
    "Workflow": ToolView(_launched, _workflow),
    **dict.fromkeys(("Skill", "SlashCommand"), ToolView(_used, _skill)),
}
