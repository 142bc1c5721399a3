"""What a call was about, in a few words: the input that tells most."""

from __future__ import annotations

from typing import Any

# The input that tells most, of the tools that have one; of others the first of `_ANY` that is there.
_TELLING: dict[str, tuple[str, ...]] = {
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
_SILENT = frozenset({"TodoWrite", "TodoRead", "ExitPlanMode", "exit_plan_mode", "EnterPlanMode", "AskUserQuestion"})
_ANY = (
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
_MOST = 2000
FILE_TOOLS = frozenset({"Read", "View", "Edit", "MultiEdit", "Write", "Replace", "NotebookEdit", "NotebookRead", "LS"})
"""Tools whose telling input is a file."""


def telling(tool: str, given: Any) -> str:
    """The words of a call's input that tell what it was about."""
    if tool in _SILENT:
        return ""
    if not isinstance(given, dict):
        return "" if given is None else str(given)[:_MOST]
    # Once each: some tools are given the same thing under an old name and a new one.
    named = dict.fromkeys(value for name in _TELLING.get(tool, ()) if (value := _word(given.get(name))))
    if named:
        return " · ".join(named)
    known = next((value for name in _ANY if (value := _word(given.get(name)))), None)
    return known or ", ".join(f"{name}={_word(value) or '…'}" for name, value in list(given.items())[:4])


def about(tool: str, given: Any) -> str:
    """The same for a list, where no result stands beside the call: what was asked, planned or listed, too."""
    told = telling(tool, given)
    if told or tool not in _SILENT or not isinstance(given, dict):
        return told
    asked = " · ".join(word for one in _dicts(given.get("questions")) if (word := _word(one.get("question"))))
    return asked[:_MOST] or _listed(given) or _word(given.get("plan")).lstrip("# ").partition("\n")[0]


def _listed(given: dict[str, Any]) -> str:
    """How long a list of things to do is, and what of it is being done."""
    todos = _dicts(given.get("todos"))
    if not todos:
        return ""
    now = next((_word(one.get("content")) for one in todos if one.get("status") == "in_progress"), "")
    done = sum(one.get("status") == "completed" for one in todos)
    return f"{done} of {len(todos)} done{f' · {now}' if now else ''}"


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _word(value: Any) -> str:
    if isinstance(value, bool | int | float):
        return str(value)
    return value[:_MOST] if isinstance(value, str) else ""
