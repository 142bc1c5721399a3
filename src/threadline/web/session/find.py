"""Find text within a session's page, ignoring case and accents."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from msgspec import Struct

from threadline.errors import BadQuery
from threadline.render import (
    BranchItem,
    CallItem,
    CompactionItem,
    FailureItem,
    Item,
    NoticeItem,
    OutputItem,
    PromptItem,
    ReplyItem,
    TaskItem,
    TaskUpdateItem,
    ThinkingItem,
    shorten,
)
from threadline.web.session_cache import AgentDrawing

MAX_MATCHES = 2000
"""Places that are told; more are only counted."""
_MAX_QUERY = 200
_MAX_INPUT, _MAX_OUTPUT = 8_000, 6_000
_SNIPPET_BEFORE, _SNIPPET_LENGTH = 40, 160


class Match(Struct, frozen=True):
    """An item that holds the words: its anchor, its section, its kind, and what stands around the first of them."""

    anchor: str
    section: int
    kind: str
    snippet: str


def find_text(drawn: AgentDrawing, words: str) -> tuple[list[Match], int]:
    """The items that hold the words as they are written, and how many there are.

    Raises:
        BadQuery: there are none, or too many of them.
    """
    wanted = fold_text(words.strip())
    if not wanted:
        raise BadQuery("Write what to find: q=WORDS.")
    if len(words) > _MAX_QUERY:
        raise BadQuery(f"Write no more than {_MAX_QUERY} characters to find.")
    found: list[Match] = []
    total = 0
    for section in drawn.drawing.sections:
        for placed in drawn.drawing.items[section.start : section.stop]:
            text = "\n".join(_item_texts(placed.item))
            at = fold_text(text).find(wanted)
            if at < 0:
                continue
            total += 1
            if len(found) < MAX_MATCHES:
                found.append(Match(placed.anchor, section.number, placed.kind, _snippet(text, at)))
    return found, total


def fold_text(text: str) -> str:
    """A text without case and accents, for comparing.

    >>> fold_text("Crème BRÛLÉE")
    'creme brulee'
    """
    return text.lower() if text.isascii() else "".join(map(_fold_character, text))


@lru_cache(maxsize=8192)
def _fold_character(character: str) -> str:
    bare = "".join(one_ for one_ in unicodedata.normalize("NFKD", character) if not unicodedata.combining(one_))
    return bare.casefold()


def _snippet(text: str, at: int) -> str:
    """What stands around; where folding changed the length, a little beside it."""
    start = max(0, at - _SNIPPET_BEFORE)
    return ("…" if start else "") + shorten(text[start : start + _SNIPPET_LENGTH + _SNIPPET_BEFORE], _SNIPPET_LENGTH)


def _item_texts(item: Item) -> Iterator[str]:
    """What an item shows, as text."""
    match item:
        case PromptItem():
            yield item.act.text
        case TaskItem() | ReplyItem() | ThinkingItem() | OutputItem() | FailureItem():
            yield item.text
        case NoticeItem():
            yield item.what
            yield item.text
        case CallItem():
            yield item.call.tool
            yield from _nested_strings(item.call.input, _MAX_INPUT)
            yield item.call.output[:_MAX_OUTPUT]
            yield item.call.feedback or ""
        case CompactionItem():
            summary = item.compaction.summary
            yield summary.text if summary is not None else ""
        case TaskUpdateItem():
            yield item.news.summary or ""
            yield item.news.result or ""
        case BranchItem():
            yield item.text
        case _:
            pass


def _nested_strings(value: Any, most: int) -> Iterator[str]:
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
