"""Find searches the whole session, whatever is rendered."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, Route, expect
from tests.browser import homes
from tests.browser.paths import GROWING, LONGEST
from tests.browser.visitor import Visitor

HIGHLIGHTED_TEXT = "name => [...(CSS.highlights.get(name) ?? [])].map(range => range.toString())"

# Whether both ends of the current match are on the screen, and not behind something else.
_IS_ON_TOP = """() => [...(CSS.highlights.get('current-match') ?? [])].some(range => {
  const {left, right, top, bottom} = range.getBoundingClientRect();
  const item = document.querySelector('article.current');
  return [left + 1, right - 1].every(x => item.contains(document.elementFromPoint(x, (top + bottom) / 2)));
})"""


def find(page: Page, words: str) -> None:
    """Open the box, type, and go to the first match."""
    page.keyboard.press("/")
    page.keyboard.type(words)
    page.keyboard.press("Enter")


def test_find_counts_matches_and_goes_to_the_first(visit: Visitor) -> None:
    """The first match is visible, the count names its number, and the first follows the last."""
    page = visit(GROWING)
    find(page, "answer 3")
    count = page.locator("form.find output")
    expect(count).to_have_text("1 of 11")
    expect(page.locator("article.current")).to_contain_text("Answer 3.")
    expect(page.locator("article.current")).to_be_in_viewport()
    for _ in range(11):
        page.keyboard.press("n")
    expect(count).to_have_text("1 of 11")


def test_find_highlights_matches(visit: Visitor) -> None:
    """Matches are highlighted, also across elements, until the box is closed."""
    page = visit(GROWING)
    find(page, "answer 3")
    expect(page.locator("form.find output")).to_have_text("1 of 11")
    page.wait_for_function(f"() => ({HIGHLIGHTED_TEXT})('current-match').length === 1")
    assert page.evaluate(HIGHLIGHTED_TEXT, "current-match") == ["Answer 3"]
    assert set(page.evaluate(HIGHLIGHTED_TEXT, "match")) <= {"Answer 3"}
    page.locator("form.find").get_by_label("Close").click()
    assert page.evaluate("CSS.highlights.size") == 0


def test_closing_the_box_ends_a_search_that_has_not_begun(visit: Visitor) -> None:
    """What was typed just before Escape is not searched afterwards: the URL and the text stay without a match."""
    page = visit(GROWING)
    page.keyboard.press("/")
    # In one step, because a key of its own may come later than the search begins.
    page.evaluate("""() => {
      const input = document.querySelector('form.find input');
      input.value = 'answer';
      input.dispatchEvent(new Event('input', {bubbles: true}));
      document.querySelector('form.find button[aria-label=Close]').click();
    }""")
    page.wait_for_timeout(1_000)
    assert "find=" not in page.url
    assert page.evaluate("CSS.highlights.size") == 0


def test_find_reaches_sections_that_are_not_rendered(visit: Visitor) -> None:
    """Matches throughout a long session can be visited."""
    page = visit(LONGEST)
    find(page, "the")
    count = page.locator("form.find output")
    expect(count).to_contain_text("1 of")
    page.keyboard.press("N")
    expect(count).not_to_contain_text("1 of")
    page.wait_for_function("() => Number(document.querySelector('article.current')?.ariaPosInSet) > 1000")
    expect(page.locator("article.current")).to_be_in_viewport()


def test_find_is_in_the_url(visit: Visitor) -> None:
    """A reloaded or shared page has the same matches."""
    page = visit(GROWING)
    find(page, "answer 3")
    expect(page.locator("form.find output")).to_have_text("1 of 11")
    assert "find=answer+3" in urlsplit(page.url).query
    page.reload()
    expect(page.locator("form.find output")).to_contain_text("11")
    expect(page.locator("form.find input")).to_have_value("answer 3")


def test_find_reports_no_matches(visit: Visitor) -> None:
    """Without matches, the page does not move."""
    page = visit(GROWING)
    find(page, "zzzzqqqq")
    expect(page.locator("form.find output")).to_have_text("No matches")
    assert page.evaluate("scrollY") == 0


def test_find_ignores_case_and_accents(visit: Visitor) -> None:
    """ÁNSWER finds answer."""
    page = visit(GROWING)
    find(page, "ÁNSWER 3")
    expect(page.locator("form.find output")).to_have_text("1 of 11")
    page.wait_for_function(f"() => ({HIGHLIGHTED_TEXT})('current-match')[0] === 'Answer 3'")


def test_keys_apply_to_the_current_match(visit: Visitor) -> None:
    """The JSON shown is that of the current match, although other entries are visible."""
    page = visit(GROWING)
    find(page, "answer 3")
    expect(page.locator("form.find output")).to_have_text("1 of 11")
    expect(page.locator("article.current")).to_be_focused()
    page.keyboard.press("r")
    expect(page.locator("aside.panel")).to_contain_text("Answer 3.")


def test_find_works_without_a_map(visit: Visitor) -> None:
    """The map is empty while a long session is read, or if loading the rest failed. Then no match is marked on it."""

    def remove_map(route: Route) -> None:
        with visit.server.client() as client:
            text = client.get(GROWING).text
        body = re.sub(r'(<nav class="usage-strip"[^>]*>).*?</nav>', r"\1</nav>", text, flags=re.DOTALL)
        route.fulfill(body=body, content_type="text/html; charset=utf-8")

    page = visit.profile().new_page()
    page.route(f"**{GROWING}", remove_map)
    visit.go(page, GROWING)
    assert page.locator("nav.usage-strip").count() == 1
    assert page.locator("nav.usage-strip svg").count() == 0
    find(page, "answer 3")
    expect(page.locator("form.find output")).to_have_text("1 of 11")


@pytest.mark.parametrize("width", [1280, 390])
def test_a_match_far_inside_a_block_is_on_the_screen(visit: Visitor, width: int) -> None:
    """A match that is below the window, cut off at the side of its block, or behind a bar is scrolled to."""
    page = visit(f"/session/{homes.WIDE}", width=width, height=844)
    for words in ("needle one", "needle two", "needle three"):
        page.keyboard.press("Control+f")
        page.keyboard.type(words)
        page.keyboard.press("Enter")
        expect(page.locator("form.find output"), words).to_contain_text("1 of 1")
        page.wait_for_function(_IS_ON_TOP)
        page.wait_for_timeout(500)  # sections that are filled later
        assert page.evaluate(_IS_ON_TOP), words
