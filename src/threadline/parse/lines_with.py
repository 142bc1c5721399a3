"""The lines of a file that hold certain bytes, without making lines of the others."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from threadline.errors import Unreadable
from threadline.parse.chunks import LONGEST, open_transcript

_BLOCK = 256 * 1024
_FIRST = 16 * 1024


class Lines(Struct, gc=False):
    """A block of whole lines, and those of its lines that were looked for, each with where it begins in the file.

    `begins` is where the block does; `passed` is how many bytes of a line too long to be decoded stood before it.
    """

    block: bytes
    offsets: list[int]
    lines: list[bytes]
    begins: int = 0
    passed: int = 0


def lines_with(path: str | Path, needle: bytes, *, offset: int = 0) -> Iterator[Lines]:
    """The file block by block, with the lines that hold `needle`; a line too long to be decoded is passed over.

    `offset` is where to start, which must be where a line begins.
    """
    descriptor = open_transcript(path)
    try:
        os.lseek(descriptor, offset, os.SEEK_SET)
        yield from _lines_with(descriptor, needle, offset)
    except OSError as error:
        raise Unreadable(f"{os.fspath(path)!r} cannot be read: {error.strerror or error}.") from None
    finally:
        os.close(descriptor)


def lines_of(block: bytes, needle: bytes, start: int = 0) -> Iterator[bytes]:
    """The lines of a block that hold `needle` after `start`."""
    at = block.find(needle, start)
    while at >= 0:
        end = block.find(b"\n", at) + 1 or len(block)
        yield block[block.rfind(b"\n", 0, at) + 1 : end]
        at = block.find(needle, end)


def first_lines(path: str | Path) -> list[bytes]:
    """The first lines of a file, as many as one small read gives; the last may be cut."""
    descriptor = open_transcript(path)
    try:
        return os.read(descriptor, _FIRST).splitlines(keepends=True)
    except OSError as error:
        raise Unreadable(f"{os.fspath(path)!r} cannot be read: {error.strerror or error}.") from None
    finally:
        os.close(descriptor)


def _lines_with(descriptor: int, needle: bytes, offset: int) -> Iterator[Lines]:
    for begins, block, whole, passed in _blocks(descriptor, offset):
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
        yield Lines(block, offsets, lines, begins, passed)


def _blocks(descriptor: int, begins: int) -> Iterator[tuple[int, bytes, int, int]]:
    """The file in blocks: where each begins, its bytes, how much of it is whole lines, and what was let go before."""
    rest = b""
    while read := os.read(descriptor, _BLOCK):
        block = rest + read if rest else read
        whole = block.rfind(b"\n") + 1
        passed = 0
        if not whole:
            block, passed = _long_line(descriptor, block)
            begins += passed
            whole = block.rfind(b"\n") + 1 or len(block)
        yield begins, block, whole, passed
        begins += whole
        rest = block[whole:]
    if rest:
        yield begins, rest, len(rest), 0


def _long_line(descriptor: int, begun: bytes) -> tuple[bytes, int]:
    """A line that spans blocks, with what follows in the last of them; only its ending if it is too long to decode.

    The number is how many bytes before that were let go of.
    """
    parts = [begun]
    held = len(begun)
    while block := os.read(descriptor, _BLOCK):
        held += len(block)
        end = block.find(b"\n")
        if held > LONGEST:
            parts.clear()
            if end >= 0:
                return block[end:], held - len(block) + end
        else:
            parts.append(block)
            if end >= 0:
                break
    return b"".join(parts), 0 if parts else held
