"""What of a session a request wants to see, where an anchor leads in that view, and the way to branches left behind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from markupsafe import Markup
from msgspec import Struct

from threadline.errors import BadQuery
from threadline.model.entries import Entry
from threadline.model.session import Agent, Turn
from threadline.model.text import count
from threadline.render import (
    ITEM_KINDS,
    AgentDetail,
    Detail,
    View,
    abandoned_turns,
    agent_slug,
    branch_number,
    branch_numbers,
    leading_entries,
    parse_anchor,
    place_items,
)
from threadline.render.html import EMPTY, Child, el
from threadline.web.request import PageRequest, Redirect
from threadline.web.session.position import Position
from threadline.web.session_cache import AgentDrawing, CachedSession
from threadline.web.urls import SessionLinks, entry_anchor

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
    "errors",
    "focus",
)
"""The names in a query that say what is shown."""
ALL_KINDS = tuple(dict.fromkeys(ITEM_KINDS.values()))
FOCUS_KINDS = ("prompt", "task", "reply", "compaction", "branch", "failure")
"""What is left where only what was said is wanted."""


class SessionView(Struct, frozen=True):
    """A view, the agent that it shows (None: the main one), and the links that keep it so."""

    view: View
    agent: str | None
    links: SessionLinks
    focus: bool = False


def parse_view(asked: PageRequest, kept: CachedSession) -> SessionView:
    """What a request wants to see.

    Raises:
        BadQuery: it says nothing sensible.
    """
    agent = asked.named.get("agent") or asked.text("agent")
    query = [(name, value) for name, value in asked.query if name in VIEW_PARAMETERS and value.strip()]
    focus = asked.flag("focus")
    return SessionView(
        _parse_options(asked, focus=focus), agent, SessionLinks(kept.id, agent, tuple(query), kept.agents), focus
    )


def _parse_options(asked: PageRequest, *, focus: bool) -> View:
    kinds = asked.texts("kind")
    for kind in kinds:
        if kind not in ALL_KINDS:
            raise BadQuery(f"kind={kind[:40]!r} is none of {', '.join(ALL_KINDS)}.")
    return View(
        thinking=Detail.NONE if focus else asked.one_of("thinking", Detail, Detail.FOLD),
        calls=Detail.NONE if focus else asked.one_of("calls", Detail, Detail.FOLD),
        agents=asked.one_of("agents", AgentDetail, AgentDetail.FOLD),
        everything=asked.flag("everything"),
        branch=asked.optional_number("branch", least=1, most=1_000_000),
        thread=asked.flag("thread"),
        from_turn=asked.optional_number("from"),
        to_turn=asked.optional_number("to"),
        kinds=FOCUS_KINDS if focus and not kinds else kinds,
        tools=asked.texts("tool"),
        errors=asked.flag("errors"),
    )


_MAX_INLINE_ITEMS = 30
"""How many items an agent may have to be drawn in its place; see `Drawing`."""


def resolve_anchor(
    kept: CachedSession, seen: SessionView, drawn: AgentDrawing, anchor: str
) -> Position | Redirect | None:
    """Where an anchor leads; None where the page shows nothing at all.

    Raises:
        NotFound: there is no such entry.
    """
    entry, agent = kept.entry(anchor)
    name = agent_slug(agent.id) if agent.id is not None else None
    if name == seen.agent:
        is_own = parse_anchor(entry_anchor(anchor)) == (
            name,
            entry.line.number,
        )  # rows of other files have lines of their own
        stand = drawn.where.of(anchor, entry.line.number if is_own else 0)
        if stand is None or stand.near:
            return _redirect_to_branch(agent, seen, entry, anchor) or stand
        return stand
    if name is None:
        return Redirect(seen.links.page(at=anchor))
    under = drawn.where.under(agent)
    if under is not None and len(place_items(agent, seen.view.inside)) <= _MAX_INLINE_ITEMS:
        return Position(under.section, entry_anchor(anchor), near=True)
    return Redirect(seen.links.page(at=anchor, agent=name, branch=None))


def _redirect_to_branch(agent: Agent, seen: SessionView, entry: Entry, anchor: str) -> Redirect | None:
    """The page of the branch that holds what this one does not show; of the conversation, where none does."""
    holds = branch_number(branch_numbers(agent), entry)
    if holds == seen.view.branch or (holds is None and not is_off_branch(agent, seen.view.branch, entry)):
        return None
    return Redirect(seen.links.own(at=anchor, branch=holds, thread=None), branch=holds)


_MAX_BRANCH_LINKS = 4


def is_off_branch(agent: Agent, branch: int | None, entry: Entry) -> bool:
    """Whether an entry of no branch is not on the way to this one."""
    return branch is not None and all(one is not entry for one in leading_entries(agent, branch=branch))


def branch_note(agent: Agent, seen: SessionView) -> Markup:
    """That turns were left on branches, and the ways to them: without it a session that was rewound looks empty."""
    found = abandoned_turns(agent)
    if not found:
        return EMPTY
    links, chosen = seen.links, seen.view.branch
    if chosen is not None:
        back = el("a", "Back to the conversation", href=links.own(branch=None))
        return el("p", f"This is branch {chosen}, which was left. ", back, class_="left-note")
    many = sum(map(len, found.values()))
    said = f"{many:,} {'turn is' if many == 1 else 'turns are'} not shown here: left by a rewind or an edit, on "
    more = len(found) - _MAX_BRANCH_LINKS
    rest = f", and {count(more, 'more branch', 'more branches')}" if more > 0 else ""
    return el("p", said, *_branch_links(found, seen), rest, class_="left-note")


def _branch_links(found: Mapping[int, list[Turn]], seen: SessionView) -> Iterator[Child]:
    for at, (number, turns) in enumerate(list(found.items())[:_MAX_BRANCH_LINKS]):
        first, last = turns[0].number, turns[-1].number
        which = f"turn {first:,}" if first == last else f"turns {first:,} to {last:,}"
        if at:
            yield ", "
        yield el("a", f"branch {number}", href=seen.links.own(branch=number))
        yield f" ({which})"
