"""The reading position is kept when the view changes, and shown in the outline."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect
from tests.browser.paths import GROWING
from tests.browser.visitor import Visitor

_CURRENT = ".turns a[aria-current]"


def _wait_until_near_top(page: Page, anchor: str) -> None:
    """Wait until an item is near the top."""
    page.wait_for_function(
        "id => { const item = document.getElementById(id); if (item === null) return false;"
        " const { top } = item.getBoundingClientRect(); return top > 0 && top < 200; }",
        arg=anchor,
    )


def test_focus_mode_keeps_the_position(visit: Visitor) -> None:
    """From a call that focus mode hides, `f` leads to the prompt before it, and back again."""
    page = visit(f"{GROWING}?at=L40")
    page.wait_for_selector("article.current")
    page.wait_for_function(
        "() => [...document.querySelectorAll('article.call')].some((one) => Number(one.id.slice(1)) > 40)"
    )
    line = page.evaluate(
        "(() => { const all = [...document.querySelectorAll('article.call')];"
        " const item = all.find((one) => Number(one.id.slice(1)) > 40); item.focus(); return item.id; })()"
    )
    page.keyboard.press("f")
    page.wait_for_url(re.compile(r"[?&]focus=1"))
    prompt = page.evaluate(
        "line => [...document.querySelectorAll('article')].map((one) => one.id)"
        ".filter((id) => Number(id.slice(1)) < Number(line.slice(1))).at(-1)",
        line,
    )
    assert f"at={prompt}" in page.url
    _wait_until_near_top(page, prompt)
    page.wait_for_selector("article.current")
    page.keyboard.press("f")
    page.wait_for_url(re.compile(r"^(?!.*focus)"))
    _wait_until_near_top(page, prompt)


def test_the_outline_marks_the_current_turn(visit: Visitor) -> None:
    """At the end of a session, where nothing can be scrolled to the top, the turn is marked too."""
    page = visit(GROWING)
    page.keyboard.press("G")
    expect(page.locator(_CURRENT)).to_have_attribute("data-turn", "40")
    page.keyboard.press("K")
    page.keyboard.press("K")
    expect(page.locator(_CURRENT)).to_have_attribute("data-turn", "39")


def test_the_outline_marks_the_last_turn_at_the_bottom(visit: Visitor) -> None:
    """Scrolling to the end marks the last turn."""
    page = visit(GROWING)
    page.mouse.move(700, 500)
    for _ in range(6):
        page.mouse.wheel(0, 100_000)
        page.wait_for_timeout(150)
    expect(page.locator(_CURRENT)).to_have_attribute("data-turn", "40")


def test_the_buttons_move_to_the_hovered_item(visit: Visitor) -> None:
    """There is one bar for all items, and its buttons apply to the item that it is in."""
    page = visit(GROWING)
    items = page.locator("article.reply")
    for number in (1, 0):
        items.nth(number).hover()
        expect(items.nth(number).locator(".item-buttons")).to_be_visible()
    assert page.locator(".item-buttons").count() == 1
    page.locator(".item-buttons [data-action=raw]").click()
    page.wait_for_url(re.compile(rf"raw={items.first.get_attribute('id')}"))
