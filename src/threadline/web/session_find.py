"""Finding in a session: where words stand in what its page shows, whatever their case and accents."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from msgspec import Struct

from threadline.errors import BadQuery
from threadline.render.html.words import one
from threadline.render.outline import (
    Called,
    Compacted,
    Ended,
    Failed,
    Item,
    Left,
    Notice,
    Output,
    Reply,
    Said,
    Thought,
    Told,
)
from threadline.web.kept import Drawn

MOST = 2000
"""Places that are told; more are only counted."""
_LONGEST = 200
_INPUT, _OUTPUT = 8_000, 6_000
_BEFORE, _AROUND = 40, 160


class Found(Struct, frozen=True):
    """An item that holds the words: its anchor, its section, its kind, and what stands around the first of them."""

    anchor: str
    section: int
    kind: str
    snippet: str


def find(drawn: Drawn, words: str) -> tuple[list[Found], int]:
    """The items that hold the words as they are written, and how many there are.

    Raises:
        BadQuery: there are none, or too many of them.
    """
    wanted = folded(words.strip())
    if not wanted:
        raise BadQuery("Write what to find: q=WORDS.")
    if len(words) > _LONGEST:
        raise BadQuery(f"Write no more than {_LONGEST} characters to find.")
    found: list[Found] = []
    total = 0
    for section in drawn.drawing.sections:
        for placed in drawn.drawing.items[section.start : section.stop]:
            text = "\n".join(_texts(placed.item))
            at = folded(text).find(wanted)
            if at < 0:
                continue
            total += 1
            if len(found) < MOST:
                found.append(Found(placed.anchor, section.number, placed.kind, _snippet(text, at)))
    return found, total


def folded(text: str) -> str:
    """A text without case and accents, for comparing.

    >>> folded("Crème BRÛLÉE")
    'creme brulee'
    """
    return text.lower() if text.isascii() else "".join(map(_folded, text))


@lru_cache(maxsize=8192)
def _folded(character: str) -> str:
    bare = "".join(one_ for one_ in unicodedata.normalize("NFKD", character) if not unicodedata.combining(one_))
    return bare.casefold()


def _snippet(text: str, at: int) -> str:
    """What stands around; where folding changed the length, a little beside it."""
    start = max(0, at - _BEFORE)
    return ("…" if start else "") + one(text[start : start + _AROUND + _BEFORE], _AROUND)


def _texts(item: Item) -> Iterator[str]:
    """What an item shows, as text."""
    match item:
        case Said():
            yield item.act.text
        case Told() | Reply() | Thought() | Output() | Failed():
            yield item.text
        case Notice():
            yield item.what
            yield item.text
        case Called():
            yield item.call.tool
            yield from _strings(item.call.input, _INPUT)
            yield item.call.output[:_OUTPUT]
            yield item.call.feedback or ""
        case Compacted():
            summary = item.compaction.summary
            yield summary.text if summary is not None else ""
        case Ended():
            yield item.news.summary or ""
            yield item.news.result or ""
        case Left():
            yield item.text
        case _:
            pass


def _strings(value: Any, most: int) -> Iterator[str]:
    """The texts inside what a call was given, as far as so many characters."""
    waiting = [value]
    while waiting and most > 0:
        one_ = waiting.pop()
        if isinstance(one_, str):
            yield one_[:most]
            most -= len(one_)
        elif isinstance(one_, dict):
            waiting += reversed(list(one_.values()))
        elif isinstance(one_, list | tuple):
            waiting += reversed(one_)
