"""Walk the directories of a home without opening files or following links to directories.

`DirectoryWalk` is the only code that lists a home's directories. Like `os.walk`, it yields one directory at a time from
the top down, and the caller chooses which subdirectories to enter. `TranscriptWalk` uses it to list all transcripts of
a home as path and status, without creating an object for each.

A walk lists every directory again. Skipping those whose mtime is unchanged would save a third (13 ms instead of 21 for
3,000 transcripts in 1,240 directories), but needs a record of directories that can become stale.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from threadline.find.layout import (
    META_SUFFIX,
    NON_TRANSCRIPT_DIRS,
    PROJECTS,
    SESSIONS_INDEX,
    TRANSCRIPT_SUFFIX,
    is_non_transcript_path,
    is_secret_path,
    is_transcript_name,
    make_transcript,
    meta_path,
    parse_agent_id,
)
from threadline.model.homes import Home, Transcript, is_secret_name
from threadline.model.places import Place, Problem, ProblemKind

_SPECIAL_FILES: Final = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
)
_DEAD_LINK_REASONS: Final = {
    errno.ELOOP: "a link that leads in a circle",
    errno.ENOENT: "a link to something that is not there",
    errno.ENOTDIR: "a link to something that is not there",
}
_HAS_JUNCTIONS: Final = hasattr(os.DirEntry, "is_junction")
# How many entries are listed between two calls of `is_too_late`.
_DEADLINE_INTERVAL: Final = 256


class OutOfTime(Exception):
    """The deadline has passed before everything was listed."""


class Directory:
    """One listed directory; `parts` is its path below the top of the walk.

    `files` are regular files. `subdirectories` are entered next, in this order, unless the caller removes them from
    the list.
    """

    __slots__ = ("files", "links", "parts", "path", "subdirectories")

    def __init__(
        self,
        path: str,
        parts: tuple[str, ...],
        files: list[os.DirEntry[str]],
        links: list[os.DirEntry[str]],
        subdirectories: list[os.DirEntry[str]],
    ) -> None:
        self.path = path
        self.parts = parts
        self.files = files
        self.links = links
        self.subdirectories = subdirectories

    def skip_non_transcript_directories(self) -> None:
        """Do not enter directories that contain no transcripts; `parts` must start with the project's folder."""
        if self.parts and self.subdirectories:
            below = self.parts[1:]
            self.subdirectories = [
                entry
                for entry in self.subdirectories
                if entry.name not in NON_TRANSCRIPT_DIRS or not is_non_transcript_path((*below, entry.name, ""))
            ]


