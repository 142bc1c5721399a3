"""Work out the real path of each project from the evidence in its home.

The order of evidence is that of `PathSource`. Evidence that matches the folder's name wins over better evidence that
doesn't: a session moved by `/cd` or run in a worktree starts in another directory than the one it is filed under. If
nothing matches, the embedder chose the folder name freely, and the first evidence is used.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeGuard, TypeVar

import msgspec
from msgspec import Raw, Struct

from threadline.find.layout import (
    MAX_FOLDER_NAME,
    folder_matches,
    folder_stem,
    is_windows_path,
    possible_stems,
    replace_with_dashes,
)
from threadline.home_files import read_in_home, read_lines
from threadline.model.homes import PathSource, Project, SideFileKind, TranscriptKind
from threadline.model.places import Place, Problem, ProblemKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from threadline.model.homes import Home, SideFile, Transcript

T = TypeVar("T")


def resolve_projects(
    home: Home, folders: Iterable[str], transcripts: Iterable[Transcript], side_files: Sequence[SideFile]
) -> tuple[list[Project], list[Problem]]:
    """Return a project for each folder, and what could not be read."""
    by_folder: defaultdict[str, list[Transcript]] = defaultdict(list)
    for transcript in transcripts:
        by_folder[transcript.folder].append(transcript)
    indexes = {f.path.parent.name: f.path for f in side_files if f.kind is SideFileKind.SESSIONS_INDEX}
    history = next((f.path for f in side_files if f.kind is SideFileKind.HISTORY), None)
    evidence = PathEvidence(_config_files(side_files), history)
    projects = []
    for folder in sorted(folders):
        path, source = evidence.resolve(folder, by_folder[folder], indexes.get(folder))
        projects.append(Project(home, folder, path, source))
    return projects, evidence.problems


def _config_files(side_files: Sequence[SideFile]) -> list[Path]:
    """Return the configuration files in the order in which Claude Code reads them, without backups."""
    listed = {
        f.path.name: f.path for f in side_files if f.kind is SideFileKind.CONFIG and f.path.parent.name != "backups"
    }
    return [listed[name] for name in (".config.json", ".claude.json") if name in listed]


_HEAD_BYTES: Final = 1 << 20
_MAX_TOTAL_BYTES: Final = 4 << 20
_MAX_TRANSCRIPTS: Final = 16
_MAX_FILE_BYTES: Final = 64 << 20
_MAX_PATH_LENGTH: Final = 32_768
_SEPARATOR: Final = re.compile(r"[/\\]")
_IGNORED_BYTES: Final = b"\xef\xbb\xbf\x00 \t\r\n"
_PATH_KEYS: Final = (b'"cwd"', b'"relocatedCwd"', b'"worktreeSession"')
_KIND_ORDER: Final = (TranscriptKind.MAIN, TranscriptKind.AGENT, TranscriptKind.WORKFLOW_AGENT)


class _Row(Struct, rename="camel"):
    cwd: Any = None
    relocated_cwd: Any = None
    worktree_session: Any = None


class _SessionsIndex(Struct, rename="camel"):
    original_path: Any = None
    entries: Any = None


class _Config(Struct):
    # Raw: the values contain account details and are never decoded.
    projects: dict[str, Raw] = {}


class _HistoryRow(Struct):
    project: Any = None


class PathEvidence:
    """Everything a home says about the paths of its projects; each file is read once, on first use."""

    def __init__(self, configs: Sequence[Path], history: Path | None) -> None:
        self.problems: list[Problem] = []
        self._configs = configs
        self._history = history
        self._disk = DirectorySearch()

    def resolve(
        self, folder: str, transcripts: Sequence[Transcript], sessions_index: Path | None
    ) -> tuple[str | None, PathSource]:
        """Return the true path of a project, and the evidence for it."""
        fallback: tuple[str | None, PathSource] | None = None
        for path, source in self._in_folder(transcripts, sessions_index):
            if folder_matches(folder, path):
                return path, source
            if source is PathSource.CWD and (above := _matching_ancestor(folder, path)):
                return above, source
            fallback = fallback or (path, source)
        if configured := self._in_config.get(folder):
            return configured, PathSource.CONFIG
        if typed_in := self._in_history.get(folder):
            return typed_in, PathSource.HISTORY
        if fallback:
            return fallback
        on_disk = self._disk.find(folder)
        return on_disk, PathSource.DISK if on_disk else PathSource.UNKNOWN

    def _in_folder(
        self, transcripts: Sequence[Transcript], sessions_index: Path | None
    ) -> Iterator[tuple[str, PathSource]]:
        """Yield the paths that the project's own files name."""
        budget = _MAX_TOTAL_BYTES
        moved: list[str] = []
        for transcript in _select_transcripts(transcripts):
            if budget <= 0:
                break
            has_cwd = False
            for line in self._lines(transcript.path, min(budget, _HEAD_BYTES)):
                budget -= len(line)
                row = _decode_row(line)
                if not has_cwd and _is_path(row.cwd):
                    has_cwd = True
                    yield row.cwd, PathSource.CWD
                moved += [path for path in _relocations(row) if _is_path(path)]
        for path in moved:
            yield path, PathSource.RELOCATED
        if sessions_index:
            for path in self._in_index(sessions_index):
                yield path, PathSource.INDEX

    def _in_index(self, path: Path) -> Iterator[str]:
        index = decode_or_none(self._read(path), _SessionsIndex) or _SessionsIndex()
        if _is_path(index.original_path):
            yield index.original_path
        for entry in index.entries if isinstance(index.entries, list) else ():
            if isinstance(entry, dict) and _is_path(project_path := entry.get("projectPath")):
                yield project_path

    @cached_property
    def _in_config(self) -> PathsByFolder:
        configs = (decode_or_none(self._read(path), _Config) or _Config() for path in self._configs)
        return PathsByFolder(path for config in configs for path in config.projects if _is_path(path))

    @cached_property
    def _in_history(self) -> PathsByFolder:
        if self._history is None:
            return PathsByFolder(())
        rows = (decode_or_none(line, _HistoryRow) for line in self._lines(self._history, _MAX_FILE_BYTES))
        return PathsByFolder(row.project for row in rows if row and _is_path(row.project))

    def _lines(self, path: Path, limit: int) -> Iterator[bytes]:
        try:
            yield from read_lines(path, limit)
        except OSError as error:
            self._note(path, error)

    def _read(self, path: Path) -> bytes:
        try:
            return read_in_home(path, limit=_MAX_FILE_BYTES)
        except OSError as error:
            self._note(path, error)
            return b""

    def _note(self, path: Path, error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):  # not a problem if it vanished after it was listed
            message = f"could not be read to learn the project's path: {error.strerror or error}"
            self.problems.append(Problem(ProblemKind.UNREADABLE, Place(str(path)), message))


