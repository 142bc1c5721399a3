"""A link to an entry leads there, wherever it is in a session, and the page stays there."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page
from tests.browser.paths import LONGEST, PICTURES
from tests.browser.probes import margin, top, wait_for_frame
from tests.browser.visitor import Visitor

SETTLE_MS = 600
"""How long to wait for late changes that could move the page."""


def anchors(visit: Visitor) -> list[str]:
    """Anchors of first items of sections throughout the session, not at its ends."""
    shape = visit.server.json(f"{LONGEST}/shape.json")
    first_anchors = [str(section["first"]) for section in _sections(shape)]
    return [first_anchors[len(first_anchors) * part // 10] for part in range(1, 10)]


def _sections(shape: object) -> list[dict[str, object]]:
    sections = shape.get("sections") if isinstance(shape, dict) else shape
    assert isinstance(sections, list)
    return sections


def check_position(page: Page, anchor: str) -> None:
    """Check that the item is where a link to it places it, within two pixels, and stays there."""
    page.wait_for_selector(f'[id="{anchor}"]')
    page.wait_for_timeout(SETTLE_MS)
    wait_for_frame(page)
    expected = margin(page, anchor)
    first = top(page, anchor)
    assert abs(first - expected) <= 2
    page.wait_for_timeout(SETTLE_MS)
    assert abs(top(page, anchor) - first) <= 0.5


@pytest.mark.parametrize("part", [0, 4, 8])
def test_a_link_leads_to_its_entry(visit: Visitor, part: int) -> None:
    """A page opened with an anchor starts at that entry, within two pixels, and does not move again."""
    anchor = anchors(visit)[part]
    check_position(visit(f"{LONGEST}?at={anchor}#{anchor}"), anchor)


def test_the_entries_around_a_link_are_not_loaded_again(visit: Visitor) -> None:
    """The page arrives with the entries that the server sent: none of them is emptied and requested again."""
    anchor = anchors(visit)[5]
    page = visit(f"{LONGEST}?at={anchor}#{anchor}")
    check_position(page, anchor)
    number = page.evaluate("anchor => document.getElementById(anchor).closest('.section').dataset.number", anchor)
    assert [url for url in visit.errors.requests if f"/part/{number}" in url.split("?")[0]] == []


def test_a_fragment_alone_leads_to_its_entry(visit: Visitor) -> None:
    """The server does not see the fragment, but the script finds the entry."""
    anchor = anchors(visit)[5]
    check_position(visit(f"{LONGEST}#{anchor}"), anchor)


def test_a_new_fragment_leads_to_its_entry(visit: Visitor) -> None:
    """On an open page, another fragment leads to its entry, and Back leads back."""
    first, second = anchors(visit)[2], anchors(visit)[7]
    page = visit(f"{LONGEST}#{first}")
    check_position(page, first)
    page.evaluate("anchor => { location.hash = anchor; }", second)
    check_position(page, second)
    page.go_back()
    check_position(page, first)


def test_a_reload_keeps_the_position(visit: Visitor) -> None:
    """The item at the top before a reload is there after it."""
    anchor = anchors(visit)[3]
    page = visit(f"{LONGEST}#{anchor}")
    check_position(page, anchor)
    page.mouse.move(640, 500)
    page.mouse.wheel(0, 260)
    page.wait_for_timeout(SETTLE_MS)
    item = page.evaluate(
        """() => [...document.querySelectorAll('article.item[aria-posinset]')]
          .map(one => ({id: one.id, top: one.getBoundingClientRect().top})).find(one => one.top > 100)"""
    )
    page.reload()
    page.wait_for_selector(f'[id="{item["id"]}"]')
    page.wait_for_timeout(SETTLE_MS)
    assert abs(top(page, item["id"]) - item["top"]) <= 2


def test_late_pictures_move_nothing(visit: Visitor) -> None:
    """A link to an entry below pictures stays at its entry while they load."""
    shape = visit.server.json(f"{PICTURES}/shape.json")
    page = visit(PICTURES)
    anchor = page.locator("article.reply").nth(9).get_attribute("id")
    assert anchor
    assert _sections(shape)
    check_position(visit(f"{PICTURES}#{anchor}"), anchor)


def test_an_unknown_anchor_is_ignored(visit: Visitor) -> None:
    """A link to a missing line opens the session without an error."""
    page = visit(f"{LONGEST}#L99999999")
    page.wait_for_selector("article.item")
    page.wait_for_timeout(SETTLE_MS)
