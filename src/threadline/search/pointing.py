"""Errors that point at the column of a query where it cannot be understood."""

from __future__ import annotations

from unicodedata import combining, east_asian_width

from threadline.errors import BadQuery

_BEFORE = 50
_AFTER = 30


def refused(query: str, at: int, sentence: str) -> BadQuery:
    """The error for a query that is not understood from that character on (counted from 0).

    >>> print(refused("foo promt:bar", 4, "There is no field promt."))
    There is no field promt. (column 5)
      foo promt:bar
          ^
    """
    first, last = max(0, at - _BEFORE), min(len(query), at + _AFTER)
    before, after = _shown(query[first:at]), _shown(query[at:last])
    left, right = "…" if first else "", "…" if last < len(query) else ""
    caret = " " * _width(left + before) + "^"
    return BadQuery(f"{sentence} (column {at + 1})\n  {left}{before}{after}{right}\n  {caret}")


def _shown(text: str) -> str:
    """A part of a query with nothing in it that steers a terminal."""
    return "".join(one if one.isprintable() else " " if one.isspace() else "�" for one in text)


def _width(text: str) -> int:
    """How many columns a terminal takes for it."""
    return sum(0 if combining(one) else 2 if east_asian_width(one) in "WF" else 1 for one in text)
