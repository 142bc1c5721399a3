"""What can be done on a page: star, filter, copy blocks, run actions of the palette, share."""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress

import pytest
from playwright.sync_api import Error, Route, expect
from tests.browser import homes
from tests.browser.paths import LONGEST, SHORT
from tests.browser.reviewed_session import HOME, REVIEWED
from tests.browser.visitor import Visitor


def test_filters_apply_while_typing(visit: Visitor) -> None:
    """Rows and the URL follow the text without a button, and the field keeps the focus."""
    page = visit("/sessions")
    before = page.locator("tr[data-item]").count()
    page.get_by_label("Title").press_sequentially("zzzz-no-such-title")
    expect(page.locator("p.nothing")).to_be_visible()
    assert "grep=zzzz" in page.url
    assert page.evaluate("document.activeElement.name") == "grep"
    page.get_by_label("Title").fill("")
    expect(page.locator("tr[data-item]")).to_have_count(before)
    expect(page.get_by_role("button", name="Apply")).to_be_hidden()


@pytest.mark.smoke
def test_a_star_is_kept(visit: Visitor) -> None:
    """The key stars the focused row; after a reload it is still there, and among the starred."""
    page = visit("/sessions")
    row = page.locator("tr[data-item]").nth(1)
    row.get_by_role("link").first.focus()
    page.keyboard.press("*")
    star = row.locator("button.star")
    expect(star).to_have_attribute("aria-pressed", "true")
    title = row.get_by_role("link").first.inner_text()
    visit.go(page, "/sessions?only=starred")
    expect(page.locator("tr[data-item]").filter(has_text=title[:40])).to_have_count(1)
    page.locator("button.star").first.click()
    expect(page.locator("button.star").first).to_have_attribute("aria-pressed", "false")


def test_an_update_of_the_list_does_not_remove_a_star(visit: Visitor) -> None:
    """If the list was requested before the star was saved, and arrives after, the star stays."""
    page = visit("/sessions")
    held: list[tuple[Route, str]] = []

    def hold_first(route: Route) -> None:
        if held:
            route.continue_()
        else:
            with visit.server.client() as client:
                held.append((route, client.get("/sessions", headers={"x-fragment": "1"}).text))

    page.route("**/sessions", hold_first)
    (path,) = visit.server.home.glob(f"projects/*/{homes.GROWING}.jsonl")
    os.utime(path)  # the list is updated
    deadline = time.monotonic() + 20
    while not held and time.monotonic() < deadline:
        page.wait_for_timeout(100)
    (route, answer), row = held[0], page.locator("tr[data-item]").nth(1)
    row.get_by_role("link").first.focus()
    with page.expect_response("**/annotate.json"):
        page.keyboard.press("*")
    with suppress(Error):  # the page may have dropped the request
        route.fulfill(body=answer, content_type="text/html; charset=utf-8")
    page.wait_for_timeout(500)
    expect(row.locator("button.star")).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("*")
    expect(row.locator("button.star")).to_have_attribute("aria-pressed", "false")


def test_blocks_have_a_copy_button(visit: Visitor) -> None:
    """The button of a block under the pointer copies its text, and only that."""
    page = visit(f"{LONGEST}?calls=full")
    block = page.locator(".feed pre:not(.numbers)").first
    block.hover()
    text = block.evaluate("one => one.textContent.replace(/Copy$/, '')")
    page.locator(".copy-block").click()
    expect(page.locator(".status")).to_contain_text("copied")
    assert page.evaluate("navigator.clipboard.readText()") == text


def test_a_command_is_copied_with_one_click(visit: Visitor) -> None:
    """The buttons of an entry copy its first block, also of a folded call; an entry without one has no such button."""
    page = visit(LONGEST)
    call = page.locator(".feed article:has(pre:not(.numbers))").first
    expect(call.locator("pre:not(.numbers)").first).to_be_hidden()
    call.hover()
    page.locator(".item-buttons [data-action=copy-block]").click()
    expect(page.locator(".status")).to_contain_text("Block copied")
    block = call.locator("pre:not(.numbers)").first
    assert page.evaluate("navigator.clipboard.readText()") == block.text_content()
    page.locator(".feed article:not(:has(pre))").first.hover()
    expect(page.locator(".item-buttons [data-action=copy-link]")).to_be_visible()
    expect(page.locator(".item-buttons [data-action=copy-block]")).to_be_hidden()


def test_enter_opens_what_was_typed(visit: Visitor) -> None:
    """Enter that is pressed before the list has arrived opens the first choice of that list, not of the list before."""
    page = visit("/keys")
    page.keyboard.press("Control+k")
    expect(page.locator("[role=option]").first).to_be_visible()

    def answer_late(route: Route) -> None:
        page.wait_for_timeout(300)
        route.continue_()

    page.route(re.compile("/palette.json.*q=usage"), answer_late)
    page.keyboard.type("usage")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/usage$"))


