"""The session store for the SDK: what it stores is a home, and nothing is stored twice or outside of it."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event
from typing import Any, TypeVar

import pytest
from tests.transcripts import call as tool_call
from tests.transcripts import prompt, reply, transcript

import threadline
from threadline.cli.commands import run as run_command
from threadline.errors import BadQuery, Missing, NotFound, Unreadable
from threadline.home_files import OutsideHomeError
from threadline.store import SessionKey, SessionStore
from threadline.store.database import SessionDatabase
from threadline.store.folder import SessionFolder

SESSION = "5e551011-0000-4000-8000-000000000001"
KEY: SessionKey = {"project_key": "-work-app", "session_id": SESSION}
AGENT: SessionKey = {**KEY, "subpath": "subagents/agent-a1b2c3d4"}
_Result = TypeVar("_Result")


def run(call: Coroutine[Any, Any, _Result]) -> _Result:
    """Wait for a call."""
    return asyncio.run(call)


@pytest.fixture
def store(tmp_path: Path) -> SessionStore:
    """An empty store in a folder."""
    return SessionStore(tmp_path / "store")


@pytest.fixture(params=["store", "store.db"])
def any_store(request: pytest.FixtureRequest, tmp_path: Path) -> SessionStore:
    """An empty store in a folder, or in a SQLite file."""
    return SessionStore(tmp_path / request.param)


def test_it_is_a_home(any_store: SessionStore) -> None:
    """What was appended is a session that the archive reads, also what is appended later. What was deleted is gone."""
    store = any_store
    run(store.append(KEY, transcript(prompt("Sort the shelf"), reply("Sorted."))))
    with threadline.open(store.path) as archive:
        (session,) = archive.sessions()
        assert (session.id, session.title) == (SESSION, "Sort the shelf")
        assert archive.examine().problems == {}
    run(store.append(KEY, [{"type": "custom-title", "customTitle": "Shelves", "sessionId": SESSION}]))
    run(store.append(AGENT, [{"type": "agent_metadata", "agentType": "explorer"}, *transcript(prompt("Look"))]))
    with threadline.open(store.path) as archive:
        loaded = archive.session(SESSION)
        assert (loaded.title.text, [agent.type for agent in loaded.agents]) == ("Shelves", ["explorer"])
    run(store.delete(KEY))
    with threadline.open(store.path) as archive:
        assert list(archive.sessions()) == []


def test_commands_read_what_it_stores(any_store: SessionStore, capsys: pytest.CaptureFixture[str]) -> None:
    """Every command that lists or shows something reads the store as a home."""
    store = any_store
    run(store.append(KEY, transcript(prompt("Sort the shelf"), tool_call("Bash", "sort", "ok"), reply("Sorted."))))
    run(store.append(AGENT, transcript(prompt("Look"), reply("Seen."))))
    commands = ["list", "usage", "calls", "doctor", "tools", "why", "search shelf", f"show {SESSION}"]
    for command in (*commands, f"tree {SESSION}", f"entries {SESSION}", "sql 'SELECT * FROM sessions'"):
        assert run_command([*shlex.split(command), "--home", str(store.path)]) == 0, command
        assert capsys.readouterr().out, command


def test_entries_are_appended_once(any_store: SessionStore) -> None:
    """A batch that is sent again adds only what is new. Entries without a uuid are always added."""
    store = any_store
    first, second = {"type": "user", "uuid": "a", "n": 1}, {"type": "user", "uuid": "b", "n": 1.5}
    title = {"type": "custom-title", "customTitle": "\ud83d and ümläut"}
    run(store.append(KEY, [first, title]))
    run(store.append(KEY, [first, second, title]))
    assert run(SessionStore(store.path).load(KEY)) == [first, title, second, title]
    run(SessionStore(store.path).append(KEY, [second, first]))  # another process
    run(store.append(KEY, [first]))
    assert run(store.load(KEY)) == [first, title, second, title]


def test_line_that_was_cut(store: SessionStore) -> None:
    """What a crash left of a line does not damage the next one, and the entry is stored when it is sent again."""
    run(store.append(KEY, [{"type": "user", "uuid": "a"}]))
    path = store.path / f"projects/-work-app/{SESSION}.jsonl"
    with path.open("ab") as file:
        file.write(b'{"type": "user", "uu')
    run(store.append(KEY, [{"type": "user", "uuid": "b"}]))
    assert run(store.load(KEY)) == [{"type": "user", "uuid": "a"}, {"type": "user", "uuid": "b"}]


def test_agents(store: SessionStore) -> None:
    """Their transcripts and what is known about them are beside the session's, where Claude Code writes them."""
    metadata = {"type": "agent_metadata", "agentType": "explorer", "toolUseId": "toolu_01"}
    run(store.append(KEY, [{"type": "user", "uuid": "a"}]))
    run(store.append(AGENT, [metadata, {"type": "user", "uuid": "s"}]))
    folder = store.path / "projects/-work-app" / SESSION / "subagents"
    assert json.loads((folder / "agent-a1b2c3d4.meta.json").read_text()) == {
        "agentType": "explorer",
        "toolUseId": "toolu_01",
    }
    assert run(store.load(AGENT)) == [{"type": "user", "uuid": "s"}, metadata]
    assert run(store.list_subkeys(KEY)) == ["subagents/agent-a1b2c3d4"]
    assert [session["session_id"] for session in run(store.list_sessions("-work-app"))] == [SESSION]
    run(store.delete(AGENT))
    assert (run(store.load(AGENT)), list(folder.iterdir())) == (None, [])
    run(store.append(AGENT, [{"type": "user", "uuid": "s"}]))
    run(store.delete(KEY))
    assert (run(store.load(KEY)), run(store.load(AGENT)), run(store.list_subkeys(KEY))) == (None, None, [])
    run(store.append(KEY, [{"type": "user", "uuid": "a"}]))
    assert run(store.load(KEY)) == [{"type": "user", "uuid": "a"}]


