"""Tool results: what a tool gave back, typed by tool.

The wire's `toolUseResult` does not say which tool it is of; the call it answers does. `TOOL_RESULTS` is
that table. A result whose call is not known is recognised by its keys (`SIGNATURES`).
"""

from __future__ import annotations

from functools import lru_cache
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
    McpResourceResult,
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
from threadline.shape import fit

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
    "ReadMcpResourceTool": McpResourceResult,
}
"""The shape of each tool's result. `LS`, `TodoRead` and refusals are strings; `mcp__…` tools give lists."""

_KEYS_OF: tuple[tuple[str, type[ToolResult]], ...] = (
    ("shellId stdout", ShellOutputResult),
    ("stdout stderr", ShellResult),
    ("type file", ReadResult),
    ("oldString newString", EditResult),
    ("edits filePath", MultiEditResult),
    ("filePath content structuredPatch", WriteResult),
    ("new_source edit_mode", NotebookEditResult),
    ("mode filenames", GrepResult),
    ("filenames durationMs", GlobResult),
    ("filenames numFiles", GrepResult),
    ("newTodos", TodoWriteResult),
    ("taskId updatedFields", TaskUpdateResult),
    ("task retrieval_status", OutputResult),
    ("retrieval_status", OutputResult),
    ("runId workflowName", WorkflowResult),
    ("teammate_id", AgentResult),
    ("agentId status", AgentResult),
    ("totalDurationMs totalTokens", AgentResult),
    ("codeText url", WebFetchResult),
    ("query durationSeconds", WebSearchResult),
    ("matches total_deferred_tools", ToolSearchResult),
    ("questions answers", AskUserQuestionResult),
    ("plan isAgent", ExitPlanModeResult),
    ("success commandName", SkillResult),
    ("message shell_id", StopResult),
    ("message task_id", StopResult),
    ("taskId timeoutMs", MonitorResult),
    ("team_name", TeamResult),
    ("success message", SendMessageResult),
    ("operation filePath", LspResult),
    ("findings count", ReportFindingsResult),
    ("scheduledFor", ScheduleWakeupResult),
    ("id humanSchedule", CronResult),
    ("jobs", CronResult),
    ("listing", ListAgentsResult),
    ("worktreePath message", WorktreeResult),
    ("url path title", ArtifactResult),
    ("attachments caption", SendUserFileResult),
    ("tasks", TaskListResult),
    ("task", TaskResult),
    ("content structuredContent", McpResult),
    ("content _meta", McpResult),
    ("contents", McpResourceResult),
)
SIGNATURES = tuple((frozenset(keys.split()), shape) for keys, shape in _KEYS_OF)
"""Keys that tell a result's tool when its call is not known; the first set that is all there counts."""

ResultValue = ToolResult | str | list[ResultItem | str] | None
"""A tool's own result: an object typed by tool, a string (an error or a refusal), blocks, or nothing."""


def typed_result(value: Any, tool: str | None = None) -> ResultValue:
    """A result as the type that `tool` gives, or as its keys suggest.

    >>> typed_result({"stdout": "hi", "stderr": "", "interrupted": False})
    ShellResult(stdout='hi', stderr='', interrupted=False)
    >>> typed_result("Error: File does not exist.", "Read")
    'Error: File does not exist.'
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, dict):
        shape = result_type(value, tool)
        return OtherResult(value) if shape is None else _fitted(value, shape)
    blocks: ResultValue = fit(value, list[ResultItem | str])[0]
    return OtherResult(value) if blocks is None else blocks


def result_type(value: dict[str, Any], tool: str | None) -> type[ToolResult] | None:
    """Which type an object's result has; None when no tool is known to give it."""
    if tool is not None:
        known = TOOL_RESULTS.get(tool)
        if known is not None:
            return known
        if tool.startswith("mcp__"):
            return McpResult
    return _by_keys(tuple(value))


@lru_cache(maxsize=4096)
def _by_keys(keys: tuple[str, ...]) -> type[ToolResult] | None:
    names = set(keys)
    found = next((shape for signature, shape in SIGNATURES if signature <= names), None)
    return found or (EnterPlanModeResult if names == {"message"} else None)


def _fitted(value: dict[str, Any], shape: type[ToolResult]) -> ToolResult:
    try:
        return msgspec.convert(value, shape)
    except (msgspec.ValidationError, UnicodeEncodeError, RecursionError):  # a wrong type, half a surrogate pair, depth
        made: ToolResult = fit(value, shape)[0]
        return made


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
    "McpResourceResult",
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
