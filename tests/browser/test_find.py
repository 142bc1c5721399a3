"""Words are found in the whole of a session, whatever of it is drawn."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect
from tests.browser.paths import GROWING, LONGEST
from tests.browser.visiting import Visitor

HIGHLIGHTED_TEXT = "name => [...(CSS.highlights.get(name) ?? [])].map(range => range.toString())"


def ask(page: Page, words: str) -> None:
    """Open the box, write, and go to the first hit."""
    page.keyboard.press("/")
    page.keyboard.type(words)
    page.keyboard.press("Enter")


@pytest.mark.smoke
def test_it_says_how_many_and_goes_there(visit: Visitor) -> None:
    """The first hit is seen, the count says which it is, and after the last comes the first."""
    page = visit(GROWING)
    ask(page, "answer 3")
    count = page.locator("form.find output")
    expect(count).to_have_text("1 of 11")
    expect(page.locator("article.current")).to_contain_text("Answer 3.")
    expect(page.locator("article.current")).to_be_in_viewport()
    for _ in range(11):
        page.keyboard.press("n")
    expect(count).to_have_text("1 of 11")


def test_it_is_highlighted(visit: Visitor) -> None:
    """The words are marked where they stand, also across elements, and the marks go with the box."""
    page = visit(GROWING)
    ask(page, "answer 3")
    expect(page.locator("form.find output")).to_have_text("1 of 11")
    page.wait_for_function(f"() => ({HIGHLIGHTED_TEXT})('current-match').length === 1")
    assert page.evaluate(HIGHLIGHTED_TEXT, "current-match") == ["Answer 3"]
    assert set(page.evaluate(HIGHLIGHTED_TEXT, "match")) <= {"Answer 3"}
    page.locator("form.find").get_by_label("Close").click()
    assert page.evaluate("CSS.highlights.size") == 0


def test_it_reaches_what_is_not_drawn(visit: Visitor) -> None:
    """Hits all over a long session are gone to one after the other."""
    page = visit(LONGEST)
    ask(page, "the")
    count = page.locator("form.find output")
    expect(count).to_contain_text("1 of")
    page.keyboard.press("N")
    expect(count).not_to_contain_text("1 of")
    page.wait_for_function("() => Number(document.querySelector('article.current')?.ariaPosInSet) > 1000")
    expect(page.locator("article.current")).to_be_in_viewport()


def test_it_is_in_the_address(visit: Visitor) -> None:
    """A page that is opened again, or sent to somebody, has found the same."""
    page = visit(GROWING)
    ask(page, "answer 3")
    expect(page.locator("form.find output")).to_have_text("1 of 11")
    assert "find=answer+3" in urlsplit(page.url).query
    page.reload()
    expect(page.locator("form.find output")).to_contain_text("11")
    expect(page.locator("form.find input")).to_have_value("answer 3")


def test_what_is_not_there_is_not_found(visit: Visitor) -> None:
    """It says so, and nothing moves."""
    page = visit(GROWING)
    ask(page, "zzzzqqqq")
    expect(page.locator("form.find output")).to_have_text("No matches")
    assert page.evaluate("scrollY") == 0


def test_letters_count_without_case_and_marks(visit: Visitor) -> None:
    """Who writes ÁNSWER finds answer."""
    page = visit(GROWING)
    ask(page, "ÁNSWER 3")
    expect(page.locator("form.find output")).to_have_text("1 of 11")
    page.wait_for_function(f"() => ({HIGHLIGHTED_TEXT})('current-match')[0] === 'Answer 3'")


def test_keys_are_about_what_was_found(visit: Visitor) -> None:
    """The entry that was gone to is the one whose JSON is shown, though others are seen, too."""
    page = visit(GROWING)
    ask(page, "answer 3")
    expect(page.locator("form.find output")).to_have_text("1 of 11")
    expect(page.locator("article.current")).to_be_focused()
    page.keyboard.press("r")
    expect(page.locator("aside.panel")).to_contain_text("Answer 3.")
