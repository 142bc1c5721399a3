"""Results of tools that steer the session or ask the person."""

from __future__ import annotations

from typing import Any

from msgspec import field

from threadline.model.results.result import ToolResult


class AskUserQuestionResult(ToolResult, frozen=True):
    """`AskUserQuestion`: what was asked and what the person answered."""

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
    """`ReportFindings`: what a review found."""

    count: int | None = None
    findings: list[Any] | None = None
    level: str | None = None


class McpResult(ToolResult, frozen=True):
    """`mcp__server__tool`, where it is not a list of blocks: what an MCP server sent."""

    content: Any = None
    structured_content: Any = None
    meta: Any = field(default=None, name="_meta")
