"""Read a transcript's bytes as lines, with a bounded amount of memory.

`read_chunks` yields runs of whole lines that tile the file. `find_lines` yields only the lines that contain certain
bytes, without splitting the others. `heads` decodes only the fields of entries that most questions need, and
`named_session` the session that a transcript names. `LineNumbers` converts offsets to line numbers on demand: counting
lines takes as long as finding the usage in them.
"""

from __future__ import annotations

import io
import os
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator
from itertools import count, islice, repeat
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import force_setattr

from threadline.errors import Error, Unreadable
from threadline.files import read_at
from threadline.home_files import open_transcript
from threadline.json_values import DECODE_ERRORS
from threadline.model.places import SessionId
from threadline.model.usage import Head

# Small enough to stay in the processor's cache while it is split and decoded, which saves a third of the time.
CHUNK_SIZE = 128 * 1024
# A line longer than this is found first and then read in one piece, so that it is in memory once, not twice.
_LONG_LINE = 4 * 1024 * 1024
MAX_LINE_LENGTH = 128 * 1024 * 1024
"""The longest line that is decoded. A longer one (usually a run of NUL bytes) is returned in pieces."""
_PIECE_SIZE = 8 * 1024 * 1024


class Chunk(Struct, frozen=True, gc=False):
    """A run of lines of a transcript, or one piece of a line too long to be decoded.

    `line_length` is that line's length on its first piece, and 0 on the others.
    """

    lines: list[bytes]
    offset: int
    is_piece: bool = False
    line_length: int = 0


def read_chunks(path: str | Path, *, offset: int = 0) -> Iterator[Chunk]:
    """Yield the file from `offset`, where a line starts, as runs of complete lines."""
    descriptor = open_transcript(path)
    try:
        yield from _iter_chunks(descriptor, offset)
    except OSError as error:
        raise Unreadable(f"{os.fspath(path)!r} cannot be read: {error.strerror or error}.") from None
    finally:
        os.close(descriptor)


def _iter_chunks(descriptor: int, at: int) -> Iterator[Chunk]:
    rest = b""
    while block := _read_once(descriptor, CHUNK_SIZE, at + len(rest)):
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


def _find_line_length(descriptor: int, start: int, length: int) -> int:
    """Return the length of the line at `start`, with its newline; the first `length` bytes contain none."""
    while block := _read_once(descriptor, CHUNK_SIZE, start + length):
        end = block.find(b"\n") + 1
        if end:
            return length + end
        length += len(block)
    return length


def _read_long_line(descriptor: int, start: int, size: int) -> Iterator[Chunk]:
    if size <= MAX_LINE_LENGTH:
        yield Chunk([read_at(descriptor, start, start + size)], start)
        return
    done = 0
    while done < size and (data := read_at(descriptor, start + done, start + min(done + _PIECE_SIZE, size))):
        yield Chunk([data], start + done, is_piece=True, line_length=size if not done else 0)
        done += len(data)


def _read_once(descriptor: int, size: int, at: int) -> bytes:
    """Like `os.pread`, which not every system has: may return fewer bytes."""
    os.lseek(descriptor, at, os.SEEK_SET)
    return os.read(descriptor, size)


_BLOCK_SIZE = 256 * 1024
_FIRST_READ_SIZE = 16 * 1024


class MatchingLines(Struct, gc=False):
    """A block of lines, and those that match, with their offsets in the file.

    The block may end with a part of a line, which the next block begins with; it is never among those that match.
    `start` is the offset of the block. `skipped_bytes` is the size of the part of a line before it that was skipped,
    because the line is too long to be decoded.
    """

    block: bytes
    offsets: list[int]
    lines: list[bytes]
    start: int = 0
    skipped_bytes: int = 0


def find_lines(path: str | Path, needle: bytes, *, offset: int = 0) -> Iterator[MatchingLines]:
    """Yield the file block by block, with the lines that contain `needle`; lines too long to be decoded are skipped.

    `offset` is where to start. It must be the beginning of a line.
    """
    descriptor = open_transcript(path)
    try:
        yield from _iter_matching_lines(descriptor, needle, offset)
    except OSError as error:
        raise Unreadable(f"{os.fspath(path)!r} cannot be read: {error.strerror or error}.") from None
    finally:
        os.close(descriptor)


def find_lines_in_block(block: bytes, needle: bytes, start: int = 0) -> Iterator[bytes]:
    """Yield the lines of a block that contain `needle` after `start`."""
    at = block.find(needle, start)
    while at >= 0:
        end = block.find(b"\n", at) + 1 or len(block)
        yield block[block.rfind(b"\n", 0, at) + 1 : end]
        at = block.find(needle, end)


def read_first_lines(path: str | Path) -> list[bytes]:
    """Return the first lines of a file, as many as one small read returns; the last may be cut."""
    descriptor = open_transcript(path)
    try:
        return os.read(descriptor, _FIRST_READ_SIZE).splitlines(keepends=True)
    except OSError as error:
        raise Unreadable(f"{os.fspath(path)!r} cannot be read: {error.strerror or error}.") from None
    finally:
        os.close(descriptor)


