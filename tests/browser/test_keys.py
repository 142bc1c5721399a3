"""Every key of the table does what it says."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect
from tests.browser.paths import GROWING, LONGEST, SHORT
from tests.browser.probes import scroll_position, wait_until_filled
from tests.browser.visitor import Visitor

from threadline.web import KEYS

Check = Callable[[Visitor], None]
CHECKS: dict[str, Check] = {}
FOCUSED = "document.activeElement?.closest('article')"


def checks(*names: str) -> Callable[[Check], Check]:
    """Register a function as the check of some keys."""

    def register(check: Check) -> Check:
        CHECKS.update(dict.fromkeys(names, check))
        return check

    return register


def focused_position(page: Page) -> int:
    """The position of the focused item among all, or 0."""
    return int(page.evaluate(f"Number({FOCUSED}?.ariaPosInSet ?? 0)"))


def wait_for_focus(page: Page, number: int) -> None:
    """Wait until the item at that position has the focus."""
    page.wait_for_function(f"number => {FOCUSED}?.ariaPosInSet === String(number)", arg=number)


def clipboard(page: Page, message: str) -> str:
    """The clipboard once the page has reported the copy."""
    expect(page.locator("p.status")).to_contain_text(message)
    return str(page.evaluate("navigator.clipboard.readText()"))


@pytest.mark.parametrize("name", [key.name for key in KEYS])
def test_a_key_does_what_the_table_says(visit: Visitor, name: str) -> None:
    """Each action in the table is done by its key."""
    CHECKS[name](visit)


def test_every_key_has_a_check() -> None:
    """The checks here are exactly those of the table."""
    assert set(CHECKS) == {key.name for key in KEYS}


@checks("next-item", "previous-item")
def step(visit: Visitor) -> None:
    """The focus moves from item to item, across sections that were empty."""
    page = visit(LONGEST)
    page.keyboard.press("j")
    wait_for_focus(page, 1)
    page.keyboard.press("j")
    wait_for_focus(page, 2)
    page.keyboard.press("k")
    wait_for_focus(page, 1)
    for _ in range(150):
        page.keyboard.press("j")
    wait_for_focus(page, 151)
    assert page.evaluate(f"{FOCUSED}.getBoundingClientRect().top < innerHeight")


@checks("next-turn", "previous-turn")
def turn(visit: Visitor) -> None:
    """The focus moves from turn to turn."""
    page = visit(GROWING)
    page.keyboard.press("j")
    wait_for_focus(page, 1)
    for number in (2, 3):
        page.keyboard.press("J")
        page.wait_for_function(f"said => {FOCUSED}?.innerText.includes(said)", arg=f"Question {number}")
    page.keyboard.press("K")
    page.wait_for_function(f"() => {FOCUSED}?.innerText.includes('Question 2')")


@checks("start", "end")
def ends(visit: Visitor) -> None:
    """To the last item, and back to the first."""
    page = visit(LONGEST)
    page.keyboard.press("G")
    page.wait_for_function(f"() => {FOCUSED} && {FOCUSED}.ariaPosInSet === {FOCUSED}.ariaSetSize")
    wait_until_filled(page)
    assert focused_position(page) > 1000
    page.keyboard.press("g")
    page.keyboard.press("g")
    wait_for_focus(page, 1)
    assert scroll_position(page) == 0


@checks("find")
def find(visit: Visitor) -> None:
    """In a session the find box opens. Elsewhere the search box gets the focus."""
    page = visit(SHORT)
    page.keyboard.press("/")
    expect(page.locator("form.find input")).to_be_focused()
    page = visit("/usage")
    page.keyboard.press("/")
    expect(page.locator("input[name=q]").first).to_be_focused()
    assert page.evaluate("document.activeElement.value") == ""


@checks("find-in-session")
def find_in_session(visit: Visitor) -> None:
    """The find box opens."""
    page = visit(SHORT)
    page.keyboard.press("Control+f")
    expect(page.locator("form.find input")).to_be_focused()


@checks("next-find", "previous-find")
def next_match(visit: Visitor) -> None:
    """From match to match, and back."""
    page = visit(GROWING)
    page.keyboard.press("/")
    page.keyboard.type("Answer 1")
    page.keyboard.press("Enter")
    count = page.locator("form.find output")
    expect(count).to_have_text("1 of 11")
    page.keyboard.press("n")
    expect(count).to_have_text("2 of 11")
    page.keyboard.press("N")
    expect(count).to_have_text("1 of 11")
    page.keyboard.press("N")
    expect(count).to_have_text("11 of 11")
    page.keyboard.press("Escape")
    expect(page.locator("form.find")).to_be_hidden()
    page.keyboard.press("n")
    expect(count).to_have_text("1 of 11")


def check_toggle(visit: Visitor, key: str, query: str) -> None:
    """A key adds a parameter to the URL, and removes it again."""
    page = visit(LONGEST)
    page.keyboard.press(key)
    page.wait_for_url(re.compile(rf"[?&]{query}\b"))
    page.wait_for_selector("article.item")
    page.keyboard.press(key)
    page.wait_for_url(lambda address: query not in address)
    page.wait_for_selector("article.item")


@checks("errors")
def errors(visit: Visitor) -> None:
    """Only failed calls."""
    check_toggle(visit, "e", "errors=1")


@checks("thinking")
def thinking(visit: Visitor) -> None:
    """All thinking open."""
    check_toggle(visit, "t", "thinking=full")


@checks("calls")
def calls(visit: Visitor) -> None:
    """All calls open."""
    check_toggle(visit, "c", "calls=full")


@checks("focus")
def focus(visit: Visitor) -> None:
    """Only prompts and replies."""
    check_toggle(visit, "f", "focus=1")


@checks("branches")
def branches(visit: Visitor) -> None:
    """The next branch."""
    page = visit(LONGEST)
    count = int(page.locator("main").get_attribute("data-branches") or 0)
    assert count > 0
    page.keyboard.press("b")
    page.wait_for_url(re.compile(r"[?&]branch=1\b"))
    page.wait_for_selector("article.item")


@checks("fold")
def fold(visit: Visitor) -> None:
    """Folds open and close."""
    page = visit(SHORT)
    item = page.locator("article.call").first
    item.focus()
    for key, is_open in (("o", True), ("o", False), ("Enter", True)):
        page.keyboard.press(key)
        assert item.locator("details").first.evaluate("fold => fold.open") is is_open


def check_panel(visit: Visitor, key: str) -> Page:
    """A key opens the right panel for the focused item, and closes it."""
    page = visit(SHORT)
    page.locator("article.prompt").first.focus()
    page.keyboard.press(key)
    panel = page.locator("aside.panel")
    expect(panel).to_be_visible()
    expect(panel.locator(".panel-body")).not_to_be_empty()
    page.keyboard.press(key)
    expect(panel).to_be_hidden()
    page.keyboard.press(key)
    expect(panel).to_be_visible()
    return page


@checks("raw")
def raw(visit: Visitor) -> None:
    """The JSON of the item."""
    page = check_panel(visit, "r")
    expect(page.locator("aside.panel")).to_contain_text("Please list the files")
    expect(page.locator("aside.panel")).to_contain_text("parentUuid")


@checks("state")
def state(visit: Visitor) -> None:
    """The state at the item."""
    page = check_panel(visit, "s")
    expect(page.locator("aside.panel")).to_contain_text("Files at")


@checks("context")
def context(visit: Visitor) -> None:
    """The panel shows what fills the context window."""
    page = check_panel(visit, "x")
    expect(page.locator("aside.panel")).to_contain_text("in the window")


@checks("left-panel")
def left(visit: Visitor) -> None:
    """The list of turns hides and shows."""
    page = visit(SHORT)
    expect(page.locator(".side")).to_be_visible()
    page.keyboard.press("[")
    expect(page.locator(".side")).to_be_hidden()
    page.keyboard.press("[")
    expect(page.locator(".side")).to_be_visible()


@checks("right-panel")
def right(visit: Visitor) -> None:
    """The panel hides and shows, with its content."""
    page = check_panel(visit, "]")
    expect(page.locator("aside.panel .panel-body")).not_to_be_empty()


@checks("copy-link")
def link(visit: Visitor) -> None:
    """The link leads to the item, also in another profile."""
    page = visit(LONGEST)
    page.keyboard.press("j")
    wait_for_focus(page, 1)
    page.keyboard.press("j")
    wait_for_focus(page, 2)
    anchor = page.evaluate(f"{FOCUSED}.id")
    page.keyboard.press("y")
    address = clipboard(page, "Link copied")
    assert address.endswith(f"#{anchor}")
    other = visit(address.removeprefix(visit.server.address))
    expect(other.locator(f'[id="{anchor}"]')).to_be_visible()


@checks("star")
def star(visit: Visitor) -> None:
    """The key stars the session, and removes the star."""
    page = visit(SHORT)
    button = page.locator("button.star").first
    page.keyboard.press("*")
    expect(button).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("*")
    expect(button).to_have_attribute("aria-pressed", "false")


@checks("copy-block")
def copy_block(visit: Visitor) -> None:
    """The first block of the current entry is copied."""
    page = visit(f"{LONGEST}?calls=full")
    block = page.locator(".feed article:has(pre:not(.numbers))").first
    block.focus()
    page.evaluate("id => location.replace(`#${id}`)", block.get_attribute("id"))
    page.keyboard.press("Y")
    assert clipboard(page, "Block copied")


@checks("copy-markdown")
def markdown(visit: Visitor) -> None:
    """The Markdown of the item."""
    page = visit(SHORT)
    page.locator("article.reply").filter(has_text="The largest is").focus()
    page.keyboard.press("m")
    assert "```python" in clipboard(page, "Markdown copied")


@checks("palette")
def palette(visit: Visitor) -> None:
    """A part of its title finds a session, even while the focus is in a box."""
    page = visit("/usage")
    page.keyboard.press("/")
    page.keyboard.press("Control+k")
    expect(page.locator("dialog.palette input")).to_be_focused()
    page.keyboard.type("a short session")
    option = page.locator("dialog.palette [role=option]").first
    expect(option).to_contain_text("A short session")
    expect(option).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{SHORT}*")
    page.wait_for_selector("article.item")


@checks("home", "sessions", "usage", "insight")
def go_to_pages(visit: Visitor) -> None:
    """The pages that have a key."""
    page = visit("/keys")
    for key, path in (("h", "/"), ("l", "/sessions"), ("u", "/usage"), ("i", "/why")):
        page.keyboard.press(key)
        page.wait_for_url(f"{visit.server.address}{path}")
        page.wait_for_load_state()


@checks("theme")
def theme(visit: Visitor) -> None:
    """First the other theme, then back, then the system's. The next page has the same."""
    page = visit(SHORT)
    root = page.locator("html")
    page.keyboard.press("d")
    expect(root).to_have_attribute("data-theme", "dark")
    page.keyboard.press("d")
    expect(root).to_have_attribute("data-theme", "light")
    visit.go(page, "/usage")
    expect(root).to_have_attribute("data-theme", "light")
    page.keyboard.press("d")
    assert root.get_attribute("data-theme") is None


