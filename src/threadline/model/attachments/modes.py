"""Attachments about modes, plans, goals and background work; and what a person typed meanwhile."""

from __future__ import annotations

from typing import Any

from msgspec import field

from threadline.model.attachments.attached import Attached


class QueuedCommand(Attached, frozen=True, tag="queued_command"):
    """Text a person typed while the model was working, or a note that a background task ended."""

    prompt: Any = None
    command_mode: str | None = None
    source_uuid: str | None = field(default=None, name="source_uuid")
    origin: Any = None
    image_paste_ids: list[Any] | None = None
    file_attachments: list[Any] | None = None
    is_meta: bool | None = None
    delivery_id: str | None = field(default=None, name="delivery_id")
    human_turn: bool | None = None
    run_id: str | None = None
    tools_used_delta: list[str] | None = None
    usage: Any = None


class PlanAttachment(Attached, frozen=True):
    """What every attachment about a plan can have."""

    plan_file_path: str | None = None
    plan_exists: bool | None = None
    plan_content: str | None = None
    reminder_type: str | None = None
    is_sub_agent: bool | None = None


class PlanMode(PlanAttachment, frozen=True, tag="plan_mode"):
    """Plan mode is on."""


class PlanModeExit(PlanAttachment, frozen=True, tag="plan_mode_exit"):
    """Plan mode ended."""


class PlanModeReentry(PlanAttachment, frozen=True, tag="plan_mode_reentry"):
    """Plan mode is on again."""


class PlanFileReference(PlanAttachment, frozen=True, tag="plan_file_reference"):
    """The plan, after a compaction."""


class AutoModeAttachment(Attached, frozen=True):
    """What every attachment about auto mode can have."""

    reminder_type: str | None = None
    auto_mode_consent_flow: bool | None = None
    bypass: Any = None
    bash_first: bool | None = None
    bash_first_steer: str | None = None
    steer_only: bool | None = None
    finish_exposed_work: bool | None = None


class AutoMode(AutoModeAttachment, frozen=True, tag="auto_mode"):
    """Auto mode is on."""


class AutoModeExit(AutoModeAttachment, frozen=True, tag="auto_mode_exit"):
    """Auto mode ended."""


class OutputStyle(Attached, frozen=True, tag="output_style"):
    """The style replies are asked for."""

    style: str | None = None


class CompanionIntro(Attached, frozen=True, tag="companion_intro"):
    """The pet introduces itself."""

    name: str | None = None
    species: str | None = None


class GoalStatus(Attached, frozen=True, tag="goal_status"):
    """Whether the goal is met."""

    met: bool | None = None
    condition: str | None = None


class BudgetUsd(Attached, frozen=True, tag="budget_usd"):
    """How much of the budget is left."""

    used: float | None = None
    total: float | None = None
    remaining: float | None = None


class MaxTurnsReached(Attached, frozen=True, tag="max_turns_reached"):
    """The session may not go on."""

    max_turns: int | None = None
    turn_count: int | None = None
    exit_committed: bool | None = None


class TaskStatus(Attached, frozen=True, tag="task_status"):
    """How a background task is doing."""

    task_id: str | None = None
    task_type: str | None = None
    status: str | None = None
    description: str | None = None
    delta_summary: str | None = None
    output_file_path: str | None = None


class UltraEffortEnter(Attached, frozen=True, tag="ultra_effort_enter"):
    """The highest effort is on."""


class UltraEffortExit(Attached, frozen=True, tag="ultra_effort_exit"):
    """The highest effort ended."""


class UltrathinkEffort(Attached, frozen=True, tag="ultrathink_effort"):
    """The prompt asked for the most thinking."""


class WorkflowKeywordRequest(Attached, frozen=True, tag="workflow_keyword_request"):
    """The prompt asked for a workflow."""
