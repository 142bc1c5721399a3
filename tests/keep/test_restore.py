"""Restoring puts files back as they were, and never over what is there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from threading import Thread
from typing import BinaryIO

import pytest
from msgspec.structs import replace
from tests.keep.stores import home_with, kept, lines, transcript

from threadline.keep import Catalogue, Store, pack, restore_files
from threadline.keep.restore import RestoreResult


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    """A keep of a home with odd modes, times and names."""
    odd = "projects/-odd\\name: *?/" + transcript(2).rpartition("/")[2]
    home = home_with(tmp_path / "home", {transcript(1): lines(1, 3000), odd: lines(2, 5), transcript(3): b""})
    (home / transcript(1)).chmod(0o600)
    (home / odd).chmod(0o4755)
    os.utime(home / transcript(1), ns=(10**18, 1_700_000_000_123_456_789))
    os.utime(home / transcript(3), ns=(0, -5_000_000_000))
    store = Store.make(tmp_path / "keep")
    kept(store, home)
    return Catalogue(store)


def _tree(home: Path) -> dict[str, tuple[bytes, int, int]]:
    return {
        str(path.relative_to(home)): (path.read_bytes(), path.stat().st_mode & 0o777, path.stat().st_mtime_ns)
        for path in home.rglob("*")
        if path.is_file()
    }


def test_files_come_back_as_they_were(catalogue: Catalogue, tmp_path: Path) -> None:
    """Bytes, modes and times are the same, whatever the name; no file may run as somebody else."""
    restored = restore_files(catalogue, catalogue.newest(), tmp_path / "to")
    assert (len(restored.files), restored.refused) == (3, ())
    assert _tree(tmp_path / "to") == _tree(tmp_path / "home")
    assert all(path.stat().st_mode & 0o7000 == 0 for path in restored.files)


def test_what_is_there_is_not_touched(catalogue: Catalogue, tmp_path: Path) -> None:
    """A file with other bytes stays, one with the same keeps even its time; `force` replaces both."""
    to = home_with(tmp_path / "to", {transcript(1): b"mine", transcript(3): b""})
    before = _tree(to)
    restored = restore_files(catalogue, catalogue.newest(), to)
    assert len(restored.refused) == len(restored.same) == 1
    assert _tree(to) == before | {path: told for path, told in _tree(to).items() if "odd" in path}
    restore_files(catalogue, catalogue.newest(), to, force=True)
    assert _tree(to) == _tree(tmp_path / "home")


def test_links_in_the_way_are_not_followed(catalogue: Catalogue, tmp_path: Path) -> None:
    """Nothing is written through a link, be it the folder or the file."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "to" / "projects").mkdir(parents=True)
    (tmp_path / "to" / "projects" / "-work").symlink_to(tmp_path / "elsewhere")
    wanted = [one for one in catalogue.newest() if one.path == transcript(1)]
    assert len(restore_files(catalogue, wanted, tmp_path / "to", force=True).refused) == 1
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_file_behind_a_link_is_not_written(catalogue: Catalogue, tmp_path: Path) -> None:
    """With `force`, a link where a file belongs is replaced; what it led to stays."""
    (tmp_path / "mine").write_bytes(b"mine")
    place = tmp_path / "to" / transcript(1)
    place.parent.mkdir(parents=True)
    place.symlink_to(tmp_path / "mine")
    wanted = [one for one in catalogue.newest() if one.path == transcript(1)]
    assert len(restore_files(catalogue, wanted, tmp_path / "to").refused) == 1
    assert len(restore_files(catalogue, wanted, tmp_path / "to", force=True).files) == 1
    assert (tmp_path / "mine").read_bytes() == b"mine"
    assert place.read_bytes() == lines(1, 3000)


def test_what_is_damaged_is_refused_and_the_rest_comes_back(catalogue: Catalogue, tmp_path: Path) -> None:
    """A piece that is lost takes along the files that need it, and leaves nothing half-written of them."""
    (version,) = (one for one in catalogue.newest() if one.path == transcript(1))
    last = list(version.pieces)[-1]
    del catalogue.located[last]
    catalogue.reload_locations = lambda: None  # type: ignore[method-assign]
    restored = restore_files(catalogue, catalogue.newest(), tmp_path / "to")
    assert (len(restored.files), len(restored.refused)) == (2, 1)
    assert not (tmp_path / "to" / transcript(1)).exists()
    assert not list((tmp_path / "to").rglob("*.new"))


