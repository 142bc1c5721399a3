"""List everything in a home: projects, transcripts and side files."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from threadline.errors import NotFound
from threadline.find.home_dirs import homes
from threadline.find.layout import (
    META_SUFFIX,
    NEVER_OPENED,
    PROJECTS,
    SESSIONS_INDEX,
    TRANSCRIPT_SUFFIX,
    is_non_transcript_path,
    is_scanned_directory,
    is_secret_path,
    is_transcript_name,
    is_transcript_path,
    make_transcript,
    meta_path,
    session_in_path,
    side_file_kind,
)
from threadline.find.project_paths import resolve_projects
from threadline.find.walk import Directory, DirectoryWalk, HomeRoots, is_regular_file
from threadline.model.homes import Found, Home, SideFile, SideFileKind, Transcript
from threadline.model.places import Problem

_CONFIG = ".claude.json"
_LIVE_SESSIONS = "sessions"
# The files below `projects` that a listing without side files needs. Transcripts in capitals are tested separately.
_MINIMAL_SUFFIXES = (TRANSCRIPT_SUFFIX, META_SUFFIX, SESSIONS_INDEX)


def look(home: Home | Path | str, *, side_files: bool = True) -> Found:
    """List the projects, transcripts and side files of a home (or of the home at a path), each sorted by path.

    Without `side_files`, only the side files that help to find the projects' paths are listed. That takes half the
    time.

    Raises:
        NotFound: the home does not exist (any more).
    """
    if not isinstance(home, Home):
        home = homes(home)[0]
    listing = _HomeListing(home, side_files=side_files)
    listing.gather()
    return listing.found()


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
    return NamedListing(listing.found(), paths)


def look_with_known_transcripts(
    home: Home, transcripts: Iterable[Transcript], problems: Iterable[Problem] = ()
) -> Found:
    """Return what `look` without side files returns, for a home whose transcripts are known.

    No project folder is listed. `problems` are those met when the transcripts were listed.
    """
    listing = _HomeListing(home, side_files=False)
    listing.gather_top_level()
    return listing.found(list(transcripts), list(problems))


class SideFileCounts(Struct, frozen=True):
    """The number of side files of each kind, in the order of their paths, and what could not be looked at."""

    kinds: dict[str, int]
    problems: tuple[Problem, ...]


def count_side_files(home: Home) -> SideFileCounts:
    """Count the side files that `look` lists, and return its problems, at a fraction of the cost.

    No file is asked for its size, and no object is created for it.

    Raises:
        NotFound: the home does not exist (any more).
    """
    counter = _SideFileCounter(home)
    counter.gather()
    if not counter.is_refused:
        return SideFileCounts(counter.counts(), tuple(counter.walk.problems))
    listing = _HomeListing(home)
    listing.gather()
    counts = Counter(str(side.kind) for side in listing.found().side_files)
    return SideFileCounts(dict(counts), tuple(listing.walk.problems))


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

    def found(
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
        projects, problems = resolve_projects(self.home, self._folders, transcripts, side_files)
        problems += self.walk.problems if listing_problems is None else listing_problems
        return Found(
            home=self.home,
            projects=tuple(projects),
            transcripts=tuple(transcripts),
            side_files=tuple(side_files),
            problems=tuple(sorted(problems, key=lambda problem: (problem.place, problem.kind))),
            not_entered=tuple(sorted(self._not_entered, key=str)),
        )

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
        path = home.with_name(_CONFIG)
        try:
            status = path.lstat()
        except OSError as error:
            self.walk.note_refused(str(path), error)
            return
        if stat.S_ISREG(status.st_mode):
            self.files[str(path)] = ((_CONFIG,), status)
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
    for entry in sorted(walk.scan(folder).files, key=lambda entry: entry.name):
        status = walk.stat(entry)
        if status is not None and side_file_kind((_LIVE_SESSIONS, entry.name)) is SideFileKind.LIVE_SESSION:
            yield SideFile(Path(entry.path), home, SideFileKind.LIVE_SESSION, status.st_size)


def drop_shared_transcripts(homes: Iterable[Found]) -> Iterator[Found]:
    """Yield each home without the transcripts that a home before it has, and without projects that have none left."""
    homes = list(homes)
    if len(homes) == 1:
        yield from homes
        return
    paths: set[str] = set()
    for home in homes:
        own = tuple(transcript for transcript in home.transcripts if str(transcript.path) not in paths)
        if len(own) == len(home.transcripts):
            yield home
        else:
            folders = {transcript.folder for transcript in own}
            projects = tuple(project for project in home.projects if project.folder in folders)
            yield replace(home, transcripts=own, projects=projects)
        paths.update(str(transcript.path) for transcript in own)
