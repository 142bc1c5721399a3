"""The head of a session's page: low, whatever the session is called and wherever it was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.browser.visiting import Visitor
from tests.transcripts import Pen, prompt, reply, transcript, write

_SESSION = "0" * 8 + "-0000-4000-8000-000000001ead"
_FOLDER = "/home/somebody/work/a-folder-with-a-long-name/and-another-one/of-which-the-name-is-longer-still/app"


@pytest.fixture
def session(visit: Visitor) -> Iterator[str]:
    """A session that is called by a long prompt, far down in folders; its page."""
    place = visit.served.home / "projects" / "-work-head" / f"{_SESSION}.jsonl"
    rows = transcript(
        prompt("Look at all of the shelves, please. " * 20), reply("Yes."), pen=Pen(_SESSION, cwd=_FOLDER)
    )
    write(Path(place), *rows)
    yield f"/session/{_SESSION}"
    place.unlink()


def test_the_head_is_low(visit: Visitor, session: str) -> None:
    """The name takes two lines and the command to resume one, beside the buttons; the command can be copied whole."""
    page = visit(session, width=1280)
    lines = "one => Math.round(one.getBoundingClientRect().height / parseFloat(getComputedStyle(one).lineHeight))"
    assert page.locator(".head h1").evaluate(lines) == 2
    resume, buttons = (page.locator(f".head {one}").bounding_box() for one in (".resume", ".copying"))
    assert resume is not None
    assert buttons is not None
    assert abs(resume["y"] + resume["height"] / 2 - buttons["y"] - buttons["height"] / 2) < 12
    assert resume["x"] + resume["width"] <= buttons["x"]
    command = f"cd {_FOLDER} && CLAUDE_CONFIG_DIR={visit.served.home} claude --resume {_SESSION}"
    assert page.locator("#resume").text_content() == command


def test_nothing_of_it_is_wider_than_a_phone(visit: Visitor, session: str) -> None:
    """At 390 px nothing of the page stands beyond its edge."""
    page = visit(session, width=390)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
