"""Results of tools that keep lists of work."""

from __future__ import annotations

from typing import Any

from msgspec import field

from threadline.model.results.result import ToolResult
from threadline.shape import Shape


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
    """One task, as a tool's result or a file under `tasks/` has it."""

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
    """From which status to which."""

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
