"""Read each line of a growing file once, when it is complete, through truncation, rewriting and replacement."""

from __future__ import annotations

import os
from array import array
from bisect import bisect_right
from contextlib import suppress

from threadline.errors import Error
from threadline.files import read_at
from threadline.home_files import open_transcript
from threadline.model.entries import Entry
from threadline.parse import entries

_BLOCK = 64 * 1024
# How many bytes before the start are remembered line by line; Claude Code cuts off its last line or two.
_REMEMBERED = 16 * 1024
# How many bytes at the beginning, and before the next line, show that it is still the same file.
_EDGE = 256
_MAX_COMPARED = 1024 * 1024
# Beyond this many remembered lines, the older half is forgotten.
_MAX_LINES = 100_000


class TranscriptTail:
    """Returns each line of a growing file once, when its newline has been written.

    Between two reads a file may be cut, rewritten from its beginning, or replaced by another. So the end and the hash
    of every line that was returned are remembered. Lines that still agree are old, and the lines after them are new.
    Line 0 of the memory is an anchor that represents everything before.

    `is_behind` says that there is more to read at once. `is_waiting` says that the file was cut and may be in the
    middle of a rewrite, so it should be read again at the next poll.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.is_behind = False
        self.is_waiting = False
        self._unread = 0
        self._identity: tuple[int, int] | None = None
        self._head = b""
        self._scanned = 0
        self._torn = b""
        self._cut_to: int | None = None
        self._reset(0, b"")

    def copy(self, path: str) -> TranscriptTail:
        """Return the tail of another file that begins like this one."""
        other = TranscriptTail(path)
        other._unread, other._identity, other._head = self._unread, self._identity, self._head
        other._scanned, other._torn, other._cut_to = self._scanned, self._torn, self._cut_to
        other._ends, other._digests = self._ends[:], self._digests[:]
        other._anchor_length, other._at, other._edge, other._number = (
            self._anchor_length,
            self._at,
            self._edge,
            self._number,
        )
        return other

    def skip(self, size: int) -> None:
        """Treat all complete lines in the first `size` bytes as old; if the file is unreadable, when it is readable."""
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
        block = read_at(descriptor, start, end)
        lines = [line + b"\n" for line in block.split(b"\n")[:-1]]
        self._identity = status.st_dev, status.st_ino
        self._head = read_at(descriptor, 0, min(_EDGE, end))
        self._reset(start, b"")
        if start and lines:
            first = lines.pop(0)  # it may begin before `start`; the rest of it is the anchor
            self._reset(start + len(first), first)
        for line in lines:
            self._ends.append(self._ends[-1] + len(line))
            self._digests.append(hash(line))
        self._at = len(self._ends) - 1
        self._edge = block[-_EDGE:]

    def _reset(self, offset: int, before: bytes) -> None:
        """Forget all lines; remember only that `before` precedes `offset`, where a line begins."""
        self._ends = array("q", [offset])
        self._digests = array("q", [hash(before)])
        self._anchor_length = len(before)
        self._at = 0
        self._edge = before[-_EDGE:]
        self._number: int | None = 1 if not offset else None

    def read_new(self, limit: int) -> list[Entry]:
        """Return the entries of complete new lines, about `limit` bytes of them at most.

        Raises:
            Error: the file cannot be read, or is gone.
            OSError: the same.
        """
        if self._unread:
            self._skip_unread()
        descriptor = open_transcript(self.path)
        try:
            return self._read_new(descriptor, limit)
        finally:
            os.close(descriptor)

    def _read_new(self, descriptor: int, limit: int) -> list[Entry]:
        self.is_behind = False
        status = os.fstat(descriptor)
        size = status.st_size
        identity = (status.st_dev, status.st_ino)
        self.is_waiting = not self._find_position(descriptor, size, is_same=self._identity in (None, identity))
        if self.is_waiting:
            return []
        self._identity = identity
        start = self._ends[self._at]
        end = self._find_end(descriptor, start, size)
        if end < 0:
            return []
        if self._number is None:
            self._number = 1 + _count_newlines(descriptor, self._ends[0])
        matcher = _LineMatcher(self._ends, self._digests, self._at)
        for entry in entries(self.path, offset=start, line=self._number + self._at):
            position = matcher.take(entry)
            if position is not None and (position >= end or position - start >= limit):
                break
        # The entries were read by path, so it must still be this file, not cut before this position.
        if not _is_same_file(self.path, identity) or not self._has_last_line(descriptor):
            self.is_behind = True
            self._scanned, self._torn = 0, b""
            return []
        self._remember(matcher, descriptor, end)
        return matcher.new_entries

    def _find_end(self, descriptor: int, start: int, size: int) -> int:
        """Return where the last complete line ends; of a long incomplete line, only new bytes are searched."""
        torn = read_at(descriptor, max(0, self._scanned - len(self._torn)), self._scanned)
        searched = self._scanned if self._scanned <= size and torn == self._torn else 0
        end = _after_last_newline(descriptor, max(start, searched), size)
        self._scanned = size
        self._torn = read_at(descriptor, max(0, size - _EDGE), size)
        return end

    def _remember(self, matcher: _LineMatcher, descriptor: int, end: int) -> None:
        """Remember the lines that were read."""
        if matcher.ends:
            del self._ends[matcher.kept + 1 :], self._digests[matcher.kept + 1 :]
            self._ends.extend(matcher.ends)
            self._digests.extend(matcher.digests)
        self._at = matcher.kept + len(matcher.ends)
        position = self._ends[self._at]
        self._edge = read_at(descriptor, max(0, position - _EDGE), position)
        if len(self._head) < _EDGE:
            self._head = read_at(descriptor, 0, min(_EDGE, position))
        if position < end:
            self.is_behind = True
            self._scanned, self._torn = 0, b""
        self._forget_old_lines()

    def _forget_old_lines(self) -> None:
        if len(self._ends) > _MAX_LINES and self._at == len(self._ends) - 1 and self._number is not None:
            half = len(self._ends) // 2
            self._anchor_length = self._ends[half] - self._ends[half - 1]
            del self._ends[:half], self._digests[:half]
            self._at -= half
            self._number += half

    def _find_position(self, descriptor: int, size: int, *, is_same: bool) -> bool:
        """Go to the last remembered line that is still in the file; False if that must wait for another read."""
        if is_same and self._ends[self._at] <= size and self._has_last_line(descriptor):
            self._cut_to = None
            return True
        self._scanned, self._torn = 0, b""
        at = min(self._at, bisect_right(self._ends, size) - 1)
        for line in (at, 0) if is_same else (0,):
            if line >= 0 and self._has_line(descriptor, line, size):
                self._go_to(descriptor, line)
                return True
        return self._start_over(descriptor, size)

    def _start_over(self, descriptor: int, size: int) -> bool:
        """Start a new memory, because not even the anchor is in the file.

        A file that has the same beginning but is shorter was cut, or is being rewritten. The next read will show.
        """
        # After a cut, new lines may follow where it was cut.
        length = min(len(self._head), size if self._cut_to is None else min(size, self._cut_to))
        has_same_head = read_at(descriptor, 0, length) == self._head[:length]
        if has_same_head and size < self._ends[0] and self._cut_to is None:
            self._cut_to = max(0, _after_last_newline(descriptor, 0, size))
            return False
        start = self._cut_to if has_same_head and self._cut_to is not None and self._cut_to <= size else 0
        self._head = read_at(descriptor, 0, min(_EDGE, start))
        self._reset(start, read_at(descriptor, max(0, start - _EDGE), start))
        self._cut_to = None
        return True

    def _go_to(self, descriptor: int, line: int) -> None:
        self._at = line
        self._cut_to = None
        position = self._ends[line]
        self._edge = read_at(descriptor, max(0, position - _EDGE), position)

    def _has_last_line(self, descriptor: int) -> bool:
        """Whether the last line that was read is unchanged; of a very long one, only its end is compared."""
        position = self._ends[self._at]
        if self._length(self._at) <= _MAX_COMPARED:
            return self._has_line(descriptor, self._at, position)
        return read_at(descriptor, position - len(self._edge), position) == self._edge

    def _length(self, line: int) -> int:
        return self._ends[line] - self._ends[line - 1] if line else self._anchor_length

    def _has_line(self, descriptor: int, line: int, size: int) -> bool:
        """Whether a remembered line is still at its place."""
        end = self._ends[line]
        return end <= size and hash(read_at(descriptor, end - self._length(line), end)) == self._digests[line]


class _LineMatcher:
    """Compares lines with the remembered ones as they are read: from the first that differs, all are new."""

    def __init__(self, ends: array[int], digests: array[int], at: int) -> None:
        self._known_ends = ends
        self._known_digests = digests
        self._line: list[Entry] = []
        self._position = ends[at]
        self.kept = at
        self.ends: list[int] = []
        self.digests: list[int] = []
        self.new_entries: list[Entry] = []

    def take(self, entry: Entry) -> int | None:
        """Take the next entry. If a line ends with it, return where; a damaged line may have several entries."""
        raw = entry.line.raw
        self._position += len(raw)
        self._line.append(entry)
        if raw[-1:] != b"\n":
            return None
        digest = hash(raw) if len(self._line) == 1 else hash(b"".join(part.line.raw for part in self._line))
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
            self.new_entries += self._line
        self._line = []
        return self._position


def _after_last_newline(descriptor: int, low: int, high: int) -> int:
    """Search backwards for the last newline and return the offset after it; -1 if there is none from `low` on."""
    while high > low:
        start = max(low, high - _BLOCK)
        newline = read_at(descriptor, start, high).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        high = start
    return -1


def _count_newlines(descriptor: int, stop: int) -> int:
    return sum(read_at(descriptor, start, min(stop, start + _BLOCK)).count(b"\n") for start in range(0, stop, _BLOCK))


def _is_same_file(path: str, identity: tuple[int, int]) -> bool:
    try:
        status = os.stat(path)  # noqa: PTH116 - paths are text
    except OSError:
        return False
    return (status.st_dev, status.st_ino) == identity
