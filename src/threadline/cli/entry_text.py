"""What an entry says, in a few words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from threadline.model.block import (
    ContentBlock,
    ImageBlock,
    ServerToolUseBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from threadline.model.entries import AssistantEntry, Entry, OtherEntry, UserEntry
from threadline.model.text import extract_text

# Of what is not understood, this many bytes tell enough: it may be a hole of gigabytes.
_MOST_RAW = 4096
# The field that says most, of each kind that has no message; looked for in this order.
_TELLING = (
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
_INPUTS = ("command", "file_path", "pattern", "query", "url", "description", "prompt", "subject", "skill", "path")


def entry_text(entry: Entry) -> str:
    """What the entry says: its text, its call or result, or the field that tells most."""
    if isinstance(entry, UserEntry | AssistantEntry):
        blocks = entry.message.blocks if entry.message is not None else ()
        return "\n".join(text for block in blocks for text in _block(block))
    if isinstance(entry, OtherEntry):
        problem = entry.problems[0].message if entry.problems else ""
        return problem or entry.raw[:_MOST_RAW].decode(errors="replace").strip("\0 \t\r\n")
    return _content(entry) or _telling(entry)


def _block(block: ContentBlock) -> Iterator[str]:
    match block:
        case TextBlock():
            yield block.text
        case ThinkingBlock():
            yield f"(thinking) {block.thinking}"
        case ToolUseBlock() | ServerToolUseBlock():
            yield f"{block.name}({_input(block.input)})"
        case ToolResultBlock():
            yield f"{'error' if block.is_error else 'result'}: {extract_text(block.content)}"
        case ImageBlock():
            yield "(image)"
        case _:
            yield f"({block.type})"


def _input(value: Any) -> str:
    if not isinstance(value, dict):
        return "" if value is None else str(value)
    named = (value[name] for name in _INPUTS if isinstance(value.get(name), str))
    return next(named, ", ".join(map(str, value)))


def _content(entry: Entry) -> str:
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


def _telling(entry: Entry) -> str:
    values = (getattr(entry, name, None) for name in _TELLING)
    return next((str(value) for value in values if value is not None), "")
