"""Tool results, one struct per tool.

The `toolUseResult` of an entry does not name its tool; the call that it answers does. `TOOL_RESULTS` maps tools to
structs. If the call is not known, a result is recognised by its keys (`SIGNATURES`).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec
from msgspec import field

from threadline.model.blocks import ResultItem
from threadline.model.places import AgentId
from threadline.model.usage import Usage
from threadline.shape import Shape, fit


class ToolResult(Shape, frozen=True):
    """A tool's own result, with more detail than the model saw. Each tool has its own class."""


class OtherResult(ToolResult, frozen=True):
    """A result of an unknown tool or shape: the complete object is in `data`."""

    data: Any = None


class ShellResult(ToolResult, frozen=True):
    """`Bash`, `PowerShell`: the output of a command. Only the text contains the exit code."""

    stdout: str | None = None
    stderr: str | None = None
    interrupted: bool | None = None
    is_image: bool | None = None
    no_output_expected: bool | None = None
    return_code_interpretation: str | None = None
    background_task_id: str | None = None
    backgrounded_by_user: bool | None = None
    assistant_auto_backgrounded: bool | None = None
    git_operation: Any = None
    persisted_output_path: str | None = None
    persisted_output_size: int | None = None
    raw_output_path: str | None = None
    dangerously_disable_sandbox: bool | None = None
    sandbox: bool | None = None
    structured_content: Any = None
    bash_edit_diff: Any = None
    timed_out_after_ms: float | None = None


class ShellOutputResult(ToolResult, frozen=True):
    """`BashOutput` (old): the new output of a background command."""

    shell_id: str | None = None
    command: str | None = None
    status: str | None = None
    exit_code: int | None = None
    stdout: str | None = None
    stderr: str | None = None
    stdout_lines: int | None = None
    stderr_lines: int | None = None
    filter_pattern: str | None = None
    timestamp: str | None = None


class StopResult(ToolResult, frozen=True, rename=None):
    """`TaskStop`, `KillShell`, `KillBash`: a background task was stopped."""

    message: str | None = None
    success: bool | None = None
    shell_id: str | None = None
    task_id: str | None = None
    task_type: str | None = None
    command: str | None = None


class OutputTask(ToolResult, frozen=True):
    """The background task that `TaskOutput` asked about."""

    task_id: str | None = field(default=None, name="task_id")
    task_type: str | None = field(default=None, name="task_type")
    status: str | None = None
    description: str | None = None
    output: str | None = None
    exit_code: int | None = None
    error: str | None = None
    prompt: str | None = None
    result: Any = None


class OutputResult(ToolResult, frozen=True, rename=None):
    """`TaskOutput`: the state of a background task."""

    retrieval_status: str | None = None
    task: OutputTask | None = None


class MonitorResult(ToolResult, frozen=True):
    """`Monitor`: something is being watched."""

    task_id: str | None = None
    timeout_ms: float | None = None
    persistent: bool | None = None


class ReadFile(Shape, frozen=True):
    """The file as it was read."""

    file_path: str | None = None
    content: str | None = None
    num_lines: int | None = None
    start_line: int | None = None
    total_lines: int | None = None
    truncated_by_token_cap: Any = None
    base64: str | None = None
    type: str | None = None
    original_size: int | None = None
    dimensions: Any = None
    cells: list[Any] | None = None
    count: int | None = None
    output_dir: str | None = None


class ReadResult(ToolResult, frozen=True):
    """`Read`: `type` is text, image, pdf, notebook, parts or file_unchanged."""

    type: str | None = None
    file: ReadFile | None = None


class Hunk(Shape, frozen=True):
    """One hunk of a patch."""

    old_start: int | None = None
    old_lines: int | None = None
    new_start: int | None = None
    new_lines: int | None = None
    lines: list[str] | None = None


class EditResult(ToolResult, frozen=True):
    """`Edit`: the old and the new text. Since 2.1.97, `original_file` is null if the file is large."""

    file_path: str | None = None
    old_string: str | None = None
    new_string: str | None = None
    original_file: str | None = None
    structured_patch: list[Hunk] | None = None
    user_modified: bool | None = None
    replace_all: bool | None = None
    memdir_stamped: Any = None
    stale_recovered: bool | None = None
    git_diff: Any = None


