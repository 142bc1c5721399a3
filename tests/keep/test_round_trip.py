"""Kept, deleted, restored: every file has the bytes, the mode and the times that it had."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.changing_home import ChangingHome
from tests.keep.homes import FIRST, kept, on_disk
from tests.real.client import SHARED
from tools.demo import write

from threadline.find import homes
from threadline.keep import Catalogue, Machine, Store, restore_files
from threadline.keep.restore import RestoreResult
from threadline.keep.sessions import find_source_files

REAL = SHARED / "corpus/home"


def given_back(store: Store, home: Path, to: Path, machine: Machine = FIRST) -> RestoreResult:
    """Put all that was there in the last run back into a folder."""
    catalogue = Catalogue(store)
    mine = [one for one in catalogue.newest() if (one.machine, one.home) == (machine.id, str(home)) and not one.gone]
    return restore_files(catalogue, mine, to)


def _deleted(home: Path) -> None:
    """Take away what is kept, as Claude Code's sweep does; the rest stays."""
    for source in list(find_source_files(homes(home)[0], [])):
        source.file.unlink()


def _assert_the_same_again(home: Path, keep: Path) -> None:
    before = on_disk(home)
    assert before
    store = Store.make(keep)
    assert kept(store, home).problems == ()
    _deleted(home)
    assert on_disk(home) == {}
    put = given_back(store, home, home)
    assert put.refused == ()
    assert on_disk(home) == before
    assert given_back(store, home, home).files == ()


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_made_up_home(seed: int, tmp_path: Path) -> None:
    """All of a generated home: transcripts, agents and their sidecars, tool results, file histories, and the others."""
    write(tmp_path / "home", seed=seed, megabytes=2)
    for number, path in enumerate(sorted((tmp_path / "home").rglob("*.jsonl"))):
        path.chmod((0o600, 0o644, 0o400, 0o640)[number % 4])
    _assert_the_same_again(tmp_path / "home", tmp_path / "keep")


def test_odd_names_and_odd_bytes(tmp_path: Path) -> None:
    """Names that are no text, with newlines or dashes, in either normal form; empty files; files without lines."""
    project = tmp_path / "home/projects/-work-app"
    project.mkdir(parents=True)
    names = [b"\xff\xfe.jsonl", b"a\nb.jsonl", b"-rf.jsonl", "é.jsonl".encode(), b"e\xcc\x81.jsonl", b"%00.jsonl"]
    bodies = [b"", b"\n" * 5, b"\0" * 100_000, b"x" * 3_000_000, bytes(range(256)) * 500, b"no end"]
    for name, body in zip(names, bodies, strict=True):
        with open(bytes(project) + b"/" + name, "wb") as file:  # noqa: PTH123 - a name of bytes
            file.write(body)
    _assert_the_same_again(tmp_path / "home", tmp_path / "keep")


def test_each_run_can_be_given_back(tmp_path: Path) -> None:
    """A home as it was after any of its runs, though files grew, were cut, replaced and deleted since."""
    home = ChangingHome(tmp_path / "home", 41, 0.5)
    store = Store.make(tmp_path / "keep")
    states = []
    for _ in range(5):
        home.change()
        kept(store, home.path)
        states.append(on_disk(home.path))
    catalogue = Catalogue(store)
    for number, state in enumerate(states, 1):
        then = []
        for versions in catalogue.versions.values():
            until = [version for version in versions if version.run <= number]
            if until and until[-1].path in state:
                then.append(until[-1])
        to = tmp_path / f"run-{number}"
        assert restore_files(catalogue, then, to).refused == ()
        assert on_disk(to) == state


@pytest.mark.real
@pytest.mark.skipif(not REAL.is_dir(), reason="the real home is not there")
def test_the_real_home(tmp_path: Path) -> None:
    """A home that Claude Code wrote, copied: the same by SHA-256, with modes and times."""
    shutil.copytree(REAL, tmp_path / "home", symlinks=True)
    for path in (tmp_path / "home").rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
    _assert_the_same_again(tmp_path / "home", tmp_path / "keep")
