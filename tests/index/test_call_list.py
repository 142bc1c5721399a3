"""Lists of calls and files from the index: newest first, each once, and narrowed in every way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from tests.index.work_rows import sessions
from tests.transcripts import SESSION, Pen, call, prompt, transcript, write
from tools.demo import write as write_demo

from threadline.find import homes
from threadline.index import CallFilter, Index, refresh_index
from threadline.load import Session
from threadline.model.calls import ListedCall, Outcome

ALL = 1_000_000


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A made-up home."""
    where = tmp_path_factory.mktemp("listed") / "home"
    write_demo(where, megabytes=1)
    return where


@pytest.fixture(scope="module")
def told(home: Path) -> list[Session]:
    """Its sessions."""
    return sessions(home)


@pytest.fixture(scope="module")
def index(home: Path) -> Iterator[Index]:
    """An index of it."""
    refresh_index(home.parent / "index.sqlite", homes(home))
    with Index.open(home.parent / "index.sqlite") as opened:
        yield opened


def test_every_call_is_listed_once_newest_first(index: Index, told: list[Session]) -> None:
    """All calls of all sessions, whatever copies there are, each as one of its sessions tells it."""
    listed = index.calls(CallFilter(limit=ALL))
    known = {
        (call.id, call.tool, call.outcome, call.timestamp, call.duration, call.agent, call.place)
        for session in told
        for call in session.calls
    }
    ids = [one.id for one in listed]
    assert len(set(ids)) == len(ids)
    assert set(ids) == {one[0] for one in known}
    assert {
        (one.id, one.tool, one.outcome, one.timestamp, one.duration, one.agent, one.place) for one in listed
    } <= known
    times = [one.timestamp for one in listed if one.timestamp is not None]
    assert [int(time.timestamp()) for time in times] == sorted((int(time.timestamp()) for time in times), reverse=True)


