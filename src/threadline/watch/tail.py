"""Read each line of a growing file once, when its end is written, through truncation, rewriting and replacement."""

from __future__ import annotations

import os
from array import array
from bisect import bisect_right
from contextlib import suppress

from threadline.errors import Error
from threadline.model.entries import Entry
from threadline.parse import entries, open_transcript

_BLOCK = 64 * 1024
# Of what was there before, so many bytes are remembered line by line: what is cut off again is the last line or two.
_REMEMBERED = 16 * 1024
# Bytes before the next line, and at the file's beginning, that tell whether it is still the file that was read.
_EDGE = 256
_MOST_COMPARED = 1024 * 1024
# Lines that are remembered at most; beyond that, the older half is forgotten.
_MOST_LINES = 100_000


class TranscriptTail:
    """Gives each line of a growing file once, when its end has been written.

    A file may be cut, written again from its beginning, or replaced by another, and all of that between two looks. So
    every line that was given is remembered by its end and a hash: what still agrees with those is known, and what comes
    after it is new. Line 0 of the memory is an anchor: it stands for all that was there before.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.is_behind = False
        self._unread = 0
        self._identity: tuple[int, int] | None = None
        self._head = b""
        self._scanned = 0
        self._torn = b""
        self._cut_to: int | None = None
        self._begin_at(0, b"")

    def copy(self, path: str) -> TranscriptTail:
        """Another file that begins with what is known of this one."""
        other = TranscriptTail(path)
        other.__dict__.update(self.__dict__)
        other.path = path
        other._ends, other._digests = self._ends[:], self._digests[:]
        return other

    def skip(self, size: int) -> None:
        """Take all whole lines among the first `size` bytes as known; where it may not be read, as soon as it may."""
        self._unread = size
        with suppress(Error, OSError):
            self._skip_unread()

    def _skip_unread(self) -> None:
        descriptor = open_transcript(self.path)
        try:
            self._skip(descriptor, self._unread)
        finally:
            os.close(descriptor)
        self._unread = 0

    def _skip(self, descriptor: int, size: int) -> None:
        status = os.fstat(descriptor)
        end = max(0, _after_last_newline(descriptor, 0, min(size, status.st_size)))
        start = max(0, end - _REMEMBERED)
        block = _read(descriptor, start, end)
        lines = [line + b"\n" for line in block.split(b"\n")[:-1]]
        self._identity = status.st_dev, status.st_ino
        self._head = _read(descriptor, 0, min(_EDGE, end))
        self._begin_at(start, b"")
        if start and lines:
            first = lines.pop(0)  # it may begin before: what is left of it is the anchor
            self._begin_at(start + len(first), first)
        for line in lines:
            self._ends.append(self._ends[-1] + len(line))
            self._digests.append(hash(line))
        self._at = len(self._ends) - 1
        self._edge = block[-_EDGE:]

    def _begin_at(self, offset: int, before: bytes) -> None:
        """Know nothing but that `before` stands before `offset`, where a line begins."""
        self._ends = array("q", [offset])
        self._digests = array("q", [hash(before)])
        self._anchor_length = len(before)
        self._at = 0
        self._edge = before[-_EDGE:]
        self._number: int | None = 1 if not offset else None

    def news(self, most: int) -> list[Entry]:
        """The entries of whole lines that are not known yet; `is_behind` says whether there are more than `most` bytes.

        Raises:
            Error: the file cannot be read, or is gone.
            OSError: the same.
        """
        if self._unread:
            self._skip_unread()
        descriptor = open_transcript(self.path)
        try:
            return self._news(descriptor, most)
        finally:
            os.close(descriptor)

    def _news(self, descriptor: int, most: int) -> list[Entry]:
        self.is_behind = False
        status = os.fstat(descriptor)
        size = status.st_size
        identity = (status.st_dev, status.st_ino)
        if not self._agrees(descriptor, size, is_same=self._identity in (None, identity)):
            return []
        self._identity = identity
        start = self._ends[self._at]
        end = self._end_of_lines(descriptor, start, size)
        if end < 0:
            return []
        if self._number is None:
            self._number = 1 + _newlines(descriptor, self._ends[0])
        reading = _LineMatcher(self._ends, self._digests, self._at)
        for entry in entries(self.path, offset=start, line=self._number + self._at):
            position = reading.take(entry)
            if position is not None and (position >= end or position - start >= most):
                break
        # Read by its name: it must still have been this file, and cut at no place before.
        if not _is_same_file(self.path, identity) or not self._edge_is_there(descriptor):
            self.is_behind = True
            self._scanned, self._torn = 0, b""
            return []
        return self._learnt(reading, descriptor, end)

    def _end_of_lines(self, descriptor: int, start: int, size: int) -> int:
        """Where the last whole line ends; of a long one that is being written, only what is new is searched."""
        torn = _read(descriptor, max(0, self._scanned - len(self._torn)), self._scanned)
        searched = self._scanned if self._scanned <= size and torn == self._torn else 0
        end = _after_last_newline(descriptor, max(start, searched), size)
        self._scanned = size
        self._torn = _read(descriptor, max(0, size - _EDGE), size)
        return end

    def _learnt(self, reading: _LineMatcher, descriptor: int, end: int) -> list[Entry]:
        """What was read is known from now on; give what was not."""
        if reading.ends:
            del self._ends[reading.kept + 1 :], self._digests[reading.kept + 1 :]
            self._ends.extend(reading.ends)
            self._digests.extend(reading.digests)
        self._at = reading.kept + len(reading.ends)
        there = self._ends[self._at]
        self._edge = _read(descriptor, max(0, there - _EDGE), there)
        if len(self._head) < _EDGE:
            self._head = _read(descriptor, 0, min(_EDGE, there))
        if there < end:
            self.is_behind = True
            self._scanned, self._torn = 0, b""
        self._forget()
        return reading.found

    def _forget(self) -> None:
        if len(self._ends) > _MOST_LINES and self._at == len(self._ends) - 1 and self._number is not None:
            half = len(self._ends) // 2
            self._anchor_length = self._ends[half] - self._ends[half - 1]
            del self._ends[:half], self._digests[:half]
            self._at -= half
            self._number += half

    def _agrees(self, descriptor: int, size: int, *, is_same: bool) -> bool:
        """Find the last known line that is still there; False where that has to wait for another look."""
        if is_same and self._ends[self._at] <= size and self._edge_is_there(descriptor):
            self._cut_to = None
            return True
        self._scanned, self._torn = 0, b""
        at = min(self._at, bisect_right(self._ends, size) - 1)
        for known in (at, 0) if is_same else (0,):
            if known >= 0 and self._is_there(descriptor, known, size):
                self._go_back(descriptor, known)
                return True
        return self._begin_anew(descriptor, size)

    def _begin_anew(self, descriptor: int, size: int) -> bool:
        """What was there at first is not what is there now.

        One that begins as it did and is shorter was cut, or is being written again: the next look will tell.
        """
        begins_so = _read(descriptor, 0, min(len(self._head), size)) == self._head[:size]
        if begins_so and size < self._ends[0] and self._cut_to is None:
            self._cut_to = max(0, _after_last_newline(descriptor, 0, size))
            return False
        start = self._cut_to if begins_so and self._cut_to is not None and self._cut_to <= size else 0
        self._head = _read(descriptor, 0, min(_EDGE, start))
        self._begin_at(start, _read(descriptor, max(0, start - _EDGE), start))
        self._cut_to = None
        return True

    def _go_back(self, descriptor: int, at: int) -> None:
        self._at = at
        self._cut_to = None
        there = self._ends[at]
        self._edge = _read(descriptor, max(0, there - _EDGE), there)

    def _edge_is_there(self, descriptor: int) -> bool:
        """Whether the last line that was read is what it was; of a very long one, its end must do."""
        there = self._ends[self._at]
        if self._length(self._at) <= _MOST_COMPARED:
            return self._is_there(descriptor, self._at, there)
        return _read(descriptor, there - len(self._edge), there) == self._edge

    def _length(self, at: int) -> int:
        return self._ends[at] - self._ends[at - 1] if at else self._anchor_length

    def _is_there(self, descriptor: int, at: int, size: int) -> bool:
        """Whether a known line stands where it stood."""
        end = self._ends[at]
        return end <= size and hash(_read(descriptor, end - self._length(at), end)) == self._digests[at]


class _LineMatcher:
    """Lines as they are read, beside those that are known: from the first that differs, all are new."""

    def __init__(self, ends: array[int], digests: array[int], at: int) -> None:
        self._known_ends = ends
        self._known_digests = digests
        self._line: list[Entry] = []
        self._position = ends[at]
        self.kept = at
        self.ends: list[int] = []
        self.digests: list[int] = []
        self.found: list[Entry] = []

    def take(self, entry: Entry) -> int | None:
        """Take the next entry; where a line ends with it, that line's end. A damaged line may have several."""
        raw = entry.line.raw
        self._position += len(raw)
        self._line.append(entry)
        if raw[-1:] != b"\n":
            return None
        digest = hash(raw) if len(self._line) == 1 else hash(b"".join(one.line.raw for one in self._line))
        following = self.kept + 1
        if (
            not self.ends
            and following < len(self._known_ends)
            and self._known_ends[following] == self._position
            and self._known_digests[following] == digest
        ):
            self.kept = following
        else:
            self.ends.append(self._position)
            self.digests.append(digest)
            self.found += self._line
        self._line = []
        return self._position


def _after_last_newline(descriptor: int, low: int, high: int) -> int:
    """Where the bytes after the last newline begin, looked for backwards; -1 where there is none from `low` on."""
    while high > low:
        start = max(low, high - _BLOCK)
        found = _read(descriptor, start, high).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        high = start
    return -1


def _newlines(descriptor: int, stop: int) -> int:
    return sum(_read(descriptor, start, min(stop, start + _BLOCK)).count(b"\n") for start in range(0, stop, _BLOCK))


def _read(descriptor: int, start: int, stop: int) -> bytes:
    os.lseek(descriptor, start, os.SEEK_SET)
    data = os.read(descriptor, stop - start)
    while len(data) < stop - start and (more := os.read(descriptor, stop - start - len(data))):
        data += more
    return data


def _is_same_file(path: str, identity: tuple[int, int]) -> bool:
    try:
        status = os.stat(path)  # noqa: PTH116 - a path is text here
    except OSError:
        return False
    return (status.st_dev, status.st_ino) == identity
