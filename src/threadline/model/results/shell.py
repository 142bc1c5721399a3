"""Results of tools that run commands."""

from __future__ import annotations

from typing import Any

from msgspec import field

from threadline.model.results.result import ToolResult


class ShellResult(ToolResult, frozen=True):
    """`Bash`, `PowerShell`: what the command printed. There is no exit code: the text says it."""

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
    """`BashOutput` (old): what a background command has printed since."""

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
    """`TaskOutput`: how a background task is doing."""

    retrieval_status: str | None = None
    task: OutputTask | None = None


class MonitorResult(ToolResult, frozen=True):
    """`Monitor`: something is being watched."""

    task_id: str | None = None
    timeout_ms: float | None = None
    persistent: bool | None = None
