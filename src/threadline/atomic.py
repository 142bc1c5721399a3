"""Write files atomically: a temporary file first, synced to disk, then renamed into place.

New files are readable by their owner only. Readers never follow a symlink and never wait for a pipe.
"""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path
from typing import BinaryIO

from threadline.errors import Unreadable
from threadline.files import open_regular

TEMPORARY_SUFFIX = ".new"
_SMALL_FILE_LIMIT = 64 * 1024
_counter = count()
_CREATE_FLAGS = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_BINARY_FLAG = getattr(os, "O_BINARY", 0)


def open_regular_file(path: Path) -> BinaryIO:
    """A regular file to be read: no link is followed, and no pipe waited for.

    Raises:
        OSError: it cannot be read, or is no regular file.
    """
    return os.fdopen(open_regular(path, follow_symlinks=False), "rb", buffering=0)


def read_small_file(path: Path) -> bytes:
    """All of a regular file of no more than a few kB; of one that is longer, as much as shows that it is.

    Raises:
        OSError: it cannot be read, or is no regular file.
    """
    with open_regular_file(path) as file:
        return file.read(_SMALL_FILE_LIMIT)


def create_temporary_file(folder: Path, writer: str) -> tuple[Path, BinaryIO]:
    """A new file under a name that no other writer has, on this machine or another."""
    path = folder / f"{writer}-{os.getpid()}-{next(_counter)}{TEMPORARY_SUFFIX}"
    return path, os.fdopen(os.open(path, _CREATE_FLAGS | _BINARY_FLAG, 0o600), "wb", buffering=0)


def write_all(file: BinaryIO, data: bytes) -> None:
    """All of it, however little the system takes at a time."""
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]


def write_file(folder: Path, writer: str, name: str, data: bytes) -> Path:
    """A small file: all of it is on the disk before it has its name.

    Raises:
        OSError: it cannot be written; nothing is left of it.
    """
    temporary, file = create_temporary_file(folder, writer)
    try:
        with file:
            write_all(file, data)
            os.fsync(file.fileno())
        temporary.replace(folder / name)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(folder)
    return folder / name


def sync_folder(folder: Path) -> None:
    """Make sure that the names in a folder are on the disk."""
    if os.name == "nt":  # a folder cannot be opened there, and its names are written through
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def keep_write_error(folder: Path, error: OSError) -> Unreadable:
    """What to tell somebody whose keep cannot be written."""
    said = error.strerror or str(error)
    return Unreadable(
        f"The keep {str(folder)!r} cannot be written: {said}. What it had is whole; once that is mended, run it again."
    )
