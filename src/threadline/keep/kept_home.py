"""Present files that only the keep still has as a Claude home in the cache folder, so they are read like any other.

This runs with every command once there is a keep: a few names and mtimes say whether the kept homes are current, and
more is read only if one of them changed. The keep itself (zstandard) is not loaded here.

A file that exists in a live home is left as it is there, whatever its bytes: Claude Code continues with it, and two
versions of one transcript would show most lines twice. Older versions are for `keep restore`. Only a file that was
truncated to nothing counts as missing. Kept homes may be deleted at any time; nothing here is fsynced.
"""

from __future__ import annotations

import os
import platform
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from threadline.errors import Error, IndexBusy, Unreadable
from threadline.files import read_file
from threadline.find import HOME_MARKERS, PROJECTS, list_project_folders
from threadline.home_files import open_in_home, real_projects_dir
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
from threadline.keep.machine import KEEP_JSON, KeepId, machine_folder, read_machine_id
from threadline.keep.sessions import has_unique_name
from threadline.model.homes import KEEP_SOURCE, Home, OriginalHome

_COMPLETE = "whole"
_STATE_SUFFIX, _LISTING_SUFFIX = ".state", ".listing"
_LOCK_NAME = ".lock"


class KeptHomes(Struct, frozen=True):
    """The homes with what only a keep has, and what is wrong with the keep.

    `gone` names the homes among them that no longer exist on disk.
    """

    homes: tuple[Home, ...] = ()
    problems: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()


class _KeptHome(Struct, frozen=True):
    path: str
    original: OriginalHome


class _State(SavedState, frozen=True):
    """The inputs from which the kept homes were created. They are current as long as no input changes.

    `watched` maps paths to mtimes; `unlisted` maps the homes that are read only if they are gone to whether they exist.
    """

    runs: str
    homes: tuple[_KeptHome, ...]
    watched: dict[str, int]
    unlisted: dict[str, bool]
    gone: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


class _KeepInfo(Struct):
    id: KeepId


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
    """The homes with what these homes no longer have, brought up to date in the cache folder.

    With `only`, other homes and other machines are left out, except the `lost` homes, on whatever machine they were.
    What cannot be read from the keep is reported in `problems`; the rest is returned.
    """
    live = tuple(os.fspath(home.path) for home in homes)
    try:
        selection = HomeSelection(read_machine_id(machine_folder()), live, tuple(lost), only)
        update = _KeptHomesUpdate(keep, selection, cache / "kept" / _read_keep_id(keep))
    except Error as error:
        return KeptHomes(problems=(str(error),))
    try:
        return update.bring_up_to_date(planned, progress)
    except Error as error:
        return update.load_previous(str(error))
    except OSError as error:
        return update.load_previous(_unreadable_message(keep, error))


def clear_kept_homes(keep: Path, cache: Path) -> None:
    """Delete the kept homes of a keep, after something was forgotten."""
    from shutil import rmtree  # noqa: PLC0415 - slow to import

    with suppress(Error, OSError):
        rmtree(cache / "kept" / _read_keep_id(keep), ignore_errors=True)


