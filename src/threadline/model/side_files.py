"""Contents of side files: history, agent metadata, teams, workflow runs, live sessions."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import field

from threadline.model.places import AgentId, CallId, SessionId
from threadline.model.times import parse_timestamp
from threadline.shape import Shape


class HistoryPrompt(Shape, frozen=True):
    """A row of `history.jsonl`: one prompt as it was typed. Old rows have no session id."""

    display: str | None = None
    pasted_contents: dict[str, Any] | None = None
    timestamp_ms: int | float | str | None = field(default=None, name="timestamp")
    project: str | None = None
    session_id: SessionId | None = None

    @property
    def timestamp(self) -> datetime | None:
        """When it was typed, in UTC."""
        return parse_timestamp(self.timestamp_ms)


class AgentMeta(Shape, frozen=True):
    """An agent's `.meta.json`. Every key is optional. `tool_use_id` is the call that started the agent."""

    agent_type: str | None = None
    description: str | None = None
    tool_use_id: CallId | None = None
    parent_agent_id: AgentId | None = None
    spawn_depth: int | None = None
    model: str | None = None
    name: str | None = None
    is_fork: bool | None = None
    is_built_in: bool | None = None
    launched_with_defaults: bool | None = None
    worktree_path: str | None = None
    worktree_branch: str | None = None
    inherited_worktree_path: str | None = None
    spawned_with_worktree: Any = None
    worktree_cleanly_removed: bool | None = None
    workflow_phase: str | None = None
    request_shape: Any = None
    request_non_interactive: bool | None = None
    picked_effort_model: str | None = None
    finished: bool | None = None


class IndexedSession(Shape, frozen=True):
    """One session in `sessions-index.json`."""

    session_id: SessionId | None = None
    full_path: str | None = None
    file_mtime: int | float | None = None
    first_prompt: str | None = None
    summary: str | None = None
    custom_title: str | None = None
    message_count: int | None = None
    created: str | None = None
    modified: str | None = None
    git_branch: str | None = None
    project_path: str | None = None
    is_agent: bool | None = field(default=None, name="isSidechain")
    pr_number: int | None = None
    pr_url: str | None = None
    pr_repository: str | None = None


class SessionsIndex(Shape, frozen=True):
    """`sessions-index.json`: a hint, stale after 2.1.30."""

    version: int | None = None
    original_path: str | None = None
    entries: list[IndexedSession] | None = None


class LiveSession(Shape, frozen=True):
    """`sessions/<pid>.json`: a session that was running when the file was written. The id may be outdated."""

    pid: int | None = None
    session_id: SessionId | None = None
    cwd: str | None = None
    started_at: int | float | None = None
    proc_start: str | int | None = None
    version: str | None = None
    peer_protocol: int | None = None
    peer_features: list[Any] | None = None
    kind: str | None = None
    entrypoint: str | None = None
    name: str | None = None
    name_source: str | None = None
    name_since: int | float | None = None
    status: str | None = None
    waiting_for: Any = None
    updated_at: int | float | None = None
    status_updated_at: int | float | None = None
    pid_domain: str | None = None
    tmux: Any = None
    messaging_socket_path: str | None = None
    asks_for_converted_skills: Any = None


class TeamMember(Shape, frozen=True):
    """One agent of a team."""

    agent_id: str | None = None
    name: str | None = None
    agent_type: str | None = None
    model: str | None = None
    prompt: str | None = None
    color: str | None = None
    plan_mode_required: bool | None = None
    joined_at: int | float | None = None
    tmux_pane_id: str | None = None
    cwd: str | None = None
    subscriptions: list[Any] | None = None
    backend_type: str | None = None


class Team(Shape, frozen=True):
    """`teams/<team>/config.json`."""

    name: str | None = None
    description: str | None = None
    created_at: int | float | None = None
    lead_agent_id: str | None = None
    lead_session_id: SessionId | None = None
    members: list[TeamMember] | None = None


class InboxMessage(Shape, frozen=True):
    """One message in a teammate's inbox; its text may itself be JSON."""

    from_: str | None = field(default=None, name="from")
    text: str | None = None
    timestamp: str | None = None
    read: bool | None = None
    color: str | None = None
    summary: str | None = None


class WorkflowRun(Shape, frozen=True):
    """`workflows/<run>.json`: how a workflow ended."""

    run_id: str | None = None
    timestamp: str | None = None
    task_id: str | None = None
    script: str | None = None
    script_path: str | None = None
    result: Any = None
    agent_count: int | None = None
    logs: list[Any] | None = None
    duration_ms: int | float | None = None
    summary: str | None = None
    workflow_name: str | None = None
    status: str | None = None
    start_time: int | float | None = None
    phases: list[Any] | None = None
    default_model: str | None = None
    workflow_progress: list[Any] | None = None
    total_tokens: int | None = None
    total_tool_calls: int | None = None
    error: Any = None


class Job(Shape, frozen=True):
    """`jobs/<id>/state.json`: a background session. Its state is an open set of words and not reliable."""

    state: str | None = None
    detail: str | None = None
    intent: str | None = None
    session_id: SessionId | None = None
    link_scan_path: str | None = None


class IdeLock(Shape, frozen=True):
    """`ide/<port>.lock`: an editor that accepts connections. Its token is a secret and is not read."""

    pid: int | None = None
    workspace_folders: list[str] | None = None
    ide_name: str | None = None
    transport: str | None = None
    running_in_windows: bool | None = None


class TitleFile(Shape, frozen=True):
    """`<session>/custom-title.json`: the title a person gave."""

    custom_title: str | None = None