class OneEdit(Shape, frozen=True, rename=None):
    """One of the replacements of a `MultiEdit`."""

    old_string: str | None = None
    new_string: str | None = None
    replace_all: bool | None = None


class MultiEditResult(ToolResult, frozen=True):
    """`MultiEdit` (to 1.0.108): several replacements in one file."""

    file_path: str | None = None
    edits: list[OneEdit] | None = None
    original_file_contents: str | None = None
    structured_patch: list[Hunk] | None = None
    user_modified: bool | None = None


class WriteResult(ToolResult, frozen=True):
    """`Write`: `type` is create or update; a created file has an empty patch."""

    type: str | None = None
    file_path: str | None = None
    content: str | None = None
    structured_patch: list[Hunk] | None = None
    original_file: str | None = None
    user_modified: bool | None = None
    memdir_stamped: Any = None
    git_diff: Any = None


class NotebookEditResult(ToolResult, frozen=True, rename=None):
    """`NotebookEdit`: one cell was changed."""

    new_source: str | None = None
    old_source: str | None = None
    cell_id: str | None = None
    cell_number: int | None = None
    cell_type: str | None = None
    language: str | None = None
    edit_mode: str | None = None
    error: str | None = None
    notebook_path: str | None = None
    original_file: str | None = None
    updated_file: str | None = None


class LspResult(ToolResult, frozen=True):
    """`LSP`: the answer of a language server."""

    operation: str | None = None
    result: Any = None
    file_path: str | None = None
    result_count: int | None = None
    file_count: int | None = None


class ArtifactResult(ToolResult, frozen=True):
    """`Artifact`: something was published."""

    url: str | None = None
    path: str | None = None
    title: str | None = None
    version: Any = None
    updated: bool | None = None
    live_subscription: str | None = None


class SendUserFileResult(ToolResult, frozen=True):
    """`SendUserFile`: files were sent to the person."""

    attachments: list[Any] | None = None
    caption: str | None = None
    status: str | None = None
    sent_at: Any = None


class GlobResult(ToolResult, frozen=True):
    """`Glob`: the files whose names match."""

    filenames: list[str] | None = None
    duration_ms: float | None = None
    num_files: int | None = None
    truncated: bool | None = None
    total_matches: int | None = None
    count_is_complete: bool | None = None


class GrepResult(ToolResult, frozen=True):
    """`Grep`: the matching lines, files or counts."""

    mode: str | None = None
    num_files: int | None = None
    filenames: list[str] | None = None
    content: str | None = None
    num_lines: int | None = None
    num_matches: int | None = None
    applied_limit: int | None = None
    applied_offset: int | None = None
    total_files: int | None = None
    total_lines: int | None = None


class WebFetchResult(ToolResult, frozen=True):
    """`WebFetch`: the content of a page."""

    url: str | None = None
    code: int | None = None
    code_text: str | None = None
    bytes: int | None = None
    result: str | None = None
    duration_ms: float | None = None


class WebSearchResult(ToolResult, frozen=True):
    """`WebSearch`: the results of a search."""

    query: str | None = None
    results: list[Any] | None = None
    duration_seconds: float | None = None
    search_count: int | None = None


class McpResourceResult(ToolResult, frozen=True):
    """`ReadMcpResourceTool`: the content of an MCP server's resource."""

    contents: list[Any] | None = None


class ToolSearchResult(ToolResult, frozen=True):
    """`ToolSearch`: the matching tools."""

    matches: list[Any] | None = None
    query: str | None = None
    total_deferred_tools: int | None = field(default=None, name="total_deferred_tools")
    pending_mcp_servers: list[Any] | None = field(default=None, name="pending_mcp_servers")


class Todo(Shape, frozen=True):
    """One item of a todo list. Older items have `id` and `priority`, newer ones `active_form`."""

    content: str | None = None
    status: str | None = None
    active_form: str | None = None
    priority: str | None = None
    id: str | None = None


class TodoWriteResult(ToolResult, frozen=True):
    """`TodoWrite`: the list before and after."""

    old_todos: list[Todo] | None = None
    new_todos: list[Todo] | None = None
    verification_nudge_needed: bool | None = None


class Task(Shape, frozen=True):
    """One task, in a tool's result or in a file under `tasks/`."""

    id: str | None = None
    subject: str | None = None
    description: str | None = None
    active_form: str | None = None
    status: str | None = None
    owner: str | None = None
    blocks: list[str] | None = None
    blocked_by: list[str] | None = None
    metadata: Any = None


