"""Present files that only the keep still has as a Claude home in the cache folder, so they are read like any other.

This is on the path of every command once there is a keep: a few names and mtimes say whether the kept homes are
current, and only if one of them changed is more looked at. The keep itself (zstandard) is not loaded here.

A file that exists in a living home is left as it is there, whatever its bytes: Claude Code continues with it, and two
versions of one transcript would show most lines twice. Kept homes may be deleted at any time; nothing here is
fsynced.
"""

from __future__ import annotations

import os
import platform
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from threadline.atomic import open_regular_file, read_small_file
from threadline.errors import Error, IndexBusy, Unreadable
from threadline.find import (
    HOME_MARKERS,
    PROJECTS,
    list_project_folders,
    parse_agent_id,
    parse_session_id,
    real_projects_dir,
)
from threadline.keep.cache import (
    STATE_VERSION,
    SavedState,
    get_mtime_ns,
    get_settled_mtime_ns,
    load_state,
    make_private_folder,
    save_state,
    short_hash,
)
from threadline.keep.machine import KEEP_JSON, data_folder
from threadline.model.homes import KEEP_SOURCE, Home, KeptHome, register_kept_home

_WHOLE = "whole"
_STATE_SUFFIX, _LISTING_SUFFIX = ".state", ".listing"


class KeptHomes(Struct, frozen=True):
    """The homes that what is only in a keep is read from, and what is wrong with the keep.

    `gone` are the homes they stand for that are not there any more.
    """

    homes: tuple[Home, ...] = ()
    problems: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()


class _State(SavedState, frozen=True):
    """How things were when the kept homes were last brought up to date."""

    runs: str
    homes: tuple[KeptHome, ...]
    watched: dict[str, int]
    apart: dict[str, bool]
    gone: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


class _KeepId(Struct):
    id: str


def kept_homes(
    keep: Path,
    homes: Sequence[Home],
    cache: Path,
    *,
    lost: Sequence[str] = (),
    only: bool = False,
    planned: Callable[[int], None] | None = None,
    progress: Callable[[int], None] | None = None,
) -> KeptHomes:
    """The homes with what these homes do not have any more, brought up to date, and put in where it was.

    With `only`, no other home's, nor another machine's; but those that are `lost`, whosever they were. What cannot be
    had from the keep is told, and hides nothing.
    """
    living = tuple(os.fspath(home.path) for home in homes)
    try:
        kept = _KeptHomesUpdate(
            keep, HomeSelection(_read_machine_id(), living, tuple(lost), only), cache / "kept" / _read_keep_id(keep)
        )
    except Error as error:
        return KeptHomes(problems=(str(error),))
    try:
        return kept.bring_up_to_date(planned, progress)
    except IndexBusy:
        return kept.load_previous(
            f"Another threadline is putting back what only the keep {str(keep)!r} has; wait for it."
        )
    except Error as error:
        return kept.load_previous(str(error))
    except OSError as error:
        return kept.load_previous(_unreadable_message(keep, error))


def clear_kept_homes(keep: Path, cache: Path) -> None:
    """Throw away the kept homes of a keep, after something was forgotten."""
    from shutil import rmtree  # noqa: PLC0415 - takes longer to load than all else here

    with suppress(Error, OSError):
        rmtree(cache / "kept" / _read_keep_id(keep))


