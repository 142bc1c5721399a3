"""Files that change while they are read, and clocks that go back: what is kept existed at some moment."""

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
    assert_intact,
    files_on_disk,
    keep_home,
    newest_files,
    start_process,
)
from tests.transcripts import SESSION

from threadline import home_files
from threadline.find import homes
from threadline.keep import Catalogue, Store, Version, run_keep
from threadline.model.places import ProblemKind

_LINE = b'{"type":"user","sessionId":"%s","message":{"role":"user","content":"line %08d %s"}}\n'


def make_line(number: int) -> bytes:
    """A transcript line."""
    return _LINE % (SESSION.encode(), number, b"word " * (number % 50))


class _ChangingFile:
    """A file that changes after that many reads."""

    def __init__(self, file: object, after: int, callback: Callable[[], object]) -> None:
        self._file = file
        self._remaining = after
        self._callback = callback

    def read(self, size: int = -1) -> bytes:
        data: bytes = self._file.read(size)  # type: ignore[attr-defined]
        self._remaining -= 1
        if self._remaining == 0:
            self._callback()
        return data

    def __getattr__(self, name: str) -> object:
        return getattr(self._file, name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._file.close()  # type: ignore[attr-defined]


@contextmanager
def change_while_reading(path: Path, callback: Callable[[], object], times: int) -> Iterator[None]:
    """Change a file in the middle of each of its first reads, that many times."""
    open_unbuffered = home_files.open_unbuffered
    remaining = times

    def open_changing(opened_path: Path, *, home: Path) -> object:
        nonlocal remaining
        file = open_unbuffered(opened_path, home=home)
        if opened_path != path or not remaining:
            return file
        remaining -= 1
        return _ChangingFile(file, 2, callback)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(home_files, "open_unbuffered", open_changing)
        yield


@pytest.fixture
def large_transcript(tmp_path: Path) -> Path:
    """A transcript that is read in several chunks."""
    path = tmp_path / f"home/projects/-work-app/{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"".join(map(make_line, range(20_000))))
    return path


def replace(path: Path) -> None:
    """Replace the file with a changed copy."""
    other = path.with_name("other")
    other.write_bytes(path.read_bytes().replace(b"line 000", b"LINE 111"))
    other.replace(path)


def overwrite(path: Path) -> None:
    """Overwrite the file in place, with the same size."""
    data = path.read_bytes()
    with path.open("r+b") as file:
        file.write(
            data.replace(b"line 000", b"LINE 111") if b"line 000" in data else data.replace(b"LINE 111", b"line 000")
        )


def append(path: Path) -> None:
    """Append lines."""
    with path.open("ab") as file:
        file.write(b"".join(map(make_line, range(5_000))))


CHANGES: dict[str, Callable[[Path], object]] = {
    "replaced": replace,
    "overwritten": overwrite,
    "grown": append,
    "cut": lambda path: os.truncate(path, path.stat().st_size // 2),
    "emptied": lambda path: os.truncate(path, 0),
    "removed": lambda path: path.unlink(missing_ok=True),
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("times", [1, 9], ids=["once", "again and again"])
@pytest.mark.parametrize("name", CHANGES)
def test_file_changes_while_it_is_read(name: str, times: int, large_transcript: Path, tmp_path: Path) -> None:
    """What is kept existed at some moment, or is marked as torn. The next run has the current content."""
    store = Store.make(tmp_path / "keep")
    home = large_transcript.parents[2]
    contents = {large_transcript.read_bytes()}

    def change() -> None:
        if large_transcript.exists():
            CHANGES[name](large_transcript)
        contents.add(large_transcript.read_bytes() if large_transcript.exists() else b"")

    with change_while_reading(large_transcript, change, times):
        result = keep_home(store, home)
    assert_intact(store)
    catalogue = Catalogue(store)
    for version in catalogue.all_versions():
        data = b"".join(catalogue.data(version))
        assert version.torn or any(content.startswith(data) for content in contents)
        assert not version.torn or [problem.kind for problem in result.problems] == [ProblemKind.CHANGED]
    keep_home(store, home)
    assert newest_files(store, home) == files_on_disk(home)
    assert not any(version.torn for version in Catalogue(store).newest() if version.gone is None)


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
# The pauses differ: some are shorter than reading the file takes, and some longer, also on a busy machine.
REPLACE = """
import os, sys, time
path, number = sys.argv[1], 0
print("begun", flush=True)
while number < 2000:
    number += 1
    with open(path + ".tmp", "wb") as file:
        file.write(b'{"number":%d}\\n' % number * 100_000)
    os.replace(path + ".tmp", path)
    time.sleep(number % 8 * 0.02)
"""


def _whole_versions(catalogue: Catalogue) -> list[Version]:
    return [version for version in catalogue.all_versions() if not version.torn]


@pytest.mark.crash
@pytest.mark.parametrize("code", [APPEND, REPLACE], ids=["appended to", "replaced"])
def test_file_written_by_another_process(code: str, large_transcript: Path, tmp_path: Path) -> None:
    """Each version is a beginning of the content, never a mix, unless it is marked as torn."""
    store = Store.make(tmp_path / "keep")
    home = large_transcript.parents[2]
    large_transcript.write_bytes(b"")
    with start_process(code, large_transcript) as process:
        for run in range(60):
            keep_home(store, home)
            if run >= 5 and len(_whole_versions(Catalogue(store))) > 2:  # a busy machine takes more runs
                break
        process.kill()
    keep_home(store, home)
    assert_intact(store)
    assert newest_files(store, home) == files_on_disk(home)
    content = large_transcript.read_bytes()
    catalogue = Catalogue(store)
    versions = _whole_versions(catalogue)
    assert len(versions) > 2
    for version in versions:
        data = b"".join(catalogue.data(version))
        assert content.startswith(data) if code is APPEND else len(set(data.splitlines())) <= 1


def test_clock_goes_back(tmp_path: Path) -> None:
    """The last run is the newest, whatever the clock or the mtimes say: runs have numbers."""
    store = Store.make(tmp_path / "keep")
    home = ChangingHome(tmp_path / "home", 35, 0.3)
    for year in (2026, 2019, 2040, 1971):
        home.change()
        path = min((home.path / "projects").glob("*/*-*.jsonl"))
        path.write_bytes(path.read_bytes() + make_line(year))
        os.utime(path, (year, year))
        run_keep(Catalogue(store), homes(home.path), FIRST, now=lambda year=year: datetime(year, 1, 1, tzinfo=UTC))  # type: ignore[misc]
        assert newest_files(store, home.path) == files_on_disk(home.path)
    assert [manifest.run.number for manifest in Catalogue(store).manifests] == [1, 2, 3, 4]
    assert_intact(store)


def test_same_size_and_mtime_but_other_bytes(large_transcript: Path, tmp_path: Path) -> None:
    """A changed file with its old mtime is kept in its current state."""
    store = Store.make(tmp_path / "keep")
    keep_home(store, large_transcript.parents[2])
    status = large_transcript.stat()
    overwrite(large_transcript)
    os.utime(large_transcript, ns=(status.st_atime_ns, status.st_mtime_ns))
    keep_home(store, large_transcript.parents[2])
    assert newest_files(store, large_transcript.parents[2]) == files_on_disk(large_transcript.parents[2])
    assert len(list(Catalogue(store).all_versions())) == 2
