"""The column beside the conversation (turns or recent sessions), and the filters above it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from threadline import lake as lakes
from threadline.render import (
    Detail,
    agent_slug,
    agent_title,
    anchor_of,
    branch_number,
    branch_numbers,
    count_tools,
    shorten,
)
from threadline.render.html import EMPTY, Child, choice_chip, el, join, time_element
from threadline.summary import SessionFilter
from threadline.web import urls
from threadline.web.session.view import ALL_KINDS, SessionView, branch_url
from threadline.web.urls import SessionLinks, carried_inputs, hidden_inputs

if TYPE_CHECKING:
    from threadline.model.session import Agent, Session, Turn
    from threadline.web.request import PageRequest

TURNS_AROUND = 50
"""How many turns are listed before the current one, and after it."""
_MAX_WORDS = 90
_MAX_SESSIONS = 40
_MAX_CHOICES, _MAX_BRANCHES = 60, 12


def render_side(agent: Agent, links: SessionLinks, around: int, recent: Markup | None) -> Markup:
    """Render the column at the left: turns around a turn, or recent sessions."""
    tabs = el(
        "p",
        el(
            "a",
            "Turns",
            href=links.this_page(side=None),
            class_="chip",
            aria_current="true" if recent is None else None,
        ),
        " ",
        el(
            "a",
            "Sessions",
            href=links.this_page(side="sessions"),
            class_="chip",
            aria_current="true" if recent else None,
        ),
        class_="links",
    )
    content = turn_outline(agent, links, around) if recent is None else recent
    label = "Turns" if recent is None else "Sessions"
    # On a phone, the list is hidden until this is open.
    toggle = el("details", el("summary", "Turns and sessions"), class_="side-toggle")
    return el("nav", toggle, el("div", tabs, content, class_="side-list"), class_="side", aria_label=label)


def turn_outline(agent: Agent, links: SessionLinks, around: int) -> Markup:
    """Render the turns around a turn, each with its first words, and links to those before and after them."""
    turns = [turn for turn in agent.turns if turn.act is not None]
    if not turns:
        return el("p", "No turns.", class_="nothing")
    at = bisect_left([turn.number for turn in turns], around)
    first, after = max(0, at - TURNS_AROUND), at + TURNS_AROUND + 1
    earlier = turns[max(0, first - TURNS_AROUND) : first]
    visible, later = turns[first:after], turns[after : after + TURNS_AROUND]
    branches = branch_numbers(agent)
    rows = [
        el("li", _turn_link(turn, agent, links, branches, is_current=turn.number == around), value=turn.number)
        for turn in visible
    ]
    return join(
        (
            _more_turns_link(links, earlier, "Earlier") if earlier else EMPTY,
            el("ol", rows, class_="turns"),
            _more_turns_link(links, later, "Later") if later else EMPTY,
        )
    )


def _more_turns_link(links: SessionLinks, turns: Sequence[Turn], word: str) -> Markup:
    middle = turns[len(turns) // 2].number
    label = f"{word}: turns {turns[0].number:,} to {turns[-1].number:,}"
    fragment = links.below("turns", around=middle, agent=links.agent_name)
    return el("p", el("a", label, href=links.this_page(turn=middle), data_fragment=fragment), class_="more")


def _turn_link(
    turn: Turn, agent: Agent, links: SessionLinks, branches: Mapping[tuple[str, int], int], *, is_current: bool
) -> Markup:
    act = turn.act
    branch = branch_number(branches, act.entry) if act is not None else None
    words = shorten(act.text, _MAX_WORDS) if act is not None else ""
    anchor = anchor_of(act.entry, agent.id) if act is not None else ""
    return el(
        "a",
        el("span", words or "(no text)", class_="row-text"),
        href=links.this_page(at=anchor, branch=branch) if branch is not None else links.this_page(at=anchor),
        class_="left" if branch is not None else None,
        title=f"abandoned, on branch {branch}" if branch is not None else None,
        data_turn=turn.number,
        data_anchor=anchor,
        aria_current="true" if is_current else None,
    )


def turn_rows(agent: Agent) -> Iterator[dict[str, Any]]:
    """The turns as data; `branch` is set for a turn on an abandoned branch."""
    branches = branch_numbers(agent)
    for turn in agent.turns:
        if turn.act is not None:
            yield {
                "number": turn.number,
                "anchor": anchor_of(turn.act.entry, agent.id),
                "kind": str(turn.act.kind),
                "text": turn.act.text[:400],
                "started": turn.started,
                "branch": branch_number(branches, turn.act.entry),
            }


def recent_sessions(request: PageRequest, current: str) -> Markup:
    """Render the newest sessions as links."""
    lake = request.pool.lake
    newest: Iterable[tuple[str, str, datetime | None]]
    if lake is None:
        summaries = request.archive.sessions(SessionFilter(limit=_MAX_SESSIONS)).sessions
        newest = ((str(row.id or row.path.stem), row.title, row.last) for row in summaries)
    else:
        sessions, _ = lake.state.sessions(lakes.LakeSessionFilter(), limit=_MAX_SESSIONS)
        newest = ((session.session, session.title, session.last) for session in sessions)
    rows = [
        el(
            "li",
            el(
                "a",
                el("span", shorten(title, _MAX_WORDS) or "(no title)", class_="row-text"),
                el("span", time_element(last, request.zone()), class_="when"),
                href=urls.session_url(name, side="sessions"),
                aria_current="page" if name == current else None,
            ),
        )
        for name, title, last in newest
    ]
    return el("ol", rows, class_="recent")


def render_filters(session: Session, agent: Agent, view: SessionView, counts: str = "") -> Markup:
    """Render the filters: what of the conversation is shown. `counts` says how many entries that is."""
    return el(
        "nav",
        *_view_chips(view),
        el("span", counts, class_="count") if counts else EMPTY,
        *_branch_chips(agent, view),
        _filter_form(session, agent, view),
        class_="filters",
        aria_label="Filters",
    )


def _view_chips(view: SessionView) -> Iterator[Markup]:
    """Links that change what is shown. With `data_action`, a script does the same without leaving the current place."""
    options, links, full = view.view, view.links, Detail.FULL
    thinking, calls = options.thinking is full, options.calls is full
    chips = (
        ("Focus", links.this_page(focus=not view.focus), view.focus, "focus"),
        ("Errors", links.this_page(errors=not options.errors), options.errors, "errors"),
        ("Expand thinking", links.this_page(thinking=None if thinking else str(full)), thinking, "thinking"),
        ("Expand calls", links.this_page(calls=None if calls else str(full)), calls, "calls"),
        ("Show system entries", links.this_page(everything=not options.everything), options.everything, None),
    )
    for label, url, is_chosen, action in chips:
        yield choice_chip(url, label, is_chosen=is_chosen, data_action=action)
    if links.query:
        cleared = links.page(agent=links.agent_name, **dict.fromkeys(dict(links.query)))
        yield el("a", "clear", href=cleared, class_="chip clear")


def _branch_chips(agent: Agent, view: SessionView) -> Iterator[Markup]:
    """Links to the main conversation and to abandoned branches."""
    if not agent.branches:
        return
    links, chosen = view.links, view.view.branch
    main = links.this_page(branch=None) if chosen is None else branch_url(agent, view, chosen, None)
    yield choice_chip(main, "Conversation", is_chosen=chosen is None, data_branch="")
    for number, branch in list(enumerate(agent.branches, 1))[:_MAX_BRANCHES]:
        yield choice_chip(
            branch_url(agent, view, number, number),
            f"Branch {number}",
            is_chosen=number == chosen,
            data_branch=number,
            title=f"Abandoned: {len(branch.entries):,} entries",
        )
    if len(agent.branches) > _MAX_BRANCHES:
        yield el("span", f"and {len(agent.branches) - _MAX_BRANCHES} more, linked where they begin", class_="aside")


def _filter_form(session: Session, agent: Agent, view: SessionView) -> Markup:
    """Choose kinds and tools, or go to an agent. Other filters are kept."""
    options = view.view
    other_filters = [(name, value) for name, value in view.links.query if name not in {"kind", "tool", "find"}]
    tools = list(count_tools(agent, exact_tools=options.exact_tools).items())[:_MAX_CHOICES]
    kind = "" if view.focus or len(options.kinds) != 1 else options.kinds[0]
    return el(
        "form",
        *hidden_inputs(other_filters),
        *carried_inputs(),
        _select("kind", "Kind", [("", "all kinds"), *((word, word) for word in ALL_KINDS)], kind),
        _select(
            "tool",
            "Tool",
            [("", "all tools"), *((tool, f"{shorten(tool, 50)} ({number:,})") for tool, number in tools)],
            options.tools[0] if len(options.tools) == 1 else "",
        )
        if tools
        else EMPTY,
        el("button", "Apply"),
        *_agent_links(session, view),
        method="get",
        action=view.links.page(agent=view.agent, **dict.fromkeys(dict(view.links.query))),
        class_="choose",
    )


def _select(name: str, label: str, choices: list[tuple[str, str]], chosen: str) -> Markup:
    options = [el("option", text, value=value, selected=value == chosen) for value, text in choices]
    return el("label", label, el("select", options, name_=name))


def _agent_links(session: Session, view: SessionView) -> Iterator[Child]:
    agents = [
        (agent, agent.id)
        for agent in session.agents
        if agent.id is not None and (agent.side is None or view.view.everything)
    ]
    if not agents:
        return
    rows = [
        el(
            "li",
            el(
                "a",
                shorten(agent_title(agent), 80),
                href=view.links.agent(id_),
                aria_current="page" if agent_slug(id_) == view.agent else None,
            ),
        )
        for agent, id_ in agents[:_MAX_CHOICES]
    ]
    hidden = len(agents) - _MAX_CHOICES
    more = el("li", f"and {hidden:,} more, linked where they were started") if hidden > 0 else EMPTY
    yield el("details", el("summary", f"Agents ({len(agents):,})"), el("ul", rows, more), class_="agents-menu")
