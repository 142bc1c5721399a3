"""A session that is being written grows on the page."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.browser import homes
from tests.browser.paths import GROWING
from tests.browser.visitor import Visitor
from tests.transcripts import Pen, Row, line, prompt, reply

_NUMBERS = count()
"""Numbers of replies: every test of a worker appends to the same file."""
_SET_HIDDEN = """isHidden => {
  Object.defineProperty(document, 'hidden', {value: isHidden, configurable: true});
  document.dispatchEvent(new Event('visibilitychange'));
}"""


@pytest.fixture
def append_reply(visit: Visitor) -> Writer:
    """Appends replies to the growing session."""
    (path,) = visit.server.home.glob(f"projects/*/{homes.GROWING}.jsonl")
    return Writer(path)


class Writer:
    """Appends to a transcript like Claude Code: one line at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __call__(self, text: str) -> None:
        """Append a reply to the last entry."""
        self._append(reply(text))

    def prompt(self, text: str) -> None:
        """Append a prompt to the last entry."""
        self._append(prompt(text))

    @contextmanager
    def undone(self) -> Iterator[None]:
        """Remove at the end what is appended meanwhile."""
        size = self._path.stat().st_size
        try:
            yield
        finally:
            os.truncate(self._path, size)

    def _append(self, step: Callable[[Pen], Iterator[Row]]) -> None:
        last = json.loads(self._path.read_bytes().splitlines()[-1])
        pen = _new_pen(next(_NUMBERS))
        pen.parent = last["uuid"]
        with self._path.open("ab") as file:
            file.write(line(next(step(pen))))


def _new_pen(number: int) -> Pen:
    """A pen whose rows have unused ids."""
    pen = Pen(homes.GROWING)
    for _ in range(1000 + 2 * number):
        pen.number()
    return pen


def is_at_end(page: Page) -> bool:
    """Whether the page is scrolled to the bottom."""
    root = "document.documentElement"
    return bool(page.evaluate(f"{root}.scrollHeight - {root}.clientHeight - scrollY <= 1"))


def go_to_end(page: Page) -> None:
    """Go to the end, and wait for it."""
    page.keyboard.press("G")
    page.wait_for_function("() => document.activeElement?.closest('article')")
    page.wait_for_timeout(200)
    assert is_at_end(page)


def wait_for_live_updates(page: Page) -> None:
    """Wait until the page listens for changes."""
    page.wait_for_function(
        "() => performance.getEntriesByType('resource').some(one => one.name.includes('/shape.json'))"
    )


@pytest.mark.smoke
def test_a_line_appears_without_a_reload(visit: Visitor, append_reply: Writer) -> None:
    """At the end of the page, new entries are shown, and the page stays at the end."""
    page = visit(GROWING)
    page.evaluate("window.stayed = true")
    wait_for_live_updates(page)
    go_to_end(page)
    for number in range(3):
        append_reply(f"Something new, {number}.\n\n" + "It has some length. " * 40)
        item = page.get_by_text(f"Something new, {number}.")
        expect(item).to_be_in_viewport()
        page.wait_for_function(
            "() => document.documentElement.scrollHeight - document.documentElement.clientHeight - scrollY <= 1"
        )
    assert page.evaluate("window.stayed")


def test_new_entries_do_not_move_the_page(visit: Visitor, append_reply: Writer) -> None:
    """Elsewhere the page does not move. A button shows the number of new entries and leads there."""
    page = visit(GROWING)
    wait_for_live_updates(page)
    page.mouse.move(640, 500)
    page.mouse.wheel(0, 900)
    page.wait_for_timeout(300)
    # What the reader sees, not `scrollY`: that changes with the height of what is above the window.
    anchor = page.evaluate("document.elementFromPoint(640, 400).closest('[id]').id")
    position = f"document.getElementById({anchor!r}).getBoundingClientRect().top"
    place = page.evaluate(position)
    append_reply("Unseen, the first.")
    button = page.locator("button.new")
    expect(button).to_have_text("1 new entry ↓")
    append_reply("Unseen, the second.")
    expect(button).to_have_text("2 new entries ↓")
    assert abs(page.evaluate(position) - place) < 1
    button.click()
    expect(page.get_by_text("Unseen, the second.")).to_be_in_viewport()
    expect(button).to_be_hidden()


def test_the_focus_stays_on_its_item(visit: Visitor, append_reply: Writer) -> None:
    """The changed section is rendered again, and the focused item keeps the focus."""
    page = visit(GROWING)
    wait_for_live_updates(page)
    go_to_end(page)
    anchor = page.evaluate("document.activeElement.id")
    append_reply("While somebody is here.")
    expect(page.get_by_text("While somebody is here.")).to_be_in_viewport()
    assert page.evaluate("document.activeElement.id") == anchor


