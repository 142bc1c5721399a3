"""Which line begins at an offset: counted when someone asks, not for every line of every file."""

from __future__ import annotations

import os
from bisect import bisect_right

from threadline.errors import Error
from threadline.parse.chunks import open_transcript

_BLOCK = 256 * 1024


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
            number += _newlines(self._path, known, offset)
        except (Error, OSError):
            return 0
        self._offsets.insert(at + 1, offset)
        self._numbers.insert(at + 1, number)
        return number


def _newlines(path: str, start: int, stop: int) -> int:
    descriptor = open_transcript(path)
    try:
        os.lseek(descriptor, start, os.SEEK_SET)
        count = 0
        while start < stop and (block := os.read(descriptor, min(_BLOCK, stop - start))):
            count += block.count(b"\n")
            start += len(block)
        return count
    finally:
        os.close(descriptor)
