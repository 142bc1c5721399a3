"""Attachments that tell the model what it has: skills, tools, agents, servers."""

from __future__ import annotations

from typing import Any

from threadline.model.attachments.attached import Attached


class SkillListing(Attached, tag="skill_listing"):
    """The skills there are."""

    content: str | None = None
    skill_count: int | None = None
    is_initial: bool | None = None
    names: list[str] | None = None
    digests: Any = None


class Delta(Attached):
    """What every change of a listing can have."""

    added_names: list[str] | None = None
    added_types: list[str] | None = None
    added_lines: list[str] | None = None
    added_blocks: list[Any] | None = None
    removed_names: list[str] | None = None
    removed_types: list[str] | None = None
    readded_names: list[str] | None = None
    pending_mcp_servers: list[Any] | None = None
    needs_auth_mcp_servers: list[Any] | None = None
    failed_mcp_servers: list[Any] | None = None
    wire_hidden_names: list[Any] | None = None
    digests: Any = None
    built_in_types: list[str] | None = None
    is_initial: bool | None = None
    show_concurrency_note: bool | None = None


class DeferredToolsDelta(Delta, tag="deferred_tools_delta"):
    """Tools that can be searched for came or went."""


class McpInstructionsDelta(Delta, tag="mcp_instructions_delta"):
    """What MCP servers say of themselves came or went."""


class AgentListingDelta(Delta, tag="agent_listing_delta"):
    """Agent types came or went."""


class InvokedSkills(Attached, tag="invoked_skills"):
    """The skills that were used before a compaction."""

    skills: list[Any] | None = None


class DynamicSkill(Attached, tag="dynamic_skill"):
    """Skills found in a directory the model came to."""

    skill_dir: str | None = None
    skill_names: list[str] | None = None


class AgentMention(Attached, tag="agent_mention"):
    """The prompt named an agent type."""

    agent_type: str | None = None


class CommandPermissions(Attached, tag="command_permissions"):
    """What a command may do."""

    allowed_tools: list[str] | None = None
    model: str | None = None


class StructuredOutput(Attached, tag="structured_output"):
    """An answer in the shape that was asked for."""

    data: Any = None
