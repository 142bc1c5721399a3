"""Views of tools that start agents, send messages, and run workflows and skills."""

from __future__ import annotations

import re
from collections.abc import Iterator

from markupsafe import Markup

from threadline.model.calls import Call
from threadline.model.results import AgentResult, SendMessageResult, WorkflowResult
from threadline.model.text import count, extract_text, short_model_name
from threadline.render import text_of, value_of
from threadline.render.html.calls.components import (
    ToolView,
    code_block,
    facts_line,
    folded_block,
    output_block,
    prose_block,
    strip_program_tags,
)
from threadline.render.html.code import is_json
from threadline.render.html.element import EMPTY, join
from threadline.render.html.scene import Scene

_LAUNCH_STATUSES = {
    "async_launched": "works in the background",
    "teammate_spawned": "joined the team",
    "remote_launched": "works elsewhere",
}
_MAX_TASK_ELEMENTS, _MAX_ARGUMENTS = 30, 100
"""Elements of a task, which is folded inside what is folded, and stands on the agent's own page."""
_MACHINE_LINES = re.compile(r"^(?:agentId: |<usage>)", re.MULTILINE)
_TOOLS_USED = re.compile(r"\s*<tools-used-before-summary>.*?</tools-used-before-summary>\s*", re.DOTALL)


def _agent_input(made: Call, scene: Scene) -> Markup:
    """The task of an agent, folded: the agent's own first line says it again."""
    given = made.input
    said = (
        text_of(given, "model"),
        "in the background" if value_of(given, "run_in_background") is True else "",
        f"in a {text_of(given, 'isolation')}" if text_of(given, "isolation") else "",
        f"goes on with agent {text_of(given, 'resume')}" if text_of(given, "resume") else "",
    )
    return join(
        (
            facts_line(*said),
            folded_block("Prompt", prose_block(text_of(given, "prompt"), made, scene, _MAX_TASK_ELEMENTS)),
        )
    )


def _agent_result(made: Call, scene: Scene) -> Markup:
    result = made.result if isinstance(made.result, AgentResult) else None
    told = _agent_input(made, scene)
    if result is not None and result.status in _LAUNCH_STATUSES:
        where = f"its words go to {result.output_file}" if result.output_file else ""
        return join((told, facts_line(_LAUNCH_STATUSES[result.status], where)))
    return join((told, prose_block(_agent_report(made, result), made, scene), facts_line(*_agent_facts(result))))


def _agent_report(made: Call, result: AgentResult | None) -> str:
    """What the agent answered, without what the program adds for the model."""
    own = extract_text(result.content) if result is not None else ""
    return _MACHINE_LINES.split(_TOOLS_USED.sub("", own or strip_program_tags(made.output)), maxsplit=1)[0]


def _agent_facts(result: AgentResult | None) -> Iterator[str]:
    if result is None:
        return
    if result.resolved_model:
        yield short_model_name(result.resolved_model)
    if result.total_tool_use_count is not None:
        yield count(result.total_tool_use_count, "call")
    if result.total_tokens is not None:
        yield count(result.total_tokens, "token")
    if result.was_interrupted:
        yield "interrupted"
    if result.worktree_path:
        yield f"worked in {result.worktree_path}"


def _message_input(made: Call, scene: Scene) -> Markup:
    """`SendMessage`: to whom, and what."""
    given = made.input
    to = text_of(given, "to", "recipient")
    said = (f"to {to}" if to else "", text_of(given, "summary"))
    return join((facts_line(*said), prose_block(text_of(given, "message", "content"), made, scene)))


def _message_result(made: Call, scene: Scene) -> Markup:
    result = made.result
    answer = text_of(result, "display") or text_of(result, "message") if isinstance(result, SendMessageResult) else ""
    text = "" if is_json(made.output) else strip_program_tags(made.output)
    return join((_message_input(made, scene), facts_line(answer) if answer else output_block(text, made, scene)))


def _workflow_input(made: Call, scene: Scene) -> Markup:
    """`Workflow`: its script."""
    given = made.input
    name = text_of(given, "title", "name", "workflow")
    script = code_block(text_of(given, "script"), "javascript", made, scene)
    return join((facts_line(name), script))


def _workflow_result(made: Call, scene: Scene) -> Markup:
    result = made.result
    if not isinstance(result, WorkflowResult):
        return join((_workflow_input(made, scene), output_block(strip_program_tags(made.output), made, scene)))
    said = (
        result.summary,
        _LAUNCH_STATUSES.get(result.status or "", result.status or ""),
        f"run {result.run_id}" if result.run_id else "",
        f"script {result.script_path}" if result.script_path else "",
    )
    return join((_workflow_input(made, scene), facts_line(*said)))


def _skill_input(made: Call, scene: Scene) -> Markup:
    """`Skill`, `SlashCommand`: what it was given, where the call's line has no room for it."""
    arguments = text_of(made.input, "args", "command")
    is_long = len(arguments) > _MAX_ARGUMENTS or "\n" in arguments
    return output_block(arguments, made, scene, class_="given") if is_long else EMPTY


def _skill_result(made: Call, scene: Scene) -> Markup:
    result = made.result
    tools = value_of(result, "allowed_tools")
    names = [name for name in tools if isinstance(name, str)] if isinstance(tools, list) else []
    model = text_of(result, "model")
    said = (f"with {', '.join(names[:20])}" if names else "", short_model_name(model) if model else "")
    text = strip_program_tags(made.output)
    launching = f"Launching skill: {text_of(made.input, 'skill', 'command')}"
    shown = EMPTY if text == launching else prose_block(text, made, scene)
    return join((_skill_input(made, scene), facts_line(*said), shown))


AGENT_VIEWS: dict[str, ToolView] = {
    **dict.fromkeys(("Task", "Agent"), ToolView(_agent_result, _agent_input)),
    "SendMessage": ToolView(_message_result, _message_input),
    "Workflow": ToolView(_workflow_result, _workflow_input),
    **dict.fromkeys(("Skill", "SlashCommand"), ToolView(_skill_result, _skill_input)),
}
