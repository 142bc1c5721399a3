"""Which kept files are whose session's, and how a session is named."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from tests.keep.stores import HERE, home_with, kept, lines, session_id, transcript
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

ONE, TWO = session_id(1), session_id(2)


def _row(**fields: object) -> bytes:
    return json.dumps(fields).encode() + b"\n"


def _full(session: str) -> dict[str, bytes]:
    """A session with everything that can belong to one."""
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


NAMED_INSIDE = {
    **{f"plans/brave-fox-{session[7]}.md": b"# Plan" for session in (ONE, TWO)},
    f"plans/brave-fox-{ONE[7]}-agent-x.md": b"# Plan of an agent",
    **{f"paste-cache/hash{session[7]}.txt": b"pasted" for session in (ONE, TWO)},
}
OTHERS = {
    "history.jsonl": b"".join(
        _row(sessionId=session, pastedContents={"1": {"id": 1, "type": "text", "contentHash": f"hash{session[7]}"}})
        for session in (ONE, TWO)
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
    """A home with two sessions and all that can belong to them."""
    return home_with(tmp_path / "home", {**_full(ONE), **_full(TWO), **NAMED_INSIDE, **OTHERS})


def _by_id(found: list[KeptSession]) -> dict[str, KeptSession]:
    return {kept_session.id: kept_session for kept_session in found}


def test_everything_of_a_session_is_its_own_and_nothing_else_is(store: Store, home: Path) -> None:
    """By path, or by what is inside; lists of todos alone make no session; what is nobody's is among the others."""
    kept(store, home)
    catalogue = Catalogue(store)
    found = _by_id(list_sessions(catalogue))
    assert set(found) == {ONE, TWO}
    for session, one in found.items():
        assert {file.path for file in one.files} == set(_full(session))
        assert one.main is not None
        assert one.main.path == f"projects/-work/{session}.jsonl"
        assert (one.folder, one.versions, one.size) == ("-work", 1, sum(map(len, _full(session).values())))
    rest = list_other_files(catalogue)
    assert {one.path for one in rest} == {*NAMED_INSIDE, *OTHERS}


def test_plans_and_pastes_come_along_with_the_session_that_names_them(store: Store, home: Path) -> None:
    """A plan by its slug, an agent's plan by that of its session, a paste by the prompt; never another session's."""
    kept(store, home)
    catalogue = Catalogue(store)
    belonging, rest = file_owners(catalogue), list_other_files(catalogue)
    for session, one in _by_id(list_sessions(catalogue)).items():
        wanted = {path for path in NAMED_INSIDE if path.split(".")[0].split("-agent-")[0].endswith(session[7])}
        assert {file.path for file in belonging.referenced_files(session, one.files, rest)} == wanted


def test_versions_are_counted_and_an_earlier_run_can_be_asked_for(store: Store, home: Path) -> None:
    """The newest version counts; as of an earlier run, what that one saw, and no session that came later."""
    first = transcript(1)
    kept(store, home_with(home, {first: lines(1, 3)}))
    kept(store, home_with(home, {first: lines(1, 5), transcript(3): lines(3, 1)}))
    catalogue = Catalogue(store)
    now, then = _by_id(list_sessions(catalogue)), _by_id(list_sessions(catalogue, at=1))
    assert (now[ONE].versions, then[ONE].versions) == (2, 1)
    assert now[ONE].main is not None
    assert then[ONE].main is not None
    assert (now[ONE].mains[0].size, then[ONE].mains[0].size) == (len(lines(1, 5)), len(lines(1, 3)))
    assert set(now) - set(then) == {session_id(3)}


def test_a_session_that_was_deleted_is_kept_only(store: Store, home: Path) -> None:
    """At once, by a look where it is this machine's; by what the last run saw where it is another's."""
    kept(store, home)
    (home / transcript(1)).unlink()
    found = _by_id(list_sessions(Catalogue(store)))
    assert is_kept_only(found[ONE], HERE.id)
    assert not is_kept_only(found[TWO], HERE.id)
    assert not is_kept_only(found[ONE], "another")
    kept(store, home)
    assert is_kept_only(_by_id(list_sessions(Catalogue(store)))[ONE], "another")


def test_a_session_that_moved_is_put_back_where_it_went(store: Store, home: Path) -> None:
    """Its transcript is kept at both places; only the later one is given back. One that is at both is given twice."""
    kept(store, home)
    (home / "projects/-new").mkdir()
    (home / transcript(1)).rename(home / transcript(1, "-new"))
    shutil.copy(home / transcript(2), home / transcript(2, "-new"))
    kept(store, home)
    found = _by_id(list_sessions(Catalogue(store)))
    assert found[ONE].main is not None
    assert found[ONE].folder == "-new"
    back = {one.path for one in found[ONE].files_to_restore()}
    assert transcript(1, "-new") in back
    assert transcript(1) not in back
    assert {transcript(2), transcript(2, "-new")} <= {one.path for one in found[TWO].files_to_restore()}
    assert not is_kept_only(found[ONE], HERE.id)


def test_a_session_is_named_by_the_start_of_its_id(store: Store, tmp_path: Path) -> None:
    """In either case, or `last`; what fits several is ambiguous unless it is one whole, what fits none is not found."""
    ids = ("aaaaaaaa-0000-4000-8000-000000000001", "aaaaaaaa-0000-4000-8000-000000000002")
    files = {f"projects/-w/{id_}.jsonl": _row(type="user", sessionId=id_) for id_ in ids}
    home = home_with(tmp_path / "h", files)
    os.utime(home / f"projects/-w/{ids[0]}.jsonl", (2_000_000_000, 2_000_000_000))
    kept(store, home)
    found = list_sessions(Catalogue(store))
    assert [session.id for session in find_sessions(found, ids[1].upper())] == [ids[1]]
    assert [session.id for session in find_sessions(found, f"{ids[1]}.jsonl")] == [ids[1]]
    assert [session.id for session in find_sessions(found, "last")] == [ids[0]]
    with pytest.raises(Ambiguous, match="2 kept sessions start with 'aaaa'"):
        find_sessions(found, "aaaa")
    for nothing in ("bbbb", "", " "):
        with pytest.raises(NotFound, match="keep list"):
            find_sessions(found, nothing)


def test_the_demo_home_has_the_sessions_that_find_sees(store: Store, tmp_path: Path) -> None:
    """Every main transcript is a session of the keep, with the title that its whole transcript gives."""
    home = tmp_path / "demo"
    write(home)
    kept(store, home)
    catalogue = Catalogue(store)
    found = list_sessions(catalogue)
    mains = {str(transcript.session) for transcript in look(home).transcripts if transcript.kind is TranscriptKind.MAIN}
    assert {one.id for one in found if one.main is not None} == mains
    said = read_titles(catalogue, found)
    assert all(said[one.machine, one.home, one.id].title for one in found if one.main is not None and one.main.size)
