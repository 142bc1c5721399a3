"""`system`: what the program has to say, by subtype."""

from __future__ import annotations

from typing import Any

from msgspec import field

from threadline.model.entries.entry import ChainEntry
from threadline.model.ids import EntryId, RequestId
from threadline.shape import Shape


class PreservedSegment(Shape, frozen=True):
    """Entries from before a compaction that stay in the conversation after it."""

    head_uuid: EntryId | None = None
    anchor_uuid: EntryId | None = None
    tail_uuid: EntryId | None = None


class PreservedMessages(Shape, frozen=True):
    """The same as a list."""

    anchor_uuid: EntryId | None = None
    uuids: list[EntryId] | None = None
    all_uuids: list[EntryId] | None = None


class CompactMetadata(Shape, frozen=True):
    """What a compaction did."""

    trigger: str | None = None
    pre_tokens: int | None = None
    post_tokens: int | None = None
    duration_ms: float | None = None
    cumulative_dropped_tokens: int | None = None
    messages_summarized: int | None = None
    user_context: str | None = None
    pre_compact_discovered_tools: list[str] | None = None
    preserved_segment: PreservedSegment | None = None
    preserved_messages: PreservedMessages | None = None


class MicrocompactMetadata(Shape, frozen=True):
    """Which old tool results were blanked for the model."""

    trigger: str | None = None
    pre_tokens: int | None = None
    tokens_saved: int | None = None
    compacted_tool_ids: list[str] | None = None
    cleared_attachment_uuids: list[EntryId] | None = field(default=None, name="clearedAttachmentUUIDs")


class HookInfo(Shape, frozen=True):
    """One hook that ran when the turn stopped."""

    command: str | None = None
    duration_ms: float | None = None
    prompt_text: str | None = None


class SystemEntry(ChainEntry, frozen=True, tag="system"):
    """What the program has to say. `subtype` tells which of the fields below are there: see `SUBTYPES`."""

    subtype: str | None = None
    content: Any = None
    level: str | None = None
    tool_use_id: str | None = field(default=None, name="toolUseID")
    # compactions
    compact_metadata: CompactMetadata | None = None
    microcompact_metadata: MicrocompactMetadata | None = None
    # turns and hooks
    duration_ms: float | None = None
    message_count: int | None = None
    pending_background_agent_count: int | None = None
    pending_workflow_count: int | None = None
    hook_count: int | None = None
    hook_infos: list[HookInfo] | None = None
    hook_errors: list[Any] | None = None
    hook_additional_context: Any = None
    prevented_continuation: bool | None = None
    stop_reason: str | None = None
    has_output: bool | None = None
    prevent_continuation: bool | None = None
    # API errors and refusals
    error: Any = None
    cause: Any = None
    retry_in_ms: float | None = None
    retry_attempt: int | None = None
    max_retries: int | None = None
    source: str | None = None
    original_model: str | None = None
    fallback_model: str | None = None
    trigger: str | None = None
    direction: str | None = None
    scope: str | None = None
    request_id: RequestId | None = None
    api_refusal_category: str | None = None
    api_refusal_explanation: str | None = None
    refused_user_message_uuid: EntryId | None = None
    retracted_message_uuids: list[EntryId] | None = None
    # local commands
    command_run: Any = None
    command_outcome: Any = None
    context_usage: Any = None
    prompt_submit_ending: Any = None
    # remote control
    url: str | None = None
    upgrade_nudge: str | None = None
    # stream-json dumps: never on disk by the program itself
    tools: list[Any] | None = None
    mcp_servers: list[Any] | None = field(default=None, name="mcp_servers")
    model: str | None = None
    permission_mode: str | None = None
    slash_commands: list[Any] | None = field(default=None, name="slash_commands")
    api_key_source: str | None = None
    claude_code_version: str | None = field(default=None, name="claude_code_version")
    output_style: str | None = field(default=None, name="output_style")
    agents: list[Any] | None = None
    skills: list[Any] | None = None
    plugins: list[Any] | None = None
    status: str | None = None
    summary: str | None = None
    hook_id: str | None = field(default=None, name="hook_id")
    hook_name: str | None = field(default=None, name="hook_name")
    hook_event: str | None = field(default=None, name="hook_event")
    stdout: str | None = None
    stderr: str | None = None
    output: str | None = None
    outcome: str | None = None
    exit_code: int | None = field(default=None, name="exit_code")
    task_id: str | None = field(default=None, name="task_id")
    stream_tool_use_id: str | None = field(default=None, name="tool_use_id")
    description: str | None = None
    task_type: str | None = field(default=None, name="task_type")
    subagent_type: str | None = field(default=None, name="subagent_type")
    prompt: str | None = None
    usage: Any = None
    last_tool_name: str | None = field(default=None, name="last_tool_name")
    output_file: str | None = field(default=None, name="output_file")
    stream_compact_metadata: Any = field(default=None, name="compact_metadata")

    @property
    def text(self) -> str:
        """The content, where it is text."""
        return self.content if isinstance(self.content, str) else ""


SUBTYPES: dict[str, str] = {
    "compact_boundary": "earlier entries were replaced by a summary",
    "microcompact_boundary": "old tool results were blanked for the model",
    "local_command": "a command that ran in the program itself, or its output",
    "turn_duration": "a turn ended",
    "stop_hook_summary": "the hooks that ran when a turn stopped",
    "api_error": "a request failed and will be tried again",
    "away_summary": "what happened while the person was away",
    "scheduled_task_fire": "a scheduled prompt was sent",
    "bridge_status": "remote control came or went",
    "informational": "a notice",
    "model_refusal_fallback": "a model refused and another answered",
    "model_refusal_no_fallback": "a model refused and none answered",
    "api_refusal": "the API refused",
    "model_consent_fallback": "another model answered, with consent",
    "model_fallback": "another model answered",
    "agents_killed": "agents were stopped",
    "thinking": "a notice about thinking",
    "permission_retry": "a refused call was tried again",
    "memory_saved": "something was remembered",
    "session_start": "a session began",
    "error": "an error notice",
    # stream-json only
    "init": "stream-json: a session began",
    "summary": "stream-json: a summary",
    "status": "stream-json: what the program is doing",
    "task_started": "stream-json: a background task began",
    "task_progress": "stream-json: how a background task is doing",
    "task_notification": "stream-json: a background task ended",
    "hook_started": "stream-json: a hook began",
    "hook_progress": "stream-json: a hook is running",
    "hook_response": "stream-json: a hook answered",
}
"""Every subtype that is known, and what it means; an entry without one is an early notice."""
