"""List the current version of each kept file, and copy the missing ones into kept homes.

Loaded only when something changed. The listing is cached; the keep itself is opened only for bytes. Nothing is
fsynced: the copies can be made again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from threadline.errors import Error, Missing, Unreadable
from threadline.files import AtomicFile
from threadline.keep.cache import STATE_VERSION, SavedState, load_state, make_private_folder, save_state, short_hash
from threadline.keep.kept_home import HomeFiles, HomeOrigin, KeptFile
from threadline.keep.machine import machine_folder
from threadline.keep.sessions import is_kept_path, lost_part_path
from threadline.model.text import format_size

if TYPE_CHECKING:
    from threadline.keep.catalogue import Catalogue, PieceList, Span, Version

_OWNER = ".copy"
_RESERVED_SPACE = 512 * 1024 * 1024
"""How many bytes of the disk are left free."""


class _SavedListing(SavedState, frozen=True):
    runs: str
    homes: tuple[HomeFiles, ...]
    problems: tuple[str, ...] = ()


class KeepListing:
    """The current versions of a keep's files, from a saved listing if it is current, and their bytes."""

    def __init__(self, keep: Path, path: Path, runs: str) -> None:
        self._keep = keep
        self._opened: Catalogue | None = None
        saved = load_state(path, _SavedListing)
        if saved is None or saved.runs != runs:
            problems = (*self.catalogue.problems, *_unsafe_path_message(self.catalogue))
            saved = _SavedListing(STATE_VERSION, runs, tuple(_list_homes(self.catalogue)), problems)
            save_state(path, saved)
        self.homes = saved.homes
        self.problems = saved.problems

    @property
    def catalogue(self) -> Catalogue:
        """The keep itself, opened on first use."""
        if self._opened is None:
            self._opened = open_catalogue(self._keep)
        return self._opened

    def version(self, origin: HomeOrigin, file: KeptFile) -> Version | None:
        """The version that a listed file refers to. It may be assembled from several versions."""
        path = file.truncated_path or file.path
        if not file.spans:
            return self._version_with_content(origin, path, file.content)
        from threadline.keep.catalogue import Span  # noqa: PLC0415 - only if the keep is opened

        parts = [
            (self._version_with_content(origin, path, content), start, stop) for content, start, stop in file.spans
        ]
        spans = tuple(Span(version, start, stop) for version, start, stop in parts if version is not None)
        last = spans[-1].version if len(spans) == len(parts) else None
        return replace(last, size=file.size, mtime_ns=file.mtime_ns, spans=spans) if last is not None else None

    def _version_with_content(self, origin: HomeOrigin, path: str, content: str) -> Version | None:
        versions = self.catalogue.versions.get((origin.machine, origin.home, path), ())
        return next((version for version in reversed(versions) if _content_id(version.pieces) == content), None)


def open_catalogue(keep: Path) -> Catalogue:
    """Open a keep.

    Raises:
        Missing: zstandard is not installed.
        Unreadable: the keep cannot be read, or its key is not available.
    """
    try:
        from threadline.keep.catalogue import Catalogue  # noqa: PLC0415 - zstandard may be missing, and is slow to load
    except ImportError as error:
        message = f"Reading the keep {str(keep)!r} needs zstandard: pip install 'threadline[keep]'."
        raise Missing(message) from error
    from threadline.keep.store import Store  # noqa: PLC0415 - the same

    store = Store(keep)
    if store.is_key_missing:
        raise Unreadable(
            f"The keep {str(keep)!r} is encrypted and its key is not available. Use --no-keep to ignore it."
        )
    return Catalogue(store, machine_folder())


def _list_homes(catalogue: Catalogue) -> Iterator[HomeFiles]:
    from threadline.keep.truncation import join_lost_parts  # noqa: PLC0415 - as above

    by_origin: dict[tuple[str, str], list[KeptFile]] = {}
    labels: dict[str, str] = {}
    for (machine, home, path), versions in catalogue.versions.items():
        files = by_origin.setdefault((machine, home), [])
        newest = versions[-1]
        labels[machine] = newest.label
        if _is_safe_path(path):
            version = join_lost_parts(catalogue, versions)
            truncated_to = newest.size if newest.size < version.size else None
            spans = _encode_spans(version.spans)
            content = _content_id(version.pieces) if not spans else short_hash(*map(str, spans))
            files.append(KeptFile(path, version.size, version.mtime_ns, content, truncated_to, spans))
            if truncated_to is not None:
                files += _list_lost_parts(catalogue, versions)
    for (machine, home), files in by_origin.items():
        yield HomeFiles(HomeOrigin(machine, labels[machine], home), tuple(files))


def _list_lost_parts(catalogue: Catalogue, versions: Sequence[Version]) -> Iterator[KeptFile]:
    """What a truncated transcript lost, as a file of its own, to be shown while the transcript itself exists."""
    from threadline.keep.truncation import find_lost_parts  # noqa: PLC0415 - as above

    newest = versions[-1]
    parts = find_lost_parts(catalogue, versions, newest)
    path = lost_part_path(newest.path)
    if parts and path is not None:
        spans = _encode_spans(tuple(part.span for part in parts))
        size = sum(stop - start for _content, start, stop in spans)
        mtime_ns = max(part.span.version.mtime_ns for part in parts)
        marks = tuple(dict.fromkeys(mark for part in parts for mark in part.marks))
        yield KeptFile(path, size, mtime_ns, short_hash(*map(str, spans)), None, spans, newest.path, marks)


