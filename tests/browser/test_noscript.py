"""Without JavaScript every page is readable, and every part of a session can be reached."""

from __future__ import annotations

import re

import pytest
from tests.browser.paths import ALL, LONGEST, PICTURES, SHORT, filled
from tests.browser.visiting import Visitor
from tests.profiles import scale_examples


@pytest.mark.parametrize("path", ALL.values(), ids=ALL.keys())
def test_a_page_is_readable_without_scripts(visit: Visitor, path: str) -> None:
    """With scripts off, a page has its heading and its text, which can be seen, and links that lead on."""
    page = visit(filled(path, visit.served.home), javascript=False)
    assert page.locator("h1").first.is_visible()
    assert len(page.locator("main").inner_text()) > 20
    assert page.locator("a[href]").count() > 3


@pytest.mark.parametrize("path", [SHORT, PICTURES])
def test_a_short_session_is_whole(visit: Visitor, path: str) -> None:
    """All items of a short session are in its page: none is left for a script to fetch."""
    page = visit(path, javascript=False)
    articles = page.locator("[role=feed] article[aria-posinset]")
    assert articles.count() == int(articles.first.get_attribute("aria-setsize") or 0) > 4
    assert page.locator(".unfilled").count() == 0


def test_every_part_of_a_long_session_is_a_link_away(visit: Visitor) -> None:
    """A part that is not filled is a link to the page with that part filled, its first entry there."""
    page = visit(LONGEST, javascript=False)
    unfilled = page.locator("a.unfilled")
    number = unfilled.count()
    assert number > scale_examples(100)
    link = unfilled.nth(number * 3 // 5)
    href = link.get_attribute("href") or ""
    anchor = href.partition("#")[2]
    assert re.fullmatch(r"L\d+(-\d+)?", anchor)
    link.click()
    page.wait_for_load_state()
    assert page.locator(f'[id="{anchor}"]').is_visible()


@pytest.mark.smoke
def test_a_link_to_an_entry_works(visit: Visitor) -> None:
    """A link as the page gives it out leads to its entry without scripts, too."""
    sections = visit.served.json(f"{LONGEST}/shape.json")
    first = (sections["sections"] if isinstance(sections, dict) else sections)[40]["first"]
    page = visit(f"{LONGEST}?at={first}#{first}", javascript=False)
    box = page.locator(f'[id="{first}"]').bounding_box()
    assert box is not None
    assert -1 <= box["y"] < 200


def test_folded_things_open(visit: Visitor) -> None:
    """What is folded opens without scripts."""
    page = visit(SHORT, javascript=False)
    before = page.locator("[role=feed] details[open]").count()
    page.locator("[role=feed] details:not([open]) > summary").first.click()
    assert page.locator("[role=feed] details[open]").count() == before + 1


def test_forms_work(visit: Visitor) -> None:
    """A search is sent by its form."""
    page = visit("/search", javascript=False)
    box = page.locator("main input[name=q]")
    box.fill("answer")
    box.press("Enter")
    page.wait_for_url("**/search?*q=answer*")
    assert page.locator("main a[href*='/session/']").count() > 0
