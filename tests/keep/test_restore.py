"""Restoring reproduces files, and never overwrites others."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from threading import Thread
from typing import BinaryIO

import pytest
from msgspec.structs import replace
from tests.keep.stores import keep_home, lines, transcript_path, write_home

from threadline.keep import Catalogue, RestoreResult, Store, pack, restore_files


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    """A keep of a home with odd modes, times and names."""
    odd = "projects/-odd\\name: *?/" + transcript_path(2).rpartition("/")[2]
    home = write_home(
        tmp_path / "home", {transcript_path(1): lines(1, 3000), odd: lines(2, 5), transcript_path(3): b""}
    )
    (home / transcript_path(1)).chmod(0o600)
    (home / odd).chmod(0o4755)
    os.utime(home / transcript_path(1), ns=(10**18, 1_700_000_000_123_456_789))
    os.utime(home / transcript_path(3), ns=(0, -5_000_000_000))
    store = Store.make(tmp_path / "keep")
    keep_home(store, home)
    return Catalogue(store)


def file_tree(home: Path) -> dict[str, tuple[bytes, int, int]]:
    """The bytes, mode and mtime of every file."""
    return {
        str(path.relative_to(home)): (path.read_bytes(), path.stat().st_mode & 0o777, path.stat().st_mtime_ns)
        for path in home.rglob("*")
        if path.is_file()
    }


def private_tree(home: Path) -> dict[str, tuple[bytes, int, int]]:
    """The bytes and mtime of every file, with the mode that it has when it is restored."""
    return {path: (data, 0o600, mtime_ns) for path, (data, _, mtime_ns) in file_tree(home).items()}


@pytest.mark.parametrize("mask", [0o022, 0, 0o077])
def test_restores_bytes_and_times_for_the_owner_only(catalogue: Catalogue, tmp_path: Path, mask: int) -> None:
    """Whatever the name, and whatever modes the keep contains. Folders above a new home are private, too."""
    previous = os.umask(mask)
    try:
        restored = restore_files(catalogue, catalogue.newest(), tmp_path / "new" / "to")
    finally:
        os.umask(previous)
    assert (len(restored.files), restored.refused) == (3, ())
    assert file_tree(tmp_path / "new" / "to") == private_tree(tmp_path / "home")
    folders = [path for path in (tmp_path / "new", *(tmp_path / "new").rglob("*")) if path.is_dir()]
    assert {path.stat().st_mode & 0o7777 for path in folders} == {0o700}
    assert {path.stat().st_mode & 0o7777 for path in restored.files} == {0o600}


def test_existing_files_are_not_touched(catalogue: Catalogue, tmp_path: Path) -> None:
    """A file with other bytes is kept, one with the same bytes keeps even its time. `force` replaces both."""
    to = write_home(tmp_path / "to", {transcript_path(1): b"mine", transcript_path(3): b""})
    before = file_tree(to)
    restored = restore_files(catalogue, catalogue.newest(), to)
    assert len(restored.refused) == len(restored.same) == 1
    assert file_tree(to) == before | {path: state for path, state in file_tree(to).items() if "odd" in path}
    restore_files(catalogue, catalogue.newest(), to, force=True)
    assert file_tree(to) == private_tree(tmp_path / "home")


def test_links_to_folders_are_not_followed(catalogue: Catalogue, tmp_path: Path) -> None:
    """Nothing is written through a link."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "to" / "projects").mkdir(parents=True)
    (tmp_path / "to" / "projects" / "-work").symlink_to(tmp_path / "elsewhere")
    versions = [version for version in catalogue.newest() if version.path == transcript_path(1)]
    assert len(restore_files(catalogue, versions, tmp_path / "to", force=True).refused) == 1
    assert not list((tmp_path / "elsewhere").iterdir())


def test_linked_file_is_not_written(catalogue: Catalogue, tmp_path: Path) -> None:
    """With `force`, a link is replaced by the file. Its target stays."""
    (tmp_path / "mine").write_bytes(b"mine")
    target = tmp_path / "to" / transcript_path(1)
    target.parent.mkdir(parents=True)
    target.symlink_to(tmp_path / "mine")
    versions = [version for version in catalogue.newest() if version.path == transcript_path(1)]
    assert len(restore_files(catalogue, versions, tmp_path / "to").refused) == 1
    assert len(restore_files(catalogue, versions, tmp_path / "to", force=True).files) == 1
    assert (tmp_path / "mine").read_bytes() == b"mine"
    assert target.read_bytes() == lines(1, 3000)


