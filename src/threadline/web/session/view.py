"""Which part of a session a request shows, and where in it an entry is found.

`SessionView` is the parsed query: agent, branch, filters. `PositionIndex` finds an entry in a rendered conversation.
`resolve_anchor` uses both: an anchor is a position on this page, or a redirect to the page that shows it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from markupsafe import Markup
from msgspec import Struct

from threadline.errors import BadQuery
from threadline.model.text import count
from threadline.render import (
    ITEM_KINDS,
    CallItem,
    Detail,
    View,
    abandoned_turns,
    agent_slug,
    anchor_of,
    branch_number,
    branch_numbers,
    leading_entries,
    parse_anchor,
    place_items,
)
from threadline.render.html import EMPTY, Child, ConversationRenderer, Section, el
from threadline.web.request import PageRequest, Redirect
from threadline.web.urls import SessionLinks, entry_anchor

if TYPE_CHECKING:
    from threadline.model.entries import Entry
    from threadline.model.session import Agent, Turn
    from threadline.web.session_cache import AgentDrawing, CachedSession

VIEW_PARAMETERS = (
    "thinking",
    "calls",
    "agents",
    "everything",
    "branch",
    "thread",
    "from",
    "to",
    "kind",
    "tool",
    "exact_tools",
    "errors",
    "focus",
)
"""The parameters that say what is shown. People bookmark them: keep their names."""
ALL_KINDS = tuple(dict.fromkeys(ITEM_KINDS.values()))
FOCUS_KINDS = ("prompt", "task", "reply", "compaction", "branch", "failure")
"""What `focus` shows: prompts and replies, and what interrupts them."""
SECTIONS_PER_PART = 1000
"""Sections of one document. With more, even empty ones would be too many elements for a browser."""
_MAX_INLINE_ITEMS = 30
"""An agent with at most this many items is shown below the call that started it; see `ConversationRenderer`."""
_MAX_BRANCH_LINKS = 4


class SessionView(Struct, frozen=True):
    """A view of a session, the agent that it shows (None: the main agent), and links that keep the view."""

    view: View
    agent: str | None
    links: SessionLinks
    focus: bool = False


def parse_view(request: PageRequest, session: CachedSession) -> SessionView:
    """Parse what a request wants to see.

    Raises:
        BadQuery: a parameter has an unknown value.
    """
    agent = request.path_values.get("agent") or request.text("agent")
    query = [(name, value) for name, value in request.query if name in VIEW_PARAMETERS and value.strip()]
    focus = request.flag("focus")
    kinds = request.texts("kind")
    for kind in kinds:
        if kind not in ALL_KINDS:
            raise BadQuery(f"kind={kind[:40]!r} must be one of {', '.join(ALL_KINDS)}.")
    view = View(
        thinking=Detail.NONE if focus else request.enum("thinking", Detail, Detail.FOLD),
        calls=Detail.NONE if focus else request.enum("calls", Detail, Detail.FOLD),
        agents=request.enum("agents", Detail, Detail.FOLD),
        everything=request.flag("everything"),
        branch=request.optional_number("branch", least=1, most=1_000_000),
        thread=request.flag("thread"),
        from_turn=request.optional_number("from"),
        to_turn=request.optional_number("to"),
        kinds=FOCUS_KINDS if focus and not kinds else kinds,
        tools=request.texts("tool"),
        exact_tools=request.flag("exact_tools"),
        errors=request.flag("errors"),
    )
    return SessionView(view, agent, SessionLinks(session.id, agent, tuple(query), session.agents), focus)


class Position(Struct, frozen=True):
    """A section, and the anchor of an item in it. `near`: the entry is not shown, this is the item before it."""

    section: int
    anchor: str
    near: bool = False

    @property
    def part(self) -> int:
        """The part of the page that contains the section."""
        return part_of(self.section)


def part_of(section: int) -> int:
    """The part of a page that contains a section; both count from 1."""
    return (section - 1) // SECTIONS_PER_PART + 1


def first_section_of(part: int) -> int:
    """The number of a part's first section."""
    return (part - 1) * SECTIONS_PER_PART + 1