class TaskResult(ToolResult, frozen=True):
    """`TaskCreate`, `TaskGet`: one task."""

    task: Task | None = None


class TaskListResult(ToolResult, frozen=True):
    """`TaskList`: all tasks."""

    tasks: list[Task] | None = None


class StatusChange(Shape, frozen=True):
    """The old and the new status."""

    from_: str | None = field(default=None, name="from")
    to: str | None = None


class TaskUpdateResult(ToolResult, frozen=True):
    """`TaskUpdate`: what changed."""

    success: bool | None = None
    task_id: str | None = None
    updated_fields: list[str] | None = None
    status_change: StatusChange | None = None
    verification_nudge_needed: bool | None = None
    error: str | None = None


class CronResult(ToolResult, frozen=True):
    """`CronCreate`, `CronDelete`, `CronList`: scheduled prompts."""

    id: str | None = None
    human_schedule: str | None = None
    recurring: bool | None = None
    durable: bool | None = None
    next_fire_at: float | None = None
    jobs: list[Any] | None = None


class ScheduleWakeupResult(ToolResult, frozen=True):
    """`ScheduleWakeup`: when the session wakes."""

    scheduled_for: float | str | None = None
    clamped_delay_seconds: float | None = None
    was_clamped: bool | None = None
    stopped: bool | None = None
    cancelled_wakeups: int | None = None


class ToolStats(Shape, frozen=True):
    """What an agent did, in counts."""

    read_count: int | None = None
    search_count: int | None = None
    bash_count: int | None = None
    edit_file_count: int | None = None
    lines_added: int | None = None
    lines_removed: int | None = None
    other_tool_count: int | None = None


class AgentResult(ToolResult, frozen=True):
    """`Task`, `Agent`: the agent's answer, or a note that it was launched or joined a team, depending on `status`."""

    status: str | None = None
    prompt: str | None = None
    agent_id: AgentId | None = None
    agent_type: str | None = None
    content: list[ResultItem | str] | str | None = None
    resolved_model: str | None = None
    total_duration_ms: float | None = None
    total_tokens: int | None = None
    total_tool_use_count: int | None = None
    usage: Usage | None = None
    tool_stats: ToolStats | None = None
    was_interrupted: bool | None = None
    # launched in the background
    is_async: bool | None = None
    description: str | None = None
    output_file: str | None = None
    can_read_output_file: bool | None = None
    can_continue_agent: bool | None = None
    tools_used: list[str] | None = None
    harness_note_count: int | None = None
    harness_tail_count: int | None = None
    harness_section_hash: str | None = None
    # worktrees
    worktree_path: str | None = None
    worktree_branch: str | None = None
    # teammates
    teammate_id: str | None = field(default=None, name="teammate_id")
    member_id: str | None = field(default=None, name="agent_id")
    member_type: str | None = field(default=None, name="agent_type")
    name: str | None = None
    color: str | None = None
    model: str | None = None
    team_name: str | None = field(default=None, name="team_name")
    tmux_session_name: str | None = field(default=None, name="tmux_session_name")
    tmux_window_name: str | None = field(default=None, name="tmux_window_name")
    tmux_pane_id: str | None = field(default=None, name="tmux_pane_id")
    is_splitpane: bool | None = field(default=None, name="is_splitpane")
    plan_mode_required: bool | None = field(default=None, name="plan_mode_required")


class WorkflowResult(ToolResult, frozen=True):
    """`Workflow`: a workflow was launched."""

    status: str | None = None
    task_id: str | None = None
    run_id: str | None = None
    task_type: str | None = None
    workflow_name: str | None = None
    summary: str | None = None
    transcript_dir: str | None = None
    script_path: str | None = None


class SendMessageResult(ToolResult, frozen=True):
    """`SendMessage`: a message to another agent."""

    success: bool | None = None
    message: str | None = None
    routing: Any = None
    msg_id: str | None = field(default=None, name="msg_id")
    recipients: Any = None
    resumed_agent_id: str | None = None
    pin: Any = None
    request_id: str | None = field(default=None, name="request_id")
    target: str | None = None
    display: str | None = None
    revived_agent_id: str | None = None


