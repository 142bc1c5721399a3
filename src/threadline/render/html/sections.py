"""Split a page's items into sections that load together, and estimate their size without rendering them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from msgspec import Struct

from threadline.render import (
    CallItem,
    CompactionItem,
    Item,
    OutputItem,
    PlacedItem,
    PromptItem,
    ReplyItem,
    TaskItem,
    ThinkingItem,
)

MAX_ITEMS, MAX_ELEMENTS = 100, 600
"""The maximum size of a section."""
_LINE_HEIGHT, _LINE_LENGTH = 20, 84
"""The height of a line in pixels and its length in characters, used only for estimates."""


class Section(Struct, frozen=True):
    """The items from `start` to before `stop`. Numbers start at 1. `mark` changes if the content changes."""

    number: int
    start: int
    stop: int
    elements: int
    height: int
    first: str
    first_turn: int | None
    mark: str


class _SizeEstimate(Struct, frozen=True):
    elements: int = 0
    height: int = 0


def split_into_sections(items: Sequence[PlacedItem]) -> tuple[Section, ...]:
    """Split items into consecutive sections."""
    return tuple(_iter_sections(items))


def _iter_sections(items: Sequence[PlacedItem]) -> Iterator[Section]:
    start, size, number = 0, _SizeEstimate(), 1
    for at, placed_item in enumerate(items):
        more = _estimate_size(placed_item.item)
        if at > start and (at - start >= MAX_ITEMS or size.elements + more.elements > MAX_ELEMENTS):
            yield _make_section(number, items[start:at], start, size)
            start, size, number = at, _SizeEstimate(), number + 1
        size = _SizeEstimate(size.elements + more.elements, size.height + more.height)
    if start < len(items):
        yield _make_section(number, items[start:], start, size)


def _make_section(number: int, items: Sequence[PlacedItem], start: int, size: _SizeEstimate) -> Section:
    first = items[0]
    digest = hashlib.blake2b(digest_size=8)
    for placed_item in items:
        digest.update(f"{placed_item.anchor} {_item_state(placed_item.item)}\n".encode(errors="replace"))
    stop = start + len(items)
    return Section(number, start, stop, size.elements, size.height, first.anchor, first.turn, digest.hexdigest())


def _item_state(item: Item) -> str:
    """The part of an item that can change after its entry was written: a call gets its result."""
    if not isinstance(item, CallItem):
        return ""
    call = item.call
    answer = call.answer.line.number if call.answer is not None else 0
    return f"{call.outcome} {answer} {call.started or ''}"


def _estimate_size(item: Item) -> _SizeEstimate:
    """Estimate the number of elements and the height of an item in its initial, folded state."""
    base = _BASE_SIZES.get(type(item), _SizeEstimate(7, 34))
    if isinstance(item, PromptItem):
        return _SizeEstimate(base.elements, base.height + _estimate_lines(item.act.text) * _LINE_HEIGHT)
    if isinstance(item, ReplyItem | TaskItem):
        # Markdown has about one element per two lines, and highlighted code has more.
        lines = _estimate_lines(item.text)
        return _SizeEstimate(base.elements + min(lines, 400), base.height + lines * _LINE_HEIGHT)
    if isinstance(item, OutputItem):
        return _SizeEstimate(base.elements, base.height + min(_estimate_lines(item.text), 12) * _LINE_HEIGHT)
    return base


_BASE_SIZES: dict[type[Item], _SizeEstimate] = {
    PromptItem: _SizeEstimate(12, 64),
    TaskItem: _SizeEstimate(8, 28),
    ReplyItem: _SizeEstimate(8, 28),
    ThinkingItem: _SizeEstimate(8, 30),
    CallItem: _SizeEstimate(24, 34),
    CompactionItem: _SizeEstimate(12, 90),
    OutputItem: _SizeEstimate(6, 20),
}


def _estimate_lines(text: str) -> int:
    """Estimate the number of lines of a text."""
    return text.count("\n", 0, 200_000) + len(text) // _LINE_LENGTH + 1
