"""Follow growing transcripts and yield new entries in order of time, each line once.

`HomeWatcher` says which files changed, and `TranscriptTail` which of their lines are new.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from heapq import merge
from pathlib import Path

from threadline.errors import Error
from threadline.find import HomeWatcher
from threadline.model.entries import Entry
from threadline.model.homes import ChangeKind, Home, Transcript
from threadline.model.places import SessionId
from threadline.model.times import FIRST_MOMENT
from threadline.watch.tail import TranscriptTail

FollowedEntry = tuple[Transcript, Entry]
"""An entry, and the transcript it was written to."""

# How many bytes one poll reads at most.
_MAX_BYTES = 32 * 1024 * 1024


class _FollowedFile:
    """A transcript, its tail, and how much of it existed before following began and is searched for recent entries."""

    __slots__ = ("backlog", "is_recent", "tail", "transcript")

    def __init__(self, transcript: Transcript, tail: TranscriptTail) -> None:
        self.transcript = transcript
        self.tail = tail
        self.backlog = 0
        self.is_recent = False


class Follower:
    """Follows the transcripts of homes, from now on or from a moment in the past.

    Args:
        homes: the homes to follow.
        session: only entries of this session, including its agents.
        path: instead of homes, one transcript anywhere, with its session's directory.
        since: start with the entries written from then on.
    """

    def __init__(
        self,
        homes: Sequence[Home] = (),
        *,
        session: SessionId | None = None,
        path: Path | None = None,
        since: datetime | None = None,
    ) -> None:
        self._session = session if path is None else None
        self._since = since
        self._watcher = HomeWatcher(homes, session=session, path=path)
        self._files: dict[str, _FollowedFile] = {}
        self._pending: dict[str, _FollowedFile] = {}
        for transcript in self._watcher.transcripts:
            self._add_existing(transcript)

    @property
    def is_behind(self) -> bool:
        """Whether the last poll left entries unread: poll again at once."""
        return any(file.tail.is_behind for file in self._pending.values())

    @property
    def transcripts(self) -> int:
        """How many transcripts are followed."""
        return len(self._watcher.transcripts)

    def poll(self, *, everything: bool = False) -> list[FollowedEntry]:
        """Return the entries written since the last poll; with `everything`, also in rarely changed files."""
        for change in self._watcher.poll(everything=everything):
            path = str(change.transcript.path)
            if change.kind is ChangeKind.VANISHED:
                self._pending.pop(path, None)
                continue
            if path not in self._files:
                origin = self._files.get(change.origin or "")
                tail = origin.tail.copy(path) if origin is not None else TranscriptTail(path)
                self._files[path] = _FollowedFile(change.transcript, tail)
            self._pending[path] = self._files[path]
        return _merge_by_time(list(self._read_pending()))

    def _read_pending(self) -> Iterator[list[FollowedEntry]]:
        pending, self._pending = self._pending, {}
        left = _MAX_BYTES
        for path, file in pending.items():
            if left <= 0:
                file.tail.is_behind = True
                self._pending[path] = file
                continue
            try:
                entries = file.tail.read_new(left)
            except (Error, OSError):  # vanished or unreadable; it is tried again when its status changes
                file.tail.is_behind = False
                continue
            if file.tail.is_behind or file.tail.is_waiting:
                self._pending[path] = file
            left -= sum(len(entry.line.raw) for entry in entries)
            selected = [(file.transcript, entry) for entry in self._select(file, entries)]
            if selected:
                yield selected

    def _add_existing(self, transcript: Transcript) -> None:
        """Add a file that exists when following begins. Only its recent entries are new."""
        path = str(transcript.path)
        file = self._files[path] = _FollowedFile(transcript, TranscriptTail(path))
        if self._since is not None and transcript.mtime_ns >= self._since.timestamp() * 1e9:
            file.backlog = transcript.size
            self._pending[path] = file
        else:
            file.tail.skip(transcript.size)

    def _select(self, file: _FollowedFile, entries: Iterable[Entry]) -> Iterable[Entry]:
        session = self._session
        if session is not None and file.transcript.session is None:  # an agent in the folder of the sessions
            entries = (entry for entry in entries if entry.session_id == session)
        since = self._since
        return entries if since is None or not file.backlog else _entries_since(file, entries, since)


def _entries_since(file: _FollowedFile, entries: Iterable[Entry], since: datetime) -> Iterator[Entry]:
    """Skip the old entries of the backlog; one without a time goes with the next."""
    untimed: list[Entry] = []
    for entry in entries:
        when = entry.timestamp
        if entry.line.offset >= file.backlog:
            yield from untimed if file.is_recent else ()
            untimed = []
            yield entry
        elif when is None:
            untimed.append(entry)
        else:
            file.is_recent = when >= since
            yield from (*untimed, entry) if file.is_recent else ()
            untimed = []
    yield from untimed if file.is_recent else ()


def _merge_by_time(batches: list[list[FollowedEntry]]) -> list[FollowedEntry]:
    """Merge the entries of several files by time; those of one file keep their order, whatever their times are."""
    if len(batches) < 2:  # noqa: PLR2004 - nothing to merge
        return batches[0] if batches else []
    return [entry for _, entry in merge(*map(_with_latest_time, batches), key=lambda pair: pair[0])]


def _with_latest_time(entries: list[FollowedEntry]) -> Iterator[tuple[datetime, FollowedEntry]]:
    latest = FIRST_MOMENT
    for followed_entry in entries:
        latest = max(latest, followed_entry[1].timestamp or latest)
        yield latest, followed_entry
