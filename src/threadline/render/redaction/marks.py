"""Marks: signs of Markdown and HTML that stand within a word as it is written, and not as it is read."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

_LINE = 2000
_NEAR = 600
_W = "[A-Za-z0-9_-]"
# Each by a sign that is rare, which makes the search fast; what stands on both sides must be a part of a word.
_ESCAPES = re.compile(r"\\(?<=[A-Za-z0-9]\\)\\{0,3}(?=[_*~-][A-Za-z0-9])")
_EMPHASIS = tuple(
    re.compile(f"{sign}(?<={_W}{{3}}{sign}){rest}(?={_W}{{4}})")
    for sign, rest in (
        (r"\*", r"\*{0,2}"),
        ("~", "~"),
        ("`", "`?"),
        ("<", "/?(?:b|i|em|strong|code|span|wbr|mark|u|s)/?>"),
    )
)
_ENTITY = re.compile(
    "&(?:#(?:[0-9]{2,5}|[xX]0{0,2}[0-9a-fA-F]{2})|lowbar|UnderBar|period|hyphen|dash|equals|plus|sol);"
)
_IS_WORD = re.compile(r"[\w./+=~-]", re.ASCII)


def marks(text: str) -> list[tuple[int, int, str]]:
    """What is to be taken away so that only lines with marks are left, as they are read; empty where there are none.

    Each with what stands there instead.
    """
    found = sorted(_found(text))
    return list(_lines_of(text, found)) if found else []


def _found(text: str) -> Iterator[tuple[int, int, str]]:
    for pattern in (_ESCAPES, *_EMPHASIS):
        yield from ((*one.span(), "") for one in pattern.finditer(text))
    for one in _ENTITY.finditer(text):
        said = html.unescape(one[0])
        if len(said) == 1 and _IS_WORD.match(said):
            yield (*one.span(), said)


def _lines_of(text: str, found: list[tuple[int, int, str]]) -> Iterator[tuple[int, int, str]]:
    """The marks, and all that lies between their lines; of a long line, what is far from them."""
    last = -1
    for start, end, put in found:
        if start >= last:
            first = _begin(text, start)
            if first > max(last, 0):
                yield max(last, 0), first, "\n"
            last = _end(text, end)
        yield start, end, put
    if last < len(text):
        yield last, len(text), "\n"


def _begin(text: str, at: int) -> int:
    line = text.rfind("\n", max(0, at - _LINE), at) + 1
    if line or at <= _LINE:
        return line
    return max(text.rfind(" ", 0, at - _NEAR), at - _LINE)


def _end(text: str, at: int) -> int:
    line = text.find("\n", at, at + _LINE)
    if line >= 0:
        return line
    blank = text.find(" ", at + _NEAR, at + _LINE)
    return blank if blank >= 0 else min(len(text), at + _LINE)
