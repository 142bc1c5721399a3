"""Standing: where an anchor leads: a place in the page that asks, or another page."""

from __future__ import annotations

from threadline.render.html.anchor import named, parted
from threadline.render.html.placed import placed
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
        return drawn.where.of(anchor, entry.line.number if is_own else 0)
    if name is None:
        return Elsewhere(seen.links.page(at=anchor))
    under = drawn.where.under(agent)
    if under is not None and len(placed(agent, seen.view.inside)) <= _INLINE:
        return Stand(under.section, entry_of(anchor), near=True)
    return Elsewhere(seen.links.page(at=anchor, agent=name, branch=None))
