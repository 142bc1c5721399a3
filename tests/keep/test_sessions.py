"""Which kept files belong to which session, and how sessions are looked up."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from tests.keep.stores import HERE, keep_home, lines, session_id, transcript_path, write_home
from tools.demo import write

from threadline.errors import Ambiguous, NotFound
from threadline.find import look
from threadline.keep import (
    Catalogue,
    KeptSession,
    Store,
    file_owners,
    find_sessions,
    is_kept_only,
    list_other_files,
    list_sessions,
    read_titles,
)
from threadline.model.homes import TranscriptKind

FIRST, SECOND = session_id(1), session_id(2)


def _row(**fields: object) -> bytes:
    return json.dumps(fields).encode() + b"\n"


def session_files(session: str) -> dict[str, bytes]:
    """A session with every kind of file that can belong to one."""
    return {
        f"projects/-work/{session}.jsonl": _row(type="user", sessionId=session, slug=f"brave-fox-{session[7]}"),
        f"projects/-work/agent-a{session[7]}.jsonl": _row(type="user", sessionId=session),
        f"projects/-work/agent-a{session[7]}.meta.json": b"{}",
        f"projects/-work/{session}/subagents/agent-b.jsonl": _row(type="user", sessionId=session),
        f"projects/-work/{session}/subagents/agent-b.meta.json": b"{}",
        f"projects/-work/{session}/subagents/workflows/r1/journal.jsonl": b"{}\n",
        f"projects/-work/{session}/tool-results/out.txt": b"long",
        f"projects/-elsewhere/{session}/tool-results/more.jsonl": b"{}\n",
        f"todos/{session}-agent-{session}.json": b"[]",
        f"tasks/{session}/1.json": b"{}",
        f"file-history/{session}/0123456789abcdef@v1": b"old",
        f"image-cache/{session}/1.png": b"png",
        f"teams/red-{session[7]}/config.json": json.dumps({"leadSessionId": session}).encode(),
        f"teams/red-{session[7]}/inboxes/a.json": b"[]",
        f"tasks/red-{session[7]}/1.json": b"{}",
        f"jobs/0000000{session[7]}/state.json": json.dumps({"sessionId": session}).encode(),
        f"jobs/0000000{session[7]}/timeline.jsonl": b"{}\n",
    }


REFERENCED = {
    **{f"plans/brave-fox-{session[7]}.md": b"# Plan" for session in (FIRST, SECOND)},
    f"plans/brave-fox-{FIRST[7]}-agent-x.md": b"# Plan of an agent",
    **{f"paste-cache/hash{session[7]}.txt": b"pasted" for session in (FIRST, SECOND)},
}
OTHERS = {
    "history.jsonl": b"".join(
        _row(sessionId=session, pastedContents={"1": {"id": 1, "type": "text", "contentHash": f"hash{session[7]}"}})
        for session in (FIRST, SECOND)
    ),
    "projects/-work/memory/MEMORY.md": b"note",
    "projects/-work/sessions-index.json": b"{}",
    f"todos/{session_id(9)}-agent-{session_id(9)}.json": b"[]",
    "plans/other.md": b"nobody's",
}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty keep."""
    return Store.make(tmp_path / "keep")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with two sessions and every kind of file."""
    return write_home(tmp_path / "home", {**session_files(FIRST), **session_files(SECOND), **REFERENCED, **OTHERS})


def by_id(sessions: list[KeptSession]) -> dict[str, KeptSession]:
    """The sessions by id."""
    return {kept_session.id: kept_session for kept_session in sessions}


def test_assigns_files_to_sessions(store: Store, home: Path) -> None:
    """By path or by content. Todo lists alone are not a session, and unowned files are among the others."""
    keep_home(store, home)
    catalogue = Catalogue(store)
    sessions = by_id(list_sessions(catalogue))
    assert set(sessions) == {FIRST, SECOND}
    for session, kept_session in sessions.items():
        assert {file.path for file in kept_session.files} == set(session_files(session))
        assert kept_session.main is not None
        assert kept_session.main.path == f"projects/-work/{session}.jsonl"
        assert (kept_session.folder, kept_session.versions, kept_session.size) == (
            "-work",
            1,
            sum(map(len, session_files(session).values())),
        )
    rest = list_other_files(catalogue)
    assert {version.path for version in rest} == {*REFERENCED, *OTHERS}


def test_assigns_plans_and_pastes_by_reference(store: Store, home: Path) -> None:
    """A plan by its slug, an agent's plan by its session's slug, a paste by the prompt; never another session's."""
    keep_home(store, home)
    catalogue = Catalogue(store)
    owners, rest = file_owners(catalogue), list_other_files(catalogue)
    for session, kept_session in by_id(list_sessions(catalogue)).items():
        expected = {path for path in REFERENCED if path.split(".")[0].split("-agent-")[0].endswith(session[7])}
        assert {file.path for file in owners.referenced_files(session, kept_session.files, rest)} == expected