@pytest.mark.parametrize("content", ["[1]", "7", "null", "{", "[" * 100_000])
def test_metadata_that_is_not_an_object(store: SessionStore, content: str) -> None:
    """A file beside the transcript that says nothing about the agent is ignored."""
    run(store.append(AGENT, [{"type": "user", "uuid": "s"}, {"type": "agent_metadata", "agentType": "explorer"}]))
    (path,) = store.path.rglob("*.meta.json")
    path.write_text(content)
    assert run(store.load(AGENT)) == [{"type": "user", "uuid": "s"}]


@pytest.mark.parametrize("part", ["..", ".", "", "a/b", "a\\b", "c:d", "a\0b", "x" * 300, "ü" * 200])
def test_keys_do_not_lead_out_of_the_store(store: SessionStore, part: str) -> None:
    """Names that are not names of files are refused."""
    keys: list[SessionKey] = [
        {"project_key": part, "session_id": SESSION},
        {"project_key": "-work", "session_id": part},
        {"project_key": "-work", "session_id": SESSION, "subpath": f"subagents/{part}/agent"},
    ]
    for key in keys if part != "a/b" else keys[:2]:
        for call in (store.append(key, [{"type": "user"}]), store.load(key), store.delete(key)):
            with pytest.raises(BadQuery):
                run(call)
    assert not (store.path / "projects").exists()


def test_links_are_not_followed(store: SessionStore, tmp_path: Path) -> None:
    """A link in place of a transcript is an error, and its target stays as it is."""
    target = tmp_path / "target.jsonl"
    target.write_text("{}\n")
    run(store.append({**KEY, "session_id": "other"}, [{"type": "user"}]))
    (store.path / f"projects/-work-app/{SESSION}.jsonl").symlink_to(target)
    with pytest.raises(OSError, match=r"symbolic|links|lead"):
        run(store.append(KEY, [{"type": "user"}]))
    assert target.read_text() == "{}\n"
    (tmp_path / "elsewhere").mkdir()
    (store.path / "projects/linked").symlink_to(tmp_path / "elsewhere")
    for call in (store.append, lambda key, _entries: store.delete(key)):
        with pytest.raises(OutsideHomeError):
            run(call({"project_key": "linked", "session_id": SESSION}, [{"type": "user"}]))
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert [session["session_id"] for session in run(store.list_sessions("-work-app"))] == ["other"]


def test_another_process_deletes_a_session(any_store: SessionStore) -> None:
    """What it contained is no longer known: entries are stored again, also if the new file is longer."""
    store = any_store
    other = SessionStore(store.path)
    first, second, third = ({"type": "user", "uuid": name} for name in "abc")
    run(store.append(KEY, [first]))
    run(other.delete(KEY))
    run(store.append(KEY, [second]))
    assert run(store.load(KEY)) == [second]
    run(other.delete(KEY))
    run(other.append(KEY, [third, {"type": "user", "uuid": "a long name, so that the file is longer"}]))
    run(store.append(KEY, [second]))
    assert (run(store.load(KEY)) or [])[-1] == second


