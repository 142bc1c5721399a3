"""Titles of kept sessions."""

from __future__ import annotations

from pathlib import Path

from tests.keep.stores import home_with, kept, transcript
from tools.demo import write

import threadline
from threadline.keep import Catalogue, Store, complete_session, list_sessions, read_titles


def test_titles_are_those_of_the_whole_transcripts(tmp_path: Path) -> None:
    """What the beginning and the end of each kept transcript say is what reading all of it says."""
    home = tmp_path / "home"
    write(home)
    store = Store.make(tmp_path / "keep")
    kept(store, home)
    catalogue = Catalogue(store)
    found = list_sessions(catalogue)
    said = read_titles(catalogue, found)
    with threadline.open(home, index=False) as archive:
        known = {session.id: session.title for session in archive.sessions().sessions}
    assert {one.id: said[one.machine, one.home, one.id].title for one in found if one.main} == known


def test_the_title_is_that_of_before_a_cut(tmp_path: Path) -> None:
    """A session that was cut off and gone on with is called and placed as before, though what followed says neither."""
    line = '{{"type":"user","uuid":"{0}","cwd":"/work/{0}","message":{{"role":"user","content":"{0}"}}}}\n'
    named = '{"type":"custom-title","customTitle":"the loom","sessionId":"x"}\n'
    store = Store.make(tmp_path / "keep")
    for text in (line.format("first") + named, "", line.format("then")):
        kept(store, home_with(tmp_path / "home", {transcript(1): text.encode()}))
    catalogue = Catalogue(store)
    (session,) = (complete_session(catalogue, one) for one in list_sessions(catalogue))
    (said,) = read_titles(catalogue, [session]).values()
    assert (said.title, said.project) == ("the loom", "/work/first")