@checks("help")
def help_dialog(visit: Visitor) -> None:
    """The table of keys, for this page."""
    page = visit(SHORT)
    page.keyboard.press("?")
    dialog = page.locator("dialog.help")
    expect(dialog).to_be_visible()
    for key in KEYS:
        expect(dialog).to_contain_text(key.what)
    page.keyboard.press("?")
    expect(dialog).to_be_hidden()


@checks("close")
def close(visit: Visitor) -> None:
    """What was opened last is closed first."""
    page = visit(SHORT)
    page.locator("article.prompt").first.focus()
    page.keyboard.press("r")
    expect(page.locator("aside.panel")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.press("Escape")
    expect(page.locator("form.find")).to_be_hidden()
    expect(page.locator("aside.panel")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("aside.panel")).to_be_hidden()


def test_typing_in_a_box_triggers_no_keys(visit: Visitor) -> None:
    """Letters typed into a box have no other effect."""
    page = visit(SHORT)
    page.keyboard.press("/")
    page.keyboard.type("jGhued?")
    expect(page.locator("form.find input")).to_have_value("jGhued?")
    assert SHORT in page.url
    expect(page.locator("dialog.help")).to_have_count(0)


@pytest.mark.smoke
def test_keys_move_through_the_rows_of_a_list(visit: Visitor) -> None:
    """In a list, j and k move from row to row, and o opens the focused one."""
    page = visit("/sessions")
    row = "document.activeElement?.closest('[data-item]')"
    page.keyboard.press("j")
    first = page.evaluate(f"{row}.innerText")
    page.keyboard.press("j")
    assert page.evaluate(f"{row}.innerText") != first
    page.keyboard.press("k")
    assert page.evaluate(f"{row}.innerText") == first
    page.keyboard.press("o")
    page.wait_for_url("**/session/*")


def test_a_feed_supports_the_aria_keys(visit: Visitor) -> None:
    """Page Down and Page Up move from item to item. Control with Home or End leaves the feed."""
    page = visit(GROWING)
    page.keyboard.press("j")
    wait_for_focus(page, 1)
    page.keyboard.press("PageDown")
    wait_for_focus(page, 2)
    page.keyboard.press("PageUp")
    wait_for_focus(page, 1)
    page.keyboard.press("Control+Home")
    assert not page.evaluate("document.querySelector('.feed').contains(document.activeElement)")