def test_nothing_is_known_before_it_is_written(store: SessionStore) -> None:
    """After an error, the entries of the batch are stored when they are sent again."""
    entry = {"type": "user", "uuid": "a"}
    with pytest.raises(TypeError):
        run(store.append(KEY, [entry, {"type": "user", "uuid": "b", "x": {1, 2}}]))
    run(store.append(KEY, [entry]))
    assert run(store.load(KEY)) == [entry]
    metadata = store.path / f"projects/-work-app/{SESSION}/subagents/agent-a1b2c3d4.meta.json"
    metadata.mkdir(parents=True)
    with pytest.raises(OSError, match=metadata.name):
        run(store.append(AGENT, [entry, {"type": "agent_metadata"}]))
    run(store.append(AGENT, [entry]))
    assert run(store.load(AGENT)) == [entry]


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
def test_files_are_private(store: SessionStore) -> None:
    """Only the owner may read what is stored."""
    run(store.append(AGENT, [{"type": "agent_metadata"}, {"type": "user"}]))
    modes = {stat.S_IMODE(path.stat().st_mode) for path in store.path.rglob("*")}
    assert modes == {0o600, 0o700}


def test_writers_at_the_same_time(any_store: SessionStore) -> None:
    """Several stores on one path lose and repeat nothing."""
    store = any_store
    entries = [{"type": "user", "uuid": str(number), "text": "x" * 500} for number in range(40)]

    def write(_number: int) -> None:
        for entry in entries:
            run(SessionStore(store.path).append(KEY, [entry]))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    loaded = run(store.load(KEY))
    assert loaded is not None
    assert sorted(loaded, key=lambda entry: int(entry["uuid"])) == entries


def test_a_session_that_is_deleted_while_sessions_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are listed."""
    folder = SessionFolder(tmp_path / "store")
    folder.append(KEY, [{"type": "user"}])
    folder.append({**KEY, "session_id": "other"}, [{"type": "user"}])
    transcripts = SessionFolder._transcripts

    def list_and_delete(self: SessionFolder, project_key: str) -> list[Path]:
        paths = transcripts(self, project_key)
        folder.delete(KEY)
        return paths

    monkeypatch.setattr(SessionFolder, "_transcripts", list_and_delete)
    assert [session["session_id"] for session in folder.list_sessions("-work-app")] == ["other"]


@pytest.mark.skipif(os.name == "nt", reason="locks of POSIX")
def test_a_second_writer_does_not_unlock_a_database(tmp_path: Path) -> None:
    """While a thread writes, a second one that begins to write does not let other processes write."""
    database = SessionDatabase(tmp_path / "store.db")
    database.append(KEY, [{"type": "user"}])
    connect = f"sqlite3.connect({str(database.path)!r}, timeout=0, isolation_level=None)"
    program = [sys.executable, "-c", f"import sqlite3; {connect}.execute('BEGIN IMMEDIATE')"]
    begun = Event()

    def append() -> None:
        begun.set()
        database.append(KEY, [{"type": "user"}])

    with ThreadPoolExecutor(1) as pool:
        with database._writing() as connection:
            connection.execute("DELETE FROM lines")
            appending = pool.submit(append)
            begun.wait()
            with pytest.raises(TimeoutError):
                appending.result(timeout=0.2)  # it waits for the lock
            other = subprocess.run(program, capture_output=True, text=True, check=False)  # noqa: S603 - our own
            assert "database is locked" in other.stderr
        appending.result()


def test_summaries_need_the_sdk(any_store: SessionStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install."""
    store = any_store
    monkeypatch.setitem(sys.modules, "claude_agent_sdk", None)
    assert run(store.list_session_summaries("-work-app")) == []
    run(store.append(KEY, [{"type": "user"}]))
    with pytest.raises(Missing, match="pip install claude-agent-sdk"):
        run(store.list_session_summaries("-work-app"))


