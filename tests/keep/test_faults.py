"""What machines do to a keep: full disks, errors, files that change while they are read, clocks, several writers."""

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
    assert_whole,
    held,
    kept,
    leftovers,
    looks,
    small_packs,
)
from tests.keep.steps import Step, stepping
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


def _line(number: int) -> bytes:
    return _LINE % (SESSION.encode(), number, b"word " * (number % 50))


def _kinds(home: ChangingHome, other: Store) -> dict[str, Work]:
    return {
        "keep": lambda store: kept(store, home.path),
        "merge": lambda store: merge_keeps(Catalogue(store, trust_cache=False), FIRST, [other]),
        "pack": lambda store: repack(Catalogue(store, trust_cache=False), FIRST),
    }


@pytest.fixture(params=["keep", "merge", "pack"])
def work(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Store, Work]:
    """A keep with several runs in it, and something that is still to be written to it."""
    small_packs(monkeypatch)
    folder = tmp_path / "disk" / "keep"
    folder.parent.mkdir()
    home, there = ChangingHome(tmp_path / "here", 31, 0.6), ChangingHome(tmp_path / "there", 32, 0.6)
    other = Store.make(tmp_path / "other")
    kept(other, there.path, SECOND)
    store = Store.make(folder)
    for _ in range(3):
        kept(store, home.path)
        home.change()
    return store, _kinds(home, other)[request.param]


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(errno.ENOSPC, marks=pytest.mark.smoke, id="ENOSPC"),
        *(pytest.param(number, id=errno.errorcode[number]) for number in (errno.EIO, errno.EDQUOT, errno.EROFS)),
    ],
)
def test_an_error_at_any_step(number: int, work: tuple[Store, Work]) -> None:
    """A disk that is full, broken or read-only from some step on: a sentence, no remains, nothing is harmed."""
    store, do = work
    saved = store.folder.with_name("saved")
    shutil.copytree(store.folder, saved)
    before = held(store)

    def fails_from(first: int, step: Step) -> None:
        # What frees space still works on a full disk.
        if step.number >= first and (step.name != "remove" or number == errno.EIO):
            raise OSError(number, os.strerror(number))

    said: list[str] = []
    for first in count(1, 3):
        shutil.rmtree(store.folder)
        shutil.copytree(saved, store.folder)
        try:
            with stepping(lambda step, first=first: fails_from(first, step)):  # type: ignore[misc]
                do(store)
            break
        except Unreadable as error:
            said.append(str(error))
        assert_whole(store, before)
        if number != errno.EIO:
            assert leftovers(store) == []
        if first % 4 == 0:
            do(store)
            assert_whole(store, before)
            assert leftovers(store) == []
    assert len(said) > 2
    assert all(os.strerror(number) in one for one in said)


@contextmanager
def _small_disk(folder: Path, size: int) -> Iterator[None]:
    """A disk of so many bytes in a folder."""
    command = [str(MOUNT), "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)]
    if subprocess.run(command, check=False, capture_output=True).returncode:  # noqa: S603 - our own words
        pytest.skip("nothing can be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)  # noqa: S603, S607 - the same


@pytest.mark.skipif(not _CAN_MOUNT, reason="only root mounts a small disk")
@pytest.mark.parametrize("free", [0, 4096, 12_288])
def test_a_full_disk(free: int, work: tuple[Store, Work], tmp_path: Path) -> None:
    """With little room left: it says so, nothing is harmed, and once there is room the next one does it all."""
    store, do = work
    saved = tmp_path / "saved"
    shutil.copytree(store.folder, saved)
    with _small_disk(store.folder.parent, 8_000_000):
        shutil.copytree(saved, store.folder)
        before = held(store)
        there = os.statvfs(store.folder)
        filler = store.folder.parent / "filler"
        filler.write_bytes(bytes(max(0, there.f_bavail * there.f_frsize - free)))
        with pytest.raises(Unreadable, match=os.strerror(errno.ENOSPC)):
            do(store)
        assert_whole(store, before)
        assert leftovers(store) == []
        filler.unlink()
        do(store)
        assert_whole(store, before)


def test_files_that_may_not_grow(work: tuple[Store, Work]) -> None:
    """Where the system lets no file be larger than so much: it says so, and nothing is harmed."""
    store, do = work
    before = held(store)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, hard))
    try:
        with pytest.raises(Unreadable, match=os.strerror(errno.EFBIG)):
            do(store)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert_whole(store, before)
    assert leftovers(store) == []
    do(store)
    assert_whole(store, before)


def test_too_many_open_files(work: tuple[Store, Work]) -> None:
    """Where no more files may be opened, at any moment of it: a sentence or a problem, and nothing is harmed."""
    store, do = work
    before = held(store)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = max(int(one) for one in os.listdir("/proc/self/fd")) + 1 if os.path.isdir("/proc/self/fd") else 64  # noqa: PTH112, PTH208
    for more in range(8):
        resource.setrlimit(resource.RLIMIT_NOFILE, (used + more, hard))
        try:
            do(store)
        except Unreadable:
            pass
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert_whole(store, before)
    do(store)
    assert_whole(store, before)


def test_a_file_that_may_not_be_read() -> None:
    """It is told and the rest is kept; what was kept of it before stays, and it is not said to be gone."""
    folder = Path(mkdtemp(prefix="threadline-"))
    try:
        home = ChangingHome(folder / "home", 33, 0.3)
        shut = sorted((home.path / "projects").glob("*/*-*.jsonl"))
        store = Store.make(folder / "keep")
        kept(store, home.path)
        before = held(store)
        shut[0].chmod(0)
        home.path.joinpath("projects", "-new").mkdir()
        (home.path / "projects/-new" / f"{SESSION}.jsonl").write_bytes(_line(1))
        locked = shut[1].parent if shut[1].parent != shut[0].parent else shut[-1].parent
        os.utime(shut[0])
        locked.chmod(0)
        found = _as_nobody(folder, lambda: kept(store, home.path))
        locked.chmod(0o700)
        assert found == 0
        assert_whole(store, before)
        catalogue = Catalogue(store)
        told = {one.path: one for one in catalogue.newest()}
        assert f"projects/-new/{SESSION}.jsonl" in told
        assert not [one.path for one in told.values() if one.gone]
    finally:
        shutil.rmtree(folder)


def _as_nobody(folder: Path, do: Callable[[], object]) -> int:
    """Do something as somebody who has no rights but those of the files' owner; 0 where it went well."""
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


def test_the_homes_are_left_alone(tmp_path: Path) -> None:
    """Not even a time of a file or a folder is changed by keeping it."""
    home = ChangingHome(tmp_path / "home", 38, 0.3)
    store = Store.make(tmp_path / "keep")
    everything = [home.path, *home.path.rglob("*")]
    before = {path: (path.stat().st_mtime_ns, path.stat().st_ctime_ns) for path in everything}
    kept(store, home.path)
    repack(Catalogue(store, trust_cache=False), FIRST)
    assert {
        path: (path.stat().st_mtime_ns, path.stat().st_ctime_ns) for path in [home.path, *home.path.rglob("*")]
    } == before
    assert all(looks(Catalogue(store), one) for one in Catalogue(store).newest())
