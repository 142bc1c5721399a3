"""A very long session is split into several pages, and keys move through all of them."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator

import pytest
import uvicorn
from playwright.sync_api import Browser, Page, expect
from tests.browser.server import Server
from tests.browser.visitor import Visitor
from tests.transcripts import SESSION
from tests.web.client import NAME, log_in
from tests.web.conftest import session_rows, write_home

from threadline.find import homes
from threadline.web import Access, App, ArchivePool, cookie_name
from threadline.web.session import view

_PAGE = f"/session/{SESSION}"


@pytest.fixture
def visit_parts(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Visitor]:
    """A server in this process whose pages have only two sections each."""
    monkeypatch.setattr(view, "SECTIONS_PER_PART", 2)
    home = write_home(tmp_path_factory.mktemp("parts") / "home", session_rows(turns=400))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        access = Access(f"http://{NAME}:{port}")
        app = App(ArchivePool(tuple(homes(home))), access, host=NAME, port=port)
        uvicorn_server = uvicorn.Server(
            uvicorn.Config(app.asgi, log_level="error", ws="none", timeout_graceful_shutdown=1)
        )
        thread = threading.Thread(target=uvicorn_server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        visitor = Visitor(browser, Server(access.origin, {cookie_name(port): log_in(access)}, home, 0))
        try:
            yield visitor
        finally:
            visitor.close()
            app.live.stop()
            uvicorn_server.should_exit = True
            thread.join(20)
    assert visitor.errors.messages == []


def _part(page: Page) -> int:
    return int(page.locator("main").get_attribute("data-part") or 0)


def _focused(page: Page) -> str:
    page.wait_for_function("() => document.activeElement?.closest('article')")
    return str(page.evaluate("document.activeElement.closest('article').id"))


def test_the_end_key_leads_to_the_last_part(visit_parts: Visitor) -> None:
    """G leads to the last entry, in the last part. g g leads back to the first entry of the first part."""
    page = visit_parts(_PAGE)
    parts = int(page.locator("main").get_attribute("data-parts") or 0)
    assert parts > 2
    last = visit_parts.server.json(f"{_PAGE}/part/{2 * parts - 1}.json") if parts else []
    page.keyboard.press("G")
    expect(page).to_have_url(re.compile(rf"part={parts}\b.*#end"))
    anchors = page.locator(".feed .section article[aria-posinset]")
    assert _focused(page) == anchors.last.get_attribute("id")
    assert anchors.last.get_attribute("aria-posinset") == anchors.last.get_attribute("aria-setsize")
    assert _part(page) == parts
    assert last
    page.keyboard.press("g")
    page.keyboard.press("g")
    expect(page.locator("main")).to_have_attribute("data-part", "1")
    expect(page.locator("#L1")).to_be_in_viewport()


def test_keys_continue_in_the_next_part(visit_parts: Visitor) -> None:
    """The item after the last one of a part is the first of the next part, and back again."""
    page = visit_parts(f"{_PAGE}?part=2")
    page.keyboard.press("k")
    page.keyboard.press("k")
    expect(page.locator("main")).to_have_attribute("data-part", "1")
    _focused(page)
    page.keyboard.press("j")
    expect(page.locator("main")).to_have_attribute("data-part", "2")


def test_a_turn_link_leads_to_another_part(visit_parts: Visitor) -> None:
    """The list has the turns of all parts, later ones behind a link. Back leads to the previous position."""
    page = visit_parts(_PAGE)
    shape = visit_parts.server.json(f"{_PAGE}/shape.json")
    section = next(section for section in shape["sections"] if section["part"] == 2)
    page.locator(".side p.more a", has_text="Later").click()
    link = page.locator(f".side a[data-turn='{section['turn'] + 1}']")
    anchor = link.get_attribute("data-anchor")
    link.click()
    expect(page.locator("main")).to_have_attribute("data-part", "2")
    expect(page.locator(f"#{anchor}")).to_be_in_viewport()
    page.go_back()
    expect(page.locator("main")).to_have_attribute("data-part", "1")
