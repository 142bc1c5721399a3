"""Tool results: what a tool gave back, typed by tool.

The wire's `toolUseResult` does not say which tool it is of; the call it answers does. `TOOL_RESULTS` is
that table. A result whose call is not known is recognised by its keys (`SIGNATURES`).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from threadline.model.block import ResultItem
from threadline.model.results.agents import (
    AgentResult,
    ListAgentsResult,
    SendMessageResult,
    TeamResult,
    ToolStats,
    WorkflowResult,
)
from threadline.model.results.files import (
    ArtifactResult,
    EditResult,
    Hunk,
    LspResult,
    MultiEditResult,
    NotebookEditResult,
    OneEdit,
    ReadFile,
    ReadResult,
    SendUserFileResult,
    WriteResult,
)
from threadline.model.results.result import OtherResult, ToolResult
from threadline.model.results.search import (
    GlobResult,
    GrepResult,
    ToolSearchResult,
    WebFetchResult,
    WebSearchResult,
)
from threadline.model.results.session import (
    AskUserQuestionResult,
    EnterPlanModeResult,
    ExitPlanModeResult,
    McpResult,
    ReportFindingsResult,
    SkillResult,
    WorktreeResult,
)
from threadline.model.results.shell import (
    MonitorResult,
    OutputResult,
    OutputTask,
    ShellOutputResult,
    ShellResult,
    StopResult,
)
from threadline.model.results.tasks import (
    CronResult,
    ScheduleWakeupResult,
    StatusChange,
    Task,
    TaskListResult,
    TaskResult,
    TaskUpdateResult,
    Todo,
    TodoWriteResult,
)
from threadline.shape import fit, loads

TOOL_RESULTS: dict[str, type[ToolResult]] = {
    "Bash": ShellResult,
    "PowerShell": ShellResult,
    "BashOutput": ShellOutputResult,
    "AgentOutputTool": OutputResult,
    "TaskOutput": OutputResult,
    "TaskStop": StopResult,
    "KillShell": StopResult,
    "KillBash": StopResult,
    "Monitor": MonitorResult,
    "Read": ReadResult,
    "View": ReadResult,
    "NotebookRead": ReadResult,
    "Edit": EditResult,
    "MultiEdit": MultiEditResult,
    "Write": WriteResult,
    "Replace": WriteResult,
    "NotebookEdit": NotebookEditResult,
    "LSP": LspResult,
    "Artifact": ArtifactResult,
    "SendUserFile": SendUserFileResult,
    "Glob": GlobResult,
    "GlobTool": GlobResult,
    "Grep": GrepResult,
    "GrepTool": GrepResult,
    "WebFetch": WebFetchResult,
    "WebSearch": WebSearchResult,
    "ToolSearch": ToolSearchResult,
    "TodoWrite": TodoWriteResult,
    "TaskCreate": TaskResult,
    "TaskGet": TaskResult,
    "TaskList": TaskListResult,
    "TaskUpdate": TaskUpdateResult,
    "CronCreate": CronResult,
    "CronDelete": CronResult,
    "CronList": CronResult,
    "ScheduleWakeup": ScheduleWakeupResult,
    "Task": AgentResult,
    "Agent": AgentResult,
    "Workflow": WorkflowResult,
    "SendMessage": SendMessageResult,
    "TeamCreate": TeamResult,
    "TeamDelete": TeamResult,
    "ListAgents": ListAgentsResult,
    "AskUserQuestion": AskUserQuestionResult,
    "ExitPlanMode": ExitPlanModeResult,
    "exit_plan_mode": ExitPlanModeResult,
    "EnterPlanMode": EnterPlanModeResult,
    "EnterWorktree": WorktreeResult,
    "ExitWorktree": WorktreeResult,
    "Skill": SkillResult,
    "ReportFindings": ReportFindingsResult,
}
"""The shape of each tool's result. `LS`, `TodoRead` and refusals are strings; `mcp__…` tools give lists."""

