"""What pages show if a home, a session or its main transcript is gone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup
from msgspec.structs import replace

from threadline.errors import NotFound
from threadline.model.homes import TranscriptKind
from threadline.render import agent_slug, shorten, visible
from threadline.render.html import el, join
from threadline.web import urls
from threadline.web.request import Page, PageFunction, PageResult, Redirect

if TYPE_CHECKING:
    from threadline.web.request import PageRequest

_PAGES_WITHOUT_HOME = frozenset({urls.DOCTOR, urls.KEYS})
"""Pages that are right without a home, or say themselves that it is gone."""


def needs_homes(page: str) -> bool:
    """Whether the page at a path is about what lies in all homes."""
    return page not in _PAGES_WITHOUT_HOME and not page.startswith(f"{urls.SESSION}/")


def missing_homes_notice(homes: Sequence[Path], *, is_kept: bool) -> str:
    """What to say of homes that are lost."""
    named = ", ".join(repr(str(home)) for home in homes)
    begun = f"The home {named} is" if len(homes) == 1 else f"The homes {named} are"
    told = "only what the keep has of it is shown" if is_kept else "nothing of it is shown"
    return f"{begun} not there any more: {told if len(homes) == 1 else told.replace('of it', 'of them')}."


def gone_as_page(make: PageFunction) -> PageFunction:
    """What is made for a page that has shown the session (`seen=1`): that it is gone is an answer, and no error."""

    def made(asked: PageRequest) -> PageResult:
        try:
            return make(asked)
        except NotFound as error:
            if not asked.flag("seen"):
                raise
            said = "This session is not there any more; what is shown was read before."
            return Page("Gone", "gone", el("p", visible(str(error))), {"gone": said})

    return made


def with_notice(made: PageResult, said: str) -> PageResult:
    """A page with the sentence above all else that it says."""
    if not isinstance(made, Page):
        return made
    word: Markup = el("p", visible(said), class_="problem", role="status")
    return replace(made, main=join((word, made.main)))


def with_orphan_links(make: PageFunction) -> PageFunction:
    """What is made of a session; where it is not there, the way to the agents of it that are."""

    def made(asked: PageRequest) -> PageResult:
        try:
            return make(asked)
        except NotFound:
            found = _orphan_page(asked)
            if found is None:
                raise
            return found

    return made


def _orphan_page(asked: PageRequest) -> PageResult | None:
    session, agent = asked.named["session"].lower(), asked.named.get("agent")
    listed = [
        transcript for home in asked.archive.found for transcript in home.transcripts if transcript.session == session
    ]
    if any(each.kind is TranscriptKind.MAIN for each in listed):  # it is there: something else was not found
        return None
    agents = sorted({str(each.agent) for each in listed if each.agent is not None})
    if agent is not None:
        agents = [each for each in agents if agent_slug(each) == agent]
    if not agents:
        return None
    if len(agents) == 1:
        at = asked.text("at")
        line = at.removeprefix(f"{agent_slug(agents[0])}.") if at is not None else None
        return Redirect(urls.session_url(f"agent-{agents[0]}", at=line))
    ways = [(each, urls.session_url(f"agent-{each}")) for each in agents]
    said = "The transcript of this session is not there any more; what its agents wrote is."
    rows = el("ul", *(el("li", el("a", shorten(each, 80), href=way)) for each, way in ways))
    title = f"Session {shorten(session, 80)}"
    return Page(title, "left", join((el("h1", title), el("p", said), rows)), {"session": session, "agents": agents})
