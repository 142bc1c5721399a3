"""The fingerprint of a transcript: enough to tell later whether its lines are still those that were read.

The ends are hashed, which takes two short reads and tells an append from a rewrite. The checksum of all that was read
takes a pass over the file, 2 GB a second and more; it is asked for only where the ends may be the same by design:

=========================================  ==========================================================
what the status says                       what is compared
=========================================  ==========================================================
all the same, but written to just before   the ends
the same file, another size                the ends: an append costs what was appended, not the file
the same file and size, another time       all that was read: something in the middle may be changed
another file                               all that was read: tools that edit in place write another file
=========================================  ==========================================================

What this cannot tell: bytes changed in the middle of a file by something that keeps its inode, its ends and its time,
or that adds lines at once. Nothing known does so: editors write another file, and Claude Code changes the end.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from zlib import crc32

from msgspec.structs import replace

from threadline.model.change import Known, Looked

END = 4096
_PIECE = 1 << 20
_FLAGS = (
    os.O_RDONLY
    # Should the file have become a pipe since it was listed, opening it must not wait for a writer.
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)


def fingerprint(path: str | os.PathLike[str], read_to: int) -> tuple[bytes, bytes]:
    """The hashes of the first and of the last 4 kB before `read_to`; no other byte is read.

    Raises:
        OSError: it cannot be read, or is not a regular file.
    """
    with _opened(path) as file:
        head, tail = _ends(file, read_to)
    return _hash(head), _hash(tail)


def seen(
    looked: Looked,
    read_to: int,
    *,
    before: Known | None = None,
    last: bytes = b"",
    is_open: bool = False,
    summed: int | None = None,
) -> Known:
    """What is to be known of a transcript of which the lines up to `read_to` were just read.

    `before` is what was known if lines were kept: then only the bytes since are summed up. `last` are the last bytes
    that were read, as many as are at hand: if they are not there any more, or what was known before is not, then the
    file was rewritten meanwhile, and it is made known in a way that will not match. `is_open` says that the last line
    that was read has no end. `summed` is the checksum of all that was read, where whoever read it has made it.

    Raises:
        OSError: it cannot be read (any more), or is not a regular file.
    """
    with _opened(looked.path) as file:
        head, tail = _ends(file, read_to)
        is_kept = before is None or not before.head_hash or _has_ends(file, before, head)
        start, so_far = (before.read_to, before.checksum) if before is not None else (0, 0)
        checksum = _checksum(file, start, read_to, so_far) if summed is None else summed
    known = Known(
        path=looked.path,
        device=looked.device,
        inode=looked.inode,
        size=looked.size,
        mtime_ns=looked.mtime_ns,
        read_to=read_to,
        head_hash=_hash(head),
        tail_hash=_hash(tail),
        checksum=checksum,
        racy=looked.racy,
    )
    is_as_read = is_kept and tail.endswith(last[-END:]) and (read_to == 0 or is_open or tail.endswith(b"\n"))
    return known if is_as_read else replace(known, head_hash=b"", tail_hash=b"", racy=True)


def renewed(known: Known, looked: Looked) -> Known:
    """The same lines, in a file that bears another name, number or time."""
    return replace(
        known,
        path=looked.path,
        device=looked.device,
        inode=looked.inode,
        size=looked.size,
        mtime_ns=looked.mtime_ns,
        racy=looked.racy,
    )


def goes_on(path: str, status: os.stat_result, known: Known) -> bool:
    """Whether a file that has this status starts with the very lines that are known.

    Raises:
        OSError: it cannot be read, or is not a regular file.
    """
    with _opened(path) as file:
        if os.fstat(file).st_size < known.read_to:
            return False
        if not _has_ends(file, known):
            return False
        # Up to twice an end, both ends have seen every byte.
        if known.read_to <= 2 * END or not _must_compare_all(status, known):
            return True
        return _checksum(file, 0, known.read_to, 0) == known.checksum


def _must_compare_all(status: os.stat_result, known: Known) -> bool:
    is_same_file = (status.st_dev, status.st_ino) == (known.device, known.inode)
    return not is_same_file or (status.st_size == known.size and status.st_mtime_ns != known.mtime_ns)


def _has_ends(file: int, known: Known, begins: bytes = b"") -> bool:
    """Whether a file has the lines that are known; `begins` are its first bytes where they have been read already."""
    head, tail = _ends(file, known.read_to, begins)
    return (_hash(head), _hash(tail)) == (known.head_hash, known.tail_hash)


def _ends(file: int, read_to: int, begins: bytes = b"") -> tuple[bytes, bytes]:
    size = min(END, read_to)
    head = begins[:size] if len(begins) >= size else _read(file, 0, size)
    return head, head if read_to <= END else _read(file, read_to - END, END)


def _checksum(file: int, start: int, stop: int, so_far: int) -> int:
    while start < stop and (piece := _read(file, start, min(_PIECE, stop - start))):
        so_far = crc32(piece, so_far)
        start += len(piece)
    return so_far


def _read(file: int, start: int, size: int) -> bytes:
    os.lseek(file, start, os.SEEK_SET)
    return os.read(file, size)


def _hash(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[int]:
    """A descriptor of a regular file; a pipe or a device is not opened, not even to ask it."""
    _check_regular(os.stat(path), path)  # noqa: PTH116 - paths are text here, for there may be 100,000
    file = os.open(path, _FLAGS)
    try:
        _check_regular(os.fstat(file), path)
        yield file
    finally:
        os.close(file)


def _check_regular(status: os.stat_result, path: str | os.PathLike[str]) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