class _KeptHomesUpdate:
    """Brings the kept homes of one keep up to date for one selection of homes."""

    def __init__(self, keep: Path, selection: HomeSelection, folder: Path) -> None:
        self._keep = keep
        self._selection = selection
        self._folder = folder
        self._machine_names: dict[str, str] = {}
        self._selection_key = (*sorted(selection.live), *sorted(selection.lost), str(selection.only))
        name = short_hash(*self._selection_key, selection.own_machine or "")
        self._state_file = folder / f"{name}{_STATE_SUFFIX}"

    def bring_up_to_date(
        self, planned: Callable[[int], None] | None, progress: Callable[[int], None] | None
    ) -> KeptHomes:
        runs = _runs_fingerprint(self._keep)
        state = load_state(self._state_file, _State)
        has_new_runs = state is None or state.runs != runs
        if state is None or has_new_runs or not self._is_current(state):
            state = self._update(runs, planned, progress, has_new_runs=has_new_runs)
        return _load_kept_homes(state)

    def load_previous(self, problem: str) -> KeptHomes:
        """The kept homes as they were, and a problem: sessions that were listed do not vanish."""
        state = load_state(self._state_file, _State)
        if state is None:
            return KeptHomes(problems=(problem,))
        existing = tuple(home for home in state.homes if os.path.isdir(home.path))  # noqa: PTH112 - as below
        return _load_kept_homes(replace(state, homes=existing, problems=(problem,)))

    def _is_current(self, state: _State) -> bool:
        return (
            all(get_mtime_ns(path) == mtime for path, mtime in state.watched.items())
            and all(is_home_present(home) == is_present for home, is_present in state.unlisted.items())
            and all(os.path.isdir(home.path) for home in state.homes)  # noqa: PTH112 - Path.is_dir may raise
        )

    def _update(
        self,
        runs: str,
        planned: Callable[[int], None] | None,
        progress: Callable[[int], None] | None,
        *,
        has_new_runs: bool,
    ) -> _State:
        from threadline import locks  # noqa: PLC0415 - only if something changed
        from threadline.keep import kept_files  # noqa: PLC0415 - the same

        make_private_folder(self._folder)
        with ExitStack() as stack:
            try:
                stack.enter_context(locks.hold_lock(self._folder / _LOCK_NAME))
            except locks.LockBusy:
                message = (
                    f"Another threadline process is unpacking files from the keep {str(self._keep)!r}. Wait for it."
                )
                raise IndexBusy(message) from None
            began = time.time_ns()
            own_machine = self._selection.own_machine
            listing_file = self._folder / f"{short_hash(own_machine or '')}{_LISTING_SUFFIX}"
            listing = kept_files.KeepListing(self._keep, listing_file, runs)
            problems = list(listing.problems)
            self._machine_names = _machine_names([home.origin for home in listing.homes], own_machine)
            unlisted = {home: is_home_present(home) for home in self._selection.homes_if_gone(listing.homes)}
            missing = [
                (files, self._kept_home_folder(files)) for files in find_missing_files(listing.homes, self._selection)
            ]
            absent = [
                (folder, file)
                for files, folder in missing
                for file in kept_files.find_absent_files(folder, files.rows, compare=has_new_runs)
            ]
            origins = {folder: files.origin for files, folder in missing}
            problems += kept_files.copy_files(listing, absent, origins, planned, progress)
            for files, folder in missing:
                kept_files.remove_stale_files(folder, files.rows)
            watched = {path: get_settled_mtime_ns(path, began) for files, _folder in missing for path in files.watched}
            homes = tuple(
                _KeptHome(os.path.realpath(folder), self._original_home(files))
                for files, folder in missing
                if files.rows and folder.is_dir()
            )
            gone = tuple(self._original_home(files).name for files, _folder in missing if self._is_gone(files))
            state = _State(STATE_VERSION, runs, homes, watched, unlisted, gone, tuple(problems))
            save_state(self._state_file, state)
            return state

    def _is_gone(self, files: MissingFiles) -> bool:
        """Whether a home is gone. A named one is reported in any case, others if something is read of them."""
        home = files.origin.home
        is_own = files.origin.machine == self._selection.own_machine and home not in self._selection.live
        return home in self._selection.lost or (is_own and bool(files.rows))

    def _kept_home_folder(self, files: MissingFiles) -> Path:
        """Where a kept home is. Its content depends on the selection, unless it is complete or a live home's."""
        origin = files.origin
        is_live = origin.machine == self._selection.own_machine and origin.home in self._selection.live
        variant = () if is_live else (_COMPLETE,) if files.is_complete else self._selection_key
        return self._folder / short_hash(origin.machine, origin.home, *variant)

    def _original_home(self, files: MissingFiles) -> OriginalHome:
        origin = files.origin
        if origin.machine != self._selection.own_machine:
            return OriginalHome(origin.home, self._machine_names[origin.machine])
        return OriginalHome(origin.home, projects=real_projects_dir(origin.home))


def _load_kept_homes(state: _State) -> KeptHomes:
    homes = tuple(Home(Path(home.path), KEEP_SOURCE, home.original) for home in state.homes)
    return KeptHomes(homes, state.problems, state.gone)


