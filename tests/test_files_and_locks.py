"""Tests of `threadline.files` and `threadline.locks`."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from threadline import files, locks


@pytest.fixture(autouse=True)
def _open_umask() -> object:
    before = os.umask(0)
    yield
    os.umask(before)


def test_private_files_are_never_readable_by_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mode is set when the file is created, so others cannot read it while it is written."""
    modes: list[int] = []
    write_all = files.write_all

    def write_and_record_modes(file: object, data: bytes) -> None:
        modes.extend(stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir())
        write_all(file, data)  # type: ignore[arg-type]

    monkeypatch.setattr(files, "write_all", write_and_record_modes)
    files.write_file(tmp_path / "private", b"x")
    files.write_file(tmp_path / "state", b"x", durable=False)
    assert set(modes) == {0o600}
    shared = files.write_file(tmp_path / "shared", b"x", private=False)
    assert stat.S_IMODE(shared.stat().st_mode) == 0o666


@pytest.mark.parametrize("has_links", [True, False], ids=["hard links", "no hard links"])
def test_existing_file_is_not_replaced_without_overwrite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_links: bool
) -> None:
    """This also works on file systems without hard links. No temporary file remains."""
    if not has_links:

        def refuse_link(*_: object, **__: object) -> None:
            raise OSError(errno.EPERM, "no links here")

        monkeypatch.setattr(os, "link", refuse_link)
    target = tmp_path / "target"
    files.write_file(target, b"first", overwrite=False)
    for write in (
        lambda: files.write_file(target, b"second", overwrite=False),
        lambda: files.copy_file(target, target, overwrite=False),
        lambda: _stage(target, overwrite=False),
    ):
        with pytest.raises(FileExistsError):
            write()
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("target", b"first")]
    _stage(target, overwrite=True)
    assert target.read_bytes() == b"staged"


def _stage(target: Path, *, overwrite: bool) -> None:
    with files.staged_path(target, overwrite=overwrite) as path:
        assert path.name == target.resolve().name
        path.write_bytes(b"staged")


@pytest.mark.parametrize("target", ["real", "missing"])
def test_nothing_is_written_through_a_symlink(tmp_path: Path, target: str) -> None:
    """A symlink that a user names is refused, also one to a missing file. The keep's own files replace symlinks."""
    (tmp_path / "real").write_bytes(b"old")
    link = tmp_path / "link"
    link.symlink_to(tmp_path / target)
    writers: list[Callable[[], object]] = [
        lambda: _stage(link, overwrite=True),
        lambda: files.copy_file(tmp_path / "real", link, overwrite=True),
        lambda: files.move_file(tmp_path / "real", link, overwrite=True),
        lambda: files.write_output(link, b"new"),
    ]
    for write in writers:
        with pytest.raises(OSError, match="symlink"):
            write()
    assert link.is_symlink()
    assert [path.read_bytes() for path in tmp_path.iterdir() if path != link] == [b"old"]
    files.write_file(link, b"new")
    assert (link.is_symlink(), link.read_bytes(), (tmp_path / "real").read_bytes()) == (False, b"new", b"old")


def test_leftovers_of_killed_processes_are_removed_for_the_same_target(tmp_path: Path) -> None:
    """Temporary files and folders of other targets, and of running processes, stay."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    (tmp_path / f".a-{process.pid}-0{files.TEMPORARY_SUFFIX}").mkdir()
    (tmp_path / f".a-{process.pid}-1{files.TEMPORARY_SUFFIX}").write_bytes(b"half")
    for name in (f".b-{process.pid}-0", f".a-{os.getpid()}-0"):
        (tmp_path / f"{name}{files.TEMPORARY_SUFFIX}").write_bytes(b"half")
    files.write_output(tmp_path / "a", b"new")
    assert len(list(tmp_path.iterdir())) == 3
    assert not list(tmp_path.glob(f".a-{process.pid}-*"))


def test_error_in_the_block_leaves_no_temporary_file_or_folder(tmp_path: Path) -> None:
    """`staged_path` and `AtomicFile` remove what they created."""

    def stage() -> None:
        with files.staged_path(tmp_path / "x", overwrite=True) as path:
            path.write_bytes(b"x")
            raise KeyError

    def write() -> None:
        with files.AtomicFile(tmp_path, owner="me") as file:
            file.write(b"x")
            raise KeyError

    for fail in (stage, write):
        with pytest.raises(KeyError):
            fail()
    assert list(tmp_path.iterdir()) == []


def test_leftovers_of_dead_processes_are_removed(tmp_path: Path) -> None:
    """Only files of this owner are removed. Files of running processes and of other owners stay."""
    live = files.AtomicFile(tmp_path, owner=".me")
    dead, other = tmp_path / ".me-999999999-ab0.new", tmp_path / ".you-999999999-ab0.new"
    for path in (dead, other):
        path.write_bytes(b"x")
    files.remove_leftovers(tmp_path, ".me")
    assert {path.name for path in tmp_path.iterdir()} == {live.path.name, other.name}
    assert files.temporary_owner(live.path.name) == ".me"
    assert files.temporary_owner("machine_1-123-4.new") == "machine_1"
    live.discard()


@pytest.mark.parametrize("shared", [True, False])
def test_locks_exclude_each_other_between_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, shared: bool
) -> None:
    """Exclusive locks exclude all others, shared locks only exclusive ones. A lock is free after the block."""
    monkeypatch.setattr(locks, "TIMEOUT_SECONDS", 0.05)
    path = tmp_path / "lock"
    results: list[bool] = []

    def acquire(wants_shared: bool) -> None:
        try:
            with locks.hold_lock(path, shared=wants_shared):
                results.append(True)
        except locks.LockBusy:
            results.append(False)

    with locks.hold_lock(path, shared=shared):
        for wants_shared in (True, False):
            thread = threading.Thread(target=acquire, args=(wants_shared,))
            thread.start()
            thread.join()
    acquire(False)
    assert results == [shared, False, True]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


_TRY_LOCK = """
import sys
from pathlib import Path
from threadline import locks
locks.TIMEOUT_SECONDS = 0.1
try:
    with locks.hold_lock(Path(sys.argv[1])):
        print("free")
except locks.LockBusy:
    print("held")
"""


def test_lock_that_another_thread_waits_for_stays_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Closing any descriptor of a file frees the locks of the whole process, so a waiting thread must not open it."""
    monkeypatch.setattr(locks, "TIMEOUT_SECONDS", 0.05)
    path = tmp_path / "lock"

    def wait_in_vain() -> None:
        with pytest.raises(locks.LockBusy), locks.hold_lock(path):
            pass

    command = [sys.executable, "-c", _TRY_LOCK, str(path)]
    with locks.hold_lock(path):
        thread = threading.Thread(target=wait_in_vain)
        thread.start()
        thread.join()
        result = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - our own code
    assert result.stdout.strip() == "held"


def test_hash_functions_do_not_need_private_modules() -> None:
    """A Python without its own SHA-256, as some distributions build it, uses OpenSSL's."""
    script = (
        "import sys\n"
        "for name in ('_sha2', '_sha256'): sys.modules[name] = None\n"
        "from threadline import files\n"
        "print(files.sha256(b'a').hexdigest()[:8])"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)  # noqa: S603
    assert (result.stdout.strip(), result.returncode) == (files.sha256(b"a").hexdigest()[:8], 0), result.stderr