def _iter_matching_lines(descriptor: int, needle: bytes, offset: int) -> Iterator[MatchingLines]:
    for block_offset, block, stop, skipped in _iter_blocks(descriptor, offset):
        offsets: list[int] = []
        lines: list[bytes] = []
        find, rfind, end = block.find, block.rfind, 0
        at = find(needle, 0, stop)
        while at >= 0:
            start = rfind(b"\n", end, at) + 1 or end
            end = find(b"\n", at) + 1 or stop
            offsets.append(block_offset + start)
            lines.append(block[start:end])
            at = find(needle, end, stop)
        yield MatchingLines(block, offsets, lines, block_offset, skipped)


def _iter_blocks(descriptor: int, offset: int) -> Iterator[tuple[int, bytes, int, int]]:
    """Yield the file in blocks: offset, bytes, where the last complete line ends, and bytes skipped before it."""
    # The beginning of a line at the end of a block is read again with the next block: joining blocks takes longer.
    while block := _read_once(descriptor, _BLOCK_SIZE, offset):
        stop = block.rfind(b"\n") + 1
        skipped = 0
        if not stop:
            block, skipped = _join_long_line(descriptor, block)
            offset += skipped
            stop = block.rfind(b"\n") + 1 or len(block)
        yield offset, block, stop, skipped
        offset += stop


def _join_long_line(descriptor: int, first: bytes) -> tuple[bytes, int]:
    """Return a line that spans blocks, with the rest of the last block. If it is too long to decode, only its newline.

    The number is how many bytes were skipped.
    """
    parts = [first]
    length = len(first)
    while block := os.read(descriptor, _BLOCK_SIZE):
        length += len(block)
        end = block.find(b"\n")
        if length > MAX_LINE_LENGTH:
            parts.clear()
            if end >= 0:
                return block[end:], length - len(block) + end
        else:
            parts.append(block)
            if end >= 0:
                break
    return b"".join(parts), 0 if parts else length


_COUNTING_BLOCK_SIZE = 256 * 1024


class LineNumbers:
    """Line numbers of one transcript, by offset. No part of the file is counted twice."""

    def __init__(self, path: str) -> None:
        self._path = path
        # Offsets that were counted, and their line numbers: each lookup continues from the nearest one before it.
        self._offsets = [0]
        self._numbers = [1]

    def __call__(self, offset: int) -> int:
        """Return the number of the line that begins at `offset`; 0 if the file can no longer be read."""
        at = bisect_right(self._offsets, offset) - 1
        nearest, number = self._offsets[at], self._numbers[at]
        if nearest == offset:
            return number
        try:
            number += _count_newlines(self._path, nearest, offset)
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


DecodeLines = Callable[[list[bytes]], list[Any] | None]
_FIRST_BYTE, _LAST_BYTE = itemgetter(0), itemgetter(-2)
_OPENING, _CLOSING = {ord("{")}, {ord("}")}


def make_lines_decoder(types: Any) -> DecodeLines:
    """Return a function that decodes a run of lines at once, or returns None if they must be read one by one."""
    decode_all = msgspec.json.Decoder[Any](types).decode_lines

    def decode(lines: list[bytes]) -> list[Any] | None:
        # The decoder takes any white space between objects. When every line begins with `{` and ends with `}`, an
        # object that spans lines is impossible (after a nested object's `}` comes `,`, `]` or `}`), and so is a
        # blank line; then equal counts mean that no line contains two.
        try:
            if set(map(_FIRST_BYTE, lines)) != _OPENING or not set(map(_LAST_BYTE, lines[:-1])) <= _CLOSING:
                return None
            values = decode_all(b"".join(lines))
        except (*DECODE_ERRORS, IndexError):
            return None
        return values if len(values) == len(lines) else None

    return decode


FIRST_HEADS = 40
"""A copy begins like its original, so the first heads of a transcript show whether it can be one."""

_decode_head_lines = make_lines_decoder(Head)
_get_kind = attrgetter("kind")


def heads(path: str | Path) -> Iterator[Head]:
    """Yield the head of every entry of a transcript, in file order.

    There are as many heads as `entries` yields entries. A damaged line has a head of kind `damaged`.

    Raises:
        NotFound: the file does not exist.
        Unreadable: the file cannot be read.
    """
    number = 1
    for chunk in read_chunks(path):
        decoded = None if chunk.is_piece else _decode_head_lines(chunk.lines)
        if decoded is None or not all(map(_get_kind, decoded)):
            from threadline.parse.reader import heads_line_by_line  # noqa: PLC0415 - slow to load, for damaged lines only

            yield from heads_line_by_line(str(path), chunk, number)
            number += sum(line.endswith(b"\n") for line in chunk.lines)
        else:
            deque(map(force_setattr, decoded, repeat("line"), count(number)), maxlen=0)
            yield from decoded
            number += len(decoded)


def named_session(path: Path) -> SessionId | None:
    """Return the session that the first entries of a transcript name."""
    try:
        return next((head.session_id for head in islice(heads(path), FIRST_HEADS) if head.session_id), None)
    except Error:
        return None
