"""All that lies in one home, listed without opening or changing any of it."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from threadline.errors import NotFound
from threadline.find.home_places import homes
from threadline.find.links import real_projects, target
from threadline.find.projects import projects
from threadline.find.side_files import (
    BY_NAME_ONLY,
    PROJECTS,
    is_entered,
    is_put_aside,
    is_secret,
    kind_of,
    session_of,
)
from threadline.find.transcripts import SUFFIX, is_transcript, transcript
from threadline.find.walk import Seen, Walk
from threadline.model.found import Found, Home, SideFile, SideFileKind, Transcript
from threadline.model.problem import Problem

_CONFIG = ".claude.json"
_META = ".meta.json"
# What a look without side files lists below `projects/`.
_SESSIONS_INDEX = "sessions-index.json"
_TELLING = (SUFFIX, _META, _SESSIONS_INDEX)  # and transcripts in capitals, which are few


def look(home: Home | Path | str, *, side_files: bool = True) -> Found:
    """List the projects, transcripts and side files of a home (or of the home at a path), each sorted by its path.

    Without `side_files`, only those that lie in the home itself and tell of projects are listed, in half the time.

    Raises:
        NotFound: the home is not there (any more).
    """
    if not isinstance(home, Home):
        home = homes(home)[0]
    looking = _Look(home, _top(home), side_files=side_files)
    looking.everywhere()
    return looking.found()


class ByName(Struct, frozen=True):
    """What lies in a home, and of each file its path below the home, as names lead to it there: through links, too."""

    found: Found
    paths: dict[Path, str]


def look_by_name(home: Home) -> ByName:
    """What `look` gives, and what the home calls each file: that of a link may really lie anywhere.

    Raises:
        NotFound: the home is not there (any more).
    """
    looking = _Look(home, _top(home), side_files=True)
    looking.everywhere()
    return ByName(looking.found(), {Path(path): "/".join(parts) for path, (parts, _) in looking.files.items()})


def look_again(home: Home, transcripts: Iterable[Transcript], problems: Iterable[Problem] = ()) -> Found:
    """What `look` without side files gives, of a home whose transcripts are known: no project's folder is listed.

    `problems` are what was told when they became known.
    """
    top = os.path.realpath(home.path)
    looking = _Look(home, top, side_files=False)
    looking.top_only()
    return looking.made(list(transcripts), [*problems])


def _top(home: Home) -> str:
    top = os.path.realpath(home.path)
    if not os.path.isdir(top):  # noqa: PTH112 - Path.is_dir raises where a parent may not be entered
        raise NotFound(f"There is no directory {str(home.path)!r}; name one that Claude Code writes to.")
    return top


def side_file_counts(home: Home) -> SideFileCounts:
    """How many side files of each kind `look` lists, and what it could not look at, at a fraction of the cost.

    No file is asked for its size, and no object is made of it.

    Raises:
        NotFound: the home is not there (any more).
    """
    top = _top(home)
    counting = _Counting(home, top, side_files=True)
    counting.everywhere()
    if not counting.is_refused:
        return SideFileCounts(counting.counts(), tuple(counting.walk.problems))
    looking = _Look(home, top, side_files=True)
    looking.everywhere()
    counts = Counter(str(side.kind) for side in looking.found().side_files)
    return SideFileCounts(dict(counts), tuple(looking.walk.problems))


class SideFileCounts(Struct, frozen=True):
    """How many side files there are of each kind, in the order of their paths; and what could not be looked at."""

    kinds: dict[str, int]
    problems: tuple[Problem, ...]


class _Look:
    """One look at one home, while it lasts."""

    def __init__(self, home: Home, top: str, *, side_files: bool) -> None:
        self.home = home
        self.side_files = side_files
        self.top = top
        self.walk = Walk()
        self.folders: set[str] = set()
        self.not_entered: list[Path] = []
        self.directories: dict[str, Path] = {}
        self.files: dict[str, tuple[tuple[str, ...], os.stat_result | None]] = {}

    def everywhere(self) -> None:
        """Gather every file of the home by its real path; links come last, for their targets win."""
        tops: dict[str, tuple[str, ...]] = {self.top: ()}
        if moved := real_projects(self.top):
            tops[moved] = (PROJECTS,)
        links = []
        for top, parts in tops.items():
            for seen in self.walk.below(top, parts, self._enter):
                if not seen.is_link:
                    self._file(seen)
                elif seen.parts != (PROJECTS,) or not moved:
                    links.append(seen)
        self._global_config()
        for seen in sorted(links, key=lambda link: link.parts):
            self._link(seen, tops)

    def top_only(self) -> None:
        """Gather what lies in the home itself, the names of its projects' folders, and what those say of paths."""
        real = real_projects(self.top)
        for seen in self.walk.below(self.top, (), lambda _path, _parts: False):
            if not seen.is_link:
                self._file(seen)
        self._global_config()
        projects = real or os.path.join(self.top, PROJECTS)  # noqa: PTH118 - paths are text here
        for seen in self.walk.below(projects, (PROJECTS,), self._enter_no_folder):
            del seen
        for folder in self.folders:
            path = os.path.join(projects, folder, _SESSIONS_INDEX)  # noqa: PTH118 - the same
            try:
                status = os.lstat(path)
            except OSError:
                continue
            if stat.S_ISREG(status.st_mode):
                self.files[path] = ((PROJECTS, folder, _SESSIONS_INDEX), status)

    def _enter_no_folder(self, path: str, parts: tuple[str, ...]) -> bool:
        self._enter(path, parts)
        return False

    def found(self) -> Found:
        """Sort what was gathered into transcripts and side files, and make the projects."""
        transcripts = []
        side_files = []
        for path in sorted(self.files):
            parts, status = self.files[path]
            if status and parts[0] == PROJECTS and is_transcript(parts[-1]) and not is_put_aside(parts[2:]):
                transcripts.append(self._transcript(path, parts, status))
            elif self.side_files or not path.endswith(_META):
                size = status.st_size if status else 0
                side_files.append(SideFile(self._path(path), self.home, kind_of(parts), size, session_of(parts)))
        return self._found(transcripts, side_files, self.walk.problems)

    def made(self, transcripts: list[Transcript], problems: list[Problem]) -> Found:
        """The same with transcripts that are known."""
        side_files = [
            SideFile(self._path(path), self.home, kind_of(parts), status.st_size if status else 0, session_of(parts))
            for path, (parts, status) in sorted(self.files.items())
        ]
        return self._found(transcripts, side_files, problems)

    def _found(self, transcripts: list[Transcript], side_files: list[SideFile], told: list[Problem]) -> Found:
        made, problems = projects(self.home, self.folders, transcripts, side_files)
        problems += told
        return Found(
            home=self.home,
            projects=tuple(made),
            transcripts=tuple(transcripts),
            side_files=tuple(side_files),
            problems=tuple(sorted(problems, key=lambda problem: (problem.place, problem.kind))),
            not_entered=tuple(sorted(self.not_entered, key=str)),
        )

    def _enter(self, path: str, parts: tuple[str, ...]) -> bool:
        if not self.side_files and (parts[0] != PROJECTS or is_put_aside((*parts[2:], ""))):
            return False
        if len(parts) == 1 and not is_entered(parts[0]):
            self.not_entered.append(Path(path))
            return False
        if len(parts) == 2 and parts[0] == PROJECTS:  # noqa: PLR2004 - projects/<folder>
            self.folders.add(parts[1])
        return True

    def _file(self, seen: Seen) -> None:
        path = seen.entry.path
        is_telling = path.endswith(_TELLING) or is_transcript(seen.parts[-1])
        if not self.side_files and seen.parts[0] == PROJECTS and not is_telling:
            return
        if _by_name_only(seen.parts):
            self.files[path] = (seen.parts, None)
            return
        try:
            self.files[path] = (seen.parts, seen.entry.stat(follow_symlinks=False))
        except OSError as error:
            self.walk.unreadable(path, error)

    def _link(self, seen: Seen, tops: dict[str, tuple[str, ...]]) -> None:
        path = seen.entry.path
        if _by_name_only(seen.parts):
            self.files[path] = (seen.parts, None)
            return
        try:
            led = target(path, tops)
        except OSError as error:
            self.walk.unreadable(path, error)
            return
        if led.refusal:
            self.walk.skip(path, led.refusal)
        elif led.path not in self.files:
            self.files[led.path] = (seen.parts, led.status)

    def _global_config(self) -> None:
        """List the configuration that lies beside a home called `.claude`, not in it."""
        home = Path(self.top)
        if home.name != ".claude":
            return
        path = home.with_name(_CONFIG)
        try:
            status = path.lstat()
        except OSError as error:
            self.walk.unreadable(str(path), error)
            return
        if stat.S_ISREG(status.st_mode):
            self.files[str(path)] = ((_CONFIG,), status)
        else:
            self.walk.skip(str(path), "not a regular file")

    def _transcript(self, path: str, parts: tuple[str, ...], status: os.stat_result) -> Transcript:
        meta = path[: -len(SUFFIX)] + _META
        folder = parts[1] if len(parts) > 2 else ""  # noqa: PLR2004 - projects/<folder>/<file>
        beside = Path(meta) if meta in self.files else None
        return transcript(self._path(path), self.home, folder, status, parts[2:] or parts[1:], meta=beside)

    def _path(self, text: str) -> Path:
        """Make a path by joining, which takes half the time of taking the whole text apart."""
        directory, _, name = text.rpartition(os.sep)
        if directory not in self.directories:
            self.directories[directory] = Path(directory + os.sep)
        return self.directories[directory] / name


