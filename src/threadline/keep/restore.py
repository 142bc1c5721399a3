"""Restore kept files into a Claude home byte for byte, with their modes and times.

Paths come from manifests, which may come from anywhere: nothing is written outside the home, through a symlink, or to
a path that `keep` itself would not store (settings or commands would let others run code).

Files are written in batches and renamed once the batch is on disk, since waiting for the disk after every file would
take most of the time. A killed restore leaves no half-written file under its real name; the next one removes the
leftovers.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path, PurePosixPath
from secrets import token_hex
from shutil import disk_usage
from types import TracebackType
from typing import NamedTuple, Self

from msgspec import Struct

from threadline.atomic import TEMPORARY_SUFFIX
from threadline.errors import Unreadable
from threadline.find import PROJECTS, real_projects_dir
from threadline.keep.catalogue import Catalogue, Version
from threadline.keep.paths import is_kept_path

_RESERVED_SPACE = 64 * 1024 * 1024
"""How many bytes are left free on the disk."""
_FAILURES = (Unreadable, OSError, OverflowError, ValueError)


class RestoreResult(Struct, frozen=True):
    """What was put back, what was there already with the same bytes, and what was not put back and why."""

    files: tuple[Path, ...] = ()
    same: tuple[Path, ...] = ()
    refused: tuple[str, ...] = ()


def restore_files(
    catalogue: Catalogue,
    versions: Iterable[Version],
    home: Path,
    *,
    force: bool = False,
    progress: Callable[[int], None] | None = None,
) -> RestoreResult:
    """Put files into a home. What is there with other bytes stays, unless `force`; nothing is written outside of it."""
    restoring = _Restorer(catalogue, home, progress or (lambda _done: None), force=force)
    # The smallest first: one that is too large, or says so, does not keep others from coming back.
    chosen = [one for one in sorted(versions, key=lambda one: one.size) if restoring.should_write(one)]
    # As they lie in the packs: what is unpacked for one has others in it.
    with BatchWriter() as landing:
        for version in sorted(chosen, key=catalogue.place):
            restoring.write(version, landing)
    return restoring.restored(landing)


class _Restorer:
    """What is put into one home, and what is not."""

    def __init__(self, catalogue: Catalogue, home: Path, progress: Callable[[int], None], *, force: bool) -> None:
        self._catalogue = catalogue
        self._home = home
        self._progress = progress
        self._force = force
        self._room = _free_space(home) - _RESERVED_SPACE
        self._same: list[Path] = []
        self._refused: list[str] = []

    def restored(self, landing: BatchWriter) -> RestoreResult:
        """What came of it."""
        failed = [f"{os.path.relpath(place, self._home)}: {_error_text(error)}" for place, error in landing.failed]
        return RestoreResult(tuple(landing.finished), tuple(self._same), (*self._refused, *failed))

    def should_write(self, version: Version) -> bool:
        """Whether a file is not there yet, may be put there, and has room."""
        try:
            place = _target_path(self._home, version.path)
            if place.exists() and _has_same_content(self._catalogue, version, place):
                if self._force:
                    set_mode_and_mtime(place, version.mode, version.mtime_ns)
                self._same.append(place)
            elif os.path.lexists(place) and not self._force:
                self._refuse(f"{place} is there with other bytes; --force puts the kept ones in its place.")
            elif self._is_ahead(version, place):
                self._refuse(
                    f"{place} has grown since it was kept, and --force would lose that: `threadline keep` first."
                )
            elif place.is_dir() and not place.is_symlink():
                self._refuse(f"{place} is a folder, so nothing is put in its place.")
            elif version.size > self._room:
                self._refuse(
                    f"{version.path}: there is no room for its {version.size:,} bytes; "
                    f"{_RESERVED_SPACE // 2**20} MB of a disk"
                    " are left free."
                )
            else:
                self._room -= version.size
                return True
        except _FAILURES as error:
            self._refuse(f"{version.path}: {_error_text(error)}")
        self._progress(version.size)
        return False

    def _is_ahead(self, version: Version, place: Path) -> bool:
        """Whether a file is where it was kept, and went on from there: those bytes are nowhere else."""
        if place != Path(version.home, version.path) or place.is_symlink() or not place.is_file():
            return False
        newest = self._catalogue.versions.get((version.machine, version.home, version.path), [version])[-1]
        if not 0 < newest.size < place.stat().st_size:
            return False
        with place.open("rb") as file:
            return all(file.read(len(data)) == data for data in self._catalogue.data(newest))

    def write(self, version: Version, landing: BatchWriter) -> None:
        """Write one, which has its name once it is on the disk."""
        try:
            place = _target_path(self._home, version.path)
            landing.write(place, self._catalogue.data(version), version.mode, version.mtime_ns)
        except _FAILURES as error:
            self._refuse(f"{version.path}: {_error_text(error)}")
        self._progress(version.size)

    def _refuse(self, why: str) -> None:
        self._refused.append(why)


def _error_text(error: Exception) -> str:
    """What went wrong, for a person: without the names of files that nobody has heard of."""
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return said if said.endswith(".") else f"{said}."


def _free_space(home: Path) -> int:
    """How many bytes are free where a home is, or will be."""
    there = next((one for one in (home, *home.parents) if one.is_dir()), None)
    return disk_usage(there).free if there is not None else 0


def _target_path(home: Path, path: str) -> Path:
    """Where a path of a manifest lies below a home. It may come from anywhere: it must not lead out.

    Raises:
        Unreadable: it does.
    """
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or any(map(_is_unsafe_part, parts)):
        raise Unreadable("its path leads out of the home, so it is not put back.")
    # Settings, commands and the like would have Claude Code run whatever somebody else wrote.
    if not is_kept_path(path):
        raise Unreadable("no run keeps what lies there, so it is not put back.")
    place = home.joinpath(*parts)
    moved = real_projects_dir(os.path.realpath(home))
    for above in place.parents:
        if above == home:
            break
        # People move that one to another disk, and Claude Code follows it.
        is_moved = moved is not None and above == home / PROJECTS
        if above.is_symlink() and not is_moved:
            raise Unreadable(f"{above} is a link, so nothing is put below it.")
    return place


def _is_unsafe_part(part: str) -> bool:
    """Whether a part of a path is one that no file has, or that means something else on this system."""
    windows = os.name == "nt" and any(sign in part for sign in '\\:*?"<>|')
    return part in ("..", ".") or "\0" in part or windows


def _has_same_content(catalogue: Catalogue, version: Version, place: Path) -> bool:
    if place.is_symlink() or not place.is_file() or place.stat().st_size != version.size:
        return False
    with place.open("rb") as file:
        return all(file.read(len(data)) == data for data in catalogue.data(version))


_BATCH_FILES = 256
_BATCH_BYTES = 64 * 1024 * 1024
"""How many files, or bytes, are written before the disk is waited for."""
_SYNC_THREADS = 16
"""How many files the disk is asked for at a time: it writes them together."""
_LEFTOVER_NAME = re.compile(rf"\.([0-9]+)-.*{re.escape(TEMPORARY_SUFFIX)}", re.DOTALL)
_sync_data = getattr(os, "fdatasync", os.fsync)


class _PendingFile(NamedTuple):
    """A file on its way, the place it is to have, and how it is to look there."""

    temporary: Path
    place: Path
    mode: int
    mtime_ns: int


class BatchWriter:
    """Files on their way: `landed` are those that have their names, `failed` those that could not be had, and why."""

    def __init__(self) -> None:
        self.finished: list[Path] = []
        self.failed: list[tuple[Path, Exception]] = []
        self._open: list[_PendingFile] = []
        self._bytes = 0
        self._name = token_hex(4)  # another one may write there, too, and have the same number elsewhere
        self._number = 0
        self._folders: set[Path] = set()
        self._waiting = ThreadPoolExecutor(_SYNC_THREADS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self.flush_batch()
        finally:
            self._waiting.shutdown()
            for one in self._open:
                with suppress(OSError):
                    one.temporary.unlink()

    def write(self, place: Path, data: Iterable[bytes], mode: int, mtime_ns: int) -> None:
        """Write a file that is to have a place, with its mode and time.

        Raises:
            OSError: it cannot be written; nothing is left of it.
        """
        if place.parent not in self._folders:
            place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            _remove_leftovers(place.parent)
            self._folders.add(place.parent)
        self._number += 1
        temporary = place.with_name(f".{os.getpid()}-{self._name}-{self._number}-{place.name[:80]}{TEMPORARY_SUFFIX}")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                for some in data:
                    file.write(some)
                    self._bytes += len(some)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        self._open.append(_PendingFile(temporary, place, mode, mtime_ns))
        if len(self._open) >= _BATCH_FILES or self._bytes >= _BATCH_BYTES:
            self.flush_batch()

    def flush_batch(self) -> None:
        """See that what was written is on the disk, and give it its names."""
        files = (one.temporary for one in self._open)
        for one, problem in zip(self._open, self._waiting.map(_sync_file, files), strict=True):
            try:
                if problem is not None:
                    raise problem
                set_mode_and_mtime(one.temporary, one.mode, one.mtime_ns)
                one.temporary.replace(one.place)
                self.finished.append(one.place)
            except (OSError, OverflowError, ValueError) as error:
                one.temporary.unlink(missing_ok=True)
                self.failed.append((one.place, error))
        self._open.clear()
        self._bytes = 0


def set_mode_and_mtime(place: Path, mode: int, mtime_ns: int) -> None:
    """Give a file the mode and the time that it had; never a mode that would make it run as somebody else."""
    place.chmod(mode & 0o777)
    os.utime(place, ns=(mtime_ns, mtime_ns))


def _sync_file(path: Path) -> OSError | None:
    """Wait until a file is on the disk; why it is not."""
    try:
        descriptor = os.open(path, os.O_RDWR)
        try:
            _sync_data(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        return error
    return None


def _remove_leftovers(folder: Path) -> None:
    """Take away what one that was killed left behind."""
    with suppress(OSError), os.scandir(folder) as inside:
        for entry in inside:
            found = _LEFTOVER_NAME.fullmatch(entry.name)
            if found is not None and not _is_running(int(found[1])):
                with suppress(OSError):
                    os.unlink(entry.path)  # noqa: PTH108 - paths are text here


def _is_running(process: int) -> bool:
    if os.name == "nt":
        return True  # there, to ask would be to end it
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True
