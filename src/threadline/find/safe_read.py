"""Bounded reads of regular files: never opens a pipe or device, never waits for a writer."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, BinaryIO, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_OPEN_FLAGS = (
    os.O_RDONLY
    # Should the file have become a pipe since it was listed, opening it must not wait for a writer.
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
_IGNORED_BYTES = b"\xef\xbb\xbf\x00 \t\r\n"

T = TypeVar("T")


def lines(path: Path, limit: int) -> Iterator[bytes]:
    """Give the lines in the first `limit` bytes, without one that the limit cuts.

    Raises:
        OSError: it cannot be read, or is not a regular file.
    """
    with _open_regular(path) as file:
        while limit > 0 and (line := file.readline(limit)):
            limit -= len(line)
            if limit > 0 or line.endswith(b"\n"):
                yield line


def read_whole(path: Path, limit: int) -> bytes:
    """Give the file's bytes, or none if it is larger than `limit`.

    Raises:
        OSError: it cannot be read, or is not a regular file.
    """
    with _open_regular(path) as file:
        data = file.read(limit + 1)
    return data if len(data) <= limit else b""


def decode_or_none(data: bytes, shape: type[T]) -> T | None:
    """Fit JSON to a shape; None if it is not JSON or does not fit, for here it is only a hint."""
    try:
        return msgspec.json.decode(data.strip(_IGNORED_BYTES), type=shape)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def _open_regular(path: Path) -> BinaryIO:
    _check_regular(path.stat(), path)  # a pipe or device is not opened, not even to ask it
    descriptor = os.open(path, _OPEN_FLAGS)
    try:
        _check_regular(os.fstat(descriptor), path)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def _check_regular(status: os.stat_result, path: Path) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", str(path))
