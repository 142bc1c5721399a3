"""Turns, calls and entries of a session as rows with the same keys in every command.

Imports the whole entry model: `list`, `usage` and the overview must not import this module.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from threadline.model.blocks import (
    ContentBlock,
    ImageBlock,
    ServerToolUseBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from threadline.model.calls import Call
from threadline.model.entries import AssistantEntry, Entry, OtherEntry, UserEntry
from threadline.model.session import Turn
from threadline.model.text import extract_text
from threadline.render import summarize_call


def thread_row(entry: Entry) -> dict[str, Any]:
    """An entry of the active thread, as it can be compared from outside."""
    return {"uuid": entry.uuid, "kind": entry.kind, "place": str(entry.place)}


def conversation_row(entry: Entry, turn: int | None, agent: str | None = None) -> dict[str, Any]:
    """An entry of the conversation."""
    return {
        **thread_row(entry),
        "turn": turn,
        "agent": agent,
        "timestamp": entry.timestamp,
        "text": entry_text(entry),
    }


def call_row(call: Call) -> dict[str, Any]:
    """A call, with its input whole and not its output: that can be huge, and its place leads there."""
    took = call.duration
    return {
        "timestamp": call.timestamp,
        "tool": call.tool,
        "input": summarize_call(call.tool, call.input),
        "outcome": str(call.outcome),
        "evidence": call.evidence,
        "seconds": took.total_seconds() if took is not None else None,
        "agent": call.agent,
        "turn": call.turn,
        "call": call.id,
        "place": str(call.place),
    }


def turn_row(turn: Turn, calls: Iterable[Call]) -> dict[str, Any]:
    """A turn: what was asked, what was said, and the calls that were made."""
    act = turn.act
    took = turn.duration
    return {
        "number": turn.number,
        "act": str(act.kind) if act is not None else None,
        "prompt": act.text if act is not None else None,
        "started": turn.started,
        "seconds": took.total_seconds() if took is not None else None,
        "reply": turn.reply,
        "calls": [call_row(call) for call in calls],
        "entries": len(turn.entries),
        "place": str(turn.entries[0].place),
    }


# Of what is not understood, this many bytes tell enough: it may be a hole of gigabytes.
_MAX_RAW_BYTES = 4096
# The field that says most, of each kind that has no message; looked for in this order.
_DESCRIPTIVE_FIELDS = (
    "ai_title",
    "custom_title",
    "summary",
    "last_prompt",
    "tag",
    "agent_name",
    "agent_color",
    "agent_setting",
    "mode",
    "permission_mode",
    "pr_url",
    "frame_url",
    "relocated_cwd",
    "continued_in_session_id",
    "tracking_path",
    "total_cost_usd",
    "query_source",
    "shape_hash",
    "hash",
    "key",
)
_INPUT_FIELDS = ("command", "file_path", "pattern", "query", "url", "description", "prompt", "subject", "skill", "path")


def entry_text(entry: Entry) -> str:
    """What the entry says: its text, its call or result, or the field that tells most."""
    if isinstance(entry, UserEntry | AssistantEntry):
        blocks = entry.message.blocks if entry.message is not None else ()
        return "\n".join(text for block in blocks for text in _block_texts(block))
    if isinstance(entry, OtherEntry):
        problem = entry.problems[0].message if entry.problems else ""
        return problem or entry.raw[:_MAX_RAW_BYTES].decode(errors="replace").strip("\0 \t\r\n")
    return _content_text(entry) or _descriptive_text(entry)


def _block_texts(block: ContentBlock) -> Iterator[str]:
    match block:
        case TextBlock():
            yield block.text
        case ThinkingBlock():
            yield f"(thinking) {block.thinking}"
        case ToolUseBlock() | ServerToolUseBlock():
            yield f"{block.name}({_input_text(block.input)})"
        case ToolResultBlock():
            yield f"{'error' if block.is_error else 'result'}: {extract_text(block.content)}"
        case ImageBlock():
            yield "(image)"
        case _:
            yield f"({block.type})"


def _input_text(value: Any) -> str:
    if not isinstance(value, dict):
        return "" if value is None else str(value)
    named = (value[name] for name in _INPUT_FIELDS if isinstance(value.get(name), str))
    return next(named, ", ".join(map(str, value)))


def _content_text(entry: Entry) -> str:
    attachment = getattr(entry, "attachment", None)
    progress = getattr(entry, "progress", None)
    holders = (entry, attachment, progress)
    for holder in holders:
        for name in ("content", "prompt", "text", "command", "filename", "output", "query", "operation"):
            value = getattr(holder, name, None)
            if isinstance(value, str) and value:
                return value
            if isinstance(value, list) and (text := extract_text(value)):
                return text
    return ""


def _descriptive_text(entry: Entry) -> str:
    values = (getattr(entry, name, None) for name in _DESCRIPTIVE_FIELDS)
    return next((str(value) for value in values if value is not None), "")