class PositionIndex:
    """Finds entries in the rendered conversation of one agent."""

    def __init__(self, renderer: ConversationRenderer) -> None:
        self._renderer = renderer
        self._starts = [section.start for section in renderer.sections]

    @property
    def parts(self) -> int:
        """How many parts the page has."""
        return max(1, part_of(len(self._starts)))

    def sections_of(self, part: int) -> tuple[Section, ...]:
        """The sections of a part."""
        return self._renderer.sections[first_section_of(part) - 1 : first_section_of(part + 1) - 1]

    def find(self, anchor: str, line: int) -> Position | None:
        """Find an entry of this agent by its anchor and its line; None if the page shows nothing at all.

        A tool result is at its call. An entry that is not shown is at the item before it.
        """
        item = self._items.get(anchor)
        if item is not None:
            return Position(self._section(item), anchor)
        item = self._result_lines.get(line)
        if item is not None:
            return Position(self._section(item), self._renderer.items[item].anchor)
        if not self._lines:
            return None
        item = self._item_before(line)
        return Position(self._section(item), self._renderer.items[item].anchor, near=True)

    def item_at_line(self, line: int) -> int:
        """The index of the item that shows a line of the transcript."""
        item = self._result_lines.get(line)
        if item is not None:
            return item
        return self._item_before(line) if self._lines else 0

    def call_that_started(self, agent: Agent) -> Position | None:
        """The position of the call that started another agent."""
        call = agent.link.call
        item = self._calls.get(call) if call is not None else None
        return Position(self._section(item), self._renderer.items[item].anchor) if item is not None else None

    def _item_before(self, line: int) -> int:
        lines = self._lines
        return lines[max(0, bisect_right(lines, (line, len(self._renderer.items))) - 1)][1]

    def _section(self, item: int) -> int:
        return bisect_right(self._starts, item)

    @cached_property
    def _items(self) -> dict[str, int]:
        return {placed.anchor: at for at, placed in enumerate(self._renderer.items)}

    @cached_property
    def _calls(self) -> dict[str, int]:
        return {
            placed.item.call.id: at
            for at, placed in enumerate(self._renderer.items)
            if isinstance(placed.item, CallItem)
        }

    @cached_property
    def _result_lines(self) -> dict[int, int]:
        """The items of calls by the lines of their results."""
        return {
            placed.item.call.answer.line.number: at
            for at, placed in enumerate(self._renderer.items)
            if isinstance(placed.item, CallItem) and placed.item.call.answer is not None
        }

    @cached_property
    def _lines(self) -> list[tuple[int, int]]:
        """Lines and their items, sorted by line."""
        return sorted((placed.item.entry.line.number, at) for at, placed in enumerate(self._renderer.items))


def resolve_anchor(
    session: CachedSession, view: SessionView, drawing: AgentDrawing, anchor: str
) -> Position | Redirect | None:
    """Find an anchor on this page, or the page that shows it; None if this page shows nothing at all.

    Raises:
        NotFound: there is no such entry.
    """
    entry, agent = session.entry(anchor)
    name = agent_slug(agent.id) if agent.id is not None else None
    if name == view.agent:
        # Entries from other files have line numbers of those files.
        is_own_line = parse_anchor(entry_anchor(anchor)) == (name, entry.line.number)
        position = drawing.positions.find(anchor, entry.line.number if is_own_line else 0)
        if position is None or position.near:
            return _redirect_to_branch(agent, view, entry, anchor) or position
        return position
    if name is None:
        return Redirect(view.links.page(at=anchor))
    call = drawing.positions.call_that_started(agent)
    if call is not None and len(place_items(agent, view.view.inside)) <= _MAX_INLINE_ITEMS:
        return Position(call.section, entry_anchor(anchor), near=True)
    return Redirect(view.links.page(at=anchor, agent=name, branch=None))


def _redirect_to_branch(agent: Agent, view: SessionView, entry: Entry, anchor: str) -> Redirect | None:
    """Redirect to the branch that contains an entry, or to the main conversation if no branch does."""
    branch = branch_number(branch_numbers(agent), entry)
    if branch == view.view.branch or (branch is None and not is_off_branch(agent, view.view.branch, entry)):
        return None
    return Redirect(view.links.this_page(at=anchor, branch=branch, thread=None), branch=branch)


def is_off_branch(agent: Agent, branch: int | None, entry: Entry) -> bool:
    """Whether an entry that is in no branch does not lead to this branch either."""
    return branch is not None and all(leading is not entry for leading in leading_entries(agent, branch=branch))


def branch_note(agent: Agent, view: SessionView) -> Markup:
    """A note that turns are on other branches, with links: without it, a rewound session looks empty."""
    abandoned = abandoned_turns(agent)
    if not abandoned:
        return EMPTY
    chosen = view.view.branch
    if chosen is not None:
        back = el("a", "Back to the main conversation", href=branch_url(agent, view, chosen, None))
        return el("p", f"Abandoned branch {chosen} of {len(agent.branches)}. ", back, class_="branch-note")
    turns = sum(map(len, abandoned.values()))
    more = len(abandoned) - _MAX_BRANCH_LINKS
    rest = f", and {count(more, 'more branch', 'more branches')}" if more > 0 else ""
    text = f"Rewound or edited: {count(turns, 'turn')} not shown here, on "
    return el("p", text, *_branch_links(agent, abandoned, view), rest, class_="branch-note")


def branch_url(agent: Agent, view: SessionView, number: int, shown: int | None) -> str:
    """The place where a branch leaves the conversation, on the page of a branch or of the conversation (None)."""
    anchor = anchor_of(agent.branches[number - 1].first, agent.id)
    return view.links.this_page(branch=shown, at=f"{anchor}-0" if shown is None else anchor)


def _branch_links(agent: Agent, abandoned: Mapping[int, list[Turn]], view: SessionView) -> Iterator[Child]:
    for at, (number, turns) in enumerate(list(abandoned.items())[:_MAX_BRANCH_LINKS]):
        first, last = turns[0].number, turns[-1].number
        label = f"turn {first:,}" if first == last else f"turns {first:,} to {last:,}"
        if at:
            yield ", "
        yield el("a", f"branch {number}", href=branch_url(agent, view, number, number))
        yield f" ({label})"
