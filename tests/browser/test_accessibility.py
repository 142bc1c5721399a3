"""What axe-core, a keyboard and a screen reader need."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page
from tests.browser.conftest import visiting
from tests.browser.paths import ALL, LONGEST, SHORT, fill_ids
from tests.browser.probes import wait_for_frame
from tests.browser.server import start_server
from tests.browser.visitor import Visitor
from tests.profiles import is_quick_run


def violations(page: Page, *rules: str) -> list[str]:
    """What axe-core reports, for all rules or some."""
    options = {"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})}
    reported: Any = Axe().run(page, options=options).response["violations"]
    return [
        f"{violation['id']}: {violation['help']}: {'; '.join(node['html'][:160] for node in violation['nodes'][:4])}"
        for violation in reported
    ]


@pytest.mark.parametrize("path", ALL.values(), ids=ALL.keys())
def test_axe_reports_nothing(visit: Visitor, path: str) -> None:
    """axe-core reports nothing on any page, on a desktop or a phone, in light or dark mode."""
    page = visit(fill_ids(path, visit.server.home))
    page.wait_for_selector("main:not([data-partial], :has(progress))", timeout=60_000)  # a page in progress reloads
    check_in_all_themes(page)


def check_in_all_themes(page: Page) -> None:
    """axe-core reports nothing on a desktop and a phone, and no contrast problem in dark mode."""
    for width, height in ((1280, 900), (390, 844)):
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme="light")
        wait_for_frame(page)
        assert violations(page) == []
        page.emulate_media(color_scheme="dark")
        wait_for_frame(page)
        assert violations(page, "color-contrast") == []


_OPENED = {
    "palette": (SHORT, ("Control+k",), ".palette [role=option]"),
    "shortcuts": (SHORT, ("?",), "dialog.help"),
    "find": (SHORT, ("/",), ".find"),
    "entry": (SHORT, ("j", "r"), ".panel pre"),
    "files": (SHORT, ("j", "s"), ".panel .state"),
    "context": (SHORT, ("j", "x"), ".panel"),
    "share": (f"{SHORT}/share", (), ".share-preview"),
    "state-compared": (f"{LONGEST}/state/L2000?against=turn+2", (), ".compared"),
    "hidden-filters": ("/sessions", (), "form.filters"),
    "saved-search": ("/search?q=the", (), ".save-search"),
    "wrong-query": ("/search?q=foo:bar", (), ".refused"),
    "wrong-filter": ("/calls?since=whenever", (), ".refused"),
    "unknown-page": ("/nothing", (), ".error"),
}


@pytest.mark.parametrize("name", _OPENED)
def test_axe_reports_nothing_in_what_opens(visit: Visitor, name: str) -> None:
    """The same in dialogs, panels, previews and errors, with all folds open."""
    path, keys, shown = _OPENED[name]
    page = visit("/")
    page.goto(visit.server.address + path)
    page.wait_for_selector("main:not([data-partial])")
    for key in keys:
        page.keyboard.press(key)
    page.wait_for_selector(shown)
    page.evaluate("for (const one of document.querySelectorAll('main details')) one.open = true")
    check_in_all_themes(page)
    visit.errors.messages = [message for message in visit.errors.messages if "status of 40" not in message]


def test_axe_reports_nothing_without_access(visit: Visitor, browser: Browser) -> None:
    """The page for a browser without access, and the one after logging out, are as accessible."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(visit.server.address)
    assert page.locator(".refused").count()
    check_in_all_themes(page)
    context.close()


def test_axe_reports_nothing_on_an_empty_archive(browser: Browser, tmp_path: Path) -> None:
    """The first page of somebody without sessions says where it looked, and is as accessible."""
    (tmp_path / "home" / "projects").mkdir(parents=True)
    with start_server(tmp_path / "home", tmp_path / "cache") as server:
        for visit in visiting(browser, server):
            page = visit("/")
            assert "No sessions yet" in page.locator("main").inner_text()
            check_in_all_themes(page)
            for path in ("/sessions", "/usage", "/why", "/calls", "/files", "/blocks", "/history", "/doctor"):
                visit.go(page, path)
                page.wait_for_selector("main:not(:has(progress))", timeout=60_000)
                check_in_all_themes(page)


def test_axe_reports_nothing_in_open_folds(visit: Visitor) -> None:
    """The same with all folds open."""
    page = visit(SHORT)
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    wait_for_frame(page)
    assert violations(page) == []


@pytest.mark.smoke
def test_the_first_tab_focuses_the_skip_link(visit: Visitor) -> None:
    """The first focusable element is a visible link to the main content."""
    page = visit(SHORT)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('href')") == "#main"
    assert page.locator(":focus").is_visible()


def test_the_session_is_a_feed(visit: Visitor) -> None:
    """Entries are articles of a feed, each with its position among all entries, whatever is filled."""
    page = visit(LONGEST)
    page.wait_for_selector("main:not([data-partial])")  # a preview has fewer entries
    articles = page.locator("[role=feed] article[aria-posinset]")
    sizes = {articles.nth(at).get_attribute("aria-setsize") for at in range(5)}
    assert len(sizes) == 1
    assert int(sizes.pop() or 0) > (1_000 if is_quick_run() else 10_000)
    assert articles.first.get_attribute("aria-posinset") == "1"


def test_the_focused_entry_keeps_the_focus(visit: Visitor) -> None:
    """A focused entry stays in the page with the focus, however far one scrolls."""
    page = visit(LONGEST)
    anchor = page.locator("article.item").nth(3).get_attribute("id")
    page.evaluate("id => document.getElementById(id).focus()", anchor)
    page.mouse.move(640, 500)
    for _ in range(40):
        page.mouse.wheel(0, 2_000)
        page.wait_for_timeout(15)
    page.wait_for_timeout(300)
    assert page.evaluate("document.activeElement.id") == anchor
