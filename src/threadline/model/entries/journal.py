"""Rows of a workflow's `journal.jsonl`."""

from __future__ import annotations

from typing import Any

from msgspec import field

from threadline.model.entries.entry import Entry
from threadline.model.ids import AgentId
from threadline.model.usage import Usage


class StartedEntry(Entry, frozen=True, tag="started"):
    """An agent of the workflow began."""

    key: str | None = None
    agent_id: AgentId | None = None
    label: str | None = None
    phase: str | None = None


class FailedEntry(Entry, frozen=True, tag="failed"):
    """An agent of the workflow failed."""

    key: str | None = None
    agent_id: AgentId | None = None
    error: Any = None


class LaunchedEntry(Entry, frozen=True, tag="launched"):
    """The workflow was launched."""

    key: str | None = None
    agent_id: AgentId | None = None


class ResultEntry(Entry, frozen=True, tag="result"):
    """In a journal: what an agent of the workflow gave. In a stream-json dump: how the session ended."""

    key: str | None = None
    agent_id: AgentId | None = None
    result: Any = None
    tools_used: list[str] | None = None
    remote_control_device_report: bool | None = None
    subtype: str | None = None
    session_id_again: str | None = field(default=None, name="session_id")
    is_error: bool | None = field(default=None, name="is_error")
    duration_ms: float | None = field(default=None, name="duration_ms")
    duration_api_ms: float | None = field(default=None, name="duration_api_ms")
    num_turns: int | None = field(default=None, name="num_turns")
    total_cost_usd: float | None = field(default=None, name="total_cost_usd")
    cost_usd: float | None = field(default=None, name="cost_usd")
    stop_reason: str | None = field(default=None, name="stop_reason")
    usage: Usage | None = None
    model_usage: Any = None
    permission_denials: list[Any] | None = field(default=None, name="permission_denials")
    structured_output: Any = field(default=None, name="structured_output")
    terminal_reason: str | None = field(default=None, name="terminal_reason")
    fast_mode_state: str | None = field(default=None, name="fast_mode_state")
    errors: list[Any] | None = None
