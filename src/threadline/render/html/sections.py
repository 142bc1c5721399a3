"""Split a page's items into sections that load together, and estimate their size without rendering them.

A `Scene` is what every part of a page needs while it is rendered: the view, where links lead, the time zone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Protocol

from markupsafe import Markup
from msgspec import Struct

from threadline.model.places import AgentId, CallId, Place, SessionId
from threadline.model.session import Session
from threadline.model.text import format_time
from threadline.model.times import in_zone, zone_name
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
    View,
    agent_slug,
    shorten,
    visible,
)
from threadline.render.html.element import el, join


class Links(Protocol):
    """Builds URLs of pages. A method returns None if the page does not exist."""

    def session(self, session: SessionId | str) -> str | None:
        """The page of another session."""

    def agent(self, agent: AgentId | str) -> str | None:
        """The page of an agent of this session."""

    def entry(self, anchor: str) -> str:
        """An entry of this page or another of this session, by its anchor."""

    def raw(self, anchor: str) -> str | None:
        """The page that shows an entry's JSON."""

    def call(self, call: CallId) -> str | None:
        """The page that shows a call in full."""

    def state(self, anchor: str) -> str | None:
        """The page that shows the state at an entry."""

    def file_state(self, anchor: str, path: str) -> str | None:
        """The page that shows one file as it was at an entry."""

    def file(self, path: str) -> str | None:
        """The page of a file: which sessions touched it."""

    def branch(self, number: int | None, at: str | None = None) -> str | None:
        """The page of a branch, beginning at an entry; None is the conversation itself."""

    def image(self, anchor: str, number: int, media_type: str, data: str) -> str | None:
        """The image with this number among the images of an entry; `data` is its base64."""


class Scene(Struct, frozen=True):
    """What to show and how to link.

    `uncut`: show long texts in full, as on a call's own page and in exported files. Paths are shown relative to `cwd`,
    the session's working directory. Times are shown in `zone`. The default is UTC, so that an exported file is the
    same wherever it is created.
    """

    view: View
    links: Links
    uncut: bool = False
    cwd: str = ""
    zone: tzinfo = UTC

    def relative_path(self, path: str) -> str:
        """A path relative to the session's working directory, if it is inside it."""
        below = self.cwd and path.startswith(self.cwd) and path[len(self.cwd) : len(self.cwd) + 1] in ("/", "\\")
        return path[len(self.cwd) + 1 :] if below else path

    def clock(self, when: datetime) -> str:
        """The time of day: `09:00`."""
        return in_zone(when, self.zone).strftime("%H:%M")

    def format_time(self, when: datetime) -> str:
        """Date, time and time zone: `2026-01-05 09:00 UTC`."""
        return f"{format_time(when, self.zone)} {zone_name(self.zone)}"


class PlaceLinks:
    """Creates links to the entries at places."""

    def __init__(self, session: Session, scene: Scene) -> None:
        self._links = scene.links
        self._agents: dict[str, AgentId | None] = {}
        for agent in (*session.agents, session.main):
            if agent.entries:
                self._agents[agent.entries[0].place.transcript] = agent.id

    def anchor(self, place: Place, agent: AgentId | None = None) -> str:
        """The anchor of the entry at a place."""
        who = agent or self._agents.get(place.transcript)
        return f"{agent_slug(who)}.L{place.line}" if who is not None else f"L{place.line}"

    def link(self, place: Place, agent: AgentId | None = None) -> Markup:
        """`line 12` as a link."""
        address = self._links.entry(self.anchor(place, agent))
        return el("a", f"line {place.line:,}", href=address, title=shorten(str(place), 300))

    def short(self, statement: str) -> str:
        """Shorten places in a statement to line numbers, because the page is about one session."""
        for transcript, agent in self._agents.items():
            where = "line " if agent is None else f"agent {agent}, line "
            statement = statement.replace(f"{transcript}:", where)
        return visible(statement)

    def position(self, place: Place | None, agent: AgentId | None) -> Markup:
        """`after line 12`, or the end."""
        return join(("after ", self.link(place, agent))) if place is not None else join(("at the end",))


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
