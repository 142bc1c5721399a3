"""The words of Claude Code's own format, which stay whatever is to be hidden: without them nothing could be read."""

from __future__ import annotations

from functools import cache
from typing import Any

from msgspec import Struct

from threadline.model.entries import KINDS
from threadline.render.redaction.redactor import Fixed
from threadline.render.redaction.wordlist import words

_PARTS = words(
    "message text thinking redacted_thinking tool_use tool_result image document server_tool_use mcp_tool_use"
    " mcp_tool_result web_search_tool_result web_search_result base64 url file create update user assistant"
    " end_turn tool_use max_tokens stop_sequence"
)
_SAID_BY = ("type", "role", "subtype", "stop_reason")


@cache
def vocabulary() -> Fixed:
    """The names of all fields that the model knows, and the words that say of what kind something is."""
    found: set[str] = set(_SAID_BY)
    waiting: list[Any] = [Struct]
    while waiting:
        for kind in waiting.pop().__subclasses__():
            waiting.append(kind)
            if kind.__module__.startswith("threadline.model"):
                found.update(kind.__struct_encode_fields__)
    return Fixed(frozenset(found), dict.fromkeys(_SAID_BY, frozenset(KINDS) | _PARTS))
