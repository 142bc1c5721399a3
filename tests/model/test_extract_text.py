"""Tests of `extract_text`."""

from __future__ import annotations

from typing import Any

import pytest

import threadline
from threadline import ImageBlock, Message, TextBlock, ThinkingBlock, ToolUseBlock
from threadline.model.entries import AssistantEntry, UserEntry

_TEXT = {"type": "text", "text": "a"}
_IMAGE = {"type": "image", "source": {}}

SHAPES: dict[str, tuple[Any, str]] = {
    "a string": ("Plain text message", "Plain text message"),
    "an empty string": ("", ""),
    "text blocks are joined with newlines": ([_TEXT, {"type": "text", "text": "b"}], "a\nb"),
    "other blocks are left out": ([_TEXT, _IMAGE, {"type": "text", "text": "b"}], "a\nb"),
    "thinking is no text": ([{"type": "thinking", "thinking": "hm"}, _TEXT], "a"),
    "a tool's input is no text": ([{"type": "tool_use", "name": "Bash", "input": {"text": "x"}}], ""),
    "a tool's result is no text": ([{"type": "tool_result", "content": "output"}], ""),
    "bare strings among blocks": (["bare", _TEXT], "bare\na"),
    "one block": (_TEXT, "a"),
    "a block without a type": ([{"text": "a"}], "a"),
    "a block of another type with a text": ([{"type": "hologram", "text": "a"}], ""),
    "a text that is none": ([{"type": "text", "text": 5}, {"type": "text"}, {"type": "text", "text": None}], ""),
    "an empty text is a line": ([{"type": "text", "text": ""}, _TEXT], "\na"),
    "nothing": (None, ""),
    "an empty list": ([], ""),
    "a number": (5, ""),
    "nulls among blocks": ([None, 5, [], _TEXT], "a"),
    "a tuple": ((_TEXT, "b"), "a\nb"),
    "a message": ({"role": "user", "content": [_TEXT]}, "a"),
    "a message with a type": ({"type": "message", "content": "hello"}, "hello"),
    "a row": ({"type": "user", "message": {"role": "user", "content": "hello"}}, "hello"),
    "a row without a role": ({"type": "user", "message": {"content": [_TEXT, _TEXT]}}, "a\na"),
    "a reply": ({"type": "assistant", "message": {"content": [_TEXT]}}, "a"),
    "a row without content": ({"type": "user", "message": {}}, ""),
    "a row without a message": ({"type": "user"}, ""),
    "structs": ([TextBlock("a"), ThinkingBlock("hm"), ImageBlock(), ToolUseBlock(name="x"), "b"], "a\nb"),
    "a struct": (TextBlock("a"), "a"),
    "a message as a struct": (Message(content=[TextBlock("a")]), "a"),
    "an entry": (UserEntry(message=Message(content="hello")), "hello"),
    "a reply's entry": (AssistantEntry(message=Message(content=[TextBlock("a"), TextBlock("b")])), "a\nb"),
    "an entry without a message": (UserEntry(), ""),
}


@pytest.mark.parametrize(("content", "text"), SHAPES.values(), ids=SHAPES)
def test_extracts_text_from_any_content(content: Any, text: str) -> None:
    """A string is returned unchanged, text blocks are joined with newlines, and anything else is ignored."""
    assert threadline.extract_text(content) == text