def test_the_palette_runs_actions(visit: Visitor) -> None:
    """An action of the palette does what its key does."""
    page = visit(SHORT)
    page.keyboard.press("Control+k")
    page.keyboard.type("change the theme")
    expect(page.locator("[role=option]").first).to_contain_text("theme")
    page.keyboard.press("Enter")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_the_palette_stars_the_session(visit: Visitor) -> None:
    """The action stars the session of the page, although no button of it was clicked."""
    page = visit(SHORT)
    star = page.locator("header.head button.star")
    for is_starred in ("true", "false"):
        page.keyboard.press("Control+k")
        page.keyboard.type("star this session")
        expect(page.locator("[role=option]").first).to_contain_text("Star this session")
        page.keyboard.press("Enter")
        expect(star).to_have_attribute("aria-pressed", is_starred)


def test_the_palette_names_what_it_leads_to(visit: Visitor) -> None:
    """Beside a prompt of several lines, the number of its turn is not cut off."""
    page = visit(LONGEST)
    page.keyboard.press("Control+k")
    page.keyboard.type("the")
    details = page.locator("[role=option] .detail").filter(has_text=re.compile(r"^turn \d+$"))
    expect(details.first).to_be_visible()
    assert details.evaluate_all("all => all.every(one => one.scrollWidth <= one.clientWidth)")


def test_markdown_is_copied_redacted(visit: Visitor) -> None:
    """D11: the button says that it copies, and what it copies has no home directory of a person."""
    page = visit(f"/session/{REVIEWED}")
    page.get_by_role("link", name="Copy as Markdown").click()
    expect(page.locator(".status")).to_contain_text("Redacted Markdown copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("# ")
    assert "/shelves" in copied
    assert HOME in visit.server.get(f"/session/{REVIEWED}/markdown?redact=0").text
    assert "rosalindfranklin" not in copied


def test_a_share_is_prepared_when_the_pointer_comes_near(visit: Visitor) -> None:
    """The server starts redacting before the click; once for each page."""
    page = visit(SHORT)
    with page.expect_request(lambda request: request.url.endswith(f"{SHORT}/share")):
        page.get_by_role("link", name="Changes", exact=True).hover()
    page.get_by_role("link", name="Share", exact=True).focus()
    page.get_by_role("link", name="Notes", exact=True).hover()
    assert len([url for url in visit.errors.requests if url.endswith(f"{SHORT}/share")]) == 1


_IS_PREPARATION = re.compile(r"/share/prepare$")


def test_a_share_is_prepared_while_the_reader_stays(visit: Visitor) -> None:
    """A session that stays open is exported without a hint of the pointer, once; going elsewhere stops that."""
    page = visit(SHORT, wait="commit")
    with page.expect_response(_IS_PREPARATION) as response:
        pass
    assert response.value.status == 204
    page = visit(SHORT, wait="commit")
    page.route(_IS_PREPARATION, lambda _route: None)  # takes for ever
    with page.expect_request(_IS_PREPARATION):
        pass
    with page.expect_event("requestfailed", lambda request: _IS_PREPARATION.search(request.url) is not None):
        visit.go(page, "/keys")


def test_nothing_is_prepared_on_battery(visit: Visitor) -> None:
    """A browser that runs on battery does not request it: few sessions that are read are shared."""
    page = visit("/keys")
    page.add_init_script("navigator.getBattery = async () => { console.info('battery'); return {charging: false}; }")
    with page.expect_console_message(lambda message: message.text == "battery"):
        visit.go(page, SHORT)
    page.wait_for_timeout(300)
    assert [url for url in visit.errors.requests if _IS_PREPARATION.search(url)] == []


def test_a_share_is_previewed_first(visit: Visitor) -> None:
    """Share shows a preview with counts; only then there are buttons that copy and save."""
    page = visit(f"{SHORT}/share?thinking=full", wait="commit")  # no other test has prepared that
    expect(page.locator(".share-form")).to_be_visible()
    expect(page.locator(".share-actions")).to_have_count(0)
    expect(page.locator(".share-preview")).to_be_visible()  # two clicks from the session to the file
    with page.expect_download() as download:
        page.get_by_role("link", name="Save").click()
    assert download.value.suggested_filename.endswith(".html")
    page.get_by_label("Format").select_option("md")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator(".share-preview")).to_contain_text("#")
    with page.expect_download() as download:
        page.get_by_role("link", name="Save").click()
    assert download.value.suggested_filename.endswith(".md")
