"""Merging: what other keeps have and this one has not, taken over once it proved to be what it says."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct
from msgspec.structs import replace

from threadline.errors import Unreadable
from threadline.keep import durable, forgetting, labelling, mending, pack
from threadline.keep import manifest as manifests
from threadline.keep.catalogue import Catalogue, Located, run_text, take_in
from threadline.keep.machine import Machine
from threadline.keep.manifest import File, Forgot, Manifest
from threadline.keep.pack import Frame, pieces_in
from threadline.keep.pieces import Piece
from threadline.keep.repacking import frames_of
from threadline.keep.store import Store, file_hash, told_hash
from threadline.keep.versions import Forgotten, Pieces, row_id, work_out
from threadline.keep.writing import Packing

_LARGEST = 1024 * 1024 * 1024
"""No pack that threadline writes is nearly as large."""
_COPY = 1024 * 1024


class Merged(Struct, frozen=True):
    """What was taken over: how many packs and manifests, in how many bytes; which sessions were forgotten there.

    `refused` says what was not taken over and why, `mended` how many other files of this keep were made good.
    """

    packs: int = 0
    runs: int = 0
    bytes: int = 0
    forgotten: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    mended: int = 0


def merge(
    store: Store,
    machine: Machine,
    others: Sequence[Store],
    *,
    forgets: bool = False,
    even_damaged: bool = False,
    planned: Callable[[int], None] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Merged:
    """Take over what other keeps have. Nothing of them is believed: every byte is compared with its hash first.

    With `forgets`, sessions that were forgotten there and are kept here are forgotten here, too; without, such a keep
    is left out. With `even_damaged`, runs some of whose bytes are lost there are listed here all the same.

    Raises:
        IndexBusy: another process of this machine is writing the keep.
        Unreadable: the keep cannot be written, or one of them is encrypted and its key not at hand.
    """
    labelled = labelling.mend(store, machine, others)
    for one in (store, *others):
        one.require_key()
    merging = _Merging(store, machine, progress or (lambda _done: None), even_damaged=even_damaged)
    if planned is not None:
        planned(sum(path.lstat().st_size for other in others for path in other.pack_files()))
    with store.adding(machine.id):
        for other in others:
            merging.take(other, forgets=forgets)
        take_in(store, machine.memory)
    forgetting.finish(Catalogue(store), machine)
    done = merging.merged()
    return replace(done, mended=done.mended + labelled)


class _Merging:
    def __init__(self, store: Store, machine: Machine, progress: Callable[[int], None], *, even_damaged: bool) -> None:
        self._store = store
        self._machine = machine
        self._progress = progress
        self._even_damaged = even_damaged
        self._mended = 0
        self._packs = 0
        self._runs = 0
        self._bytes = 0
        self._forgotten: list[str] = []
        self._refused: list[str] = []

    def merged(self) -> Merged:
        """What came of it."""
        return Merged(self._packs, self._runs, self._bytes, tuple(self._forgotten), tuple(self._refused), self._mended)

    def take(self, other: Store, *, forgets: bool) -> None:
        """Take over one keep: dictionaries and packs first, so that no manifest tells of what is not there."""
        self._mended += mending.mend(self._store, self._machine.id, other)
        here = Catalogue(self._store)
        known = {one.hash for one in here.manifests}
        there = [(path, one) for path, one in self._manifests(other) if one.hash not in known]
        rows = [row for _path, one in there for row in one.rows if isinstance(row, Forgot)]
        common = next((path for row in rows for path in row.paths if "/" not in path), None)
        if common is not None:
            self._refuse(other, f"it says to forget {common!r}, which belongs to no session")
            return
        lost = _lost(here, rows)
        if lost and not forgets:
            few = ", ".join(sorted(one or "one without a name" for one in lost)[:3])
            self._refuse(
                other,
                f"it has forgotten sessions that are kept here ({few}); --accept-forgotten forgets them here, too",
            )
            return
        self._forgotten += sorted(lost)
        for row in rows:
            here.forgotten.add(row)
        pieces: dict[str, Pieces] = {}
        everything = [*here.manifests, *(one for _path, one in there)]
        work_out((row for one in everything for row in one.rows if isinstance(row, File)), pieces)
        dead = _dead(here.forgotten, everything, pieces)
        self._take_packs(other, here, dead)
        self._take_runs(other, there, Catalogue(self._store), here.forgotten, pieces)

    def _manifests(self, other: Store) -> Iterator[tuple[Path, Manifest]]:
        for path in other.run_files():
            try:
                yield path, manifests.parsed(run_text(other, path), path.name)
            except Unreadable as error:
                self._refuse(other, str(error))

    def _take_packs(self, other: Store, here: Catalogue, dead: set[str]) -> None:
        spoilt = self._spoilt()
        located = {hash_ for hash_, place in here.located.items() if place.pack not in spoilt}
        names = {path.name for path in self._store.pack_files() if path not in spoilt}
        told = {path: frames for path in other.pack_files() if (frames := frames_of(other, path)) is not None}
        for path in other.pack_files():
            if path not in told:
                self._refuse(other, f"the pack {path.name!r} cannot be read")
        # A dictionary is made of lines: one from where forgotten ones still lie may hold them.
        tainted = any(hash_ in dead for frames in told.values() for frame in frames for hash_, _ in frame.pieces)
        with Packing(self._store, self._machine.id) as packing:
            for path, frames in told.items():
                wanted = {hash_ for frame in frames for hash_, _ in frame.pieces} - located - dead
                if wanted and path.name not in names:
                    ours = self._copied(other, path, frames, dead, tainted=tainted)
                    located |= wanted if ours else self._picked(other, path, frames, wanted, packing)
                self._progress(path.lstat().st_size)
        self._packs += len(packing.done)
        self._bytes += sum(one.stat().st_size for one in packing.done)
        for path in spoilt:
            frames = frames_of(self._store, path)
            if frames is not None and located.issuperset(hash_ for frame in frames for hash_, _ in frame.pieces):
                self._drop(path)

    def _spoilt(self) -> set[Path]:
        """The packs of this keep that are damaged: what is in them is taken from the others, if they have it."""
        return {path for path in self._store.pack_files() if _is_spoilt(path)}

    def _drop(self, path: Path) -> None:
        """Take away a damaged pack all of whose pieces are elsewhere, unless the other one took its place."""
        if _is_spoilt(path):
            path.unlink(missing_ok=True)
            durable.sync(self._store.packs)

    def _copied(self, other: Store, path: Path, frames: tuple[Frame, ...], dead: set[str], *, tainted: bool) -> bool:
        """Copy a pack as it is, if it can be: every piece of it is right, and none is forgotten."""
        learned = {frame.dictionary for frame in frames if frame.dictionary is not None}
        spoilt = any(hash_ in dead for frame in frames for hash_, _length in frame.pieces)
        if self._store.about.recipients != other.about.recipients or spoilt or (learned and tainted):
            return False
        if path.lstat().st_size > _LARGEST or not mending.taught(self._store, self._machine.id, other, learned):
            return False
        try:
            temporary, file = durable.begun(self._store.packs, self._machine.id)
        except OSError as error:
            raise durable.unwritable(self._store.folder, error) from None
        try:
            with file:
                if not _same(path, file.fileno()):
                    return False
            source = (other, path) if other.is_sealed else (self._store, temporary)
            if not all(_is_right(*source, frame) for frame in frames):
                return False
            temporary.replace(self._store.packs / path.name)
            durable.sync(self._store.packs)
        except OSError as error:
            raise durable.unwritable(self._store.folder, error) from None
        finally:
            temporary.unlink(missing_ok=True)
        self._packs += 1
        self._bytes += path.lstat().st_size
        return True

    def _picked(
        self, other: Store, path: Path, frames: tuple[Frame, ...], wanted: set[str], packing: Packing
    ) -> set[str]:
        """Take over the pieces of a pack one by one: those that are right and wanted."""
        found: set[str] = set()
        for frame in frames:
            if not any(hash_ in wanted for hash_, _length in frame.pieces):
                continue
            try:
                data = _frame(other, path, frame)
            except Unreadable as error:
                self._refuse(other, str(error))
                continue
            for hash_, piece in pieces_in(frame, data):
                if hash_ not in wanted or hash_ in found:
                    continue
                if sha256(piece).hexdigest() == hash_:
                    packing.add(Piece(hash_, piece))
                    found.add(hash_)
                else:
                    self._refuse(other, f"a piece in {path.name!r} is not what its hash says")
        return found

    def _take_runs(
        self,
        other: Store,
        there: list[tuple[Path, Manifest]],
        here: Catalogue,
        forgotten: Forgotten,
        pieces: dict[str, Pieces],
    ) -> None:
        """Take over the manifests whose files are all here now, and what they go on from, too."""
        taken = {one.hash for one in here.manifests}
        located = here.located
        left = sorted(there, key=lambda one: (one[1].run.machine, one[1].run.number))
        for path, one in left:
            if one.hash in taken:
                continue
            missing = _missing(one, forgotten, pieces, located)
            apart = one.run.before is not None and one.run.before not in taken
            if (missing or apart) and not self._even_damaged:
                why = (
                    f"bytes of {missing:,} of its files are missing, or more than it says"
                    if missing
                    else "what it goes on from is missing"
                )
                self._refuse(other, f"run {one.run.number} of {one.run.label}: {why}; mend that keep, and merge again")
                continue
            if self._store.about.recipients == other.about.recipients:
                self._store.put_as_it_is(self._store.runs, self._machine.id, path.name, _as_it_is(path))
            else:
                self._store.put_text(one.run, run_text(other, path))
            taken.add(one.hash)
            self._runs += 1

    def _refuse(self, other: Store, why: str) -> None:
        said = f"{other.folder}: {why}"
        self._refused.append(said if said.endswith(".") else f"{said}.")


def _lost(here: Catalogue, rows: list[Forgot]) -> set[str]:
    """The sessions that would be forgotten here."""
    found = set()
    for row in rows:
        one = Forgotten()
        one.add(row)
        if any(one.has(version.path) for version in here.all_versions()):
            found.add(row.session)
    return found


def _dead(forgotten: Forgotten, everything: list[Manifest], pieces: dict[str, Pieces]) -> set[str]:
    """The pieces that only forgotten files need."""
    if not forgotten.rows:
        return set()
    live: set[str] = set()
    gone: set[str] = set()
    for one in everything:
        for row in one.rows:
            if isinstance(row, File) and (made := pieces.get(row_id(row))) is not None:
                (gone if forgotten.has_row(row) else live).update(made)
    return gone - live


def _missing(one: Manifest, forgotten: Forgotten, pieces: dict[str, Pieces], located: Mapping[str, Located]) -> int:
    """How many files of a manifest are not there, or not as long as it says."""
    count = 0
    for row in one.rows:
        if isinstance(row, File) and not forgotten.has_row(row):
            made = pieces.get(row_id(row))
            found = [located.get(hash_) for hash_ in made] if made is not None else [None]
            size = sum(place.length for place in found if place is not None)
            count += any(place is None for place in found) or size != row.size
    return count


def _frame(store: Store, path: Path, frame: Frame) -> bytes:
    known = store.dictionary(frame.dictionary) if frame.dictionary is not None else None
    with store.opened(path) as file:
        return pack.frame_bytes(file, path.name, frame, known)


def _is_right(store: Store, path: Path, frame: Frame) -> bool:
    try:
        data = _frame(store, path, frame)
    except Unreadable:
        return False
    return all(sha256(piece).hexdigest() == hash_ for hash_, piece in pieces_in(frame, data))


def _same(path: Path, target: int) -> bool:
    """Copy the bytes of a pack; whether they are those that its name says."""
    digest = sha256()
    with _opened(path) as source:
        while data := _got(source.read, path):
            digest.update(data)
            left = memoryview(data)
            while left:
                left = left[os.write(target, left) :]
    os.fsync(target)
    return digest.hexdigest() == told_hash(path)


def _is_spoilt(path: Path) -> bool:
    try:
        return file_hash(path) != told_hash(path)
    except OSError:
        return True


def _opened(path: Path) -> BinaryIO:
    try:
        return durable.opened(path)
    except OSError as error:
        raise Unreadable(f"{str(path)!r} cannot be read: {error.strerror or error}.") from None


def _as_it_is(path: Path) -> bytes:
    with _opened(path) as file:
        return _got(lambda _most: file.read(), path)


def _got(read: Callable[[int], bytes], path: Path) -> bytes:
    try:
        return read(_COPY)
    except OSError as error:
        raise Unreadable(f"{str(path)!r} cannot be read: {error.strerror or error}.") from None
