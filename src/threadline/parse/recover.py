"""Recover objects from a damaged line.

Two writers without a newline between them leave `{...}{...}`. A torn write followed by the whole row leaves
`{"parentUuid":"23{"parentUuid":"234065dd..."}`. A crash leaves runs of NUL. Each line is split into spans that tile
it: some hold an object, the others are lost and say why.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from threadline.model.places import ProblemKind

# An object that stands in the middle of a line must show that it is a row: by two of a `type`, one of these marks, and
# the end of the line.
_ROW_MARKS = ("uuid", "sessionId", "timestamp", "leafUuid", "messageId")
_MARKS_AFTER_TEAR = 2
_MARKS_AT_TEAR = 3
_COMPARED_PREFIX = (
    16  # a torn write and the whole row that follows it begin with the same characters, as many as there are
)
_OBJECT_START = re.compile(r'\{\s*"')
# Damage in lines longer than this is kept, not searched; and in shorter ones it is searched for so many characters.
_MAX_SEARCHED_LINE = 8 * 1024 * 1024
_SEARCH_BUDGET = 128 * 1024 * 1024
_DECODER = json.JSONDecoder(strict=False, parse_int=str, parse_float=str)
_SPACE = " \t\r\n\0"


class Span(Struct, frozen=True):
    """A part of a line: an object, or (with a kind of problem) bytes that no entry can be made of."""

    start: int
    end: int
    lost: ProblemKind | None = None
    why: str = ""


def split_damaged_line(raw: bytes) -> list[Span]:
    """Cut a damaged line into parts that tile it."""
    if not raw.strip(b"\0 \t\r\n"):
        return [Span(0, len(raw), ProblemKind.NUL_RUN, "nothing but NUL bytes: what was written here is gone")]
    if len(raw) > _MAX_SEARCHED_LINE:
        return [Span(0, len(raw), ProblemKind.TOO_LONG, f"damaged, and too long ({len(raw):,} bytes) to be searched")]
    # surrogateescape keeps one character for each bad byte, so that places in the text lead back to bytes
    text = raw.decode(errors="surrogateescape")
    found = _to_byte_spans(text, list(_iter_cuts(text)))
    return found or [Span(0, len(raw), ProblemKind.FOREIGN, "not JSON")]


def _iter_cuts(text: str) -> Iterator[tuple[int, int, ProblemKind | None, str]]:
    at = 0
    budget = _SEARCH_BUDGET
    while at < len(text):
        start = _skip_space(text, at)
        if start == len(text):
            return
        if text[start] == "\ufeff":  # a byte order mark goes with what follows it
            start = min(_skip_space(text, start + 1), len(text) - 1)
        value, end, cost = _decode_at(text, start)
        if isinstance(value, dict):
            yield start, end, None, ""
            at = end
            continue
        following, budget = _find_next_row(text, start, end, budget - cost)
        end = following if following is not None else len(text.rstrip(_SPACE))
        yield start, end, *_classify_loss(text, start, end, followed=following is not None)
        at = end


def _skip_space(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at


def _decode_at(text: str, start: int) -> tuple[Any, int, int]:
    """The value that begins at `start` (None if none does), where the decoder stopped, and what it cost."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        # An open string is named by its start and was read to the end; and to make its message, the error itself
        # looks for newlines in all that stands before it.
        stopped = len(text) if error.msg.startswith("Unterminated") else error.pos
        return None, stopped, stopped - start + start // 16 + 1
    except RecursionError:
        return None, start, len(text) - start
    return value, end, end - start


def _find_next_row(text: str, torn: int, stopped: int, budget: int) -> tuple[int | None, int]:
    """Where the next whole row begins, after a torn one in which the decoder stopped at `stopped`.

    An object that ends before that is a part of the torn row. One that ends right there may be (a row that was torn
    behind it) or not (a row that was torn before a value), and must show all marks on a line that is finished.
    """
    for match in _OBJECT_START.finditer(text, torn + 1):
        if budget < 0:
            break
        start = match.start()
        value, end, cost = _decode_at(text, start)
        budget -= cost
        end = _skip_space(text, end)
        if value is None or end < stopped:
            continue
        marks = isinstance(value.get("type"), str), any(mark in value for mark in _ROW_MARKS), end == len(text)
        if sum(marks) >= (_MARKS_AFTER_TEAR if end > stopped else _MARKS_AT_TEAR) and (
            end > stopped or text.endswith("\n")
        ):
            return start, budget
    return None, budget


def _has_same_prefix(text: str, torn: int, start: int) -> bool:
    return text.startswith(text[torn : min(start, torn + _COMPARED_PREFIX)], start)


def _classify_loss(text: str, start: int, end: int, *, followed: bool) -> tuple[ProblemKind, str]:
    lost = text[start:end]
    if followed and lost.startswith("{") and _has_same_prefix(text, start, end):
        return ProblemKind.SPLICED, "a torn write, followed by the whole row"
    if lost.startswith("{"):
        return ProblemKind.TORN_LINE, "an object that was never finished"
    if lost.endswith("}") and '"' in lost:
        return ProblemKind.TORN_LINE, "the end of an object whose beginning is gone"
    return ProblemKind.FOREIGN, "not JSON"


def _to_byte_spans(text: str, cuts: list[tuple[int, int, ProblemKind | None, str]]) -> list[Span]:
    """Make the cuts tile the line: each takes the space before it, the last one also what follows."""
    found: list[Span] = []
    at_text = at_byte = 0
    for number, (_start, end, lost, why) in enumerate(cuts, 1):
        stop = len(text) if number == len(cuts) else end
        byte = at_byte + len(text[at_text:stop].encode(errors="surrogateescape"))
        found.append(Span(at_byte, byte, lost, why))
        at_text, at_byte = stop, byte
    return found
