"""Merge other keeps into this one, after checking every byte against its hash.

Dictionaries and packs are taken first, so no manifest refers to bytes that are not there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct
from msgspec.structs import replace

from threadline import atomic
from threadline.errors import Unreadable
from threadline.keep import forget, pack, repair
from threadline.keep import manifest as manifests
from threadline.keep.catalogue import (
    Catalogue,
    ForgottenFiles,
    PieceList,
    PieceLocation,
    piece_list_id,
    read_manifest_text,
    resolve_piece_lists,
    update_cache,
)
from threadline.keep.chunking import Piece
from threadline.keep.forget import read_frames
from threadline.keep.machine import Machine
from threadline.keep.manifest import FileRow, ForgetRow, Manifest
from threadline.keep.pack import Frame, PackWriter, split_frame
from threadline.keep.store import Store, hash_file, hash_in_name

_MAX_PACK_SIZE = 1024 * 1024 * 1024
"""No pack that threadline writes is nearly as large."""
_COPY_SIZE = 1024 * 1024


class MergeResult(Struct, frozen=True):
    """What was taken over: how many packs and manifests, in how many bytes; which sessions were forgotten there.

    `refused` says what was not taken over and why, `mended` how many other files of this keep were made good.
    """

    packs: int = 0
    runs: int = 0
    bytes: int = 0
    forgotten: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    mended: int = 0


def merge_keeps(
    store: Store,
    machine: Machine,
    others: Sequence[Store],
    *,
    forgets: bool = False,
    even_damaged: bool = False,
    planned: Callable[[int], None] | None = None,
    progress: Callable[[int], None] | None = None,
) -> MergeResult:
    """Take over what other keeps have. Nothing of them is believed: every byte is compared with its hash first.

    With `forgets`, sessions that were forgotten there and are kept here are forgotten here, too; without, such a keep
    is left out. With `even_damaged`, runs some of whose bytes are lost there are listed here all the same.

    Raises:
        IndexBusy: another process of this machine is writing the keep.
        Unreadable: the keep cannot be written, or one of them is encrypted and its key not at hand.
    """
    labelled = repair.repair_keep_info(store, machine, others)
    for one in (store, *others):
        one.require_key()
    merging = _Merger(store, machine, progress or (lambda _done: None), even_damaged=even_damaged)
    if planned is not None:
        planned(sum(path.lstat().st_size for other in others for path in other.pack_files()))
    with store.adding(machine.id):
        for other in others:
            merging.take(other, forgets=forgets)
        update_cache(store, machine.memory)
    forget.finish_forgetting(Catalogue(store), machine)
    done = merging.merged()
    return replace(done, mended=done.mended + labelled)


class _Merger:
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

    def merged(self) -> MergeResult:
        """What came of it."""
        return MergeResult(
            self._packs, self._runs, self._bytes, tuple(self._forgotten), tuple(self._refused), self._mended
        )

    def take(self, other: Store, *, forgets: bool) -> None:
        """Take over one keep: dictionaries and packs first, so that no manifest tells of what is not there."""
        self._mended += repair.repair_from_copy(self._store, self._machine.id, other)
        here = Catalogue(self._store)
        known = {manifest.hash for manifest in here.manifests}
        there = [(path, one) for path, one in self._manifests(other) if one.hash not in known]
        rows = [row for _path, one in there for row in one.rows if isinstance(row, ForgetRow)]
        common = next((path for row in rows for path in row.paths if "/" not in path), None)
        if common is not None:
            self._refuse(other, f"it says to forget {common!r}, which belongs to no session")
            return
        lost = _sessions_to_forget(here, rows)
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
        pieces: dict[str, PieceList] = {}
        everything = [*here.manifests, *(one for _path, one in there)]
        resolve_piece_lists((row for one in everything for row in one.rows if isinstance(row, FileRow)), pieces)
        dead = _forgotten_pieces(here.forgotten, everything, pieces)
        self._take_packs(other, here, dead)
        self._take_runs(other, there, Catalogue(self._store), here.forgotten, pieces)

    def _manifests(self, other: Store) -> Iterator[tuple[Path, Manifest]]:
        for path in other.run_files():
            try:
                yield path, manifests.parse_manifest(read_manifest_text(other, path), path.name)
            except Unreadable as error:
                self._refuse(other, str(error))

    def _take_packs(self, other: Store, here: Catalogue, dead: set[str]) -> None:
        spoilt = self._spoilt()
        located = {hash_ for hash_, place in here.located.items() if place.pack not in spoilt}
        names = {path.name for path in self._store.pack_files() if path not in spoilt}
        told = {path: frames for path in other.pack_files() if (frames := read_frames(other, path)) is not None}
        for path in other.pack_files():
            if path not in told:
                self._refuse(other, f"the pack {path.name!r} cannot be read")
        # A dictionary is made of lines: one from where forgotten ones still lie may hold them.
        tainted = any(hash_ in dead for frames in told.values() for frame in frames for hash_, _ in frame.pieces)
        with PackWriter(self._store, self._machine.id) as packing:
            for path, frames in told.items():
                wanted = {hash_ for frame in frames for hash_, _ in frame.pieces} - located - dead
                if wanted and path.name not in names:
                    ours = self._copied(other, path, frames, dead, tainted=tainted)
                    located |= wanted if ours else self._picked(other, path, frames, wanted, packing)
                self._progress(path.lstat().st_size)
        self._packs += len(packing.done)
        self._bytes += sum(one.stat().st_size for one in packing.done)
        for path in spoilt:
            frames = read_frames(self._store, path)
            if frames is not None and located.issuperset(hash_ for frame in frames for hash_, _ in frame.pieces):
                self._drop(path)

    def _spoilt(self) -> set[Path]:
        """The packs of this keep that are damaged: what is in them is taken from the others, if they have it."""
        return {path for path in self._store.pack_files() if _is_damaged(path)}

    def _drop(self, path: Path) -> None:
        """Take away a damaged pack all of whose pieces are elsewhere, unless the other one took its place."""
        if _is_damaged(path):
            path.unlink(missing_ok=True)
            atomic.sync_folder(self._store.packs)

    def _copied(self, other: Store, path: Path, frames: tuple[Frame, ...], dead: set[str], *, tainted: bool) -> bool:
        """Copy a pack as it is, if it can be: every piece of it is right, and none is forgotten."""
        learned = {frame.dictionary for frame in frames if frame.dictionary is not None}
        spoilt = any(hash_ in dead for frame in frames for hash_, _length in frame.pieces)
        if self._store.about.recipients != other.about.recipients or spoilt or (learned and tainted):
            return False
        if path.lstat().st_size > _MAX_PACK_SIZE or not repair.copy_dictionaries(
            self._store, self._machine.id, other, learned
        ):
            return False
        try:
            temporary, file = atomic.create_temporary_file(self._store.packs, self._machine.id)
        except OSError as error:
            raise atomic.keep_write_error(self._store.folder, error) from None
        try:
            with file:
                if not _copy_and_check(path, file.fileno()):
                    return False
            source = (other, path) if other.is_encrypted else (self._store, temporary)
            if not all(_is_frame_intact(*source, frame) for frame in frames):
                return False
            temporary.replace(self._store.packs / path.name)
            atomic.sync_folder(self._store.packs)
        except OSError as error:
            raise atomic.keep_write_error(self._store.folder, error) from None
        finally:
            temporary.unlink(missing_ok=True)
        self._packs += 1
        self._bytes += path.lstat().st_size
        return True

    def _picked(
        self, other: Store, path: Path, frames: tuple[Frame, ...], wanted: set[str], packing: PackWriter
    ) -> set[str]:
        """Take over the pieces of a pack one by one: those that are right and wanted."""
        found: set[str] = set()
        for frame in frames:
            if not any(hash_ in wanted for hash_, _length in frame.pieces):
                continue
            try:
                data = _read_frame(other, path, frame)
            except Unreadable as error:
                self._refuse(other, str(error))
                continue
            for hash_, piece in split_frame(frame, data):
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
        forgotten: ForgottenFiles,
        pieces: dict[str, PieceList],
    ) -> None:
        """Take over the manifests whose files are all here now, and what they go on from, too."""
        taken = {manifest.hash for manifest in here.manifests}
        located = here.located
        left = sorted(there, key=lambda one: (one[1].run.machine, one[1].run.number))
        for path, one in left:
            if one.hash in taken:
                continue
            missing = _count_incomplete_files(one, forgotten, pieces, located)
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
                self._store.put_raw(self._store.runs, self._machine.id, path.name, _read_raw(path))
            else:
                self._store.put_manifest_text(one.run, read_manifest_text(other, path))
            taken.add(one.hash)
            self._runs += 1

    def _refuse(self, other: Store, why: str) -> None:
        said = f"{other.folder}: {why}"
        self._refused.append(said if said.endswith(".") else f"{said}.")


def _sessions_to_forget(here: Catalogue, rows: list[ForgetRow]) -> set[str]:
    """The sessions that would be forgotten here."""
    found = set()
    for row in rows:
        one = ForgottenFiles()
        one.add(row)
        if any(one.has(version.path) for version in here.all_versions()):
            found.add(row.session)
    return found


def _forgotten_pieces(forgotten: ForgottenFiles, everything: list[Manifest], pieces: dict[str, PieceList]) -> set[str]:
    """The pieces that only forgotten files need."""
    if not forgotten.rows:
        return set()
    live: set[str] = set()
    gone: set[str] = set()
    for manifest in everything:
        for row in manifest.rows:
            if isinstance(row, FileRow) and (made := pieces.get(piece_list_id(row))) is not None:
                (gone if forgotten.matches_row(row) else live).update(made)
    return gone - live


def _count_incomplete_files(
    manifest: Manifest, forgotten: ForgottenFiles, pieces: dict[str, PieceList], located: Mapping[str, PieceLocation]
) -> int:
    """How many files of a manifest are not there, or not as long as it says."""
    count = 0
    for row in manifest.rows:
        if isinstance(row, FileRow) and not forgotten.matches_row(row):
            made = pieces.get(piece_list_id(row))
            found = [located.get(hash_) for hash_ in made] if made is not None else [None]
            size = sum(place.length for place in found if place is not None)
            count += any(place is None for place in found) or size != row.size
    return count


def _read_frame(store: Store, path: Path, frame: Frame) -> bytes:
    known = store.dictionary(frame.dictionary) if frame.dictionary is not None else None
    with store.opened(path) as file:
        return pack.read_frame(file, path.name, frame, known)


def _is_frame_intact(store: Store, path: Path, frame: Frame) -> bool:
    try:
        data = _read_frame(store, path, frame)
    except Unreadable:
        return False
    return all(sha256(piece).hexdigest() == hash_ for hash_, piece in split_frame(frame, data))


def _copy_and_check(path: Path, target: int) -> bool:
    """Copy the bytes of a pack; whether they are those that its name says."""
    digest = sha256()
    with _open_for_reading(path) as source:
        while data := _read_or_raise(source.read, path):
            digest.update(data)
            left = memoryview(data)
            while left:
                left = left[os.write(target, left) :]
    os.fsync(target)
    return digest.hexdigest() == hash_in_name(path)


def _is_damaged(path: Path) -> bool:
    try:
        return hash_file(path) != hash_in_name(path)
    except OSError:
        return True


def _open_for_reading(path: Path) -> BinaryIO:
    try:
        return atomic.open_regular_file(path)
    except OSError as error:
        raise Unreadable(f"{str(path)!r} cannot be read: {error.strerror or error}.") from None


def _read_raw(path: Path) -> bytes:
    with _open_for_reading(path) as file:
        return _read_or_raise(lambda _most: file.read(), path)


def _read_or_raise(read: Callable[[int], bytes], path: Path) -> bytes:
    try:
        return read(_COPY_SIZE)
    except OSError as error:
        raise Unreadable(f"{str(path)!r} cannot be read: {error.strerror or error}.") from None
