"""Cut files into pieces at line ends chosen by content, and name each piece by its SHA-256.

Where a piece ends depends only on its own bytes, so files that start alike are cut alike and share their first pieces.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from zlib import crc32

from msgspec import Struct

MIN_PIECE_SIZE, MAX_PIECE_SIZE = 32 * 1024, 1024 * 1024
"""The size of a piece in bytes; only the last piece of a file may be smaller."""
_BOUNDARY_ODDS = 8
"""Once a piece is long enough, one line in this many ends it."""


class Piece(Struct, frozen=True, gc=False):
    """A part of a file: its bytes, and their SHA-256 in hexadecimal."""

    hash: str
    data: bytes

    @classmethod
    def of(cls, data: bytes) -> Piece:
        """The piece with these bytes."""
        return cls(sha256(data).hexdigest(), data)


class Chunker:
    """Cuts a stream of bytes into pieces. The result does not depend on how the stream is divided into `feed` calls.

    >>> chunker = Chunker()
    >>> [len(piece) for piece in (*chunker.feed(b"a line" + bytes([10])), *chunker.finish())]
    [7]
    """

    def __init__(self) -> None:
        self._buffer = b""
        self._searched = 0
        """How many bytes of the buffer were searched without finding an end."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Add bytes; yield the pieces that are complete."""
        buffer = self._buffer + data if self._buffer else data
        start = 0
        while (end := self._find_end(buffer, start)) is not None:
            yield buffer[start:end]
            start = end
            self._searched = 0
        self._buffer = buffer[start:]

    def finish(self) -> Iterator[bytes]:
        """Yield what is left at the end of the stream."""
        if self._buffer:
            yield self._buffer
        self._buffer = b""
        self._searched = 0

    def _find_end(self, buffer: bytes, piece_start: int) -> int | None:
        """Where a piece ends: after the first boundary line past the minimum size, or at the maximum size."""
        start, stop = piece_start + max(self._searched, MIN_PIECE_SIZE), piece_start + MAX_PIECE_SIZE
        # The first line is hashed from where the search starts, whatever is before that on the line.
        while (newline := buffer.find(b"\n", start, stop)) >= 0:
            if crc32(buffer[start:newline]) % _BOUNDARY_ODDS == 0:
                return newline + 1
            start = newline + 1
        self._searched = start - piece_start
        return stop if len(buffer) >= stop else None
