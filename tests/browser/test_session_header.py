"""The header of a session's page is low, whatever the title and the directory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect
from tests.browser import homes
from tests.browser.visitor import Visitor
from tests.transcripts import Pen, prompt, reply, transcript, write

_SESSION = "0" * 8 + "-0000-4000-8000-000000001ead"
_FOLDER = "/home/somebody/work/a-folder-with-a-long-name/and-another-one/of-which-the-name-is-longer-still/app"


@pytest.fixture
def session(visit: Visitor) -> Iterator[str]:
    """The page of a session with a long prompt as its title, deep in folders."""
    path = visit.server.home / "projects" / "-work-head" / f"{_SESSION}.jsonl"
    rows = transcript(
        prompt("Look at all of the shelves, please. " * 20), reply("Yes."), pen=Pen(_SESSION, cwd=_FOLDER)
    )
    write(Path(path), *rows)
    yield f"/session/{_SESSION}"
    path.unlink()


def test_the_header_is_low(visit: Visitor, session: str) -> None:
    """The title takes two lines and the resume command one, beside the buttons. All of the command can be copied."""
    page = visit(session, width=1280)
    lines = "one => Math.round(one.getBoundingClientRect().height / parseFloat(getComputedStyle(one).lineHeight))"
    assert page.locator(".head h1").evaluate(lines) == 2
    resume, buttons = (page.locator(f".head {part}").bounding_box() for part in (".resume", ".copying"))
    assert resume is not None
    assert buttons is not None
    assert abs(resume["y"] + resume["height"] / 2 - buttons["y"] - buttons["height"] / 2) < 12
    assert resume["x"] + resume["width"] <= buttons["x"]
    command = f"cd {_FOLDER} && CLAUDE_CONFIG_DIR={visit.server.home} claude --resume {_SESSION}"
    assert page.locator("#resume").text_content() == command


def test_the_header_fits_a_phone(visit: Visitor, session: str) -> None:
    """At 390 px nothing is wider than the page."""
    page = visit(session, width=390)
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_a_command_is_copied_by_one_click(visit: Visitor, session: str) -> None:
    """With scripts there is a button instead of the command; without them, the command."""
    page = visit(session)
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("status")).to_contain_text("Command for your terminal copied")
    assert page.evaluate("navigator.clipboard.readText()").endswith(f"claude --resume {_SESSION}")
    page = visit(session, javascript=False)
    expect(page.locator("#resume")).to_contain_text(f"claude --resume {_SESSION}")
    assert page.locator("#resume").evaluate("code => code.clientWidth") > 100


def test_the_amount_leads_to_its_receipt(visit: Visitor, session: str) -> None:
    """The amount in the header is a link to the lines that were counted."""
    page = visit(session)
    page.locator('.head a[href^="/receipt"]').click()
    expect(page.get_by_role("heading", level=1)).to_have_text("How this was counted")


def test_the_bar_repeats_the_title_only_below_the_header(visit: Visitor) -> None:
    """While the header is on the screen, the title is shown once."""
    page = visit(f"/session/{homes.GROWING}", height=400)
    title = page.locator(".mini-head > .mini-title")
    expect(title).to_be_hidden()
    page.mouse.wheel(0, 2000)
    expect(title).to_be_visible()
