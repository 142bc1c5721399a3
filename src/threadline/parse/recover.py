"""What can be saved of a damaged line.

Two writers without a newline between them leave `{…}{…}`; a torn write followed by the whole row leaves
`{"parentUuid":"23{"parentUuid":"234065dd…"}`; a crash leaves runs of NUL. Each is cut into spans that tile
the line: some hold an object, the others are lost and say so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from msgspec import Struct

from threadline.model.problem import ProblemKind

# Rows that stand in the middle of a line must show that they are rows, not some object inside a torn one.
_ROW_MARKS = ("uuid", "sessionId", "timestamp", "leafUuid", "messageId")
_START = re.compile(r'\{\s*"')
# Damage in lines longer than this is kept, not searched: each try reads on to the end of the line.
_SEARCHED = 32 * 1024 * 1024
_BUDGET = 256 * 1024 * 1024
_DECODER = json.JSONDecoder(strict=False, parse_int=str, parse_float=str)
_SPACE = " \t\r\n\0"


class Span(Struct, frozen=True):
    """A part of a line: an object, or (with a kind of problem) bytes that no entry can be made of."""

    start: int
    end: int
    lost: ProblemKind | None = None
    why: str = ""


def spans(raw: bytes) -> list[Span]:
    """Cut a damaged line into parts that tile it."""
    if not raw.strip(b"\0 \t\r\n"):
        return [Span(0, len(raw), ProblemKind.NUL_RUN, "nothing but NUL bytes: what was written here is gone")]
    if len(raw) > _SEARCHED:
        return [Span(0, len(raw), ProblemKind.TOO_LONG, f"damaged, and too long ({len(raw):,} bytes) to be searched")]
    # surrogateescape keeps one character for each bad byte, so that places in the text lead back to bytes
    text = raw.decode(errors="surrogateescape")
    found = _in_bytes(text, list(_cut(text)))
    return found or [Span(0, len(raw), ProblemKind.FOREIGN, "not JSON")]


def _cut(text: str) -> Iterator[tuple[int, int, ProblemKind | None, str]]:
    at = 0
    budget = _BUDGET
    while at < len(text):
        start = _skip(text, at)
        if start == len(text):
            return
        end = _object_end(text, start)
        if end is not None:
            yield start, end, None, ""
            at = end
            continue
        budget -= len(text) - start
        following = _next_row(text, start + 1, budget)
        budget = following[1]
        end = following[0] if following[0] is not None else len(text.rstrip(_SPACE))
        yield start, end, *_name(text, start, end, followed=following[0] is not None)
        at = end


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at


def _object_end(text: str, start: int) -> int | None:
    if text[start] != "{":
        return None
    try:
        return _DECODER.raw_decode(text, start)[1]
    except (ValueError, RecursionError):
        return None


def _next_row(text: str, start: int, budget: int) -> tuple[int | None, int]:
    """Where the next whole row begins: one that ends the line, or shows the marks of a row."""
    for match in _START.finditer(text, start):
        if budget < 0:
            return None, budget
        budget -= len(text) - match.start()
        try:
            value, end = _DECODER.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            continue
        ends_line = _skip(text, end) == len(text)
        if isinstance(value, dict) and isinstance(value.get("type"), str):
            if ends_line or any(mark in value for mark in _ROW_MARKS):
                return match.start(), budget
        elif ends_line and isinstance(value, dict) and any(mark in value for mark in _ROW_MARKS):
            return match.start(), budget
    return None, budget


def _name(text: str, start: int, end: int, *, followed: bool) -> tuple[ProblemKind, str]:
    lost = text[start:end]
    if followed and lost.startswith("{") and text.startswith(lost[: min(len(lost), 16)], end):
        return ProblemKind.SPLICED, "a torn write, followed by the whole row"
    if lost.startswith("{"):
        return ProblemKind.TORN_LINE, "an object that was never finished"
    if lost.endswith("}") and '"' in lost:
        return ProblemKind.TORN_LINE, "the end of an object whose beginning is gone"
    return ProblemKind.FOREIGN, "not JSON"


def _in_bytes(text: str, cuts: list[tuple[int, int, ProblemKind | None, str]]) -> list[Span]:
    """Make the cuts tile the line: each takes the space before it, the last one also what follows."""
    found: list[Span] = []
    at_text = at_byte = 0
    for number, (_start, end, lost, why) in enumerate(cuts, 1):
        stop = len(text) if number == len(cuts) else end
        byte = at_byte + len(text[at_text:stop].encode(errors="surrogateescape"))
        found.append(Span(at_byte, byte, lost, why))
        at_text, at_byte = stop, byte
    return found
