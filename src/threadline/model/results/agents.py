"""Results of tools that start agents or talk to them."""

from __future__ import annotations

from typing import Any

from msgspec import field

from threadline.model.block import ResultItem
from threadline.model.ids import AgentId
from threadline.model.results.result import ToolResult
from threadline.model.usage import Usage
from threadline.shape import Shape


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
    """`Task`, `Agent`: the agent's answer, or that it was launched or joined a team. `status` tells which."""

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
    """`TeamCreate`, `TeamDelete`: a team came or went."""

    success: bool | None = None
    message: str | None = None
    team_name: str | None = None
    team_file_path: str | None = None
    lead_agent_id: str | None = None


class ListAgentsResult(ToolResult, frozen=True):
    """`ListAgents`: the agents there are."""

    listing: Any = None
    sections: list[Any] | None = None
    notes: list[Any] | None = None
