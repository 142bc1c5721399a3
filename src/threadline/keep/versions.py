"""Versions: files as runs saw them, of which pieces each is made, and which are forgotten."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from hashlib import sha256

from msgspec import Struct

from threadline.keep.manifest import File, Forgot, Run, as_path, as_text

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Pieces:
    """The pieces that a version is made of, by their hashes, in order: those of another one, and those that follow.

    `id` is what those that go on from it call it: the hash of that of the other one and of its own, a line each.
    """

    __slots__ = ("added", "before", "id")
    id: str

    def __init__(self, added: tuple[str, ...], before: Pieces | None = None) -> None:
        self.added = added
        self.before = before
        self.id = sha256("\n".join((before.id if before is not None else "", *added)).encode()).hexdigest()

    def __iter__(self) -> Iterator[str]:
        parts = []
        one: Pieces | None = self
        while one is not None:
            parts.append(one.added)
            one = one.before
        return (hash_ for part in reversed(parts) for hash_ in part)

    def __len__(self) -> int:
        return sum(1 for _hash in self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pieces) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)


class Span(Struct, frozen=True):
    """The bytes of a version from one place to another."""

    version: Version
    start: int
    stop: int


class Version(Struct, frozen=True):
    """A file as one run saw it: which machine's and home's, its path, mode and time, and the pieces it is made of.

    One that no run saw so, but is put together of several that runs saw, is made of `spans` of these.
    """

    machine: str
    label: str
    home: str
    path: str
    mode: int
    mtime_ns: int
    size: int
    pieces: Pieces
    run: int
    seen: str
    gone: str | None = None
    torn: bool = False
    ctime_ns: int = 0
    spans: tuple[Span, ...] = ()


Key = tuple[str, str, str]
"""A file: its machine, its home, its path below that."""


class Forgotten:
    """Which files are not to be listed or kept any more."""

    def __init__(self) -> None:
        self.rows: list[Forgot] = []
        self._paths: set[str] = set()
        self._sessions: set[str] = set()

    def add(self, row: Forgot) -> None:
        """One more session."""
        self.rows.append(row)
        self._paths.update(row.paths)
        # Only what cannot be in a path by accident: a merged keep may say anything.
        if _UUID.fullmatch(row.session):
            self._sessions.add(row.session)

    def has_row(self, row: File) -> bool:
        """Whether the file that a row tells of is to be left out."""
        return self.has(as_path(row.path, row.raw_path))

    def has(self, path: str) -> bool:
        """Whether a file is to be left out, wherever it lies."""
        if not self.rows:
            return False
        text = as_text(path)[0]
        return text in self._paths or any(found[0] in self._sessions for found in _UUID.finditer(text))


def row_id(row: File) -> str:
    """What rows that go on from this one call it."""
    return sha256("\n".join((row.base or "", *row.pieces)).encode()).hexdigest()


def work_out(rows: Iterable[File], found: dict[str, Pieces]) -> None:
    """The pieces of each row, by its id, into `found`. What one goes on from may be told further down, or elsewhere."""
    waiting: dict[str, list[File]] = {}
    for row in rows:
        if row.base is not None and row.base not in found:
            waiting.setdefault(row.base, []).append(row)
            continue
        ready = [row]
        while ready:
            one = ready.pop()
            made = Pieces(one.pieces, found[one.base] if one.base is not None else None)
            if made.id not in found:
                found[made.id] = made
                ready += waiting.pop(made.id, ())


def version_of(run: Run, row: File, pieces: Pieces) -> Version:
    """The version that a row of a run tells of."""
    return Version(
        run.machine,
        run.label,
        as_path(row.home, row.raw_home),
        as_path(row.path, row.raw_path),
        row.mode,
        row.mtime_ns,
        row.size,
        pieces,
        run.number,
        run.began,
        torn=row.torn,
        ctime_ns=row.ctime_ns,
    )


def is_same(one: Version, other: Version) -> bool:
    """Whether nothing changed but what the system notes of a file."""
    return (one.gone, one.size, one.mtime_ns, one.mode, one.torn) == (
        other.gone,
        other.size,
        other.mtime_ns,
        other.mode,
        other.torn,
    ) and list(one.pieces) == list(other.pieces)
