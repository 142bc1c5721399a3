"""Every key of the table does what it says."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect
from tests.browser.paths import GROWING, LONGEST, SHORT
from tests.browser.probes import filled, scrolled
from tests.browser.visiting import Visitor

from threadline.web import KEYS

Try = Callable[[Visitor], None]
TRIES: dict[str, Try] = {}
FOCUSED = "document.activeElement?.closest('article')"


def tried(*names: str) -> Callable[[Try], Try]:
    """Mark what tries the keys of some names."""

    def marked(one: Try) -> Try:
        TRIES.update(dict.fromkeys(names, one))
        return one

    return marked


def place(page: Page) -> int:
    """Which item has the focus, by its place among all; 0 where none has."""
    return int(page.evaluate(f"Number({FOCUSED}?.ariaPosInSet ?? 0)"))


def stands_at(page: Page, number: int) -> None:
    """Wait until the item at that place has the focus."""
    page.wait_for_function(f"number => {FOCUSED}?.ariaPosInSet === String(number)", arg=number)


def copied(page: Page, said: str) -> str:
    """What is in the clipboard once the page has said so."""
    expect(page.locator("p.status")).to_contain_text(said)
    return str(page.evaluate("navigator.clipboard.readText()"))


@pytest.mark.parametrize("name", [key.name for key in KEYS])
def test_a_key_does_what_the_table_says(visit: Visitor, name: str) -> None:
    """Each deed of the table is done by its key."""
    TRIES[name](visit)


def test_the_table_has_every_key_that_is_tried() -> None:
    """What is tried here is what the table names, no less and no more."""
    assert set(TRIES) == {key.name for key in KEYS}


@tried("next-item", "previous-item")
def step(visit: Visitor) -> None:
    """The focus goes from item to item, across sections that were empty."""
    page = visit(LONGEST)
    page.keyboard.press("j")
    stands_at(page, 1)
    page.keyboard.press("j")
    stands_at(page, 2)
    page.keyboard.press("k")
    stands_at(page, 1)
    for _ in range(150):
        page.keyboard.press("j")
    stands_at(page, 151)
    assert page.evaluate(f"{FOCUSED}.getBoundingClientRect().top < innerHeight")


@tried("next-turn", "previous-turn")
def turn(visit: Visitor) -> None:
    """The focus goes from turn to turn."""
    page = visit(GROWING)
    page.keyboard.press("j")
    stands_at(page, 1)
    for number in (2, 3):
        page.keyboard.press("J")
        page.wait_for_function(f"said => {FOCUSED}?.innerText.includes(said)", arg=f"Question {number}")
    page.keyboard.press("K")
    page.wait_for_function(f"() => {FOCUSED}?.innerText.includes('Question 2')")


@tried("start", "end")
def ends(visit: Visitor) -> None:
    """To the last item of all, and back to the first."""
    page = visit(LONGEST)
    page.keyboard.press("G")
    page.wait_for_function(f"() => {FOCUSED} && {FOCUSED}.ariaPosInSet === {FOCUSED}.ariaSetSize")
    filled(page)
    assert place(page) > 1000
    page.keyboard.press("g")
    page.keyboard.press("g")
    stands_at(page, 1)
    assert scrolled(page) == 0


@tried("find")
def find(visit: Visitor) -> None:
    """In a session a box for it opens; elsewhere the search box has the focus."""
    page = visit(SHORT)
    page.keyboard.press("/")
    expect(page.locator("form.find input")).to_be_focused()
    page = visit("/usage")
    page.keyboard.press("/")
    expect(page.locator("input[name=q]").first).to_be_focused()
    assert page.evaluate("document.activeElement.value") == ""


@tried("next-find", "previous-find")
def found(visit: Visitor) -> None:
    """From hit to hit, and back."""
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


def turned(visit: Visitor, key: str, query: str) -> None:
    """A key puts something into the address, and takes it out again."""
    page = visit(LONGEST)
    page.keyboard.press(key)
    page.wait_for_url(re.compile(rf"[?&]{query}\b"))
    page.wait_for_selector("article.item")
    page.keyboard.press(key)
    page.wait_for_url(lambda address: query not in address)
    page.wait_for_selector("article.item")


@tried("errors")
def errors(visit: Visitor) -> None:
    """Only what failed."""
    turned(visit, "e", "errors=1")


@tried("thinking")
def thinking(visit: Visitor) -> None:
    """All thinking open."""
    turned(visit, "t", "thinking=full")


@tried("calls")
def calls(visit: Visitor) -> None:
    """All calls open."""
    turned(visit, "c", "calls=full")


@tried("focus")
def focus(visit: Visitor) -> None:
    """Prompts and replies only."""
    turned(visit, "f", "focus=1")


@tried("branches")
def branches(visit: Visitor) -> None:
    """The next branch."""
    page = visit(LONGEST)
    many = int(page.locator("main").get_attribute("data-branches") or 0)
    assert many > 0
    page.keyboard.press("b")
    page.wait_for_url(re.compile(r"[?&]branch=1\b"))
    page.wait_for_selector("article.item")


@tried("fold")
def fold(visit: Visitor) -> None:
    """What is folded opens, and folds again."""
    page = visit(SHORT)
    item = page.locator("article.call").first
    item.focus()
    for key, is_open in (("o", True), ("o", False), ("Enter", True)):
        page.keyboard.press(key)
        assert item.locator("details").first.evaluate("fold => fold.open") is is_open


def beside(visit: Visitor, key: str) -> Page:
    """A key opens the panel at the right, about the item with the focus, and closes it."""
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


@tried("raw")
def raw(visit: Visitor) -> None:
    """The JSON of the item."""
    page = beside(visit, "r")
    expect(page.locator("aside.panel")).to_contain_text("Please list the files")
    expect(page.locator("aside.panel")).to_contain_text("parentUuid")


@tried("state")
def state(visit: Visitor) -> None:
    """How things stood."""
    page = beside(visit, "s")
    expect(page.locator("aside.panel")).to_contain_text("Files at")


@tried("left-panel")
def left(visit: Visitor) -> None:
    """The turns go and come."""
    page = visit(SHORT)
    expect(page.locator(".side")).to_be_visible()
    page.keyboard.press("[")
    expect(page.locator(".side")).to_be_hidden()
    page.keyboard.press("[")
    expect(page.locator(".side")).to_be_visible()


@tried("right-panel")
def right(visit: Visitor) -> None:
    """The panel goes and comes, with what it had."""
    page = beside(visit, "]")
    expect(page.locator("aside.panel .panel-body")).not_to_be_empty()


@tried("copy-link")
def link(visit: Visitor) -> None:
    """The link leads to the item, even for somebody else."""
    page = visit(LONGEST)
    page.keyboard.press("j")
    stands_at(page, 1)
    page.keyboard.press("j")
    stands_at(page, 2)
    anchor = page.evaluate(f"{FOCUSED}.id")
    page.keyboard.press("y")
    address = copied(page, "Link copied")
    assert address.endswith(f"#{anchor}")
    other = visit(address.removeprefix(visit.served.address))
    expect(other.locator(f'[id="{anchor}"]')).to_be_visible()


@tried("copy-markdown")
def markdown(visit: Visitor) -> None:
    """The item as it was written."""
    page = visit(SHORT)
    page.locator("article.reply").filter(has_text="The largest is").focus()
    page.keyboard.press("m")
    assert "```python" in copied(page, "Markdown copied")


@tried("palette")
def palette(visit: Visitor) -> None:
    """A few letters of its title lead to a session, even while something is written."""
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


@tried("home", "sessions", "usage")
def places(visit: Visitor) -> None:
    """The pages that have a key."""
    page = visit("/keys")
    for key, path in (("h", "/"), ("l", "/sessions"), ("u", "/usage")):
        page.keyboard.press(key)
        page.wait_for_url(f"{visit.served.address}{path}")
        page.wait_for_load_state()


@tried("theme")
def theme(visit: Visitor) -> None:
    """First the one that is not seen, then the other, then as the system has it; and the next page has the same."""
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


@tried("help")
def shown(visit: Visitor) -> None:
    """The table, for this page."""
    page = visit(SHORT)
    page.keyboard.press("?")
    dialog = page.locator("dialog.help")
    expect(dialog).to_be_visible()
    for key in KEYS:
        expect(dialog).to_contain_text(key.what)
    page.keyboard.press("?")
    expect(dialog).to_be_hidden()


@tried("close")
def close(visit: Visitor) -> None:
    """What was opened last goes first."""
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


def test_what_is_typed_is_no_key(visit: Visitor) -> None:
    """Letters that are typed into a box do nothing else."""
    page = visit(SHORT)
    page.keyboard.press("/")
    page.keyboard.type("jGhued?")
    expect(page.locator("form.find input")).to_have_value("jGhued?")
    assert SHORT in page.url
    expect(page.locator("dialog.help")).to_have_count(0)


@pytest.mark.smoke
def test_rows_of_a_list_are_gone_through(visit: Visitor) -> None:
    """In a list, j and k go from row to row, and o opens the one with the focus."""
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


def test_a_feed_has_the_keys_of_feeds(visit: Visitor) -> None:
    """Page Down and Page Up go from item to item while one has the focus; with Control, End leaves them all."""
    page = visit(GROWING)
    page.keyboard.press("j")
    stands_at(page, 1)
    page.keyboard.press("PageDown")
    stands_at(page, 2)
    page.keyboard.press("PageUp")
    stands_at(page, 1)
    page.keyboard.press("Control+Home")
    assert not page.evaluate("document.querySelector('.feed').contains(document.activeElement)")