def _machine_names(origins: Sequence[HomeOrigin], own_machine: str | None) -> dict[str, str]:
    """The names of machines by id: their labels, with the id if two have the same label."""
    labels = {origin.machine: origin.label for origin in origins}
    if own_machine is not None:
        labels[own_machine] = platform.node() or labels.get(own_machine, "")
    all_labels = list(labels.values())
    return {id_: label if all_labels.count(label) == 1 else f"{label} ({id_})" for id_, label in labels.items()}


def _read_keep_id(keep: Path) -> str:
    try:
        id_ = msgspec.json.decode(read_file(keep / KEEP_JSON, follow_symlinks=False), type=_KeepInfo).id
    except (FileNotFoundError, msgspec.MsgspecError, UnicodeDecodeError):
        id_ = ""  # keep.json is damaged; the rest can still be read
    except OSError as error:
        raise Unreadable(_unreadable_message(keep, error)) from None
    return id_ or short_hash(os.path.realpath(keep))


def _unreadable_message(keep: Path, error: OSError) -> str:
    return f"The keep {str(keep)!r} cannot be read: {error.strerror or error}. Use --no-keep to ignore it."


def _runs_fingerprint(keep: Path) -> str:
    """A hash of the names of all manifests: it changes when one is added or removed."""
    return short_hash(*sorted(os.listdir(keep / "runs")))  # noqa: PTH208 - names are enough


_READ_SIZE = 1024 * 1024
_MAX_MATCH_SIZE = 256
"""The longest name and value of an id in JSON."""


class KeptFile(Struct, frozen=True, array_like=True, gc=False):
    """The version of a kept file that is shown: its path in the home, and what identifies its content.

    `truncated_to` is its size when it was last kept, if it had been truncated. A file that is put together from several
    versions has `spans` of them: their content ids, start and stop. If `truncated_path` is set, this is the part that
    the transcript with that path lost; `marks` are ids in it, which that transcript contains if it was recovered.
    """

    path: str
    size: int
    mtime_ns: int
    content: str
    truncated_to: int | None = None
    spans: tuple[tuple[str, int, int], ...] = ()
    truncated_path: str | None = None
    marks: tuple[str, ...] = ()


class HomeOrigin(Struct, frozen=True, array_like=True):
    """A home that files were kept of, and its machine's id and label."""

    machine: str
    label: str
    home: str


class HomeFiles(Struct, frozen=True, array_like=True):
    """All kept files of one home."""

    origin: HomeOrigin
    rows: tuple[KeptFile, ...]


class MissingFiles(Struct, frozen=True):
    """The kept files that a home is missing, by path, and the directories whose change would change that.

    `is_complete` is whether these are all files that were kept of the home.
    """

    origin: HomeOrigin
    rows: dict[str, KeptFile]
    watched: tuple[str, ...]
    is_complete: bool = False


class HomeSelection(Struct, frozen=True):
    """Which homes are read: live ones, and `lost` ones that were named although they are gone.

    With `only`, no others are. `own_machine` is this machine's id.
    """

    own_machine: str | None
    live: tuple[str, ...]
    lost: tuple[str, ...] = ()
    only: bool = False

    def homes_if_gone(self, listed: Sequence[HomeFiles]) -> list[str]:
        """The homes of this machine that are read from the keep only if they no longer exist."""
        own_homes = [files.origin.home for files in listed if files.origin.machine == self.own_machine]
        return [home for home in own_homes if home not in self.live] if not self.only else []