def test_keys_in_a_database(tmp_path: Path) -> None:
    """Names that cannot be files are refused, and a file that contains such names adds nothing outside of the copy."""
    store = SessionStore(tmp_path / "store.sqlite")
    with pytest.raises(BadQuery):
        run(store.append({**KEY, "project_key": ".."}, [{"type": "user"}]))
    run(store.append(KEY, transcript(prompt("Sort the shelf"))))
    with closing(sqlite3.connect(store.path)) as connection:
        connection.execute(
            "INSERT INTO transcripts(project, session, subpath, modified_ms)"
            " VALUES ('..', 'x', '', 0), (X'00', 'x', '', 0), ('a', 'x', '../../x', 0)"
        )
        connection.commit()
    with threadline.open(store.path) as archive:
        assert [str(session.id) for session in archive.sessions()] == [SESSION]


def test_database_in_all_its_states(store: SessionStore, tmp_path: Path) -> None:
    """Agents, metadata and errors: the same answers as from a folder."""
    database = SessionStore(tmp_path / "store.db")
    metadata = {"type": "agent_metadata", "agentType": "explorer", "toolUseId": "toolu_01"}
    entry = {"type": "user", "uuid": "a"}
    for stored in (store, database):
        assert (run(stored.load(KEY)), run(stored.list_sessions("-work-app"))) == (None, [])
        run(stored.append(KEY, []))
        run(stored.delete(KEY))
        assert not stored.path.exists()
        with pytest.raises(TypeError):
            run(stored.append(KEY, [entry, {"type": "user", "uuid": "b", "x": {1, 2}}]))
        run(stored.append(KEY, [entry]))
        run(stored.append(AGENT, [metadata]))
        assert (run(stored.load(AGENT)), run(stored.list_subkeys(KEY))) == ([metadata], [])
        run(stored.append(AGENT, [entry, {**metadata, "agentType": "planner"}]))
        assert run(stored.load(AGENT)) == [entry, {**metadata, "agentType": "planner"}]
        assert run(stored.list_subkeys(KEY)) == ["subagents/agent-a1b2c3d4"]
        run(stored.delete(AGENT))
        assert (run(stored.load(AGENT)), run(stored.load(KEY))) == (None, [entry])
    assert stat.S_IMODE(database.path.stat().st_mode) == 0o600
    (tmp_path / "link.db").symlink_to(database.path)
    with pytest.raises(OSError, match="symbolic"):
        run(SessionStore(tmp_path / "link.db").append(KEY, [entry]))


def test_other_databases_are_refused(tmp_path: Path) -> None:
    """A database of another program is neither written to nor read as a home, and says so."""
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("CREATE TABLE transcripts(x); CREATE VIEW lines AS SELECT 1;")
    before = path.read_bytes()
    with pytest.raises(Unreadable, match="belongs to another program"):
        run(SessionStore(path).append(KEY, [{"type": "user"}]))
    with pytest.raises(NotFound, match="is not a session store"):
        threadline.open(path)
    path.write_bytes(before[:4000] + b"damaged")
    with pytest.raises(Unreadable, match="cannot be used"):
        threadline.open(path)


def test_values_of_other_types_in_a_database(tmp_path: Path) -> None:
    """A file of somebody else may contain values of any type: they are read as bytes, and nothing raises."""
    store = SessionStore(tmp_path / "store.db")
    run(store.append(AGENT, transcript(prompt("Sort the shelf"))))
    with closing(sqlite3.connect(store.path)) as connection:
        connection.execute("UPDATE transcripts SET modified_ms = 'soon', metadata = '{\"agentType\": \"planner\"}'")
        connection.executemany("INSERT INTO lines(transcript, line) VALUES (1, ?)", [("text",), (7,), (1.5,)])
        connection.commit()
    with threadline.open(store.path) as archive:
        (path,) = archive.homes[0].path.rglob("*.jsonl")
        assert path.read_bytes().endswith(b"\ntext71.5")
        assert path.with_suffix(".meta.json").read_bytes() == b'{"agentType": "planner"}'


def test_metadata_of_a_deleted_transcript_in_a_database(tmp_path: Path) -> None:
    """A transcript that is stored under the name of a deleted one does not inherit its metadata."""
    store = SessionStore(tmp_path / "store.db")
    run(store.append(AGENT, [{"type": "agent_metadata", "agentType": "explorer"}, {"type": "user", "uuid": "a"}]))
    with threadline.open(store.path) as archive:
        home = archive.homes[0].path
    assert len(list(home.rglob("*.meta.json"))) == 1
    run(store.delete(AGENT))
    run(store.append(AGENT, [{"type": "user", "uuid": "b"}]))
    with threadline.open(store.path) as archive:
        assert archive.homes[0].path == home
    assert list(home.rglob("*.meta.json")) == []
