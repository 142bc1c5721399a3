"""Landing: files written under other names first, many at a time; they have their own once they are on the disk.

One that is killed leaves no half-written file under its own name, and the next one takes away what it left; to wait for
the disk after each file would take most of the time.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from types import TracebackType
from typing import NamedTuple, Self

from threadline.keep.durable import TEMPORARY

_MANY = 256
_LARGE = 64 * 1024 * 1024
"""How many files, or bytes, are written before the disk is waited for."""
_WAITING = 16
"""How many files the disk is asked for at a time: it writes them together."""
_LEFT = re.compile(rf"\.([0-9]+)-.*{re.escape(TEMPORARY)}", re.DOTALL)
_sync = getattr(os, "fdatasync", os.fsync)


class _Open(NamedTuple):
    """A file on its way, the place it is to have, and how it is to look there."""

    temporary: Path
    place: Path
    mode: int
    mtime_ns: int


class Landing:
    """Files on their way: `landed` are those that have their names, `failed` those that could not be had, and why."""

    def __init__(self) -> None:
        self.landed: list[Path] = []
        self.failed: list[tuple[Path, Exception]] = []
        self._open: list[_Open] = []
        self._bytes = 0
        self._name = token_hex(4)  # another one may write there, too, and have the same number elsewhere
        self._number = 0
        self._folders: set[Path] = set()
        self._waiting = ThreadPoolExecutor(_WAITING)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self.land()
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
            _sweep(place.parent)
            self._folders.add(place.parent)
        self._number += 1
        temporary = place.with_name(f".{os.getpid()}-{self._name}-{self._number}-{place.name[:80]}{TEMPORARY}")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                for some in data:
                    file.write(some)
                    self._bytes += len(some)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        self._open.append(_Open(temporary, place, mode, mtime_ns))
        if len(self._open) >= _MANY or self._bytes >= _LARGE:
            self.land()

    def land(self) -> None:
        """See that what was written is on the disk, and give it its names."""
        files = (one.temporary for one in self._open)
        for one, problem in zip(self._open, self._waiting.map(_written, files), strict=True):
            try:
                if problem is not None:
                    raise problem
                dress(one.temporary, one.mode, one.mtime_ns)
                one.temporary.replace(one.place)
                self.landed.append(one.place)
            except (OSError, OverflowError, ValueError) as error:
                one.temporary.unlink(missing_ok=True)
                self.failed.append((one.place, error))
        self._open.clear()
        self._bytes = 0


def dress(place: Path, mode: int, mtime_ns: int) -> None:
    """Give a file the mode and the time that it had; never a mode that would make it run as somebody else."""
    place.chmod(mode & 0o777)
    os.utime(place, ns=(mtime_ns, mtime_ns))


def _written(path: Path) -> OSError | None:
    """Wait until a file is on the disk; why it is not."""
    try:
        descriptor = os.open(path, os.O_RDWR)
        try:
            _sync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        return error
    return None


def _sweep(folder: Path) -> None:
    """Take away what one that was killed left behind."""
    with suppress(OSError), os.scandir(folder) as inside:
        for entry in inside:
            found = _LEFT.fullmatch(entry.name)
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
