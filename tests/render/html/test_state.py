"""The state at a place: files as far as they are proven, changes, lists and settings."""

from __future__ import annotations

from pathlib import Path

from tests.render.html.calls_and_pages import SCENE, UNCUT_SCENE, Page
from tests.render.sessions import session
from tests.transcripts import call, prompt, reply

from threadline.model.session import Session
from threadline.render.html import render_state
from threadline.thread import difference, state_at

HOSTILE = "<script>x</script>"


def working_session(folder: Path, content: str = "one\ntwo\n") -> Session:
    """A session that wrote a file, changed it, read a part of another, and kept lists."""
    path = "/work/app/a.py"
    patch = [{"oldStart": 2, "oldLines": 1, "newStart": 2, "newLines": 1, "lines": ["-two", "+three"]}]
    return session(
        folder,
        prompt("go"),
        call(
            "Write",
            {"file_path": path, "content": content},
            result="ok",
            details={
                "type": "create",
                "filePath": path,
                "content": content,
                "structuredPatch": [],
                "originalFile": None,
            },
        ),
        call(
            "TodoWrite",
            {"todos": [{"content": HOSTILE, "status": "in_progress"}]},
            result="ok",
            details={"oldTodos": [], "newTodos": [{"content": HOSTILE, "status": "in_progress"}]},
        ),
        call(
            "Edit",
            {"file_path": path, "old_string": "two", "new_string": "three"},
            result="ok",
            details={
                "filePath": path,
                "oldString": "two",
                "newString": "three",
                "originalFile": content,
                "structuredPatch": patch,
            },
        ),
        call(
            "Read",
            {"file_path": "/work/app/b.md", "offset": 5, "limit": 2},
            result="x",
            details={
                "type": "text",
                "file": {
                    "filePath": "/work/app/b.md",
                    "content": "five\nsix",
                    "numLines": 2,
                    "startLine": 5,
                    "totalLines": 9,
                },
            },
        ),
        call(
            "TaskCreate",
            {"subject": "Do it", "description": "d"},
            result="ok",
            details={"task": {"id": "1", "subject": "Do it"}},
        ),
        reply("done", input=1000),
    )


def test_shows_the_state_at_the_end(tmp_path: Path) -> None:
    """Files with their proofs and known text, todos, tasks and settings."""
    sample = working_session(tmp_path)
    state = state_at(sample)
    page = Page(render_state(state, sample, SCENE))
    for words in (
        "State at the end",
        "Files (2)",
        "a.py",
        "exact",
        "changed",
        "Every line is known from the edit at line 7",
        "1\n2one\nthree",
        "2 of 9 lines are known",
        "5\n6five\nsix",
        f"◐ {HOSTILE}",
        "☐ #1 Do it",
        "sonnet-4-5",
        "/work/app",
        "main",
        "tokens",
    ):
        assert words in page.text
    assert page.is_inert()


def test_shows_the_state_at_an_earlier_entry(tmp_path: Path) -> None:
    """Later changes are not shown, and the place links to its entry."""
    sample = working_session(tmp_path)
    place = sample.main.entries[2].place
    page = Page(render_state(state_at(sample, place), sample, SCENE))
    assert "after line 3" in page.text
    assert "#L3" in page.links
    assert "two" in page.text
    assert "three" not in page.text
    assert "b.md" not in page.text


def test_compares_two_states(tmp_path: Path) -> None:
    """The difference comes first, with its proofs."""
    sample = working_session(tmp_path)
    before, after = state_at(sample, sample.main.entries[2].place), state_at(sample)
    differences = difference(before, after)
    page = Page(render_state(after, sample, SCENE, before, differences))
    assert "Changes since the state after line 3" in page.text
    assert " one\n-two\n+three\n" in page.text
    assert "Before: Every line is known from the write at line 3" in page.text
    same = Page(render_state(after, sample, SCENE, after, difference(after, after)))
    assert "No file is known to differ." in same.text


def test_the_panel_is_bounded_and_the_full_page_is_not(tmp_path: Path) -> None:
    """A panel shows the first lines of a long file and the number of remaining ones."""
    sample = working_session(tmp_path, "\n".join(["one", "two", *map(str, range(5000))]))
    state = state_at(sample)
    truncated, full = Page(render_state(state, sample, SCENE)), Page(render_state(state, sample, UNCUT_SCENE))
    assert "more lines" in truncated.text
    assert len(truncated.text) < 0.5 * len(full.text)
    assert "4999" in full.text
    assert len(truncated.tags) < 400


def test_shows_an_empty_state(tmp_path: Path) -> None:
    """A state in which nothing is known is still a page."""
    sample = session(tmp_path, prompt("hi"))
    assert "State at the end" in Page(render_state(state_at(sample), sample, SCENE)).text
