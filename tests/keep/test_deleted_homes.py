"""A deleted home is read from the keep, and reported as missing."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.keep.homes import SECOND
from tests.keep.test_archive import QUERIES, HomeAndKeep

import threadline
from threadline.errors import NotFound
from threadline.find import homes
from threadline.keep import Catalogue, Store, run_keep


@pytest.fixture
def setup(tmp_path: Path, small_home: Path, monkeypatch: pytest.MonkeyPatch) -> HomeAndKeep:
    """A generated home with its own keep and cache, and no other home."""
    created = HomeAndKeep(tmp_path, small_home)
    monkeypatch.setenv("THREADLINE_KEEP", str(created.keep))
    monkeypatch.setenv("THREADLINE_CACHE", str(created.cache))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(created.home))
    return created


@pytest.mark.sample(2)
@pytest.mark.parametrize("index", [True, False])
def test_deleted_home_gives_the_same_results(setup: HomeAndKeep, index: bool) -> None:
    """Given or found, a deleted home is read from the keep, gives the same results, and is reported as missing."""
    setup.run()
    before = setup.results(index=index)
    shutil.rmtree(setup.home)
    with setup.open(index=index) as archive:
        assert archive.missing_homes == (str(setup.home),)
        assert {name: query(archive) for name, query in QUERIES.items()} == before
        assert all(session.kept for session in archive.sessions().sessions)
        kept = archive.homes
    with threadline.open(index=index) as archive:
        assert archive.homes == kept
        assert archive.missing_homes == (str(setup.home),)
        assert {name: query(archive) for name, query in QUERIES.items()} == before


@pytest.mark.slow
def test_notices_when_a_home_is_deleted(setup: HomeAndKeep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another existing home is left alone. Once it is deleted or emptied, its kept sessions are listed."""
    other = tmp_path / "other"
    (other / "projects").mkdir(parents=True)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(other))
    setup.run()
    count = len(setup.transcripts())

    def sessions_and_missing() -> tuple[int, tuple[str, ...]]:
        with threadline.open() as archive:
            return sum(session.path.stem in mains for session in archive.sessions().sessions), archive.missing_homes

    mains = {path.stem for path in setup.transcripts()}
    assert sessions_and_missing() == (0, ())
    setup.home.rename(tmp_path / "aside")
    assert sessions_and_missing() == (count, (str(setup.home),))
    setup.home.mkdir()
    assert sessions_and_missing() == (count, (str(setup.home),))
    assert threadline.open(setup.home).missing_homes == (str(setup.home),)
    setup.home.rmdir()
    (tmp_path / "aside").rename(setup.home)
    assert sessions_and_missing() == (0, ())


@pytest.mark.slow
def test_moved_home_is_counted_once(setup: HomeAndKeep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions that moved with their home are read there. What was lost on the way is read from the keep."""
    setup.run()
    sessions = sorted(str(session.id) for session in setup.open().sessions().sessions)
    prompts = len(list(setup.open().history().prompts()))
    moved = setup.home.rename(tmp_path / "moved")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(moved))
    lost = min(moved.glob("projects/*/*-*-*.jsonl"))
    for is_second_run in (False, True):
        with threadline.open() as archive:
            assert sorted(str(session.id) for session in archive.sessions().sessions) == sessions
            assert {str(session.id) for session in archive.sessions().sessions if session.kept} == (
                {lost.stem} if is_second_run else set()
            )
            assert len(list(archive.history().prompts())) == prompts
        run_keep(Catalogue(Store(setup.keep), setup.machine.folder), homes(moved), setup.machine)
        lost.unlink(missing_ok=True)
    moved.rename(tmp_path / "aside")
    with threadline.open() as archive:
        assert sorted(str(session.id) for session in archive.sessions().sessions) == sessions
        assert len(list(archive.history().prompts())) == prompts


def test_home_that_was_never_kept_is_an_error(
    setup: HomeAndKeep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So is a kept one if the keep is turned off."""
    setup.run()
    with pytest.raises(NotFound):
        threadline.open(tmp_path / "never")
    with pytest.raises(NotFound):
        threadline.open([setup.home, tmp_path / "never"])
    setup.home.rename(tmp_path / "aside")
    with threadline.open([setup.home, tmp_path / "aside"]) as archive:
        assert [home.source for home in archive.homes][:1] == ["option"]
        assert not any(session.kept for session in archive.sessions().sessions)
    with pytest.raises(NotFound):
        setup.open(keep=False)
    monkeypatch.setenv("THREADLINE_KEEP", "off")
    with pytest.raises(NotFound):
        setup.open()


def test_opens_home_of_another_machine_by_name(setup: HomeAndKeep) -> None:
    """A home that only another machine had is read by its path, and named after that machine."""
    setup.run(SECOND)
    shutil.rmtree(setup.home)
    with setup.open() as archive:
        assert archive.missing_homes == (f"second:{setup.home}",)
        assert archive.sessions().sessions


@pytest.mark.slow
def test_each_set_of_homes_reads_the_newest_version(
    setup: HomeAndKeep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An update for one set of homes is not mistaken for an update of another."""
    path = setup.transcripts()[0]
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    setup.run()
    aside = tmp_path / "aside"
    others = [tmp_path / name for name in ("one", "two")]
    for other in others:  # each has one of the sessions, so that neither needs all that was kept
        copy = other / setup.transcripts()[1].relative_to(setup.home)
        copy.parent.mkdir(parents=True)
        copy.write_bytes(setup.transcripts()[1].read_bytes())

    def sizes() -> list[int]:
        setup.home.rename(aside)
        result = []
        for other in others:
            monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(other))
            with threadline.open() as archive:
                result.append(archive.path(path.stem).stat().st_size)
        aside.rename(setup.home)
        return result

    assert sizes() == [len(content) // 2] * 2
    path.write_bytes(content)
    setup.run()
    assert sizes() == [len(content)] * 2
