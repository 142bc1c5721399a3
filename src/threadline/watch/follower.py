"""Follow growing transcripts and yield new entries in order of time, each line once.

Works by polling, in three tiers: recently changed files on every poll, main transcripts nearly as often, and all
files as often as a small share of one core allows. That is enough because a working agent makes its session's main
transcript grow. A directory's mtime announces new files. `ShrinkDetector` reports what a follower does not:
transcripts cut, replaced or deleted.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from heapq import merge, nlargest
from pathlib import Path
from time import monotonic

from threadline.errors import Error
from threadline.find import (
    PROJECTS,
    is_non_transcript_path,
    is_transcript_name,
    make_transcript,
    parse_agent_id,
    parse_session_id,
    real_projects_dir,
)
from threadline.model.entries import Entry
from threadline.model.homes import Home, Transcript, TranscriptKind
from threadline.model.places import SessionId
from threadline.watch.tail import TranscriptTail

FollowedEntry = tuple[Transcript, Entry]
"""An entry, and the transcript it was written to."""

# What looking at main transcripts, and at everything, may take of one core; the seconds between two such looks.
_SHARE, _FULL_SCAN_SHARE = 0.01, 0.003
_OFTEN, _FULL_SCAN_SECONDS, _MAX_SCAN_INTERVAL = 0.2, 2.0, 10.0
# As many of the files and folders that changed last are looked at each time, and all of sessions that wrote so lately.
_NEWEST = 96
_ACTIVE_NS = 600_000_000_000
# A time of change this young may be that of a later change, too: clocks of file systems tick slowly.
_CLOCK_TICK_NS = 100_000_000
# Bytes that one poll reads at most.
_MOST = 32 * 1024 * 1024
_NEVER = -1
_EARLIEST = datetime.min.replace(tzinfo=UTC)
# What Claude Code writes to when a session is taken up, however old its transcript is.
_ACTIVITY_FILES = ("history.jsonl", "sessions")


class _WatchedFolder:
    """A directory in which transcripts may lie; `folder` is None for `projects` itself."""

    __slots__ = ("below", "folder", "home", "mtime_ns", "path")

    def __init__(self, path: str, home: Home, folder: str | None, below: tuple[str, ...]) -> None:
        self.path = path
        self.home = home
        self.folder = folder
        self.below = below
        self.mtime_ns = _NEVER


class _WatchedFile:
    """A transcript, and what its status was when it was last read."""

    __slots__ = ("backlog", "followed", "identity", "is_gone", "is_main", "is_recent", "mtime_ns", "size", "transcript")

    def __init__(self, transcript: Transcript, followed: TranscriptTail, status: os.stat_result) -> None:
        self.transcript = transcript
        self.followed = followed
        self.identity = (status.st_dev, status.st_ino)
        self.size = _NEVER
        self.mtime_ns = _NEVER
        self.is_gone = False
        self.is_main = transcript.kind is TranscriptKind.MAIN or transcript.session is None
        # How much of it was there when following began and is looked through, and whether what comes is recent enough.
        self.backlog = 0
        self.is_recent = False

    def note(self, status: os.stat_result) -> None:
        """Remember a status; one that is too young to be relied on, so that it is looked at again."""
        self.identity = (status.st_dev, status.st_ino)
        self.size = status.st_size
        self.mtime_ns = _reliable_mtime(status)

    def has_changed(self, status: os.stat_result) -> bool:
        """Whether the file may hold something else than when it was read."""
        return (
            status.st_size != self.size
            or status.st_mtime_ns != self.mtime_ns
            or (status.st_dev, status.st_ino) != self.identity
        )


class Follower:
    """Follows the transcripts of homes, from now on or from a while ago.

    Args:
        homes: the homes to follow.
        session: only what is written for this session, its agents included.
        path: instead of homes, one transcript that lies anywhere, and its session's directory beside it.
        since: begin with what was written from then on.
    """

    def __init__(
        self,
        homes: Sequence[Home] = (),
        *,
        session: SessionId | None = None,
        path: Path | None = None,
        since: datetime | None = None,
    ) -> None:
        self._session = session
        self._only = path
        self._since = since
        self._folders: dict[str, _WatchedFolder] = {}
        self._files: dict[str, _WatchedFile] = {}
        self._by_identity: dict[tuple[int, int], str] = {}
        self._by_name: dict[tuple[str | None, str | None], str] = {}
        self._tops = list(_root_folders(homes, path))
        self._signs = {os.path.join(home.path, name): _NEVER for home in homes for name in _ACTIVITY_FILES}  # noqa: PTH118 - text
        self._hot_files: dict[str, _WatchedFile] = {}
        self._hot_folders: dict[str, _WatchedFolder] = {}
        self._awake: set[SessionId | None] = {None}
        self._next_look = 0.0
        self._next_whole_look = 0.0
        self._is_started = False
        self._changed_signs()
        self._look_everywhere()
        self._is_started = True
        self._next_whole_look = time.monotonic() + _FULL_SCAN_SECONDS

    @property
    def is_behind(self) -> bool:
        """Whether more is there than the last poll could give: poll again at once."""
        return any(file.followed.is_behind for file in self._hot_files.values())

    @property
    def transcripts(self) -> int:
        """How many transcripts are followed."""
        return sum(not file.is_gone for file in self._files.values())

    def poll(self, *, everything: bool = False) -> list[FollowedEntry]:
        """What was written since the last poll. `everything`: look at all files, however long they have been still."""
        now = time.monotonic()
        if self._changed_signs() or everything or now >= self._next_whole_look:
            self._look_everywhere()
        elif now >= self._next_look:
            self._look_at_mains()
        else:
            self._look_into(self._hot_folders.values())
        left = _MOST
        found: list[list[FollowedEntry]] = []
        for file in list(self._hot_files.values()):
            if left <= 0:
                file.followed.is_behind = True
                continue
            news = self._news(file, left)
            left -= sum(len(entry.line.raw) for _, entry in news)
            if news:
                found.append(news)
        return _merge_by_time(found)

    def _news(self, file: _WatchedFile, most: int) -> list[FollowedEntry]:
        """The entries that a file has gained, if its status has changed at all."""
        followed = file.followed
        try:
            status = os.stat(followed.path)  # noqa: PTH116 - a path is text here
        except OSError:
            file.is_gone = True
            followed.is_behind = False
            return []
        if not file.has_changed(status) and not followed.is_behind:
            return []
        try:
            entries = followed.news(most)
        except (Error, OSError):  # gone, or may not be read; it is tried again when its status changes
            followed.is_behind = False
            entries = []
        file.note(status)
        self._by_identity[file.identity] = followed.path
        return [(file.transcript, entry) for entry in self._wanted(file, entries)]

    def _wanted(self, file: _WatchedFile, entries: Iterable[Entry]) -> Iterable[Entry]:
        session = self._session
        if session is not None and file.transcript.session is None and self._only is None:
            entries = (entry for entry in entries if (entry.session_id or "").lower() == session)
        since = self._since
        return entries if since is None or not file.backlog else _entries_since(file, entries, since)

    def _changed_signs(self) -> bool:
        changed = False
        for path, before in self._signs.items():
            try:
                now = os.stat(path).st_mtime_ns  # noqa: PTH116 - a path is text here
            except OSError:
                now = _NEVER
            changed |= now != before
            self._signs[path] = now
        return changed

    def _look_everywhere(self) -> None:
        """Look at every folder and file, and choose anew those that each poll looks at."""
        began = time.thread_time()
        for top in self._tops:
            self._folders.setdefault(top.path, top)
        self._look_into(self._folders.values())
        there = [file for file in self._files.values() if not file.is_gone]
        changed = [file for file in there if file.followed.is_behind or _is_changed(file)]
        self._hot_files = {file.followed.path: file for file in nlargest(_NEWEST, there, key=lambda one: one.mtime_ns)}
        self._hot_folders = {one.path: one for one in nlargest(_NEWEST, self._folders.values(), key=_mtime_for_sorting)}
        self._hot_folders |= {top.path: top for top in self._tops}
        self._awake = {None}
        lately = time.time_ns() - _ACTIVE_NS
        self._wake([*changed, *(file for file in self._hot_files.values() if file.mtime_ns > lately)])
        cost = time.thread_time() - began
        self._next_whole_look = time.monotonic() + min(
            _MAX_SCAN_INTERVAL, max(_FULL_SCAN_SECONDS, cost / _FULL_SCAN_SHARE)
        )

    def _look_at_mains(self) -> None:
        """Look at projects' folders and what lies in them, but not at what lies below sessions."""
        began = time.thread_time()
        self._look_into(folder for folder in list(self._folders.values()) if not folder.below)
        self._wake([file for file in self._files.values() if file.is_main and not file.is_gone and _is_changed(file)])
        cost = time.thread_time() - began
        self._next_look = time.monotonic() + min(_MAX_SCAN_INTERVAL, max(_OFTEN, cost / _SHARE))

    def _wake(self, files: Sequence[_WatchedFile]) -> None:
        """Look at these each time from now on, and at all that belongs to the sessions among them."""
        self._hot_files |= {file.followed.path: file for file in files}
        sessions = {file.transcript.session for file in files if file.is_main} - self._awake
        if not sessions:
            return
        self._awake |= sessions
        self._hot_files |= {path: one for path, one in self._files.items() if one.transcript.session in sessions}
        self._hot_folders |= {
            path: one for path, one in self._folders.items() if one.below and parse_session_id(one.below[0]) in sessions
        }

    def _look_into(self, folders: Iterable[_WatchedFolder]) -> None:
        """List again the folders that have changed, and those that are new in them."""
        waiting = [*folders]
        while waiting:
            folder = waiting.pop()
            try:
                status = os.stat(folder.path)  # noqa: PTH116 - a path is text here
            except OSError:
                folder.mtime_ns = _NEVER
                if folder.folder is not None and self._only is None:
                    self._folders.pop(folder.path, None)
                continue
            if status.st_mtime_ns != folder.mtime_ns:
                folder.mtime_ns = _reliable_mtime(status)
                with suppress(OSError), os.scandir(folder.path) as entries:
                    waiting += self._listed(folder, list(entries))

    def _listed(self, folder: _WatchedFolder, entries: list[os.DirEntry[str]]) -> Iterator[_WatchedFolder]:
        """Take up the transcripts in a folder, and give the folders in it that are new."""
        for entry in entries:
            if entry.path in self._folders or not self._is_followed(folder, entry.name):
                continue
            with suppress(OSError):
                if is_transcript_name(entry.name):
                    self._take_up(folder, entry)
                elif entry.is_dir(follow_symlinks=False):
                    name = entry.name if folder.folder is None else folder.folder
                    below = () if folder.folder is None else (*folder.below, entry.name)
                    if not is_non_transcript_path((*below, "")):
                        self._folders[entry.path] = new = _WatchedFolder(entry.path, folder.home, name, below)
                        self._hot_folders[entry.path] = new
                        yield new

    def _is_followed(self, folder: _WatchedFolder, name: str) -> bool:
        """Of the folder that one named transcript lies in, only what may be its session's."""
        return self._only is None or bool(folder.below) or name in {self._only.name, self._only.stem}

    def _take_up(self, folder: _WatchedFolder, entry: os.DirEntry[str]) -> None:
        known = self._files.get(entry.path)
        if known is not None:
            if known.is_gone:
                known.is_gone = False
                self._hot_files[entry.path] = known
            return
        if not entry.is_file(follow_symlinks=False):
            return
        status = entry.stat(follow_symlinks=False)
        found = make_transcript(Path(entry.path), folder.home, folder.folder or "", status, (*folder.below, entry.name))
        if not self._is_of_session(found):
            return
        file = _WatchedFile(found, self._followed(found, status), status)
        if not self._is_started:
            self._begin(file, status)
        else:
            self._hot_files[entry.path] = file
        self._files[entry.path] = file
        self._by_identity[file.identity] = entry.path
        if found.agent is not None or found.kind is TranscriptKind.MAIN:
            self._by_name[found.session, found.agent] = entry.path

    def _is_of_session(self, found: Transcript) -> bool:
        if self._session is None or self._only is not None or found.session == self._session:
            return True
        return found.session is None and parse_agent_id(found.path.name) is not None  # its entries will tell

    def _begin(self, file: _WatchedFile, status: os.stat_result) -> None:
        """Of what is there when following begins, only what is recent enough is news."""
        if self._since is not None and status.st_mtime_ns >= self._since.timestamp() * 1e9:
            file.backlog = status.st_size
        else:
            file.followed.skip(status.st_size)
            file.note(status)

    def _followed(self, found: Transcript, status: os.stat_result) -> TranscriptTail:
        """What is known of a file that was not there before: it may be one that was moved, or copied elsewhere."""
        path = str(found.path)
        if not self._is_started:
            return TranscriptTail(path)
        # A name tells more than an inode, which may be that of a deleted file, used again.
        named = self._files.get(self._by_name.get((found.session, found.agent), ""))
        if named is not None and (found.session or found.agent):
            return named.followed.copy(path)
        before = self._files.get(self._by_identity.get((status.st_dev, status.st_ino), ""))
        if before is not None and not _is_unmoved(before):
            return before.followed.copy(path)
        return TranscriptTail(path)


