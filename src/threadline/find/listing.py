"""List everything in a home: projects, transcripts and side files."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from threadline.errors import NotFound
from threadline.find.home_dirs import homes
from threadline.find.layout import (
    NEVER_OPENED,
    PROJECTS,
    TRANSCRIPT_SUFFIX,
    is_non_transcript_path,
    is_scanned_directory,
    is_secret_path,
    is_transcript_name,
    make_transcript,
    session_in_path,
    side_file_kind,
)
from threadline.find.project_paths import resolve_projects
from threadline.find.walk import Walk, WalkedFile, real_projects_dir, resolve_link
from threadline.model.homes import Found, Home, SideFile, SideFileKind, Transcript
from threadline.model.places import Problem

_CONFIG = ".claude.json"
_META = ".meta.json"
# What a look without side files lists below `projects/`.
_SESSIONS_INDEX = "sessions-index.json"
_MINIMAL_ENDINGS = (TRANSCRIPT_SUFFIX, _META, _SESSIONS_INDEX)  # and transcripts in capitals, which are few


def look(home: Home | Path | str, *, side_files: bool = True) -> Found:
    """List the projects, transcripts and side files of a home (or of the home at a path), each sorted by its path.

    Without `side_files`, only those that lie in the home itself and tell of projects are listed, in half the time.

    Raises:
        NotFound: the home is not there (any more).
    """
    if not isinstance(home, Home):
        home = homes(home)[0]
    looking = _HomeListing(home, _real_home(home), side_files=side_files)
    looking.everywhere()
    return looking.found()


class NamedListing(Struct, frozen=True):
    """What lies in a home, and of each file its path below the home, as names lead to it there: through links, too."""

    found: Found
    paths: dict[Path, str]


def look_with_names(home: Home) -> NamedListing:
    """What `look` gives, and what the home calls each file: that of a link may really lie anywhere.

    Raises:
        NotFound: the home is not there (any more).
    """
    looking = _HomeListing(home, _real_home(home), side_files=True)
    looking.everywhere()
    return NamedListing(looking.found(), {Path(path): "/".join(parts) for path, (parts, _) in looking.files.items()})


def look_with_known_transcripts(
    home: Home, transcripts: Iterable[Transcript], problems: Iterable[Problem] = ()
) -> Found:
    """What `look` without side files gives, of a home whose transcripts are known: no project's folder is listed.

    `problems` are what was told when they became known.
    """
    top = os.path.realpath(home.path)
    looking = _HomeListing(home, top, side_files=False)
    looking.gather_top_level()
    return looking.made(list(transcripts), [*problems])


def _real_home(home: Home) -> str:
    top = os.path.realpath(home.path)
    if not os.path.isdir(top):  # noqa: PTH112 - Path.is_dir raises where a parent may not be entered
        raise NotFound(f"There is no directory {str(home.path)!r}; name one that Claude Code writes to.")
    return top


def count_side_files(home: Home) -> SideFileCounts:
    """How many side files of each kind `look` lists, and what it could not look at, at a fraction of the cost.

    No file is asked for its size, and no object is made of it.

    Raises:
        NotFound: the home is not there (any more).
    """
    top = _real_home(home)
    counting = _SideFileCounter(home, top, side_files=True)
    counting.everywhere()
    if not counting.is_refused:
        return SideFileCounts(counting.counts(), tuple(counting.walk.problems))
    looking = _HomeListing(home, top, side_files=True)
    looking.everywhere()
    counts = Counter(str(side.kind) for side in looking.found().side_files)
    return SideFileCounts(dict(counts), tuple(looking.walk.problems))


class SideFileCounts(Struct, frozen=True):
    """How many side files there are of each kind, in the order of their paths; and what could not be looked at."""

    kinds: dict[str, int]
    problems: tuple[Problem, ...]


class _HomeListing:
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
        if moved := real_projects_dir(self.top):
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

    def gather_top_level(self) -> None:
        """Gather what lies in the home itself, the names of its projects' folders, and what those say of paths."""
        real = real_projects_dir(self.top)
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
            if (
                status
                and parts[0] == PROJECTS
                and is_transcript_name(parts[-1])
                and not is_non_transcript_path(parts[2:])
            ):
                transcripts.append(self._transcript(path, parts, status))
            elif self.side_files or not path.endswith(_META):
                size = status.st_size if status else 0
                side_files.append(
                    SideFile(self._path(path), self.home, side_file_kind(parts), size, session_in_path(parts))
                )
        return self._found(transcripts, side_files, self.walk.problems)

    def made(self, transcripts: list[Transcript], problems: list[Problem]) -> Found:
        """The same with transcripts that are known."""
        side_files = [
            SideFile(
                self._path(path),
                self.home,
                side_file_kind(parts),
                status.st_size if status else 0,
                session_in_path(parts),
            )
            for path, (parts, status) in sorted(self.files.items())
        ]
        return self._found(transcripts, side_files, problems)

    def _found(self, transcripts: list[Transcript], side_files: list[SideFile], told: list[Problem]) -> Found:
        made, problems = resolve_projects(self.home, self.folders, transcripts, side_files)
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
        if not self.side_files and (parts[0] != PROJECTS or is_non_transcript_path((*parts[2:], ""))):
            return False
        if len(parts) == 1 and not is_scanned_directory(parts[0]):
            self.not_entered.append(Path(path))
            return False
        if len(parts) == 2 and parts[0] == PROJECTS:  # noqa: PLR2004 - projects/<folder>
            self.folders.add(parts[1])
        return True

    def _file(self, seen: WalkedFile) -> None:
        path = seen.entry.path
        is_telling = path.endswith(_MINIMAL_ENDINGS) or is_transcript_name(seen.parts[-1])
        if not self.side_files and seen.parts[0] == PROJECTS and not is_telling:
            return
        if _is_never_opened(seen.parts):
            self.files[path] = (seen.parts, None)
            return
        try:
            self.files[path] = (seen.parts, seen.entry.stat(follow_symlinks=False))
        except OSError as error:
            self.walk.note_unreadable(path, error)

    def _link(self, seen: WalkedFile, tops: dict[str, tuple[str, ...]]) -> None:
        path = seen.entry.path
        if _is_never_opened(seen.parts):
            self.files[path] = (seen.parts, None)
            return
        try:
            led = resolve_link(path, tops)
        except OSError as error:
            self.walk.note_unreadable(path, error)
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
            self.walk.note_unreadable(str(path), error)
            return
        if stat.S_ISREG(status.st_mode):
            self.files[str(path)] = ((_CONFIG,), status)
        else:
            self.walk.skip(str(path), "not a regular file")

    def _transcript(self, path: str, parts: tuple[str, ...], status: os.stat_result) -> Transcript:
        meta = path[: -len(TRANSCRIPT_SUFFIX)] + _META
        folder = parts[1] if len(parts) > 2 else ""  # noqa: PLR2004 - projects/<folder>/<file>
        beside = Path(meta) if meta in self.files else None
        return make_transcript(self._path(path), self.home, folder, status, parts[2:] or parts[1:], meta=beside)

    def _path(self, text: str) -> Path:
        """Make a path by joining, which takes half the time of taking the whole text apart."""
        directory, _, name = text.rpartition(os.sep)
        if directory not in self.directories:
            self.directories[directory] = Path(directory + os.sep)
        return self.directories[directory] / name


