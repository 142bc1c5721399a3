"""The catalogue: every version of every file that is kept and where its pieces lie, from manifests and packs alone."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from threadline.errors import Unreadable
from threadline.keep.manifest import File, Forgot, Gone, Manifest, read
from threadline.keep.pack import Frame, contents, frame_bytes, pieces_in
from threadline.keep.store import Store

_FRAMES = 8
"""How many frames that were read last are held: what follows is often in the same."""


class Version(Struct, frozen=True):
    """A file as one run saw it: which machine's and home's, its path, mode and time, and the pieces it is made of."""

    machine: str
    label: str
    home: str
    path: str
    mode: int
    mtime_ns: int
    size: int
    pieces: tuple[str, ...]
    run: int
    seen: str
    gone: str | None = None
    torn: bool = False


Key = tuple[str, str, str]
"""A file: its machine, its home, its path below that."""


class Located(Struct, frozen=True, gc=False):
    """Where a piece lies: in which pack and frame, and from where to where inside what that holds."""

    pack: Path
    frame: Frame
    start: int
    length: int


class Catalogue:
    """What a keep holds. What cannot be read is told in `problems`, and does not hide the rest."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.problems: list[str] = []
        self.manifests: list[Manifest] = []
        self.versions: dict[Key, list[Version]] = {}
        self.forgotten: set[str] = set()
        self._located: dict[str, Located] | None = None
        for path in store.run_files():
            try:
                manifest = read(path)
            except Unreadable as error:
                self.problems.append(str(error))
                continue
            self.manifests.append(manifest)
            self._take(manifest)
        self._frame = lru_cache(maxsize=_FRAMES)(self._frame_bytes)

    def last_run(self, machine: str) -> Manifest | None:
        """The newest manifest of a machine."""
        return max((one for one in self.manifests if one.run.machine == machine), key=_number, default=None)

    @property
    def located(self) -> dict[str, Located]:
        """Where every piece lies, by its hash."""
        if self._located is None:
            self._located = {}
            for path in self.store.pack_files():
                try:
                    self._located.update(_pieces_of(path))
                except Unreadable as error:
                    self.problems.append(str(error))
        return self._located

    def newest(self) -> Iterator[Version]:
        """The newest version of every file."""
        return (versions[-1] for versions in self.versions.values())

    def piece(self, hash_: str) -> bytes:
        """The bytes of a piece, which have that hash.

        Raises:
            Unreadable: it is not there, or is not what was kept.
        """
        found = self.located.get(hash_)
        if found is None:
            raise Unreadable(
                f"A piece of the keep is not there ({hash_[:16]}); copy the packs from another copy of it."
            )
        data = self._frame(found.pack, found.frame)[found.start : found.start + found.length]
        if sha256(data).hexdigest() != hash_:
            raise Unreadable(
                f"A piece in {found.pack.name!r} is not what was kept; `threadline keep verify` says more."
            )
        return data

    def data(self, version: Version) -> Iterator[bytes]:
        """What a file held, piece by piece."""
        return map(self.piece, version.pieces)

    def _frame_bytes(self, pack: Path, frame: Frame) -> bytes:
        known = self.store.dictionary(frame.dictionary) if frame.dictionary is not None else None
        return frame_bytes(pack, frame, known)

    def _take(self, manifest: Manifest) -> None:
        run = manifest.run
        for row in manifest.rows:
            if isinstance(row, File):
                self._add(manifest, row)
            elif isinstance(row, Gone):
                versions = self.versions.get((run.machine, row.home, row.path))
                if versions:
                    versions[-1] = replace(versions[-1], gone=run.began)
            elif isinstance(row, Forgot):
                self.forgotten.update(row.pieces)
                self.versions = {
                    key: kept
                    for key, versions in self.versions.items()
                    if (kept := [one for one in versions if not self.forgotten.intersection(one.pieces)])
                }

    def _add(self, manifest: Manifest, row: File) -> None:
        run = manifest.run
        before = self.versions.setdefault((run.machine, row.home, row.path), [])
        first: tuple[str, ...] = ()
        if row.start:
            base = next((one for one in reversed(before) if one.size == row.start), None)
            if base is None:
                where = f"{row.path} of run {run.number} of {run.label}"
                self.problems.append(f"What {where} goes on from is not in the keep; a manifest is missing.")
                return
            first = base.pieces
        path = os.fsdecode(bytes.fromhex(row.raw_path)) if row.raw_path is not None else row.path
        before.append(
            Version(
                run.machine,
                run.label,
                row.home,
                path,
                row.mode,
                row.mtime_ns,
                row.size,
                (*first, *row.pieces),
                run.number,
                run.began,
                torn=row.torn,
            )
        )


def _number(manifest: Manifest) -> int:
    return manifest.run.number


def _pieces_of(path: Path) -> Iterable[tuple[str, Located]]:
    for frame in contents(path).frames:
        at = 0
        for hash_, length in frame.pieces:
            yield hash_, Located(path, frame, at, length)
            at += length


def checked(path: Path, frame: Frame, dictionary: bytes | None) -> Iterator[tuple[str, bool]]:
    """Every piece of a frame, and whether it is what its hash says."""
    for hash_, data in pieces_in(frame, frame_bytes(path, frame, dictionary)):
        yield hash_, sha256(data).hexdigest() == hash_
