"""Branching: the ways to what was left on branches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from markupsafe import Markup

from threadline.model.act import Turn
from threadline.model.agent import Agent
from threadline.model.entries import Entry
from threadline.render.figures import count
from threadline.render.html.element import EMPTY, Child, el
from threadline.render.left import left_turns
from threadline.render.text import leading
from threadline.web.viewing import Viewing

_FEW = 4


def is_beyond(agent: Agent, branch: int | None, entry: Entry) -> bool:
    """Whether an entry of no branch is not on the way to this one."""
    return branch is not None and all(one is not entry for one in leading(agent, branch=branch))


def left_note(agent: Agent, seen: Viewing) -> Markup:
    """That turns were left on branches, and the ways to them: without it a session that was rewound looks empty."""
    found = left_turns(agent)
    if not found:
        return EMPTY
    links, chosen = seen.links, seen.view.branch
    if chosen is not None:
        back = el("a", "Back to the conversation", href=links.own(branch=None))
        return el("p", f"This is branch {chosen}, which was left. ", back, class_="left-note")
    many = sum(map(len, found.values()))
    said = f"{many:,} {'turn is' if many == 1 else 'turns are'} not shown here: left by a rewind or an edit, on "
    more = len(found) - _FEW
    rest = f", and {count(more, 'more branch', 'more branches')}" if more > 0 else ""
    return el("p", said, *_ways(found, seen), rest, class_="left-note")


def _ways(found: Mapping[int, list[Turn]], seen: Viewing) -> Iterator[Child]:
    for at, (number, turns) in enumerate(list(found.items())[:_FEW]):
        first, last = turns[0].number, turns[-1].number
        which = f"turn {first:,}" if first == last else f"turns {first:,} to {last:,}"
        if at:
            yield ", "
        yield el("a", f"branch {number}", href=seen.links.own(branch=number))
        yield f" ({which})"