class _Counting(_Look):
    """A look that asks one file of each directory alone; `is_refused` is whether the machine refused to tell.

    A directory that may be listed and not entered refuses all of its files.
    """

    is_refused = False
    _asked = ""

    def _file(self, seen: Seen) -> None:
        path = seen.entry.path
        directory = path[: -len(seen.entry.name)]
        if directory != self._asked and not _by_name_only(seen.parts):
            self._asked = directory
            try:
                seen.entry.stat(follow_symlinks=False)
            except OSError:
                self.is_refused = True
        self.files[path] = (seen.parts, None)

    def counts(self) -> dict[str, int]:
        """The number of each kind; the kind whose file comes first is first."""
        number: Counter[SideFileKind] = Counter()
        first: dict[SideFileKind, str] = {}
        for path, (parts, _status) in self.files.items():
            if (
                parts[0] == PROJECTS
                and is_transcript(parts[-1])
                and not is_put_aside(parts[2:])
                and not is_secret(parts)
            ):
                continue
            kind = kind_of(parts)
            number[kind] += 1
            if kind not in first or path < first[kind]:
                first[kind] = path
        return {str(kind): number[kind] for kind in sorted(first, key=first.__getitem__)}


def _by_name_only(parts: tuple[str, ...]) -> bool:
    return is_secret(parts) or (len(parts) == 1 and kind_of(parts) in BY_NAME_ONLY)
