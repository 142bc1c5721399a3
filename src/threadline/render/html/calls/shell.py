"""Commands: the command, what it printed, what went wrong, and what became of it."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from threadline.model.call import Call
from threadline.model.results import OutputResult, ShellOutputResult, ShellResult, StopResult
from threadline.render.figures import count
from threadline.render.html.calls.ended import clean
from threadline.render.html.calls.pieces import code, facts, file_name, printed, prose, some
from threadline.render.html.calls.tool_view import ToolView
from threadline.render.html.element import EMPTY, el, join
from threadline.render.html.given import number_of, text_of, value_of
from threadline.render.html.pictures import pictures_of
from threadline.render.html.scene import Scene
from threadline.render.html.tidy import written

_NOTHING = ("(Bash completed with no output)", "(No content)", "Tool ran without output or errors")


def _asked(made: Call, scene: Scene, language: str = "bash") -> Markup:
    given = made.input
    background = "in the background" if value_of(given, "run_in_background") is True else ""
    limit = number_of(given, "timeout")
    waited = f"waits at most {limit / 1000:g} s" if limit else ""
    command = text_of(given, "command")
    return join(
        (
            facts(text_of(given, "description"), background, waited),
            code(command, language, made, scene, class_="command") if command else _other(made, scene),
        )
    )


def _other(made: Call, scene: Scene) -> Markup:
    """An input that is no command: as it is."""
    return code(written(made.input), "json", made, scene, class_="given") if made.input else EMPTY


def _powershell(made: Call, scene: Scene) -> Markup:
    return _asked(made, scene, "powershell")


def _ran(made: Call, scene: Scene) -> Markup:
    return join((_asked(made, scene), _printed(made, scene)))


def _ran_powershell(made: Call, scene: Scene) -> Markup:
    return join((_powershell(made, scene), _printed(made, scene)))


def _printed(made: Call, scene: Scene) -> Markup:
    """What a command printed, the two streams apart."""
    result = made.result
    if not isinstance(result, ShellResult):
        return join((_output(clean(made.output), made, scene), pictures_of(made, scene)))
    out = "" if result.is_image else result.stdout or ""
    told = _told(result)
    parts = (
        _output(out, made, scene),
        _errors(result.stderr, made, scene),
        pictures_of(made, scene),
        facts(*told),
        _changed(result.bash_edit_diff, made, scene),
    )
    drawn = join(parts)
    return drawn or el("p", "It printed nothing.", class_="facts")


def _output(text: str, made: Call, scene: Scene) -> Markup:
    return EMPTY if text.strip() in _NOTHING else printed(text, made, scene)


def _errors(text: str | None, made: Call, scene: Scene) -> Markup:
    drawn = printed(text or "", made, scene, class_="output stderr")
    return join((el("p", "stderr", class_="label"), drawn)) if drawn else EMPTY


def _told(result: ShellResult) -> list[str]:
    said = [
        result.return_code_interpretation or "",
        "interrupted" if result.interrupted else "",
        f"stopped waiting after {result.timed_out_after_ms / 1000:g} s" if result.timed_out_after_ms else "",
        f"background task {result.background_task_id}" if result.background_task_id else "",
        "put into the background by the person" if result.backgrounded_by_user else "",
        "outside the sandbox" if result.dangerously_disable_sandbox else "",
    ]
    return [word for word in said if word]


def _changed(changes: Any, made: Call, scene: Scene) -> Markup:
    """The files that a command changed, where the result names them."""
    names = value_of(changes, "changedFiles")
    files = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
    if not files:
        return EMPTY
    rows = some(files, lambda name: el("li", file_name(name, scene)), "files", made, scene)
    return join((el("p", f"changed {count(len(files), 'file')}", class_="label"), rows))


def _background_output(made: Call, scene: Scene) -> Markup:
    """`BashOutput`: what a background command has printed since it was last asked."""
    result = made.result
    if not isinstance(result, ShellOutputResult):
        return printed(clean(made.output), made, scene)
    exit_code = f"exit code {result.exit_code}" if result.exit_code is not None else ""
    shell = f"shell {result.shell_id}" if result.shell_id else ""
    return join(
        (
            code(result.command or "", "bash", made, scene, class_="command"),
            printed(result.stdout or "", made, scene),
            _errors(result.stderr, made, scene),
            facts(shell, result.status, exit_code),
        )
    )


def _task_output(made: Call, scene: Scene) -> Markup:
    """`TaskOutput`: how a background task is doing."""
    result = made.result
    task = result.task if isinstance(result, OutputResult) else None
    if task is None:
        return printed(clean(made.output), made, scene)
    exit_code = f"exit code {task.exit_code}" if task.exit_code is not None else ""
    waited = result.retrieval_status if isinstance(result, OutputResult) else ""
    is_agent = bool(task.prompt) or task.task_type == "local_agent"
    answer = task.result if isinstance(task.result, str) else ""
    said = answer or task.output or ""
    return join(
        (
            facts(task.description, task.task_type, task.status, exit_code, f"asked: {waited}" if waited else ""),
            prose(said, made, scene) if is_agent else printed(said, made, scene),
            printed(task.error or "", made, scene, class_="output error"),
        )
    )


def _stopped(made: Call, scene: Scene) -> Markup:
    """`TaskStop`, `KillShell`: what was stopped."""
    result = made.result
    if not isinstance(result, StopResult):
        return printed(clean(made.output), made, scene)
    command = code(result.command or "", "bash", made, scene, class_="command")
    return join((command, facts(result.message, result.task_type)))


def _watched(made: Call, scene: Scene) -> Markup:
    """`Monitor`: what is watched, by which command."""
    given = made.input
    limit = number_of(given, "timeout_ms")
    said = (
        text_of(given, "description"),
        f"at most {limit / 1000:g} s" if limit else "",
        "goes on until it is stopped" if value_of(given, "persistent") is True else "",
    )
    return join((facts(*said), code(text_of(given, "command"), "bash", made, scene, class_="command")))


def _watching(made: Call, scene: Scene) -> Markup:
    task = text_of(made.result, "task_id")
    outcome = facts(f"background task {task}") if task else printed(clean(made.output), made, scene)
    return join((_watched(made, scene), outcome))


VIEWS: dict[str, ToolView] = {
    "Bash": ToolView(_ran, _asked),
    "PowerShell": ToolView(_ran_powershell, _powershell),
    "BashOutput": ToolView(_background_output),
    "TaskOutput": ToolView(_task_output),
    "AgentOutputTool": ToolView(_task_output),
    "TaskStop": ToolView(_stopped),
    "KillShell": ToolView(_stopped),
    "KillBash": ToolView(_stopped),
    "Monitor": ToolView(_watching, _watched),
}
