"""Copies: kept files put into a kept home, and taken out of it. Nothing here is fsynced: they can be made again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from threadline.errors import Error, Unreadable
from threadline.keep.missing import Row
from threadline.keep.notes import NEW, make

if TYPE_CHECKING:
    from threadline.keep.catalogue import Catalogue, Version
    from threadline.keep.listing import Listing
    from threadline.keep.missing import Missing as NotThere

_ROOM = 512 * 1024 * 1024
"""How many bytes are left free on the disk whatever is asked for."""


def put(
    keep: Listing,
    absent: Sequence[tuple[Path, Row]],
    homes: dict[Path, NotThere],
    planned: Callable[[int], None] | None,
    progress: Callable[[int], None] | None,
) -> Iterator[str]:
    """Put files where a Claude home has them; why some could not be."""
    if not absent:
        return
    from shutil import disk_usage  # noqa: PLC0415 - takes longer to load than all else here

    first = absent[0][0].parent
    free = disk_usage(first).free
    fit = list(_fitting(absent, free - _ROOM))
    if len(fit) < len(absent):
        needed = sum(row.size for _place, row in absent)
        yield (
            f"What only the keep has would take {needed / 1e6:,.1f} MB below {str(first)!r}, where"
            f" {free / 1e6:,.1f} MB are free: the largest {len(absent) - len(fit):,} of its {len(absent):,} files are"
            " left out; make room, or name another folder with THREADLINE_CACHE."
        )
    if planned is not None:
        planned(sum(row.size for _place, row in fit))
    found = [(place, row, keep.version(homes[place].origin, row)) for place, row in fit]
    # As they lie in the packs: what is unpacked for one has others in it.
    for place, row, version in sorted(found, key=lambda one: _where(keep, one[2])):
        try:
            if version is None:
                raise Unreadable("it is not in the keep any more.")
            _copy(keep.catalogue, version, place / row.path)
        except (Error, OSError) as error:
            yield f"{row.path} cannot be had from the keep: {error}"
        if progress is not None:
            progress(row.size)


def _where(keep: Listing, version: Version | None) -> tuple[str, int, int]:
    return keep.catalogue.place(version) if version is not None else ("", 0, 0)


def _fitting(absent: Sequence[tuple[Path, Row]], room: int) -> Iterator[tuple[Path, Row]]:
    """The smallest, as many as there is room for: one that is too large, or says so, does not hide the others."""
    for place, row in sorted(absent, key=lambda one: one[1].size):
        room -= row.size
        if room < 0:
            return
        yield place, row


def absent(place: Path, rows: dict[str, Row], *, whole: bool) -> Iterator[Row]:
    """Of what should be in a kept home, what is not; where the keep has changed, in that very version."""
    by_directory: dict[str, list[Row]] = {}
    for row in rows.values():
        by_directory.setdefault(row.path.rpartition("/")[0], []).append(row)
    for directory, some in by_directory.items():
        there = _entries(place / directory, whole=whole)
        for row in some:
            told = there.get(row.path.rpartition("/")[2])
            if told is None or (whole and told != (row.size, row.mtime_ns)):
                yield row


def take_away(place: Path, rows: dict[str, Row]) -> None:
    """What is in a living home again, or was forgotten, leaves."""
    if not rows and not place.is_dir():
        return
    for directory, _below, names in os.walk(place, topdown=False):
        inside = os.path.relpath(directory, place).replace(os.sep, "/")
        above = "" if inside == "." else f"{inside}/"
        for name in names:
            if f"{above}{name}" not in rows:
                with suppress(OSError):
                    os.unlink(os.path.join(directory, name))  # noqa: PTH108, PTH118 - paths are text here
        with suppress(OSError):  # those that hold something stay
            os.rmdir(directory)  # noqa: PTH106 - the same


def _copy(catalogue: Catalogue, version: Version, place: Path) -> None:
    """One file, whole or not at all, with its time."""
    make(place.parent)
    temporary = place.with_name(f"{place.name[:80]}.{os.getpid()}{NEW}")
    try:
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:  # noqa: PTH123 - a mode
            file.writelines(catalogue.data(version))
        os.utime(temporary, ns=(version.mtime_ns, version.mtime_ns))
        temporary.replace(place)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _entries(directory: Path, *, whole: bool) -> dict[str, tuple[int, int]]:
    found = {}
    with suppress(OSError), os.scandir(directory) as inside:
        for entry in inside:
            status = entry.stat(follow_symlinks=False) if whole else None
            found[entry.name] = (status.st_size, status.st_mtime_ns) if status is not None else (0, 0)
    return found