def find_missing_files(listed: Sequence[HomeFiles], selection: HomeSelection) -> Iterator[MissingFiles]:
    """The kept files that the live homes do not have, home by home."""
    own = [files for files in listed if files.origin.machine == selection.own_machine]
    others = [files for files in listed if files.origin.machine != selection.own_machine]
    provided: dict[str, KeptFile] = {}
    gone: list[HomeFiles] = []
    for files in sorted(own, key=lambda files: files.origin.home):
        home = files.origin.home
        if home in selection.live:
            provided.update((row.path, row) for row in files.rows)
            missing, watched = _files_not_in((home,), _standalone_files(files.rows))
            lost_parts = [
                row for row in files.rows if row.truncated_path is not None and row.truncated_path not in missing
            ]
            missing |= {row.path: row for row in lost_parts if not _has_recovered(home, row)}
            truncated = (_join_path(home, row.truncated_path or "") for row in lost_parts)
            yield MissingFiles(files.origin, missing, tuple(dict.fromkeys((*watched, *truncated))))
        elif home in selection.lost or (not selection.only and not is_home_present(home)):
            gone.append(files)
        # A home that exists and was not selected was left out on purpose.
    for files in gone:
        yield _missing_of_gone_home(files, selection, provided)
    if selection.only:
        yield from (
            _missing_of_gone_home(files, selection, provided) for files in others if files.origin.home in selection.lost
        )
        return
    provided |= {row.path: row for files in own for row in files.rows}
    for files in sorted(others, key=lambda files: (files.origin.label, files.origin.machine, files.origin.home)):
        rows = [row for row in _standalone_files(files.rows) if not _is_copy(row, provided.get(row.path))]
        provided.update((row.path, row) for row in rows)
        yield MissingFiles(files.origin, *_files_not_in(selection.live, rows, elsewhere=True))


def _standalone_files(rows: Iterable[KeptFile]) -> list[KeptFile]:
    """Files without lost parts, which are already in the reassembled file."""
    return [row for row in rows if row.truncated_path is None]


def _has_recovered(home: str, row: KeptFile) -> bool:
    """Whether a truncated transcript contains its lost part again, or may: then only the transcript is shown."""
    # Match the field name, too: lines after the truncation refer to the last id as their parent.
    pattern = re.compile(rb'"uuid"\s*:\s*"(?:' + b"|".join(re.escape(mark.encode()) for mark in row.marks) + rb')"')
    buffer = b""
    try:
        descriptor = open_in_home(_join_path(home, row.truncated_path or ""), home=home)
        with os.fdopen(descriptor, "rb", buffering=0) as file:
            while data := file.read(_READ_SIZE):
                buffer = buffer[-_MAX_MATCH_SIZE:] + data
                if pattern.search(buffer) is not None:
                    return True
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        return True
    return False


def is_home_present(home: str) -> bool:
    """Whether a home exists; a directory without any of Claude Code's files is only what is left of one."""
    try:
        return not HOME_MARKERS.isdisjoint(os.listdir(home))  # noqa: PTH208 - names are enough
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError):
        return True


def _missing_of_gone_home(files: HomeFiles, selection: HomeSelection, provided: dict[str, KeptFile]) -> MissingFiles:
    """Everything that was kept of a home, except what is elsewhere: it may have been moved and kept again there."""
    standalone = _standalone_files(files.rows)
    rows = [row for row in standalone if not _is_copy(row, provided.get(row.path))]
    provided.update((row.path, row) for row in rows)
    missing, watched = _files_not_in(selection.live, rows, elsewhere=True)
    of_sessions = [row for row in files.rows if has_unique_name(row.path)]
    if of_sessions and 2 * sum(row.path not in missing for row in of_sessions) >= len(of_sessions):
        # Most of its sessions are elsewhere, so it was moved: files with the same path there are its own, continued.
        missing = {
            path: row
            for path, row in missing.items()
            if has_unique_name(path) or not _exists_elsewhere(row, selection.live)
        }
    return MissingFiles(files.origin, missing, watched, is_complete=len(missing) == len(standalone))


def _exists_elsewhere(row: KeptFile, homes: Sequence[str]) -> bool:
    """Whether one of these homes has a file with this path that is not shorter."""
    for home in homes:
        try:
            if os.lstat(_join_path(home, row.path)).st_size >= _min_size(row):
                return True
        except (OSError, ValueError):
            continue
    return False


def _min_size(row: KeptFile) -> int:
    """The least size of a file that is this one or continues it. A reassembled file never had its full size."""
    return row.truncated_to if row.spans and row.truncated_to is not None else row.size


