"""Encode values as JSON for programs: the same for the command, the page and exports.

Times are ISO 8601, and paths are text: `files.escape_path` writes bytes that are not UTF-8. Decimals are numbers with
all their digits. A reader that needs them exactly parses them as decimals: `json.loads(text, parse_float=Decimal)`.
"""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec

from threadline.files import escape_path
from threadline.model.text import replace_surrogates

DECODE_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""The exceptions of msgspec's decoder for JSON that it cannot decode."""


def to_json_value(value: Any) -> Any:
    """Convert structs, paths, times and enums to JSON values. Decimals stay decimals."""
    return msgspec.to_builtins(value, builtin_types=(Decimal,), enc_hook=_encode_path)


def encode_json(value: Any) -> bytes:
    """Encode a value as JSON in valid UTF-8, whatever its strings contain."""
    try:
        return _ENCODER.encode(value)
    except UnicodeEncodeError:
        return _ENCODER.encode(replace_surrogates(to_json_value(value)))


def escape_match(match: re.Match[str]) -> str:
    r"""Escape what a regular expression matched as in JSON: `\uXXXX` for each UTF-16 unit."""
    units = match[0].encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _encode_path(value: Any) -> Any:
    if isinstance(value, Path):
        return escape_path(value)
    raise NotImplementedError(f"{type(value).__name__} has no JSON form")


_ENCODER = msgspec.json.Encoder(enc_hook=_encode_path, decimal_format="number")
