"""Links in a home: their targets are kept by their path in the home, and links that are not followed are not kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.keep.homes import FIRST
from tests.keep.test_archive import HomeAndKeep

import threadline
from threadline.find import homes
from threadline.keep import Catalogue, Store, list_sessions, read_status, restore_files, run_keep
from threadline.keep import keep as keep_module
from threadline.keep.sessions import find_source_files
from threadline.model.places import Problem


@pytest.fixture
def setup(tmp_path: Path, small_home: Path, monkeypatch: pytest.MonkeyPatch) -> HomeAndKeep:
    """A generated home, with its own keep and cache."""
    created = HomeAndKeep(tmp_path, small_home)
    monkeypatch.setenv("THREADLINE_KEEP", str(created.keep))
    monkeypatch.setenv("THREADLINE_CACHE", str(created.cache))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return created


def source_paths(home: Path, problems: list[Problem] | None = None) -> list[str]:
    """The paths of the files to keep."""
    return [file.path for file in find_source_files(homes(home)[0], problems if problems is not None else [])]


@pytest.mark.parametrize("where", ["store", "../disk", "/"])
def test_linked_projects_keep_their_paths(setup: HomeAndKeep, tmp_path: Path, where: str) -> None:
    """If `projects` is a link, into the home or out of it, relative or not, all paths are as without it."""
    before = source_paths(setup.home)
    target = tmp_path / "far" if where == "/" else setup.home / where
    (setup.home / "projects").rename(target.resolve())
    (setup.home / "projects").symlink_to(target if where == "/" else where)
    assert source_paths(setup.home) == before
    assert before == sorted(before)
    setup.run()
    catalogue = Catalogue(Store(setup.keep))
    assert {version.path for version in catalogue.newest()} == set(before)
    mains = [session.main for session in list_sessions(catalogue) if session.main is not None]
    assert {main.path for main in mains} == {str(path.relative_to(setup.home)) for path in setup.transcripts()}
    status = read_status(catalogue, homes(setup.home), setup.machine.id)
    assert (status.at_risk, status.sessions) == ((), status.homes[0].sessions)


def test_transcript_may_be_a_link(setup: HomeAndKeep) -> None:
    """A link to a transcript elsewhere in the home is kept by its own name, listed when it is gone, and restored."""
    link = setup.transcripts()[0]
    content = link.read_bytes()
    (setup.home / "store").mkdir()
    real = link.rename(setup.home / "store" / link.name)
    link.symlink_to(Path("../../store") / link.name)
    before = {str(session.id) for session in setup.open().sessions().sessions}
    setup.run()
    link.unlink()
    real.unlink()
    with setup.open() as archive:
        assert {str(session.id) for session in archive.sessions().sessions} == before
        assert archive.session(link.stem).kept
    catalogue = Catalogue(Store(setup.keep))
    assert not restore_files(catalogue, catalogue.newest(), setup.home).refused
    assert link.read_bytes() == content
    assert not link.is_symlink()


def test_links_that_are_not_followed_are_not_kept(setup: HomeAndKeep, tmp_path: Path) -> None:
    """A linked folder other than `projects`, and a link out of the home, are reported and not kept."""
    first, *others = setup.transcripts()
    folder = first.parent
    link = next(path for path in others if path.parent != folder)
    folder.rename(tmp_path / "folder")
    folder.symlink_to(tmp_path / "folder")
    link.symlink_to(link.rename(tmp_path / link.name))
    problems: list[Problem] = []
    paths = source_paths(setup.home, problems)
    assert not [path for path in paths if path.startswith((f"projects/{folder.name}/", "..", "/"))]
    assert str(link.relative_to(setup.home)) not in paths
    assert {str(folder), str(link)} <= {problem.place.transcript for problem in problems}
    run_keep(Catalogue(Store.make(setup.keep)), homes(setup.home), FIRST)
    assert {version.path for version in Catalogue(Store(setup.keep)).newest()} == set(paths)


def test_paths_that_lead_out_of_the_home_are_reported_and_not_listed(
    setup: HomeAndKeep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A merged keep may contain any path. Those that no run would store are counted; all others are listed."""
    (setup.home / "projects").rename(tmp_path / "disk")
    (setup.home / "projects").symlink_to(tmp_path / "disk")
    setup.run()
    mains = setup.relative_paths(setup.transcripts())
    with monkeypatch.context() as patch:
        find_files = find_source_files
        patch.setattr(
            keep_module,
            "find_source_files",
            lambda home, problems: (
                type(source)(source.home, source.file, source.path.replace("projects/", "../disk/"))
                for source in find_files(home, problems)
            ),
        )
        setup.run()
    for path in setup.transcripts():
        path.unlink()
    catalogue = Catalogue(Store(setup.keep))
    strange = [version.path for version in catalogue.newest() if version.path.startswith("../")]
    assert strange
    with threadline.open(setup.home) as archive:
        assert [problem for problem in archive.keep_problems if f"{len(strange):,} files" in problem]
        assert {
            f"projects/{session.path.parent.name}/{session.path.name}" for session in archive.sessions().sessions
        } == mains
