"""A project's true path, by evidence: the folder's name alone cannot tell it.

The order is that of `PathSource`. Evidence that fits the folder's name wins over better evidence that
does not: a session moved by `/cd` or run in a worktree begins with another directory than the one it is
filed under. If nothing fits, the embedder chose the name freely, and the first evidence stands.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from msgspec import Raw, Struct

from threadline.find.disk import Disk
from threadline.find.folder_names import LONGEST, folder_matches
from threadline.find.known_paths import KnownPaths
from threadline.find.reading import decoded, lines, whole
from threadline.model.found import PathSource, TranscriptKind
from threadline.model.place import Place
from threadline.model.problem import Problem, ProblemKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from threadline.model.found import Transcript

_HEAD: Final = 1 << 20
_MOST_BYTES: Final = 4 << 20
_MOST_TRANSCRIPTS: Final = 16
_LARGEST_FILE: Final = 64 << 20
_LONGEST_PATH: Final = 32_768
_SEPARATOR: Final = re.compile(r"[/\\]")
_TELLING: Final = (b'"cwd"', b'"relocatedCwd"', b'"worktreeSession"')
_BEST_FIRST: Final = (TranscriptKind.MAIN, TranscriptKind.AGENT, TranscriptKind.WORKFLOW_AGENT)


class _Row(Struct, rename="camel"):
    cwd: Any = None
    relocated_cwd: Any = None
    worktree_session: Any = None


class _SessionsIndex(Struct, rename="camel"):
    original_path: Any = None
    entries: Any = None


class _Config(Struct):
    # Raw: the values hold the user's account and are not even decoded.
    projects: dict[str, Raw] = {}


class _Prompt(Struct):
    project: Any = None


class Evidence:
    """What one home as a whole knows about paths; each file is read when first needed, and once."""

    def __init__(self, configs: Sequence[Path], history: Path | None) -> None:
        self.problems: list[Problem] = []
        self._configs = configs
        self._history = history
        self._disk = Disk()

    def path_of(
        self, folder: str, transcripts: Sequence[Transcript], sessions_index: Path | None
    ) -> tuple[str | None, PathSource]:
        """Give the true path of a project, and how it is known."""
        fallback: tuple[str | None, PathSource] | None = None
        for path, source in self._in_folder(transcripts, sessions_index):
            if folder_matches(folder, path):
                return path, source
            if source is PathSource.CWD and (above := _ancestor(folder, path)):
                return above, source
            fallback = fallback or (path, source)
        if known := self._in_config.of(folder):
            return known, PathSource.CONFIG
        if known := self._in_history.of(folder):
            return known, PathSource.HISTORY
        if fallback:
            return fallback
        on_disk = self._disk.find(folder)
        return on_disk, PathSource.DISK if on_disk else PathSource.UNKNOWN

    def _in_folder(
        self, transcripts: Sequence[Transcript], sessions_index: Path | None
    ) -> Iterator[tuple[str, PathSource]]:
        """Give the paths that the project's own files name."""
        budget = _MOST_BYTES
        moved: list[str] = []
        for transcript in _best(transcripts):
            if budget <= 0:
                break
            started = False
            for line in self._lines(transcript.path, min(budget, _HEAD)):
                budget -= len(line)
                row = _row(line)
                if not started and _is_path(row.cwd):
                    started = True
                    yield row.cwd, PathSource.CWD
                moved += [path for path in _moved(row) if _is_path(path)]
        for path in moved:
            yield path, PathSource.RELOCATED
        if sessions_index:
            for path in self._in_index(sessions_index):
                yield path, PathSource.INDEX

    def _in_index(self, path: Path) -> Iterator[str]:
        index = decoded(self._whole(path), _SessionsIndex) or _SessionsIndex()
        if _is_path(index.original_path):
            yield index.original_path
        for entry in index.entries if isinstance(index.entries, list) else ():
            if isinstance(entry, dict) and _is_path(named := entry.get("projectPath")):
                yield named

    @cached_property
    def _in_config(self) -> KnownPaths:
        configs = (decoded(self._whole(path), _Config) or _Config() for path in self._configs)
        return KnownPaths(path for config in configs for path in config.projects if _is_path(path))

    @cached_property
    def _in_history(self) -> KnownPaths:
        if self._history is None:
            return KnownPaths(())
        rows = (decoded(line, _Prompt) for line in self._lines(self._history, _LARGEST_FILE))
        return KnownPaths(row.project for row in rows if row and _is_path(row.project))

    def _lines(self, path: Path, limit: int) -> Iterator[bytes]:
        try:
            yield from lines(path, limit)
        except OSError as error:
            self._note(path, error)

    def _whole(self, path: Path) -> bytes:
        try:
            return whole(path, _LARGEST_FILE)
        except OSError as error:
            self._note(path, error)
            return b""

    def _note(self, path: Path, error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):  # gone since it was listed: nothing to tell
            message = f"could not be read to learn the project's path: {error.strerror or error}"
            self.problems.append(Problem(ProblemKind.UNREADABLE, Place(str(path)), message))


def _best(transcripts: Sequence[Transcript]) -> list[Transcript]:
    """Give the few transcripts worth reading: main ones first, for an agent may run elsewhere."""
    chosen: list[Transcript] = []
    for kind in _BEST_FIRST:
        chosen += [t for t in transcripts if t.kind is kind and t.size]
    return chosen[:_MOST_TRANSCRIPTS]


def _row(line: bytes) -> _Row:
    if not any(key in line for key in _TELLING):
        return _Row()  # most of a head is long and tells nothing: not worth decoding
    return decoded(line, _Row) or _Row()


def _moved(row: _Row) -> list[Any]:
    worktree = row.worktree_session
    return [row.relocated_cwd, worktree.get("originalCwd") if isinstance(worktree, dict) else None]


def _is_path(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and 0 < len(value) <= _LONGEST_PATH


def _ancestor(folder: str, path: str) -> str | None:
    """Give the directory above `path` that has this folder: the session began further down.

    A folder's name that was cut fits many of them, so it tells nothing.
    """
    if len(folder) > LONGEST:
        return None
    # Composing characters can halve a name's length, not more: longer ancestors need no look.
    ends = [cut.start() for cut in _SEPARATOR.finditer(path, 1, 2 * LONGEST)]
    return next((path[:end] for end in reversed(ends) if folder_matches(folder, path[:end])), None)
