"""Read a transcript's bytes as lines, in memory that does not grow with the file.

`read_chunks` yields runs of whole lines that tile the file. `find_lines` yields only the lines that contain certain
bytes, without splitting the others. `LineNumbers` numbers a line by its offset, on demand: counting lines takes as
long as finding the usage in them.
"""

from __future__ import annotations

import io
import os
from bisect import bisect_right
from collections.abc import Callable, Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from threadline.errors import Error, Unreadable
from threadline.files import open_transcript

# Small enough to stay in the processor's cache while it is split and decoded, which is worth a third of the time.
CHUNK_SIZE = 128 * 1024
# A line longer than this is found first and then read in one piece, so that it is in memory once, not twice.
_LONG_LINE = 4 * 1024 * 1024
MAX_LINE_LENGTH = 128 * 1024 * 1024
"""The longest line that is decoded. A longer one (a hole full of NULs, as a rule) is given in pieces."""
_PIECE_SIZE = 8 * 1024 * 1024


class Chunk(Struct, frozen=True, gc=False):
    """A run of lines of a transcript, or one piece of a line too long to be decoded.

    `whole` is that line's length on its first piece, and 0 on the others.
    """

    lines: list[bytes]
    offset: int
    piece: bool = False
    whole: int = 0


def read_chunks(path: str | Path, *, offset: int = 0) -> Iterator[Chunk]:
    """The file from `offset`, where a line starts, as runs of whole lines that tile it."""
    descriptor = open_transcript(path)
    try:
        yield from _iter_chunks(descriptor, offset)
    except OSError as error:
        raise Unreadable(f"{os.fspath(path)!r} cannot be read: {error.strerror or error}.") from None
    finally:
        os.close(descriptor)


def _iter_chunks(descriptor: int, at: int) -> Iterator[Chunk]:
    rest = b""
    while block := _read_at(descriptor, CHUNK_SIZE, at + len(rest)):
        lines = io.BytesIO(block).readlines()
        if rest:
            lines[0] = rest + lines[0]
        rest = b"" if lines[-1].endswith(b"\n") else lines.pop()
        if lines:
            yield Chunk(lines, at)
            at += sum(map(len, lines))
        if len(rest) > _LONG_LINE:
            size = _find_line_length(descriptor, at, len(rest))
            rest = b""
            for piece in _read_long_line(descriptor, at, size):
                yield piece
                at += len(piece.lines[0])
    if rest:
        yield Chunk([rest], at)


def _find_line_length(descriptor: int, start: int, known: int) -> int:
    """How long the line at `start` is, its ending included, `known` bytes of it having none."""
    length = known
    while block := _read_at(descriptor, CHUNK_SIZE, start + length):
        end = block.find(b"\n") + 1
        if end:
            return length + end
        length += len(block)
    return length


def _read_long_line(descriptor: int, start: int, size: int) -> Iterator[Chunk]:
    if size <= MAX_LINE_LENGTH:
        yield Chunk([_read_fully(descriptor, size, start)], start)
        return
    done = 0
    while done < size and (data := _read_fully(descriptor, min(_PIECE_SIZE, size - done), start + done)):
        yield Chunk([data], start + done, piece=True, whole=size if not done else 0)
        done += len(data)


def _read_at(descriptor: int, size: int, at: int) -> bytes:
    """What `os.pread` does, on systems that do not have it, too."""
    os.lseek(descriptor, at, os.SEEK_SET)
    return os.read(descriptor, size)


def _read_fully(descriptor: int, size: int, at: int) -> bytes:
    data = _read_at(descriptor, size, at)
    while data and len(data) < size:  # one call reads at most 2 GiB, and signals may cut it short
        more = _read_at(descriptor, size - len(data), at + len(data))
        if not more:
            break
        data += more
    return data


_BLOCK_SIZE = 256 * 1024
_FIRST_READ_SIZE = 16 * 1024


class MatchingLines(Struct, gc=False):
    """A block of whole lines, and those of its lines that were looked for, each with where it begins in the file.

    `begins` is where the block does; `passed` is how many bytes of a line too long to be decoded stood before it.
    """

    block: bytes
    offsets: list[int]
    lines: list[bytes]
    begins: int = 0
    skipped_bytes: int = 0


def find_lines(path: str | Path, needle: bytes, *, offset: int = 0) -> Iterator[MatchingLines]:
    """The file block by block, with the lines that hold `needle`; a line too long to be decoded is passed over.

    `offset` is where to start, which must be where a line begins.
    """
    descriptor = open_transcript(path)
    try:
        os.lseek(descriptor, offset, os.SEEK_SET)
        yield from _iter_matching_lines(descriptor, needle, offset)
    except OSError as error:
        raise Unreadable(f"{os.fspath(path)!r} cannot be read: {error.strerror or error}.") from None
    finally:
        os.close(descriptor)


