"""Orphans: agents whose session is not there any more; what leads to it or to them leads to what is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from threadline.errors import NotFound
from threadline.model.found import TranscriptKind
from threadline.render.html.anchor import named
from threadline.render.html.element import el, join
from threadline.render.html.words import one
from threadline.web import addresses
from threadline.web.page import Elsewhere, Made, Make, Page

if TYPE_CHECKING:
    from threadline.web.asked import Asked


def or_orphans(make: Make) -> Make:
    """What is made of a session; where it is not there, the way to the agents of it that are."""

    def made(asked: Asked) -> Made:
        try:
            return make(asked)
        except NotFound:
            found = _left(asked)
            if found is None:
                raise
            return found

    return made


def _left(asked: Asked) -> Made | None:
    session, agent = asked.named["session"].lower(), asked.named.get("agent")
    listed = [one for home in asked.archive.found for one in home.transcripts if one.session == session]
    if any(each.kind is TranscriptKind.MAIN for each in listed):  # it is there: something else was not found
        return None
    agents = sorted({str(each.agent) for each in listed if each.agent is not None})
    if agent is not None:
        agents = [each for each in agents if named(each) == agent]
    if not agents:
        return None
    if len(agents) == 1:
        at = asked.text("at")
        line = at.removeprefix(f"{named(agents[0])}.") if at is not None else None
        return Elsewhere(addresses.session(f"agent-{agents[0]}", at=line))
    ways = [(each, addresses.session(f"agent-{each}")) for each in agents]
    said = "The transcript of this session is not there any more; what its agents wrote is."
    rows = el("ul", *(el("li", el("a", one(each, 80), href=way)) for each, way in ways))
    title = f"Session {one(session, 80)}"
    return Page(title, "left", join((el("h1", title), el("p", said), rows)), {"session": session, "agents": agents})
