"""JSON laid out for reading: only white space between its parts changes; numbers, keys and escapes stay as written."""

from __future__ import annotations

import json
import re
from typing import Any

_PART = re.compile(r'"(?:[^"\\]|\\.)*+"|[{}\[\],:]|[^\s"{}\[\],:]++', re.DOTALL)
_STEP = "  "
_DEEPEST = 40
"""Deeper values are no longer indented further: a line would be white space and little else."""


def tidy(text: str, longest: int | None = None) -> str:
    r"""JSON with one value a line, indented; strings over so many characters are cut, and say so.

    What is not JSON comes out garbled: ask `is_json` first.

    >>> print(tidy('{"a":[1.0,2],"b":{}}'))
    {
      "a": [
        1.0,
        2
      ],
      "b": {}
    }
    """
    out: list[str] = []
    depth, opened = 0, False
    for part in _PART.findall(text):
        if part in ("}", "]"):
            depth -= 1
            out.append(part if opened else _break(depth) + part)
            opened = False
            continue
        if opened:
            out.append(_break(depth))
        opened = part in ("{", "[")
        depth += opened
        if part in (":", ","):
            out.append(": " if part == ":" else f",{_break(depth)}")
        else:
            out.append(part if longest is None or len(part) <= longest else _cut(part, longest))
    return "".join(out)


def _cut(part: str, longest: int) -> str:
    return f'{part[:longest]}… {len(part) - longest:,} more characters"'


def _break(depth: int) -> str:
    return "\n" + _STEP * max(0, min(depth, _DEEPEST))


def is_json(text: str) -> bool:
    """Whether a text is a JSON object or list."""
    bare = text.strip()
    if not (bare.startswith(("{", "[")) and bare.endswith(("}", "]"))):
        return False
    try:
        json.loads(bare, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return False
    return True


def written(value: Any) -> str:
    """A value as tidy JSON."""
    try:
        return json.dumps(value, ensure_ascii=False, indent=2, default=str)
    except (ValueError, TypeError, RecursionError):
        return "(nested too deep to be shown)"
