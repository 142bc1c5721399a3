"""`user`: a prompt, a tool's result, or text the program put in."""

from __future__ import annotations

from typing import Any

from msgspec import field

from threadline.model.block import ToolResultBlock
from threadline.model.entries.entry import ChainEntry
from threadline.model.ids import CallId, EntryId, MessageId
from threadline.model.message import Message
from threadline.model.results import ResultValue, typed_result
from threadline.shape import Shape


class Origin(Shape, frozen=True):
    """Who authored the text."""

    kind: str | None = None
    from_: Any = field(default=None, name="from")
    name: str | None = None
    body: Any = None
    msg_id: str | None = field(default=None, name="msg_id")
    from_mode: str | None = None
    verified_peer_pid: int | None = None
    hop_chain: Any = None
    sender_task_id: str | None = None
    server: str | None = None
    producer: str | None = None
    run_id: str | None = None


class ThinkingMetadata(Shape, frozen=True):
    """How much thinking the prompt asked for."""

    level: str | None = None
    disabled: bool | None = None
    triggers: list[Any] | None = None
    max_thinking_tokens: int | None = None


class TurnPosition(Shape, frozen=True):
    """Where in the session the turn stands."""

    prompt_index: int | None = None
    turn_index: int | None = None


class McpMeta(Shape, frozen=True):
    """What an MCP server sent beside its content."""

    structured_content: Any = None
    meta: Any = field(default=None, name="_meta")
    resource_links: list[Any] | None = None


class UserEntry(ChainEntry, frozen=True, tag="user"):
    """A prompt, a tool's result, or text the program put in: the fields tell which."""

    prompt_id: str | None = None
    message: Message | None = None
    tool_use_result: Any = None
    source_tool_assistant_uuid: EntryId | None = field(default=None, name="sourceToolAssistantUUID")
    source_tool_use_id: CallId | None = field(default=None, name="sourceToolUseID")
    permission_mode: str | None = None
    prompt_source: str | None = None
    origin: Origin | None = None
    is_compact_summary: bool | None = None
    is_visible_in_transcript_only: bool | None = None
    thinking_metadata: ThinkingMetadata | None = None
    todos: list[Any] | None = None
    image_paste_ids: list[int | str] | None = None
    plan_content: str | None = None
    interrupted_message_id: MessageId | None = None
    tool_denial_kind: str | None = None
    permission_decision: Any = None
    mcp_call_not_read_only: str | None = None
    sandboxed: bool | None = None
    refused_message_id: MessageId | None = None
    queue_skip_attachments: bool | None = None
    classifier_meta_lines: Any = None
    user_feedback: Any = None
    tool_ends_turn: bool | None = None
    turn_companion: Any = None
    interrupted_by_shutdown: bool | None = None
    mcp_meta: McpMeta | None = None
    turn_origin: Any = None
    turn_position: TurnPosition | None = None
    custom_instructions: Any = None
    images: list[Any] | None = None
    attachments: list[Any] | None = None
    is_replay: bool | None = None
    is_synthetic: bool | None = None
    stream_result: Any = field(default=None, name="tool_use_result")

    @property
    def text(self) -> str:
        """The text blocks of the message."""
        return self.message.text if self.message is not None else ""

    @property
    def call_id(self) -> CallId | None:
        """The call that this entry is the result of, if it is one."""
        content = self.message.content if self.message is not None else None
        for item in content if isinstance(content, list) else ():
            if isinstance(item, ToolResultBlock):
                return item.tool_use_id
        return None

    @property
    def result(self) -> ResultValue:
        """The tool's own result, typed by its keys; None when there is none.

        A string is an error or a refusal (and normal for old `LS`), a list holds blocks, and what no tool is
        known to give is an `OtherResult`. Whoever knows the call asks `typed_result(value, tool)` instead.
        """
        return typed_result(self.tool_use_result)