def _root_folders(homes: Sequence[Home], path: Path | None) -> Iterator[_WatchedFolder]:
    if path is not None:
        directory = path.absolute().parent
        yield _WatchedFolder(str(directory), Home(directory, "path"), directory.name, ())
        return
    for home in homes:
        top = os.path.realpath(home.path)
        projects = real_projects_dir(top) or os.path.join(top, PROJECTS)  # noqa: PTH118 - paths are text here
        yield _WatchedFolder(projects, home, None, ())


def _entries_since(file: _WatchedFile, entries: Iterable[Entry], since: datetime) -> Iterator[Entry]:
    """Of what was there when following began, what is recent enough; one without a time goes with the next."""
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


def _mtime_for_sorting(folder: _WatchedFolder) -> float:
    """For putting those that changed last at the end: one whose time is not settled has changed just now."""
    return float("inf") if folder.mtime_ns == _NEVER else folder.mtime_ns


def _reliable_mtime(status: os.stat_result) -> int:
    return status.st_mtime_ns if status.st_mtime_ns < time.time_ns() - _CLOCK_TICK_NS else _NEVER


def _is_changed(file: _WatchedFile) -> bool:
    try:
        return file.has_changed(os.stat(file.followed.path))  # noqa: PTH116 - a path is text here
    except OSError:
        file.is_gone = True
        return False


