"""System failures: full disks, I/O errors, limits and permissions."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import mkdtemp

import pytest
from tests.changing_home import ChangingHome
from tests.keep.homes import (
    FIRST,
    SECOND,
    assert_intact,
    keep_home,
    stored_versions,
    unfinished_files,
    use_small_packs,
    version_state,
)
from tests.keep.steps import Step, intercept_steps
from tests.transcripts import SESSION

from threadline.errors import Unreadable
from threadline.keep import Catalogue, Store, merge_keeps, repack

pytestmark = pytest.mark.crash

SOURCE = str(Path(__file__).parents[2] / "src")
NOBODY = 65534
MOUNT = shutil.which("mount")
_CAN_MOUNT = MOUNT is not None and hasattr(os, "geteuid") and os.geteuid() == 0
_LINE = b'{"type":"user","sessionId":"%s","message":{"role":"user","content":"line %08d %s"}}\n'

Work = Callable[[Store], object]


def make_line(number: int) -> bytes:
    """A transcript line."""
    return _LINE % (SESSION.encode(), number, b"word " * (number % 50))


def kinds_of_work(home: ChangingHome, other: Store) -> dict[str, Work]:
    """The kinds of work on a keep."""
    return {
        "keep": lambda store: keep_home(store, home.path),
        "merge": lambda store: merge_keeps(Catalogue(store, trust_cache=False), FIRST, [other]),
        "pack": lambda store: repack(Catalogue(store, trust_cache=False), FIRST),
    }


@pytest.fixture(params=["keep", "merge", "pack"])
def work(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Store, Work]:
    """A keep with several runs, and work that still has to be done on it."""
    use_small_packs(monkeypatch)
    folder = tmp_path / "disk" / "keep"
    folder.parent.mkdir()
    home, there = ChangingHome(tmp_path / "here", 31, 0.6), ChangingHome(tmp_path / "there", 32, 0.6)
    other = Store.make(tmp_path / "other")
    keep_home(other, there.path, SECOND)
    store = Store.make(folder)
    for _ in range(3):
        keep_home(store, home.path)
        home.change()
    return store, kinds_of_work(home, other)[request.param]


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(errno.ENOSPC, marks=pytest.mark.smoke, id="ENOSPC"),
        *(pytest.param(number, id=errno.errorcode[number]) for number in (errno.EIO, errno.EDQUOT, errno.EROFS)),
    ],
)
def test_error_at_any_step(number: int, work: tuple[Store, Work]) -> None:
    """A disk that is full, broken or read-only from some step on: an error message, no leftovers, no damage."""
    store, do = work
    saved = store.folder.with_name("saved")
    shutil.copytree(store.folder, saved)
    before = stored_versions(store)

    def fail_from(first: int, step: Step) -> None:
        # Removing files still works on a full disk.
        if step.number >= first and (step.name != "remove" or number == errno.EIO):
            raise OSError(number, os.strerror(number))

    messages: list[str] = []
    for first in count(1, 3):
        shutil.rmtree(store.folder)
        shutil.copytree(saved, store.folder)
        try:
            with intercept_steps(lambda step, first=first: fail_from(first, step)):  # type: ignore[misc]
                do(store)
            break
        except Unreadable as error:
            messages.append(str(error))
        assert_intact(store, before)
        if number != errno.EIO:
            assert unfinished_files(store) == []
        if first % 4 == 0:
            do(store)
            assert_intact(store, before)
            assert unfinished_files(store) == []
    assert len(messages) > 2
    assert all(os.strerror(number) in message for message in messages)


@contextmanager
def mount_small_disk(folder: Path, size: int) -> Iterator[None]:
    """Mount a disk of that size on a folder."""
    command = [str(MOUNT), "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)]
    if subprocess.run(command, check=False, capture_output=True).returncode:  # noqa: S603 - our own words
        pytest.skip("nothing can be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)  # noqa: S603, S607 - the same


@pytest.mark.skipif(not _CAN_MOUNT, reason="only root mounts a small disk")
@pytest.mark.parametrize("free", [0, 4096, 12_288])
def test_full_disk(free: int, work: tuple[Store, Work], tmp_path: Path) -> None:
    """With little space left, that is reported and nothing is damaged. With more space, the next run completes."""
    store, do = work
    saved = tmp_path / "saved"
    shutil.copytree(store.folder, saved)
    with mount_small_disk(store.folder.parent, 8_000_000):
        shutil.copytree(saved, store.folder)
        before = stored_versions(store)
        status = os.statvfs(store.folder)
        filler = store.folder.parent / "filler"
        filler.write_bytes(bytes(max(0, status.f_bavail * status.f_frsize - free)))
        with pytest.raises(Unreadable, match=os.strerror(errno.ENOSPC)):
            do(store)
        assert_intact(store, before)
        assert unfinished_files(store) == []
        filler.unlink()
        do(store)
        assert_intact(store, before)


def test_file_size_limit(work: tuple[Store, Work]) -> None:
    """If the system limits the size of files, that is reported, and nothing is damaged."""
    store, do = work
    before = stored_versions(store)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, hard))
    try:
        with pytest.raises(Unreadable, match=os.strerror(errno.EFBIG)):
            do(store)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert_intact(store, before)
    assert unfinished_files(store) == []
    do(store)
    assert_intact(store, before)


def test_too_many_open_files(work: tuple[Store, Work]) -> None:
    """At any moment: an error message or a problem, and nothing is damaged."""
    store, do = work
    before = stored_versions(store)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = max(int(fd) for fd in os.listdir("/proc/self/fd")) + 1 if os.path.isdir("/proc/self/fd") else 64  # noqa: PTH112, PTH208
    for more in range(8):
        resource.setrlimit(resource.RLIMIT_NOFILE, (used + more, hard))
        try:
            do(store)
        except Unreadable:
            pass
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert_intact(store, before)
    do(store)
    assert_intact(store, before)


def test_unreadable_file_is_reported() -> None:
    """The rest is kept, earlier versions stay, and the file is not marked as gone."""
    folder = Path(mkdtemp(prefix="threadline-"))
    try:
        home = ChangingHome(folder / "home", 33, 0.3)
        mains = sorted((home.path / "projects").glob("*/*-*.jsonl"))
        store = Store.make(folder / "keep")
        keep_home(store, home.path)
        before = stored_versions(store)
        mains[0].chmod(0)
        home.path.joinpath("projects", "-new").mkdir()
        (home.path / "projects/-new" / f"{SESSION}.jsonl").write_bytes(make_line(1))
        locked = mains[1].parent if mains[1].parent != mains[0].parent else mains[-1].parent
        os.utime(mains[0])
        locked.chmod(0)
        status = run_as_nobody(folder, lambda: keep_home(store, home.path))
        locked.chmod(0o700)
        assert status == 0
        assert_intact(store, before)
        catalogue = Catalogue(store)
        by_path = {version.path: version for version in catalogue.newest()}
        assert f"projects/-new/{SESSION}.jsonl" in by_path
        assert not [version.path for version in by_path.values() if version.gone]
    finally:
        shutil.rmtree(folder)


def run_as_nobody(folder: Path, do: Callable[[], object]) -> int:
    """Do something as a user without special rights. Returns 0 on success."""
    if os.geteuid() != 0:
        do()
        return 0
    for path in (folder, *folder.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    child = os.fork()
    if not child:
        code = 1
        try:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            do()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_homes_are_not_modified(tmp_path: Path) -> None:
    """Not even the times of files or folders are changed."""
    home = ChangingHome(tmp_path / "home", 38, 0.3)
    store = Store.make(tmp_path / "keep")
    paths = [home.path, *home.path.rglob("*")]
    before = {path: (path.stat().st_mtime_ns, path.stat().st_ctime_ns) for path in paths}
    keep_home(store, home.path)
    repack(Catalogue(store, trust_cache=False), FIRST)
    assert {
        path: (path.stat().st_mtime_ns, path.stat().st_ctime_ns) for path in [home.path, *home.path.rglob("*")]
    } == before
    assert all(version_state(Catalogue(store), version) for version in Catalogue(store).newest())
