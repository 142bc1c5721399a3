"""A home that is gone: what was kept of it is told, and that it is gone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.keep.homes import SECOND
from tests.keep.test_archive import ASKED, Place

import threadline
from threadline.errors import NotFound
from threadline.find import homes
from threadline.keep import Catalogue, Store, run_keep


@pytest.fixture
def place(tmp_path: Path, small_home: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A made-up home, folders of its own, and no other home."""
    made = Place(tmp_path, small_home)
    monkeypatch.setenv("THREADLINE_KEEP", str(made.keep))
    monkeypatch.setenv("THREADLINE_CACHE", str(made.cache))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(made.home))
    return made


@pytest.mark.sample(2)
@pytest.mark.parametrize("index", [True, False])
def test_a_home_that_is_gone_is_told_as_before(place: Place, index: bool) -> None:
    """Named or not, a home that is gone is read from the keep, and all is told as before; and that it is gone."""
    place.run()
    before = place.told(index=index)
    shutil.rmtree(place.home)
    with place.open(index=index) as archive:
        assert archive.missing_homes == (str(place.home),)
        assert {name: asked(archive) for name, asked in ASKED.items()} == before
        assert all(session.kept for session in archive.sessions().sessions)
        kept = archive.homes
    with threadline.open(index=index) as archive:
        assert archive.homes == kept
        assert archive.missing_homes == (str(place.home),)
        assert {name: asked(archive) for name, asked in ASKED.items()} == before


def test_a_home_that_goes_is_seen_to_go(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home that is there and was not asked for is left alone; once it is gone, or emptied, what was kept is told."""
    other = tmp_path / "other"
    (other / "projects").mkdir(parents=True)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(other))
    place.run()
    many = len(place.transcripts())

    def told() -> tuple[int, tuple[str, ...]]:
        with threadline.open() as archive:
            return sum(session.path.stem in mains for session in archive.sessions().sessions), archive.missing_homes

    mains = {path.stem for path in place.transcripts()}
    assert told() == (0, ())
    place.home.rename(tmp_path / "aside")
    assert told() == (many, (str(place.home),))
    place.home.mkdir()
    assert told() == (many, (str(place.home),))
    assert threadline.open(place.home).missing_homes == (str(place.home),)
    place.home.rmdir()
    (tmp_path / "aside").rename(place.home)
    assert told() == (0, ())


def test_a_home_that_moved_is_told_once(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What went elsewhere with its home is read there; what that lost on the way is read from the keep."""
    place.run()
    sessions = sorted(str(session.id) for session in place.open().sessions().sessions)
    prompts = len(list(place.open().history().prompts()))
    moved = place.home.rename(tmp_path / "moved")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(moved))
    lost = min(moved.glob("projects/*/*-*-*.jsonl"))
    for again in (False, True):
        with threadline.open() as archive:
            assert sorted(str(session.id) for session in archive.sessions().sessions) == sessions
            assert {str(session.id) for session in archive.sessions().sessions if session.kept} == (
                {lost.stem} if again else set()
            )
            assert len(list(archive.history().prompts())) == prompts
        run_keep(Catalogue(Store(place.keep), place.machine.folder), homes(moved), place.machine)
        lost.unlink(missing_ok=True)
    moved.rename(tmp_path / "aside")
    with threadline.open() as archive:
        assert sorted(str(session.id) for session in archive.sessions().sessions) == sessions
        assert len(list(archive.history().prompts())) == prompts


def test_a_home_that_nobody_kept_is_not_there(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is gone and not in the keep is an error, as is one that is kept where the keep is left out."""
    place.run()
    with pytest.raises(NotFound):
        threadline.open(tmp_path / "never")
    with pytest.raises(NotFound):
        threadline.open([place.home, tmp_path / "never"])
    place.home.rename(tmp_path / "aside")
    with threadline.open([place.home, tmp_path / "aside"]) as archive:
        assert [home.source for home in archive.homes][:1] == ["option"]
        assert not any(session.kept for session in archive.sessions().sessions)
    with pytest.raises(NotFound):
        place.open(keep=False)
    monkeypatch.setenv("THREADLINE_KEEP", "off")
    with pytest.raises(NotFound):
        place.open()


def test_what_another_machine_kept_may_be_named(place: Place) -> None:
    """A home that only another machine had is read by its name, too, and called after that machine."""
    place.run(SECOND)
    shutil.rmtree(place.home)
    with place.open() as archive:
        assert archive.missing_homes == (f"second:{place.home}",)
        assert archive.sessions().sessions


def test_each_set_of_homes_reads_the_newest(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one command brought up to date for its homes is not taken for what another one has."""
    path = place.transcripts()[0]
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    place.run()
    aside = tmp_path / "aside"
    others = [tmp_path / name for name in ("one", "two")]
    for other in others:  # each has one of the sessions, so that neither needs all that was kept
        copy = other / place.transcripts()[1].relative_to(place.home)
        copy.parent.mkdir(parents=True)
        copy.write_bytes(place.transcripts()[1].read_bytes())

    def sizes() -> list[int]:
        place.home.rename(aside)
        found = []
        for other in others:
            monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(other))
            with threadline.open() as archive:
                found.append(archive.path(path.stem).stat().st_size)
        aside.rename(place.home)
        return found

    assert sizes() == [len(whole) // 2] * 2
    path.write_bytes(whole)
    place.run()
    assert sizes() == [len(whole)] * 2
