"""Read JSON documents of several formats, as rows with the field names of transcripts.

Formats are recognised by their fields, row by row:

- transcripts, complete or not, and the format with `tool_use` and `tool_result` rows of their own;
- the output of `claude -p --output-format stream-json`;
- messages of claude-agent-sdk, as `dataclasses.asdict` gives them, without a `type`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from threadline.home_files import open_transcript
from threadline.model.entries import KINDS
from threadline.model.places import Place

_DECODER = json.JSONDecoder(strict=False)
_SPACE = " \t\r\n\0\x1e"
CHAIN_KINDS = frozenset({"user", "assistant", "system", "attachment", "progress"})
"""The kinds that form the conversation."""
_NOT_WRITTEN = frozenset({"turn_end", "checkpoint", "human", "ai", "stream_event", "rate_limit_event", "tool_progress"})
_STREAM_SUBTYPES = ("init", "status", "summary", "hook_", "task_")
_RENAMED = {
    "session_id": "sessionId",
    "request_id": "requestId",
    "tool_use_result": "toolUseResult",
    "isSynthetic": "isMeta",
}
_STREAM_ONLY = frozenset({"parent_tool_use_id", "parent_agent_id", "isReplay", "tool_result_meta"})
_SDK_CLASSES = {
    "UserMessage": "user",
    "AssistantMessage": "assistant",
    "SystemMessage": "system",
    "ResultMessage": "result",
    "StreamEvent": "stream_event",
    "RateLimitEvent": "rate_limit_event",
}
_SERVER_TOOLS = frozenset(
    {
        "advisor",
        "web_search",
        "web_fetch",
        "code_execution",
        "bash_code_execution",
        "text_editor_code_execution",
        "tool_search_tool_regex",
        "tool_search_tool_bm25",
    }
)


class SourceRow(Struct, frozen=True):
    """A document as a row of a transcript.

    `kind` is the `type` of the row that it becomes, or `init` or `result` for stream-json's first and last row, or
    `dropped` if a transcript has no such row. `name` says what it was. `agent_call` is the call of the agent that it
    belongs to. `place` is the line where the document begins.
    """

    kind: str
    name: str
    fields: dict[str, Any]
    place: Place
    agent_call: str | None = None


def read_source(path: Path) -> list[SourceRow]:
    """Return the rows of a file.

    Raises:
        NotFound: the file does not exist.
        Unreadable: the file cannot be read.
    """
    with os.fdopen(open_transcript(path), "rb") as file:
        text = file.read().decode(errors="replace").removeprefix("\ufeff")
    return [row for value, line in _documents(text) for row in _rows(value, Place(str(path), line))]


def _documents(text: str) -> Iterator[tuple[Any, int]]:
    """Yield the JSON documents of a text and their lines. What is not JSON is yielded as a string, line by line."""
    at, line, counted = 0, 1, 0
    while True:
        while at < len(text) and text[at] in _SPACE:
            at += 1
        if at >= len(text):
            return
        line += text.count("\n", counted, at)
        counted = at
        try:
            value, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = text.find("\n", at)
            end = len(text) if end < 0 else end
            value = text[at:end]
        yield value, line
        at = end


def _rows(value: Any, place: Place) -> Iterator[SourceRow]:
    if isinstance(value, list):
        for item in value:
            yield from _rows(item, place)
    elif isinstance(value, dict):
        yield _row_of_sdk_message(value, place) if _is_sdk_message(value) else _row_of_object(value, place)
    else:
        yield SourceRow("dropped", "not a JSON object", {}, place)


def _is_sdk_message(value: dict[str, Any]) -> bool:
    kind = value.get("type", "")
    return not isinstance(kind, str) or kind in {"", *_SDK_CLASSES}


def _row_of_object(value: dict[str, Any], place: Place) -> SourceRow:
    """Return the row for an object with a `type`, of a transcript or of stream-json."""
    kind = str(value["type"])
    call = value.get("parent_tool_use_id")
    agent_call = call if isinstance(call, str) and call else None
    fields = {_RENAMED.get(key, key): item for key, item in value.items() if key not in _STREAM_ONLY}
    if isinstance(value.get("sessionId"), str):
        fields["sessionId"] = value["sessionId"]
    name = f"{kind}/{value['subtype']}" if isinstance(value.get("subtype"), str) else kind
    if kind == "system":
        return SourceRow(_system_kind(value), name, fields, place, agent_call)
    if kind == "result" and "agentId" not in value and "key" not in value:
        return SourceRow("result", name, fields, place)
    is_row = kind in KINDS and kind not in _NOT_WRITTEN and kind != "result"
    return SourceRow(kind if is_row else "dropped", name, fields, place, agent_call)


def _system_kind(value: dict[str, Any]) -> str:
    """Return the kind of a system row: stream-json has some that a transcript does not have."""
    subtype = str(value.get("subtype") or "")
    if subtype == "init":
        return "init"
    is_stream = subtype.startswith(_STREAM_SUBTYPES) or "compact_metadata" in value
    return "dropped" if is_stream else "system"


def _row_of_sdk_message(value: dict[str, Any], place: Place) -> SourceRow:
    """Return the row for a message of the SDK, which is known by its class or by its fields."""
    row: dict[str, Any]
    match _SDK_CLASSES.get(str(value.get("type", ""))) or _sdk_kind(value):
        case "assistant":
            message = {
                "id": value.get("message_id"),
                "model": value.get("model"),
                "content": _sdk_content(value.get("content")),
                "stop_reason": value.get("stop_reason"),
                "usage": value.get("usage"),
            }
            row = {"type": "assistant", "message": {key: item for key, item in message.items() if item is not None}}
        case "user":
            row = {"type": "user", "message": {"role": "user", "content": _sdk_content(value.get("content"))}}
        case "system":
            data = value.get("data")
            row = {**(data if isinstance(data, dict) else {}), "type": "system", "subtype": value.get("subtype")}
        case "result":
            row = {**value, "type": "result", "modelUsage": value.get("model_usage")}
        case _:
            return SourceRow("dropped", str(value.get("type") or "an object without a type"), value, place)
    names = ("uuid", "session_id", "parent_tool_use_id", "tool_use_result", "origin", "error", "timestamp")
    row.update((name, value[name]) for name in names if value.get(name) is not None)
    return _row_of_object(row, place)


def _sdk_kind(value: dict[str, Any]) -> str:
    """Return the kind of a message without a class name. Every class has fields that no other has."""
    if "content" in value:
        return "assistant" if "model" in value else "user"
    if "num_turns" in value and "subtype" in value:
        return "result"
    return "system" if "subtype" in value and isinstance(value.get("data"), dict) else ""


def _sdk_content(content: Any) -> Any:
    return [_sdk_block(block) for block in content] if isinstance(content, list) else content


def _sdk_block(block: Any) -> Any:
    """Return a block with its `type`, which the SDK's classes do not have as a field."""
    if not isinstance(block, dict) or "type" in block:
        return block
    if "text" in block:
        kind = "text"
    elif "thinking" in block:
        kind = "thinking"
    elif "tool_use_id" in block:
        kind = "advisor_tool_result" if isinstance(block.get("content"), dict) else "tool_result"
    elif "name" in block and "input" in block:
        kind = "server_tool_use" if str(block["name"]) in _SERVER_TOOLS else "tool_use"
    else:
        return block
    return {"type": kind, **{key: item for key, item in block.items() if item is not None or key == "content"}}
