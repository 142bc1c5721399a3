"""A session that is cut or deleted while somebody looks at it: the page says so, and complains of nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.browser.visiting import Visitor
from tests.transcripts import Pen, call, prompt, reply, transcript, write

_SESSION = "0" * 8 + "-0000-4000-8000-0000000010c7"


@pytest.fixture
def path(visit: Visitor) -> Iterator[Path]:
    """A session of ten turns, in the home that is served."""
    place = visit.served.home / "projects" / "-work-lost" / f"{_SESSION}.jsonl"
    parts = [
        part
        for number in range(10)
        for part in (prompt(f"Step {number}"), call("Bash", f"ls {number}", result="done"), reply(f"Done {number}."))
    ]
    write(place, *transcript(*parts, pen=Pen(_SESSION)))
    yield place
    place.unlink(missing_ok=True)


def _opened(visit: Visitor) -> Page:
    page = visit(f"/session/{_SESSION}")
    page.wait_for_function(
        "() => performance.getEntriesByType('resource').some(one => one.name.includes('/shape.json'))"
    )
    page.wait_for_timeout(1500)  # its size is known by then
    return page


def test_a_cut_is_said_and_what_is_left_is_shown(visit: Visitor, path: Path) -> None:
    """How many entries are gone stands in the status line, and they are gone from the page."""
    page = _opened(visit)
    before = page.locator(".feed article").count()
    kept = path.read_bytes().splitlines(keepends=True)[:8]
    with path.open("r+b") as file:
        file.truncate(sum(map(len, kept)))
    expect(page.locator("p.status")).to_contain_text("The transcript was truncated")
    assert page.locator(".feed article").count() < before
    page.wait_for_timeout(5000)
    expect(page.locator("p.status")).to_contain_text("entries were removed")


def test_a_deletion_is_said_and_keys_answer_with_a_sentence(visit: Visitor, path: Path) -> None:
    """What was read stays; `r` and `s` say why there is nothing more, and the console stays empty."""
    page = _opened(visit)
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
