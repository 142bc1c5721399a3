"""Views of tools that start agents, send messages, and run workflows and skills."""

from __future__ import annotations

import re
from collections.abc import Iterator

from markupsafe import Markup

from threadline.model.call_summary import LAUNCH_STATUSES, strip_machine_lines, strip_program_tags, text_of, value_of
from threadline.model.calls import Call
from threadline.model.names import AGENT_TOOLS
from threadline.model.results import AgentResult, SendMessageResult, WorkflowResult
from threadline.model.text import count, extract_text, format_tokens, short_model_name
from threadline.render.html.calls.components import (
    ToolView,
    code_block,
    facts_line,
    folded_block,
    output_block,
    plain_output,
    prose_block,
)
from threadline.render.html.code import is_json
from threadline.render.html.element import EMPTY, join
from threadline.render.html.sections import Scene

_MAX_TASK_ELEMENTS, _MAX_ARGUMENTS = 30, 100
"""The maximum number of elements of a task. It is folded twice, and the agent's own page contains it."""
_TOOLS_USED = re.compile(r"\s*<tools-used-before-summary>.*?</tools-used-before-summary>\s*", re.DOTALL)


def _agent_input(call: Call, scene: Scene) -> Markup:
    """The task of an agent, folded because the agent's first item repeats it."""
    arguments = call.input
    facts = (
        text_of(arguments, "model"),
        "in the background" if value_of(arguments, "run_in_background") is True else "",
        f"in a {text_of(arguments, 'isolation')}" if text_of(arguments, "isolation") else "",
        f"resumes agent {text_of(arguments, 'resume')}" if text_of(arguments, "resume") else "",
    )
    return join(
        (
            facts_line(*facts),
            folded_block("Prompt", prose_block(text_of(arguments, "prompt"), call, scene, _MAX_TASK_ELEMENTS)),
        )
    )


def _agent_result(call: Call, scene: Scene) -> Markup:
    result = call.result if isinstance(call.result, AgentResult) else None
    task = _agent_input(call, scene)
    if result is not None and result.status in LAUNCH_STATUSES:
        where = f"output: {result.output_file}" if result.output_file else ""
        return join((task, facts_line(LAUNCH_STATUSES[result.status], where)))
    return join((task, prose_block(_agent_report(call, result), call, scene), facts_line(*_agent_facts(result))))


def _agent_report(call: Call, result: AgentResult | None) -> str:
    """The agent's answer without the lines that Claude Code adds for the model."""
    text = extract_text(result.content) if result is not None else ""
    return strip_machine_lines(_TOOLS_USED.sub("", text or strip_program_tags(call.output)))


def _agent_facts(result: AgentResult | None) -> Iterator[str]:
    if result is None:
        return
    if result.resolved_model:
        yield short_model_name(result.resolved_model)
    if result.total_tool_use_count is not None:
        yield count(result.total_tool_use_count, "call")
    if result.total_tokens is not None:
        yield f"{format_tokens(result.total_tokens)} tokens"
    if result.was_interrupted:
        yield "interrupted"
    if result.worktree_path:
        yield f"worked in {result.worktree_path}"


def _message_input(call: Call, scene: Scene) -> Markup:
    """`SendMessage`: the recipient and the message."""
    arguments = call.input
    to = text_of(arguments, "to", "recipient")
    facts = (f"to {to}" if to else "", text_of(arguments, "summary"))
    return join((facts_line(*facts), prose_block(text_of(arguments, "message", "content"), call, scene)))


def _message_result(call: Call, scene: Scene) -> Markup:
    result = call.result
    answer = text_of(result, "display") or text_of(result, "message") if isinstance(result, SendMessageResult) else ""
    text = "" if is_json(call.output) else strip_program_tags(call.output)
    return join((_message_input(call, scene), facts_line(answer) if answer else output_block(text, call, scene)))


def _workflow_input(call: Call, scene: Scene) -> Markup:
    """`Workflow`: its script."""
    arguments = call.input
    name = text_of(arguments, "title", "name", "workflow")
    script = code_block(text_of(arguments, "script"), "javascript", call, scene)
    return join((facts_line(name), script))


def _workflow_result(call: Call, scene: Scene) -> Markup:
    result = call.result
    if not isinstance(result, WorkflowResult):
        return join((_workflow_input(call, scene), plain_output(call, scene)))
    facts = (
        result.summary,
        LAUNCH_STATUSES.get(result.status or "", result.status or ""),
        f"run {result.run_id}" if result.run_id else "",
        f"script {result.script_path}" if result.script_path else "",
    )
    return join((_workflow_input(call, scene), facts_line(*facts)))


def _skill_input(call: Call, scene: Scene) -> Markup:
    """`Skill`, `SlashCommand`: the arguments, if they are too long for the summary line."""
    arguments = text_of(call.input, "args", "command")
    is_long = len(arguments) > _MAX_ARGUMENTS or "\n" in arguments
    return output_block(arguments, call, scene, class_="input") if is_long else EMPTY


def _skill_result(call: Call, scene: Scene) -> Markup:
    result = call.result
    tools = value_of(result, "allowed_tools")
    names = [name for name in tools if isinstance(name, str)] if isinstance(tools, list) else []
    model = text_of(result, "model")
    facts = (f"with {', '.join(names[:20])}" if names else "", short_model_name(model) if model else "")
    text = strip_program_tags(call.output)
    launching = f"Launching skill: {text_of(call.input, 'skill', 'command')}"
    shown = EMPTY if text == launching else prose_block(text, call, scene)
    return join((_skill_input(call, scene), facts_line(*facts), shown))


AGENT_VIEWS: dict[str, ToolView] = {
    **dict.fromkeys(AGENT_TOOLS, ToolView(_agent_result, _agent_input)),
    "SendMessage": ToolView(_message_result, _message_input),
    "Workflow": ToolView(_workflow_result, _workflow_input),
    **dict.fromkeys(("Skill", "SlashCommand"), ToolView(_skill_result, _skill_input)),
}
