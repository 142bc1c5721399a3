"""Builds transcripts: `transcript(prompt("hi"), reply("ok", output=3), call("Bash", "ls", result="a"))`.

A part writes rows with a pen, which knows the session, the last row of the thread and the time. Ids, parents and times
are the same in each run. Rows are plain dicts. A part may also be a dict or bytes, which are used unchanged.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

Row = dict[str, Any]
SESSION = "5e551011-0000-4000-8000-000000000001"
START = datetime(2026, 1, 5, 9, tzinfo=UTC)
MODEL = "claude-sonnet-4-5-20250929"
# The input that a call sets if it has a single value.
_FIRST_INPUT = {"Bash": "command", "Read": "file_path", "Glob": "pattern", "Grep": "pattern", "Agent": "prompt"}


class Pen:
    """Writes the rows of one thread. `defaults` are fields that each row gets."""

    def __init__(self, session: str = SESSION, start: datetime = START, **defaults: Any) -> None:
        self.session = session
        self.parent: str | None = None
        self._start = start
        self._count = 0
        self._defaults = defaults

    def number(self) -> int:
        """Return the next of the numbers from which ids and times are computed."""
        self._count += 1
        return self._count

    def time(self, number: int) -> str:
        """Return the time of row `number`. Each row is written a second after the previous one."""
        return (self._start + timedelta(seconds=number)).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def id(self, prefix: str, number: int) -> str:
        """Return an id that looks like the API's random ids, but is the same in each run."""
        return prefix + hashlib.sha256(f"{self.session} {prefix} {number}".encode()).hexdigest()[:22]

    def chain(self, kind: str, **fields: Any) -> Row:
        """Return a row of the conversation graph, whose parent is the previous row."""
        number = self.number()
        row = {
            "parentUuid": self.parent,
            "isSidechain": False,
            "userType": "external",
            "cwd": "/work/app",
            "sessionId": self.session,
            "version": "2.1.232",
            "gitBranch": "main",
            "type": kind,
            "uuid": f"{number:08d}-0000-4000-8000-{self.session[-12:]}",
            "timestamp": self.time(number),
            **self._defaults,
            **fields,
        }
        self.parent = row["uuid"]
        return row


Writer = Callable[[Pen], Iterator[Row]]
Part = Writer | Row | bytes


def transcript(*parts: Part, pen: Pen | None = None) -> list[Row | bytes]:
    """Return the rows of a transcript. Pass a pen to set the session, the version or an agent's id."""
    pen = pen or Pen()
    rows: list[Row | bytes] = []
    for part in parts:
        rows.extend(part(pen) if callable(part) else [part])
    return rows


def lines(*rows: Row | bytes) -> bytes:
    """Encode rows as Claude Code does. Bytes are used unchanged."""
    return b"".join(row if isinstance(row, bytes) else line(row) for row in rows)


def line(row: Mapping[str, Any]) -> bytes:
    """Encode one row as compact JSON, with its newline."""
    return json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def write(path: Path, *rows: Row | bytes) -> Path:
    """Write rows to a file, and create its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lines(*rows))
    return path


def prompt(content: str | list[Any], **fields: Any) -> Writer:
    """Write a prompt."""

    def part(pen: Pen) -> Iterator[Row]:
        yield pen.chain("user", message={"role": "user", "content": content}, **fields)

    return part


def reply(*blocks: str | Row, message: Row | None = None, **counts: Any) -> Writer:
    """Write a reply of the model: one message, with a row for each block.

    Counts are `input`, `output`, `read` and `written`. Other keywords are fields of the rows. `message` overrides
    fields of the message.
    """
    usage = {
        "input_tokens": counts.pop("input", 4),
        "cache_creation_input_tokens": counts.pop("written", 0),
        "cache_read_input_tokens": counts.pop("read", 0),
        "output_tokens": counts.pop("output", 10),
    }

    def part(pen: Pen) -> Iterator[Row]:
        number = pen.number()
        for block in blocks:
            content = {"type": "text", "text": block} if isinstance(block, str) else block
            body = {
                "model": MODEL,
                "id": pen.id("msg_01", number),
                "type": "message",
                "role": "assistant",
                "content": [content],
                "stop_reason": "tool_use" if content.get("type") == "tool_use" else "end_turn",
                "stop_sequence": None,
                "usage": usage,
                **(message or {}),
            }
            yield pen.chain("assistant", **{"message": body, "requestId": pen.id("req_01", number), **counts})

    return part


def call(
    tool: str,
    tool_input: Any = None,
    result: Any = None,
    *,
    details: Any = None,
    error: bool = False,
    **reply_fields: Any,
) -> Writer:
    """Write a tool use and its result. Without a result, the call is still open.

    Args:
        tool: the name of the tool.
        tool_input: its input, or the value of its most important field.
        result: what the model saw.
        details: the field `toolUseResult`, which the model did not see.
        error: whether the result is an error.
        reply_fields: counts and fields of the reply that makes the call.
    """
    inputs = tool_input if isinstance(tool_input, dict) else {_FIRST_INPUT.get(tool, "value"): tool_input}

    def part(pen: Pen) -> Iterator[Row]:
        use = pen.id("toolu_01", pen.number())
        yield from reply({"type": "tool_use", "id": use, "name": tool, "input": inputs}, **reply_fields)(pen)
        if result is None and details is None:
            return
        block = {"tool_use_id": use, "type": "tool_result", "content": result}
        fields: Row = {"message": {"role": "user", "content": [block | ({"is_error": True} if error else {})]}}
        if details is not None:
            fields["toolUseResult"] = details
        yield pen.chain("user", **fields, sourceToolAssistantUUID=pen.parent)

    return part


def chain(kind: str, **fields: Any) -> Writer:
    """Write a row of the conversation graph of any kind: `system`, `attachment`, `progress`."""

    def part(pen: Pen) -> Iterator[Row]:
        yield pen.chain(kind, **fields)

    return part


def meta(kind: str, **fields: Any) -> Writer:
    """Write a row outside the graph: `summary`, `custom-title`, `queue-operation` and so on."""

    def part(pen: Pen) -> Iterator[Row]:
        yield {"type": kind, "sessionId": pen.session, **fields}

    return part
