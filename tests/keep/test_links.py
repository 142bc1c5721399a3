"""Links in a home: what they lead to is kept by its name in the home, and what is not followed is not kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.keep.homes import FIRST
from tests.keep.test_archive import Place

import threadline
from threadline.find import homes
from threadline.keep import Catalogue, Store, list_sessions, read_status, restore_files, run_keep
from threadline.keep import keep as keep_module
from threadline.keep.sessions import find_source_files
from threadline.model.places import Problem


@pytest.fixture
def place(tmp_path: Path, small_home: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A made-up home, and folders of its own."""
    made = Place(tmp_path, small_home)
    monkeypatch.setenv("THREADLINE_KEEP", str(made.keep))
    monkeypatch.setenv("THREADLINE_CACHE", str(made.cache))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return made


def _paths(home: Path, problems: list[Problem] | None = None) -> list[str]:
    return [file.path for file in find_source_files(homes(home)[0], problems if problems is not None else [])]


@pytest.mark.parametrize("where", ["store", "../disk", "/"])
def test_what_a_link_leads_to_has_its_name_in_the_home(place: Place, tmp_path: Path, where: str) -> None:
    """Where `projects` is a link, into the home or out of it, relative or not, each path is as if it were none."""
    before = _paths(place.home)
    target = tmp_path / "far" if where == "/" else place.home / where
    (place.home / "projects").rename(target.resolve())
    (place.home / "projects").symlink_to(target if where == "/" else where)
    assert _paths(place.home) == before
    assert before == sorted(before)
    place.run()
    catalogue = Catalogue(Store(place.keep))
    assert {one.path for one in catalogue.newest()} == set(before)
    mains = [session.main for session in list_sessions(catalogue) if session.main is not None]
    assert {main.path for main in mains} == {str(path.relative_to(place.home)) for path in place.transcripts()}
    told = read_status(catalogue, homes(place.home), place.machine.id)
    assert (told.at_risk, told.sessions) == ((), told.homes[0].sessions)


def test_a_transcript_may_be_a_link(place: Place) -> None:
    """A link to a transcript elsewhere in the home is kept by its own name, listed when it is gone, and put back."""
    link = place.transcripts()[0]
    whole = link.read_bytes()
    (place.home / "store").mkdir()
    real = link.rename(place.home / "store" / link.name)
    link.symlink_to(Path("../../store") / link.name)
    before = {str(session.id) for session in place.open().sessions().sessions}
    place.run()
    link.unlink()
    real.unlink()
    with place.open() as archive:
        assert {str(session.id) for session in archive.sessions().sessions} == before
        assert archive.session(link.stem).kept
    catalogue = Catalogue(Store(place.keep))
    assert not restore_files(catalogue, catalogue.newest(), place.home).refused
    assert link.read_bytes() == whole
    assert not link.is_symlink()


def test_links_that_are_not_followed_are_not_kept(place: Place, tmp_path: Path) -> None:
    """A folder that is a link, but for `projects`, and a link out of the home are told, and nothing of them is kept."""
    first, *others = place.transcripts()
    folder = first.parent
    link = next(path for path in others if path.parent != folder)
    folder.rename(tmp_path / "folder")
    folder.symlink_to(tmp_path / "folder")
    link.symlink_to(link.rename(tmp_path / link.name))
    problems: list[Problem] = []
    paths = _paths(place.home, problems)
    assert not [path for path in paths if path.startswith((f"projects/{folder.name}/", "..", "/"))]
    assert str(link.relative_to(place.home)) not in paths
    assert {str(folder), str(link)} <= {problem.place.transcript for problem in problems}
    run_keep(Catalogue(Store.make(place.keep)), homes(place.home), FIRST)
    assert {one.path for one in Catalogue(Store(place.keep)).newest()} == set(paths)


def test_paths_that_lead_out_of_the_home_are_reported_and_not_listed(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A merged keep may contain any path. Those that no run would store are counted; all others are listed."""
    (place.home / "projects").rename(tmp_path / "disk")
    (place.home / "projects").symlink_to(tmp_path / "disk")
    place.run()
    mains = place.below(place.transcripts())
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
        place.run()
    for path in place.transcripts():
        path.unlink()
    catalogue = Catalogue(Store(place.keep))
    strange = [version.path for version in catalogue.newest() if version.path.startswith("../")]
    assert strange
    with threadline.open(place.home) as archive:
        assert [problem for problem in archive.keep_problems if f"{len(strange):,} files" in problem]
        assert {
            f"projects/{session.path.parent.name}/{session.path.name}" for session in archive.sessions().sessions
        } == mains
