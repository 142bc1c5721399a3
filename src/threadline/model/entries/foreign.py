"""Rows that Claude Code itself never writes to disk: exports, stream-json dumps and other tools' formats."""

from __future__ import annotations

import json
from typing import Any

from msgspec import field
from msgspec.structs import force_setattr

from threadline.model.blocks import Message, ResultItem, ToolResultBlock, ToolUseBlock
from threadline.model.entries.conversation import AssistantEntry, Entry, UserEntry
from threadline.model.places import CallId, SessionId
from threadline.shape import Shape


class ForeignTool(Shape, frozen=True, rename=None):
    """A tool's name and input, in one documented format."""

    name: str | None = None
    input: Any = None


class ForeignResult(Shape, frozen=True, rename=None):
    """A tool's output, in one documented format."""

    output: Any = None
    error: Any = None


class ToolUseEntry(AssistantEntry, frozen=True, tag="tool_use"):
    """A tool call as a separate line. `message` has it as a block, so that it is a call like any other.

    The name and input are in `tool`, or the row itself has the fields of an API block.
    """

    tool: ForeignTool | None = None
    own_call_id: CallId | None = field(default=None, name="id")
    name: str | None = None
    input: Any = None

    def __post_init__(self) -> None:
        if self.message is not None:
            return
        tool = self.tool
        if tool is not None or self.own_call_id or self.name or self.input is not None:
            block = ToolUseBlock(
                id=self.own_call_id or (CallId(self.uuid) if self.uuid else None),
                name=self.name or (tool.name if tool is not None else None) or "",
                input=self.input if self.input is not None or tool is None else tool.input,
            )
            force_setattr(self, "message", Message(role="assistant", content=[block]))


class ToolResultEntry(UserEntry, frozen=True, tag="tool_result"):
    """A tool's result as a separate line. `message` has it as a block.

    The output is in `result`, or the row itself has the fields of an API block. If it does not name its call,
    `threadline.thread.find_calls` decides which call it answers.
    """

    tool_result: ForeignResult | None = field(default=None, name="result")
    answered_call_id: CallId | None = field(default=None, name="tool_use_id")
    content: str | list[ResultItem | str] | None = None
    is_error: bool | None = field(default=None, name="is_error")

    def __post_init__(self) -> None:
        if self.message is not None:
            return
        result, content, is_error = self.tool_result, self.content, self.is_error
        if result is not None:
            parts = (result.output, result.error)
            content = content or "\n".join(_as_text(part) for part in parts if part not in (None, ""))
            is_error = is_error or bool(result.error)
        if result is not None or self.answered_call_id or content is not None or is_error is not None:
            block = ToolResultBlock(tool_use_id=self.answered_call_id, content=content, is_error=is_error)
            force_setattr(self, "message", Message(role="user", content=[block]))


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


class TurnEndEntry(Entry, frozen=True, tag="turn_end"):
    """The end of a turn, as one tool writes it."""


class CheckpointEntry(Entry, frozen=True, tag="checkpoint"):
    """A checkpoint, in an old documented format."""


class HumanEntry(Entry, frozen=True, tag="human"):
    """A person's message, in an export."""

    text: Any = None
    content: Any = None
    message: Any = None


class AiEntry(Entry, frozen=True, tag="ai"):
    """The model's message, in an export."""

    text: Any = None
    content: Any = None
    message: Any = None


class StreamEventEntry(Entry, frozen=True, tag="stream_event"):
    """One event of a reply being streamed, in a stream-json dump."""

    event: Any = None
    stream_session_id: SessionId | None = field(default=None, name="session_id")
    parent_call_id: str | None = field(default=None, name="parent_tool_use_id")


class RateLimitEventEntry(Entry, frozen=True, tag="rate_limit_event"):
    """How much of a limit is used, in a stream-json dump."""

    rate_limit_info: Any = field(default=None, name="rate_limit_info")
    stream_session_id: SessionId | None = field(default=None, name="session_id")


class ToolProgressEntry(Entry, frozen=True, tag="tool_progress"):
    """How long a call has been running, in a stream-json dump."""

    call_id: str | None = field(default=None, name="tool_use_id")
    tool_name: str | None = field(default=None, name="tool_name")
    elapsed_time_seconds: float | None = field(default=None, name="elapsed_time_seconds")
    stream_session_id: SessionId | None = field(default=None, name="session_id")
    parent_call_id: str | None = field(default=None, name="parent_tool_use_id")