def _is_unmoved(file: _WatchedFile) -> bool:
    """Whether a file still lies where it lay."""
    try:
        status = os.stat(file.followed.path, follow_symlinks=False)  # noqa: PTH116 - a path is text here
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and (status.st_dev, status.st_ino) == file.identity


def _merge_by_time(found: list[list[FollowedEntry]]) -> list[FollowedEntry]:
    """The entries of several files by time; those of one file stay in its order, whatever times they tell."""
    if len(found) < 2:  # noqa: PLR2004 - nothing to put in order
        return found[0] if found else []
    return [one for _, one in merge(*map(_with_latest_time, found), key=lambda pair: pair[0])]


def _with_latest_time(entries: list[FollowedEntry]) -> Iterator[tuple[datetime, FollowedEntry]]:
    latest = _EARLIEST
    for followed_entry in entries:
        latest = max(latest, followed_entry[1].timestamp or latest)
        yield latest, followed_entry


_SEARCH = 1.0
"""Seconds between two searches for a transcript that is not where it was."""
_FileStates = dict[str, tuple[int, int]]


class ShrinkDetector:
    """Remembers how large the transcripts are that somebody looks at."""

    def __init__(self, homes: Sequence[Home]) -> None:
        self._tops = [os.path.join(home.path, PROJECTS) for home in homes]  # noqa: PTH118 - paths are text here
        self._known: dict[str, _FileStates | None] = {}
        self._next_search = 0.0

    def look(self, sessions: Collection[str]) -> list[str]:
        """Of these sessions, those that have lost something since the last look, or are back again."""
        now = monotonic()
        may_search = now >= self._next_search
        if may_search:
            self._next_search = now + _SEARCH
        self._known = {session: self._known.get(session) for session in sessions}
        return [session for session in sessions if self._has_shrunk(session, may_search=may_search)]

    def _has_shrunk(self, session: str, *, may_search: bool) -> bool:
        before = self._known[session]
        now = _stat_files(before or ())
        if not now and may_search:
            now = _stat_files(self._places(session))
        self._known[session] = now
        if not before:  # looked at for the first time, or gone when it was
            return before is not None and bool(now)
        return any(_is_smaller(state, now.get(path)) for path, state in before.items())

    def _places(self, session: str) -> Iterator[str]:
        """Where a transcript of that name may lie."""
        if parse_session_id(session) != session:  # it comes from an address, and must not lead anywhere else
            return
        for top in self._tops:
            with suppress(OSError), os.scandir(top) as folders:
                yield from [os.path.join(folder.path, f"{session}.jsonl") for folder in folders]  # noqa: PTH118 - text


def _stat_files(paths: Iterable[str]) -> _FileStates:
    found: _FileStates = {}
    for path in paths:
        with suppress(OSError, ValueError):
            status = os.stat(path)  # noqa: PTH116 - a path is text here
            found[path] = status.st_ino, status.st_size
    return found


def _is_smaller(before: tuple[int, int], now: tuple[int, int] | None) -> bool:
    return now is None or now[0] != before[0] or now[1] < before[1]
