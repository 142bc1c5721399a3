"""Attachments that tell the model what it has: skills, tools, agents, servers."""

from __future__ import annotations

from typing import Any

from msgspec import field

from threadline.model.attachments.attached import Attached


class SkillListing(Attached, frozen=True, tag="skill_listing"):
    """The skills there are."""

    content: str | None = None
    skill_count: int | None = None
    is_initial: bool | None = None
    names: list[str] | None = None
    digests: Any = None


class Delta(Attached, frozen=True):
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
    built_in_plugin_types: list[str] | None = None
    is_initial: bool | None = None
    show_concurrency_note: bool | None = None


class DeferredToolsDelta(Delta, frozen=True, tag="deferred_tools_delta"):
    """Tools that can be searched for came or went."""


class McpInstructionsDelta(Delta, frozen=True, tag="mcp_instructions_delta"):
    """What MCP servers say of themselves came or went."""


class AgentListingDelta(Delta, frozen=True, tag="agent_listing_delta"):
    """Agent types came or went."""


class InvokedSkills(Attached, frozen=True, tag="invoked_skills"):
    """The skills that were used before a compaction."""

    skills: list[Any] | None = None


class DynamicSkill(Attached, frozen=True, tag="dynamic_skill"):
    """Skills found in a directory the model came to."""

    skill_dir: str | None = None
    skill_names: list[str] | None = None


class AgentMention(Attached, frozen=True, tag="agent_mention"):
    """The prompt named an agent type."""

    agent_type: str | None = None


class CommandPermissions(Attached, frozen=True, tag="command_permissions"):
    """What a command may do."""

    allowed_tools: list[str] | None = None
    model: str | None = None


class DeferredToolsRecord(Attached, frozen=True, tag="deferred_tools_record"):
    """The tools that can be searched for, whole."""

    entries: list[Any] | None = None


class UnknownCommandFallback(Attached, frozen=True, tag="unknown_command_fallback"):
    """The prompt named a command that does not exist."""

    command_name: str | None = None
    available_command_names: list[str] | None = None
    available_command_count: int | None = None


class StructuredOutput(Attached, frozen=True, tag="structured_output"):
    """An answer in the shape that was asked for."""

    data: Any = None
    tool_use_id: str | None = field(default=None, name="toolUseID")
