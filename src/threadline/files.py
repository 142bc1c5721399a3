"""Open regular files safely: never a pipe or a device, and never waiting for a writer."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

_OPEN_FLAGS = (
    os.O_RDONLY
    # A file may be replaced by a pipe after the check; opening that must not wait for a writer.
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)


class NotRegularFileError(OSError):
    """The path is a directory, a pipe, a socket or a device."""


def open_regular(path: str | os.PathLike[str], *, follow_symlinks: bool = True) -> int:
    """Open a regular file for reading and return its descriptor.

    Raises:
        NotRegularFileError: it is something else, which is not opened.
        OSError: it cannot be opened.
    """
    _check_regular(os.stat(path, follow_symlinks=follow_symlinks), path)  # noqa: PTH116 - a path may be text
    descriptor = os.open(path, _OPEN_FLAGS if follow_symlinks else _OPEN_FLAGS | _NO_FOLLOW)
    try:
        _check_regular(os.fstat(descriptor), path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


@contextmanager
def opened_regular(path: str | os.PathLike[str]) -> Iterator[int]:
    """Open a regular file for reading for the duration of a `with` block; raises what `open_regular` raises."""
    descriptor = open_regular(path)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def read_lines(path: str | os.PathLike[str], limit: int) -> Iterator[bytes]:
    """Yield the lines in the first `limit` bytes, without a last line that the limit cuts.

    Raises:
        OSError: it cannot be read, or is not a regular file.
    """
    with os.fdopen(open_regular(path), "rb") as file:
        while limit > 0 and (line := file.readline(limit)):
            limit -= len(line)
            if limit > 0 or line.endswith(b"\n"):
                yield line


def read_whole(path: str | os.PathLike[str], limit: int) -> bytes:
    """Return the file's bytes, or `b""` if it is larger than `limit`.

    Raises:
        OSError: it cannot be read, or is not a regular file.
    """
    with os.fdopen(open_regular(path), "rb") as file:
        data = file.read(limit + 1)
    return data if len(data) <= limit else b""


def read_at(descriptor: int, start: int, stop: int) -> bytes:
    """Return the bytes from `start` to `stop`, or as many of them as the file has."""
    os.lseek(descriptor, start, os.SEEK_SET)
    data = os.read(descriptor, stop - start)
    while len(data) < stop - start and (more := os.read(descriptor, stop - start - len(data))):
        data += more
    return data


def _check_regular(status: os.stat_result, path: str | os.PathLike[str]) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise NotRegularFileError(errno.EINVAL, "not a regular file", os.fspath(path))
