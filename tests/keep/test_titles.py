"""Titles of kept sessions."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.keep.stores import keep_home, transcript_path, write_home
from tools.demo import write

import threadline
from threadline.keep import Catalogue, Store, complete_session, list_sessions, read_titles


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
