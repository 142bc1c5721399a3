"""Every kind of page opens without errors, fits a phone, and can be printed."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect
from tests.browser.paths import ALL, PICTURES, SHORT, fill_ids
from tests.browser.probes import wait_for_frame
from tests.browser.visitor import Visitor

# Elements that are too wide, if the page can be scrolled sideways.
_WIDE = """() => document.documentElement.scrollWidth <= innerWidth ? [] :
  [...document.querySelectorAll('body *')].filter(one => one.getBoundingClientRect().right > innerWidth + 1)
    .slice(0, 5).map(one => `${one.tagName}.${one.className}`)"""

# Tables whose column headings differ in colour, weight or size: headings do not look like the cells below them.
_UNLIKE_HEADINGS = """() => [...document.querySelectorAll('main table')].map(table => {
  const looks = {};
  for (const cell of table.querySelectorAll('thead th')) {
    const {color, fontWeight, fontSize} = getComputedStyle(cell);
    (looks[`${color} ${fontWeight} ${fontSize}`] ??= []).push(cell.textContent);
  }
  return looks;
}).filter(looks => Object.keys(looks).length > 1)"""


@pytest.mark.parametrize("path", ALL.values(), ids=ALL.keys())
def test_every_page_opens_without_errors_and_fits_a_phone(visit: Visitor, path: str) -> None:
    """No error in the console, no dialog, no request to other hosts. There is a title, one heading, and text.

    All column headings of a table look alike. At the width of a phone nothing is too wide: wide content scrolls inside
    its container.
    """
    page = visit(fill_ids(path, visit.server.home))
    wait_for_frame(page)
    assert page.title()
    assert page.locator("h1").count() == 1
    assert len(page.locator("main").inner_text()) > 20
    assert page.evaluate(_UNLIKE_HEADINGS) == []
    assert page.evaluate("[...document.scripts].every(one => !one.text || one.type === 'application/json')")
    page.set_viewport_size({"width": 390, "height": 844})
    wait_for_frame(page)
    assert page.evaluate(_WIDE) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("path", [SHORT, PICTURES, "/usage"])
def test_a_page_can_be_printed(visit: Visitor, path: str) -> None:
    """On paper there is the content without the controls, and the PDF has pages."""
    page = visit(path)
    page.emulate_media(media="print")
    wait_for_frame(page)
    assert page.locator("main").is_visible()
    assert not page.locator("nav:visible").count()
    assert page.pdf().startswith(b"%PDF-")


def test_pictures_load_when_scrolled_to(visit: Visitor) -> None:
    """A picture has its height before it is loaded, and loads when it is scrolled to."""
    page = visit(PICTURES)
    picture = page.locator("img.picture").first
    picture.scroll_into_view_if_needed()
    page.wait_for_function("one => one.complete && one.naturalWidth === 900", arg=picture.element_handle())


@pytest.mark.smoke
def test_back_and_reload_give_the_same_view(visit: Visitor) -> None:
    """Choices are in the URL, so a reload and Back show them again."""
    page = visit("/sessions")
    visit.go(page, "/usage?by=model")
    text = page.locator("main").inner_text()
    page.reload()
    assert page.locator("main").inner_text() == text
    page.go_back()
    assert page.url.endswith("/sessions")
    page.go_forward()
    assert page.locator("main").inner_text() == text


def test_a_theme_applies_to_other_open_pages(visit: Visitor) -> None:
    """A theme chosen on one page applies to the other open pages of the browser at once."""
    page = visit("/keys")
    other = page.context.new_page()
    visit.go(other, "/usage")
    page.keyboard.press("d")
    expect(other.locator("html")).to_have_attribute("data-theme", "dark")
    page.keyboard.press("d")
    expect(other.locator("html")).to_have_attribute("data-theme", "light")
    page.keyboard.press("d")
    expect(other.locator("html")).not_to_have_attribute("data-theme", "light")
    assert other.locator("html").get_attribute("data-theme") is None
