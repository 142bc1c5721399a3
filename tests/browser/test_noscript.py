"""Without JavaScript every page is readable, and every part of a session can be reached."""

from __future__ import annotations

import re

import pytest
from tests.browser.paths import ALL, LONGEST, PICTURES, SHORT, fill_ids
from tests.browser.visitor import Visitor
from tests.profiles import scale_examples


@pytest.mark.parametrize("path", ALL.values(), ids=ALL.keys())
def test_a_page_is_readable_without_scripts(visit: Visitor, path: str) -> None:
    """Without scripts, a page has a visible heading, text and links."""
    page = visit(fill_ids(path, visit.server.home), javascript=False)
    assert page.locator("h1").first.is_visible()
    assert len(page.locator("main").inner_text()) > 20
    assert page.locator("a[href]").count() > 3


@pytest.mark.parametrize("path", [SHORT, PICTURES])
def test_a_short_session_is_complete(visit: Visitor, path: str) -> None:
    """All items of a short session are in its page."""
    page = visit(path, javascript=False)
    articles = page.locator("[role=feed] article[aria-posinset]")
    assert articles.count() == int(articles.first.get_attribute("aria-setsize") or 0) > 4
    assert page.locator(".unfilled").count() == 0


def test_every_part_of_a_long_session_is_a_link_away(visit: Visitor) -> None:
    """A section that is not filled is a link to the page with it filled."""
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


def test_a_link_to_an_entry_works(visit: Visitor) -> None:
    """A link from the page leads to its entry without scripts too."""
    sections = visit.server.json(f"{LONGEST}/shape.json")
    first = (sections["sections"] if isinstance(sections, dict) else sections)[40]["first"]
    page = visit(f"{LONGEST}?at={first}#{first}", javascript=False)
    box = page.locator(f'[id="{first}"]').bounding_box()
    assert box is not None
    assert -1 <= box["y"] < 200


def test_folds_open(visit: Visitor) -> None:
    """Folds open without scripts."""
    page = visit(SHORT, javascript=False)
    before = page.locator("[role=feed] details[open]").count()
    page.locator("[role=feed] details:not([open]) > summary").first.click()
    assert page.locator("[role=feed] details[open]").count() == before + 1


def test_forms_work(visit: Visitor) -> None:
    """The form sends the search."""
    page = visit("/search", javascript=False)
    box = page.locator("main input[name=q]")
    box.fill("answer")
    box.press("Enter")
    page.wait_for_url("**/search?*q=answer*")
    assert page.locator("main a[href*='/session/']").count() > 0
