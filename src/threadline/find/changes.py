"""What changed in the transcripts since they were last read, with no file opened that is as it was.

A file is as it was if its device, inode, size and time are the same. Times are compared for equality only, never with a
clock, so that times in the future or going back are times like any other. Otherwise its bytes decide: `find/seen.py`
says which of them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

from threadline.find.listing import Listing
from threadline.find.moved import Gone
from threadline.find.seen import goes_on, renewed
from threadline.model.change import Change, ChangeKind, Changes, Known, Looked
from threadline.model.found import Home
from threadline.model.place import Place
from threadline.model.problem import Problem, ProblemKind

# The coarsest time stamps there are (FAT's) come every two seconds.
_GRAIN_NS = 2_000_000_000
_ORDER = {kind: number for number, kind in enumerate(ChangeKind)}


Status = tuple[int, int, int, int, int]
"""By what a transcript is as it was: `mtime_ns`, size, inode, device, and 1 where it is racy, which proves nothing."""


class Memory(Protocol):
    """What is known of transcripts: little of all of them, and all of few."""

    def statuses(self) -> dict[str, Status]:
        """The status of every transcript that is known, by its path."""

    def known(self, path: str) -> Known:
        """All that is known of one of them."""


def changes(known: Iterable[Known] | Memory, homes: Iterable[Home], *, now_ns: int | None = None) -> Changes:
    """Tell what became of every known transcript of these homes, and which are new.

    Whoever reads as `Change.read_from` says, and stores what `seen` makes of it and what is `renewed`, holds exactly
    the lines that the transcripts hold.
    """
    memory = _Listed(known) if isinstance(known, Iterable) else known
    comparing = _Comparing(memory, time.time_ns() if now_ns is None else now_ns)
    for home in homes:
        comparing.look_through(Listing(home))
    return comparing.result()


class _Listed:
    """A memory of what was listed."""

    def __init__(self, known: Iterable[Known]) -> None:
        self._known = {one.path: one for one in known}

    def statuses(self) -> dict[str, Status]:
        return {
            path: (one.mtime_ns, one.size, one.inode, one.device, int(one.racy)) for path, one in self._known.items()
        }

    def known(self, path: str) -> Known:
        return self._known[path]


class _File(NamedTuple):
    """A transcript that is not simply as it was."""

    listing: Listing
    path: str
    status: os.stat_result
    was: Known | None


class _Comparing:
    """One comparison, while it lasts: `unmet` shrinks to what was not met again, which then is `gone`."""

    def __init__(self, memory: Memory, now_ns: int) -> None:
        self.memory = memory
        self.unmet = memory.statuses()
        self.gone: dict[str, Known] = {}
        self.now_ns = now_ns
        self.unchanged = 0
        self.met: set[str] = set()
        self.closed: list[str] = []
        self.problems: list[Problem] = []
        self.suspects: list[_File] = []
        self.changed: list[Change] = []
        self.renewed: list[Known] = []

    def look_through(self, listing: Listing) -> None:
        """Pass over what is as it was; the rest is to be examined."""
        unmet = self.unmet
        met = self.met
        unchanged = 0
        for path, status in listing.stats():
            if path in met:  # two homes may share their projects
                continue
            met.add(path)
            was = unmet.pop(path, None)
            if was == (status.st_mtime_ns, status.st_size, status.st_ino, status.st_dev, 0):
                unchanged += 1
            else:
                known = self.memory.known(path) if was is not None else None
                self.suspects.append(_File(listing, path, status, known))
        self.unchanged += unchanged
        self.problems += listing.problems
        self.closed += listing.closed

    def result(self) -> Changes:
        """Examine what is not as it was, and look for what is gone among what is new."""
        self.gone = {path: self.memory.known(path) for path in self.unmet}
        strangers = [file for file in self.suspects if not self._is_settled(file)]
        for file in self._not_moved(strangers):
            self._read_from_0(file)
        for was in self.gone.values():
            self._missing(was)
        changed = sorted(self.changed, key=_place_in_order)
        return Changes(tuple(changed), tuple(self.renewed), self.unchanged, tuple(self.problems))

    def _is_settled(self, file: _File) -> bool:
        """Whether the file goes on where it was read to, or cannot be read at all."""
        was = file.was
        if was is None:
            return False
        try:
            if not goes_on(file.path, file.status, was):
                return False
        except (FileNotFoundError, NotADirectoryError):
            self.changed.append(Change(ChangeKind.VANISHED, was))
        except OSError as error:
            self._unreadable(was, f"could not be read: {error.strerror or error}")
        else:
            self._goes_on(file, was)
        return True

    def _goes_on(self, file: _File, was: Known) -> None:
        looked = self._looked(file)
        if looked.size > was.read_to:
            now = file.listing.transcript(file.path, file.status)
            self.changed.append(Change(ChangeKind.GROWN, was, now, looked, was.read_to))
        else:
            self.renewed.append(renewed(was, looked))

    def _not_moved(self, strangers: list[_File]) -> Iterator[_File]:
        """Give the files that hold nothing of what is gone; of the others, say whence they moved."""
        gone = Gone(self.gone.values())
        for file in strangers:
            was = gone.found_at(file.path, file.status)
            if was is None:
                yield file
                continue
            del self.gone[was.path]
            if file.was is not None:
                self.changed.append(Change(ChangeKind.VANISHED, file.was))
            now = file.listing.transcript(file.path, file.status)
            self.changed.append(Change(ChangeKind.MOVED, was, now, self._looked(file), was.read_to))

    def _read_from_0(self, file: _File) -> None:
        now = file.listing.transcript(file.path, file.status)
        self.changed.append(Change(_kind(file), file.was, now, self._looked(file)))

    def _missing(self, was: Known) -> None:
        if any(was.path == path or was.path.startswith(path + os.sep) for path in self.closed):
            self.changed.append(Change(ChangeKind.UNREADABLE, was))
        else:
            self.changed.append(Change(ChangeKind.VANISHED, was))

    def _unreadable(self, was: Known, message: str) -> None:
        self.changed.append(Change(ChangeKind.UNREADABLE, was))
        self.problems.append(Problem(ProblemKind.UNREADABLE, Place(was.path), message))

    def _looked(self, file: _File) -> Looked:
        status = file.status
        is_racy = status.st_mtime_ns > self.now_ns - _GRAIN_NS
        return Looked(file.path, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, is_racy)


def _kind(file: _File) -> ChangeKind:
    was, status = file.was, file.status
    if was is None:
        return ChangeKind.NEW
    if (status.st_dev, status.st_ino) != (was.device, was.inode):
        return ChangeKind.REPLACED
    return ChangeKind.TRUNCATED if status.st_size < was.read_to else ChangeKind.REWRITTEN


def _place_in_order(change: Change) -> tuple[int, str]:
    path = change.looked.path if change.looked else change.known.path if change.known else ""
    return _ORDER[change.kind], path