def find_lines_in_block(block: bytes, needle: bytes, start: int = 0) -> Iterator[bytes]:
    """The lines of a block that hold `needle` after `start`."""
    at = block.find(needle, start)
    while at >= 0:
        end = block.find(b"\n", at) + 1 or len(block)
        yield block[block.rfind(b"\n", 0, at) + 1 : end]
        at = block.find(needle, end)


def read_first_lines(path: str | Path) -> list[bytes]:
    """The first lines of a file, as many as one small read gives; the last may be cut."""
    descriptor = open_transcript(path)
    try:
        return os.read(descriptor, _FIRST_READ_SIZE).splitlines(keepends=True)
    except OSError as error:
        raise Unreadable(f"{os.fspath(path)!r} cannot be read: {error.strerror or error}.") from None
    finally:
        os.close(descriptor)


def _iter_matching_lines(descriptor: int, needle: bytes, offset: int) -> Iterator[MatchingLines]:
    for begins, block, whole, passed in _iter_blocks(descriptor, offset):
        offsets: list[int] = []
        lines: list[bytes] = []
        find, rfind, end = block.find, block.rfind, 0
        at = find(needle, 0, whole)
        while at >= 0:
            start = rfind(b"\n", end, at) + 1 or end
            end = find(b"\n", at) + 1 or whole
            offsets.append(begins + start)
            lines.append(block[start:end])
            at = find(needle, end, whole)
        yield MatchingLines(block, offsets, lines, begins, passed)


def _iter_blocks(descriptor: int, begins: int) -> Iterator[tuple[int, bytes, int, int]]:
    """The file in blocks: where each begins, its bytes, how much of it is whole lines, and what was let go before."""
    rest = b""
    while read := os.read(descriptor, _BLOCK_SIZE):
        block = rest + read if rest else read
        whole = block.rfind(b"\n") + 1
        passed = 0
        if not whole:
            block, passed = _join_long_line(descriptor, block)
            begins += passed
            whole = block.rfind(b"\n") + 1 or len(block)
        yield begins, block, whole, passed
        begins += whole
        rest = block[whole:]
    if rest:
        yield begins, rest, len(rest), 0


def _join_long_line(descriptor: int, begun: bytes) -> tuple[bytes, int]:
    """A line that spans blocks, with what follows in the last of them; only its ending if it is too long to decode.

    The number is how many bytes before that were let go of.
    """
    parts = [begun]
    held = len(begun)
    while block := os.read(descriptor, _BLOCK_SIZE):
        held += len(block)
        end = block.find(b"\n")
        if held > MAX_LINE_LENGTH:
            parts.clear()
            if end >= 0:
                return block[end:], held - len(block) + end
        else:
            parts.append(block)
            if end >= 0:
                break
    return b"".join(parts), 0 if parts else held


_COUNTING_BLOCK_SIZE = 256 * 1024


class LineNumbers:
    """The numbers of the lines of one transcript, by where they begin. What was counted once is not counted again."""

    def __init__(self, path: str) -> None:
        self._path = path
        # Where counting has been, and the number of the line there: each look goes on from the nearest before it.
        self._offsets = [0]
        self._numbers = [1]

    def __call__(self, offset: int) -> int:
        """The number of the line that begins at `offset`; 0 where the file cannot be read any more."""
        at = bisect_right(self._offsets, offset) - 1
        known, number = self._offsets[at], self._numbers[at]
        if known == offset:
            return number
        try:
            number += _count_newlines(self._path, known, offset)
        except (Error, OSError):
            return 0
        self._offsets.insert(at + 1, offset)
        self._numbers.insert(at + 1, number)
        return number


def _count_newlines(path: str, start: int, stop: int) -> int:
    descriptor = open_transcript(path)
    try:
        os.lseek(descriptor, start, os.SEEK_SET)
        count = 0
        while start < stop and (block := os.read(descriptor, min(_COUNTING_BLOCK_SIZE, stop - start))):
            count += block.count(b"\n")
            start += len(block)
        return count
    finally:
        os.close(descriptor)


DECODE_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What the fast decoder raises at a line that is not for it."""

DecodeLines = Callable[[list[bytes]], list[Any] | None]
_FIRST_BYTE, _LAST_BYTE = itemgetter(0), itemgetter(-2)
_OPENING, _CLOSING = {ord("{")}, {ord("}")}


def make_lines_decoder(types: Any) -> DecodeLines:
    """A function that decodes a run of lines at once, or says (None) that some line needs a closer look."""
    decode_all = msgspec.json.Decoder[Any](types).decode_lines

    def decode(lines: list[bytes]) -> list[Any] | None:
        # The decoder takes any white space between objects. When every line begins with `{` and ends with `}`, an
        # object that spans lines is impossible (after a nested object's `}` comes `,`, `]` or `}`), and so is a
        # blank line; then equal counts mean that no line holds two.
        try:
            if set(map(_FIRST_BYTE, lines)) != _OPENING or not set(map(_LAST_BYTE, lines[:-1])) <= _CLOSING:
                return None
            found = decode_all(b"".join(lines))
        except (*DECODE_ERRORS, IndexError):
            return None
        return found if len(found) == len(lines) else None

    return decode