def test_open_folds_stay_open(visit: Visitor, append_reply: Writer) -> None:
    """An open fold is still open after its section was rendered again."""
    page = visit(GROWING)
    wait_for_live_updates(page)
    go_to_end(page)
    fold = page.locator("article.call details").last
    fold.locator("summary").first.click()
    assert fold.evaluate("one => one.open")
    append_reply("One more, below the fold.")
    expect(page.get_by_text("One more, below the fold.")).to_have_count(1)
    assert page.locator("article.call details").last.evaluate("one => one.open")


def test_a_hidden_tab_catches_up(visit: Visitor, append_reply: Writer) -> None:
    """A hidden tab requests nothing. When it is shown again, it has the new entries."""
    page = visit(GROWING)
    wait_for_live_updates(page)
    go_to_end(page)
    page.evaluate(_SET_HIDDEN, True)
    append_reply("While nobody looked.")
    page.wait_for_timeout(1200)
    expect(page.get_by_text("While nobody looked.")).to_have_count(0)
    page.evaluate(_SET_HIDDEN, False)
    expect(page.get_by_text("While nobody looked.")).to_be_in_viewport()


def test_lists_follow_the_transcripts(visit: Visitor, append_reply: Writer) -> None:
    """D19: the list shows the last prompt of a growing session without a reload. The focus stays."""
    page = visit("/sessions")
    row = page.locator("tr, li").filter(has=page.locator(f'a[href="{GROWING}"]')).first
    row.get_by_role("link").first.focus()
    page.wait_for_timeout(1500)
    with append_reply.undone():  # other tests count the turns of this session
        append_reply.prompt("Typed while the list was open")
        expect(row).to_contain_text("Typed while the list was open")
        assert page.evaluate("document.activeElement.getAttribute('href')") == GROWING


def test_a_list_is_current_when_its_tab_is_shown_again(visit: Visitor, append_reply: Writer) -> None:
    """A hidden tab does not listen. When it is shown again, it shows what was written meanwhile."""
    page = visit("/sessions")
    page.wait_for_timeout(1500)
    page.evaluate(_SET_HIDDEN, True)
    with append_reply.undone():
        append_reply.prompt("Typed while the tab was hidden")
        page.wait_for_timeout(1000)
        page.evaluate(_SET_HIDDEN, False)
        expect(page.locator("main")).to_contain_text("Typed while the tab was hidden")


def test_the_home_page_follows_the_transcripts(visit: Visitor, append_reply: Writer) -> None:
    """D19: the home page is updated when a session grows."""
    page = visit("/")
    expect(page.locator("progress")).to_have_count(0, timeout=20_000)  # then the page is loaded again
    page.wait_for_timeout(1500)
    with page.expect_response(f"{visit.server.address}/") as response:
        append_reply("Somewhere else.")
    assert response.value.ok


def test_the_header_and_the_map_are_updated(visit: Visitor, append_reply: Writer) -> None:
    """The figures and the map include new entries. The list of turns keeps its position."""
    page = visit(GROWING)
    wait_for_live_updates(page)
    tokens = page.locator("header.head .facts").nth(1).locator("span[title]").first
    before = tokens.get_attribute("title")
    items = page.locator(".usage-strip svg").get_attribute("data-items")
    turns = page.locator(".side .turns li").count()
    append_reply("Something that costs.")
    expect(tokens).not_to_have_attribute("title", before or "", timeout=15_000)
    expect(page.locator(".usage-strip svg")).to_have_attribute("data-items", str(int(items or 0) + 1))
    assert page.locator(".usage-strip rect.here").get_attribute("height") != "0"
    expect(page.locator("header.head").get_by_role("button", name="Resume")).to_be_visible()
    assert page.locator(".side .turns li").count() == turns
    assert page.locator(".side a[data-turn][aria-current]").count() == 1


def test_the_bar_at_the_top_counts_new_turns(visit: Visitor, append_reply: Writer) -> None:
    """The number of turns in the bar includes those that were added since the page was loaded."""
    page = visit(GROWING)
    wait_for_live_updates(page)
    turns = int(page.locator(".mini-head").get_attribute("data-turns") or 0)
    with append_reply.undone():
        append_reply.prompt("One more question.")
        expect(page.locator(".mini-head .mini-turn")).to_contain_text(f"of {turns + 1}", timeout=15_000)
