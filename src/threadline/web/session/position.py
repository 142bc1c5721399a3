"""Find the section and part of a drawn conversation in which an entry is shown."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property

from msgspec import Struct

from threadline.model.session import Agent
from threadline.render import CallItem
from threadline.render.html import ConversationRenderer, Section

SECTIONS_PER_PART = 1000
"""Sections that one document holds: with more, even empty ones would be too many elements."""


class Position(Struct, frozen=True):
    """Where something stands: a section, and the anchor of the item. `near`: of the item that is shown before it."""

    section: int
    anchor: str
    near: bool = False

    @property
    def part(self) -> int:
        """The part of the page that has the section."""
        return part_of(self.section)


def part_of(section: int) -> int:
    """The part of a page that a section is in; both count from 1."""
    return (section - 1) // SECTIONS_PER_PART + 1


def first_section_of(part: int) -> int:
    """The number of a part's first section."""
    return (part - 1) * SECTIONS_PER_PART + 1


class PositionIndex:
    """Finds entries in a drawing of one agent."""

    def __init__(self, drawing: ConversationRenderer) -> None:
        self._drawing = drawing
        self._starts = [section.start for section in drawing.sections]

    @property
    def sections(self) -> tuple[Section, ...]:
        """The sections of the drawing."""
        return self._drawing.sections

    @property
    def parts(self) -> int:
        """How many parts the page has."""
        return max(1, part_of(len(self.sections)))

    def of_part(self, part: int) -> tuple[Section, ...]:
        """The sections of a part."""
        return self.sections[first_section_of(part) - 1 : first_section_of(part + 1) - 1]

    def of(self, anchor_: str, line: int) -> Position | None:
        """Where an entry of this agent stands, by its anchor and its line; None where nothing is shown at all.

        A result stands at its call. What is not shown stands at the item before it.
        """
        at = self._items.get(anchor_)
        if at is not None:
            return Position(self._section(at), anchor_)
        found = self._answers.get(line)
        if found is not None:
            return Position(self._section(found), self._drawing.items[found].anchor)
        lines = self._lines
        if not lines:
            return None
        at = lines[max(0, bisect_right(lines, (line, len(self._drawing.items))) - 1)][1]
        return Position(self._section(at), self._drawing.items[at].anchor, near=True)

    def item_at_line(self, line: int) -> int:
        """The item that a line of the transcript belongs to, by its place among all."""
        at = self._answers.get(line)
        if at is not None:
            return at
        lines = self._lines
        return lines[max(0, bisect_right(lines, (line, len(self._drawing.items))) - 1)][1] if lines else 0

    def under(self, agent: Agent) -> Position | None:
        """Where the call stands that started another agent."""
        call = agent.link.call
        found = self._calls.get(call) if call is not None else None
        return Position(self._section(found), self._drawing.items[found].anchor) if found is not None else None

    def _section(self, item: int) -> int:
        return bisect_right(self._starts, item)

    @cached_property
    def _items(self) -> dict[str, int]:
        return {one.anchor: at for at, one in enumerate(self._drawing.items)}

    @cached_property
    def _calls(self) -> dict[str, int]:
        return {one.item.call.id: at for at, one in enumerate(self._drawing.items) if isinstance(one.item, CallItem)}

    @cached_property
    def _answers(self) -> dict[int, int]:
        """The items of calls by the lines of their results."""
        return {
            one.item.call.answer.line.number: at
            for at, one in enumerate(self._drawing.items)
            if isinstance(one.item, CallItem) and one.item.call.answer is not None
        }

    @cached_property
    def _lines(self) -> list[tuple[int, int]]:
        """Lines and the items that they made, in the order of lines."""
        return sorted((one.item.entry.line.number, at) for at, one in enumerate(self._drawing.items))
