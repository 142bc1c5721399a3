"""Standing: where an anchor leads: a place in the page that asks, or another page."""

from __future__ import annotations

from threadline.model.agent import Agent
from threadline.model.entries import Entry
from threadline.render.html.anchor import named, parted
from threadline.render.html.placed import placed
from threadline.render.left import branch_of, branches_of
from threadline.web.branching import is_beyond
from threadline.web.kept import Drawn, Kept
from threadline.web.linked import entry_of
from threadline.web.page import Elsewhere
from threadline.web.viewing import Viewing
from threadline.web.where import Stand

_INLINE = 30
"""How many items an agent may have to be drawn in its place; see `Drawing`."""


def stand_of(kept: Kept, seen: Viewing, drawn: Drawn, anchor: str) -> Stand | Elsewhere | None:
    """Where an anchor leads; None where the page shows nothing at all.

    Raises:
        NotFound: there is no such entry.
    """
    entry, agent = kept.entry(anchor)
    name = named(agent.id) if agent.id is not None else None
    if name == seen.agent:
        is_own = parted(entry_of(anchor)) == (name, entry.line.number)  # rows of other files have lines of their own
        stand = drawn.where.of(anchor, entry.line.number if is_own else 0)
        if stand is None or stand.near:
            return _on_other_branch(agent, seen, entry, anchor) or stand
        return stand
    if name is None:
        return Elsewhere(seen.links.page(at=anchor))
    under = drawn.where.under(agent)
    if under is not None and len(placed(agent, seen.view.inside)) <= _INLINE:
        return Stand(under.section, entry_of(anchor), near=True)
    return Elsewhere(seen.links.page(at=anchor, agent=name, branch=None))


def _on_other_branch(agent: Agent, seen: Viewing, entry: Entry, anchor: str) -> Elsewhere | None:
    """The page of the branch that holds what this one does not show; of the conversation, where none does."""
    holds = branch_of(branches_of(agent), entry)
    if holds == seen.view.branch or (holds is None and not is_beyond(agent, seen.view.branch, entry)):
        return None
    return Elsewhere(seen.links.own(at=anchor, branch=holds, thread=None), branch=holds)
