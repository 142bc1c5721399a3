"""Kept, deleted, restored: every file has the same bytes and times, and only its owner can read it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.changing_home import ChangingHome
from tests.keep.homes import FIRST, files_on_disk, keep_home, restored_states
from tests.real.client import SHARED
from tools.demo import write

from threadline.find import homes
from threadline.keep import Catalogue, Machine, RestoreResult, Store, restore_files
from threadline.keep.sessions import find_source_files

REAL = SHARED / "corpus/home"


def restore_newest(store: Store, home: Path, to: Path, machine: Machine = FIRST) -> RestoreResult:
    """Restore the state of the last run into a folder."""
    catalogue = Catalogue(store)
    versions = [
        version
        for version in catalogue.newest()
        if (version.machine, version.home) == (machine.id, str(home)) and not version.gone
    ]
    return restore_files(catalogue, versions, to)


def delete_kept_files(home: Path) -> None:
    """Delete what is kept, as Claude Code's cleanup does."""
    for source in list(find_source_files(homes(home)[0], [])):
        source.file.unlink()


def assert_round_trip(home: Path, keep: Path) -> None:
    """Keep, delete and restore a home, and compare."""
    before = files_on_disk(home)
    assert before
    store = Store.make(keep)
    assert keep_home(store, home).problems == ()
    delete_kept_files(home)
    assert files_on_disk(home) == {}
    restored = restore_newest(store, home, home)
    assert restored.refused == ()
    assert files_on_disk(home) == restored_states(before)
    assert restore_newest(store, home, home).files == ()


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", [0, 1])
def test_generated_home_round_trips(seed: int, tmp_path: Path) -> None:
    """Transcripts, agents and their sidecars, tool results, file histories, and everything else."""
    write(tmp_path / "home", seed=seed, megabytes=2)
    for number, path in enumerate(sorted((tmp_path / "home").rglob("*.jsonl"))):
        path.chmod((0o600, 0o644, 0o400, 0o640)[number % 4])
    assert_round_trip(tmp_path / "home", tmp_path / "keep")


def test_odd_names_and_contents_round_trip(tmp_path: Path) -> None:
    """Names that are not UTF-8, with newlines or dashes, in either normal form; empty files; files without lines."""
    project = tmp_path / "home/projects/-work-app"
    project.mkdir(parents=True)
    names = [b"\xff\xfe.jsonl", b"a\nb.jsonl", b"-rf.jsonl", "é.jsonl".encode(), b"e\xcc\x81.jsonl", b"%00.jsonl"]
    bodies = [b"", b"\n" * 5, b"\0" * 100_000, b"x" * 3_000_000, bytes(range(256)) * 500, b"no end"]
    for name, body in zip(names, bodies, strict=True):
        with open(bytes(project) + b"/" + name, "wb") as file:  # noqa: PTH123 - a name of bytes
            file.write(body)
    assert_round_trip(tmp_path / "home", tmp_path / "keep")


@pytest.mark.slow
def test_each_run_can_be_restored(tmp_path: Path) -> None:
    """A home as it was after any run, though files grew or were truncated, replaced and deleted since."""
    home = ChangingHome(tmp_path / "home", 41, 0.5)
    store = Store.make(tmp_path / "keep")
    states = []
    for _ in range(5):
        home.change()
        keep_home(store, home.path)
        states.append(files_on_disk(home.path))
    catalogue = Catalogue(store)
    for number, state in enumerate(states, 1):
        versions_then = []
        for versions in catalogue.versions.values():
            earlier = [version for version in versions if version.run <= number]
            if earlier and earlier[-1].path in state:
                versions_then.append(earlier[-1])
        to = tmp_path / f"run-{number}"
        assert restore_files(catalogue, versions_then, to).refused == ()
        assert files_on_disk(to) == restored_states(state)


@pytest.mark.real
@pytest.mark.skipif(not REAL.is_dir(), reason="the real home is not there")
def test_real_home_round_trips(tmp_path: Path) -> None:
    """A copy of a home that Claude Code wrote: the same by SHA-256, with times."""
    shutil.copytree(REAL, tmp_path / "home", symlinks=True)
    for path in (tmp_path / "home").rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
    assert_round_trip(tmp_path / "home", tmp_path / "keep")