class DirectoryWalk:
    """Lists directories, and records what it could not look at.

    `problems` has everything that was skipped or refused. `refused` has the paths that the operating system would not
    show; nothing can be said about files there. A file that vanishes during the walk is not a problem.

    Paths are text, because a home can contain 100,000 files.
    """

    def __init__(self, *, is_too_late: Callable[[], bool] | None = None) -> None:
        self.problems: list[Problem] = []
        self.refused: list[str] = []
        self._is_too_late = is_too_late
        self._is_cut_short = False

    def walk(self, top: str, parts: tuple[str, ...] = ()) -> Iterator[Directory]:
        """Yield `top` and the directories below it, each before its subdirectories.

        Raises:
            OutOfTime: `is_too_late` returned True. What was listed until then has been yielded.
        """
        waiting = [(top, parts)]
        while waiting:
            path, above = waiting.pop()
            directory = self.scan(path, above)
            yield directory
            if self._is_cut_short:
                raise OutOfTime
            waiting.extend((entry.path, (*above, entry.name)) for entry in reversed(directory.subdirectories))

    def scan(self, path: str, parts: tuple[str, ...] = ()) -> Directory:
        """List one directory; it is empty if it is missing or cannot be listed."""
        files: list[os.DirEntry[str]] = []
        links: list[os.DirEntry[str]] = []
        subdirectories: list[os.DirEntry[str]] = []
        try:
            with os.scandir(path) as entries:
                for entry in entries if self._is_too_late is None else self._until_too_late(entries):
                    try:
                        if entry.is_file(follow_symlinks=False):  # True for most entries, False for a link
                            files.append(entry)
                        elif entry.is_symlink() or (_HAS_JUNCTIONS and entry.is_junction()):  # type: ignore[attr-defined, unused-ignore]
                            links.append(entry)
                        elif not entry.is_dir(follow_symlinks=False):
                            self._skip_special_file(entry)
                        elif is_transcript_name(entry.name):
                            self.skip(entry.path, "a directory with the name of a transcript")
                        else:
                            subdirectories.append(entry)
                    except OSError as error:
                        self.note_refused(entry.path, error)
        except OSError as error:
            self.note_refused(path, error)
        except ValueError:  # no file can have this name
            pass
        return Directory(path, parts, files, links, subdirectories)

    def _until_too_late(self, entries: Iterable[os.DirEntry[str]]) -> Iterator[os.DirEntry[str]]:
        for number, entry in enumerate(entries):
            if number % _DEADLINE_INTERVAL == 0 and self._is_too_late is not None and self._is_too_late():
                self._is_cut_short = True
                return
            yield entry

    def stat(self, entry: os.DirEntry[str]) -> os.stat_result | None:
        """Return the status of a listed file, or None if it is refused or has vanished."""
        try:
            return entry.stat(follow_symlinks=False)
        except OSError as error:
            self.note_refused(entry.path, error)
            return None

    def resolve_link(self, link: str, roots: Mapping[str, tuple[str, ...]]) -> tuple[str, os.stat_result] | None:
        """Return the real path and the status of the regular file that a link leads to.

        The file must be below one of `roots` (real directories, and their parts below the home) and not be a secret.
        Otherwise the link is recorded as a problem and None is returned.
        """
        try:
            status = Path(link).stat()
        except OSError as error:
            if error.errno in _DEAD_LINK_REASONS:
                self.skip(link, _DEAD_LINK_REASONS[error.errno])
            else:
                self.note_refused(link, error)
            return None
        path = os.path.realpath(link)
        parts = next((below for top in roots if (below := _parts_below(path, top, roots[top]))), None)
        if stat.S_ISDIR(status.st_mode):
            self.skip(link, "a link to a directory; directories are not followed")
        elif not stat.S_ISREG(status.st_mode):
            self.skip(link, "a link to something that is not a regular file")
        elif parts is None:
            self.skip(link, "a link to a file outside the home")
        elif is_secret_path(parts):
            self.skip(link, "a link to a secret")
        else:
            return path, status
        return None

    def skip(self, path: str, reason: str) -> None:
        """Record that something was skipped on purpose."""
        self.problems.append(Problem(ProblemKind.SKIPPED, Place(path), reason))

    def note_refused(self, path: str, error: OSError) -> None:
        """Record that the operating system refused; a path that vanished after it was listed is not recorded."""
        if not isinstance(error, FileNotFoundError):
            message = f"could not be looked at: {error.strerror or error}"
            self.problems.append(Problem(ProblemKind.UNREADABLE, Place(path), message))
            self.refused.append(path)

    def _skip_special_file(self, entry: os.DirEntry[str]) -> None:
        mode = entry.stat(follow_symlinks=False).st_mode
        self.skip(entry.path, next((name for test, name in _SPECIAL_FILES if test(mode)), "not a regular file"))


class HomeRoots:
    """The real directories of a home.

    Only `projects` may be a link to a directory. People move it to another disk, and Claude Code follows it.
    """

    def __init__(self, home: Home) -> None:
        self.top = os.path.realpath(home.path)
        moved = real_projects_dir(self.top)
        self.projects = moved or os.path.join(self.top, PROJECTS)  # noqa: PTH118 - paths are text
        self.is_moved = moved is not None
        self.parts: dict[str, tuple[str, ...]] = {self.top: ()}
        """Each root directory's path below the home."""
        if moved:
            self.parts[moved] = (PROJECTS,)

    @property
    def is_projects_refused(self) -> bool:
        """Whether `projects` is a link that is not followed."""
        return os.path.islink(self.projects)  # noqa: PTH114 - paths are text

    def project_folders(self) -> list[str]:
        """Return the sorted names of the project folders; empty if they cannot be listed."""
        return [] if self.is_projects_refused else list_project_folders(self.projects)


