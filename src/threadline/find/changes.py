"""Detect which transcripts changed since they were last read, without opening unchanged files.

A file is unchanged if device, inode, size and mtime are equal. Times are compared for equality only, never with a
clock, so times in the future or going backwards are fine. Otherwise the fingerprint decides. Hashing both ends takes
two short reads and tells an append from a rewrite. A checksum of everything that was read takes a pass over the file
(2 GB/s and more); it is used only where equal ends prove nothing:

=========================================  ========================================================== stat result
compared =========================================  ========================================================== all
equal, but written to just before      both ends same file, other size                      both ends: an append costs
what was appended, not the file same file and size, other mtime            all that was read: something in the middle
may have changed another file                               all that was read: tools that edit in place write another
file =========================================  ==========================================================

Not detected: bytes changed in the middle of a file by something that keeps the inode, both ends and the mtime, or
that appends lines at the same time. No known program does this: editors write another file, and Claude Code changes
the end.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from typing import NamedTuple, Protocol
from zlib import crc32

from msgspec.structs import replace

from threadline.find.walk import TranscriptWalk
from threadline.model.homes import (
    ChangeKind,
    Home,
    TranscriptChange,
    TranscriptChanges,
    TranscriptFingerprint,
    TranscriptStat,
)
from threadline.model.places import Place, Problem, ProblemKind

# The coarsest time stamps there are (FAT's) come every two seconds.
_MTIME_GRANULARITY_NS = 2_000_000_000
_ORDER = {kind: number for number, kind in enumerate(ChangeKind)}


StatKey = tuple[int, int, int, int, int]
"""By what a transcript is as it was: `mtime_ns`, size, inode, device, and 1 where it is racy, which proves nothing."""


class KnownTranscripts(Protocol):
    """What is known of transcripts: little of all of them, and all of few."""

    def statuses(self) -> dict[str, StatKey]:
        """The status of every transcript that is known, by its path."""

    def known(self, path: str) -> TranscriptFingerprint:
        """All that is known of one of them."""


def detect_changes(
    known: Iterable[TranscriptFingerprint] | KnownTranscripts, homes: Iterable[Home], *, now_ns: int | None = None
) -> TranscriptChanges:
    """Tell what became of every known transcript of these homes, and which are new.

    Whoever reads as `Change.read_from` says, and stores what `seen` makes of it and what is `renewed`, holds exactly
    the lines that the transcripts hold.
    """
    memory = _KnownList(known) if isinstance(known, Iterable) else known
    comparing = _Comparison(memory, time.time_ns() if now_ns is None else now_ns)
    for home in homes:
        comparing.compare_home(TranscriptWalk(home))
    return comparing.result()


class _KnownList:
    """A memory of what was listed."""

    def __init__(self, known: Iterable[TranscriptFingerprint]) -> None:
        self._known = {fingerprint.path: fingerprint for fingerprint in known}

    def statuses(self) -> dict[str, StatKey]:
        return {
            path: (one.mtime_ns, one.size, one.inode, one.device, int(one.racy)) for path, one in self._known.items()
        }

    def known(self, path: str) -> TranscriptFingerprint:
        return self._known[path]


class _ChangedFile(NamedTuple):
    """A transcript that is not simply as it was."""

    listing: TranscriptWalk
    path: str
    status: os.stat_result
    was: TranscriptFingerprint | None


class _Comparison:
    """One comparison, while it lasts: `unmet` shrinks to what was not met again, which then is `gone`."""

    def __init__(self, memory: KnownTranscripts, now_ns: int) -> None:
        self.memory = memory
        self.unmet = memory.statuses()
        self.gone: dict[str, TranscriptFingerprint] = {}
        self.now_ns = now_ns
        self.unchanged = 0
        self.met: set[str] = set()
        self.closed: list[str] = []
        self.problems: list[Problem] = []
        self.suspects: list[_ChangedFile] = []
        self.changed: list[TranscriptChange] = []
        self.renewed: list[TranscriptFingerprint] = []

    def compare_home(self, listing: TranscriptWalk) -> None:
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
                self.suspects.append(_ChangedFile(listing, path, status, known))
        self.unchanged += unchanged
        self.problems += listing.problems
        self.closed += listing.closed

    def result(self) -> TranscriptChanges:
        """Examine what is not as it was, and look for what is gone among what is new."""
        self.gone = {path: self.memory.known(path) for path in self.unmet}
        strangers = [file for file in self.suspects if not self._is_settled(file)]
        for file in self._not_moved(strangers):
            self._read_from_0(file)
        for was in self.gone.values():
            self._missing(was)
        changed = sorted(self.changed, key=_sort_key)
        return TranscriptChanges(tuple(changed), tuple(self.renewed), self.unchanged, tuple(self.problems))

    def _is_settled(self, file: _ChangedFile) -> bool:
        """Whether the file goes on where it was read to, or cannot be read at all."""
        was = file.was
        if was is None:
            return False
        try:
            if not has_known_prefix(file.path, file.status, was):
                return False
        except (FileNotFoundError, NotADirectoryError):
            self.changed.append(TranscriptChange(ChangeKind.VANISHED, was))
        except OSError as error:
            self._unreadable(was, f"could not be read: {error.strerror or error}")
        else:
            self._goes_on(file, was)
        return True

    def _goes_on(self, file: _ChangedFile, was: TranscriptFingerprint) -> None:
        looked = self._looked(file)
        if looked.size > was.read_to:
            now = file.listing.transcript(file.path, file.status)
            self.changed.append(TranscriptChange(ChangeKind.GROWN, was, now, looked, was.read_to))
        else:
            self.renewed.append(with_new_stat(was, looked))

    def _not_moved(self, strangers: list[_ChangedFile]) -> Iterator[_ChangedFile]:
        """Give the files that hold nothing of what is gone; of the others, say whence they moved."""
        gone = MissingTranscripts(self.gone.values())
        for file in strangers:
            was = gone.identify(file.path, file.status)
            if was is None:
                yield file
                continue
            del self.gone[was.path]
            if file.was is not None:
                self.changed.append(TranscriptChange(ChangeKind.VANISHED, file.was))
            now = file.listing.transcript(file.path, file.status)
            self.changed.append(TranscriptChange(ChangeKind.MOVED, was, now, self._looked(file), was.read_to))

    def _read_from_0(self, file: _ChangedFile) -> None:
        now = file.listing.transcript(file.path, file.status)
        self.changed.append(TranscriptChange(_change_kind(file), file.was, now, self._looked(file)))

    def _missing(self, was: TranscriptFingerprint) -> None:
        if any(was.path == path or was.path.startswith(path + os.sep) for path in self.closed):
            self.changed.append(TranscriptChange(ChangeKind.UNREADABLE, was))
        else:
            self.changed.append(TranscriptChange(ChangeKind.VANISHED, was))

    def _unreadable(self, was: TranscriptFingerprint, message: str) -> None:
        self.changed.append(TranscriptChange(ChangeKind.UNREADABLE, was))
        self.problems.append(Problem(ProblemKind.UNREADABLE, Place(was.path), message))

    def _looked(self, file: _ChangedFile) -> TranscriptStat:
        status = file.status
        is_racy = status.st_mtime_ns > self.now_ns - _MTIME_GRANULARITY_NS
        return TranscriptStat(file.path, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, is_racy)


def _change_kind(file: _ChangedFile) -> ChangeKind:
    was, status = file.was, file.status
    if was is None:
        return ChangeKind.NEW
    if (status.st_dev, status.st_ino) != (was.device, was.inode):
        return ChangeKind.REPLACED
    return ChangeKind.TRUNCATED if status.st_size < was.read_to else ChangeKind.REWRITTEN


def _sort_key(change: TranscriptChange) -> tuple[int, str]:
    path = change.looked.path if change.looked else change.known.path if change.known else ""
    return _ORDER[change.kind], path


class MissingTranscripts:
    """What is gone, each to be found again once at most. What had no line cannot be recognised, and need not be."""

    def __init__(self, known: Iterable[TranscriptFingerprint]) -> None:
        self._by_inode: dict[tuple[int, int], TranscriptFingerprint] = {}
        self._by_ends: dict[tuple[int, int, bytes, bytes], list[TranscriptFingerprint]] = {}
        self._read_to: dict[int, set[int]] = {}
        self._found: set[str] = set()
        for fingerprint in known:
            if fingerprint.read_to == 0:
                continue
            if fingerprint.inode:  # a directory of Windows does not tell inodes
                self._by_inode[fingerprint.device, fingerprint.inode] = fingerprint
            self._by_ends.setdefault(
                (fingerprint.size, fingerprint.read_to, fingerprint.head_hash, fingerprint.tail_hash), []
            ).append(fingerprint)
            self._read_to.setdefault(fingerprint.size, set()).add(fingerprint.read_to)

    def identify(self, path: str, status: os.stat_result) -> TranscriptFingerprint | None:
        """What lies there now, of all that is gone."""
        try:
            for fingerprint in self._candidates(path, status):
                # An inode is given to the next file once its own is deleted: it is the bytes that tell.
                if fingerprint.path not in self._found and has_known_prefix(path, status, fingerprint):
                    self._found.add(fingerprint.path)
                    return fingerprint
        except OSError:
            return None  # whoever reads it will tell why
        return None

    def _candidates(self, path: str, status: os.stat_result) -> Iterator[TranscriptFingerprint]:
        same_file = self._by_inode.get((status.st_dev, status.st_ino))
        if same_file is not None:
            yield same_file
        size = status.st_size
        for read_to in self._read_to.get(size, ()):
            alike = self._by_ends.get((size, read_to, *hash_ends(path, read_to)), [])
            while alike and alike[-1].path in self._found:  # a thousand copies are not gone through for each of them
                alike.pop()
            yield from reversed(alike)


END = 4096
_PIECE = 1 << 20
_OPEN_FLAGS = (
    os.O_RDONLY
    # Should the file have become a pipe since it was listed, opening it must not wait for a writer.
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)


def hash_ends(path: str | os.PathLike[str], read_to: int) -> tuple[bytes, bytes]:
    """The hashes of the first and of the last 4 kB before `read_to`; no other byte is read.

    Raises:
        OSError: it cannot be read, or is not a regular file.
    """
    with _open_regular(path) as file:
        head, tail = _ends(file, read_to)
    return _hash(head), _hash(tail)


def make_fingerprint(
    looked: TranscriptStat,
    read_to: int,
    *,
    before: TranscriptFingerprint | None = None,
    last: bytes = b"",
    is_open: bool = False,
    summed: int | None = None,
) -> TranscriptFingerprint:
    """What is to be known of a transcript of which the lines up to `read_to` were just read.

    `before` is what was known if lines were kept: then only the bytes since are summed up. `last` are the last bytes
    that were read, as many as are at hand: if they are not there any more, or what was known before is not, then the
    file was rewritten meanwhile, and it is made known in a way that will not match. `is_open` says that the last line
    that was read has no end. `summed` is the checksum of all that was read, where whoever read it has made it.

    Raises:
        OSError: it cannot be read (any more), or is not a regular file.
    """
    with _open_regular(looked.path) as file:
        head, tail = _ends(file, read_to)
        is_kept = before is None or not before.head_hash or _has_ends(file, before, head)
        start, so_far = (before.read_to, before.checksum) if before is not None else (0, 0)
        checksum = _checksum(file, start, read_to, so_far) if summed is None else summed
    known = TranscriptFingerprint(
        path=looked.path,
        device=looked.device,
        inode=looked.inode,
        size=looked.size,
        mtime_ns=looked.mtime_ns,
        read_to=read_to,
        head_hash=_hash(head),
        tail_hash=_hash(tail),
        checksum=checksum,
        racy=looked.racy,
    )
    is_as_read = is_kept and tail.endswith(last[-END:]) and (read_to == 0 or is_open or tail.endswith(b"\n"))
    return known if is_as_read else replace(known, head_hash=b"", tail_hash=b"", racy=True)


def with_new_stat(known: TranscriptFingerprint, looked: TranscriptStat) -> TranscriptFingerprint:
    """The same lines, in a file that bears another name, number or time."""
    return replace(
        known,
        path=looked.path,
        device=looked.device,
        inode=looked.inode,
        size=looked.size,
        mtime_ns=looked.mtime_ns,
        racy=looked.racy,
    )


def has_known_prefix(path: str, status: os.stat_result, known: TranscriptFingerprint) -> bool:
    """Whether a file that has this status starts with the very lines that are known.

    Raises:
        OSError: it cannot be read, or is not a regular file.
    """
    with _open_regular(path) as file:
        if os.fstat(file).st_size < known.read_to:
            return False
        if not _has_ends(file, known):
            return False
        # Up to twice an end, both ends have seen every byte.
        if known.read_to <= 2 * END or not _needs_full_checksum(status, known):
            return True
        return _checksum(file, 0, known.read_to, 0) == known.checksum


def _needs_full_checksum(status: os.stat_result, known: TranscriptFingerprint) -> bool:
    is_same_file = (status.st_dev, status.st_ino) == (known.device, known.inode)
    return not is_same_file or (status.st_size == known.size and status.st_mtime_ns != known.mtime_ns)


def _has_ends(file: int, known: TranscriptFingerprint, begins: bytes = b"") -> bool:
    """Whether a file has the lines that are known; `begins` are its first bytes where they have been read already."""
    head, tail = _ends(file, known.read_to, begins)
    return (_hash(head), _hash(tail)) == (known.head_hash, known.tail_hash)


def _ends(file: int, read_to: int, begins: bytes = b"") -> tuple[bytes, bytes]:
    size = min(END, read_to)
    head = begins[:size] if len(begins) >= size else _read(file, 0, size)
    return head, head if read_to <= END else _read(file, read_to - END, END)


def _checksum(file: int, start: int, stop: int, so_far: int) -> int:
    while start < stop and (piece := _read(file, start, min(_PIECE, stop - start))):
        so_far = crc32(piece, so_far)
        start += len(piece)
    return so_far


def _read(file: int, start: int, size: int) -> bytes:
    os.lseek(file, start, os.SEEK_SET)
    return os.read(file, size)


def _hash(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()


@contextmanager
def _open_regular(path: str | os.PathLike[str]) -> Iterator[int]:
    """A descriptor of a regular file; a pipe or a device is not opened, not even to ask it."""
    _check_regular(os.stat(path), path)  # noqa: PTH116 - paths are text here, for there may be 100,000
    file = os.open(path, _OPEN_FLAGS)
    try:
        _check_regular(os.fstat(file), path)
        yield file
    finally:
        os.close(file)


def _check_regular(status: os.stat_result, path: str | os.PathLike[str]) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
