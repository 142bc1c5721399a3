"""JSON as it is found rather than as it should be.

The fast decoder refuses lone surrogates, NaN, numbers out of range, raw control characters and bytes
that are not UTF-8. The standard library's scanner, asked politely, reads them all; what had to be
forgiven is noted.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from msgspec import Struct

# The interpreter refuses to turn more digits than this into an int; such a number stays text.
_MOST_DIGITS = 4300
# The standard library's own scanner fails by recursion; 64-bit token counts never come near this.
_LONE = re.compile(r"[\ud800-\udfff]")
_ESCAPED_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


BOM = b"\xef\xbb\xbf"
_AROUND = b"\0 \t\r\n"


def bare(raw: bytes) -> bytes:
    """What a line holds, without the white space, NUL bytes and byte order mark around it."""
    return raw.strip(_AROUND).removeprefix(BOM).lstrip(_AROUND)


class Loaded(Struct, frozen=True):
    """A value, and what had to be forgiven to get it: the words of `ProblemKind` with a sentence each."""

    value: Any
    forgiven: tuple[tuple[str, str], ...]


def loads(data: bytes) -> Loaded:
    """Decode one JSON value, forgiving what can be forgiven.

    Raises:
        ValueError: it is not JSON at all.
        RecursionError: it is nested too deeply.
    """
    forgiven: dict[str, str] = {}
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        text = data.decode(errors="replace")
        forgiven["invalid-utf8"] = f"byte {error.start} is not UTF-8; shown as U+FFFD"
    if text.startswith("\ufeff"):
        text = text[1:]
        forgiven["byte-order-mark"] = "starts with a byte order mark"

    def odd_number(digits: str) -> str:
        shown = digits if len(digits) <= 20 else f"{digits[:17]}…"  # noqa: PLR2004 - as much as a message can show
        forgiven["bad-number"] = f"{shown} is no number that JSON can hold; kept as text"
        return digits

    def whole(digits: str) -> int | str:
        return int(digits) if len(digits) <= _MOST_DIGITS else odd_number(digits)

    def fraction(digits: str) -> float | str:
        number = float(digits)
        return number if math.isfinite(number) else odd_number(digits)

    hooks: dict[str, Any] = {"parse_constant": odd_number, "parse_int": whole, "parse_float": fraction}
    try:
        value = json.loads(text, **hooks)
    except json.JSONDecodeError:
        value = json.loads(text, strict=False, **hooks)
        forgiven["control-character"] = "a string holds a raw control character"
    if _ESCAPED_SURROGATE.search(data) and _LONE.search(json.dumps(value, ensure_ascii=False)):
        forgiven["lone-surrogate"] = "a string holds half of a surrogate pair"
    return Loaded(value, tuple(forgiven.items()))