class TeamResult(ToolResult, frozen=True, rename=None):
    """`TeamCreate`, `TeamDelete`: a team was created or deleted."""

    success: bool | None = None
    message: str | None = None
    team_name: str | None = None
    team_file_path: str | None = None
    lead_agent_id: str | None = None


class ListAgentsResult(ToolResult, frozen=True):
    """`ListAgents`: the existing agents."""

    listing: Any = None
    sections: list[Any] | None = None
    notes: list[Any] | None = None


class AskUserQuestionResult(ToolResult, frozen=True):
    """`AskUserQuestion`: the questions and the person's answers."""

    questions: list[Any] | None = None
    answers: Any = None
    annotations: Any = None


class ExitPlanModeResult(ToolResult, frozen=True):
    """`ExitPlanMode`: the plan that was approved. A refusal is a string."""

    plan: str | None = None
    is_agent: bool | None = None
    file_path: str | None = None
    has_task_tool: bool | None = None
    plan_was_edited: bool | None = None


class EnterPlanModeResult(ToolResult, frozen=True):
    """`EnterPlanMode`: plan mode is on."""

    message: str | None = None


class WorktreeResult(ToolResult, frozen=True):
    """`EnterWorktree`, `ExitWorktree`: the session moved into a worktree or out of it."""

    message: str | None = None
    worktree_path: str | None = None
    worktree_branch: str | None = None
    action: str | None = None
    original_cwd: str | None = None
    original_cwd_missing: bool | None = None
    restored_cwd: str | None = None


class SkillResult(ToolResult, frozen=True):
    """`Skill`: a skill was used."""

    success: bool | None = None
    command_name: str | None = None
    allowed_tools: list[str] | None = None
    model: str | None = None
    status: str | None = None
    agent_id: str | None = None
    result: Any = None


class ReportFindingsResult(ToolResult, frozen=True):
    """`ReportFindings`: the findings of a review."""

    count: int | None = None
    findings: list[Any] | None = None
    level: str | None = None


class McpResult(ToolResult, frozen=True):
    """`mcp__server__tool`: the answer of an MCP server, if it is not a list of blocks."""

    content: Any = None
    structured_content: Any = None
    meta: Any = field(default=None, name="_meta")


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
"""The shape of each tool's result. `LS`, `TodoRead` and refusals are strings; `mcp__…` tools return lists."""

_SIGNATURE_KEYS: tuple[tuple[str, type[ToolResult]], ...] = (
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
SIGNATURES = tuple((frozenset(keys.split()), shape) for keys, shape in _SIGNATURE_KEYS)
"""Keys that identify a result's tool if its call is not known. The first set that is completely present counts."""

ResultValue = ToolResult | str | list[ResultItem | str] | None
"""A tool's own result: an object typed by tool, a string (an error or a refusal), blocks, or nothing."""


def typed_result(value: Any, tool: str | None = None) -> ResultValue:
    """Convert a result to the type of its tool, or to the type that its keys suggest.

    >>> typed_result({"stdout": "hi", "stderr": "", "interrupted": False})
    ShellResult(stdout='hi', stderr='', interrupted=False)
    >>> typed_result("Error: File does not exist.", "Read")
    'Error: File does not exist.'
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, dict):
        shape = result_type(value, tool)
        return OtherResult(value) if shape is None else _convert_result(value, shape)
    blocks: ResultValue = fit(value, list[ResultItem | str])[0]
    return OtherResult(value) if blocks is None else blocks


def result_type(value: dict[str, Any], tool: str | None) -> type[ToolResult] | None:
    """Return the type of a result object; None if no known tool returns it."""
    if tool is not None:
        type_ = TOOL_RESULTS.get(tool)
        if type_ is not None:
            return type_
        if tool.startswith("mcp__"):
            return McpResult
    return _result_type_by_keys(tuple(value))


@lru_cache(maxsize=4096)
def _result_type_by_keys(keys: tuple[str, ...]) -> type[ToolResult] | None:
    names = set(keys)
    shape = next((shape for signature, shape in SIGNATURES if signature <= names), None)
    return shape or (EnterPlanModeResult if names == {"message"} else None)


def _convert_result(value: dict[str, Any], shape: type[ToolResult]) -> ToolResult:
    try:
        return msgspec.convert(value, shape)
    except (msgspec.ValidationError, UnicodeEncodeError, RecursionError):  # a wrong type, half a surrogate pair, depth
        result: ToolResult = fit(value, shape)[0]
        return result


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