def test_what_there_is_no_room_for_is_refused_and_the_rest_comes_back(
    catalogue: Catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of it is written: a keep that was merged may name one piece a million times."""
    monkeypatch.setattr("threadline.keep.restore._free_space", lambda _home: 64 * 1024 * 1024 + 5000)
    restored = restore_files(catalogue, catalogue.newest(), tmp_path / "to")
    assert (len(restored.files), len(restored.refused)) == (2, 1)
    assert "not enough disk space" in restored.refused[0]
    assert not (tmp_path / "to" / transcript(1)).exists()


@pytest.mark.parametrize("size", [-1, 1])
def test_what_is_not_as_long_as_told_is_refused(catalogue: Catalogue, tmp_path: Path, size: int) -> None:
    """No more is written than is told, and nothing is left of it."""
    (version,) = (one for one in catalogue.newest() if one.path == transcript(1))
    lying = replace(version, size=version.size + size)
    assert "do not add up" in restore_files(catalogue, [lying], tmp_path / "to").refused[0]
    assert not [path for path in (tmp_path / "to").rglob("*") if path.is_file()]


def test_a_folder_in_the_way_is_told(catalogue: Catalogue, tmp_path: Path) -> None:
    """What is a folder stays one, whatever is asked for; nothing is left of the try, and the sentence is for people."""
    (tmp_path / "to" / transcript(1)).mkdir(parents=True)
    restored = restore_files(catalogue, catalogue.newest(), tmp_path / "to", force=True)
    assert (len(restored.files), len(restored.refused)) == (2, 1)
    assert "is a folder" in restored.refused[0]
    assert not list((tmp_path / "to").rglob("*.new"))


def test_frames_are_unpacked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files come back in the order in which they lie in the packs, not by their names or sizes."""
    store = Store.make(tmp_path / "many")
    monkeypatch.setattr("threadline.keep.pack.FRAME_SIZE", 20_000)
    kept(store, home_with(tmp_path / "more", {transcript(n): lines(n, 15 + n * 7 % 31) for n in range(200)}))
    unpacked: list[pack.Frame] = []
    real = pack.read_frame

    def counted(file: BinaryIO, name: str, frame: pack.Frame, known: bytes | None) -> bytes:
        unpacked.append(frame)
        return real(file, name, frame, known)

    monkeypatch.setattr(pack, "read_frame", counted)
    many = Catalogue(store)
    assert len(restore_files(many, many.newest(), tmp_path / "out").files) == 200
    frames = {(place.pack, place.frame.offset) for place in many.located.values()}
    assert len(frames) > 12
    assert len(unpacked) == len(frames)


def test_what_a_killed_one_left_goes(catalogue: Catalogue, tmp_path: Path) -> None:
    """Half-written files of a process that is not there any more are taken away; those of one that is, stay."""
    folder = (tmp_path / "to" / transcript(1)).parent
    folder.mkdir(parents=True)
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    for process in (dead.pid, os.getpid()):
        (folder / f".threadline-restore-{process}-ab7.new").write_bytes(b"half")
    restore_files(catalogue, catalogue.newest(), tmp_path / "to")
    assert [path.name for path in folder.glob(".*.new")] == [f".threadline-restore-{os.getpid()}-ab7.new"]


def test_several_at_once_into_one_home_do_not_meet(catalogue: Catalogue, tmp_path: Path) -> None:
    """Each writes under names of its own; all of them say that every file is there, and it is."""
    before = restore_files(catalogue, catalogue.newest(), tmp_path / "one")
    done: list[RestoreResult] = []

    def put() -> None:
        own = Catalogue(Store(catalogue.store.folder))
        done.append(restore_files(own, list(own.newest()), tmp_path / "two"))

    threads = [Thread(target=put) for _number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [
        (len(restore_result.files) + len(restore_result.same), restore_result.refused) for restore_result in done
    ] == [(len(before.files), ())] * 4
    assert _tree(tmp_path / "two") == _tree(tmp_path / "one")
