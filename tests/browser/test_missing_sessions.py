"""A session that is truncated or deleted while it is open: the page reports it without errors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.browser.visitor import Visitor
from tests.transcripts import Pen, call, prompt, reply, transcript, write

_SESSION = "0" * 8 + "-0000-4000-8000-0000000010c7"


@pytest.fixture
def path(visit: Visitor) -> Iterator[Path]:
    """A session of ten turns in the served home."""
    transcript_path = visit.server.home / "projects" / "-work-lost" / f"{_SESSION}.jsonl"
    parts = [
        part
        for number in range(10)
        for part in (prompt(f"Step {number}"), call("Bash", f"ls {number}", result="done"), reply(f"Done {number}."))
    ]
    write(transcript_path, *transcript(*parts, pen=Pen(_SESSION)))
    yield transcript_path
    transcript_path.unlink(missing_ok=True)


def _open_session(visit: Visitor) -> Page:
    page = visit(f"/session/{_SESSION}")
    page.wait_for_function(
        "() => performance.getEntriesByType('resource').some(one => one.name.includes('/shape.json'))"
    )
    page.wait_for_timeout(1500)  # its size is known then
    return page


def test_reports_truncation_and_shows_the_rest(visit: Visitor, path: Path) -> None:
    """The status line says how many entries were removed, and the page no longer shows them."""
    page = _open_session(visit)
    before = page.locator(".feed article").count()
    lines = path.read_bytes().splitlines(keepends=True)[:8]
    with path.open("r+b") as file:
        file.truncate(sum(map(len, lines)))
    expect(page.locator("p.status")).to_contain_text("The transcript was truncated")
    assert page.locator(".feed article").count() < before
    page.wait_for_timeout(5000)
    expect(page.locator("p.status")).to_contain_text("entries were removed")


def test_reports_deletion_and_keys_explain_it(visit: Visitor, path: Path) -> None:
    """Loaded entries stay. `r` and `s` say why there is nothing more, and the console stays empty."""
    page = _open_session(visit)
    before = page.locator(".feed article").count()
    path.unlink()
    expect(page.locator("p.status")).to_contain_text("This session no longer exists")
    assert page.locator(".feed article").count() == before
    page.keyboard.press("j")
    for key in ("r", "s"):
        page.keyboard.press(key)
        expect(page.locator(".panel-body")).to_contain_text("This session no longer exists")
    page.keyboard.press("m")
    expect(page.locator("p.status")).to_contain_text("Cannot load Markdown")
    expect(page.locator("p.status")).to_contain_text("This session no longer exists")
