"""A link to an entry leads there, wherever in a session it stands, and the page stays there."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page
from tests.browser.paths import LONGEST, PICTURES
from tests.browser.probes import margin, settled, top
from tests.browser.visiting import Visitor

PATIENCE = 600
"""Milliseconds in which something late could still move the page."""


def anchors(visit: Visitor) -> list[str]:
    """Anchors of first items of sections all over the session, and of none at its ends."""
    shape = visit.served.json(f"{LONGEST}/shape.json")
    found = [str(section["first"]) for section in _sections(shape)]
    return [found[len(found) * part // 10] for part in range(1, 10)]


def _sections(shape: object) -> list[dict[str, object]]:
    sections = shape.get("sections") if isinstance(shape, dict) else shape
    assert isinstance(sections, list)
    return sections


def stands(page: Page, anchor: str) -> None:
    """The item is where a link to it should bring it, within two pixels, and stays there."""
    page.wait_for_selector(f'[id="{anchor}"]')
    page.wait_for_timeout(PATIENCE)
    settled(page)
    wanted = margin(page, anchor)
    first = top(page, anchor)
    assert abs(first - wanted) <= 2
    page.wait_for_timeout(PATIENCE)
    assert abs(top(page, anchor) - first) <= 0.5


@pytest.mark.parametrize("part", [0, 4, 8])
def test_a_link_leads_to_its_entry(visit: Visitor, part: int) -> None:
    """A page opened with an anchor begins at that entry, within two pixels, and does not move any more."""
    anchor = anchors(visit)[part]
    stands(visit(f"{LONGEST}?at={anchor}#{anchor}"), anchor)


@pytest.mark.smoke
def test_the_part_after_the_hash_is_enough(visit: Visitor) -> None:
    """The server does not see what follows the #: the script finds the entry all the same."""
    anchor = anchors(visit)[5]
    stands(visit(f"{LONGEST}#{anchor}"), anchor)


def test_another_link_of_the_same_page_leads_on(visit: Visitor) -> None:
    """Where the page is open already, another anchor in its address leads there; Back leads back."""
    first, second = anchors(visit)[2], anchors(visit)[7]
    page = visit(f"{LONGEST}#{first}")
    stands(page, first)
    page.evaluate("anchor => { location.hash = anchor; }", second)
    stands(page, second)
    page.go_back()
    stands(page, first)


def test_a_reload_comes_back_to_the_same_place(visit: Visitor) -> None:
    """What was seen at the top before a reload is seen there after it."""
    anchor = anchors(visit)[3]
    page = visit(f"{LONGEST}#{anchor}")
    stands(page, anchor)
    page.mouse.move(640, 500)
    page.mouse.wheel(0, 260)
    page.wait_for_timeout(PATIENCE)
    seen = page.evaluate(
        """() => [...document.querySelectorAll('article.item[aria-posinset]')]
          .map(one => ({id: one.id, top: one.getBoundingClientRect().top})).find(one => one.top > 100)"""
    )
    page.reload()
    page.wait_for_selector(f'[id="{seen["id"]}"]')
    page.wait_for_timeout(PATIENCE)
    assert abs(top(page, seen["id"]) - seen["top"]) <= 2


def test_pictures_that_come_late_move_nothing(visit: Visitor) -> None:
    """A link to an entry below pictures stays at its entry while they come."""
    shape = visit.served.json(f"{PICTURES}/shape.json")
    page = visit(PICTURES)
    anchor = page.locator("article.reply").nth(9).get_attribute("id")
    assert anchor
    assert _sections(shape)
    stands(visit(f"{PICTURES}#{anchor}"), anchor)


def test_an_anchor_that_is_not_there_is_passed_by(visit: Visitor) -> None:
    """A link to a line that the session does not have opens the session, without a complaint."""
    page = visit(f"{LONGEST}#L99999999")
    page.wait_for_selector("article.item")
    page.wait_for_timeout(PATIENCE)
