"""Views of shell commands and background tasks."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from threadline.model.call_summary import number_of, strip_program_tags, text_of, value_of
from threadline.model.calls import Call
from threadline.model.results import OutputResult, ShellOutputResult, ShellResult, StopResult
from threadline.model.text import count
from threadline.render.html.calls.components import (
    ToolView,
    bounded_list,
    code_block,
    facts_line,
    file_link,
    output_block,
    plain_output,
    prose_block,
)
from threadline.render.html.code import to_indented_json
from threadline.render.html.element import EMPTY, el, join
from threadline.render.html.images import render_call_images
from threadline.render.html.sections import Scene

_EMPTY_OUTPUTS = ("(Bash completed with no output)", "(No content)", "Tool ran without output or errors")


def _shell_input(call: Call, scene: Scene, language: str = "bash") -> Markup:
    arguments = call.input
    background = "in the background" if value_of(arguments, "run_in_background") is True else ""
    limit = number_of(arguments, "timeout")
    timeout = f"timeout {limit / 1000:g} s" if limit else ""
    command = text_of(arguments, "command")
    return join(
        (
            facts_line(text_of(arguments, "description"), background, timeout),
            code_block(command, language, call, scene, class_="command") if command else _unknown_input(call, scene),
        )
    )


def _unknown_input(call: Call, scene: Scene) -> Markup:
    """An input without a command, as JSON."""
    return code_block(to_indented_json(call.input), "json", call, scene, class_="input") if call.input else EMPTY


def _powershell_input(call: Call, scene: Scene) -> Markup:
    return _shell_input(call, scene, "powershell")


def _shell_result(call: Call, scene: Scene) -> Markup:
    return join((_shell_input(call, scene), _shell_output(call, scene)))


def _powershell_result(call: Call, scene: Scene) -> Markup:
    return join((_powershell_input(call, scene), _shell_output(call, scene)))


def _shell_output(call: Call, scene: Scene) -> Markup:
    """The output of a command, with stdout and stderr separated."""
    result = call.result
    if not isinstance(result, ShellResult):
        return join((_stdout_block(strip_program_tags(call.output), call, scene), render_call_images(call, scene)))
    out = "" if result.is_image else result.stdout or ""
    facts = _shell_facts(result)
    parts = (
        _stdout_block(out, call, scene),
        _stderr_block(result.stderr, call, scene),
        render_call_images(call, scene),
        facts_line(*facts),
        _changed_files(result.bash_edit_diff, call, scene),
    )
    output = join(parts)
    return output or el("p", "no output", class_="facts")


def _stdout_block(text: str, call: Call, scene: Scene) -> Markup:
    return EMPTY if text.strip() in _EMPTY_OUTPUTS else output_block(text, call, scene)


def _stderr_block(text: str | None, call: Call, scene: Scene) -> Markup:
    html = output_block(text or "", call, scene, class_="output stderr")
    return join((el("p", "stderr", class_="label"), html)) if html else EMPTY


def _shell_facts(result: ShellResult) -> list[str]:
    facts = [
        result.return_code_interpretation or "",
        "interrupted" if result.interrupted else "",
        f"timed out after {result.timed_out_after_ms / 1000:g} s" if result.timed_out_after_ms else "",
        f"background task {result.background_task_id}" if result.background_task_id else "",
        "moved to the background by the user" if result.backgrounded_by_user else "",
        "outside the sandbox" if result.dangerously_disable_sandbox else "",
    ]
    return [fact for fact in facts if fact]


def _changed_files(changes: Any, call: Call, scene: Scene) -> Markup:
    """The files that a command changed, if the result contains them."""
    names = value_of(changes, "changedFiles")
    files = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
    if not files:
        return EMPTY
    rows = bounded_list(files, lambda name: el("li", file_link(name, scene)), "files", call, scene)
    return join((el("p", f"changed {count(len(files), 'file')}", class_="label"), rows))


def _bash_output_result(call: Call, scene: Scene) -> Markup:
    """`BashOutput`: the output of a background command since the last request."""
    result = call.result
    if not isinstance(result, ShellOutputResult):
        return plain_output(call, scene)
    exit_code = f"exit code {result.exit_code}" if result.exit_code is not None else ""
    shell = f"shell {result.shell_id}" if result.shell_id else ""
    return join(
        (
            code_block(result.command or "", "bash", call, scene, class_="command"),
            output_block(result.stdout or "", call, scene),
            _stderr_block(result.stderr, call, scene),
            facts_line(shell, result.status, exit_code),
        )
    )


def _task_output_result(call: Call, scene: Scene) -> Markup:
    """`TaskOutput`: the status and output of a background task."""
    result = call.result
    task = result.task if isinstance(result, OutputResult) else None
    if task is None:
        return plain_output(call, scene)
    exit_code = f"exit code {task.exit_code}" if task.exit_code is not None else ""
    retrieval = result.retrieval_status if isinstance(result, OutputResult) else ""
    is_agent = bool(task.prompt) or task.task_type == "local_agent"
    answer = task.result if isinstance(task.result, str) else ""
    text = answer or task.output or ""
    return join(
        (
            facts_line(
                task.description, task.task_type, task.status, exit_code, f"retrieval: {retrieval}" if retrieval else ""
            ),
            prose_block(text, call, scene) if is_agent else output_block(text, call, scene),
            output_block(task.error or "", call, scene, class_="output error"),
        )
    )


def _stop_result(call: Call, scene: Scene) -> Markup:
    """`TaskStop`, `KillShell`: the task or command that was stopped."""
    result = call.result
    if not isinstance(result, StopResult):
        return plain_output(call, scene)
    command = code_block(result.command or "", "bash", call, scene, class_="command")
    return join((command, facts_line(result.message, result.task_type)))


def _monitor_input(call: Call, scene: Scene) -> Markup:
    """`Monitor`: the description and command of a watch."""
    arguments = call.input
    limit = number_of(arguments, "timeout_ms")
    facts = (
        text_of(arguments, "description"),
        f"timeout {limit / 1000:g} s" if limit else "",
        "runs until it is stopped" if value_of(arguments, "persistent") is True else "",
    )
    return join((facts_line(*facts), code_block(text_of(arguments, "command"), "bash", call, scene, class_="command")))


def _monitor_result(call: Call, scene: Scene) -> Markup:
    task = text_of(call.result, "task_id")
    outcome = facts_line(f"background task {task}") if task else plain_output(call, scene)
    return join((_monitor_input(call, scene), outcome))


SHELL_VIEWS: dict[str, ToolView] = {
    "Bash": ToolView(_shell_result, _shell_input),
    "PowerShell": ToolView(_powershell_result, _powershell_input),
    "BashOutput": ToolView(_bash_output_result),
    "TaskOutput": ToolView(_task_output_result),
    "AgentOutputTool": ToolView(_task_output_result),
    "TaskStop": ToolView(_stop_result),
    "KillShell": ToolView(_stop_result),
    "KillBash": ToolView(_stop_result),
    "Monitor": ToolView(_monitor_result, _monitor_input),
}