SIGNATURES: tuple[tuple[frozenset[str], type[ToolResult]], ...] = (
    (frozenset({"shellId", "stdout"}), ShellOutputResult),
    (frozenset({"stdout", "stderr"}), ShellResult),
    (frozenset({"type", "file"}), ReadResult),
    (frozenset({"oldString", "newString"}), EditResult),
    (frozenset({"edits", "filePath"}), MultiEditResult),
    (frozenset({"filePath", "content", "structuredPatch"}), WriteResult),
    (frozenset({"new_source", "edit_mode"}), NotebookEditResult),
    (frozenset({"mode", "filenames"}), GrepResult),
    (frozenset({"filenames", "durationMs"}), GlobResult),
    (frozenset({"filenames", "numFiles"}), GrepResult),
    (frozenset({"newTodos"}), TodoWriteResult),
    (frozenset({"retrieval_status"}), OutputResult),
    (frozenset({"runId", "workflowName"}), WorkflowResult),
    (frozenset({"teammate_id"}), AgentResult),
    (frozenset({"agentId", "status"}), AgentResult),
    (frozenset({"totalDurationMs", "totalTokens"}), AgentResult),
    (frozenset({"codeText", "url"}), WebFetchResult),
    (frozenset({"query", "durationSeconds"}), WebSearchResult),
    (frozenset({"matches", "total_deferred_tools"}), ToolSearchResult),
    (frozenset({"taskId", "updatedFields"}), TaskUpdateResult),
    (frozenset({"tasks"}), TaskListResult),
    (frozenset({"task"}), TaskResult),
    (frozenset({"questions", "answers"}), AskUserQuestionResult),
    (frozenset({"plan", "isAgent"}), ExitPlanModeResult),
    (frozenset({"success", "commandName"}), SkillResult),
    (frozenset({"message", "shell_id"}), StopResult),
    (frozenset({"message", "task_id"}), StopResult),
)
"""Keys that tell a result's tool when its call is not known; the first set that is all there counts."""

ResultValue = ToolResult | str | list[ResultItem | str] | None
"""A tool's own result: an object typed by tool, a string (an error or a refusal), blocks, or nothing."""


def typed_result(raw: bytes, tool: str | None = None) -> ResultValue:
    """The result in `raw` JSON, as the type that `tool` gives, or as its keys suggest.

    >>> typed_result(b'{"stdout":"hi","stderr":"","interrupted":false}').stdout
    'hi'
    >>> typed_result(b'"Error: File does not exist."', "Read")
    'Error: File does not exist.'
    """
    if not raw:
        return None
    if raw[:1] == b"{":
        shape = result_type(raw, tool)
        return _object(raw, shape) if shape is not None else OtherResult(loads(raw).value)
    value, _misfits = fit(_value(raw), str | list[ResultItem | str] | None)
    return value if value is not None else OtherResult(_value(raw)) if raw != b"null" else None


def result_type(raw: bytes, tool: str | None) -> type[ToolResult] | None:
    """Which type an object's result has; None when no tool is known to give it."""
    if tool is not None:
        known = TOOL_RESULTS.get(tool)
        if known is not None:
            return known
        if tool.startswith("mcp__"):
            return McpResult
    keys = _keys(raw)
    return next((shape for signature, shape in SIGNATURES if signature <= keys), None)


@cache
def _decoder(shape: type[ToolResult]) -> msgspec.json.Decoder[ToolResult]:
    return msgspec.json.Decoder(shape)


def _object(raw: bytes, shape: type[ToolResult]) -> ToolResult:
    try:
        return _decoder(shape).decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        value = _value(raw)
        made, _misfits = fit(value, shape)
        return made if isinstance(made, ToolResult) else OtherResult(value)


def _value(raw: bytes) -> Any:
    try:
        return loads(raw).value
    except (ValueError, RecursionError):
        return raw.decode(errors="replace")


_KEYS = msgspec.json.Decoder(dict[str, msgspec.Raw])


def _keys(raw: bytes) -> frozenset[str]:
    try:
        return frozenset(_KEYS.decode(raw))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        value = _value(raw)
        return frozenset(value) if isinstance(value, dict) else frozenset()


__all__ = [
    "SIGNATURES",
    "TOOL_RESULTS",
    "AgentResult",
    "ArtifactResult",
    "AskUserQuestionResult",
    "CronResult",
    "EditResult",
    "EnterPlanModeResult",
    "ExitPlanModeResult",
    "GlobResult",
    "GrepResult",
    "Hunk",
    "ListAgentsResult",
    "LspResult",
    "McpResult",
    "MonitorResult",
    "MultiEditResult",
    "NotebookEditResult",
    "OneEdit",
    "OtherResult",
    "OutputResult",
    "OutputTask",
    "ReadFile",
    "ReadResult",
    "ReportFindingsResult",
    "ResultValue",
    "ScheduleWakeupResult",
    "SendMessageResult",
    "SendUserFileResult",
    "ShellOutputResult",
    "ShellResult",
    "SkillResult",
    "StatusChange",
    "StopResult",
    "Task",
    "TaskListResult",
    "TaskResult",
    "TaskUpdateResult",
    "TeamResult",
    "Todo",
    "TodoWriteResult",
    "ToolResult",
    "ToolSearchResult",
    "ToolStats",
    "WebFetchResult",
    "WebSearchResult",
    "WorkflowResult",
    "WorktreeResult",
    "WriteResult",
    "result_type",
    "typed_result",
]
