"""Filters of a session's page: links and a form, so that they work without a script."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from threadline.model.agent import Agent
from threadline.model.session import Session
from threadline.render.agents import name
from threadline.render.html.anchor import named
from threadline.render.html.element import EMPTY, Child, el
from threadline.render.html.placed import tools_of
from threadline.render.html.view import Amount
from threadline.render.html.words import one
from threadline.web.carried import carried_fields
from threadline.web.viewing import ALL_KINDS, Viewing

_MANY, _BRANCHES = 60, 12


def filters(session: Session, agent: Agent, seen: Viewing) -> Markup:
    """What of the conversation is shown, and how that is changed."""
    return el(
        "nav",
        *_chips(seen),
        *_branches(agent, seen),
        _form(session, agent, seen),
        class_="filters",
        aria_label="What is shown",
    )


def _chips(seen: Viewing) -> Iterator[Markup]:
    view, links = seen.view, seen.links
    full = Amount.FULL
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
        aria_current=_true(is_chosen),
        data_deed=deed,
    )


def _branches(agent: Agent, seen: Viewing) -> Iterator[Markup]:
    """The conversation, and the ways that were left."""
    if not agent.branches:
        return
    links, chosen = seen.links, seen.view.branch
    yield el(
        "a",
        "Conversation",
        href=links.own(branch=None),
        class_="chip" if chosen else "chip chosen",
        aria_current=_true(chosen is None),
        data_branch="",
    )
    for number, branch in list(enumerate(agent.branches, 1))[:_BRANCHES]:
        yield el(
            "a",
            f"Branch {number}",
            href=links.own(branch=number),
            class_="chip chosen" if number == chosen else "chip",
            aria_current=_true(number == chosen),
            data_branch=number,
            title=f"{len(branch.entries):,} entries that were left",
        )
    if len(agent.branches) > _BRANCHES:
        yield el("span", f"and {len(agent.branches) - _BRANCHES} more where they were left", class_="aside")


def _form(session: Session, agent: Agent, seen: Viewing) -> Markup:
    """Kinds, tools and agents to choose; whatever else is chosen stays."""
    view = seen.view
    own = {"kind", "tool", "find"}
    hidden = [el("input", type="hidden", name_=key, value=value) for key, value in seen.links.query if key not in own]
    tools = list(tools_of(agent).items())[:_MANY]
    kind = "" if seen.focus or len(view.kinds) != 1 else view.kinds[0]
    return el(
        "form",
        *hidden,
        *carried_fields(),
        _select("kind", "Kind", [("", "all kinds"), *((word, word) for word in ALL_KINDS)], kind),
        _select(
            "tool",
            "Tool",
            [("", "all tools"), *((tool, f"{one(tool, 50)} ({many:,})") for tool, many in tools)],
            view.tools[0] if len(view.tools) == 1 else "",
        )
        if tools
        else EMPTY,
        el("button", "Show"),
        *_agents(session, seen),
        method="get",
        action=seen.links.page(agent=seen.agent, **dict.fromkeys(dict(seen.links.query))),
        class_="choose",
    )


def _select(key: str, label: str, choices: list[tuple[str, str]], chosen: str) -> Markup:
    options = [el("option", said, value=value, selected=value == chosen) for value, said in choices]
    return el("label", label, el("select", options, name_=key))


def _agents(session: Session, seen: Viewing) -> Iterator[Child]:
    """The agents, each a link to its page, folded."""
    found = [agent for agent in session.agents if agent.id is not None and (agent.side is None or seen.view.everything)]
    if not found:
        return
    rows = [
        el(
            "li",
            el(
                "a",
                one(name(agent), 80),
                href=seen.links.agent(agent.id) if agent.id is not None else None,
                aria_current="page" if agent.id is not None and named(agent.id) == seen.agent else None,
            ),
        )
        for agent in found[:_MANY]
    ]
    more = el("li", f"and {len(found) - _MANY:,} more where they stand") if len(found) > _MANY else EMPTY
    yield el("details", el("summary", f"Agents ({len(found):,})"), el("ul", rows, more), class_="agents-of")


def _true(is_so: bool) -> str | None:
    return "true" if is_so else None
