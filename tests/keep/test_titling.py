"""Titles of kept sessions."""

from __future__ import annotations

from pathlib import Path

from tests.keep.stores import kept

import threadline
from threadline.demo import write
from threadline.keep.catalogue import Catalogue
from threadline.keep.sessions import sessions
from threadline.keep.store import Store
from threadline.keep.titling import told


def test_titles_are_those_of_the_whole_transcripts(tmp_path: Path) -> None:
    """What the beginning and the end of each kept transcript say is what reading all of it says."""
    home = tmp_path / "home"
    write(home)
    store = Store.make(tmp_path / "keep")
    kept(store, home)
    catalogue = Catalogue(store)
    found = sessions(catalogue)
    said = told(catalogue, found)
    with threadline.open(home, index=False) as archive:
        known = {one.id: one.title for one in archive.sessions().sessions}
    assert {one.id: said[one.machine, one.home, one.id].title for one in found if one.main} == known
