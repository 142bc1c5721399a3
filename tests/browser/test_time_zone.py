"""The page shows times in the browser's time zone, unless another one was chosen."""

from __future__ import annotations

from playwright.sync_api import Page
from tests.browser import homes
from tests.browser.visitor import Visitor

_DUBAI, _TOKYO = "Asia/Dubai", "Asia/Tokyo"
_FIRST_TIME = "() => { const e = document.querySelector('main time'); return [e.dateTime, e.textContent]; }"
_MINUTES = 60


def _offset(page: Page) -> int:
    """By how many minutes the first time on a page differs from UTC."""
    exact, shown = page.evaluate(_FIRST_TIME)
    hours, minutes = map(int, shown.strip()[-5:].split(":"))
    return (hours * _MINUTES + minutes - int(exact[11:13]) * _MINUTES - int(exact[14:16])) % (24 * _MINUTES)


def _open(visit: Visitor, path: str, zone: str, *, javascript: bool = True) -> Page:
    page = visit.profile(timezone_id=zone, java_script_enabled=javascript).new_page()
    visit.go(page, path)
    return page


def test_times_are_in_the_zone_of_the_browser(visit: Visitor) -> None:
    """The first page and all others show it without a click, and URLs do not contain it."""
    page = _open(visit, "/sessions", _DUBAI)
    page.get_by_text(_DUBAI).first.wait_for()
    assert _offset(page) == 4 * _MINUTES
    assert "tz=" not in page.url
    page.locator("[data-item] a").first.click()
    page.locator("article.item").first.wait_for()
    assert _DUBAI in page.locator("main").inner_text()
    assert "tz=" not in page.url
    requests = len(visit.errors.requests)
    page.goto(f"{visit.server.address}/usage")
    pages = [url for url in visit.errors.requests[requests:] if url.endswith("/usage")]
    assert len(pages) == 1  # only the first page is loaded twice
    assert f"days in {_DUBAI}" in page.locator("main").inner_text()


def test_parts_that_scripts_load_are_in_the_same_zone(visit: Visitor) -> None:
    """A session does not change when its shape is requested: its sections were drawn in the same zone."""
    page = _open(visit, f"/session/{homes.GROWING}", _DUBAI)
    page.locator("article.item").first.wait_for()
    page.wait_for_load_state("networkidle")
    requests = len(visit.errors.requests)
    marks = page.evaluate(
        "async () => (await (await fetch(location.pathname + '/shape.json?seen=1', {headers: {'X-Fragment': '1'}}))"
        ".json()).sections.map((section) => section.mark)"
    )
    shown = page.evaluate("() => [...document.querySelectorAll('[data-mark]')].map((one) => one.dataset.mark)")
    assert shown
    assert shown == marks[: len(shown)]
    assert not [url for url in visit.errors.requests[requests:] if "/part/" in url]


def test_a_zone_that_was_chosen_wins(visit: Visitor) -> None:
    """The switch is one page away; what it chooses is in the URL, and the browser's zone is one click away."""
    page = _open(visit, "/sessions", _DUBAI)
    page.get_by_text(_DUBAI).first.wait_for()
    page.get_by_role("link", name="Time zone", exact=True).click()
    page.get_by_role("link", name=_TOKYO).click()
    page.get_by_text(_TOKYO).first.wait_for()
    assert "tz=Asia%2FTokyo" in page.url
    assert _offset(page) == 9 * _MINUTES
    page.get_by_role("link", name="Time zone", exact=True).click()
    page.get_by_role("link", name="Use the browser's zone").click()
    page.get_by_text(_DUBAI).first.wait_for()
    assert "tz=" not in page.url


def test_without_scripts_times_are_in_the_zone_of_the_machine(visit: Visitor) -> None:
    """The page is complete, and says which zone it is."""
    zone = visit.server.json("/time-zone.json")["zone"]
    page = _open(visit, "/sessions", _DUBAI, javascript=False)
    text = page.locator("main").inner_text()
    assert _DUBAI not in text
    assert zone in text
