"""The palette: sessions and pages by a part of their name, for the box that Ctrl K opens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from threadline.model.zone import in_zone
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
_PAGES: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("Home", addresses.HOME, {}),
    ("Sessions", addresses.SESSIONS, {}),
    ("Search", addresses.SEARCH, {}),
    ("Usage", addresses.USAGE, {}),
    ("Usage by model", addresses.USAGE, {"by": "model"}),
    ("Usage by project", addresses.USAGE, {"by": "project"}),
    ("Calls", addresses.CALLS, {}),
    ("Calls that failed", addresses.CALLS, {"outcome": "error"}),
    ("Files", addresses.FILES, {}),
    ("Doctor", addresses.DOCTOR, {}),
    ("Keys", addresses.KEYS, {}),
)


class Offer(Struct, frozen=True):
    """A place to go to."""

    title: str
    address: str
    detail: str = ""


def palette(asked: Asked) -> Page:
    """What fits what was typed: pages, then sessions, then a search for it.

    Of both, those whose title begins with it come first, then those in whose title a word does; of sessions that are
    alike in that, the newest.
    """
    typed = (asked.text("q") or "").strip()
    offers = list(_offers(asked, typed))
    rows = [el("li", el("a", each.title, href=each.address), " ", each.detail, data_item=True) for each in offers]
    return Page("Go to", "palette", join((el("h1", "Go to"), el("ul", rows))), offers)


def _offers(asked: Asked, typed: str) -> Iterator[Offer]:
    words = typed.casefold().split()
    pages = [page for page in _PAGES if all(word in page[0].casefold() for word in words)]
    for title, path, query in sorted(pages, key=lambda page: _rank(page[0], words)):
        yield Offer(title, addresses.address(path, **query), "page")
    here = asked.zone()
    fitting = [each for each in every_session(asked.archive) if _fits(each, words)]
    for each in sorted(fitting, key=lambda each: _rank(each.title, words))[:_SHOWN]:
        day = moment(in_zone(each.last, here))[:10] if each.last is not None else "no time told"
        title = one(each.title, 120) or "(no title)"
        yield Offer(title, addresses.session(each.name), f"{day} · {one(each.project, 60)}")
    if typed:
        yield Offer(f"Search for {one(typed, 60)}", addresses.address(addresses.SEARCH, q=typed), "all sessions")


def _fits(each: Brief, words: list[str]) -> bool:
    """Whether every word stands in its title or project, or begins its id."""
    told = f"{each.title}\n{each.project}".casefold()
    return all(word in told or each.name.startswith(word) for word in words)


def _rank(title: str, words: list[str]) -> int:
    """0 for a title that begins with what was typed, 1 for one with words that do, 2 for any other."""
    told = title.casefold().split()
    if " ".join(told).startswith(" ".join(words)):
        return 0
    return 1 if all(any(one_.startswith(word) for one_ in told) for word in words) else 2
