"""Summarize a tool call in one line, and read fields of its input, result and output."""

from __future__ import annotations

import re
from itertools import chain
from typing import Any

from threadline.model.results import EditResult, MultiEditResult, ResultValue, WriteResult
from threadline.model.text import format_changes

# The input fields that summarize a call. Other tools use the first of `_FALLBACK_FIELDS` that they have.
_SUMMARY_FIELDS: dict[str, tuple[str, ...]] = {
    "Bash": ("command",),
    "PowerShell": ("command",),
    "Read": ("file_path",),
    "View": ("file_path",),
    "Edit": ("file_path",),
    "MultiEdit": ("file_path",),
    "Write": ("file_path",),
    "Replace": ("file_path",),
    "NotebookEdit": ("notebook_path",),
    "NotebookRead": ("notebook_path",),
    "Glob": ("pattern", "path"),
    "Grep": ("pattern", "path", "glob"),
    "LS": ("path",),
    "Task": ("subagent_type", "description"),
    "Agent": ("subagent_type", "description"),
    "WebFetch": ("url",),
    "WebSearch": ("query",),
    "ToolSearch": ("query",),
    "Skill": ("skill", "command", "args"),
    "SlashCommand": ("command",),
    "TaskCreate": ("subject",),
    "TaskUpdate": ("taskId", "status", "subject"),
    "TaskGet": ("taskId",),
    "TaskOutput": ("task_id",),
    "TaskStop": ("task_id", "shell_id"),
    "KillShell": ("shell_id",),
    "BashOutput": ("bash_id",),
    "SendMessage": ("to", "recipient", "summary", "message"),
    "Workflow": ("name", "workflow"),
    "Monitor": ("description", "command"),
    "CronCreate": ("cron", "prompt"),
    "EnterWorktree": ("name", "path"),
    "ReportFindings": ("summary",),
}
# Tools whose input is repeated in the result that is shown with it.
_TOOLS_WITHOUT_SUMMARY = frozenset(
    {"TodoWrite", "TodoRead", "ExitPlanMode", "exit_plan_mode", "EnterPlanMode", "AskUserQuestion"}
)
_FALLBACK_FIELDS = (
    "command",
    "file_path",
    "path",
    "pattern",
    "query",
    "url",
    "subject",
    "title",
    "name",
    "skill",
    "id",
    "description",
    "prompt",
)
_MAX_LENGTH = 2000
FILE_TOOLS = frozenset({"Read", "View", "Edit", "MultiEdit", "Write", "Replace", "NotebookEdit", "NotebookRead", "LS"})
"""Tools that are summarized by a file path."""


def summarize_input(tool: str, arguments: Any) -> str:
    """Summarize the input of a call in one line."""
    if tool in _TOOLS_WITHOUT_SUMMARY:
        return ""
    if not isinstance(arguments, dict):
        return "" if arguments is None else str(arguments)[:_MAX_LENGTH]
    # Without duplicates: some tools pass the same value under an old name and a new one.
    values = dict.fromkeys(value for name in _SUMMARY_FIELDS.get(tool, ()) if (value := _as_text(arguments.get(name))))
    if values:
        return " · ".join(values)
    fallback = next((value for name in _FALLBACK_FIELDS if (value := _as_text(arguments.get(name)))), None)
    return fallback or ", ".join(f"{name}={_as_text(value) or '…'}" for name, value in list(arguments.items())[:4])


def summarize_call(tool: str, arguments: Any) -> str:
    """Summarize a call for a list without results, including questions, plans and todo lists."""
    summary = summarize_input(tool, arguments)
    if summary or tool not in _TOOLS_WITHOUT_SUMMARY or not isinstance(arguments, dict):
        return summary
    questions = " · ".join(
        text for question in _dicts(arguments.get("questions")) if (text := _as_text(question.get("question")))
    )
    return (
        questions[:_MAX_LENGTH]
        or _summarize_todos(arguments)
        or _as_text(arguments.get("plan")).lstrip("# ").partition("\n")[0]
    )


def _summarize_todos(arguments: dict[str, Any]) -> str:
    """The progress of a todo list and its current item."""
    todos = _dicts(arguments.get("todos"))
    if not todos:
        return ""
    now = next((_as_text(todo.get("content")) for todo in todos if todo.get("status") == "in_progress"), "")
    done = sum(todo.get("status") == "completed" for todo in todos)
    return f"{done} of {len(todos)} done{f' · {now}' if now else ''}"


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _as_text(value: Any) -> str:
    if isinstance(value, bool | int | float):
        return str(value)
    return value[:_MAX_LENGTH] if isinstance(value, str) else ""


def value_of(holder: Any, name: str) -> Any:
    """A field of a JSON object or of a typed result; None if it is missing."""
    return holder.get(name) if isinstance(holder, dict) else getattr(holder, name, None)


def text_of(holder: Any, *names: str) -> str:
    """The first of these fields that is a non-empty string, or an empty string."""
    values = (value_of(holder, name) for name in names)
    return next((value for value in values if isinstance(value, str) and value), "")


def list_of(holder: Any, name: str) -> list[Any]:
    """A field if it is a list, or an empty list."""
    value = value_of(holder, name)
    return value if isinstance(value, list) else []


_MAX_NUMBER = 2**63 - 1


def number_of(holder: Any, name: str) -> int | None:
    """A field if it is an integer of at most 64 bits and not a boolean, or None."""
    value = value_of(holder, name)
    is_number = isinstance(value, int) and not isinstance(value, bool) and -_MAX_NUMBER <= value <= _MAX_NUMBER
    return value if is_number else None


def change_tally(result: ResultValue) -> str:
    """`+12 -3`: how many lines a call changed; empty if its result does not contain that."""
    if not isinstance(result, EditResult | MultiEditResult | WriteResult):
        return ""
    lines = list(chain.from_iterable(hunk.lines or () for hunk in result.structured_patch or ()))
    added, removed = (sum(line.startswith(mark) for line in lines) for mark in "+-")
    if not lines and isinstance(result, WriteResult) and result.content is not None:
        added = len(result.content.splitlines())
    return format_changes(added, removed) if added or removed else ""


_PROGRAM_TAGS = re.compile(r"</?(?:tool_use_error|error|persisted-output)>")
_MACHINE_LINES = re.compile(r"^(?:agentId: |<usage>)", re.MULTILINE)
LAUNCH_STATUSES = {
    "async_launched": "started in the background",
    "teammate_spawned": "joined the team",
    "remote_launched": "runs remotely",
}
"""What the result of a call that only launched an agent says, by its status."""


def strip_program_tags(text: str) -> str:
    """An output without the tags that Claude Code adds for the model."""
    return _PROGRAM_TAGS.sub("", text).strip("\n")


def strip_machine_lines(report: str) -> str:
    """The answer of an agent without the lines that Claude Code appends for the model."""
    return _MACHINE_LINES.split(report, maxsplit=1)[0]
