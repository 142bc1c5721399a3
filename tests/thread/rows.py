"""Rows to entries without a file, and the rows that tests of calls and agents are made of."""

from __future__ import annotations

from typing import Any

from tests.transcripts import Part, Pen, Row, line, prompt, transcript

from threadline.model.entries import Entry
from threadline.model.places import NOWHERE
from threadline.parse import decode_object


def read(*rows: Row | bytes) -> list[Entry]:
    """The entries of rows."""
    return [decode_object(row if isinstance(row, bytes) else line(row), NOWHERE.place)[0] for row in rows]


def told(*parts: Part, pen: Pen | None = None) -> list[Entry]:
    """The entries of a transcript's parts, after a first prompt."""
    return read(*transcript(prompt("go"), *parts, pen=pen))


def use(name: str, given: Any = None, id_: str | None = "toolu_1", kind: str = "tool_use") -> Row:
    """A tool use, as a block."""
    return {"type": kind, "name": name, "input": given or {}, **({"id": id_} if id_ is not None else {})}


def result(content: Any, id_: str | None = "toolu_1", **fields: Any) -> Row:
    """A tool's result, as a block."""
    return {"type": "tool_result", "content": content, **({"tool_use_id": id_} if id_ is not None else {}), **fields}
