"""What a person does to a long session outlasts the filling and emptying of its sections."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect
from tests.browser.paths import LONGEST
from tests.browser.probes import count_elements, filled, most_elements, scroll_to, settled
from tests.browser.visiting import Visitor

FILLED = "[...document.querySelectorAll('.section')].filter(one => one.querySelector('article')).map(one => one.id)"


def read(visit: Visitor) -> Page:
    """The long session, once all of it was read: at first only its beginning is shown."""
    page = visit(LONGEST)
    page.wait_for_selector("main:not([data-partial])")
    return page


def away(page: Page) -> None:
    """Go far away and around, so that all that may be emptied is."""
    for share in (0.5, 0.6, 0.7, 0.8):
        scroll_to(page, share)
        filled(page)


def drawn(page: Page) -> list[str]:
    """The sections that hold items."""
    found: list[str] = page.evaluate(FILLED)
    return found


@pytest.mark.smoke
def test_few_sections_are_filled(visit: Visitor) -> None:
    """Wherever one is, only the sections around hold items."""
    page = read(visit)
    away(page)
    page.wait_for_timeout(500)
    found = drawn(page)
    assert 1 <= len(found) < 20
    assert "s1" not in found


def test_the_focus_is_not_lost(visit: Visitor) -> None:
    """The item with the focus stays, however far away one looks, and keys go on from there when one is back."""
    page = read(visit)
    page.keyboard.press("j")
    page.wait_for_function("() => document.activeElement?.localName === 'article'")
    anchor = page.evaluate("document.activeElement.id")
    away(page)
    assert page.evaluate("document.activeElement.id") == anchor
    assert "s1" in drawn(page)
    scroll_to(page, 0)
    filled(page)
    page.keyboard.press("j")
    page.wait_for_function("() => document.activeElement?.ariaPosInSet === '2'")


def test_a_selection_is_not_lost(visit: Visitor) -> None:
    """What was selected can be copied from afar."""
    page = read(visit)
    page.evaluate("getSelection().selectAllChildren(document.querySelector('article'))")
    text = page.evaluate("getSelection().toString()")
    away(page)
    assert text
    assert page.evaluate("getSelection().toString()") == text


def test_what_was_opened_is_open_again(visit: Visitor) -> None:
    """A fold is open when one comes back, even if there was no room for its section meanwhile."""
    page = read(visit)
    fold = page.locator("article details").first
    anchor = fold.evaluate("one => one.closest('article').id")
    fold.locator("summary").first.click()
    assert fold.evaluate("one => one.open")
    # As many as there are, so that what is opened cannot all be kept.
    for share in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9):
        scroll_to(page, share)
        filled(page)
        page.evaluate(
            """() => [...document.querySelectorAll('article details:not([open]) > summary')]
              .slice(0, 40).forEach(one => one.click())"""
        )
        settled(page)
    scroll_to(page, 0)
    filled(page)
    page.wait_for_selector(f'[id="{anchor}"]')
    assert page.locator(f'[id="{anchor}"] details').first.evaluate("one => one.open")


def test_open_folds_do_not_make_the_page_big(visit: Visitor) -> None:
    """However much is opened on the way, no frame has five thousand elements."""
    page = read(visit)
    count_elements(page)
    for number in range(12):
        scroll_to(page, number / 12)
        filled(page)
        page.evaluate("document.querySelectorAll('article summary').forEach(one => one.click())")
        settled(page)
    page.keyboard.press("?")
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("r")
    expect(page.locator("aside.panel")).to_be_visible()
    assert 0 < most_elements(page) < 5_000


def test_a_wheel_that_turns_meets_no_blank(visit: Visitor) -> None:
    """Scrolled at the pace of a person, items are there before they are seen."""
    page = read(visit)
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


def test_back_leads_to_the_place_that_was_left(visit: Visitor) -> None:
    """Who leaves a session for another page comes back to what they saw."""
    page = read(visit)
    scroll_to(page, 0.37)
    filled(page)
    page.wait_for_timeout(500)
    seen = page.evaluate(
        """() => [...document.querySelectorAll('article.item[aria-posinset]')]
          .map(one => ({id: one.id, top: one.getBoundingClientRect().top})).find(one => one.top > 100)"""
    )
    visit.go(page, "/usage")
    page.go_back()
    page.wait_for_selector(f'[id="{seen["id"]}"]')
    page.wait_for_timeout(500)
    there = page.evaluate("id => document.getElementById(id).getBoundingClientRect().top", seen["id"])
    assert abs(there - seen["top"]) <= 2


def test_the_map_shows_and_leads(visit: Visitor) -> None:
    """The strip at the side says where one is, and a click on it leads elsewhere."""
    page = read(visit)
    strip = page.locator(".usage-strip svg").first
    strip.locator(".here").wait_for(state="attached")
    settled(page)  # the strip is drawn anew once the index knows what was spent
    box = strip.bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= page.evaluate("innerHeight"), "all of it can be clicked"
    mark = strip.locator(".here").first
    before = float(mark.get_attribute("y") or 0)
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] * 0.7)
    filled(page)
    page.wait_for_timeout(1500)
    filled(page)
    page.wait_for_timeout(200)
    share = page.evaluate(
        """() => { const one = [...document.querySelectorAll('article[aria-posinset]')]
          .find(item => item.getBoundingClientRect().bottom > innerHeight / 2);
          return one.ariaPosInSet / one.ariaSetSize; }"""
    )
    assert 0.62 < share < 0.78
    assert float(mark.get_attribute("y") or 0) > before
