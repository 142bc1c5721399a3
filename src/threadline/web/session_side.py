"""The side of a session's page: the turns around a place, or the sessions of late."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from datetime import tzinfo
from typing import Any

from markupsafe import Markup

from threadline.archive import Standing
from threadline.model.act import Turn
from threadline.model.agent import Agent
from threadline.render.html.anchor import anchor
from threadline.render.html.element import EMPTY, el, join
from threadline.render.html.said import when
from threadline.render.html.words import one
from threadline.render.left import branch_of, branches_of
from threadline.survey.sessions import Wanted
from threadline.web import addresses
from threadline.web.kept import Kept
from threadline.web.linked import Linked

AROUND = 60
"""Turns that are listed before a place, and as many after it."""
_WORDS = 90
_SESSIONS = 40


def side(kept: Kept, agent: Agent, links: Linked, around: int, recent: Markup | None) -> Markup:
    """The side: turns, or what `recent` lists."""
    ways = el(
        "p",
        el("a", "Turns", href=links.own(side=None), class_="chip", aria_current="true" if recent is None else None),
        " ",
        el("a", "Sessions", href=links.own(side="sessions"), class_="chip", aria_current="true" if recent else None),
        class_="ways",
    )
    listed = turns(kept, agent, links, around) if recent is None else recent
    label = "Turns" if recent is None else "Sessions"
    return el("nav", el("details", el("summary", label), ways, listed, open=True), class_="side", aria_label=label)


def turns(kept: Kept, agent: Agent, links: Linked, around: int) -> Markup:
    """The turns around one, each with its first words; what is before and after is a link away."""
    every = [turn for turn in agent.turns if turn.act is not None]
    if not every:
        return el("p", "No turns.", class_="nothing")
    at = bisect_left([turn.number for turn in every], around)
    first, after = max(0, at - AROUND), at + AROUND + 1
    shown = every[first:after]
    before = _more(kept, links, every[first - AROUND : first] or every[:first], "Earlier") if first else EMPTY
    rest = every[after:]
    then = _more(kept, links, rest[:AROUND], "Later") if rest else EMPTY
    left = branches_of(agent)
    rows = [el("li", _turn(turn, agent, links, left, is_here=turn.number == around)) for turn in shown]
    return join((before, el("ol", rows, class_="turns", start=shown[0].number if shown else None), then))


def _more(kept: Kept, links: Linked, hidden: Sequence[Turn], word: str) -> Markup:
    middle = hidden[len(hidden) // 2].number
    fragment = links.below("turns", around=middle, agent=links.agent_name)
    page = links.own(turn=middle)
    del kept
    label = f"{word}: turns {hidden[0].number:,} to {hidden[-1].number:,}"
    return el("p", el("a", label, href=page, data_fragment=fragment), class_="more")


def _turn(turn: Turn, agent: Agent, links: Linked, left: Mapping[tuple[str, int], int], *, is_here: bool) -> Markup:
    act = turn.act
    branch = branch_of(left, act.entry) if act is not None else None
    text = one(act.text, _WORDS) if act is not None else ""
    where = anchor(act.entry, agent.id) if act is not None else ""
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
    left = branches_of(agent)
    for turn in agent.turns:
        if turn.act is not None:
            yield {
                "number": turn.number,
                "anchor": anchor(turn.act.entry, agent.id),
                "kind": str(turn.act.kind),
                "text": turn.act.text[:400],
                "started": turn.started,
                "branch": branch_of(left, turn.act.entry),
            }


def recent_sessions(archive: Standing, here: str, zone: tzinfo) -> Markup:
    """The sessions of late, to go to."""
    found = archive.sessions(Wanted(limit=_SESSIONS)).sessions
    rows = [
        el(
            "li",
            el(
                "a",
                el("span", one(row.title, _WORDS) or "(no title)", class_="words-of"),
                el("span", when(row.last, zone), class_="when"),
                href=addresses.session(str(row.id or row.path.stem), side="sessions"),
                aria_current="page" if str(row.id) == here else None,
            ),
        )
        for row in found
    ]
    return el("ol", rows, class_="recent")
