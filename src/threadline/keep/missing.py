"""What is missing: files of the keep that the living homes do not have any more, by their names alone."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from threadline.find.side_files import MARKS, PROJECTS
from threadline.find.transcripts import agent_id, session_id
from threadline.keep.durable import opened

_READ = 1024 * 1024
_LONGEST = 256
"""No name and value of an id takes as many bytes."""
_BELOW = 3
"""projects/<folder>/<name>: from here on, a path is a session's own."""


class Row(Struct, frozen=True, array_like=True, gc=False):
    """The version of a kept file that is read: its path below the home, and what tells whether it was put back already.

    `cut` is how many bytes were left of it when it was last kept, where it had been cut off. What is put together of
    several versions has `spans` of these: their pieces, and from where to where. One that is `beside` another path is
    what the transcript there lost by a cut; `marks` are ids in it, which that one has if it was put back.
    """

    path: str
    size: int
    mtime_ns: int
    pieces: str
    cut: int | None = None
    spans: tuple[tuple[str, int, int], ...] = ()
    beside: str | None = None
    marks: tuple[str, ...] = ()


class Origin(Struct, frozen=True, array_like=True):
    """A home that files were kept of, and the machine it was on; `label` is what people call that."""

    machine: str
    label: str
    home: str


class Listed(Struct, frozen=True, array_like=True):
    """All that was kept of one home."""

    origin: Origin
    rows: tuple[Row, ...]


class Missing(Struct, frozen=True):
    """What is to be put back for one home, by path; and the directories whose change would change that.

    `is_whole` is whether that is all that was kept of it.
    """

    origin: Origin
    rows: dict[str, Row]
    watched: tuple[str, ...]
    is_whole: bool = False


class Asked(Struct, frozen=True):
    """Which homes are read: those that live, those that are gone and were named all the same, and whether `only` these.

    `own` is this machine.
    """

    own: str | None
    living: tuple[str, ...]
    lost: tuple[str, ...] = ()
    only: bool = False

    def apart(self, listed: Sequence[Listed]) -> list[str]:
        """The homes of this machine that are read where they are gone, and left alone where they are there."""
        mine = [one.origin.home for one in listed if one.origin.machine == self.own]
        return [home for home in mine if home not in self.living] if not self.only else []


def missing(listed: Sequence[Listed], asked: Asked) -> Iterator[Missing]:
    """What the living homes do not have, home by home.

    A file that is there is left as it is there, whatever its bytes: it is what Claude Code goes on with, and of two
    versions of one transcript most lines would be told twice. Older versions are `keep restore`'s. Only one that was
    cut off to nothing, and tells nothing, is as if it were not there.
    """
    mine = [one for one in listed if one.origin.machine == asked.own]
    others = [one for one in listed if one.origin.machine != asked.own]
    taken: dict[str, Row] = {}
    gone: list[Listed] = []
    for one in sorted(mine, key=lambda each: each.origin.home):
        home = one.origin.home
        if home in asked.living:
            taken.update((row.path, row) for row in one.rows)
            found, watched = _not_in((home,), _alone(one.rows))
            lost = [row for row in one.rows if row.beside is not None and row.beside not in found]
            found |= {row.path: row for row in lost if not _came_back(home, row)}
            living = (_joined(home, row.beside) for row in lost if row.beside is not None)
            yield Missing(one.origin, found, tuple(dict.fromkeys((*watched, *living))))
        elif home in asked.lost or (not asked.only and not is_there(home)):
            gone.append(one)
        # A home that is there and was not asked for is somebody's choice.
    for one in gone:
        yield _of_a_gone(one, asked, taken)
    if asked.only:
        yield from (_of_a_gone(one, asked, taken) for one in others if one.origin.home in asked.lost)
        return
    taken |= {row.path: row for one in mine for row in one.rows}
    for one in sorted(others, key=lambda each: (each.origin.label, each.origin.machine, each.origin.home)):
        rows = [row for row in _alone(one.rows) if not _is_copy(row, taken.get(row.path))]
        taken.update((row.path, row) for row in rows)
        yield Missing(one.origin, *_not_in(asked.living, rows, elsewhere=True))


def _alone(rows: Iterable[Row]) -> list[Row]:
    """Rows that stand for themselves: what was lost by a cut is within the whole file where that is put back."""
    return [row for row in rows if row.beside is None]


def _came_back(home: str, row: Row) -> bool:
    """Whether a transcript has again what it lost, or may have: then it is told from there alone."""
    # Not the ids alone: what the transcript was gone on with names the last of them as what it follows.
    told = re.compile(rb'"uuid"\s*:\s*"(?:' + b"|".join(re.escape(mark.encode()) for mark in row.marks) + rb')"')
    held = b""
    try:
        with opened(Path(_joined(home, row.beside or ""))) as file:
            while data := file.read(_READ):
                held = held[-_LONGEST:] + data
                if told.search(held) is not None:
                    return True
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        return True
    return False


def is_there(home: str) -> bool:
    """Whether a home is there: a directory that has nothing of Claude Code's in it is what is left of one."""
    try:
        return not MARKS.isdisjoint(os.listdir(home))  # noqa: PTH208 - names are enough
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError):
        return True


