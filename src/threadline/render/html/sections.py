"""Sections: the items of a page in runs that are filled and emptied together, measured without being drawn."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from msgspec import Struct

from threadline.render.html.placed import Placed
from threadline.render.outline import Called, Compacted, Item, Output, Reply, Said, Thought, Told

MOST_ITEMS, MOST_ELEMENTS = 100, 600
"""A section ends before it has more than this."""
_LINE, _WIDTH = 20, 84
"""How high a line of text is, in pixels, and how many characters it holds: only estimates hang on it."""


class Section(Struct, frozen=True):
    """A run of items, from `start` to before `stop`; numbers count from 1. `mark` changes when what it holds does."""

    number: int
    start: int
    stop: int
    elements: int
    height: int
    first: str
    first_turn: int | None
    mark: str


class _Size(Struct, frozen=True):
    elements: int = 0
    height: int = 0


def sections(items: Sequence[Placed]) -> tuple[Section, ...]:
    """All items in sections, in order, each in one."""
    return tuple(_sections(items))


def _sections(items: Sequence[Placed]) -> Iterator[Section]:
    start, size, number = 0, _Size(), 1
    for at, one in enumerate(items):
        more = _size(one.item)
        if at > start and (at - start >= MOST_ITEMS or size.elements + more.elements > MOST_ELEMENTS):
            yield _section(number, items[start:at], start, size)
            start, size, number = at, _Size(), number + 1
        size = _Size(size.elements + more.elements, size.height + more.height)
    if start < len(items):
        yield _section(number, items[start:], start, size)


def _section(number: int, items: Sequence[Placed], start: int, size: _Size) -> Section:
    first = items[0]
    digest = hashlib.blake2b(digest_size=8)
    for one in items:
        digest.update(f"{one.anchor} {_state(one.item)}\n".encode(errors="replace"))
    stop = start + len(items)
    return Section(number, start, stop, size.elements, size.height, first.anchor, first.turn, digest.hexdigest())


def _state(item: Item) -> str:
    """What can still change about an item once its entry is written: a call gets its result."""
    if not isinstance(item, Called):
        return ""
    call = item.call
    answer = call.answer.line.number if call.answer is not None else 0
    return f"{call.outcome} {answer} {call.started or ''}"


def _size(item: Item) -> _Size:
    """About how many elements an item is drawn with and how high it stands, folded as it is at first."""
    known = _SIZES.get(type(item), _Size(7, 34))
    if isinstance(item, Said):
        return _Size(known.elements, known.height + _lines(item.act.text) * _LINE)
    if isinstance(item, Reply | Told):
        # Markdown makes an element of about every other line, and highlighted code more.
        lines = _lines(item.text)
        return _Size(known.elements + min(lines, 400), known.height + lines * _LINE)
    if isinstance(item, Output):
        return _Size(known.elements, known.height + min(_lines(item.text), 12) * _LINE)
    return known


_SIZES: dict[type[Item], _Size] = {
    Said: _Size(12, 64),
    Told: _Size(8, 28),
    Reply: _Size(8, 28),
    Thought: _Size(8, 30),
    Called: _Size(24, 34),
    Compacted: _Size(12, 90),
    Output: _Size(6, 20),
}


def _lines(text: str) -> int:
    """About how many lines a text takes."""
    return text.count("\n", 0, 200_000) + len(text) // _WIDTH + 1
