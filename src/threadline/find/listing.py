"""List what is in a home: directories, projects, transcripts and side files, without opening files."""

from __future__ import annotations

import errno
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from threadline.errors import Ambiguous, NotFound
from threadline.find.home_dirs import homes
from threadline.find.layout import (
    CONFIG_NAME,
    META_SUFFIX,
    NEVER_OPENED,
    NON_TRANSCRIPT_DIRS,
    PROJECTS,
    SESSIONS_INDEX,
    TRANSCRIPT_SUFFIX,
    is_non_transcript_path,
    is_scanned_directory,
    is_transcript_name,
    is_transcript_path,
    make_transcript,
    meta_path,
    parse_transcript_name,
    session_in_path,
    side_file_kind,
)
from threadline.home_files import is_allowed_target, is_secret_name, is_secret_path, real_projects_dir
from threadline.model.homes import ARCHIVE_SOURCE, Found, Home, SideFile, SideFileKind, Transcript
from threadline.model.places import Place, Problem, ProblemKind

_SPECIAL_FILES: Final = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
)
_DEAD_LINK_REASONS: Final = {
    errno.ELOOP: "a circular link",
    errno.ENOENT: "a link to a missing file",
    errno.ENOTDIR: "a link to a missing file",
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
        elif parts is None and not is_allowed_target(path):
            self.skip(link, "a link to a file outside the home")
        elif is_secret_path(parts or (os.path.basename(path),)):  # noqa: PTH119 - paths are text
            self.skip(link, "a link to a secret")
        else:
            return path, status
        return None

    def skip_link(self, link: str) -> None:
        """Record that a link was not followed, and where it leads."""
        try:
            target = os.readlink(link)  # noqa: PTH115 - paths are text
        except OSError as error:
            self.note_refused(link, error)
        else:
            self.skip(link, f"a link to {target}; links of a session are not followed")

    def skip(self, path: str, reason: str) -> None:
        """Record that something was skipped on purpose."""
        self.problems.append(Problem(ProblemKind.SKIPPED, Place(path), reason))

    def note_refused(self, path: str, error: OSError) -> None:
        """Record that the operating system refused; a path that vanished after it was listed is not recorded."""
        if not isinstance(error, FileNotFoundError):
            message = f"could not be accessed: {error.strerror or error}"
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
        below = parts[1:] or parts
        return make_transcript(Path(path), self.home, folder, status, below, meta=find_meta(path, below))

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


def find_meta(path: str, below: Sequence[str]) -> Path | None:
    """Return the `.meta.json` beside an agent's transcript, if it is a regular file and not a link.

    `below` are the path's parts below the project's folder.
    """
    if parse_transcript_name(below).agent is None:
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


def _parts_below(path: str, top: str, above: tuple[str, ...]) -> tuple[str, ...] | None:
    start = top if top.endswith(os.sep) else top + os.sep
    return (*above, *Path(path[len(start) :]).parts) if path.startswith(start) else None


_LIVE_SESSIONS = "sessions"
# The files below `projects` that a listing without side files needs. Transcripts in capitals are tested separately.
_MINIMAL_SUFFIXES = (TRANSCRIPT_SUFFIX, META_SUFFIX, SESSIONS_INDEX)


def look(home: Home | Path | str, *, side_files: bool = True) -> Found:
    """List the projects, transcripts and side files of a home (or of the home at a path), each sorted by path.

    Without `side_files`, only the side files that help to find the projects' paths are listed. That takes half the
    time.

    Raises:
        NotFound: the home does not exist (any more).
        Ambiguous: the path is that of an archive with several homes.
    """
    if not isinstance(home, Home):
        home, *others = homes(home)
        if others:
            paths = ", ".join(repr(str(other.path)) for other in (home, *others))
            raise Ambiguous(f"The archive contains {len(others) + 1} homes. Name one of them: {paths}.")
    listing = _HomeListing(home, side_files=side_files)
    listing.gather()
    return listing.result()


class NamedListing(Struct, frozen=True):
    """What a home contains, and each file's path below the home, by its real path.

    The path below the home is the one with links in it; the real path of a linked file can be anywhere.
    """

    found: Found
    paths: dict[Path, str]


def look_with_names(home: Home) -> NamedListing:
    """Return what `look` returns, with each file's path below the home.

    Raises:
        NotFound: the home does not exist (any more).
    """
    listing = _HomeListing(home)
    listing.gather()
    paths = {Path(path): "/".join(parts) for path, (parts, _status) in listing.files.items()}
    return NamedListing(listing.result(), paths)


def look_with_known_transcripts(
    home: Home, transcripts: Iterable[Transcript], problems: Iterable[Problem] = ()
) -> Found:
    """Return what `look` without side files returns, for a home whose transcripts are known.

    No project folder is listed. `problems` are those met when the transcripts were listed.
    """
    listing = _HomeListing(home, side_files=False)
    listing.gather_top_level()
    return listing.result(list(transcripts), list(problems))


class SideFileCounts(Struct, frozen=True):
    """The number of side files of each kind, in the order of their paths, and what could not be looked at."""

    kinds: dict[str, int]
    problems: tuple[Problem, ...]
    not_entered: tuple[Path, ...] = ()


def count_side_files(home: Home) -> SideFileCounts:
    """Count the side files that `look` lists, and return its problems, at a fraction of the cost.

    No file is asked for its size, and no object is created for it.

    Raises:
        NotFound: the home does not exist (any more).
    """
    counter = _SideFileCounter(home)
    counter.gather()
    if not counter.is_refused:
        return SideFileCounts(counter.counts(), tuple(counter.walk.problems), counter.not_entered)
    listing = _HomeListing(home)
    listing.gather()
    counts = Counter(str(side.kind) for side in listing.result().side_files)
    return SideFileCounts(dict(counts), tuple(listing.walk.problems), listing.not_entered)


class _HomeListing:
    """Gathers the files of one home by real path, then sorts them into transcripts and side files."""

    def __init__(self, home: Home, *, side_files: bool = True) -> None:
        self.home = home
        self.walk = DirectoryWalk()
        self.files: dict[str, tuple[tuple[str, ...], os.stat_result | None]] = {}
        self._has_side_files = side_files
        self._roots = HomeRoots(home)
        self._folders: set[str] = set()
        self._not_entered: list[Path] = []
        self._directories: dict[str, Path] = {}

    def gather(self) -> None:
        """Gather every file. Links come last, because a file that a link leads to may have been listed itself.

        Raises:
            NotFound: the home does not exist (any more).
        """
        if not os.path.isdir(self._roots.top):  # noqa: PTH112 - Path.is_dir raises if a parent may not be entered
            raise NotFound(f"There is no directory {str(self.home.path)!r}. Name one that Claude Code writes to.")
        links: list[tuple[tuple[str, ...], str]] = []
        for root, parts in self._roots.parts.items():
            for directory in self.walk.walk(root, parts):
                self._gather_files(directory)
                links += [((*directory.parts, entry.name), entry.path) for entry in directory.links]
                directory.subdirectories = [
                    entry
                    for entry in directory.subdirectories
                    if self._is_entered(entry.path, (*directory.parts, entry.name))
                ]
        self._gather_global_config()
        for link, path in sorted(links):
            if link != (PROJECTS,) or not self._roots.is_moved:
                self._gather_link(link, path)

    def gather_top_level(self) -> None:
        """Gather the files in the home itself, the names of the project folders, and their sessions indexes."""
        self._gather_files(self.walk.scan(self._roots.top))
        self._gather_global_config()
        self._folders.update(self._roots.project_folders())
        for folder in self._folders:
            path = os.path.join(self._roots.projects, folder, SESSIONS_INDEX)  # noqa: PTH118 - paths are text
            if is_regular_file(path):
                try:
                    self.files[path] = ((PROJECTS, folder, SESSIONS_INDEX), os.lstat(path))
                except OSError:
                    continue

    def result(
        self, transcripts: list[Transcript] | None = None, listing_problems: Sequence[Problem] | None = None
    ) -> Found:
        """Return everything that was gathered; `transcripts` and their problems if they are known already."""
        listed: list[Transcript] = []
        side_files: list[SideFile] = []
        for path in sorted(self.files):
            parts, status = self.files[path]
            if transcripts is None and status is not None and is_transcript_path(parts):
                listed.append(self._transcript(path, parts, status))
            elif self._has_side_files or not path.endswith(META_SUFFIX):
                size = status.st_size if status else 0
                side_files.append(
                    SideFile(self._path(path), self.home, side_file_kind(parts), size, session_in_path(parts))
                )
        transcripts = listed if transcripts is None else transcripts
        from threadline.find.project_paths import resolve_projects  # noqa: PLC0415 - not needed to detect changes

        projects, problems = resolve_projects(self.home, self._folders, transcripts, side_files)
        problems += self.walk.problems if listing_problems is None else listing_problems
        if self.home.source == ARCHIVE_SOURCE:
            from threadline.find.home_copies import list_skipped  # noqa: PLC0415 - only archives need it

            problems += list_skipped(self.home)
        return Found(
            home=self.home,
            projects=tuple(projects),
            transcripts=tuple(transcripts),
            side_files=tuple(side_files),
            problems=tuple(sorted(problems, key=lambda problem: (problem.place, problem.kind))),
            not_entered=self.not_entered,
        )

    @property
    def not_entered(self) -> tuple[Path, ...]:
        """The directories that were not searched."""
        return tuple(sorted(self._not_entered, key=str))

    def _is_entered(self, path: str, parts: tuple[str, ...]) -> bool:
        if not self._has_side_files and (parts[0] != PROJECTS or is_non_transcript_path((*parts[2:], ""))):
            return False
        if len(parts) == 1 and not is_scanned_directory(parts[0]):
            self._not_entered.append(Path(path))
            return False
        if len(parts) == 2 and parts[0] == PROJECTS:  # noqa: PLR2004 - projects/<folder>
            self._folders.add(parts[1])
        return True

    def _gather_files(self, directory: Directory) -> None:
        is_minimal = not self._has_side_files and directory.parts[:1] == (PROJECTS,)
        for entry in directory.files:
            if is_minimal and not entry.name.endswith(_MINIMAL_SUFFIXES) and not is_transcript_name(entry.name):
                continue
            parts = (*directory.parts, entry.name)
            if _is_never_opened(parts):
                self.files[entry.path] = (parts, None)
            elif (status := self.walk.stat(entry)) is not None:
                self.files[entry.path] = (parts, status)

    def _gather_link(self, parts: tuple[str, ...], path: str) -> None:
        if _is_never_opened(parts):
            self.files[path] = (parts, None)
            return
        target = self.walk.resolve_link(path, self._roots.parts)
        if target is not None and target[0] not in self.files:
            self.files[target[0]] = (parts, target[1])

    def _gather_global_config(self) -> None:
        """Gather the configuration file that is beside a home called `.claude`, not in it."""
        home = Path(self._roots.top)
        if home.name != ".claude":
            return
        path = home.with_name(CONFIG_NAME)
        try:
            status = path.lstat()
        except OSError as error:
            self.walk.note_refused(str(path), error)
            return
        if stat.S_ISREG(status.st_mode):
            self.files[str(path)] = ((CONFIG_NAME,), status)
        else:
            self.walk.skip(str(path), "not a regular file")

    def _transcript(self, path: str, parts: tuple[str, ...], status: os.stat_result) -> Transcript:
        folder = parts[1] if len(parts) > 2 else ""  # noqa: PLR2004 - projects/<folder>/<file>
        meta = meta_path(path)
        meta_file = Path(meta) if meta in self.files else None
        return make_transcript(self._path(path), self.home, folder, status, parts[2:] or parts[1:], meta=meta_file)

    def _path(self, text: str) -> Path:
        """Make a path by joining it to its directory, which takes half the time of parsing the whole text."""
        directory, _, name = text.rpartition(os.sep)
        if directory not in self._directories:
            self._directories[directory] = Path(directory + os.sep)
        return self._directories[directory] / name


class _SideFileCounter(_HomeListing):
    """A listing that stats one file of each directory.

    A directory that may be listed but not entered refuses all of its files; then `is_refused` is True and the counts
    are not valid.
    """

    is_refused = False

    def _gather_files(self, directory: Directory) -> None:
        is_tested = False
        for entry in directory.files:
            parts = (*directory.parts, entry.name)
            if not is_tested and not _is_never_opened(parts):
                is_tested = True
                try:
                    entry.stat(follow_symlinks=False)
                except OSError:
                    self.is_refused = True
            self.files[entry.path] = (parts, None)

    def counts(self) -> dict[str, int]:
        """Return the number of side files of each kind, in the order of each kind's first path."""
        numbers: Counter[SideFileKind] = Counter()
        first_paths: dict[SideFileKind, str] = {}
        for path, (parts, _status) in self.files.items():
            if is_transcript_path(parts):
                continue
            kind = side_file_kind(parts)
            numbers[kind] += 1
            if kind not in first_paths or path < first_paths[kind]:
                first_paths[kind] = path
        return {str(kind): numbers[kind] for kind in sorted(first_paths, key=first_paths.__getitem__)}


def _is_never_opened(parts: tuple[str, ...]) -> bool:
    return is_secret_path(parts) or (len(parts) == 1 and side_file_kind(parts) in NEVER_OPENED)


def list_live_session_files(home: Home) -> Iterator[SideFile]:
    """Yield the files of a home that name its running sessions, sorted by path."""
    walk = DirectoryWalk()
    folder = os.path.join(os.path.realpath(home.path), _LIVE_SESSIONS)  # noqa: PTH118 - paths are text
    entries = walk.scan(folder).files if is_directory(folder) else []
    for entry in sorted(entries, key=lambda entry: entry.name):
        status = walk.stat(entry)
        if status is not None and side_file_kind((_LIVE_SESSIONS, entry.name)) is SideFileKind.LIVE_SESSION:
            yield SideFile(Path(entry.path), home, SideFileKind.LIVE_SESSION, status.st_size)


def drop_shared_transcripts(homes: Iterable[Found]) -> Iterator[Found]:
    """Yield each home without the transcripts that a home before it has, and without projects that have none left.

    Homes may have the same `projects`, through a link.
    """
    homes = list(homes)
    if len(homes) == 1:
        yield from homes
        return
    paths: set[str] = set()
    folders: set[str] = set()
    for home in homes:
        own = tuple(transcript for transcript in home.transcripts if str(transcript.path) not in paths)
        projects_folder = os.path.realpath(home.home.path / PROJECTS)
        if len(own) == len(home.transcripts) and projects_folder not in folders:
            yield home
        else:
            own_folders = {transcript.folder for transcript in own}
            projects = tuple(project for project in home.projects if project.folder in own_folders)
            yield replace(home, transcripts=own, projects=projects)
        paths.update(str(transcript.path) for transcript in own)
        folders.add(projects_folder)
