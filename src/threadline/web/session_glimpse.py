"""A glimpse of a long session: its beginning, shown at once, while all of it is being read."""

from __future__ import annotations

from threadline.load import beginning
from threadline.render.html.drawing import Drawing
from threadline.render.html.element import EMPTY, el, join
from threadline.render.html.said import row_of_facts
from threadline.render.html.scene import Scene
from threadline.render.html.view import View
from threadline.render.html.words import one
from threadline.render.options import Agents
from threadline.web.addresses import escaped
from threadline.web.asked import Asked
from threadline.web.kept import Drawn, Kept
from threadline.web.linked import Linked
from threadline.web.page import Page
from threadline.web.session_feed import FILLED, Sight, feed
from threadline.web.session_side import side
from threadline.web.session_tools import TOOLS
from threadline.web.where import Where

LONG = 6 * 1024 * 1024
"""Bytes of a main transcript that are read in a moment."""
_MOST, _MANY = 1024 * 1024, 1000
_ELSE = frozenset({"find", "tz", "raw", "state"})


def glimpse(asked: Asked) -> Page | None:
    """The beginning of a session that is long and not yet read; None where the whole is at hand, or more is wanted.

    Whatever asks for a place or for less than everything has to wait: only the whole tells.
    """
    if "agent" in asked.named or any(name not in _ELSE for name, value in asked.query if value):
        return None
    place = asked.shelf.unread(asked.named["session"], asked.archive, LONG)
    if place is None:
        return None
    session = beginning(place.path, most=_MOST, many=_MANY)
    # Agents were not read, and to say that none was kept would be wrong.
    links = Linked(place.id)
    kept = Kept(place.id, session, "", 0)
    scene = Scene(View(agents=Agents.NONE), links, cwd=kept.facts.project or "", zone=asked.zone())
    drawing = Drawing(session, session.main, scene)
    if not drawing.sections:
        return None
    drawn = Drawn(drawing, Where(drawing))
    asked.shelf.begin(place)
    title = one(asked.archive.titles([place.id]).get(place.id) or session.title.text, 200) or "(no title)"
    whole = links.page(whole=True)
    facts = (kept.facts.project, scene.told(kept.facts.started) if kept.facts.started else None)
    head = el(
        "header",
        el("h1", title),
        row_of_facts(one(fact, 120) for fact in facts if fact),
        el("p", "The rest of this session is being read. ", el("a", "Wait for it", href=whole), class_="reading"),
        class_="head",
    )
    seen = Sight(1, range(1, FILLED + 1), 1)
    body = el(
        "div",
        side(kept, session.main, links, 0, None),
        feed(drawn, seen, links, partial=True),
        el("nav", EMPTY, class_="along", aria_label="Map of the conversation"),
        class_="session",
    )
    return Page(
        title=title,
        kind="session",
        main=join((head, body)),
        after=TOOLS,
        attributes={"data_session": escaped(place.id), "data_partial": "1", "data_version": ""},
    )
