"""Lists of calls and files from the index: newest first, each once, with every filter."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.index.session_rows import sessions
from tests.transcripts import SESSION, Pen, call, prompt, transcript, write
from tools.demo import write as write_demo

from threadline.find import homes
from threadline.index import CallFilter, Index, listings, read_call_input, refresh_index
from threadline.load import Session
from threadline.model.calls import ListedCall, ListedFile, Outcome

ALL = 1_000_000


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A demo home."""
    path = tmp_path_factory.mktemp("listed") / "home"
    write_demo(path, megabytes=1)
    return path


@pytest.fixture(scope="module")
def all_sessions(home: Path) -> list[Session]:
    """The sessions of the demo home."""
    return sessions(home)


@pytest.fixture(scope="module")
def index(home: Path) -> Iterator[Index]:
    """An index of the demo home."""
    refresh_index(home.parent / "index.sqlite", homes(home))
    with Index.open(home.parent / "index.sqlite") as opened:
        yield opened


def test_lists_every_call_once_newest_first(index: Index, all_sessions: list[Session]) -> None:
    """All calls of all sessions are listed once despite copies, each as one of its sessions has it."""
    listed = index.calls(CallFilter(limit=ALL))
    expected = {
        (call.id, call.tool, call.outcome, call.timestamp, call.duration, call.agent, call.place)
        for session in all_sessions
        for call in session.calls
    }
    ids = [call.id for call in listed]
    assert len(set(ids)) == len(ids)
    assert set(ids) == {fields[0] for fields in expected}
    assert {
        (call.id, call.tool, call.outcome, call.timestamp, call.duration, call.agent, call.place) for call in listed
    } <= expected
    times = [call.timestamp for call in listed if call.timestamp is not None]
    assert [int(time.timestamp()) for time in times] == sorted((int(time.timestamp()) for time in times), reverse=True)