def test_calls_are_narrowed(index: Index) -> None:
    """By tool, outcome, project and time, and by several at once: what is left is what fits, in the same order."""
    every = index.calls(CallFilter(limit=ALL))
    middle = every[len(every) // 2].timestamp
    project = every[0].project
    assert middle is not None
    bad = ("error", "denied", "interrupted", "lost")
    later = middle + timedelta(milliseconds=500)

    def fits(keep: Callable[[ListedCall], bool]) -> list[ListedCall]:
        return [one for one in every if keep(one)]

    def when(listed_call: ListedCall) -> float:
        return listed_call.timestamp.timestamp() if listed_call.timestamp is not None else 0.0

    assert index.calls(CallFilter(limit=ALL), tools=["Bash", "Read"]) == fits(lambda one: one.tool in ("Bash", "Read"))
    assert index.calls(CallFilter(limit=ALL), outcomes=bad) == fits(lambda one: one.outcome in bad)
    assert index.calls(CallFilter(limit=ALL), outcomes=["ok", "error"]) == fits(
        lambda one: one.outcome in ("ok", "error")
    )
    assert index.calls(CallFilter(project=project.upper(), limit=ALL)) == fits(lambda one: project in one.project)
    assert index.calls(CallFilter(since=middle, limit=ALL)) == fits(lambda one: when(one) >= middle.timestamp())
    assert index.calls(CallFilter(until=later, limit=ALL)) == fits(lambda one: 0 < when(one) <= later.timestamp())
    assert index.calls(CallFilter(project=project, limit=ALL), tools=["Bash"], outcomes=["error"]) == fits(
        lambda one: one.tool == "Bash" and one.outcome is Outcome.ERROR and project in one.project
    )
    assert index.calls(CallFilter(limit=7)) == every[:7]
    assert index.calls(CallFilter(), tools=["NoSuchTool"]) == index.calls(CallFilter(project="no such project")) == []
    assert fits(lambda one: one.outcome in bad)


def test_a_sessions_calls_are_all_that_its_transcripts_hold(index: Index, told: list[Session]) -> None:
    """With the start of an id, the calls are those of the session, its agents' included."""
    for session in told:
        listed = index.calls(CallFilter(session=str(session.id), limit=ALL))
        assert sorted((one.id, str(one.place)) for one in listed) == sorted(
            (call.id, str(call.place)) for call in session.calls
        )


def test_files_are_listed_by_session(index: Index, told: list[Session]) -> None:
    """Each file and session once, with how often it was read and written; a path may be named by its end."""
    listed = index.files(CallFilter(limit=ALL))
    asked = "SELECT path, session, project, reads, writes FROM files"
    assert {(one.path, one.session, one.project, one.reads, one.writes) for one in listed} == set(
        index.connection.execute(asked)
    )
    lasts = [int(one.last.timestamp()) for one in listed if one.last is not None]
    assert lasts == sorted(lasts, reverse=True)
    name = listed[0].path.rsplit("/", 1)[-1]
    assert index.files(CallFilter(limit=ALL), name) == [one for one in listed if one.path.endswith(f"/{name}")]
    assert index.files(CallFilter(), listed[0].path) == [one for one in listed if one.path == listed[0].path]
    session = listed[0].session
    assert index.files(CallFilter(session=session, limit=ALL)) == [one for one in listed if one.session == session]
    assert index.files(CallFilter(project=listed[0].project, limit=ALL)) == [
        one for one in listed if listed[0].project in one.project
    ]
    assert index.files(CallFilter(limit=3)) == listed[:3]
    assert told
    assert index.files(CallFilter(), "no-such-file") == []


def test_time_narrows_files_to_what_was_done_in_it(tmp_path: Path) -> None:
    """A file that was read before and written after a moment is one that was written, since then."""
    rows = transcript(
        prompt("go"),
        call("Read", "/a.py", "1\tx", details={"type": "text", "file": {"filePath": "/a.py", "content": "x"}}),
        call("Write", {"file_path": "/a.py"}, "done", details={"filePath": "/a.py", "content": "y", "type": "update"}),
    )
    write(tmp_path / f"home/projects/-a/{SESSION}.jsonl", *rows)
    refresh_index(tmp_path / "index.sqlite", homes(tmp_path / "home"))
    with Index.open(tmp_path / "index.sqlite") as index:
        (whole,) = index.files(CallFilter())
        (later,) = index.files(CallFilter(since=whole.last))
        (before,) = index.files(CallFilter(until=whole.first))
    assert (whole.reads, whole.writes) == (1, 1)
    assert (later.reads, later.writes) == (0, 1)
    assert (before.reads, before.writes) == (1, 0)


@pytest.mark.parametrize("turned", [False, True])
def test_of_copies_the_original_is_listed(tmp_path: Path, turned: bool) -> None:
    """A session that was resumed in a new file: its calls are listed once, of the file whose messages are charged."""
    first, second = ("b", "a") if turned else ("a", "b")
    rows = transcript(prompt("go"), call("Bash", "ls", "x"), pen=Pen())
    more = transcript(call("Bash", "pwd", "y"), pen=Pen(f"{SESSION[:-1]}2"))
    write(tmp_path / f"home/projects/-a/{first * 8}{SESSION[8:]}.jsonl", *rows)
    write(tmp_path / f"home/projects/-a/{second * 8}{SESSION[8:]}.jsonl", *rows, *more)
    refresh_index(tmp_path / "index.sqlite", homes(tmp_path / "home"))
    with Index.open(tmp_path / "index.sqlite") as index:
        listed = index.calls(CallFilter())
        owners = dict(
            index.connection.execute("SELECT message, path FROM charges JOIN transcripts USING(transcript_id)")
        )
        messages = dict(
            index.connection.execute("SELECT call, message FROM calls JOIN entries USING(entry_id)").fetchall()
        )
        both = index.connection.execute("SELECT COUNT(*) FROM call_rows").fetchone()
    assert both == (3,)
    assert len(listed) == 2
    assert [one.place.transcript for one in listed] == [owners[messages[one.id]] for one in listed]
