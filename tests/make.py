"""Builds transcripts: `transcript(prompt("hi"), reply("ok", output=3), call("Bash", "ls", result="a"))`.

A part writes rows with a pen, which knows the session, the last row of the thread and the time, so that ids,
parents and times come out the same each run. Rows are plain dicts; a dict or bytes among the parts go in as they are.
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
# The first input of a tool, where a call is given just one.
_FIRST_INPUT = {"Bash": "command", "Read": "file_path", "Glob": "pattern", "Grep": "pattern", "Agent": "prompt"}


class Pen:
    """Fills in what every row of one thread has; `defaults` are fields that each of its rows gets."""

    def __init__(self, session: str = SESSION, start: datetime = START, **defaults: Any) -> None:
        self.session = session
        self.parent: str | None = None
        self._start = start
        self._count = 0
        self._defaults = defaults

    def number(self) -> int:
        """The next of the numbers that ids and times are made of."""
        self._count += 1
        return self._count

    def time(self, number: int) -> str:
        """When row `number` was written: a second after the one before."""
        return (self._start + timedelta(seconds=number)).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def id(self, prefix: str, number: int) -> str:
        """An id as the API makes them: it looks random, and is the same each run."""
        return prefix + hashlib.sha256(f"{self.session} {prefix} {number}".encode()).hexdigest()[:22]

    def chain(self, kind: str, **fields: Any) -> Row:
        """A row of the conversation graph, child of the one before."""
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
    """The rows of a transcript; a pen of your own sets the session, the version or an agent's id."""
    pen = pen or Pen()
    rows: list[Row | bytes] = []
    for part in parts:
        rows.extend(part(pen) if callable(part) else [part])
    return rows


def lines(*rows: Row | bytes) -> bytes:
    """Rows as Claude Code writes them; bytes as they are."""
    return b"".join(row if isinstance(row, bytes) else line(row) for row in rows)


def line(row: Mapping[str, Any]) -> bytes:
    """One row, compact, with its newline."""
    return json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def write(path: Path, *rows: Row | bytes) -> Path:
    """Write rows to a file, making its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lines(*rows))
    return path


def prompt(content: str | list[Any], **fields: Any) -> Writer:
    """What a person typed."""

    def part(pen: Pen) -> Iterator[Row]:
        yield pen.chain("user", message={"role": "user", "content": content}, **fields)

    return part


def reply(*blocks: str | Row, message: Row | None = None, **counts: Any) -> Writer:
    """What the model said: a row a block, all of one message. Counts are `input`, `output`, `read` and `written`.

    Whatever else is named is a field of the rows; `message` overrides fields of the message.
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
            said = {
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
            yield pen.chain("assistant", **{"message": said, "requestId": pen.id("req_01", number), **counts})

    return part


def call(
    tool: str, given: Any = None, result: Any = None, *, own: Any = None, error: bool = False, **of: Any
) -> Writer:
    """A tool use and its result; without a result the call is still open.

    Args:
        tool: its name.
        given: its input, or the one value that matters of it.
        result: what the model saw.
        own: the tool's own result, `toolUseResult`.
        error: whether the result is one.
        of: counts and fields of the reply that makes the call.
    """
    inputs = given if isinstance(given, dict) else {_FIRST_INPUT.get(tool, "value"): given}

    def part(pen: Pen) -> Iterator[Row]:
        use = pen.id("toolu_01", pen.number())
        yield from reply({"type": "tool_use", "id": use, "name": tool, "input": inputs}, **of)(pen)
        if result is None and own is None:
            return
        block = {"tool_use_id": use, "type": "tool_result", "content": result}
        fields: Row = {"message": {"role": "user", "content": [block | ({"is_error": True} if error else {})]}}
        if own is not None:
            fields["toolUseResult"] = own
        yield pen.chain("user", **fields, sourceToolAssistantUUID=pen.parent)

    return part


def chain(kind: str, **fields: Any) -> Writer:
    """Any row of the conversation graph: `system`, `attachment`, `progress`."""

    def part(pen: Pen) -> Iterator[Row]:
        yield pen.chain(kind, **fields)

    return part


def meta(kind: str, **fields: Any) -> Writer:
    """A row outside the graph: `summary`, `custom-title`, `queue-operation` and the like."""

    def part(pen: Pen) -> Iterator[Row]:
        yield {"type": kind, "sessionId": pen.session, **fields}

    return part
