"""Defects of the lists, the home page and the page without access that a review found, as a visitor sees them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from tests.browser.server import Server, start_server
from tests.transcripts import SESSION, Part, Pen, call, prompt, reply, transcript, write

_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_BUSY, _LESS_BUSY, _QUIET = 232, 85, 3


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server on a home with a session that began with a greeting and ended with "1", and with hours of work."""
    home = tmp_path_factory.mktemp("listed") / "home"
    _write(
        home,
        SESSION,
        datetime(2026, 7, 22, 9, tzinfo=UTC),
        prompt("hi"),
        reply("Hello."),
        prompt("Sort the books on the shelf"),
        call("Agent", {"description": "count", "prompt": "Count", "subagent_type": "Explore"}, result="2"),
        call("Agent", {"description": "no", "prompt": "No", "subagent_type": "Explore"}, result="denied", error=True),
        reply("Sorted."),
        prompt("1"),
        reply("Which one?"),
        {"type": "last-prompt", "sessionId": SESSION, "lastPrompt": "1"},
    )
    monday = datetime(2026, 7, 13, tzinfo=UTC)
    hours = {(day, hour): _QUIET for day in range(7) for hour in range(1, 9)} | {(3, 15): _BUSY, (4, 0): _LESS_BUSY}
    for number, ((day, hour), replies) in enumerate(hours.items(), 1):
        start = monday + timedelta(days=day, hours=hour)
        parts = [part for at in range(replies) for part in (prompt(f"Shelf {at}"), reply("Yes."))]
        _write(home, f"{number:08d}-0000-4000-8000-00000000beef", start, *parts)
    with start_server(home, tmp_path_factory.mktemp("listed-cache")) as started:
        yield started


def _write(home: Path, session: str, start: datetime, *parts: Part) -> None:
    rows = transcript(*parts, pen=Pen(session, start))
    write(home / "projects" / "-work-app" / f"{session}.jsonl", *rows)


@pytest.fixture
def page(browser: Browser, server: Server) -> Iterator[Page]:
    """A page of a profile in UTC with the server's cookie."""
    context = browser.new_context(base_url=server.address, timezone_id="UTC")
    context.add_cookies(server.browser_cookies())  # type: ignore[arg-type] # they are dicts of that shape
    yield context.new_page()
    context.close()


def _row(page: Page) -> Locator:
    page.goto("/sessions?since=2026-07-22&until=2026-07-22&tz=UTC")
    return page.locator("tbody tr, ol > li").filter(has=page.locator(f'a[href*="/session/{SESSION}"]')).first


def test_a_row_counts_agents_without_a_transcript(page: Page) -> None:
    """D7: the list shows agents that were started, even without a transcript. A failed call started none."""
    expect(_row(page)).to_contain_text("1 agent")


def test_a_row_is_titled_by_the_first_real_prompt(page: Page) -> None:
    """D8: neither the greeting nor the last thing typed is the title."""
    expect(_row(page).get_by_role("link").first).to_have_text("Sort the books on the shelf")


def test_the_calendar_names_every_month(page: Page) -> None:
    """D15: no month between the first and the last label is left out."""
    page.goto("/?tz=UTC")
    labels = [text for text in page.locator("svg.calendar text").all_text_contents() if text in _MONTHS]
    assert len(labels) >= 11
    first = _MONTHS.index(labels[0])
    assert labels == [_MONTHS[(first + at) % 12] for at in range(len(labels))]


def test_the_busiest_hour_is_darker_than_the_second(page: Page) -> None:
    """D15: the shades of 232 and 85 replies in an hour differ, and that of 3 differs from both."""
    page.goto("/?tz=UTC")
    shades = [
        page.locator("svg rect").filter(has=page.locator("title", has_text=f" {number}")).first.get_attribute("class")
        for number in (_BUSY, _LESS_BUSY, _QUIET)
    ]
    assert len(set(shades)) == 3


def test_the_page_without_access_has_the_look_of_the_others(browser: Browser, server: Server) -> None:
    """D16: without a cookie, the reason is styled like every page and is the first thing on it."""
    context = browser.new_context(base_url=server.address, color_scheme="light")
    page = context.new_page()
    page.goto("/")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(251, 248, 242)"
    expect(page.get_by_text("Skip to content")).to_have_count(0)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    context.close()