class _KeptHomesUpdate:
    """The kept homes of one keep for one set of living homes."""

    def __init__(self, keep: Path, asked: HomeSelection, folder: Path) -> None:
        self._keep = keep
        self._asked = asked
        self._folder = folder
        self._names: dict[str, str] = {}
        self._set = (*sorted(asked.living), *sorted(asked.lost), str(asked.only))
        set_ = short_hash(*self._set, asked.own or "")
        self._state = folder / f"{set_}{_STATE_SUFFIX}"

    def bring_up_to_date(
        self, planned: Callable[[int], None] | None, progress: Callable[[int], None] | None
    ) -> KeptHomes:
        runs = _runs_fingerprint(self._keep)
        known = load_state(self._state, _State)
        if known is None or known.runs != runs or not self._is_current(known):
            is_new = known is None or known.runs != runs
            known = self._renewed(runs, planned, progress, is_new=is_new)
        return self._given(known)

    def load_previous(self, problem: str) -> KeptHomes:
        """What was put back before, where no more can be: what was listed yesterday does not vanish today."""
        known = load_state(self._state, _State)
        if known is None:
            return KeptHomes(problems=(problem,))
        there = tuple(home for home in known.homes if os.path.isdir(home.path))  # noqa: PTH112 - as below
        return self._given(replace(known, homes=there, problems=(problem,)))

    def _given(self, state: _State) -> KeptHomes:
        for home in state.homes:
            register_kept_home(home)
        return KeptHomes(tuple(Home(Path(home.path), KEEP_SOURCE) for home in state.homes), state.problems, state.gone)

    def _is_gone(self, missing_files: MissingFiles) -> bool:
        """Whether its home is gone: one that was named is told in any case, others where something is read of them."""
        home = missing_files.origin.home
        is_own = missing_files.origin.machine == self._asked.own and home not in self._asked.living
        return home in self._asked.lost or (is_own and bool(missing_files.rows))

    def _is_current(self, known: _State) -> bool:
        return (
            all(get_mtime_ns(path) == told for path, told in known.watched.items())
            and all(is_home_present(home) == told for home, told in known.apart.items())
            and all(os.path.isdir(home.path) for home in known.homes)  # noqa: PTH112 - Path.is_dir may raise
        )

    def _renewed(
        self,
        runs: str,
        planned: Callable[[int], None] | None,
        progress: Callable[[int], None] | None,
        *,
        is_new: bool,
    ) -> _State:
        from threadline import locks  # noqa: PLC0415 - only where something changed
        from threadline.keep import kept_files  # noqa: PLC0415 - only where something changed
        from threadline.keep.kept_files import KeepListing  # noqa: PLC0415 - the same

        make_private_folder(self._folder)
        with locks.lock_for_adding(self._folder, "kept"):
            began = time.time_ns()
            keep = KeepListing(self._keep, self._folder / f"{short_hash(self._asked.own or '')}{_LISTING_SUFFIX}", runs)
            problems = list(keep.problems)
            self._names = _machine_names([one.origin for one in keep.listed], self._asked.own)
            apart = {home: is_home_present(home) for home in self._asked.apart(keep.listed)}
            wanted = find_missing_files(keep.listed, self._asked)
            todo = [(missing_files, self._place(missing_files)) for missing_files in wanted]
            put = [
                (place, row)
                for one, place in todo
                for row in kept_files.find_absent_files(place, one.rows, whole=is_new)
            ]
            problems += kept_files.copy_files(keep, put, {place: one for one, place in todo}, planned, progress)
            for one, place in todo:
                kept_files.remove_stale_files(place, one.rows)
            watched = {path: get_settled_mtime_ns(path, began) for one, _place in todo for path in one.watched}
            told = tuple(self._told(one, place) for one, place in todo if one.rows and place.is_dir())
            gone = tuple(self._told(one, place).name for one, place in todo if self._is_gone(one))
            state = _State(STATE_VERSION, runs, told, watched, apart, gone, tuple(problems))
            save_state(self._state, state)
            return state

    def _place(self, missing_files: MissingFiles) -> Path:
        """Where a kept home lies. What it has depends on which homes are read, unless it is whole or a living one's."""
        origin = missing_files.origin
        is_living = origin.machine == self._asked.own and origin.home in self._asked.living
        which = () if is_living else (_WHOLE,) if missing_files.is_whole else self._set
        return self._folder / short_hash(origin.machine, origin.home, *which)

    def _told(self, missing_files: MissingFiles, place: Path) -> KeptHome:
        origin = missing_files.origin
        if origin.machine != self._asked.own:
            return KeptHome(os.path.realpath(place), origin.home, self._names[origin.machine])
        return KeptHome(os.path.realpath(place), origin.home, projects=real_projects_dir(origin.home))