class TranscriptWalk:
    """One pass over the transcripts of a home; `problems` and `refused` are those of `DirectoryWalk`."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self._walk = DirectoryWalk()
        self.problems = self._walk.problems
        self.refused = self._walk.refused
        self._roots = HomeRoots(home)
        self._linked: dict[str, tuple[str, ...]] = {}

    def stats(self) -> Iterator[tuple[str, os.stat_result]]:
        """Yield each transcript's real path and status, in no order; those that only a link leads to come last."""
        if self._roots.is_projects_refused:
            yield from self._link_targets([self._roots.projects], set())
            return
        listed: set[str] = set()
        links: list[str] = []
        for directory in self._walk.walk(self._roots.projects):
            for entry in directory.files:
                name = entry.name
                # The first test is cheap and true for nearly all files. A secret's name can end in .jsonl only if it
                # starts with a dot.
                is_usual = name.endswith(TRANSCRIPT_SUFFIX) and name[0] != "."
                if is_usual or (is_transcript_name(name) and not is_secret_name(name)):
                    try:
                        status = entry.stat(follow_symlinks=False)
                    except OSError as error:
                        self._walk.note_refused(entry.path, error)
                        continue
                    path = entry.path
                    listed.add(path)
                    yield path, status
            if directory.links:
                links += [entry.path for entry in directory.links]
            directory.skip_non_transcript_directories()
        yield from self._link_targets(sorted(links), listed)

    def transcript(self, path: str, status: os.stat_result) -> Transcript:
        """Return the transcript at a path that was listed."""
        parts = self._linked.get(path) or self._parts(path)
        folder = parts[0] if len(parts) > 1 else ""
        return make_transcript(Path(path), self.home, folder, status, parts[1:] or parts, meta=find_meta(path))

    def _link_targets(self, links: list[str], listed: set[str]) -> Iterator[tuple[str, os.stat_result]]:
        for link in links:
            if is_secret_name(os.path.basename(link)):  # noqa: PTH119 - paths are text
                continue
            target = self._walk.resolve_link(link, self._roots.parts)
            if target is None or target[0] in listed or not is_transcript_name(link) or self._is_side_file(target[0]):
                continue
            listed.add(target[0])
            self._linked[target[0]] = self._parts(link)
            yield target

    def _is_side_file(self, path: str) -> bool:
        """Whether `look` lists a file as a side file, under its own name."""
        return path.endswith((META_SUFFIX, SESSIONS_INDEX)) or os.path.dirname(path) == self._roots.top  # noqa: PTH120 - text

    def _parts(self, path: str) -> tuple[str, ...]:
        return Path(path[len(self._roots.projects) + 1 :]).parts


def stat_transcripts(home: Home) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the real path and the status of every transcript of a home, in no order."""
    return TranscriptWalk(home).stats()


def find_meta(path: str) -> Path | None:
    """Return the `.meta.json` beside an agent's transcript, if it is a regular file and not a link."""
    if parse_agent_id(os.path.basename(path)) is None:  # noqa: PTH119 - paths are text
        return None
    meta = meta_path(path)
    return Path(meta) if is_regular_file(meta) else None


def is_regular_file(path: str | os.PathLike[str]) -> bool:
    """Whether this is a regular file and not a link, which may lead to a secret."""
    # `Path.is_file` raises if the name is longer than names may be.
    return os.path.isfile(path) and not os.path.islink(path)  # noqa: PTH113, PTH114


def is_directory(path: str | os.PathLike[str]) -> bool:
    """Whether this is a directory and not a link; directories are not followed."""
    # `Path.is_dir` raises if a parent may not be entered.
    return os.path.isdir(path) and not os.path.islink(path)  # noqa: PTH112, PTH114


def list_project_folders(projects: str | os.PathLike[str]) -> list[str]:
    """Return the sorted names of the project folders in a `projects` directory; empty if it cannot be listed."""
    return sorted(entry.name for entry in DirectoryWalk().scan(os.fspath(projects)).subdirectories)


def real_projects_dir(top: str) -> str | None:
    """Return the real path of a home's `projects` directory if that is a link which may be followed, else None.

    A link to a directory that contains the home is not followed: it would make a whole disk a project.
    """
    path = Path(top, PROJECTS)
    real = os.path.realpath(path)
    try:
        is_link = path.is_symlink() and path.is_dir()
    except OSError:
        return None  # the walk reports the refusal
    return real if is_link and top != real and _parts_below(top, real, ()) is None else None


def _parts_below(path: str, top: str, above: tuple[str, ...]) -> tuple[str, ...] | None:
    start = top if top.endswith(os.sep) else top + os.sep
    return (*above, *Path(path[len(start) :]).parts) if path.startswith(start) else None
