"""Files that change while they are read, and clocks that go back: what is kept was there at some moment."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

import pytest
from tests.changing_home import ChangingHome
from tests.keep.homes import (
    FIRST,
    assert_whole,
    kept,
    newest,
    on_disk,
    started,
)
from tests.transcripts import SESSION

from threadline import files
from threadline.find import homes
from threadline.keep import Catalogue, Store, run_keep
from threadline.model.places import ProblemKind

_LINE = b'{"type":"user","sessionId":"%s","message":{"role":"user","content":"line %08d %s"}}\n'


def _line(number: int) -> bytes:
    return _LINE % (SESSION.encode(), number, b"word " * (number % 50))


class _Meddled:
    """A file that something happens to after it was read from so many times."""

    def __init__(self, file: object, after: int, happens: Callable[[], object]) -> None:
        self._file = file
        self._left = after
        self._happens = happens

    def read(self, size: int = -1) -> bytes:
        data: bytes = self._file.read(size)  # type: ignore[attr-defined]
        self._left -= 1
        if self._left == 0:
            self._happens()
        return data

    def __getattr__(self, name: str) -> object:
        return getattr(self._file, name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._file.close()  # type: ignore[attr-defined]


@contextmanager
def _meddling(path: Path, happens: Callable[[], object], times: int) -> Iterator[None]:
    """Have something happen to a file in the middle of each of the first so many times that it is read."""
    opened = files.open_regular
    left = times

    def meddled(opened_path: Path, *, follow_symlinks: bool) -> object:
        nonlocal left
        file = opened(opened_path, follow_symlinks=follow_symlinks)
        if opened_path != path or not left:
            return file
        left -= 1
        return _Meddled(file, 2, happens)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "open_regular", meddled)
        yield


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A transcript that is read in several goes."""
    path = tmp_path / f"home/projects/-work-app/{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"".join(map(_line, range(20_000))))
    return path


def _replaced(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(path.read_bytes().replace(b"line 000", b"LINE 111"))
    other.replace(path)


def _overwritten(path: Path) -> None:
    data = path.read_bytes()
    with path.open("r+b") as file:
        file.write(
            data.replace(b"line 000", b"LINE 111") if b"line 000" in data else data.replace(b"LINE 111", b"line 000")
        )


def _grown(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"".join(map(_line, range(5_000))))


MEDDLING: dict[str, Callable[[Path], object]] = {
    "replaced": _replaced,
    "overwritten": _overwritten,
    "grown": _grown,
    "cut": lambda path: os.truncate(path, path.stat().st_size // 2),
    "emptied": lambda path: os.truncate(path, 0),
    "removed": lambda path: path.unlink(missing_ok=True),
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("times", [1, 9], ids=["once", "again and again"])
@pytest.mark.parametrize("name", MEDDLING)
def test_a_file_that_changes_while_it_is_read(name: str, times: int, large: Path, tmp_path: Path) -> None:
    """What is kept of it was in it at some moment, or is said to be a mix; the next run has it as it is then."""
    store = Store.make(tmp_path / "keep")
    home = large.parents[2]
    was = {large.read_bytes()}

    def happens() -> None:
        if large.exists():
            MEDDLING[name](large)
        was.add(large.read_bytes() if large.exists() else b"")

    with _meddling(large, happens, times):
        told = kept(store, home)
    assert_whole(store)
    catalogue = Catalogue(store)
    for version in catalogue.all_versions():
        data = b"".join(catalogue.data(version))
        assert version.torn or any(one.startswith(data) for one in was)
        assert not version.torn or [problem.kind for problem in told.problems] == [ProblemKind.CHANGED]
    kept(store, home)
    assert newest(store, home) == on_disk(home)
    assert not any(one.torn for one in Catalogue(store).newest() if one.gone is None)


APPEND = """
import sys
path, number = sys.argv[1], 0
print("begun", flush=True)
while number < 2_000_000:
    with open(path, "ab") as file:
        for _ in range(50):
            file.write(b'{"type":"user","number":%d,"text":"%s"}\\n' % (number, b"word " * (number % 40)))
            number += 1
"""
REPLACE = """
import os, sys
path, number = sys.argv[1], 0
print("begun", flush=True)
while number < 2000:
    number += 1
    with open(path + ".tmp", "wb") as file:
        file.write(b'{"number":%d}\\n' % number * 100_000)
    os.replace(path + ".tmp", path)
"""


@pytest.mark.crash
@pytest.mark.parametrize("code", [APPEND, REPLACE], ids=["appended to", "replaced"])
def test_a_file_that_another_process_writes(code: str, large: Path, tmp_path: Path) -> None:
    """Kept again and again meanwhile: each version is a beginning of what was in it, never a mix, unless it says so."""
    store = Store.make(tmp_path / "keep")
    home = large.parents[2]
    large.write_bytes(b"")
    with started(code, large) as process:
        for _ in range(6):
            kept(store, home)
        process.kill()
    kept(store, home)
    assert_whole(store)
    assert newest(store, home) == on_disk(home)
    whole = large.read_bytes()
    catalogue = Catalogue(store)
    seen = [one for one in catalogue.all_versions() if not one.torn]
    assert len(seen) > 2
    for version in seen:
        data = b"".join(catalogue.data(version))
        assert whole.startswith(data) if code is APPEND else len(set(data.splitlines())) <= 1


def test_a_clock_that_goes_back(tmp_path: Path) -> None:
    """What came last is the newest, whatever the clock or the times of files say: runs have numbers."""
    store = Store.make(tmp_path / "keep")
    home = ChangingHome(tmp_path / "home", 35, 0.3)
    for year in (2026, 2019, 2040, 1971):
        home.change()
        path = min((home.path / "projects").glob("*/*-*.jsonl"))
        path.write_bytes(path.read_bytes() + _line(year))
        os.utime(path, (year, year))
        run_keep(Catalogue(store), homes(home.path), FIRST, now=lambda year=year: datetime(year, 1, 1, tzinfo=UTC))  # type: ignore[misc]
        assert newest(store, home.path) == on_disk(home.path)
    assert [manifest.run.number for manifest in Catalogue(store).manifests] == [1, 2, 3, 4]
    assert_whole(store)


def test_same_size_and_time_but_other_bytes(large: Path, tmp_path: Path) -> None:
    """A file that was changed and given its old time again is kept as it is now."""
    store = Store.make(tmp_path / "keep")
    kept(store, large.parents[2])
    status = large.stat()
    _overwritten(large)
    os.utime(large, ns=(status.st_atime_ns, status.st_mtime_ns))
    kept(store, large.parents[2])
    assert newest(store, large.parents[2]) == on_disk(large.parents[2])
    assert len(list(Catalogue(store).all_versions())) == 2
