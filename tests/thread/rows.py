"""Decodes rows to entries without a file, and makes blocks of tool uses and results."""

from __future__ import annotations

from typing import Any

from tests.transcripts import Part, Pen, Row, line, prompt, transcript

from threadline.model.entries import Entry
from threadline.model.places import NOWHERE
from threadline.parse import decode_object


def decode_rows(*rows: Row | bytes) -> list[Entry]:
    """Decode rows to entries."""
    return [decode_object(row if isinstance(row, bytes) else line(row), NOWHERE.place)[0] for row in rows]


def entries_of(*parts: Part, pen: Pen | None = None) -> list[Entry]:
    """Return the entries of a transcript's parts, after a first prompt."""
    return decode_rows(*transcript(prompt("go"), *parts, pen=pen))


def tool_use(name: str, tool_input: Any = None, id_: str | None = "toolu_1", kind: str = "tool_use") -> Row:
    """Return a tool use block."""
    return {"type": kind, "name": name, "input": tool_input or {}, **({"id": id_} if id_ is not None else {})}


def tool_result(content: Any, id_: str | None = "toolu_1", **fields: Any) -> Row:
    """Return a tool result block."""
    return {"type": "tool_result", "content": content, **({"tool_use_id": id_} if id_ is not None else {}), **fields}
