"""`assistant`: one block of a reply, as a rule."""

from __future__ import annotations

from typing import Any

from msgspec import field

from threadline.model.entries.entry import ChainEntry
from threadline.model.ids import EntryId, RequestId
from threadline.model.message import Message


class AssistantEntry(ChainEntry, frozen=True, tag="assistant"):
    """One block of a reply, as a rule: entries that share `message.id` are one message."""

    message: Message | None = None
    request_id: RequestId | None = None
    is_api_error_message: bool | None = None
    error: Any = None
    api_error: Any = None
    api_error_status: int | str | None = None
    api_error_type: str | None = None
    error_details: Any = None
    effort: str | None = None
    advisor_model: str | None = None
    attribution_agent: str | None = None
    attribution_skill: str | None = None
    attribution_plugin: str | None = None
    attribution_mcp_server: str | None = None
    attribution_mcp_tool: str | None = None
    is_aborted_mid_stream: bool | None = None
    supersedes_uuids: list[EntryId] | None = None
    api_block_index: int | None = None
    request_ref: str | None = None
    requested_model: str | None = None
    prompt_cache_requested: str | None = None
    made_by: str | None = None
    per_turn_effort: str | None = None
    server_classifier_request: str | None = None
    thinking_display: str | None = None
    thinking_duration_ms: float | None = None
    tool_input_stream_ms: float | None = None
    failed_response_had_no_tool_call: bool | None = None
    cost_usd: float | None = field(default=None, name="costUSD")
    duration_ms: float | None = None

    @property
    def text(self) -> str:
        """The text blocks of the message."""
        return self.message.text if self.message is not None else ""

    @property
    def is_made_up(self) -> bool:
        """Whether the program wrote it itself (`<synthetic>`): no model said it and nothing was spent."""
        return self.message is not None and self.message.model == "<synthetic>"