def _is_copy(row: KeptFile, other: KeptFile | None) -> bool:
    """Whether two machines kept the same file: they may share a home."""
    if other is None:
        return False
    return row.content == other.content or (has_unique_name(row.path) and row.size <= other.size)


def _files_not_in(
    homes: Sequence[str], rows: Iterable[KeptFile], *, elsewhere: bool = False
) -> tuple[dict[str, KeptFile], tuple[str, ...]]:
    """The files that none of these homes has, and the directories that were looked at."""
    by_directory: dict[str, list[KeptFile]] = {}
    for row in rows:
        by_directory.setdefault(row.path.rpartition("/")[0], []).append(row)
    watched: list[str] = []
    missing: dict[str, KeptFile] = {}
    projects = [_ProjectFolders(home) for home in homes]
    for directory, in_directory in by_directory.items():
        names_by_home = {home: _list_names(home, directory) for home in homes}
        for home, names in names_by_home.items():
            if _is_watched(directory, in_directory, exists=names is not None):
                watched.append(_join_path(home, directory))
        for row in in_directory:
            name = row.path[len(directory) + 1 :] if directory else row.path
            # Another machine's file with the same path is the same file only if its name is unique.
            is_comparable = not elsewhere or has_unique_name(row.path)
            having = [home for home, names in names_by_home.items() if is_comparable and name in (names or ())]
            if row.truncated_to == 0 and having:
                watched += (_join_path(home, row.path) for home in having)
                having = [home for home in having if not _is_empty(_join_path(home, row.path))]
            if not having and not any(folders.contain(row) for folders in projects):
                missing[row.path] = row
    for folders in projects:
        watched += folders.directories()
    return missing, tuple(dict.fromkeys(watched))


def _is_empty(path: str) -> bool:
    try:
        return os.lstat(path).st_size == 0
    except OSError:
        return False


def _is_watched(directory: str, rows: Sequence[KeptFile], *, exists: bool) -> bool:
    """Top-level directories and those with transcripts are watched: when a session goes, one of them changes."""
    if not directory:
        return False  # the home itself changes all the time
    if "/" not in directory:
        return True
    return exists and any(row.path.endswith(".jsonl") for row in rows)


class _ProjectFolders:
    """The project folders of a home: a session whose project was renamed or moved is in another one."""

    def __init__(self, home: str) -> None:
        self._projects = _join_path(home, PROJECTS)
        self._folders_by_name: dict[str, list[str]] | None = None
        self._folders: list[str] = []

    def directories(self) -> list[str]:
        """The paths of `projects` and of the folders in it."""
        return [self._projects, *(_join_path(self._projects, folder) for folder in self._list_folders())]

    def contain(self, row: KeptFile) -> bool:
        """Whether a file is in another project folder now, and not shorter than it was."""
        parts = row.path.split("/")
        if not has_unique_name(row.path) or parts[0] != PROJECTS:
            return False
        for folder in self._folders_with(parts[2]):
            if folder != parts[1]:
                try:
                    if os.lstat(_join_path(self._projects, folder, *parts[2:])).st_size >= _min_size(row):
                        return True
                except OSError:
                    continue
        return False

    def _folders_with(self, name: str) -> list[str]:
        if self._folders_by_name is None:
            self._folders_by_name = {}
            for folder in self._list_folders():
                for inside in _list_names(self._projects, folder) or ():
                    self._folders_by_name.setdefault(inside, []).append(folder)
        return self._folders_by_name.get(name, [])

    def _list_folders(self) -> list[str]:
        if not self._folders:
            self._folders = list_project_folders(self._projects)
        return self._folders


def _list_names(home: str, directory: str) -> set[str] | None:
    """The names in a directory; None if it does not exist. One that cannot be listed may contain anything."""
    try:
        return set(os.listdir(_join_path(home, directory)))  # noqa: PTH208 - names are enough
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError):
        return _AllNames()


class _AllNames(set[str]):
    """The names in a directory that cannot be listed: any name may be there."""

    def __contains__(self, name: object) -> bool:
        return True


def _join_path(home: str, *parts: str) -> str:
    return os.path.join(home, *(part for path in parts for part in path.split("/") if part))  # noqa: PTH118 - text