class _SideFileCounter(_HomeListing):
    """A look that asks one file of each directory alone; `is_refused` is whether the machine refused to tell.

    A directory that may be listed and not entered refuses all of its files.
    """

    is_refused = False
    _asked = ""

    def _file(self, seen: WalkedFile) -> None:
        path = seen.entry.path
        directory = path[: -len(seen.entry.name)]
        if directory != self._asked and not _is_never_opened(seen.parts):
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
                and is_transcript_name(parts[-1])
                and not is_non_transcript_path(parts[2:])
                and not is_secret_path(parts)
            ):
                continue
            kind = side_file_kind(parts)
            number[kind] += 1
            if kind not in first or path < first[kind]:
                first[kind] = path
        return {str(kind): number[kind] for kind in sorted(first, key=first.__getitem__)}


def _is_never_opened(parts: tuple[str, ...]) -> bool:
    return is_secret_path(parts) or (len(parts) == 1 and side_file_kind(parts) in NEVER_OPENED)


_LIVE_FOLDER = "sessions"


def list_live_session_files(home: Home) -> Iterator[SideFile]:
    """The files of a home that name its running sessions; those that `look` lists as such."""
    try:
        with os.scandir(os.path.join(os.path.realpath(home.path), _LIVE_FOLDER)) as entries:  # noqa: PTH118 - paths are text
            found = sorted((one for one in entries if one.is_file(follow_symlinks=False)), key=lambda one: one.name)
            for entry in found:
                if side_file_kind((_LIVE_FOLDER, entry.name)) is SideFileKind.LIVE_SESSION:
                    size = entry.stat(follow_symlinks=False).st_size
                    yield SideFile(Path(entry.path), home, SideFileKind.LIVE_SESSION, size)
    except OSError:
        return


def drop_shared_transcripts(found: Iterable[Found]) -> Iterator[Found]:
    """Each home with the transcripts that no home before it has, and the projects that still have one."""
    homes = list(found)
    if len(homes) == 1:
        yield from homes
        return
    seen: set[str] = set()
    for one in homes:
        own = tuple(transcript for transcript in one.transcripts if str(transcript.path) not in seen)
        if len(own) == len(one.transcripts):
            yield one
        else:
            folders = {transcript.folder for transcript in own}
            projects = tuple(project for project in one.projects if project.folder in folders)
            yield replace(one, transcripts=own, projects=projects)
        seen.update(str(transcript.path) for transcript in own)
