"""Transcripts followed as they grow: whatever is written to any of them, in the order of time, each line once.

Nothing but looking often: at the status of files that changed lately a few times a second, and at that of all others as
often as a share of one core allows. Directories tell of new files by their own time of change.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from heapq import merge, nlargest
from pathlib import Path

from threadline.errors import Error
from threadline.find.links import real_projects
from threadline.find.side_files import PROJECTS, is_put_aside
from threadline.find.transcripts import agent_id, is_transcript, transcript
from threadline.model.entries import Entry
from threadline.model.found import Home, Transcript, TranscriptKind
from threadline.model.ids import SessionId
from threadline.survey.followed import Followed

Followable = tuple[Transcript, Entry]
"""An entry, and the transcript it was written to."""

# What looking at everything may take of one core, and the least and most seconds between two such looks.
_SHARE = 0.008
_OFTEN, _SELDOM = 0.25, 10.0
# As many of the files and folders that changed last are looked at each time.
_NEWEST = 96
# A time of change this young may be that of a later change, too: clocks of file systems tick slowly.
_TICK_NS = 100_000_000
# Bytes that one poll reads at most.
_MOST = 32 * 1024 * 1024
_NEVER = -1
_START = datetime.min.replace(tzinfo=UTC)
# What Claude Code writes to when a session is taken up, however old its transcript is.
_SIGNS = ("history.jsonl", "sessions")


class _Folder:
    """A directory in which transcripts may lie; `folder` is None for `projects` itself."""

    __slots__ = ("below", "folder", "home", "mtime_ns", "path")

    def __init__(self, path: str, home: Home, folder: str | None, below: tuple[str, ...]) -> None:
        self.path = path
        self.home = home
        self.folder = folder
        self.below = below
        self.mtime_ns = _NEVER


class _File:
    """A transcript, and what its status was when it was last read."""

    __slots__ = ("backlog", "followed", "identity", "is_gone", "is_recent", "mtime_ns", "size", "transcript")

    def __init__(self, transcript: Transcript, followed: Followed, status: os.stat_result) -> None:
        self.transcript = transcript
        self.followed = followed
        self.identity = (status.st_dev, status.st_ino)
        self.size = _NEVER
        self.mtime_ns = _NEVER
        self.is_gone = False
        # How much of it was there when following began and is looked through, and whether what comes is recent enough.
        self.backlog = 0
        self.is_recent = False

    def note(self, status: os.stat_result) -> None:
        """Remember a status; one that is too young to be relied on, so that it is looked at again."""
        self.identity = (status.st_dev, status.st_ino)
        self.size = status.st_size
        self.mtime_ns = _settled(status)

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
        self._folders: dict[str, _Folder] = {}
        self._files: dict[str, _File] = {}
        self._by_identity: dict[tuple[int, int], str] = {}
        self._by_name: dict[tuple[str | None, str | None], str] = {}
        self._tops = list(_tops(homes, path))
        self._signs = {os.path.join(home.path, name): _NEVER for home in homes for name in _SIGNS}  # noqa: PTH118 - text
        self._hot_files: list[_File] = []
        self._hot_folders: list[_Folder] = []
        self._next_look = 0.0
        self._is_started = False
        self._changed_signs()
        self._look_everywhere()
        self._is_started = True

    @property
    def is_behind(self) -> bool:
        """Whether more is there than the last poll could give: poll again at once."""
        return any(file.followed.is_behind for file in self._hot_files)

    @property
    def transcripts(self) -> int:
        """How many transcripts are followed."""
        return sum(not file.is_gone for file in self._files.values())

    def poll(self, *, everything: bool = False) -> list[Followable]:
        """What was written since the last poll. `everything`: look at all files, however long they have been still."""
        signs = self._changed_signs()
        if everything or signs or time.monotonic() >= self._next_look:
            self._look_everywhere()
        else:
            self._look_into(self._hot_folders)
        left = _MOST
        found: list[list[Followable]] = []
        for file in self._hot_files:
            if left <= 0:
                file.followed.is_behind = True
                continue
            news = self._news(file, left)
            left -= sum(len(entry.line.raw) for _, entry in news)
            if news:
                found.append(news)
        return _in_order(found)

    def _news(self, file: _File, most: int) -> list[Followable]:
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

    def _wanted(self, file: _File, entries: Iterable[Entry]) -> Iterator[Entry]:
        session, since = self._session, self._since
        is_told_inside = session is not None and file.transcript.session is None and self._only is None
        for entry in entries:
            if is_told_inside and (entry.session_id or "").lower() != session:
                continue
            if since is not None and entry.line.offset < file.backlog:
                when = entry.timestamp
                file.is_recent = file.is_recent if when is None else when >= since
                if not file.is_recent:
                    continue
            yield entry

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
        """Look at every folder and file, and choose those that the next polls will look at."""
        began = time.thread_time()
        for top in self._tops:
            self._folders.setdefault(top.path, top)
        self._look_into(list(self._folders.values()))
        there = [file for file in self._files.values() if not file.is_gone]
        changed = [file for file in there if file.followed.is_behind or _is_changed(file)]
        newest = nlargest(_NEWEST, there, key=lambda file: file.mtime_ns)
        self._hot_files = list({id(file): file for file in (*changed, *newest)}.values())
        hot = nlargest(_NEWEST, self._folders.values(), key=_age)
        self._hot_folders = list({folder.path: folder for folder in (*self._tops, *hot)}.values())
        cost = time.thread_time() - began
        self._next_look = time.monotonic() + min(_SELDOM, max(_OFTEN, cost / _SHARE))

    def _look_into(self, folders: Iterable[_Folder]) -> None:
        """List again the folders that have changed, and those that are new in them."""
        waiting = list(folders)
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
                folder.mtime_ns = _settled(status)
                with suppress(OSError), os.scandir(folder.path) as entries:
                    waiting += self._listed(folder, list(entries))

    def _listed(self, folder: _Folder, entries: list[os.DirEntry[str]]) -> Iterator[_Folder]:
        """Take up the transcripts in a folder, and give the folders in it that are new."""
        for entry in entries:
            if entry.path in self._folders or not self._is_followed(folder, entry.name):
                continue
            with suppress(OSError):
                if is_transcript(entry.name):
                    self._take_up(folder, entry)
                elif entry.is_dir(follow_symlinks=False):
                    name = entry.name if folder.folder is None else folder.folder
                    below = () if folder.folder is None else (*folder.below, entry.name)
                    if not is_put_aside((*below, "")):
                        self._folders[entry.path] = new = _Folder(entry.path, folder.home, name, below)
                        yield new

    def _is_followed(self, folder: _Folder, name: str) -> bool:
        """Of the folder that one named transcript lies in, only what may be its session's."""
        return self._only is None or bool(folder.below) or name in {self._only.name, self._only.stem}

    def _take_up(self, folder: _Folder, entry: os.DirEntry[str]) -> None:
        known = self._files.get(entry.path)
        if known is not None:
            if known.is_gone:
                known.is_gone = False
                self._hot_files.append(known)
            return
        if not entry.is_file(follow_symlinks=False):
            return
        status = entry.stat(follow_symlinks=False)
        found = transcript(Path(entry.path), folder.home, folder.folder or "", status, (*folder.below, entry.name))
        if not self._is_of_session(found):
            return
        file = _File(found, self._followed(found, status), status)
        if not self._is_started:
            self._begin(file, status)
        else:
            self._hot_files.append(file)
        self._files[entry.path] = file
        self._by_identity[file.identity] = entry.path
        if found.agent is not None or found.kind is TranscriptKind.MAIN:
            self._by_name[found.session, found.agent] = entry.path

    def _is_of_session(self, found: Transcript) -> bool:
        if self._session is None or self._only is not None or found.session == self._session:
            return True
        return found.session is None and agent_id(found.path.name) is not None  # its entries will tell

    def _begin(self, file: _File, status: os.stat_result) -> None:
        """Of what is there when following begins, only what is recent enough is news."""
        if self._since is not None and status.st_mtime_ns >= self._since.timestamp() * 1e9:
            file.backlog = status.st_size
        else:
            file.followed.skip()
            file.note(status)

    def _followed(self, found: Transcript, status: os.stat_result) -> Followed:
        """What is known of a file that was not there before: it may be one that was moved, or copied elsewhere."""
        path = str(found.path)
        if not self._is_started:
            return Followed(path)
        # A name tells more than an inode, which may be that of a deleted file, used again.
        named = self._files.get(self._by_name.get((found.session, found.agent), ""))
        if named is not None and (found.session or found.agent):
            return named.followed.copy(path)
        before = self._files.get(self._by_identity.get((status.st_dev, status.st_ino), ""))
        if before is not None and not _is_still(before):
            return before.followed.copy(path)
        return Followed(path)


