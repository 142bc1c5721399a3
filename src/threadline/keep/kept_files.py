"""List the current version of each kept file, and copy the missing ones into kept homes.

Loaded only when something changed. The listing is cached; the keep itself is opened only for bytes. Nothing is
fsynced: the copies can be made again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from threadline.errors import Error, Missing, Unreadable
from threadline.keep.cache import (
    NEW_SUFFIX,
    STATE_VERSION,
    SavedState,
    load_state,
    make_private_folder,
    save_state,
    short_hash,
)
from threadline.keep.kept_home import HomeFiles, HomeOrigin, KeptFile
from threadline.keep.paths import is_kept_path, lost_part_path

if TYPE_CHECKING:
    from threadline.keep.catalogue import Catalogue, PieceList, Span, Version
    from threadline.keep.kept_home import MissingFiles as NotThere


class _SavedListing(SavedState, frozen=True):
    """What is in the keep, as its runs say."""

    runs: str
    listed: tuple[HomeFiles, ...]
    problems: tuple[str, ...] = ()


class KeepListing:
    """What a keep holds: the versions that are read, from what was noted, and their bytes, for which it is opened."""

    def __init__(self, keep: Path, place: Path, runs: str) -> None:
        self._keep = keep
        self._opened: Catalogue | None = None
        known = load_state(place, _SavedListing)
        if known is None or known.runs != runs:
            problems = (*self.catalogue.problems, *_unsafe_path_message(self.catalogue))
            known = _SavedListing(STATE_VERSION, runs, tuple(_list_homes(self.catalogue)), problems)
            save_state(place, known)
        self.listed = known.listed
        self.problems = known.problems

    @property
    def catalogue(self) -> Catalogue:
        """The keep itself."""
        if self._opened is None:
            self._opened = open_catalogue(self._keep)
        return self._opened

    def version(self, origin: HomeOrigin, row: KeptFile) -> Version | None:
        """The version that a row stands for, put together of several where it is."""
        path = row.beside or row.path
        if not row.spans:
            return self._of_content(origin, path, row.pieces)
        from threadline.keep.catalogue import Span  # noqa: PLC0415 - only where the keep is opened

        parts = [(self._of_content(origin, path, pieces), start, stop) for pieces, start, stop in row.spans]
        spans = tuple(Span(version, start, stop) for version, start, stop in parts if version is not None)
        last = spans[-1].version if len(spans) == len(parts) else None
        return replace(last, size=row.size, mtime_ns=row.mtime_ns, spans=spans) if last is not None else None

    def _of_content(self, origin: HomeOrigin, path: str, pieces: str) -> Version | None:
        versions = self.catalogue.versions.get((origin.machine, origin.home, path), ())
        return next((version for version in reversed(versions) if _content_id(version.pieces) == pieces), None)


def open_catalogue(keep: Path) -> Catalogue:
    """What a keep holds, from the keep itself.

    Raises:
        Missing: what it is read with is not installed.
        Unreadable: it cannot be read.
    """
    try:
        from threadline.keep.catalogue import Catalogue  # noqa: PLC0415 - zstandard may be missing, and takes a while
    except ImportError as error:
        told = f"The keep {str(keep)!r} cannot be read without zstandard: pip install 'threadline[keep]'."
        raise Missing(told) from error
    from threadline.keep.keep import open_machine_cache  # noqa: PLC0415 - the same
    from threadline.keep.machine import Machine, machine_folder  # noqa: PLC0415 - the same
    from threadline.keep.store import Store  # noqa: PLC0415 - the same

    store = Store(keep)
    if store.is_key_missing:
        raise Unreadable(f"The keep {str(keep)!r} is encrypted and its key is not at hand; --no-keep leaves it out.")
    return Catalogue(store, open_machine_cache(store, Machine("", "", machine_folder())))


def _list_homes(catalogue: Catalogue) -> Iterator[HomeFiles]:
    from threadline.keep.truncation import join_lost_parts  # noqa: PLC0415 - as above

    by_origin: dict[tuple[str, str], list[KeptFile]] = {}
    labels: dict[str, str] = {}
    for (machine, home, path), versions in catalogue.versions.items():
        rows = by_origin.setdefault((machine, home), [])
        newest = versions[-1]
        labels[machine] = newest.label
        if _is_safe_path(path):
            one = join_lost_parts(catalogue, versions)
            cut = newest.size if newest.size < one.size else None
            spans = _encode_spans(one.spans)
            pieces = _content_id(one.pieces) if not spans else short_hash(*map(str, spans))
            rows.append(KeptFile(path, one.size, one.mtime_ns, pieces, cut, spans))
            if cut is not None:
                rows += _list_lost_parts(catalogue, versions)
    for (machine, home), found in by_origin.items():
        yield HomeFiles(HomeOrigin(machine, labels[machine], home), tuple(found))


def _list_lost_parts(catalogue: Catalogue, versions: Sequence[Version]) -> Iterator[KeptFile]:
    """What a transcript lost that is still there, cut off: a file of its own beside it, for that one stays as it is."""
    from threadline.keep.truncation import find_lost_parts  # noqa: PLC0415 - as above

    newest = versions[-1]
    found = find_lost_parts(catalogue, versions, newest)
    path = lost_part_path(newest.path)
    if found and path is not None:
        spans = _encode_spans(tuple(one.span for one in found))
        size = sum(stop - start for _pieces, start, stop in spans)
        last = max(one.span.version.mtime_ns for one in found)
        marks = tuple(dict.fromkeys(mark for one in found for mark in one.marks))
        yield KeptFile(path, size, last, short_hash(*map(str, spans)), None, spans, newest.path, marks)


def _encode_spans(spans: Sequence[Span]) -> tuple[tuple[str, int, int], ...]:
    return tuple((_content_id(span.version.pieces), span.start, span.stop) for span in spans)


def _content_id(pieces: PieceList) -> str:
    """What names the bytes: a file that was kept again elsewhere goes on from what it was, and adds nothing."""
    while not pieces.added and pieces.before is not None:
        pieces = pieces.before
    return pieces.id


def _unsafe_path_message(catalogue: Catalogue) -> Iterator[str]:
    """Say that some files are not listed: their paths are not text, lead out of the home, or are none that is kept."""
    count = sum(not _is_safe_path(path) for _machine, _home, path in catalogue.versions)
    if count:
        yield f"{count:,} files in the keep have paths that `keep` would not store, and are not listed."


def _is_safe_path(path: str) -> bool:
    """Whether a path stays in the home, is text, and one that a run keeps: a keep may come from anywhere."""
    parts = path.split("/")
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return is_kept_path(path) and all(_is_safe_name(part) for part in parts)


def _is_safe_name(part: str) -> bool:
    return part not in {"", ".", ".."} and "\\" not in part and "\0" not in part


_RESERVED_SPACE = 512 * 1024 * 1024
"""How many bytes are left free on the disk whatever is asked for."""


def copy_files(
    keep: KeepListing,
    absent: Sequence[tuple[Path, KeptFile]],
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
    fit = list(_select_fitting(absent, free - _RESERVED_SPACE))
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
    for place, row, version in sorted(found, key=lambda one: _pack_position(keep, one[2])):
        try:
            if version is None:
                raise Unreadable("it is not in the keep any more.")
            _copy_file(keep.catalogue, version, place / row.path)
        except (Error, OSError) as error:
            yield f"{row.path} cannot be had from the keep: {error}"
        if progress is not None:
            progress(row.size)


def _pack_position(keep: KeepListing, version: Version | None) -> tuple[str, int, int]:
    return keep.catalogue.place(version) if version is not None else ("", 0, 0)


def _select_fitting(absent: Sequence[tuple[Path, KeptFile]], room: int) -> Iterator[tuple[Path, KeptFile]]:
    """The smallest, as many as there is room for: one that is too large, or says so, does not hide the others."""
    for place, row in sorted(absent, key=lambda one: one[1].size):
        room -= row.size
        if room < 0:
            return
        yield place, row


def find_absent_files(place: Path, rows: dict[str, KeptFile], *, whole: bool) -> Iterator[KeptFile]:
    """Of what should be in a kept home, what is not; where the keep has changed, in that very version."""
    by_directory: dict[str, list[KeptFile]] = {}
    for row in rows.values():
        by_directory.setdefault(row.path.rpartition("/")[0], []).append(row)
    for directory, some in by_directory.items():
        there = _list_folder(place / directory, whole=whole)
        for row in some:
            told = there.get(row.path.rpartition("/")[2])
            if told is None or (whole and told != (row.size, row.mtime_ns)):
                yield row


def remove_stale_files(place: Path, rows: dict[str, KeptFile]) -> None:
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


def _copy_file(catalogue: Catalogue, version: Version, place: Path) -> None:
    """One file, whole or not at all, with its time."""
    make_private_folder(place.parent)
    temporary = place.with_name(f"{place.name[:80]}.{os.getpid()}{NEW_SUFFIX}")
    try:
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:  # noqa: PTH123 - a mode
            file.writelines(catalogue.data(version))
        os.utime(temporary, ns=(version.mtime_ns, version.mtime_ns))
        temporary.replace(place)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _list_folder(directory: Path, *, whole: bool) -> dict[str, tuple[int, int]]:
    found = {}
    with suppress(OSError), os.scandir(directory) as inside:
        for entry in inside:
            status = entry.stat(follow_symlinks=False) if whole else None
            found[entry.name] = (status.st_size, status.st_mtime_ns) if status is not None else (0, 0)
    return found
