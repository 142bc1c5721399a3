"""The palette: sessions and pages by a part of their name, for the box that Ctrl K opens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from threadline.render.figures import moment
from threadline.render.html.element import el, join
from threadline.render.html.words import one
from threadline.web import addresses
from threadline.web.page import Page
from threadline.web.pages.listed import every_session

if TYPE_CHECKING:
    from threadline.index.briefs import Brief
    from threadline.web.asked import Asked

_SHOWN = 40
_PAGES = (
    ("Home", addresses.HOME),
    ("Sessions", addresses.SESSIONS),
    ("Search", addresses.SEARCH),
    ("Usage", addresses.USAGE),
    ("Usage by model", addresses.address(addresses.USAGE, by="model")),
    ("Usage by project", addresses.address(addresses.USAGE, by="project")),
    ("Calls", addresses.CALLS),
    ("Calls that failed", addresses.address(addresses.CALLS, outcome="error")),
    ("Files", addresses.FILES),
    ("Doctor", addresses.DOCTOR),
    ("Keys", addresses.KEYS),
)


class Offer(Struct, frozen=True):
    """A place to go to."""

    title: str
    address: str
    detail: str = ""


def palette(asked: Asked) -> Page:
    """What fits what was typed: pages, then sessions, the newest first, then a search for it."""
    typed = (asked.text("q") or "").strip()
    offers = list(_offers(asked, typed))
    rows = [el("li", el("a", each.title, href=each.address), " ", each.detail, data_item=True) for each in offers]
    return Page("Go to", "palette", join((el("h1", "Go to"), el("ul", rows))), offers)


def _offers(asked: Asked, typed: str) -> Iterator[Offer]:
    words = typed.casefold().split()
    for title, address in _PAGES:
        if all(word in title.casefold() for word in words):
            yield Offer(title, address, "page")
    shown = 0
    for each in every_session(asked.archive):
        if shown == _SHOWN:
            break
        if _fits(each, words):
            shown += 1
            title = one(each.title, 120) or "(no title)"
            detail = f"{moment(each.last)[:10]} · {one(each.project, 60)}"
            yield Offer(title, addresses.session(each.name), detail)
    if typed:
        yield Offer(f"Search for {one(typed, 60)}", addresses.address(addresses.SEARCH, q=typed), "all sessions")


def _fits(each: Brief, words: list[str]) -> bool:
    """Whether every word stands in its title or project, or begins its id."""
    told = f"{each.title}\n{each.project}".casefold()
    return all(word in told or each.name.startswith(word) for word in words)
