"""`progress`: what was going on while a call ran (2.1.2 to about 2.1.9x)."""

from __future__ import annotations

from typing import Any

from msgspec import field

from threadline.model.entries.entry import ChainEntry
from threadline.model.ids import AgentId, EntryId, RequestId
from threadline.model.message import Message
from threadline.shape import OTHER, Shape


class HookProgress(Shape, frozen=True, tag="hook_progress"):
    """A hook is running."""

    hook_event: str | None = None
    hook_name: str | None = None
    command: str | None = None
    status_message: str | None = None


class ShellProgress(Shape, frozen=True):
    """What a command has printed so far."""

    output: str | None = None
    full_output: str | None = None
    elapsed_time_seconds: float | None = None
    total_lines: int | None = None
    total_bytes: int | None = None
    task_id: str | None = None
    timeout_ms: float | None = None


class BashProgress(ShellProgress, frozen=True, tag="bash_progress"):
    """What a shell command has printed so far."""


class PowershellProgress(ShellProgress, frozen=True, tag="powershell_progress"):
    """The same on Windows."""


class AgentMessage(Shape, frozen=True):
    """An agent's entry, repeated here: the same message id as in the agent's own transcript."""

    type: str | None = None
    message: Message | None = None
    timestamp: str | None = None
    request_id: RequestId | None = None
    uuid: EntryId | None = None
    tool_use_result: Any = None
    is_meta: bool | None = None
    parent_uuid: EntryId | None = None
    is_api_error_message: bool | None = None
    error: Any = None
    source_tool_assistant_uuid: EntryId | None = field(default=None, name="sourceToolAssistantUUID")
    source_tool_use_id: str | None = field(default=None, name="sourceToolUseID")


class AgentProgress(Shape, frozen=True, tag="agent_progress"):
    """What an agent is doing."""

    message: AgentMessage | None = None
    normalized_messages: list[Any] | None = None
    prompt: str | None = None
    agent_id: AgentId | None = None
    resume: Any = None


class SkillProgress(Shape, frozen=True, tag="skill_progress"):
    """What a skill is doing."""

    message: AgentMessage | None = None
    normalized_messages: list[Any] | None = None
    prompt: str | None = None
    agent_id: AgentId | None = None


class McpProgress(Shape, frozen=True, tag="mcp_progress"):
    """How a call to an MCP server is doing."""

    status: str | None = None
    server_name: str | None = None
    tool_name: str | None = None
    elapsed_time_ms: float | None = None


class WaitingForTask(Shape, frozen=True, tag="waiting_for_task"):
    """Waiting for a background task."""

    task_description: str | None = None
    task_type: str | None = None


class QueryUpdate(Shape, frozen=True, tag="query_update"):
    """The words a web search is made with."""

    query: str | None = None


class SearchResultsReceived(Shape, frozen=True, tag="search_results_received"):
    """How much a web search found."""

    result_count: int | None = None
    query: str | None = None


class TaskProgress(Shape, frozen=True, tag="task_progress"):
    """How a background task is doing."""


class ReplToolCall(Shape, frozen=True, tag="repl_tool_call"):
    """A call made from within another tool."""


class OtherProgress(Shape, frozen=True, tag=OTHER):
    """Progress of a type that threadline does not know: its tag, and the whole of it in `data`."""

    tag: str = ""
    data: Any = None


ProgressData = (
    HookProgress
    | BashProgress
    | PowershellProgress
    | AgentProgress
    | SkillProgress
    | McpProgress
    | WaitingForTask
    | QueryUpdate
    | SearchResultsReceived
    | TaskProgress
    | ReplToolCall
    | OtherProgress
)


class ProgressEntry(ChainEntry, frozen=True, tag="progress"):
    """What was going on while a call ran. It stands in the parent chain."""

    progress: ProgressData | None = field(default=None, name="data")
    parent_tool_use_id: str | None = field(default=None, name="parentToolUseID")
    tool_use_id: str | None = field(default=None, name="toolUseID")
