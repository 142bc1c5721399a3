"""What axe-core, a keyboard and a screen reader need."""

from __future__ import annotations

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page
from tests.browser.paths import ALL, LONGEST, SHORT, fill_ids
from tests.browser.probes import wait_for_frame
from tests.browser.visitor import Visitor


def serious_violations(page: Page, *rules: str) -> list[str]:
    """The serious_violations and critical violations that axe-core finds, for all rules or some."""
    options = {"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})}
    violations: Any = Axe().run(page, options=options).response["violations"]
    return [
        f"{violation['id']}: {violation['help']}: {'; '.join(node['html'][:160] for node in violation['nodes'][:4])}"
        for violation in violations
        if violation["impact"] in {"serious", "critical"}
    ]


@pytest.mark.parametrize("path", ALL.values(), ids=ALL.keys())
def test_axe_finds_nothing_serious(visit: Visitor, path: str) -> None:
    """axe-core finds nothing serious or critical on any page, and enough contrast in dark mode."""
    page = visit(fill_ids(path, visit.server.home))
    page.wait_for_selector("main:not([data-partial])")
    wait_for_frame(page)
    assert serious_violations(page) == []
    page.emulate_media(color_scheme="dark")
    wait_for_frame(page)
    assert serious_violations(page, "color-contrast") == []


@pytest.mark.parametrize("path", ["/", SHORT])
def test_axe_finds_nothing_serious_on_a_phone(visit: Visitor, path: str) -> None:
    """The same at the width of a phone."""
    page = visit(path, width=390, height=844)
    wait_for_frame(page)
    assert serious_violations(page) == []


def test_axe_finds_nothing_serious_in_open_folds(visit: Visitor) -> None:
    """The same with all folds open."""
    page = visit(SHORT)
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    wait_for_frame(page)
    assert serious_violations(page) == []


@pytest.mark.smoke
def test_the_first_tab_focuses_the_skip_link(visit: Visitor) -> None:
    """The first focusable element is a visible link to the main content."""
    page = visit(SHORT)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('href')") == "#main"
    assert page.locator(":focus").is_visible()


def test_the_session_is_a_feed(visit: Visitor) -> None:
    """Entries are articles of a feed, each with its position among all entries, whatever is filled."""
    page = visit(LONGEST)
    page.wait_for_selector("main:not([data-partial])")  # a preview has fewer entries
    articles = page.locator("[role=feed] article[aria-posinset]")
    sizes = {articles.nth(at).get_attribute("aria-setsize") for at in range(5)}
    assert len(sizes) == 1
    assert int(sizes.pop() or 0) > 10_000
    assert articles.first.get_attribute("aria-posinset") == "1"


def test_the_focused_entry_keeps_the_focus(visit: Visitor) -> None:
    """A focused entry stays in the page with the focus, however far one scrolls."""
    page = visit(LONGEST)
    anchor = page.locator("article.item").nth(3).get_attribute("id")
    page.evaluate("id => document.getElementById(id).focus()", anchor)
    page.mouse.move(640, 500)
    for _ in range(40):
        page.mouse.wheel(0, 2_000)
        page.wait_for_timeout(15)
    page.wait_for_timeout(300)
    assert page.evaluate("document.activeElement.id") == anchor
