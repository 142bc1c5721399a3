"""A session that is written to grows on the page."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.browser import homes
from tests.browser.paths import GROWING
from tests.browser.visiting import Visitor
from tests.transcripts import Pen, line, reply

_NUMBERS = count()
"""Replies are numbered through: every test of a worker adds to the same file."""


@pytest.fixture
def written(visit: Visitor) -> Writer:
    """Writes replies into the session that grows."""
    (path,) = visit.served.home.glob(f"projects/*/{homes.GROWING}.jsonl")
    return Writer(path)


class Writer:
    """Appends to a transcript as Claude Code does: a line at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __call__(self, text: str) -> None:
        """One reply more, to what was said last."""
        last = json.loads(self._path.read_bytes().splitlines()[-1])
        pen = _later(next(_NUMBERS))
        pen.parent = last["uuid"]
        with self._path.open("ab") as file:
            file.write(line(next(reply(text)(pen))))


def _later(number: int) -> Pen:
    """A pen whose rows have ids that no row before has."""
    pen = Pen(homes.GROWING)
    for _ in range(1000 + 2 * number):
        pen.number()
    return pen


def is_at_end(page: Page) -> bool:
    """Whether the page cannot be scrolled down any more."""
    root = "document.documentElement"
    return bool(page.evaluate(f"{root}.scrollHeight - {root}.clientHeight - scrollY <= 1"))


def at_end(page: Page) -> None:
    """Go to the end, and wait for it."""
    page.keyboard.press("G")
    page.wait_for_function("() => document.activeElement?.closest('article')")
    page.wait_for_timeout(200)
    assert is_at_end(page)


def hears(page: Page) -> None:
    """Wait until the page would be told of a change."""
    page.wait_for_function(
        "() => performance.getEntriesByType('resource').some(one => one.name.includes('/shape.json'))"
    )


@pytest.mark.smoke
def test_a_line_appears_without_a_reload(visit: Visitor, written: Writer) -> None:
    """Who is at the end sees what is added, and stays at the end."""
    page = visit(GROWING)
    page.evaluate("window.stayed = true")
    hears(page)
    at_end(page)
    for number in range(3):
        written(f"Something new, {number}.\n\n" + "It has some length. " * 40)
        item = page.get_by_text(f"Something new, {number}.")
        expect(item).to_be_in_viewport()
        page.wait_for_function(
            "() => document.documentElement.scrollHeight - document.documentElement.clientHeight - scrollY <= 1"
        )
    assert page.evaluate("window.stayed")


def test_who_reads_elsewhere_is_not_disturbed(visit: Visitor, written: Writer) -> None:
    """Who is not at the end stays where they are, is told how many came, and can go there."""
    page = visit(GROWING)
    hears(page)
    page.mouse.move(640, 500)
    page.mouse.wheel(0, 900)
    page.wait_for_timeout(300)
    place = page.evaluate("scrollY")
    written("Unseen, the first.")
    button = page.locator("button.new")
    expect(button).to_have_text("1 new entry ↓")
    written("Unseen, the second.")
    expect(button).to_have_text("2 new entries ↓")
    assert page.evaluate("scrollY") == place
    button.click()
    expect(page.get_by_text("Unseen, the second.")).to_be_in_viewport()
    expect(button).to_be_hidden()


def test_the_focus_stays_on_its_item(visit: Visitor, written: Writer) -> None:
    """The section that changes is drawn anew, and the item that had the focus has it still."""
    page = visit(GROWING)
    hears(page)
    at_end(page)
    anchor = page.evaluate("document.activeElement.id")
    written("While somebody is here.")
    expect(page.get_by_text("While somebody is here.")).to_be_in_viewport()
    assert page.evaluate("document.activeElement.id") == anchor


def test_what_is_open_stays_open(visit: Visitor, written: Writer) -> None:
    """A fold that the person has opened is open when its section was drawn anew."""
    page = visit(GROWING)
    hears(page)
    at_end(page)
    fold = page.locator("article.call details").last
    fold.locator("summary").first.click()
    assert fold.evaluate("one => one.open")
    written("One more, below the fold.")
    expect(page.get_by_text("One more, below the fold.")).to_have_count(1)
    assert page.locator("article.call details").last.evaluate("one => one.open")


def test_a_tab_that_is_shown_again_catches_up(visit: Visitor, written: Writer) -> None:
    """While nobody looks, nothing is asked; who looks again sees what has come."""
    page = visit(GROWING)
    hears(page)
    at_end(page)
    hide = """isHidden => {
      Object.defineProperty(document, 'hidden', {value: isHidden, configurable: true});
      document.dispatchEvent(new Event('visibilitychange'));
    }"""
    page.evaluate(hide, True)
    written("While nobody looked.")
    page.wait_for_timeout(1200)
    expect(page.get_by_text("While nobody looked.")).to_have_count(0)
    page.evaluate(hide, False)
    expect(page.get_by_text("While nobody looked.")).to_be_in_viewport()


def test_a_list_says_that_it_is_not_current(visit: Visitor, written: Writer) -> None:
    """A list stays as it is, and offers to be loaded again."""
    page = visit("/sessions")
    page.wait_for_timeout(1500)
    expect(page.locator("p.changed")).to_have_count(0)
    written("Somewhere else.")
    expect(page.locator("p.changed")).to_contain_text("Reload")
    with page.expect_navigation():
        page.locator("p.changed button").click()


def test_what_is_told_of_the_session_grows_with_it(visit: Visitor, written: Writer) -> None:
    """Figures in the head, and the map, tell of what was added; the list of turns stays where it was."""
    page = visit(GROWING)
    hears(page)
    tokens = page.locator("header.head .facts").nth(1).locator("span[title]").first
    before = tokens.get_attribute("title")
    items = page.locator(".usage-strip svg").get_attribute("data-items")
    turns = page.locator(".side .turns li").count()
    written("Something that costs.")
    expect(tokens).not_to_have_attribute("title", before or "", timeout=15_000)
    expect(page.locator(".usage-strip svg")).to_have_attribute("data-items", str(int(items or 0) + 1))
    assert page.locator(".usage-strip rect.here").get_attribute("height") != "0"
    assert page.locator(".side .turns li").count() == turns
    assert page.locator(".side a[data-turn][aria-current]").count() == 1
