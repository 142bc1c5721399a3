"""Beside and above the conversation: the outline of turns, recent sessions, and the filters of what is shown."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from datetime import tzinfo
from typing import Any

from markupsafe import Markup

from threadline.archive import Archive
from threadline.model.session import Agent, Session, Turn
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
from threadline.render.html import EMPTY, Child, el, join, time_element
from threadline.summary import SessionFilter
from threadline.web import urls
from threadline.web.session.view import ALL_KINDS, SessionView
from threadline.web.session_cache import CachedSession
from threadline.web.urls import SessionLinks, carried_inputs

TURNS_AROUND = 60
"""Turns that are listed before a place, and as many after it."""
_MAX_WORDS = 90
_MAX_SESSIONS = 40


def render_side(kept: CachedSession, agent: Agent, links: SessionLinks, around: int, recent: Markup | None) -> Markup:
    """The side: turns, or what `recent` lists."""
    ways = el(
        "p",
        el("a", "Turns", href=links.own(side=None), class_="chip", aria_current="true" if recent is None else None),
        " ",
        el("a", "Sessions", href=links.own(side="sessions"), class_="chip", aria_current="true" if recent else None),
        class_="ways",
    )
    listed = turn_outline(kept, agent, links, around) if recent is None else recent
    label = "Turns" if recent is None else "Sessions"
    return el("nav", el("details", el("summary", label), ways, listed, open=True), class_="side", aria_label=label)


def turn_outline(kept: CachedSession, agent: Agent, links: SessionLinks, around: int) -> Markup:
    """The turns around one, each with its first words; what is before and after is a link away."""
    every = [turn for turn in agent.turns if turn.act is not None]
    if not every:
        return el("p", "No turns.", class_="nothing")
    at = bisect_left([turn.number for turn in every], around)
    first, after = max(0, at - TURNS_AROUND), at + TURNS_AROUND + 1
    shown = every[first:after]
    before = (
        _more_turns_link(kept, links, every[first - TURNS_AROUND : first] or every[:first], "Earlier")
        if first
        else EMPTY
    )
    rest = every[after:]
    then = _more_turns_link(kept, links, rest[:TURNS_AROUND], "Later") if rest else EMPTY
    left = branch_numbers(agent)
    rows = [el("li", _turn_link(turn, agent, links, left, is_here=turn.number == around)) for turn in shown]
    return join((before, el("ol", rows, class_="turns", start=shown[0].number if shown else None), then))


def _more_turns_link(kept: CachedSession, links: SessionLinks, hidden: Sequence[Turn], word: str) -> Markup:
    middle = hidden[len(hidden) // 2].number
    fragment = links.below("turns", around=middle, agent=links.agent_name)
    page = links.own(turn=middle)
    del kept
    label = f"{word}: turns {hidden[0].number:,} to {hidden[-1].number:,}"
    return el("p", el("a", label, href=page, data_fragment=fragment), class_="more")


def _turn_link(
    turn: Turn, agent: Agent, links: SessionLinks, left: Mapping[tuple[str, int], int], *, is_here: bool
) -> Markup:
    act = turn.act
    branch = branch_number(left, act.entry) if act is not None else None
    text = shorten(act.text, _MAX_WORDS) if act is not None else ""
    where = anchor_of(act.entry, agent.id) if act is not None else ""
    return el(
        "a",
        el("span", f"{turn.number:,}", class_="number"),
        el("span", text or "(nothing written)", class_="words-of"),
        href=links.own(at=where, branch=branch) if branch is not None else links.own(at=where),
        class_="left" if branch is not None else None,
        title=f"left, on branch {branch}" if branch is not None else None,
        data_turn=turn.number,
        data_anchor=where,
        aria_current="true" if is_here else None,
    )


def turn_rows(agent: Agent) -> Iterator[dict[str, Any]]:
    """The turns as data; `branch` is the one that has it, where it was left."""
    left = branch_numbers(agent)
    for turn in agent.turns:
        if turn.act is not None:
            yield {
                "number": turn.number,
                "anchor": anchor_of(turn.act.entry, agent.id),
                "kind": str(turn.act.kind),
                "text": turn.act.text[:400],
                "started": turn.started,
                "branch": branch_number(left, turn.act.entry),
            }


def recent_sessions(archive: Archive, here: str, zone: tzinfo) -> Markup:
    """The sessions of late, to go to."""
    found = archive.sessions(SessionFilter(limit=_MAX_SESSIONS)).sessions
    rows = [
        el(
            "li",
            el(
                "a",
                el("span", shorten(row.title, _MAX_WORDS) or "(no title)", class_="words-of"),
                el("span", time_element(row.last, zone), class_="when"),
                href=urls.session_url(str(row.id or row.path.stem), side="sessions"),
                aria_current="page" if str(row.id) == here else None,
            ),
        )
        for row in found
    ]
    return el("ol", rows, class_="recent")


_MAX_CHOICES, _MAX_BRANCHES = 60, 12


def render_filters(session: Session, agent: Agent, seen: SessionView) -> Markup:
    """What of the conversation is shown, and how that is changed."""
    return el(
        "nav",
        *_view_chips(seen),
        *_branch_chips(agent, seen),
        _filter_form(session, agent, seen),
        class_="filters",
        aria_label="What is shown",
    )


def _view_chips(seen: SessionView) -> Iterator[Markup]:
    view, links = seen.view, seen.links
    full = Detail.FULL
    yield _chip("Focus", links.own(focus=not seen.focus), is_chosen=seen.focus, deed="focus")
    yield _chip("Errors", links.own(errors=not view.errors), is_chosen=view.errors, deed="errors")
    thinks = view.thinking is full
    yield _chip("Thinking open", links.own(thinking=None if thinks else str(full)), is_chosen=thinks, deed="thinking")
    calls = view.calls is full
    yield _chip("Calls open", links.own(calls=None if calls else str(full)), is_chosen=calls, deed="calls")
    yield _chip("Everything", links.own(everything=not view.everything), is_chosen=view.everything)
    if links.query:
        kept = links.page(agent=links.agent_name, **dict.fromkeys(dict(links.query)))
        yield el("a", "clear", href=kept, class_="chip clear")


def _chip(label: str, address: str, *, is_chosen: bool, deed: str | None = None) -> Markup:
    """A link; a script does the deed in its place, which keeps the place one is at."""
    return el(
        "a",
        label,
        href=address,
        class_="chip chosen" if is_chosen else "chip",
        aria_current=_aria_true(is_chosen),
        data_deed=deed,
    )


def _branch_chips(agent: Agent, seen: SessionView) -> Iterator[Markup]:
    """The conversation, and the ways that were left."""
    if not agent.branches:
        return
    links, chosen = seen.links, seen.view.branch
    yield el(
        "a",
        "Conversation",
        href=links.own(branch=None),
        class_="chip" if chosen else "chip chosen",
        aria_current=_aria_true(chosen is None),
        data_branch="",
    )
    for number, branch in list(enumerate(agent.branches, 1))[:_MAX_BRANCHES]:
        yield el(
            "a",
            f"Branch {number}",
            href=links.own(branch=number),
            class_="chip chosen" if number == chosen else "chip",
            aria_current=_aria_true(number == chosen),
            data_branch=number,
            title=f"{len(branch.entries):,} entries that were left",
        )
    if len(agent.branches) > _MAX_BRANCHES:
        yield el("span", f"and {len(agent.branches) - _MAX_BRANCHES} more where they were left", class_="aside")


def _filter_form(session: Session, agent: Agent, seen: SessionView) -> Markup:
    """Kinds, tools and agents to choose; whatever else is chosen stays."""
    view = seen.view
    own = {"kind", "tool", "find"}
    hidden = [el("input", type="hidden", name_=key, value=value) for key, value in seen.links.query if key not in own]
    tools = list(count_tools(agent).items())[:_MAX_CHOICES]
    kind = "" if seen.focus or len(view.kinds) != 1 else view.kinds[0]
    return el(
        "form",
        *hidden,
        *carried_inputs(),
        _select("kind", "Kind", [("", "all kinds"), *((word, word) for word in ALL_KINDS)], kind),
        _select(
            "tool",
            "Tool",
            [("", "all tools"), *((tool, f"{shorten(tool, 50)} ({many:,})") for tool, many in tools)],
            view.tools[0] if len(view.tools) == 1 else "",
        )
        if tools
        else EMPTY,
        el("button", "Show"),
        *_agent_links(session, seen),
        method="get",
        action=seen.links.page(agent=seen.agent, **dict.fromkeys(dict(seen.links.query))),
        class_="choose",
    )


def _select(key: str, label: str, choices: list[tuple[str, str]], chosen: str) -> Markup:
    options = [el("option", said, value=value, selected=value == chosen) for value, said in choices]
    return el("label", label, el("select", options, name_=key))


def _agent_links(session: Session, seen: SessionView) -> Iterator[Child]:
    """The agents, each a link to its page, folded."""
    found = [agent for agent in session.agents if agent.id is not None and (agent.side is None or seen.view.everything)]
    if not found:
        return
    rows = [
        el(
            "li",
            el(
                "a",
                shorten(agent_title(agent), 80),
                href=seen.links.agent(agent.id) if agent.id is not None else None,
                aria_current="page" if agent.id is not None and agent_slug(agent.id) == seen.agent else None,
            ),
        )
        for agent in found[:_MAX_CHOICES]
    ]
    more = el("li", f"and {len(found) - _MAX_CHOICES:,} more where they stand") if len(found) > _MAX_CHOICES else EMPTY
    yield el("details", el("summary", f"Agents ({len(found):,})"), el("ul", rows, more), class_="agents-of")


def _aria_true(is_so: bool) -> str | None:
    return "true" if is_so else None