def decode_or_none(data: bytes, shape: type[T]) -> T | None:
    """Decode JSON as a type; None if it is not JSON or does not fit."""
    try:
        return msgspec.json.decode(data.strip(_IGNORED_BYTES), type=shape)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def _select_transcripts(transcripts: Sequence[Transcript]) -> list[Transcript]:
    """Return the few transcripts worth reading: main ones first, because an agent may run elsewhere."""
    by_kind = [t for kind in _KIND_ORDER for t in transcripts if t.kind is kind and t.size]
    return by_kind[:_MAX_TRANSCRIPTS]


def _decode_row(line: bytes) -> _Row:
    if not any(key in line for key in _PATH_KEYS):
        return _Row()  # most lines are long and name no path, so they are not decoded
    return decode_or_none(line, _Row) or _Row()


def _relocations(row: _Row) -> list[Any]:
    worktree = row.worktree_session
    return [row.relocated_cwd, worktree.get("originalCwd") if isinstance(worktree, dict) else None]


def _is_path(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and 0 < len(value) <= _MAX_PATH_LENGTH


def _matching_ancestor(folder: str, path: str) -> str | None:
    """Return the directory above `path` that has this folder, for a session that started further down.

    A folder name that was cut matches many directories, so it is not evidence.
    """
    if len(folder) > MAX_FOLDER_NAME:
        return None
    # Normalizing can halve a name's length at most, so longer ancestors cannot match.
    ends = [cut.start() for cut in _SEPARATOR.finditer(path, 1, 2 * MAX_FOLDER_NAME)]
    return next((path[:end] for end in reversed(ends) if folder_matches(folder, path[:end])), None)


class PathsByFolder:
    """Paths by folder name; of several paths with the same folder, the first wins."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._exact: dict[str, str] = {}
        self._folded: dict[str, str] = {}
        for path in dict.fromkeys(paths):
            for name in sorted(possible_stems(path)):
                if is_windows_path(path):
                    self._folded.setdefault(name.lower(), path)
                else:
                    self._exact.setdefault(name, path)

    def get(self, folder: str) -> str | None:
        """Return the path that has this folder, or None."""
        name = folder_stem(folder)
        return self._exact.get(name) or self._folded.get(name.lower())


_MAX_LISTINGS = 1000
_DRIVE = re.compile("[A-Za-z]--")


class DirectorySearch:
    """Searches the file system for a folder's directory, entering only directories whose names can lead to it."""

    def __init__(self) -> None:
        self._children: dict[str, list[tuple[str, str]]] = {}

    def find(self, folder: str) -> str | None:
        """Return the only directory that has this folder name.

        None if there is none, and also if there are several, because then the disk is not evidence. A name that was
        cut at 200 characters matches a directory and everything below it, so it is not searched for.
        """
        top = _search_root(folder)
        if top is None or len(folder) > MAX_FOLDER_NAME:
            return None
        target = _fold_case(folder)
        matches: list[str] = []
        waiting = [(top, _normalize_name(top))]
        for _ in range(_MAX_LISTINGS):
            if not waiting or len(matches) > 1:
                break
            directory, before = waiting.pop()
            for child, name in self._listed(directory):
                if before + name == target:
                    matches.append(child)
                elif target.startswith(f"{before}{name}-"):
                    waiting.append((child, f"{before}{name}-"))
        return matches[0] if len(matches) == 1 and not waiting else None

    def _listed(self, directory: str) -> list[tuple[str, str]]:
        if directory not in self._children:
            try:
                with os.scandir(directory) as entries:
                    # Claude Code resolves a project's path before naming its folder, so no part of it is a link.
                    children = [(e.path, _normalize_name(e.name)) for e in entries if e.is_dir(follow_symlinks=False)]
            except OSError:
                children = []  # a directory that cannot be listed is not evidence
            self._children[directory] = sorted(children)
        return self._children[directory]


def _search_root(folder: str) -> str | None:
    if os.name == "nt":
        return f"{folder[0]}:\\" if _DRIVE.match(folder) else None
    return "/" if folder.startswith("-") else None


def _normalize_name(name: str) -> str:
    return _fold_case(replace_with_dashes(unicodedata.normalize("NFC", name)))


def _fold_case(name: str) -> str:
    return name.lower() if os.name == "nt" else name
