"""Detect which transcripts changed since they were last read, without opening unchanged files.

A file is unchanged if device, inode, size, mtime and ctime are equal. Programs can set an mtime back, but no ctime, so
an edit in place is seen even if it keeps size and mtime. Times are compared for equality only, never with a clock, so
times in the future or going backwards do no harm. Otherwise the fingerprint decides (see `fingerprint`):

=========================================  ===========================================================
status                                     compared
=========================================  ===========================================================
all equal, but written to just before      both ends
same file, other size                      both ends: an append costs what was appended, not the file
same file and size, other mtime or ctime   everything that was read: the middle may have changed
another file                               everything that was read: editors write another file
all equal, but there is no ctime           both ends (Windows)
=========================================  ===========================================================

Equal content is not read again, whatever the times say: a home that was copied, restored or given other permissions
costs one checksum of each file. Not detected: bytes changed in the middle of a file that has grown since, too; and
where there is no ctime, bytes changed in the middle by something that sets the mtime back.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

from threadline.find.fingerprint import (
    HAS_CHANGE_TIME,
    change_time_ns,
    file_number,
    has_known_prefix,
    hash_ends,
    make_stat,
    modified_time_ns,
    with_new_stat,
)
from threadline.find.listing import TranscriptWalk
from threadline.model.homes import (
    ChangeKind,
    Home,
    TranscriptChange,
    TranscriptChanges,
    TranscriptFingerprint,
    TranscriptStat,
)
from threadline.model.places import Place, Problem, ProblemKind

_ORDER = {kind: number for number, kind in enumerate(ChangeKind)}

StatKey = tuple[int, int, int, int, int, int]
"""What must be equal for a file to be unchanged: mtime, size, inode, device, ctime, and 1 if racy (never unchanged)."""


class KnownTranscripts(Protocol):
    """Fingerprints of transcripts, of which most are needed only in part."""

    def statuses(self) -> dict[str, StatKey]:
        """Return the status of every known transcript by its path."""

    def fingerprint(self, path: str) -> TranscriptFingerprint:
        """Return the whole fingerprint of one of them."""


def detect_changes(
    before: Iterable[TranscriptFingerprint] | KnownTranscripts, homes: Iterable[Home], *, now_ns: int | None = None
) -> TranscriptChanges:
    """Compare the transcripts of these homes with their fingerprints from an earlier read.

    A caller who reads each file from `TranscriptChange.read_from` and stores the new fingerprints, including the
    `touched` ones, has exactly the lines that are in the transcripts.
    """
    memory = _FingerprintList(before) if isinstance(before, Iterable) else before
    comparison = _Comparison(memory, time.time_ns() if now_ns is None else now_ns)
    for home in homes:
        comparison.compare_home(TranscriptWalk(home))
    return comparison.result()


def stat_change(before: TranscriptStat | TranscriptFingerprint, now: os.stat_result) -> ChangeKind | None:
    """Return how a file changed as far as its status tells, None if it is as before.

    A grown file may have been rewritten, and an equal status of a racy file proves nothing; only the bytes tell.
    """
    if file_number(now) != (before.device, before.inode):
        return ChangeKind.REPLACED
    if now.st_size != before.size:
        return ChangeKind.GROWN if now.st_size > before.size else ChangeKind.TRUNCATED
    is_same = (modified_time_ns(now), change_time_ns(now)) == (before.mtime_ns, before.ctime_ns)
    return None if is_same else ChangeKind.REWRITTEN


def _stat_key(status: os.stat_result) -> StatKey:
    device, inode = file_number(status)
    return modified_time_ns(status), status.st_size, inode, device, change_time_ns(status), 0


class _FingerprintList:
    """`KnownTranscripts` for fingerprints that are all in memory."""

    def __init__(self, fingerprints: Iterable[TranscriptFingerprint]) -> None:
        self._by_path = {fingerprint.path: fingerprint for fingerprint in fingerprints}

    def statuses(self) -> dict[str, StatKey]:
        return {
            path: (f.mtime_ns, f.size, f.inode, f.device, f.ctime_ns, int(f.racy)) for path, f in self._by_path.items()
        }

    def fingerprint(self, path: str) -> TranscriptFingerprint:
        return self._by_path[path]


class _Suspect(NamedTuple):
    """A transcript whose status is not as before; `before` is None if it is at a new path."""

    walk: TranscriptWalk
    path: str
    status: os.stat_result
    before: TranscriptFingerprint | None


class _Comparison:
    """One comparison of homes with earlier fingerprints; `_unmet` shrinks to the transcripts that are gone."""

    def __init__(self, memory: KnownTranscripts, now_ns: int) -> None:
        self._memory = memory
        self._unmet = memory.statuses()
        self._gone: dict[str, TranscriptFingerprint] = {}
        self._now_ns = now_ns
        self._unchanged = 0
        self._met: set[str] = set()
        self._refused: set[str] = set()
        self._problems: list[Problem] = []
        self._suspects: list[_Suspect] = []
        self._changes: list[TranscriptChange] = []
        self._touched: list[TranscriptFingerprint] = []

    def compare_home(self, walk: TranscriptWalk) -> None:
        """Count the transcripts whose status is as before, and collect the others."""
        unmet = self._unmet
        met = self._met
        unchanged = 0
        for path, status in walk.stats():
            if path in met:  # two homes may share their projects
                continue
            met.add(path)
            key = unmet.pop(path, None)
            ctime_ns = status.st_ctime_ns if HAS_CHANGE_TIME else 0
            # A status is rarely out of SQLite's range, and comparing it as it is takes a third of the time.
            is_same = key == (status.st_mtime_ns, status.st_size, status.st_ino, status.st_dev, ctime_ns, 0)
            if (is_same or (key is not None and key == _stat_key(status))) and (
                HAS_CHANGE_TIME or self._has_same_ends(path, status)
            ):
                unchanged += 1
            else:
                before = self._memory.fingerprint(path) if key is not None else None
                self._suspects.append(_Suspect(walk, path, status, before))
        self._unchanged += unchanged
        self._problems += walk.problems
        self._refused.update(walk.refused)

    def _has_same_ends(self, path: str, status: os.stat_result) -> bool:
        """Whether both ends of a file are as before: without a ctime, an equal status proves too little."""
        try:
            return has_known_prefix(path, status, self._memory.fingerprint(path))
        except OSError:
            return False

    def result(self) -> TranscriptChanges:
        """Compare the bytes of the collected files, and look for missing transcripts among the new ones."""
        self._gone = {path: self._memory.fingerprint(path) for path in self._unmet}
        others = [suspect for suspect in self._suspects if not self._settle(suspect)]
        for suspect in self._record_moved(others):
            self._add_read_from_start(suspect)
        for before in self._gone.values():
            self._add_missing(before)
        changes = sorted(self._changes, key=_sort_key)
        return TranscriptChanges(tuple(changes), tuple(self._touched), self._unchanged, tuple(self._problems))

    def _settle(self, suspect: _Suspect) -> bool:
        """Record a file that continues what was read from it, or cannot be read. False for any other file."""
        before = suspect.before
        if before is None:
            return False
        try:
            if not has_known_prefix(suspect.path, suspect.status, before):
                return False
        except (FileNotFoundError, NotADirectoryError):
            self._changes.append(TranscriptChange(ChangeKind.VANISHED, before))
        except OSError as error:
            self._changes.append(TranscriptChange(ChangeKind.UNREADABLE, before))
            message = f"could not be read: {error.strerror or error}"
            self._problems.append(Problem(ProblemKind.UNREADABLE, Place(before.path), message))
        else:
            self._add_continued(suspect, before)
        return True

    def _add_continued(self, suspect: _Suspect, before: TranscriptFingerprint) -> None:
        stat = self._stat(suspect)
        if stat.size > before.read_to:
            transcript = suspect.walk.transcript(suspect.path, suspect.status)
            self._changes.append(TranscriptChange(ChangeKind.GROWN, before, transcript, stat, before.read_to))
        else:
            self._touched.append(with_new_stat(before, stat))

    def _record_moved(self, suspects: list[_Suspect]) -> Iterator[_Suspect]:
        """Record files that contain what a missing one contained as moved, and yield the others."""
        missing = MissingTranscripts(self._gone.values())
        for suspect in suspects:
            original = missing.identify(suspect.path, suspect.status)
            if original is None:
                yield suspect
                continue
            del self._gone[original.path]
            if suspect.before is not None:
                self._changes.append(TranscriptChange(ChangeKind.VANISHED, suspect.before))
            transcript = suspect.walk.transcript(suspect.path, suspect.status)
            stat = self._stat(suspect)
            self._changes.append(TranscriptChange(ChangeKind.MOVED, original, transcript, stat, original.read_to))

    def _add_read_from_start(self, suspect: _Suspect) -> None:
        transcript = suspect.walk.transcript(suspect.path, suspect.status)
        self._changes.append(TranscriptChange(_change_kind(suspect), suspect.before, transcript, self._stat(suspect)))

    def _add_missing(self, before: TranscriptFingerprint) -> None:
        kind = ChangeKind.UNREADABLE if self._is_refused(before.path) else ChangeKind.VANISHED
        self._changes.append(TranscriptChange(kind, before))

    def _is_refused(self, path: str) -> bool:
        """Whether the system would not show a file, or a directory above it."""
        while path and path not in self._refused:
            path = path.rpartition(os.sep)[0]
        return bool(path)

    def _stat(self, suspect: _Suspect) -> TranscriptStat:
        return make_stat(suspect.path, suspect.status, self._now_ns)


def _change_kind(suspect: _Suspect) -> ChangeKind:
    """Return the kind of change of a file that does not start with what was read from it."""
    before, status = suspect.before, suspect.status
    if before is None:
        return ChangeKind.NEW
    if stat_change(before, status) is ChangeKind.REPLACED:
        return ChangeKind.REPLACED
    return ChangeKind.TRUNCATED if status.st_size < before.read_to else ChangeKind.REWRITTEN


def _sort_key(change: TranscriptChange) -> tuple[int, str]:
    path = change.stat.path if change.stat else change.before.path if change.before else ""
    return _ORDER[change.kind], path


class MissingTranscripts:
    """Transcripts that are gone from their paths, to be recognised at others, each at most once.

    A transcript without a line cannot be recognised, and need not be.
    """

    def __init__(self, fingerprints: Iterable[TranscriptFingerprint]) -> None:
        self._by_inode: dict[tuple[int, int], TranscriptFingerprint] = {}
        self._by_ends: dict[tuple[int, int, bytes, bytes], list[TranscriptFingerprint]] = {}
        self._read_to: dict[int, set[int]] = {}
        self._identified: set[str] = set()
        for fingerprint in fingerprints:
            if fingerprint.read_to == 0:
                continue
            if fingerprint.inode:  # directory entries on Windows have no inodes
                self._by_inode[fingerprint.device, fingerprint.inode] = fingerprint
            self._by_ends.setdefault(
                (fingerprint.size, fingerprint.read_to, fingerprint.head_hash, fingerprint.tail_hash), []
            ).append(fingerprint)
            self._read_to.setdefault(fingerprint.size, set()).add(fingerprint.read_to)

    def identify(self, path: str, status: os.stat_result) -> TranscriptFingerprint | None:
        """Return the missing transcript that is at this path now, or None."""
        try:
            for fingerprint in self._candidates(path, status):
                # The inode of a deleted file is given to another one, so the bytes decide.
                if fingerprint.path not in self._identified and has_known_prefix(path, status, fingerprint):
                    self._identified.add(fingerprint.path)
                    return fingerprint
        except OSError:
            return None  # whoever reads the file reports the error
        return None

    def _candidates(self, path: str, status: os.stat_result) -> Iterator[TranscriptFingerprint]:
        same_inode = self._by_inode.get(file_number(status))
        if same_inode is not None:
            yield same_inode
        size = status.st_size
        for read_to in self._read_to.get(size, ()):
            same_ends = self._by_ends.get((size, read_to, *hash_ends(path, read_to)), [])
            while same_ends and same_ends[-1].path in self._identified:  # else a thousand copies take a million steps
                same_ends.pop()
            yield from reversed(same_ends)
