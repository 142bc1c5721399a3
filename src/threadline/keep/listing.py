"""The listing: which version of each kept file is read, noted under the cache; only for bytes the keep is opened."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from threadline.errors import Missing, Unreadable
from threadline.keep.apart import apart
from threadline.keep.missing import Listed, Origin, Row
from threadline.keep.notes import VERSION, Note, name_of, note, noted
from threadline.keep.sources import is_source

if TYPE_CHECKING:
    from threadline.keep.catalogue import Catalogue, Version
    from threadline.keep.versions import Pieces, Span


class _Listing(Note, frozen=True):
    """What is in the keep, as its runs say."""

    runs: str
    listed: tuple[Listed, ...]
    problems: tuple[str, ...] = ()


class Listing:
    """What a keep holds: the versions that are read, from what was noted, and their bytes, for which it is opened."""

    def __init__(self, keep: Path, place: Path, runs: str) -> None:
        self._keep = keep
        self._opened: Catalogue | None = None
        known = noted(place, _Listing)
        if known is None or known.runs != runs:
            problems = (*self.catalogue.problems, *_strange(self.catalogue))
            known = _Listing(VERSION, runs, tuple(_listed(self.catalogue)), problems)
            note(place, known)
        self.listed = known.listed
        self.problems = known.problems

    @property
    def catalogue(self) -> Catalogue:
        """The keep itself."""
        if self._opened is None:
            self._opened = opened(self._keep)
        return self._opened

    def version(self, origin: Origin, row: Row) -> Version | None:
        """The version that a row stands for, put together of several where it is."""
        path = row.beside or row.path
        if not row.spans:
            return self._of_content(origin, path, row.pieces)
        from threadline.keep.versions import Span  # noqa: PLC0415 - only where the keep is opened

        parts = [(self._of_content(origin, path, pieces), start, stop) for pieces, start, stop in row.spans]
        spans = tuple(Span(version, start, stop) for version, start, stop in parts if version is not None)
        last = spans[-1].version if len(spans) == len(parts) else None
        return replace(last, size=row.size, mtime_ns=row.mtime_ns, spans=spans) if last is not None else None

    def _of_content(self, origin: Origin, path: str, pieces: str) -> Version | None:
        versions = self.catalogue.versions.get((origin.machine, origin.home, path), ())
        return next((one for one in reversed(versions) if _content(one.pieces) == pieces), None)


def opened(keep: Path) -> Catalogue:
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
    from threadline.keep.keeping import memory_of  # noqa: PLC0415 - the same
    from threadline.keep.machine import Machine, machine_folder  # noqa: PLC0415 - the same
    from threadline.keep.store import Store  # noqa: PLC0415 - the same

    store = Store(keep)
    if store.is_locked:
        raise Unreadable(f"The keep {str(keep)!r} is encrypted and its key is not at hand; --no-keep leaves it out.")
    return Catalogue(store, memory_of(store, Machine("", "", machine_folder())))


def _listed(catalogue: Catalogue) -> Iterator[Listed]:
    from threadline.keep.cuts import joined  # noqa: PLC0415 - as above

    by_origin: dict[tuple[str, str], list[Row]] = {}
    labels: dict[str, str] = {}
    for (machine, home, path), versions in catalogue.versions.items():
        rows = by_origin.setdefault((machine, home), [])
        newest = versions[-1]
        labels[machine] = newest.label
        if _is_inside(path):
            one = joined(catalogue, versions)
            cut = newest.size if newest.size < one.size else None
            spans = _spans(one.spans)
            pieces = _content(one.pieces) if not spans else name_of(*map(str, spans))
            rows.append(Row(path, one.size, one.mtime_ns, pieces, cut, spans))
            if cut is not None:
                rows += _beside(catalogue, versions)
    for (machine, home), found in by_origin.items():
        yield Listed(Origin(machine, labels[machine], home), tuple(found))


def _beside(catalogue: Catalogue, versions: Sequence[Version]) -> Iterator[Row]:
    """What a transcript lost that is still there, cut off: a file of its own beside it, for that one stays as it is."""
    from threadline.keep.cuts import lost  # noqa: PLC0415 - as above

    newest = versions[-1]
    found = lost(catalogue, versions, newest)
    path = apart(newest.path)
    if found and path is not None:
        spans = _spans(tuple(one.span for one in found))
        size = sum(stop - start for _pieces, start, stop in spans)
        last = max(one.span.version.mtime_ns for one in found)
        marks = tuple(dict.fromkeys(mark for one in found for mark in one.marks))
        yield Row(path, size, last, name_of(*map(str, spans)), None, spans, newest.path, marks)


def _spans(spans: Sequence[Span]) -> tuple[tuple[str, int, int], ...]:
    return tuple((_content(one.version.pieces), one.start, one.stop) for one in spans)


def _content(pieces: Pieces) -> str:
    """What names the bytes: a file that was kept again elsewhere goes on from what it was, and adds nothing."""
    while not pieces.added and pieces.before is not None:
        pieces = pieces.before
    return pieces.id


def _strange(catalogue: Catalogue) -> Iterator[str]:
    """What is not put back, nor kept by another name: its own is no text, leads elsewhere, or is none that is kept."""
    from threadline.keep.misnamed import misnamed  # noqa: PLC0415 - as above

    many = sum(map(len, misnamed(catalogue, _is_inside)))
    if many:
        yield f"Of the keep, {many:,} paths lead out of their home or are no text; `threadline keep status` says more."


def _is_inside(path: str) -> bool:
    """Whether a path stays in the home, is text, and one that a run keeps: a keep may come from anywhere."""
    parts = path.split("/")
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return is_source(path) and all(_is_name(part) for part in parts)


def _is_name(part: str) -> bool:
    return part not in {"", ".", ".."} and "\\" not in part and "\0" not in part