def test_refuses_damaged_files_and_restores_the_rest(catalogue: Catalogue, tmp_path: Path) -> None:
    """Files that need a lost piece are refused, and nothing of them is written."""
    (version,) = (candidate for candidate in catalogue.newest() if candidate.path == transcript_path(1))
    last = list(version.pieces)[-1]
    del catalogue.located[last]
    catalogue.reload_locations = lambda: None  # type: ignore[method-assign]
    restored = restore_files(catalogue, catalogue.newest(), tmp_path / "to")
    assert (len(restored.files), len(restored.refused)) == (2, 1)
    assert not (tmp_path / "to" / transcript_path(1)).exists()
    assert not list((tmp_path / "to").rglob("*.new"))


def test_refuses_files_without_disk_space_and_restores_the_rest(
    catalogue: Catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of them is written: a merged keep may name one piece a million times."""
    monkeypatch.setattr("threadline.keep.restore._free_space", lambda _home: 64 * 1024 * 1024 + 5000)
    restored = restore_files(catalogue, catalogue.newest(), tmp_path / "to")
    assert (len(restored.files), len(restored.refused)) == (2, 1)
    assert "not enough disk space" in restored.refused[0]
    assert not (tmp_path / "to" / transcript_path(1)).exists()


@pytest.mark.parametrize("size", [-1, 1])
def test_refuses_wrong_sizes(catalogue: Catalogue, tmp_path: Path, size: int) -> None:
    """A file whose size does not match its pieces is not written."""
    (version,) = (candidate for candidate in catalogue.newest() if candidate.path == transcript_path(1))
    lying = replace(version, size=version.size + size)
    assert "do not add up" in restore_files(catalogue, [lying], tmp_path / "to").refused[0]
    assert not [path for path in (tmp_path / "to").rglob("*") if path.is_file()]


def test_refuses_to_replace_a_folder(catalogue: Catalogue, tmp_path: Path) -> None:
    """Even with `force`. Nothing is left of the attempt, and the message says so."""
    (tmp_path / "to" / transcript_path(1)).mkdir(parents=True)
    restored = restore_files(catalogue, catalogue.newest(), tmp_path / "to", force=True)
    assert (len(restored.files), len(restored.refused)) == (2, 1)
    assert "is a folder" in restored.refused[0]
    assert not list((tmp_path / "to").rglob("*.new"))


def test_frames_are_unpacked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are restored in the order of the packs, not by name or size."""
    store = Store.make(tmp_path / "many")
    monkeypatch.setattr("threadline.keep.pack.FRAME_SIZE", 20_000)
    keep_home(store, write_home(tmp_path / "more", {transcript_path(n): lines(n, 15 + n * 7 % 31) for n in range(200)}))
    unpacked: list[pack.Frame] = []
    real_read_frame = pack.read_frame

    def counting_read_frame(file: BinaryIO, name: str, frame: pack.Frame, dictionary: bytes | None) -> bytes:
        unpacked.append(frame)
        return real_read_frame(file, name, frame, dictionary)

    monkeypatch.setattr(pack, "read_frame", counting_read_frame)
    catalogue = Catalogue(store)
    assert len(restore_files(catalogue, catalogue.newest(), tmp_path / "out").files) == 200
    frames = {(location.pack, location.frame.offset) for location in catalogue.located.values()}
    assert len(frames) > 12
    assert len(unpacked) == len(frames)


def test_removes_leftovers_of_killed_processes(catalogue: Catalogue, tmp_path: Path) -> None:
    """Partial files of a dead process are removed. Those of a living one stay."""
    folder = (tmp_path / "to" / transcript_path(1)).parent
    folder.mkdir(parents=True)
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    for process in (dead.pid, os.getpid()):
        (folder / f".threadline-restore-{process}-ab7.new").write_bytes(b"half")
    restore_files(catalogue, catalogue.newest(), tmp_path / "to")
    assert [path.name for path in folder.glob(".*.new")] == [f".threadline-restore-{os.getpid()}-ab7.new"]


def test_concurrent_restores_do_not_conflict(catalogue: Catalogue, tmp_path: Path) -> None:
    """Each writes under its own temporary names. All of them report that every file is there."""
    before = restore_files(catalogue, catalogue.newest(), tmp_path / "one")
    results: list[RestoreResult] = []

    def restore() -> None:
        own_catalogue = Catalogue(Store(catalogue.store.folder))
        results.append(restore_files(own_catalogue, list(own_catalogue.newest()), tmp_path / "two"))

    threads = [Thread(target=restore) for _number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [(len(result.files) + len(result.same), result.refused) for result in results] == [
        (len(before.files), ())
    ] * 4
    assert file_tree(tmp_path / "two") == file_tree(tmp_path / "one")