def _machine_names(origins: Sequence[HomeOrigin], own: str | None) -> dict[str, str]:
    """What machines are called: by their labels, and by their ids, too, where two have the same one."""
    labels = {home_origin.machine: home_origin.label for home_origin in origins}
    if own is not None:
        labels[own] = platform.node() or labels.get(own, "")
    told = list(labels.values())
    return {id_: label if told.count(label) == 1 else f"{label} ({id_})" for id_, label in labels.items()}


def _read_machine_id() -> str | None:
    """This machine's id, where it has one."""
    try:
        return (Path(data_folder()) / "machine").read_text(errors="replace").strip() or None
    except OSError:
        return None


def _read_keep_id(keep: Path) -> str:
    try:
        return str(msgspec.json.decode(read_small_file(keep / KEEP_JSON), type=_KeepId).id.replace("/", "_")[:64])
    except (FileNotFoundError, msgspec.MsgspecError):
        return short_hash(os.path.realpath(keep))  # damaged: what else there is can still be read
    except OSError as error:
        raise Unreadable(_unreadable_message(keep, error)) from None


def _unreadable_message(keep: Path, error: OSError) -> str:
    return f"What only the keep {str(keep)!r} has cannot be read: {error.strerror or error}; --no-keep leaves it out."


def _runs_fingerprint(keep: Path) -> str:
    """The names of all manifests, which say what they hold: that none was added or taken away."""
    return short_hash(*sorted(os.listdir(keep / "runs")))  # noqa: PTH208 - names are enough


_READ_SIZE = 1024 * 1024
_MAX_MATCH_SIZE = 256
"""No name and value of an id takes as many bytes."""
_SESSION_DEPTH = 3
"""projects/<folder>/<name>: from here on, a path is a session's own."""


class KeptFile(Struct, frozen=True, array_like=True, gc=False):
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


class HomeOrigin(Struct, frozen=True, array_like=True):
    """A home that files were kept of, and the machine it was on; `label` is what people call that."""

    machine: str
    label: str
    home: str


class HomeFiles(Struct, frozen=True, array_like=True):
    """All that was kept of one home."""

    origin: HomeOrigin
    rows: tuple[KeptFile, ...]


class MissingFiles(Struct, frozen=True):
    """What is to be put back for one home, by path; and the directories whose change would change that.

    `is_whole` is whether that is all that was kept of it.
    """

    origin: HomeOrigin
    rows: dict[str, KeptFile]
    watched: tuple[str, ...]
    is_whole: bool = False


class HomeSelection(Struct, frozen=True):
    """Which homes are read: those that live, those that are gone and were named all the same, and whether `only` these.

    `own` is this machine.
    """

    own: str | None
    living: tuple[str, ...]
    lost: tuple[str, ...] = ()
    only: bool = False

    def apart(self, listed: Sequence[HomeFiles]) -> list[str]:
        """The homes of this machine that are read where they are gone, and left alone where they are there."""
        mine = [home_files.origin.home for home_files in listed if home_files.origin.machine == self.own]
        return [home for home in mine if home not in self.living] if not self.only else []


