"""What axe-core, a keyboard and a screen reader need."""

from __future__ import annotations

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page
from tests.browser.paths import ALL, LONGEST, SHORT, filled
from tests.browser.probes import settled
from tests.browser.visiting import Visitor


def serious(page: Page, *rules: str) -> list[str]:
    """What axe-core finds that is serious or critical, by all rules or some: the rule, and where."""
    options = {"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})}
    found: Any = Axe().run(page, options=options).response["violations"]
    return [
        f"{one['id']}: {one['help']}: {'; '.join(node['html'][:160] for node in one['nodes'][:4])}"
        for one in found
        if one["impact"] in {"serious", "critical"}
    ]


@pytest.mark.parametrize("path", ALL.values(), ids=ALL.keys())
def test_axe_finds_nothing_serious(visit: Visitor, path: str) -> None:
    """axe-core finds nothing serious or critical on any page; and in the dark, no colours too near to each other."""
    page = visit(filled(path, visit.served.home))
    page.wait_for_selector("main:not([data-partial])")
    settled(page)
    assert serious(page) == []
    page.emulate_media(color_scheme="dark")
    settled(page)
    assert serious(page, "color-contrast") == []


@pytest.mark.parametrize("path", ["/", SHORT])
def test_axe_finds_nothing_serious_on_a_phone(visit: Visitor, path: str) -> None:
    """The same at the width of a phone."""
    page = visit(path, width=390, height=844)
    settled(page)
    assert serious(page) == []


def test_folded_things_open_to_nothing_serious(visit: Visitor) -> None:
    """The same where everything that is folded was opened."""
    page = visit(SHORT)
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    settled(page)
    assert serious(page) == []


@pytest.mark.smoke
def test_the_first_tab_leads_past_the_top(visit: Visitor) -> None:
    """The first thing that has the focus is a link to what the page says, and it can be seen then."""
    page = visit(SHORT)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('href')") == "#main"
    assert page.locator(":focus").is_visible()


def test_the_session_is_a_feed(visit: Visitor) -> None:
    """Entries are articles of a feed, each with its place in the whole, whatever part of it is filled."""
    page = visit(LONGEST)
    page.wait_for_selector("main:not([data-partial])")  # a preview has fewer entries
    articles = page.locator("[role=feed] article[aria-posinset]")
    sizes = {articles.nth(at).get_attribute("aria-setsize") for at in range(5)}
    assert len(sizes) == 1
    assert int(sizes.pop() or 0) > 10_000
    assert articles.first.get_attribute("aria-posinset") == "1"


def test_what_has_the_focus_keeps_it(visit: Visitor) -> None:
    """An entry that has the focus is still there, and still has it, however far one scrolls away and back."""
    page = visit(LONGEST)
    anchor = page.locator("article.item").nth(3).get_attribute("id")
    page.evaluate("id => document.getElementById(id).focus()", anchor)
    page.mouse.move(640, 500)
    for _ in range(40):
        page.mouse.wheel(0, 2_000)
        page.wait_for_timeout(15)
    page.wait_for_timeout(300)
    assert page.evaluate("document.activeElement.id") == anchor
