"""User state in a long session survives the filling and emptying of sections."""

from __future__ import annotations

from playwright.sync_api import Page, expect
from tests.browser.paths import LONGEST
from tests.browser.probes import max_element_count, scroll_to, wait_for_frame, wait_until_filled, watch_element_count
from tests.browser.visitor import Visitor

FILLED = "[...document.querySelectorAll('.section')].filter(one => one.querySelector('article')).map(one => one.id)"


def open_long_session(visit: Visitor) -> Page:
    """The long session, once it is open completely. At first only its beginning is shown."""
    page = visit(LONGEST)
    page.wait_for_selector("main:not([data-partial])")
    return page


def scroll_away(page: Page) -> None:
    """Scroll far away and around, so that everything that may be emptied is."""
    for share in (0.5, 0.6, 0.7, 0.8):
        scroll_to(page, share)
        wait_until_filled(page)


def filled_sections(page: Page) -> list[str]:
    """The sections that contain items."""
    sections: list[str] = page.evaluate(FILLED)
    return sections


def test_few_sections_are_filled(visit: Visitor) -> None:
    """Only the sections around the viewport contain items."""
    page = open_long_session(visit)
    scroll_away(page)
    page.wait_for_timeout(500)
    sections = filled_sections(page)
    assert 1 <= len(sections) < 20
    assert "s1" not in sections


def test_the_focus_is_not_lost(visit: Visitor) -> None:
    """The focused item stays, however far away one scrolls, and keys continue from there."""
    page = open_long_session(visit)
    page.keyboard.press("j")
    page.wait_for_function("() => document.activeElement?.localName === 'article'")
    anchor = page.evaluate("document.activeElement.id")
    scroll_away(page)
    assert page.evaluate("document.activeElement.id") == anchor
    assert "s1" in filled_sections(page)
    scroll_to(page, 0)
    wait_until_filled(page)
    page.keyboard.press("j")
    page.wait_for_function("() => document.activeElement?.ariaPosInSet === '2'")


def test_a_selection_is_not_lost(visit: Visitor) -> None:
    """Selected text can still be copied after scrolling away."""
    page = open_long_session(visit)
    page.evaluate("getSelection().selectAllChildren(document.querySelector('article'))")
    text = page.evaluate("getSelection().toString()")
    scroll_away(page)
    assert text
    assert page.evaluate("getSelection().toString()") == text


def test_open_folds_are_open_again(visit: Visitor) -> None:
    """A fold is open after scrolling back, even if its section was emptied meanwhile."""
    page = open_long_session(visit)
    fold = page.locator("article details").first
    anchor = fold.evaluate("one => one.closest('article').id")
    fold.locator("summary").first.click()
    assert fold.evaluate("one => one.open")
    # Open so many that not all of them can be kept.
    for share in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9):
        scroll_to(page, share)
        wait_until_filled(page)
        page.evaluate(
            """() => [...document.querySelectorAll('article details:not([open]) > summary')]
              .slice(0, 40).forEach(one => one.click())"""
        )
        wait_for_frame(page)
    scroll_to(page, 0)
    wait_until_filled(page)
    page.wait_for_selector(f'[id="{anchor}"]')
    assert page.locator(f'[id="{anchor}"] details').first.evaluate("one => one.open")


def test_open_folds_keep_the_page_small(visit: Visitor) -> None:
    """However much is opened, no frame has five thousand elements."""
    page = open_long_session(visit)
    watch_element_count(page)
    for number in range(12):
        scroll_to(page, number / 12)
        wait_until_filled(page)
        page.evaluate("document.querySelectorAll('article summary').forEach(one => one.click())")
        wait_for_frame(page)
    page.keyboard.press("?")
    expect(page.locator("dialog.help")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("dialog.help")).to_be_hidden()
    page.keyboard.press("j")
    page.keyboard.press("r")
    expect(page.locator("aside.panel")).to_be_visible()
    assert 0 < max_element_count(page) < 5_000


def test_scrolling_by_wheel_meets_no_empty_section(visit: Visitor) -> None:
    """At a person's pace, items are there before they are visible."""
    page = open_long_session(visit)
    page.wait_for_timeout(500)
    blank = page.evaluate(
        """async () => {
          const frame = () => new Promise(done => requestAnimationFrame(done));
          const feed = document.querySelector('.feed').getBoundingClientRect();
          let blank = 0;
          for (let at = 0; at < 240; at++) {
            scrollBy({top: 30, behavior: 'instant'});
            await frame();
            await frame();
            const seen = document.elementFromPoint(feed.left + feed.width / 2, innerHeight - 60)?.closest('.section');
            if (seen && !seen.querySelector('article')) blank += 1;
          }
          return blank;
        }"""
    )
    assert blank == 0


def test_back_restores_the_position(visit: Visitor) -> None:
    """After Back from another page, the same items are visible."""
    page = open_long_session(visit)
    scroll_to(page, 0.37)
    wait_until_filled(page)
    page.wait_for_timeout(500)
    item = page.evaluate(
        """() => [...document.querySelectorAll('article.item[aria-posinset]')]
          .map(one => ({id: one.id, top: one.getBoundingClientRect().top})).find(one => one.top > 100)"""
    )
    visit.go(page, "/usage")
    page.go_back()
    page.wait_for_selector(f'[id="{item["id"]}"]')
    page.wait_for_timeout(500)
    top = page.evaluate("id => document.getElementById(id).getBoundingClientRect().top", item["id"])
    assert abs(top - item["top"]) <= 2


def test_the_map_shows_the_position_and_navigates(visit: Visitor) -> None:
    """The map shows the current position, and a click on it leads elsewhere."""
    page = open_long_session(visit)
    strip = page.locator(".usage-strip svg").first
    strip.locator(".here").wait_for(state="attached")
    wait_for_frame(page)  # the map is drawn again once the index has the costs
    box = strip.bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= page.evaluate("innerHeight"), "all of it can be clicked"
    mark = strip.locator(".here").first
    before = float(mark.get_attribute("y") or 0)
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] * 0.7)
    wait_until_filled(page)
    page.wait_for_timeout(1500)
    wait_until_filled(page)
    page.wait_for_timeout(200)
    share = page.evaluate(
        """() => { const one = [...document.querySelectorAll('article[aria-posinset]')]
          .find(item => item.getBoundingClientRect().bottom > innerHeight / 2);
          return one.ariaPosInSet / one.ariaSetSize; }"""
    )
    assert 0.62 < share < 0.78
    assert float(mark.get_attribute("y") or 0) > before
