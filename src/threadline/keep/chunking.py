"""Cut files into pieces at line ends chosen by content, and name each piece by its SHA-256.

Where a piece ends depends only on its own bytes, so files that start alike are cut alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from zlib import crc32

from msgspec import Struct

MIN_PIECE_SIZE, MAX_PIECE_SIZE = 32 * 1024, 1024 * 1024
"""A piece has no fewer bytes than this unless its file ends, and no more than that whatever it holds."""
_BOUNDARY_ODDS = 8
"""One line in so many ends a piece: where it is long enough, the next such line is its last."""


class Piece(Struct, frozen=True, gc=False):
    """Some bytes of a file, by their SHA-256, in hexadecimal."""

    hash: str
    data: bytes

    @classmethod
    def of(cls, data: bytes) -> Piece:
        """The piece that these bytes make."""
        return cls(sha256(data).hexdigest(), data)


class Chunker:
    """Cuts a stream of bytes into pieces, however the stream is handed over.

    Where a piece ends depends only on its own bytes, so that files that begin alike are cut alike.

    >>> cut = Cutting()
    >>> [len(one) for one in (*cut.more(b"a line" + bytes([10])), *cut.rest())]
    [7]
    """

    def __init__(self) -> None:
        self._held = b""
        self._seen = 0
        """How far the held bytes were looked through without finding an end."""

    def more(self, data: bytes) -> Iterator[bytes]:
        """The pieces that are whole once these bytes have come."""
        held = self._held + data if self._held else data
        begin = 0
        while (end := self._end(held, begin)) is not None:
            yield held[begin:end]
            begin = end
            self._seen = 0
        self._held = held[begin:]

    def rest(self) -> Iterator[bytes]:
        """What is left when nothing more comes."""
        if self._held:
            yield self._held
        self._held = b""
        self._seen = 0

    def _end(self, held: bytes, begin: int) -> int | None:
        """Where the piece that begins there ends: after the first line past `LEAST` that says so, or at `MOST`."""
        start, stop = begin + max(self._seen, MIN_PIECE_SIZE), begin + MAX_PIECE_SIZE
        # The line that a look begins in counts from there on, whatever stands before it.
        while (newline := held.find(b"\n", start, stop)) >= 0:
            if crc32(held[start:newline]) % _BOUNDARY_ODDS == 0:
                return newline + 1
            start = newline + 1
        self._seen = start - begin
        return stop if len(held) >= stop else None