def test_lists_sessions_at_an_earlier_run(store: Store, home: Path) -> None:
    """The newest version counts. As of an earlier run, only what that run saw."""
    first = transcript_path(1)
    keep_home(store, write_home(home, {first: lines(1, 3)}))
    keep_home(store, write_home(home, {first: lines(1, 5), transcript_path(3): lines(3, 1)}))
    catalogue = Catalogue(store)
    now, then = by_id(list_sessions(catalogue)), by_id(list_sessions(catalogue, at=1))
    assert (now[FIRST].versions, then[FIRST].versions) == (2, 1)
    assert now[FIRST].main is not None
    assert then[FIRST].main is not None
    assert (now[FIRST].mains[0].size, then[FIRST].mains[0].size) == (len(lines(1, 5)), len(lines(1, 3)))
    assert set(now) - set(then) == {session_id(3)}


def test_deleted_session_is_kept_only(store: Store, home: Path) -> None:
    """For this machine at once, by checking the file. For another, as of its last run."""
    keep_home(store, home)
    (home / transcript_path(1)).unlink()
    sessions = by_id(list_sessions(Catalogue(store)))
    assert is_kept_only(sessions[FIRST], HERE.id)
    assert not is_kept_only(sessions[SECOND], HERE.id)
    assert not is_kept_only(sessions[FIRST], "another")
    keep_home(store, home)
    assert is_kept_only(by_id(list_sessions(Catalogue(store)))[FIRST], "another")


def test_moved_session_is_restored_at_its_new_place(store: Store, home: Path) -> None:
    """Both places are kept, but only the later one is restored. A session at both places is restored twice."""
    keep_home(store, home)
    (home / "projects/-new").mkdir()
    (home / transcript_path(1)).rename(home / transcript_path(1, "-new"))
    shutil.copy(home / transcript_path(2), home / transcript_path(2, "-new"))
    keep_home(store, home)
    sessions = by_id(list_sessions(Catalogue(store)))
    assert sessions[FIRST].main is not None
    assert sessions[FIRST].folder == "-new"
    restored = {version.path for version in sessions[FIRST].files_to_restore()}
    assert transcript_path(1, "-new") in restored
    assert transcript_path(1) not in restored
    assert {transcript_path(2), transcript_path(2, "-new")} <= {
        version.path for version in sessions[SECOND].files_to_restore()
    }
    assert not is_kept_only(sessions[FIRST], HERE.id)


def test_finds_session_by_id_prefix(store: Store, tmp_path: Path) -> None:
    """In any case, or `last`. An ambiguous prefix is an error unless it is a complete id."""
    ids = ("aaaaaaaa-0000-4000-8000-000000000001", "aaaaaaaa-0000-4000-8000-000000000002")
    files = {f"projects/-w/{id_}.jsonl": _row(type="user", sessionId=id_) for id_ in ids}
    home = write_home(tmp_path / "h", files)
    os.utime(home / f"projects/-w/{ids[0]}.jsonl", (2_000_000_000, 2_000_000_000))
    keep_home(store, home)
    sessions = list_sessions(Catalogue(store))
    assert [session.id for session in find_sessions(sessions, ids[1].upper())] == [ids[1]]
    assert [session.id for session in find_sessions(sessions, f"{ids[1]}.jsonl")] == [ids[1]]
    assert [session.id for session in find_sessions(sessions, "last")] == [ids[0]]
    with pytest.raises(Ambiguous, match="2 sessions in the keep start with 'aaaa'"):
        find_sessions(sessions, "aaaa")
    for name in ("bbbb", "", " "):
        with pytest.raises(NotFound, match="keep list"):
            find_sessions(sessions, name)


@pytest.mark.slow
def test_demo_home_has_the_sessions_of_look(store: Store, tmp_path: Path) -> None:
    """Every main transcript is a session of the keep, with the title of its full transcript."""
    home = tmp_path / "demo"
    write(home)
    keep_home(store, home)
    catalogue = Catalogue(store)
    sessions = list_sessions(catalogue)
    mains = {str(transcript.session) for transcript in look(home).transcripts if transcript.kind is TranscriptKind.MAIN}
    assert {session.id for session in sessions if session.main is not None} == mains
    titles = read_titles(catalogue, sessions)
    assert all(
        titles[session.machine, session.home, session.id].title
        for session in sessions
        if session.main is not None and session.main.size
    )
