"""What stands beside the conversation is part of the address."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect
from tests.browser.paths import SHORT
from tests.browser.visiting import Visitor


def _at(page: Page, name: str, anchor: str) -> None:
    expect(page).to_have_url(re.compile(rf"[?&]{name}={anchor}\b"))
    expect(page.locator("aside.panel .panel-body")).not_to_be_empty()
    expect(page.locator("aside.panel")).to_be_visible()


@pytest.mark.parametrize(("key", "name"), [("r", "raw"), ("s", "state")])
def test_reload_and_back_restore_the_panel(visit: Visitor, key: str, name: str) -> None:
    """Opening it writes the address; a reload, and Back from another page, show it again; closing takes it away."""
    page = visit(f"{SHORT}#L2")
    page.wait_for_function("() => document.querySelector('article.current') !== null")
    page.keyboard.press(key)
    _at(page, name, "L2")
    page.reload()
    _at(page, name, "L2")
    page.get_by_role("link", name="own page").click()
    expect(page.locator("aside.panel")).to_have_count(0)
    page.go_back()
    _at(page, name, "L2")
    page.keyboard.press("Escape")
    expect(page.locator("aside.panel")).to_be_hidden()
    expect(page).not_to_have_url(re.compile(name))


def test_the_panel_stays_while_one_goes_elsewhere_in_the_page(visit: Visitor) -> None:
    """A link to another turn keeps what is beside, in the page and in the address."""
    page = visit(f"{SHORT}?state=L3")
    _at(page, "state", "L3")
    page.locator(".side a[data-turn]").last.click()
    expect(page).to_have_url(re.compile("#L"))
    _at(page, "state", "L3")
    page.go_back()
    _at(page, "state", "L3")


def test_without_a_script_there_is_a_link(visit: Visitor) -> None:
    """The same address leads to the page of its own."""
    page = visit(f"{SHORT}?raw=L2", javascript=False)
    page.get_by_role("link", name="Entry L2").click()
    expect(page.get_by_role("heading", name="Entry L2")).to_be_visible()