def find_missing_files(listed: Sequence[HomeFiles], asked: HomeSelection) -> Iterator[MissingFiles]:
    """What the living homes do not have, home by home.

    A file that is there is left as it is there, whatever its bytes: it is what Claude Code goes on with, and of two
    versions of one transcript most lines would be told twice. Older versions are `keep restore`'s. Only one that was
    cut off to nothing, and tells nothing, is as if it were not there.
    """
    mine = [home_files for home_files in listed if home_files.origin.machine == asked.own]
    others = [home_files for home_files in listed if home_files.origin.machine != asked.own]
    taken: dict[str, KeptFile] = {}
    gone: list[HomeFiles] = []
    for home_files in sorted(mine, key=lambda each: each.origin.home):
        home = home_files.origin.home
        if home in asked.living:
            taken.update((row.path, row) for row in home_files.rows)
            found, watched = _files_not_in((home,), _standalone_files(home_files.rows))
            lost = [row for row in home_files.rows if row.beside is not None and row.beside not in found]
            found |= {row.path: row for row in lost if not _has_recovered(home, row)}
            living = (_join_path(home, row.beside) for row in lost if row.beside is not None)
            yield MissingFiles(home_files.origin, found, tuple(dict.fromkeys((*watched, *living))))
        elif home in asked.lost or (not asked.only and not is_home_present(home)):
            gone.append(home_files)
        # A home that is there and was not asked for is somebody's choice.
    for home_files in gone:
        yield _missing_of_gone_home(home_files, asked, taken)
    if asked.only:
        yield from (
            _missing_of_gone_home(home_files, asked, taken)
            for home_files in others
            if home_files.origin.home in asked.lost
        )
        return
    taken |= {row.path: row for home_files in mine for row in home_files.rows}
    for home_files in sorted(others, key=lambda each: (each.origin.label, each.origin.machine, each.origin.home)):
        rows = [row for row in _standalone_files(home_files.rows) if not _is_copy(row, taken.get(row.path))]
        taken.update((row.path, row) for row in rows)
        yield MissingFiles(home_files.origin, *_files_not_in(asked.living, rows, elsewhere=True))


def _standalone_files(rows: Iterable[KeptFile]) -> list[KeptFile]:
    """Rows that stand for themselves: what was lost by a cut is within the whole file where that is put back."""
    return [row for row in rows if row.beside is None]


def _has_recovered(home: str, row: KeptFile) -> bool:
    """Whether a transcript has again what it lost, or may have: then it is told from there alone."""
    # Not the ids alone: what the transcript was gone on with names the last of them as what it follows.
    told = re.compile(rb'"uuid"\s*:\s*"(?:' + b"|".join(re.escape(mark.encode()) for mark in row.marks) + rb')"')
    held = b""
    try:
        with open_regular_file(Path(_join_path(home, row.beside or ""))) as file:
            while data := file.read(_READ_SIZE):
                held = held[-_MAX_MATCH_SIZE:] + data
                if told.search(held) is not None:
                    return True
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        return True
    return False


def is_home_present(home: str) -> bool:
    """Whether a home is there: a directory that has nothing of Claude Code's in it is what is left of one."""
    try:
        return not HOME_MARKERS.isdisjoint(os.listdir(home))  # noqa: PTH208 - names are enough
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError):
        return True


def _missing_of_gone_home(home_files: HomeFiles, asked: HomeSelection, taken: dict[str, KeptFile]) -> MissingFiles:
    """All that was kept of a home, but for what is elsewhere by now: it may have been moved, and kept again there."""
    every = _standalone_files(home_files.rows)
    rows = [row for row in every if not _is_copy(row, taken.get(row.path))]
    taken.update((row.path, row) for row in rows)
    found, watched = _files_not_in(asked.living, rows, elsewhere=True)
    own = [row for row in home_files.rows if _is_session_path(row.path)]
    if own and 2 * sum(row.path not in found for row in own) >= len(own):
        # Most of its sessions are elsewhere, so it was moved: what is called alike there is the same, and went on.
        found = {
            path: row
            for path, row in found.items()
            if _is_session_path(path) or not _has_grown_elsewhere(row, asked.living)
        }
    return MissingFiles(home_files.origin, found, watched, is_whole=len(found) == len(every))


def _has_grown_elsewhere(row: KeptFile, homes: Sequence[str]) -> bool:
    """Whether one of these homes has a file of that path which is not shorter."""
    for home in homes:
        try:
            if os.lstat(_join_path(home, row.path)).st_size >= _min_size(row):
                return True
        except (OSError, ValueError):
            continue
    return False


def _min_size(row: KeptFile) -> int:
    """How long a file is at least that is this one, or went on from it: one that is put together is nowhere so long."""
    return row.cut if row.spans and row.cut is not None else row.size


def _is_copy(row: KeptFile, other: KeptFile | None) -> bool:
    """Whether another machine kept the same file: homes may be shared by several."""
    if other is None:
        return False
    return row.pieces == other.pieces or (_is_session_path(row.path) and row.size <= other.size)


