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
from threadline.keep.durable import TEMPORARY
from threadline.keep.sources import is_source

_ROOM = 64 * 1024 * 1024
"""How many bytes are left free on the disk."""


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
    files: list[Path] = []
    same: list[Path] = []
    refused: list[str] = []
    room = _free(home) - _ROOM
    # The smallest first: one that is too large, or says so, does not keep others from coming back.
    for version in sorted(versions, key=lambda one: one.size):
        try:
            place = _place(home, version.path)
            if place.exists() and _equal(catalogue, version, place):
                if force:
                    _dress(place, version)
                same.append(place)
            elif os.path.lexists(place) and not force:
                refused.append(f"{place} is there with other bytes; --force puts the kept ones in its place.")
            elif version.size > room:
                refused.append(
                    f"{version.path}: there is no room for its {version.size:,} bytes; {_ROOM // 2**20} MB of a disk"
                    " are left free."
                )
            else:
                room -= version.size
                _write(catalogue, version, place)
                files.append(place)
        except (Unreadable, OSError, OverflowError, ValueError) as error:
            refused.append(f"{version.path}: {error}")
        if progress is not None:
            progress(version.size)
    return Restored(tuple(files), tuple(same), tuple(refused))


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


def _write(catalogue: Catalogue, version: Version, place: Path) -> None:
    """All of it under another name first: what is there is only replaced by what is whole."""
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = place.with_name(f".{os.getpid()}-{place.name[:80]}{TEMPORARY}")
    try:
        with temporary.open("xb") as file:
            for data in catalogue.data(version):
                file.write(data)
            file.flush()
            os.fsync(file.fileno())
        _dress(temporary, version)
        temporary.replace(place)
    finally:
        temporary.unlink(missing_ok=True)


def _dress(place: Path, version: Version) -> None:
    """The mode and the time that it had; never a mode that would make it run as somebody else."""
    place.chmod(version.mode & 0o777)
    os.utime(place, ns=(version.mtime_ns, version.mtime_ns))