def _encode_spans(spans: Sequence[Span]) -> tuple[tuple[str, int, int], ...]:
    return tuple((_content_id(span.version.pieces), span.start, span.stop) for span in spans)


def _content_id(pieces: PieceList) -> str:
    """An id of the content: a file that was kept again elsewhere continues the old one and adds nothing."""
    while not pieces.added and pieces.before is not None:
        pieces = pieces.before
    return pieces.id


def _unsafe_path_message(catalogue: Catalogue) -> Iterator[str]:
    """Say how many files are not listed because of their paths; only a merged keep has such files."""
    count = sum(not _is_safe_path(path) for _machine, _home, path in catalogue.versions)
    if count:
        yield f"{count:,} files in the keep have paths that `keep` would not store, and are not listed."


def _is_safe_path(path: str) -> bool:
    """Whether a path is text, stays in the home, and is one that a run keeps: a keep may come from anywhere."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return is_kept_path(path) and all(map(_is_safe_name, path.split("/")))


def _is_safe_name(part: str) -> bool:
    return part not in {"", ".", ".."} and "\\" not in part and "\0" not in part


def copy_files(
    listing: KeepListing,
    absent: Sequence[tuple[Path, KeptFile]],
    origins: Mapping[Path, HomeOrigin],
    planned: Callable[[int], None] | None,
    progress: Callable[[int], None] | None,
) -> Iterator[str]:
    """Copy files into kept homes; yield messages about those that could not be copied."""
    if not absent:
        return
    from shutil import disk_usage  # noqa: PLC0415 - slow to import

    parent = absent[0][0].parent
    free = disk_usage(parent).free
    fitting = list(_select_fitting(absent, free - _RESERVED_SPACE))
    if len(fitting) < len(absent):
        needed = sum(file.size for _folder, file in absent)
        yield (
            f"Unpacking what only the keep has needs {format_size(needed)} in {str(parent)!r}, where"
            f" {format_size(free)} are free. The largest {len(absent) - len(fitting):,} of {len(absent):,} files are"
            " left out. Free some space, or set THREADLINE_CACHE to another folder."
        )
    if planned is not None:
        planned(sum(file.size for _folder, file in fitting))
    catalogue = listing.catalogue
    copies = [(folder, file, listing.version(origins[folder], file)) for folder, file in fitting]
    # In pack order: a frame that is decompressed for one file contains others.
    copies.sort(key=lambda copy: catalogue.position(copy[2]) if copy[2] is not None else ("", 0, 0))
    for folder, file, version in copies:
        try:
            if version is None:
                raise Unreadable("it is no longer in the keep.")
            _copy_file(catalogue, version, folder / file.path)
        except (Error, OSError, OverflowError) as error:  # a merged keep may claim any mtime
            yield f"{file.path} could not be read from the keep: {error}"
        if progress is not None:
            progress(file.size)


def _select_fitting(absent: Sequence[tuple[Path, KeptFile]], space: int) -> Iterator[tuple[Path, KeptFile]]:
    """The smallest files, as many as fit: a file that is too large, or claims to be, does not hide the others."""
    for folder, file in sorted(absent, key=lambda item: item[1].size):
        space -= file.size
        if space < 0:
            return
        yield folder, file


def find_absent_files(folder: Path, files: dict[str, KeptFile], *, compare: bool) -> Iterator[KeptFile]:
    """The files that are missing in a kept home; with `compare`, also those that are out of date."""
    by_directory: dict[str, list[KeptFile]] = {}
    for file in files.values():
        by_directory.setdefault(file.path.rpartition("/")[0], []).append(file)
    for directory, in_directory in by_directory.items():
        existing = _list_folder(folder / directory, with_status=compare)
        for file in in_directory:
            status = existing.get(file.path.rpartition("/")[2])
            if status is None or (compare and status != (file.size, file.mtime_ns)):
                yield file


def remove_stale_files(folder: Path, files: dict[str, KeptFile]) -> None:
    """Remove files from a kept home that are in a live home again, or were forgotten."""
    if not files and not folder.is_dir():
        return
    for directory, _folders, names in os.walk(folder, topdown=False):
        inside = os.path.relpath(directory, folder).replace(os.sep, "/")
        prefix = "" if inside == "." else f"{inside}/"
        for name in names:
            if f"{prefix}{name}" not in files:
                with suppress(OSError):
                    os.unlink(os.path.join(directory, name))  # noqa: PTH108, PTH118 - paths are text here
        with suppress(OSError):  # only empty folders are removed
            os.rmdir(directory)  # noqa: PTH106 - the same


def _copy_file(catalogue: Catalogue, version: Version, target: Path) -> None:
    """Copy one file atomically, with its mtime, which says whether the copy is current."""
    make_private_folder(target.parent)
    with AtomicFile(target.parent, owner=_OWNER, durable=False) as file:
        for data in catalogue.data(version):
            file.write(data)
        file.commit(target.name, mtime_ns=version.mtime_ns)


def _list_folder(directory: Path, *, with_status: bool) -> dict[str, tuple[int, int]]:
    files = {}
    with suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            status = entry.stat(follow_symlinks=False) if with_status else None
            files[entry.name] = (status.st_size, status.st_mtime_ns) if status is not None else (0, 0)
    return files
