"""Recover objects from a damaged line.

Two writers without a newline between them leave `{...}{...}`. A torn write followed by the complete row leaves
`{"parentUuid":"23{"parentUuid":"234065dd..."}`. A crash leaves runs of NUL. Each line is split into spans that cover
it: a span is either an object, or lost bytes with the reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from threadline.model.places import ProblemKind

# An object in the middle of a line counts as a row if it has two of: a `type`, one of these keys, the end of the line.
_ROW_MARKS = ("uuid", "sessionId", "timestamp", "leafUuid", "messageId")
_MARKS_AFTER_TEAR = 2
_MARKS_AT_TEAR = 3
_COMPARED_PREFIX = 16  # a torn write and the complete row after it begin with the same characters
_OBJECT_START = re.compile(r'\{\s*"')
# Damaged lines longer than this are kept, not searched. In shorter ones, at most this many characters are decoded.
_MAX_SEARCHED_LINE = 8 * 1024 * 1024
_SEARCH_BUDGET = 128 * 1024 * 1024
_DECODER = json.JSONDecoder(strict=False, parse_int=str, parse_float=str)
_SPACE = " \t\r\n\0"


class Span(Struct, frozen=True):
    """A part of a line: an object, or lost bytes with the kind of problem and the reason."""

    start: int
    end: int
    lost: ProblemKind | None = None
    why: str = ""


def split_damaged_line(raw: bytes) -> list[Span]:
    """Split a damaged line into spans that cover it."""
    if not raw.strip(b"\0 \t\r\n"):
        return [Span(0, len(raw), ProblemKind.NUL_RUN, "only NUL bytes: the original content is lost")]
    if len(raw) > _MAX_SEARCHED_LINE:
        return [Span(0, len(raw), ProblemKind.TOO_LONG, f"damaged, and too long ({len(raw):,} bytes) to be searched")]
    # surrogateescape keeps one character for each bad byte, so that positions in the text can be converted to bytes
    text = raw.decode(errors="surrogateescape")
    spans = _to_byte_spans(text, list(_iter_cuts(text)))
    return spans or [Span(0, len(raw), ProblemKind.FOREIGN, "not JSON")]


def _iter_cuts(text: str) -> Iterator[tuple[int, int, ProblemKind | None, str]]:
    at = 0
    budget = _SEARCH_BUDGET
    while at < len(text):
        start = _skip_space(text, at)
        if start == len(text):
            return
        if text[start] == "\ufeff":  # a byte order mark belongs to what follows it
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
    """Return the value that begins at `start` (or None), where the decoder stopped, and the cost in characters."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        # For an unterminated string, the error has its start, but it was read to the end. And the error searches all
        # text before it for newlines, to compute its line number.
        stopped = len(text) if error.msg.startswith("Unterminated") else error.pos
        return None, stopped, stopped - start + start // 16 + 1
    except RecursionError:
        return None, start, len(text) - start
    return value, end, end - start


def _find_next_row(text: str, torn: int, stopped: int, budget: int) -> tuple[int | None, int]:
    """Return where the next complete row begins, after a torn one in which the decoder stopped at `stopped`.

    An object that ends before `stopped` is part of the torn row. One that ends exactly there may be part of it (if the
    row was torn after the object) or not (if it was torn before a value). It must have all marks, on a finished line.
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
        return ProblemKind.SPLICED, "a torn write, followed by the complete row"
    if lost.startswith("{"):
        return ProblemKind.TORN_LINE, "an object that was never finished"
    if lost.endswith("}") and '"' in lost:
        return ProblemKind.TORN_LINE, "the end of an object whose beginning is lost"
    return ProblemKind.FOREIGN, "not JSON"


def _to_byte_spans(text: str, cuts: list[tuple[int, int, ProblemKind | None, str]]) -> list[Span]:
    """Make the cuts cover the line: each takes the space before it, the last one also the rest."""
    spans: list[Span] = []
    at_text = at_byte = 0
    for number, (_start, end, lost, why) in enumerate(cuts, 1):
        stop = len(text) if number == len(cuts) else end
        byte = at_byte + len(text[at_text:stop].encode(errors="surrogateescape"))
        spans.append(Span(at_byte, byte, lost, why))
        at_text, at_byte = stop, byte
    return spans