def _of_a_gone(one: Listed, asked: Asked, taken: dict[str, Row]) -> Missing:
    """All that was kept of a home, but for what is elsewhere by now: it may have been moved, and kept again there."""
    every = _alone(one.rows)
    rows = [row for row in every if not _is_copy(row, taken.get(row.path))]
    taken.update((row.path, row) for row in rows)
    found, watched = _not_in(asked.living, rows, elsewhere=True)
    own = [row for row in one.rows if _is_of_a_session(row.path)]
    if own and 2 * sum(row.path not in found for row in own) >= len(own):
        # Most of its sessions are elsewhere, so it was moved: what is called alike there is the same, and went on.
        found = {path: row for path, row in found.items() if _is_of_a_session(path) or not _went_on(row, asked.living)}
    return Missing(one.origin, found, watched, is_whole=len(found) == len(every))


def _went_on(row: Row, homes: Sequence[str]) -> bool:
    """Whether one of these homes has a file of that path which is not shorter."""
    for home in homes:
        try:
            if os.lstat(_joined(home, row.path)).st_size >= _least(row):
                return True
        except (OSError, ValueError):
            continue
    return False


def _least(row: Row) -> int:
    """How long a file is at least that is this one, or went on from it: one that is put together is nowhere so long."""
    return row.cut if row.spans and row.cut is not None else row.size


def _is_copy(row: Row, other: Row | None) -> bool:
    """Whether another machine kept the same file: homes may be shared by several."""
    if other is None:
        return False
    return row.pieces == other.pieces or (_is_of_a_session(row.path) and row.size <= other.size)


def _not_in(
    homes: Sequence[str], rows: Iterable[Row], *, elsewhere: bool = False
) -> tuple[dict[str, Row], tuple[str, ...]]:
    """The rows whose files none of these homes has, and the directories that were looked into."""
    by_directory: dict[str, list[Row]] = {}
    for row in rows:
        by_directory.setdefault(row.path.rpartition("/")[0], []).append(row)
    watched: list[str] = []
    found: dict[str, Row] = {}
    moved = [_Folders(home) for home in homes]
    for directory, some in by_directory.items():
        names = [_names(home, directory) for home in homes]
        for home, there in zip(homes, names, strict=True):
            if _is_watched(directory, some, is_there=there is not None):
                watched.append(_joined(home, directory))
        for row in some:
            name = row.path[len(directory) + 1 :] if directory else row.path
            # What is called alike on another machine is the same only where the name is nobody else's.
            is_told = not elsewhere or _is_of_a_session(row.path)
            having = [home for home, there in zip(homes, names, strict=True) if is_told and name in (there or ())]
            if row.cut == 0 and having:
                watched += (_joined(home, row.path) for home in having)
                having = [home for home in having if not _is_empty(_joined(home, row.path))]
            if not having and not any(folders.have(row) for folders in moved):
                found[row.path] = row
    for folders in moved:
        watched += folders.directories()
    return found, tuple(dict.fromkeys(watched))


def _is_empty(path: str) -> bool:
    try:
        return os.lstat(path).st_size == 0
    except OSError:
        return False


def _is_watched(directory: str, rows: Sequence[Row], *, is_there: bool) -> bool:
    """Of directories, those at the top and those with transcripts: when a session's own go, one above them changes."""
    if not directory:
        return False  # the home itself changes all the time
    if "/" not in directory:
        return True
    return is_there and any(row.path.endswith(".jsonl") for row in rows)


class _Folders:
    """Projects' folders of a home: a session whose project was renamed, or that went elsewhere, is in another one."""

    def __init__(self, home: str) -> None:
        self._projects = _joined(home, PROJECTS)
        self._by_name: dict[str, list[str]] | None = None
        self._folders: list[str] = []

    def directories(self) -> list[str]:
        """The folders, as far as it was asked for them."""
        return [self._projects, *(_joined(self._projects, folder) for folder in self._listed())]

    def have(self, row: Row) -> bool:
        """Whether a file lies below another project now, and has not become shorter."""
        parts = row.path.split("/")
        if not _is_of_a_session(row.path) or parts[0] != PROJECTS:
            return False
        for folder in self._holding(parts[2]):
            if folder != parts[1]:
                try:
                    if os.lstat(_joined(self._projects, folder, *parts[2:])).st_size >= _least(row):
                        return True
                except OSError:
                    continue
        return False

    def _holding(self, name: str) -> list[str]:
        if self._by_name is None:
            self._by_name = {}
            for folder in self._listed():
                for inside in _names(self._projects, folder) or ():
                    self._by_name.setdefault(inside, []).append(folder)
        return self._by_name.get(name, [])

    def _listed(self) -> list[str]:
        if not self._folders:
            try:
                with os.scandir(self._projects) as inside:
                    self._folders = sorted(one.name for one in inside if one.is_dir(follow_symlinks=False))
            except OSError:
                self._folders = []
        return self._folders


def _is_of_a_session(path: str) -> bool:
    """Whether a path has the id of a session or an agent in it, which no other file has."""
    parts = path.split("/")
    if parts[0] != PROJECTS:
        return any(session_id(part) is not None for part in parts[1:])
    return len(parts) >= _BELOW and (session_id(parts[2]) is not None or agent_id(parts[2]) is not None)


def _names(home: str, directory: str) -> set[str] | None:
    """The names in a directory; None where it is not there, and what may not be listed has what it had."""
    try:
        return set(os.listdir(_joined(home, directory)))  # noqa: PTH208 - names are enough
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError):
        return _Everything()


class _Everything(set[str]):
    """The names in a directory that may not be listed: whatever is asked for may be there."""

    def __contains__(self, name: object) -> bool:
        return True


def _joined(home: str, *parts: str) -> str:
    return os.path.join(home, *(part for path in parts for part in path.split("/") if part))  # noqa: PTH118 - text