def _files_not_in(
    homes: Sequence[str], rows: Iterable[KeptFile], *, elsewhere: bool = False
) -> tuple[dict[str, KeptFile], tuple[str, ...]]:
    """The rows whose files none of these homes has, and the directories that were looked into."""
    by_directory: dict[str, list[KeptFile]] = {}
    for row in rows:
        by_directory.setdefault(row.path.rpartition("/")[0], []).append(row)
    watched: list[str] = []
    found: dict[str, KeptFile] = {}
    moved = [_ProjectFolders(home) for home in homes]
    for directory, some in by_directory.items():
        names = [_list_names(home, directory) for home in homes]
        for home, there in zip(homes, names, strict=True):
            if _is_watched(directory, some, is_there=there is not None):
                watched.append(_join_path(home, directory))
        for row in some:
            name = row.path[len(directory) + 1 :] if directory else row.path
            # What is called alike on another machine is the same only where the name is nobody else's.
            is_told = not elsewhere or _is_session_path(row.path)
            having = [home for home, there in zip(homes, names, strict=True) if is_told and name in (there or ())]
            if row.cut == 0 and having:
                watched += (_join_path(home, row.path) for home in having)
                having = [home for home in having if not _is_empty(_join_path(home, row.path))]
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


def _is_watched(directory: str, rows: Sequence[KeptFile], *, is_there: bool) -> bool:
    """Of directories, those at the top and those with transcripts: when a session's own go, one above them changes."""
    if not directory:
        return False  # the home itself changes all the time
    if "/" not in directory:
        return True
    return is_there and any(row.path.endswith(".jsonl") for row in rows)


class _ProjectFolders:
    """Projects' folders of a home: a session whose project was renamed, or that went elsewhere, is in another one."""

    def __init__(self, home: str) -> None:
        self._projects = _join_path(home, PROJECTS)
        self._by_name: dict[str, list[str]] | None = None
        self._folders: list[str] = []

    def directories(self) -> list[str]:
        """The folders, as far as it was asked for them."""
        return [self._projects, *(_join_path(self._projects, folder) for folder in self._listed())]

    def have(self, row: KeptFile) -> bool:
        """Whether a file lies below another project now, and has not become shorter."""
        parts = row.path.split("/")
        if not _is_session_path(row.path) or parts[0] != PROJECTS:
            return False
        for folder in self._holding(parts[2]):
            if folder != parts[1]:
                try:
                    if os.lstat(_join_path(self._projects, folder, *parts[2:])).st_size >= _min_size(row):
                        return True
                except OSError:
                    continue
        return False

    def _holding(self, name: str) -> list[str]:
        if self._by_name is None:
            self._by_name = {}
            for folder in self._listed():
                for inside in _list_names(self._projects, folder) or ():
                    self._by_name.setdefault(inside, []).append(folder)
        return self._by_name.get(name, [])

    def _listed(self) -> list[str]:
        if not self._folders:
            self._folders = list_project_folders(self._projects)
        return self._folders


def _is_session_path(path: str) -> bool:
    """Whether a path has the id of a session or an agent in it, which no other file has."""
    parts = path.split("/")
    if parts[0] != PROJECTS:
        return any(parse_session_id(part) is not None for part in parts[1:])
    return len(parts) >= _SESSION_DEPTH and (
        parse_session_id(parts[2]) is not None or parse_agent_id(parts[2]) is not None
    )


def _list_names(home: str, directory: str) -> set[str] | None:
    """The names in a directory; None where it is not there, and what may not be listed has what it had."""
    try:
        return set(os.listdir(_join_path(home, directory)))  # noqa: PTH208 - names are enough
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError):
        return _AllNames()


class _AllNames(set[str]):
    """The names in a directory that may not be listed: whatever is asked for may be there."""

    def __contains__(self, name: object) -> bool:
        return True


def _join_path(home: str, *parts: str) -> str:
    return os.path.join(home, *(part for path in parts for part in path.split("/") if part))  # noqa: PTH118 - text
