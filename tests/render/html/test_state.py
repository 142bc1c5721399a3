"""The state at a place: files as far as they are proven, what changed, lists and settings."""

from __future__ import annotations

from pathlib import Path

from tests.render.html.calling import SCENE, WHOLE, Page
from tests.render.reading import session
from tests.transcripts import call, prompt, reply

from threadline.model.session import Session
from threadline.render.html import render_state
from threadline.thread import difference, state_at

HOSTILE = "<script>x</script>"


def worked(folder: Path, content: str = "one\ntwo\n") -> Session:
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


def test_the_end_of_a_session(tmp_path: Path) -> None:
    """Files have their statements and what is known of their text; todos, tasks and settings stand there."""
    whole = worked(tmp_path)
    stood = state_at(whole)
    drawn = Page(render_state(stood, whole, SCENE))
    for words in (
        "State at the end",
        "Files (2)",
        "a.py",
        "proven",
        "changed",
        "Every line is proven by edit at line 7",
        "1\n2one\nthree",
        "2 of 9 lines are proven",
        "5\n6five\nsix",
        f"◐ {HOSTILE}",
        "☐ #1 Do it",
        "sonnet-4-5",
        "/work/app",
        "main",
        "tokens",
    ):
        assert words in drawn.text
    assert drawn.is_inert()


def test_an_earlier_place(tmp_path: Path) -> None:
    """What came later is not there, and the place is a link to its entry."""
    whole = worked(tmp_path)
    place = whole.main.entries[2].place
    drawn = Page(render_state(state_at(whole, place), whole, SCENE))
    assert "after line 3" in drawn.text
    assert "#L3" in drawn.links
    assert "two" in drawn.text
    assert "three" not in drawn.text
    assert "b.md" not in drawn.text


def test_compared_with_another_place(tmp_path: Path) -> None:
    """The difference to another place stands first, with what it rests on."""
    whole = worked(tmp_path)
    before, after = state_at(whole, whole.main.entries[2].place), state_at(whole)
    differences = difference(before, after)
    drawn = Page(render_state(after, whole, SCENE, before, differences))
    assert "Compared with the state after line 3" in drawn.text
    assert " one\n-two\n+three\n" in drawn.text
    assert "Before: Every line is proven by write at line 3" in drawn.text
    same = Page(render_state(after, whole, SCENE, after, difference(after, after)))
    assert "No file is known to differ." in same.text


def test_a_panel_is_bounded_and_a_whole_page_is_not(tmp_path: Path) -> None:
    """Of a long file a page shows the first lines and says how many more there are."""
    whole = worked(tmp_path, "\n".join(["one", "two", *map(str, range(5000))]))
    stood = state_at(whole)
    cut, full = Page(render_state(stood, whole, SCENE)), Page(render_state(stood, whole, WHOLE))
    assert "more lines" in cut.text
    assert len(cut.text) < 0.5 * len(full.text)
    assert "4999" in full.text
    assert len(cut.tags) < 400


def test_a_session_without_anything(tmp_path: Path) -> None:
    """A state in which nothing is known is still a page."""
    whole = session(tmp_path, prompt("hi"))
    assert "State at the end" in Page(render_state(state_at(whole), whole, SCENE)).text
