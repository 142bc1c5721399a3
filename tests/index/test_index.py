"""The `Index` class: errors of SQLite become threadline's, and answers are cached until the index changes."""

from __future__ import annotations

import os
import sqlite3
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from tests.transcripts import START, Pen, call, prompt, reply, transcript, write

from threadline.errors import IndexBusy
from threadline.find import homes
from threadline.index import CallFilter, DamagedIndex, Index, refresh_index
from threadline.index.store import translate_error
from threadline.search import search

SESSION = "5e551011-0000-4000-8000-000000000001"


def _build(folder: Path, project: str = "-work-app") -> Path:
    path = folder / "home" / "projects" / project / f"{SESSION}.jsonl"
    write(path, *transcript(prompt("where is the lighthouse"), reply("on the cliff"), pen=Pen(SESSION)))
    refresh_index(folder / "index.sqlite", homes(os.fspath(folder / "home")), jobs=1)
    return folder / "index.sqlite"


def test_reports_a_damaged_file(tmp_path: Path) -> None:
    """Every query of an overwritten file raises an error that says that it is damaged, and how to rebuild it."""
    path = _build(tmp_path)
    size = path.stat().st_size
    with Index.open(path) as index:
        with path.open("r+b") as file:
            file.seek(8192)
            file.write(b"\xff" * (size - 8192))
        queries = (
            index.sessions,
            index.tool_counts,
            lambda: index.calls(CallFilter()),
            lambda: index.ledger().total,
            lambda: list(index.entries.all_rows()),
            lambda: search(index, "lighthouse"),
        )
        for query in queries:
            with pytest.raises(DamagedIndex, match="threadline index rebuild"):
                query()


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (sqlite3.OperationalError("database is locked"), IndexBusy),
        (sqlite3.OperationalError("disk I/O error"), DamagedIndex),
        (sqlite3.DatabaseError("database disk image is malformed"), DamagedIndex),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"), DamagedIndex),
        (sqlite3.OperationalError("no such column: x"), sqlite3.OperationalError),
        (sqlite3.ProgrammingError("Cannot operate on a closed database."), sqlite3.ProgrammingError),
    ],
)
def test_translates_sqlite_errors(error: Exception, kind: type[Exception], tmp_path: Path) -> None:
    """A damaged file and a locked one have their own errors. A mistake in a statement is a bug, and stays as it is."""
    assert type(translate_error(error, tmp_path)) is kind


def test_a_value_is_computed_again_when_the_index_changes(tmp_path: Path) -> None:
    """A cached value is valid until a refresh writes to the index, or until the given state changes."""
    path = _build(tmp_path)
    computed: list[int] = []

    def compute() -> int:
        computed.append(len(computed))
        return computed[-1]

    with Index.open(path) as index:
        assert [index.cached("key", compute), index.cached("key", compute), index.cached("other", compute)] == [0, 0, 1]
        assert [index.cached("key", compute, 1), index.cached("key", compute, 1)] == [2, 2]
        generation = index.generation
        write(
            tmp_path / "home/projects/-work-app/other.jsonl",
            *transcript(prompt("another"), pen=Pen("5e551011-0000-4000-8000-000000000002")),
        )
        refresh_index(path, homes(os.fspath(tmp_path / "home")), jobs=1)
        assert index.generation != generation
        assert index.cached("key", compute, 1) == 3


def test_a_snapshot_does_not_see_a_refresh(tmp_path: Path) -> None:
    """All queries inside a snapshot see the same state."""
    path = _build(tmp_path)
    with Index.open(path) as index:
        with index.snapshot():
            before = index.entries.count()
            write(
                tmp_path / "home/projects/-work-app/other.jsonl",
                *transcript(prompt("another"), pen=Pen("5e551011-0000-4000-8000-000000000002")),
            )
            refresh_index(path, homes(os.fspath(tmp_path / "home")), jobs=1)
            assert index.entries.count() == before
        assert index.entries.count() > before


@pytest.mark.skipif(sys.platform == "darwin", reason="its file names are text")
def test_searches_a_project_whose_name_is_not_utf_8(tmp_path: Path) -> None:
    """A folder name that is not valid UTF-8 is a path like any other, in hits and in filters."""
    with Index.open(_build(tmp_path, os.fsdecode(b"-work-\xff"))) as index:
        (hit,) = search(index, "lighthouse project:work").hits
        assert os.fsencode(hit.place.transcript).endswith(f"-work-\xff/{SESSION}.jsonl".encode("latin-1"))
        assert search(index, "lighthouse project:elsewhere").hits == ()


def test_the_branch_of_a_session_is_that_of_its_last_message(tmp_path: Path) -> None:
    """A session that returned to its first branch is listed with that one, not with the one in between."""
    pen = Pen(SESSION)
    rows = [
        {**row, "gitBranch": branch}
        for branch in ("main", "feature", "main")
        for row in transcript(prompt("go on"), reply("done"), pen=pen)
        if isinstance(row, dict)
    ]
    write(tmp_path / "home" / "projects" / "-work-app" / f"{SESSION}.jsonl", *rows)
    refresh_index(tmp_path / "index.sqlite", homes(tmp_path / "home"), jobs=1)
    with Index.open(tmp_path / "index.sqlite") as index:
        assert index.session_details([SESSION])[SESSION].branch == "main"


def test_a_file_whose_edit_a_person_changed_is_a_changed_file(tmp_path: Path) -> None:
    """The changed files of a session include those whose only edit a person changed before it was made."""
    edited = {"filePath": "/work/app/a.py", "oldString": "a", "newString": "b", "userModified": True}
    inputs = {"file_path": "/work/app/a.py", "old_string": "a", "new_string": "b"}
    rows = transcript(prompt("edit"), call("Edit", inputs, result="ok", details=edited), pen=Pen(SESSION))
    write(tmp_path / "home" / "projects" / "-work-app" / f"{SESSION}.jsonl", *rows)
    refresh_index(tmp_path / "index.sqlite", homes(tmp_path / "home"), jobs=1)
    with Index.open(tmp_path / "index.sqlite") as index:
        assert index.session_details([SESSION])[SESSION].files == 1


def test_what_an_agent_beside_its_session_did_counts_for_the_session(tmp_path: Path) -> None:
    """Versions 2.0.28 to 2.1.1 store agents beside the sessions: their calls, failures and files are the session's."""
    project = tmp_path / "home" / "projects" / "-work-app"
    agent = Pen(SESSION, START + timedelta(hours=1), isSidechain=True, agentId="ab12cd34", version="2.0.50")
    for _ in range(20):  # its ids follow those of the main transcript
        agent.number()
    written = {"type": "create", "filePath": "/work/app/a.py", "content": "x\n"}
    write(project / f"{SESSION}.jsonl", *transcript(prompt("go"), call("Bash", "ls", result="no", error=True)))
    write(
        project / "agent-ab12cd34.jsonl",
        *transcript(
            prompt("task"),
            call("Bash", "make", result="no", error=True),
            call("Write", {"file_path": "/work/app/a.py", "content": "x\n"}, result="ok", details=written),
            pen=agent,
        ),
    )
    refresh_index(tmp_path / "index.sqlite", homes(tmp_path / "home"), jobs=1)
    with Index.open(tmp_path / "index.sqlite") as index:
        assert index.call_counts() == index.call_counts([SESSION]) == {SESSION: 3}
        details = index.session_details([SESSION])[SESSION]
        assert (details.failed_calls, details.files) == (2, 1)
