"""Watch the transcripts of homes by polling: which are new, grown, cut, replaced, moved or gone.

No file is opened except those written less than two seconds ago, whose mtime proves nothing (see `changes`).

Polling has three tiers. Each poll looks at hot files: those that changed last, and all of sessions that are active.
Main transcripts are looked at nearly as often, and all files as often as a small share of one core allows. That is
enough, because a working agent makes its session's main transcript grow. A directory's mtime announces new files, and
`history.jsonl` and `sessions/` change when a session is resumed, however old its transcript is.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from heapq import nlargest
from pathlib import Path
from typing import NamedTuple

from threadline.find.changes import stat_change
from threadline.find.fingerprint import file_number, hash_ends, make_stat
from threadline.find.layout import (
    is_non_transcript_path,
    is_transcript_name,
    make_transcript,
    session_id_from_name,
)
from threadline.find.listing import DirectoryWalk, HomeRoots
from threadline.model.homes import ChangeKind, Home, Transcript, TranscriptKind, TranscriptStat
from threadline.model.places import SessionId, is_uuid

# The share of one core that looking at main transcripts, and at everything, may take; seconds between two looks.
_MAIN_SHARE, _FULL_SHARE = 0.01, 0.003
_MAIN_SECONDS, _FULL_SECONDS, _MAX_SECONDS = 0.2, 2.0, 10.0
# Each poll looks at this many of the files and folders that changed last.
_HOT_COUNT = 96
# A session is active for ten minutes after a write.
_ACTIVE_NS = 600_000_000_000
# The mtime of a directory that changed less than this ago may be that of a later change, too.
_CLOCK_TICK_NS = 100_000_000
_NEVER = -1
_ACTIVITY_FILES = ("history.jsonl", "sessions")


class FileChange(NamedTuple):
    """A transcript that changed, as far as its status tells: a grown one may have been rewritten.

    `origin` is the path of a file that a moved one continues: a copy of the same session, or a renamed file.
    """

    kind: ChangeKind
    transcript: Transcript
    origin: str | None = None


class _WatchedFolder:
    """A directory that may contain transcripts; `folder` is None for `projects` itself."""

    __slots__ = ("below", "folder", "home", "mtime_ns", "path")

    def __init__(self, path: str, home: Home, folder: str | None, below: tuple[str, ...]) -> None:
        self.path = path
        self.home = home
        self.folder = folder
        self.below = below
        self.mtime_ns = _NEVER

    def sort_key(self) -> float:
        """Sort by mtime; a folder without a reliable one has just changed."""
        return float("inf") if self.mtime_ns == _NEVER else self.mtime_ns


class _WatchedFile:
    """A transcript and its last known status; `stat` is None until it is reported for the first time."""

    __slots__ = ("ends", "is_gone", "is_main", "links", "origin", "path", "stat", "transcript")

    def __init__(self, transcript: Transcript) -> None:
        self.path = str(transcript.path)
        self.transcript = transcript
        self.origin: str | None = None
        self.stat: TranscriptStat | None = None
        self.ends: tuple[bytes, bytes] | None = None
        self.links = 1
        self.is_gone = False
        self.is_main = transcript.kind is TranscriptKind.MAIN or transcript.session is None

    def sort_key(self) -> float:
        """Sort by mtime; a file that was never looked at is new."""
        return float("inf") if self.stat is None else self.stat.mtime_ns

    def note(self, status: os.stat_result) -> None:
        """Remember a status, and both ends of the file while its mtime proves nothing."""
        self.stat = make_stat(self.path, status, time.time_ns())
        self.ends = self._read_ends() if self.stat.racy else None
        self.links = status.st_nlink

    def check(self) -> ChangeKind | None:
        """Look at the file and return how it changed since the last check, None if it did not."""
        status = _stat_regular(self.path)
        if status is None:
            is_reported = self.is_gone or self.stat is None
            self.is_gone = True
            return None if is_reported else ChangeKind.VANISHED
        if self.stat is None or self.is_gone:
            self.is_gone = False
            self.note(status)
            return ChangeKind.NEW
        kind = self._stat_change(self.stat, status)
        if kind is not None:
            self.note(status)
        elif self.stat.racy:
            ends = self.ends
            self.note(status)
            if ends != (self.ends or self._read_ends()):
                return ChangeKind.REWRITTEN
        return kind

    def has_new_stat(self) -> bool:
        """Whether a `check` may report something."""
        status = _stat_regular(self.path)
        if status is None or self.stat is None or self.is_gone:
            return not self.is_gone or status is not None
        return self.stat.racy or self._stat_change(self.stat, status) is not None

    def _stat_change(self, before: TranscriptStat, status: os.stat_result) -> ChangeKind | None:
        kind = stat_change(before, status)
        # Linking, renaming or deleting one of several names of a file sets the ctime of all.
        is_only_linked = max(status.st_nlink, self.links) > 1 and status.st_mtime_ns == before.mtime_ns
        return None if kind is ChangeKind.REWRITTEN and is_only_linked else kind

    def _read_ends(self) -> tuple[bytes, bytes] | None:
        try:
            return hash_ends(self.path, self.stat.size if self.stat is not None else 0)
        except OSError:
            return None


class HomeWatcher:
    """Watches the transcripts of homes.

    Args:
        homes: the homes to watch.
        session: only this session, including its agents. Agents' transcripts beside the sessions are always watched,
            because only their content names the session.
        path: instead of homes, one transcript anywhere, and its session's directory beside it.
    """

    def __init__(
        self, homes: Sequence[Home] = (), *, session: SessionId | None = None, path: Path | None = None
    ) -> None:
        self._session = session
        self._only = path
        self._folders: dict[str, _WatchedFolder] = {}
        self._files: dict[str, _WatchedFile] = {}
        self._by_inode: dict[tuple[int, int], str] = {}
        self._by_name: dict[tuple[str | None, str | None], str] = {}
        self._roots = list(_root_folders(homes, path))
        self._activity = {os.path.join(home.path, name): _NEVER for home in homes for name in _ACTIVITY_FILES}  # noqa: PTH118 - text
        self._hot_files: dict[str, _WatchedFile] = {}
        self._hot_folders: dict[str, _WatchedFolder] = {}
        self._active: set[SessionId | None] = {None}
        self._next_main_look = 0.0
        self._next_full_look = 0.0
        self._is_started = False
        self._has_activity()
        self._look_everywhere()
        self._is_started = True
        self._next_full_look = time.monotonic() + _FULL_SECONDS

    @property
    def transcripts(self) -> list[Transcript]:
        """The transcripts that exist, with the size and mtime they had when they were found."""
        return [file.transcript for file in self._files.values() if not file.is_gone]

    def poll(self, *, everything: bool = False) -> list[FileChange]:
        """Return what changed since the last poll; with `everything`, also in files that are rarely looked at."""
        now = time.monotonic()
        if self._has_activity() or everything or now >= self._next_full_look:
            self._look_everywhere()
        elif now >= self._next_main_look:
            self._look_at_mains()
        else:
            self._look_into(self._hot_folders.values())
        changes = []
        for file in list(self._hot_files.values()):
            kind = file.check()
            if kind is None:
                continue
            if file.stat is not None:
                self._by_inode[file.stat.device, file.stat.inode] = file.path
            if kind is ChangeKind.NEW and file.origin is not None:
                kind = ChangeKind.MOVED
            changes.append(FileChange(kind, file.transcript, file.origin))
            file.origin = None
        return changes

    def _has_activity(self) -> bool:
        is_changed = False
        for path, before in self._activity.items():
            try:
                now = os.stat(path).st_mtime_ns  # noqa: PTH116 - paths are text
            except OSError:
                now = _NEVER
            is_changed |= now != before
            self._activity[path] = now
        return is_changed

    def _look_everywhere(self) -> None:
        """Look at every folder and file, and choose the hot ones again."""
        start = time.thread_time()
        for root in self._roots:
            self._folders.setdefault(root.path, root)
        self._look_into(self._folders.values())
        changed = [file for file in self._files.values() if file.has_new_stat()]
        existing = [file for file in self._files.values() if not file.is_gone]
        newest = nlargest(_HOT_COUNT, existing, key=_WatchedFile.sort_key)
        self._hot_files = {file.path: file for file in newest}
        newest_folders = nlargest(_HOT_COUNT, self._folders.values(), key=_WatchedFolder.sort_key)
        self._hot_folders = {folder.path: folder for folder in (*newest_folders, *self._roots)}
        self._active = {None}
        active_since = time.time_ns() - _ACTIVE_NS
        self._activate([*changed, *(file for file in newest if file.sort_key() > active_since)])
        cost = time.thread_time() - start
        self._next_full_look = time.monotonic() + min(_MAX_SECONDS, max(_FULL_SECONDS, cost / _FULL_SHARE))

    def _look_at_mains(self) -> None:
        """Look at the project folders and the files in them, but not below the sessions."""
        start = time.thread_time()
        self._look_into(folder for folder in list(self._folders.values()) if not folder.below)
        self._activate([file for file in self._files.values() if file.is_main and file.has_new_stat()])
        cost = time.thread_time() - start
        self._next_main_look = time.monotonic() + min(_MAX_SECONDS, max(_MAIN_SECONDS, cost / _MAIN_SHARE))

    def _activate(self, files: Sequence[_WatchedFile]) -> None:
        """Make these files hot, and all files of the sessions whose main transcript is among them."""
        self._hot_files |= {file.path: file for file in files}
        sessions = {file.transcript.session for file in files if file.is_main} - self._active
        if not sessions:
            return
        self._active |= sessions
        self._hot_files |= {path: file for path, file in self._files.items() if file.transcript.session in sessions}
        self._hot_folders |= {
            path: folder
            for path, folder in self._folders.items()
            if folder.below and session_id_from_name(folder.below[0]) in sessions
        }

    def _look_into(self, folders: Iterable[_WatchedFolder]) -> None:
        """List the folders whose mtime changed, and the new folders in them."""
        waiting = [*folders]
        while waiting:
            folder = waiting.pop()
            try:
                status = os.stat(folder.path)  # noqa: PTH116 - paths are text
            except OSError:
                folder.mtime_ns = _NEVER
                if folder.folder is not None and self._only is None:
                    self._folders.pop(folder.path, None)
                continue
            if status.st_mtime_ns != folder.mtime_ns:
                is_settled = status.st_mtime_ns < time.time_ns() - _CLOCK_TICK_NS
                folder.mtime_ns = status.st_mtime_ns if is_settled else _NEVER
                waiting += self._list_folder(folder)

    def _list_folder(self, folder: _WatchedFolder) -> Iterator[_WatchedFolder]:
        """Add the transcripts in a folder, and yield its subfolders that are new."""
        directory = DirectoryWalk().scan(folder.path)
        for entry in directory.files:
            if is_transcript_name(entry.name) and self._is_included(folder, entry.name):
                self._add_file(folder, entry)
        for entry in directory.subdirectories:
            below = () if folder.folder is None else (*folder.below, entry.name)
            is_watched = entry.path in self._folders or is_non_transcript_path((*below, ""))
            if not is_watched and self._is_included(folder, entry.name):
                name = entry.name if folder.folder is None else folder.folder
                self._folders[entry.path] = new = _WatchedFolder(entry.path, folder.home, name, below)
                self._hot_folders[entry.path] = new
                yield new

    def _is_included(self, folder: _WatchedFolder, name: str) -> bool:
        """Of the folder of a single transcript, only that transcript and its session's directory are watched."""
        return self._only is None or bool(folder.below) or name in {self._only.name, self._only.stem}

    def _add_file(self, folder: _WatchedFolder, entry: os.DirEntry[str]) -> None:
        known = self._files.get(entry.path)
        if known is not None:
            if known.is_gone:
                self._hot_files[entry.path] = known
            return
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:  # vanished after it was listed
            return
        below = (*folder.below, entry.name)
        transcript = make_transcript(Path(entry.path), folder.home, folder.folder or "", status, below)
        if not self._is_of_session(transcript):
            return
        file = _WatchedFile(transcript)
        if self._is_started:
            file.origin = self._find_origin(transcript, status)
            self._hot_files[entry.path] = file
        else:
            file.note(status)
        self._files[entry.path] = file
        self._by_inode[file_number(status)] = entry.path
        if transcript.agent is not None or transcript.kind is TranscriptKind.MAIN:
            self._by_name[transcript.session, transcript.agent] = entry.path

    def _is_of_session(self, transcript: Transcript) -> bool:
        if self._session is None or self._only is not None or transcript.session == self._session:
            return True
        return transcript.session is None and transcript.agent is not None

    def _find_origin(self, transcript: Transcript, status: os.stat_result) -> str | None:
        """Return the path of the file that a new one may be a copy of, or that was renamed to it."""
        # The name says more than the inode, which may be that of a deleted file.
        same_name = self._by_name.get((transcript.session, transcript.agent))
        if same_name is not None and (is_uuid(transcript.session or "") or transcript.agent):
            return same_name
        same_inode = self._by_inode.get(file_number(status))
        return same_inode if same_inode is not None and not _has_inode(same_inode, status) else None


def _root_folders(homes: Sequence[Home], path: Path | None) -> Iterator[_WatchedFolder]:
    if path is not None:
        directory = path.absolute().parent
        yield _WatchedFolder(str(directory), Home(directory, "path"), directory.name, ())
        return
    for home in homes:
        roots = HomeRoots(home)
        if not roots.is_projects_refused:
            yield _WatchedFolder(roots.projects, home, None, ())


def _stat_regular(path: str) -> os.stat_result | None:
    """Return the status of a regular file; None if there is none, or a link or something else."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status if stat.S_ISREG(status.st_mode) else None


def _has_inode(path: str, expected: os.stat_result) -> bool:
    status = _stat_regular(path)
    return status is not None and file_number(status) == file_number(expected)
