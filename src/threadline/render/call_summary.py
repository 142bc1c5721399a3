"""Summarize a tool call in one line, and read fields of its input and result."""

from __future__ import annotations

from typing import Any

# The input that tells most, of the tools that have one; of others the first of `_ANY` that is there.
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
# What is shown of a call's own fields: these say nothing beside its result.
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
"""Tools whose telling input is a file."""


def summarize_input(tool: str, given: Any) -> str:
    """The words of a call's input that tell what it was about."""
    if tool in _TOOLS_WITHOUT_SUMMARY:
        return ""
    if not isinstance(given, dict):
        return "" if given is None else str(given)[:_MAX_LENGTH]
    # Once each: some tools are given the same thing under an old name and a new one.
    named = dict.fromkeys(value for name in _SUMMARY_FIELDS.get(tool, ()) if (value := _as_text(given.get(name))))
    if named:
        return " · ".join(named)
    known = next((value for name in _FALLBACK_FIELDS if (value := _as_text(given.get(name)))), None)
    return known or ", ".join(f"{name}={_as_text(value) or '…'}" for name, value in list(given.items())[:4])


def summarize_call(tool: str, given: Any) -> str:
    """The same for a list, where no result stands beside the call: what was asked, planned or listed, too."""
    told = summarize_input(tool, given)
    if told or tool not in _TOOLS_WITHOUT_SUMMARY or not isinstance(given, dict):
        return told
    asked = " · ".join(word for one in _dicts(given.get("questions")) if (word := _as_text(one.get("question"))))
    return asked[:_MAX_LENGTH] or _summarize_todos(given) or _as_text(given.get("plan")).lstrip("# ").partition("\n")[0]


def _summarize_todos(given: dict[str, Any]) -> str:
    """How long a list of things to do is, and what of it is being done."""
    todos = _dicts(given.get("todos"))
    if not todos:
        return ""
    now = next((_as_text(todo.get("content")) for todo in todos if todo.get("status") == "in_progress"), "")
    done = sum(todo.get("status") == "completed" for todo in todos)
    return f"{done} of {len(todos)} done{f' · {now}' if now else ''}"


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _as_text(value: Any) -> str:
    if isinstance(value, bool | int | float):
        return str(value)
    return value[:_MAX_LENGTH] if isinstance(value, str) else ""


def value_of(holder: Any, name: str) -> Any:
    """A field of a JSON object or of a typed result; None where it is not there."""
    return holder.get(name) if isinstance(holder, dict) else getattr(holder, name, None)


def text_of(holder: Any, *names: str) -> str:
    """The first of these fields that is text and not empty, else an empty text."""
    values = (value_of(holder, name) for name in names)
    return next((value for value in values if isinstance(value, str) and value), "")


def list_of(holder: Any, name: str) -> list[Any]:
    """A field that is a list, else an empty list."""
    value = value_of(holder, name)
    return value if isinstance(value, list) else []


def number_of(holder: Any, name: str) -> int | None:
    """A field that is a whole number; a truth value is none."""
    value = value_of(holder, name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
