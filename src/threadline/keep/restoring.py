"""Restoring: kept files put back where a Claude home has them, byte for byte, with their modes and times."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath
from shutil import disk_usage

from msgspec import Struct

from threadline.errors import Unreadable
from threadline.find.links import real_projects
from threadline.find.side_files import PROJECTS
from threadline.keep.catalogue import Catalogue, Version
from threadline.keep.landing import Landing, dress
from threadline.keep.sources import is_source

_ROOM = 64 * 1024 * 1024
"""How many bytes are left free on the disk."""
_FAILURES = (Unreadable, OSError, OverflowError, ValueError)


class Restored(Struct, frozen=True):
    """What was put back, what was there already with the same bytes, and what was not put back and why."""

    files: tuple[Path, ...] = ()
    same: tuple[Path, ...] = ()
    refused: tuple[str, ...] = ()


def restore(
    catalogue: Catalogue,
    versions: Iterable[Version],
    home: Path,
    *,
    force: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Restored:
    """Put files into a home. What is there with other bytes stays, unless `force`; nothing is written outside of it."""
    restoring = _Restoring(catalogue, home, progress or (lambda _done: None), force=force)
    # The smallest first: one that is too large, or says so, does not keep others from coming back.
    chosen = [one for one in sorted(versions, key=lambda one: one.size) if restoring.is_to_be_written(one)]
    # As they lie in the packs: what is unpacked for one has others in it.
    with Landing() as landing:
        for version in sorted(chosen, key=catalogue.place):
            restoring.write(version, landing)
    return restoring.restored(landing)


class _Restoring:
    """What is put into one home, and what is not."""

    def __init__(self, catalogue: Catalogue, home: Path, progress: Callable[[int], None], *, force: bool) -> None:
        self._catalogue = catalogue
        self._home = home
        self._progress = progress
        self._force = force
        self._room = _free(home) - _ROOM
        self._same: list[Path] = []
        self._refused: list[str] = []

    def restored(self, landing: Landing) -> Restored:
        """What came of it."""
        failed = [f"{os.path.relpath(place, self._home)}: {_said(error)}" for place, error in landing.failed]
        return Restored(tuple(landing.landed), tuple(self._same), (*self._refused, *failed))

    def is_to_be_written(self, version: Version) -> bool:
        """Whether a file is not there yet, may be put there, and has room."""
        try:
            place = _place(self._home, version.path)
            if place.exists() and _equal(self._catalogue, version, place):
                if self._force:
                    dress(place, version.mode, version.mtime_ns)
                self._same.append(place)
            elif os.path.lexists(place) and not self._force:
                self._refuse(f"{place} is there with other bytes; --force puts the kept ones in its place.")
            elif self._is_ahead(version, place):
                self._refuse(
                    f"{place} has grown since it was kept, and --force would lose that: `threadline keep` first."
                )
            elif place.is_dir() and not place.is_symlink():
                self._refuse(f"{place} is a folder, so nothing is put in its place.")
            elif version.size > self._room:
                self._refuse(
                    f"{version.path}: there is no room for its {version.size:,} bytes; {_ROOM // 2**20} MB of a disk"
                    " are left free."
                )
            else:
                self._room -= version.size
                return True
        except _FAILURES as error:
            self._refuse(f"{version.path}: {_said(error)}")
        self._progress(version.size)
        return False

    def _is_ahead(self, version: Version, place: Path) -> bool:
        """Whether a file is where it was kept, and went on from there: those bytes are nowhere else."""
        if place != Path(version.home, version.path) or place.is_symlink() or not place.is_file():
            return False
        newest = self._catalogue.versions.get((version.machine, version.home, version.path), [version])[-1]
        if not 0 < newest.size < place.stat().st_size:
            return False
        with place.open("rb") as file:
            return all(file.read(len(data)) == data for data in self._catalogue.data(newest))

    def write(self, version: Version, landing: Landing) -> None:
        """Write one, which has its name once it is on the disk."""
        try:
            place = _place(self._home, version.path)
            landing.write(place, self._catalogue.data(version), version.mode, version.mtime_ns)
        except _FAILURES as error:
            self._refuse(f"{version.path}: {_said(error)}")
        self._progress(version.size)

    def _refuse(self, why: str) -> None:
        self._refused.append(why)


def _said(error: Exception) -> str:
    """What went wrong, for a person: without the names of files that nobody has heard of."""
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return said if said.endswith(".") else f"{said}."


def _free(home: Path) -> int:
    """How many bytes are free where a home is, or will be."""
    there = next((one for one in (home, *home.parents) if one.is_dir()), None)
    return disk_usage(there).free if there is not None else 0


def _place(home: Path, path: str) -> Path:
    """Where a path of a manifest lies below a home. It may come from anywhere: it must not lead out.

    Raises:
        Unreadable: it does.
    """
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or any(map(_is_strange, parts)):
        raise Unreadable("its path leads out of the home, so it is not put back.")
    # Settings, commands and the like would have Claude Code run whatever somebody else wrote.
    if not is_source(path):
        raise Unreadable("no run keeps what lies there, so it is not put back.")
    place = home.joinpath(*parts)
    moved = real_projects(os.path.realpath(home))
    for above in place.parents:
        if above == home:
            break
        # People move that one to another disk, and Claude Code follows it.
        is_moved = moved is not None and above == home / PROJECTS
        if above.is_symlink() and not is_moved:
            raise Unreadable(f"{above} is a link, so nothing is put below it.")
    return place


def _is_strange(part: str) -> bool:
    """Whether a part of a path is one that no file has, or that means something else on this system."""
    windows = os.name == "nt" and any(sign in part for sign in '\\:*?"<>|')
    return part in ("..", ".") or "\0" in part or windows


def _equal(catalogue: Catalogue, version: Version, place: Path) -> bool:
    if place.is_symlink() or not place.is_file() or place.stat().st_size != version.size:
        return False
    with place.open("rb") as file:
        return all(file.read(len(data)) == data for data in catalogue.data(version))