def _tops(homes: Sequence[Home], path: Path | None) -> Iterator[_Folder]:
    if path is not None:
        directory = path.absolute().parent
        yield _Folder(str(directory), Home(directory, "path"), directory.name, ())
        return
    for home in homes:
        top = os.path.realpath(home.path)
        projects = real_projects(top) or os.path.join(top, PROJECTS)  # noqa: PTH118 - paths are text here
        yield _Folder(projects, home, None, ())


def _age(folder: _Folder) -> float:
    """For putting those that changed last at the end: one whose time is not settled has changed just now."""
    return float("inf") if folder.mtime_ns == _NEVER else folder.mtime_ns


def _settled(status: os.stat_result) -> int:
    return status.st_mtime_ns if status.st_mtime_ns < time.time_ns() - _TICK_NS else _NEVER


def _is_changed(file: _File) -> bool:
    try:
        return file.has_changed(os.stat(file.followed.path))  # noqa: PTH116 - a path is text here
    except OSError:
        file.is_gone = True
        return False


def _is_still(file: _File) -> bool:
    """Whether a file still lies where it lay."""
    try:
        status = os.stat(file.followed.path, follow_symlinks=False)  # noqa: PTH116 - a path is text here
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and (status.st_dev, status.st_ino) == file.identity


def _in_order(found: list[list[Followable]]) -> list[Followable]:
    """The entries of several files by time; those of one file stay in its order, whatever times they tell."""
    if len(found) < 2:  # noqa: PLR2004 - nothing to put in order
        return found[0] if found else []
    return [one for _, one in merge(*map(_timed, found), key=lambda pair: pair[0])]


def _timed(entries: list[Followable]) -> Iterator[tuple[datetime, Followable]]:
    latest = _START
    for one in entries:
        latest = max(latest, one[1].timestamp or latest)
        yield latest, one
