"""Tests of `HomeWatcher`, which reports kinds of changes without reading the files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.transcripts import SESSION, line

from threadline.find import HomeWatcher
from threadline.model.homes import Home

OTHER = "5e551011-0000-4000-8000-000000000002"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The main transcript of a home's only session, with an old mtime."""
    path = tmp_path / "projects" / "-a" / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"".join(line({"type": "user", "n": number}) for number in range(10)))
    os.utime(path, (1_700_000_000, 1_700_000_000))
    return path


@pytest.fixture
def watcher(tmp_path: Path, path: Path) -> HomeWatcher:
    """A watcher of the home that has seen no change."""
    assert path.exists()
    watcher = HomeWatcher([Home(tmp_path, "option")])
    assert kinds(watcher) == []
    return watcher


def kinds(watcher: HomeWatcher) -> list[str]:
    """Return the kinds of the changes."""
    return [str(change.kind) for change in watcher.poll(everything=True)]


def append(path: Path, data: bytes) -> None:
    """Append to a file."""
    with path.open("ab") as file:
        file.write(data)


def test_each_change_is_reported_once(watcher: HomeWatcher, path: Path) -> None:
    """Appended, truncated, replaced, deleted and restored: each kind once, and nothing in between."""
    content = path.read_bytes()
    append(path, line({"type": "user"}))
    assert kinds(watcher) == ["grown"]
    assert kinds(watcher) == []
    os.truncate(path, len(content) // 2)
    assert kinds(watcher) == ["truncated"]
    assert kinds(watcher) == []
    (path.parent / "new").write_bytes(content)
    (path.parent / "new").rename(path)
    assert kinds(watcher) == ["replaced"]
    path.unlink()
    assert kinds(watcher) == ["vanished"]
    assert kinds(watcher) == []
    path.write_bytes(content)
    assert kinds(watcher) == ["new"]
    assert kinds(watcher) == []


def test_session_restored_in_another_project_has_moved(watcher: HomeWatcher, path: Path) -> None:
    """A copy with the same name continues the deleted file."""
    content = path.read_bytes()
    path.unlink()
    assert kinds(watcher) == ["vanished"]
    other = path.parent.parent / "-b" / path.name
    other.parent.mkdir()
    other.write_bytes(content)
    (change,) = watcher.poll(everything=True)
    assert (str(change.kind), change.transcript.path, change.origin) == ("moved", other, str(path))


def test_second_name_of_a_file_is_new(watcher: HomeWatcher, path: Path) -> None:
    """The inode is already known by another name, so a rename is a new file and a deleted one."""
    other = path.with_name("notes.jsonl")
    os.link(path, path.with_name(f"{OTHER}.jsonl"))
    assert kinds(watcher) == ["new"]  # a second name for a file that is still there
    path.rename(other)
    assert sorted(kinds(watcher)) == ["new", "vanished"]  # the inode is known by its other name


def test_edit_that_keeps_size_and_mtime_is_detected(watcher: HomeWatcher, path: Path) -> None:
    """Only the ctime of an old file tells that it was overwritten in place."""
    status = path.stat()
    with path.open("r+b") as file:
        file.write(b"~")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert kinds(watcher) == ["rewritten"]
    assert kinds(watcher) == []


@pytest.mark.parametrize("at", [0, -5])
def test_change_within_the_mtime_resolution_is_detected(watcher: HomeWatcher, path: Path, at: int) -> None:
    """A recently written file is compared by its ends, because its size and mtime may stay equal."""
    append(path, line({"type": "user"}))
    assert kinds(watcher) == ["grown"]
    status = path.stat()
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    with path.open("r+b") as file:
        file.write(content)
    os.utime(path, ns=(status.st_mtime_ns, status.st_mtime_ns))
    assert kinds(watcher) == ["rewritten"]
    assert kinds(watcher) == []


def test_old_files_are_not_opened(tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A watcher uses the status of files, and opens only recently written ones."""
    opened: list[str] = []
    real = os.open

    def spy(name: str, flags: int) -> int:
        opened.append(os.fspath(name))
        return real(name, flags)

    monkeypatch.setattr(os, "open", spy)
    watcher = HomeWatcher([Home(tmp_path, "option")])
    os.utime(path, (1_700_000_001, 1_700_000_001))
    assert kinds(watcher) == ["rewritten"]
    assert opened == []


def test_symlink_in_place_of_a_transcript_is_not_followed(watcher: HomeWatcher, path: Path, tmp_path: Path) -> None:
    """The transcript has vanished, and the symlink's target is not watched."""
    (tmp_path / "secret").write_bytes(b"x")
    path.unlink()
    path.symlink_to(tmp_path / "secret")
    assert kinds(watcher) == ["vanished"]
    append(tmp_path / "secret", b"y")
    assert kinds(watcher) == []


def test_projects_symlinked_to_a_parent_are_not_watched(tmp_path: Path) -> None:
    """They are not listed either."""
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "-a").mkdir()
    (tmp_path / "-a" / f"{SESSION}.jsonl").write_bytes(b"{}\n")
    (home / "projects").symlink_to(tmp_path)
    assert HomeWatcher([Home(home, "option")]).transcripts == []