def test_filters_calls(index: Index) -> None:
    """By tool, outcome, project and time, alone and combined: the matching calls remain, in the same order."""
    all_calls = index.calls(CallFilter(limit=ALL))
    middle = all_calls[len(all_calls) // 2].timestamp
    project = all_calls[0].project
    assert middle is not None
    bad = ("error", "denied", "interrupted", "lost")
    later = middle + timedelta(milliseconds=500)

    def matching(predicate: Callable[[ListedCall], bool]) -> list[ListedCall]:
        return [call for call in all_calls if predicate(call)]

    def timestamp(listed_call: ListedCall) -> float:
        return listed_call.timestamp.timestamp() if listed_call.timestamp is not None else 0.0

    assert index.calls(CallFilter(limit=ALL), tools=["Bash", "Read"]) == matching(
        lambda call: call.tool in ("Bash", "Read")
    )
    assert index.calls(CallFilter(limit=ALL), outcomes=bad) == matching(lambda call: call.outcome in bad)
    assert index.calls(CallFilter(limit=ALL), outcomes=["error", "error"]) == matching(
        lambda call: call.outcome == "error"
    )
    assert index.calls(CallFilter(limit=ALL), outcomes=["ok", "error"]) == matching(
        lambda call: call.outcome in ("ok", "error")
    )
    assert index.calls(CallFilter(project=project.upper(), limit=ALL)) == matching(lambda call: project in call.project)
    assert index.calls(CallFilter(since=middle, limit=ALL)) == matching(
        lambda call: timestamp(call) >= middle.timestamp()
    )
    assert index.calls(CallFilter(until=later, limit=ALL)) == matching(
        lambda call: 0 < timestamp(call) <= later.timestamp()
    )
    assert index.calls(CallFilter(project=project, limit=ALL), tools=["Bash"], outcomes=["error"]) == matching(
        lambda call: call.tool == "Bash" and call.outcome is Outcome.ERROR and project in call.project
    )
    assert index.calls(CallFilter(limit=7)) == all_calls[:7]
    assert index.calls(CallFilter(), tools=["NoSuchTool"]) == index.calls(CallFilter(project="no such project")) == []
    assert matching(lambda call: call.outcome in bad)


def test_a_sessions_calls_include_those_of_its_agents(index: Index, all_sessions: list[Session]) -> None:
    """With the id of a session, the calls are those of its transcripts, including its agents'."""
    for session in all_sessions:
        listed = index.calls(CallFilter(session=str(session.id), limit=ALL))
        assert sorted((listed_call.id, str(listed_call.place)) for listed_call in listed) == sorted(
            (call.id, str(call.place)) for call in session.calls
        )


def test_lists_files_by_session(index: Index, all_sessions: list[Session]) -> None:
    """Each file and session is listed once, with the number of reads and writes. A path may be given by its end."""
    listed = index.files(CallFilter(limit=ALL))
    query = "SELECT path, session, project, reads, writes FROM files"
    assert {(file.path, file.session, file.project, file.reads, file.writes) for file in listed} == set(
        index.connection.execute(query)
    )
    last_times = [int(file.last.timestamp()) for file in listed if file.last is not None]
    assert last_times == sorted(last_times, reverse=True)
    name = listed[0].path.rsplit("/", 1)[-1]
    assert index.files(CallFilter(limit=ALL), name) == [file for file in listed if file.path.endswith(f"/{name}")]
    assert index.files(CallFilter(), listed[0].path) == [file for file in listed if file.path == listed[0].path]
    session = listed[0].session
    assert index.files(CallFilter(session=session, limit=ALL)) == [file for file in listed if file.session == session]
    assert index.files(CallFilter(project=listed[0].project, limit=ALL)) == [
        file for file in listed if listed[0].project in file.project
    ]
    assert index.files(CallFilter(limit=3)) == listed[:3]
    assert all_sessions
    assert index.files(CallFilter(), "no-such-file") == []


def test_filters_the_reads_and_writes_of_a_file_by_time(tmp_path: Path) -> None:
    """A file that was read before and written after a moment counts as written since then."""
    rows = transcript(
        prompt("go"),
        call("Read", "/a.py", "1\tx", details={"type": "text", "file": {"filePath": "/a.py", "content": "x"}}),
        call("Write", {"file_path": "/a.py"}, "done", details={"filePath": "/a.py", "content": "y", "type": "update"}),
    )
    write(tmp_path / f"home/projects/-a/{SESSION}.jsonl", *rows)
    refresh_index(tmp_path / "index.sqlite", homes(tmp_path / "home"))
    with Index.open(tmp_path / "index.sqlite") as index:
        (touched,) = index.files(CallFilter())
        (later,) = index.files(CallFilter(since=touched.last))
        (before,) = index.files(CallFilter(until=touched.first))
    assert (touched.reads, touched.writes) == (1, 1)
    assert (later.reads, later.writes) == (0, 1)
    assert (before.reads, before.writes) == (1, 0)


@pytest.mark.parametrize("is_reversed", [False, True])
def test_lists_the_original_of_copied_calls(tmp_path: Path, is_reversed: bool) -> None:
    """The calls of a session that was resumed in a new file are listed once, from the file that is charged."""
    first, second = ("b", "a") if is_reversed else ("a", "b")
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
        count = index.connection.execute("SELECT COUNT(*) FROM call_rows").fetchone()
    assert count == (3,)
    assert len(listed) == 2
    assert [call.place.transcript for call in listed] == [owners[messages[call.id]] for call in listed]


def test_inputs_are_read_by_position(index: Index) -> None:
    """Reading only the bytes of a line finds the same input as reading the transcript from there."""
    calls = index.calls(CallFilter())
    places = [(call.place.transcript, call.place.offset, call.place.line, call.id) for call in calls]
    inputs = [read_call_input(*place, call.place.length) for place, call in zip(places, calls, strict=True)]
    assert inputs == [read_call_input(*place) for place in places]
    assert any(inputs)
    assert [json.loads(row["input"]) for row in calls.records()] == inputs
    # The wrong length: the line is read in full.
    assert [read_call_input(*place, 10) for place in places[:5]] == inputs[:5]
    assert read_call_input("/no/such/file.jsonl", 0, 1, "x", 5) is None


def test_commands_naming_a_file_in_any_script(tmp_path: Path) -> None:
    """A name in a script without spaces is found as its text is indexed."""
    names = ("plain.py", "検索.py", "naïve résumé.txt")
    rows = transcript(*(call("Bash", f"echo hi > '{name}'", result="ok") for name in names))
    write(tmp_path / f"home/projects/-a/{SESSION}.jsonl", *rows)
    refresh_index(tmp_path / "index.sqlite", homes(tmp_path / "home"))
    with Index.open(tmp_path / "index.sqlite") as index:
        assert [len(list(index.commands_naming(name))) for name in (*names, "other.py")] == [1, 1, 1, 0]


def test_files_are_listed_while_the_index_is_refreshed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is listed is from one state of the index, even if a transcript is removed from it meanwhile."""
    rows = transcript(call("Read", {"file_path": "/a/b.py"}, result="1\tx"))
    path = write(tmp_path / f"home/projects/-a/{SESSION}.jsonl", *rows)
    found = homes(tmp_path / "home")
    refresh_index(tmp_path / "index.sqlite", found)
    load_files = listings._load_files

    def refresh_and_load(*arguments: Any) -> list[ListedFile]:
        path.unlink(missing_ok=True)
        refresh_index(tmp_path / "index.sqlite", found)
        return load_files(*arguments)

    monkeypatch.setattr(listings, "_load_files", refresh_and_load)
    with Index.open(tmp_path / "index.sqlite") as index:
        assert [file.path for file in index.files(CallFilter())] == ["/a/b.py"]
        assert list(index.files(CallFilter())) == []
