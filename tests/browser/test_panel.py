"""The panel beside the conversation is part of the URL."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect
from tests.browser.paths import LONGEST, SHORT
from tests.browser.probes import rectangle_at_rest
from tests.browser.visitor import Visitor


def _check_panel(page: Page, name: str, anchor: str) -> None:
    expect(page).to_have_url(re.compile(rf"[?&]{name}={anchor}\b"))
    expect(page.locator("aside.panel .panel-body")).not_to_be_empty()
    expect(page.locator("aside.panel")).to_be_visible()


@pytest.mark.parametrize(("key", "name"), [("r", "raw"), ("s", "state")])
def test_reload_and_back_restore_the_panel(visit: Visitor, key: str, name: str) -> None:
    """Opening the panel changes the URL. A reload and Back restore it, and closing removes it."""
    page = visit(f"{SHORT}#L2")
    page.wait_for_function("() => document.querySelector('article.current') !== null")
    page.keyboard.press(key)
    _check_panel(page, name, "L2")
    page.reload()
    _check_panel(page, name, "L2")
    page.get_by_role("link", name="Open as page").click()
    expect(page.locator("aside.panel")).to_have_count(0)
    page.go_back()
    _check_panel(page, name, "L2")
    page.keyboard.press("Escape")
    expect(page.locator("aside.panel")).to_be_hidden()
    expect(page).not_to_have_url(re.compile(name))


def test_the_panel_stays_while_moving_in_the_page(visit: Visitor) -> None:
    """A link to another turn keeps the panel, on the page and in the URL."""
    page = visit(f"{SHORT}?state=L3", width=1700)
    _check_panel(page, "state", "L3")
    page.locator(".side a[data-turn]").last.click()
    expect(page).to_have_url(re.compile("#L"))
    _check_panel(page, "state", "L3")
    page.go_back()
    _check_panel(page, "state", "L3")


def test_opening_the_panel_does_not_move_the_entry(visit: Visitor) -> None:
    """If the turns make room for the panel, its entry keeps its position and stays readable."""
    page = visit(LONGEST)
    page.wait_for_selector("main:not([data-partial])")  # replacing the preview moves entries
    for _ in range(3):
        page.keyboard.press("J")
        page.wait_for_timeout(150)
    before = rectangle_at_rest(page, "article.current")
    page.keyboard.press("s")
    expect(page.locator("aside.panel .panel-body")).not_to_be_empty()
    after, panel = rectangle_at_rest(page, "article.current"), rectangle_at_rest(page, "aside.panel")
    assert abs(after["y"] - before["y"]) <= 2
    assert after["x"] + after["width"] <= panel["x"]


def test_the_panel_is_a_link_without_scripts(visit: Visitor) -> None:
    """The same URL has a link to the separate page."""
    page = visit(f"{SHORT}?raw=L2", javascript=False)
    page.get_by_role("link", name="Entry L2").click()
    expect(page.get_by_role("heading", name="Entry L2")).to_be_visible()
