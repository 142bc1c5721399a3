"""A file in runs of whole lines, in memory that does not grow with the file."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from threadline.errors import NotFound, Unreadable
from threadline.model.secret import is_secret_name

# Small enough to stay in the processor's cache while it is split and decoded, which is worth a third of the time.
CHUNK = 128 * 1024
# A line longer than this is found first and then read in one piece, so that it is in memory once, not twice.
_LONG = 4 * 1024 * 1024
LONGEST = 128 * 1024 * 1024
"""The longest line that is decoded. A longer one (a hole full of NULs, as a rule) is given in pieces."""
_PIECE = 8 * 1024 * 1024


class Chunk(Struct, frozen=True, gc=False):
    """A run of lines of a transcript, or one piece of a line too long to be decoded.

    `whole` is that line's length on its first piece, and 0 on the others.
    """

    lines: list[bytes]
    offset: int
    piece: bool = False
    whole: int = 0


def open_transcript(path: str | Path) -> int:
    """Open a regular file for reading and nothing else; say in a sentence why not."""
    try:
        target = os.path.realpath(path) if os.path.islink(path) else path  # noqa: PTH114 - a path may be text
        if is_secret_name(os.path.basename(path)) or is_secret_name(os.path.basename(target)):  # noqa: PTH119 - the same
            raise Unreadable(f"{os.fspath(path)!r} holds secrets by its name, and threadline never opens those.")
        # O_NONBLOCK: a FIFO named x.jsonl must not make us wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        raise NotFound(f"There is no file {os.fspath(path)!r}; check the path.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise Unreadable(f"{os.fspath(path)!r} cannot be opened: {reason}.") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise Unreadable(f"{os.fspath(path)!r} is not a regular file; name a .jsonl transcript.")
    return descriptor


def chunks(path: str | Path, *, offset: int = 0) -> Iterator[Chunk]:
    """The file from `offset`, where a line starts, as runs of whole lines that tile it."""
    descriptor = open_transcript(path)
    try:
        yield from _chunks(descriptor, offset)
    except OSError as error:
        raise Unreadable(f"{os.fspath(path)!r} cannot be read: {error.strerror or error}.") from None
    finally:
        os.close(descriptor)


def _chunks(descriptor: int, at: int) -> Iterator[Chunk]:
    rest = b""
    while block := _read_at(descriptor, CHUNK, at + len(rest)):
        lines = io.BytesIO(block).readlines()
        if rest:
            lines[0] = rest + lines[0]
        rest = b"" if lines[-1].endswith(b"\n") else lines.pop()
        if lines:
            yield Chunk(lines, at)
            at += sum(map(len, lines))
        if len(rest) > _LONG:
            size = _line_length(descriptor, at, len(rest))
            rest = b""
            for piece in _long_line(descriptor, at, size):
                yield piece
                at += len(piece.lines[0])
    if rest:
        yield Chunk([rest], at)


def _line_length(descriptor: int, start: int, known: int) -> int:
    """How long the line at `start` is, its ending included, `known` bytes of it having none."""
    length = known
    while block := _read_at(descriptor, CHUNK, start + length):
        end = block.find(b"\n") + 1
        if end:
            return length + end
        length += len(block)
    return length


def _long_line(descriptor: int, start: int, size: int) -> Iterator[Chunk]:
    if size <= LONGEST:
        yield Chunk([_read(descriptor, size, start)], start)
        return
    done = 0
    while done < size and (data := _read(descriptor, min(_PIECE, size - done), start + done)):
        yield Chunk([data], start + done, piece=True, whole=size if not done else 0)
        done += len(data)


def _read_at(descriptor: int, size: int, at: int) -> bytes:
    """What `os.pread` does, on systems that do not have it, too."""
    os.lseek(descriptor, at, os.SEEK_SET)
    return os.read(descriptor, size)


def _read(descriptor: int, size: int, at: int) -> bytes:
    data = _read_at(descriptor, size, at)
    while data and len(data) < size:  # one call reads at most 2 GiB, and signals may cut it short
        more = _read_at(descriptor, size - len(data), at + len(data))
        if not more:
            break
        data += more
    return data
