"""Titles of kept sessions."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.keep.stores import keep_home, transcript_path, write_home
from tools.demo import write

import threadline
from threadline.keep import Catalogue, Store, complete_session, list_sessions, read_titles, sort_by_last_entry


@pytest.mark.slow
def test_titles_equal_those_of_full_transcripts(tmp_path: Path) -> None:
    """Titles from the beginning and end of each kept transcript equal those from reading all of it."""
    home = tmp_path / "home"
    write(home)
    store = Store.make(tmp_path / "keep")
    keep_home(store, home)
    catalogue = Catalogue(store)
    sessions = list_sessions(catalogue)
    titles = read_titles(catalogue, sessions)
    with threadline.open(home, index=False) as archive:
        expected = {session.id: session.title for session in archive.sessions().sessions}
    assert {
        kept_session.id: titles[kept_session.machine, kept_session.home, kept_session.id].title
        for kept_session in sessions
        if kept_session.main
    } == expected


def test_titles_and_order_are_those_of_list(tmp_path: Path) -> None:
    """Whether a title is in the middle, in another transcript's summary, or the first prompt comes late: as in `list`.

    All files have the same mtime, as after a copy, so only entries tell which session is the last.
    """
    filler = [_row(f"f{number}", "assistant", "text " * 40) for number in range(2_000)]
    plan = _row("p", "user", "Carry it out.", planContent="# The plan\n\nSteps")
    transcripts = {
        1: [_row("a", "user", "the first prompt of one"), *filler, {"type": "custom-title", "customTitle": "middle"}],
        2: [_row("b", "user", "the first prompt of two"), _row("c", "assistant", "Yes.", hour=5)],
        3: [
            {"type": "summary", "summary": "a summary of two", "leafUuid": "c"},
            plan,
            *filler[:400],
            _row("d", "user", "a prompt that comes late", hour=3),
        ],
    }
    transcripts[1] += [*filler, _row("e", "user", "the end", hour=4)]
    files = {
        transcript_path(number): "".join(json.dumps(row) + "\n" for row in rows).encode()
        for number, rows in transcripts.items()
    }
    home = write_home(tmp_path / "home", files)
    for path in files:
        os.utime(home / path, (1_800_000_000, 1_800_000_000))
    store = Store.make(tmp_path / "keep")
    keep_home(store, home)
    catalogue = Catalogue(store)
    sessions = sort_by_last_entry(catalogue, list_sessions(catalogue))
    titles = read_titles(catalogue, sessions)
    with threadline.open(home, index=False) as archive:
        expected = [(session.id, session.title) for session in archive.sessions().sessions]
        assert archive.titles({str(id_) for id_, _ in expected}) == dict(expected)
    assert [title for _, title in expected] == ["a summary of two", "middle", "a prompt that comes late"]
    assert [(session.id, titles[session.machine, session.home, session.id].title) for session in sessions] == expected


def _row(uuid: str, kind: str, text: str, *, hour: int = 1, **fields: str) -> dict[str, Any]:
    message = {"role": kind, "content": text}
    return {"type": kind, "uuid": uuid, "timestamp": f"2026-03-01T0{hour}:00:00.000Z", "message": message, **fields}


def test_title_survives_truncation(tmp_path: Path) -> None:
    """A truncated and continued session keeps its title and project, though the continuation has neither."""
    line = '{{"type":"user","uuid":"{0}","cwd":"/work/{0}","message":{{"role":"user","content":"{0}"}}}}\n'
    title_row = '{"type":"custom-title","customTitle":"the loom","sessionId":"x"}\n'
    store = Store.make(tmp_path / "keep")
    for text in (line.format("first") + title_row, "", line.format("then")):
        keep_home(store, write_home(tmp_path / "home", {transcript_path(1): text.encode()}))
    catalogue = Catalogue(store)
    (session,) = (complete_session(catalogue, candidate) for candidate in list_sessions(catalogue))
    (title,) = read_titles(catalogue, [session]).values()
    assert (title.title, title.project) == ("the loom", "/work/first")
