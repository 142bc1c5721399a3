"""Merge other keeps into this one, after checking every byte against its hash.

Dictionaries and packs are taken first, so no manifest refers to bytes that are not there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from threadline import files
from threadline.errors import Unreadable
from threadline.files import AtomicFile
from threadline.keep import forget, repair
from threadline.keep.catalogue import (
    Catalogue,
    ForgetRules,
    ForgottenFiles,
    PieceList,
    PieceLocation,
    piece_list_id,
    read_manifest_text,
    resolve_piece_lists,
)
from threadline.keep.machine import Machine
from threadline.keep.manifest import EndRow, FileRow, ForgetRow, Manifest, format_timestamp, parse_manifest
from threadline.keep.pack import Frame, PackReader, PackWriter, Piece
from threadline.keep.store import Store, hash_in_name, is_damaged, read_error

_MAX_PACK_SIZE = 1024 * 1024 * 1024
"""Far larger than any pack that threadline writes."""
_COPY_SIZE = 1024 * 1024


class MergeResult(Struct, frozen=True):
    """How many packs, manifests and bytes were imported, and which sessions were forgotten here, too.

    `refused` says what was not imported and why; `mended` counts other files of this keep that were repaired.
    `pending` are sessions that were forgotten there, which applies here only after it is accepted.
    """

    packs: int = 0
    runs: int = 0
    bytes: int = 0
    forgotten: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    mended: int = 0
    pending: tuple[str, ...] = ()


def merge_keeps(
    catalogue: Catalogue,
    machine: Machine,
    others: Sequence[Store],
    *,
    forgets: bool = False,
    even_damaged: bool = False,
    planned: Callable[[int], None] | None = None,
    progress: Callable[[int], None] | None = None,
) -> MergeResult:
    """Import what other keeps have. Nothing in them is trusted: every byte is compared with its hash first.

    What other keeps have forgotten is forgotten here only with `forgets`. Otherwise it is recorded as pending, and a
    keep that has forgotten sessions which are kept here is skipped. With `even_damaged`, runs are imported although
    some of their bytes are lost. The catalogue must not trust the cache.

    Raises:
        IndexBusy: another process of this machine is writing.
        Unreadable: the keep cannot be written, or a keep is encrypted and its key is not available.
    """
    store = catalogue.store
    repaired = repair.repair_keep_info(store, machine, others)
    machine.require_known_recipients(store.folder, store.info.id, store.info.recipients)
    for keep in (store, *others):
        keep.require_key()
    merger = _Merger(catalogue, machine, progress or (lambda _done: None), even_damaged=even_damaged)
    merger.repaired += repaired
    if planned is not None:
        planned(sum(path.lstat().st_size for other in others for path in other.pack_files()))
    with store.adding(machine.id):
        for other in others:
            merger.merge(other, forgets=forgets)
        catalogue.save_complete_cache()
    forget.finish_forgetting(catalogue, machine)
    return merger.result()


class _Merger:
    def __init__(
        self, catalogue: Catalogue, machine: Machine, progress: Callable[[int], None], *, even_damaged: bool
    ) -> None:
        self._catalogue = catalogue
        self._store = catalogue.store
        self._machine = machine
        self._progress = progress
        self._even_damaged = even_damaged
        self.repaired = 0
        self._packs = 0
        self._runs = 0
        self._bytes = 0
        self._forgotten: list[str] = []
        self._refused: list[str] = []

    def result(self) -> MergeResult:
        return MergeResult(
            self._packs,
            self._runs,
            self._bytes,
            tuple(self._forgotten),
            tuple(self._refused),
            self.repaired,
            tuple(sorted(row.session for row in self._catalogue.pending)),
        )

    def merge(self, other: Store, *, forgets: bool) -> None:
        self.repaired += repair.repair_from_copy(self._store, self._machine.id, other)
        catalogue = self._catalogue
        catalogue.refresh()
        hashes = {manifest.hash for manifest in catalogue.manifests}
        manifests = list(self._read_manifests(other))
        theirs = ForgetRules([manifest for _path, manifest in manifests])
        new = [(path, manifest) for path, manifest in manifests if manifest.hash not in hashes]
        rows = _new_forget_rows(catalogue, theirs, new, accepts=forgets)
        common = next((path for row in rows for path in row.paths if "/" not in path), None)
        if common is not None:
            self._refuse(other, f"it says to forget {common!r}, which belongs to no session")
            return
        lost = _sessions_to_forget(catalogue, rows)
        if lost and not forgets:
            names = ", ".join(sorted(session or "one without a name" for session in lost)[:3])
            self._refuse(
                other,
                f"it has forgotten sessions that are in this keep ({names}). Use --accept-forgotten to forget them",
            )
            return
        self._forgotten += sorted(lost)
        accepted = rows if forgets else []
        forgotten = _ForgottenRows(catalogue, theirs, {manifest.hash for _path, manifest in new}, accepted)
        files = [
            (row, forgotten.has(manifest, row))
            for manifest in (*catalogue.manifests, *(manifest for _path, manifest in new))
            for row in manifest.rows
            if isinstance(row, FileRow)
        ]
        piece_lists: dict[str, PieceList] = {}
        resolve_piece_lists([row for row, _is_forgotten in files], piece_lists)
        self._import_packs(other, _forgotten_pieces(files, piece_lists))
        self._hold_manifests([manifest for _path, manifest in manifests], theirs, accepted)
        catalogue.refresh()
        self._import_runs(other, new, forgotten, piece_lists)
        catalogue.refresh()

    def _hold_manifests(self, manifests: list[Manifest], theirs: ForgetRules, accepted: list[ForgetRow]) -> None:
        """Record which of their manifests may forget nothing here, before they are imported; and what is accepted.

        Each group contains what was forgotten, and the manifests that may lack bytes because of it.
        """
        known = {manifest.hash for manifest in self._catalogue.manifests}
        own = {
            manifest.hash
            for manifest in manifests
            if manifest.hash not in theirs.held and (manifest.run.held or _is_about_forgotten(manifest, theirs.applied))
        }
        held = self._catalogue.rules.held
        groups = [{hash_ for hash_ in group if hash_ not in known or hash_ in held} for group in (own, *theirs.groups)]
        groups = [group for group in groups if not group <= known]
        for number, group in enumerate(groups or ([set[str]()] if accepted else [])):
            moment = format_timestamp(datetime.now(UTC))
            run = self._catalogue.next_run(self._machine.id, self._machine.label, moment, held=sorted(group))
            rows = accepted if number == 0 else []
            self._catalogue.add_run(*self._store.put_run([run, *rows, EndRow(moment, 0, 0)]))

    def _read_manifests(self, other: Store) -> Iterator[tuple[Path, Manifest]]:
        for path in other.run_files():
            try:
                yield path, parse_manifest(read_manifest_text(other, path), path.name)
            except Unreadable as error:
                self._refuse(other, str(error))

    def _import_packs(self, other: Store, forgotten: set[str]) -> None:
        """Import the pieces of another keep that are missing here, except forgotten ones."""
        damaged = {path for path in self._store.pack_files() if is_damaged(path)}
        stored = self._catalogue.pieces_outside({path.name for path in damaged})
        names = {path.name for path in self._store.pack_files() if path not in damaged}
        reader = PackReader(other)
        tables = reader.all_frames()
        for path in other.pack_files():
            if path not in tables:
                self._refuse(other, f"the pack {path.name!r} cannot be read")
        # A dictionary consists of lines: if forgotten ones are still stored there, it may contain them.
        is_tainted = any(hash_ in forgotten for frames in tables.values() for frame in frames for hash_ in frame.hashes)
        with PackWriter(self._store, self._machine.id) as writer:
            for path, frames in tables.items():
                missing = {hash_ for frame in frames for hash_ in frame.hashes} - stored - forgotten
                if missing and path.name not in names:
                    if self._can_copy(other, path, frames, forgotten, is_tainted=is_tainted) and self._copy_pack(
                        other, path, frames
                    ):
                        stored |= missing
                    else:
                        stored |= self._copy_pieces(reader, path, frames, missing, writer)
                self._progress(path.lstat().st_size)
        self._packs += len(writer.finished)
        self._bytes += writer.finished_size
        for path in damaged:
            self._remove_if_redundant(path, stored)

    def _remove_if_redundant(self, path: Path, stored: set[str]) -> None:
        """Remove a damaged pack if all of its pieces are elsewhere, unless an intact copy has replaced it."""
        try:
            frames = PackReader(self._store).frames(path)
        except Unreadable:
            return
        if stored.issuperset(hash_ for frame in frames for hash_ in frame.hashes) and is_damaged(path):
            path.unlink(missing_ok=True)
            files.sync_folder(self._store.packs)

    def _can_copy(
        self, other: Store, path: Path, frames: tuple[Frame, ...], forgotten: set[str], *, is_tainted: bool
    ) -> bool:
        """Whether a pack may be copied as it is. Its dictionaries are copied first."""
        dictionaries = {frame.dictionary for frame in frames if frame.dictionary is not None}
        has_forgotten = any(hash_ in forgotten for frame in frames for hash_ in frame.hashes)
        if self._store.info.recipients != other.info.recipients or has_forgotten or (dictionaries and is_tainted):
            return False
        return path.lstat().st_size <= _MAX_PACK_SIZE and repair.copy_dictionaries(
            self._store, self._machine.id, other, dictionaries
        )

    def _copy_pack(self, other: Store, path: Path, frames: tuple[Frame, ...]) -> bool:
        """Copy a pack, unless a byte of it is damaged; return whether it was copied."""
        with (
            self._store.reporting_write_errors(),
            AtomicFile(self._store.packs, owner=self._machine.id) as copy,
        ):
            digest = sha256()
            for data in _read_chunks(path):
                digest.update(data)
                copy.write(data)
            if digest.hexdigest() != hash_in_name(path):
                return False
            reader, source = (PackReader(other), path) if other.is_encrypted else (PackReader(self._store), copy.path)
            if any(reader.damaged_pieces(source, frame) for frame in frames):
                return False
            copy.commit(path.name)
        self._packs += 1
        self._bytes += path.lstat().st_size
        return True

    def _copy_pieces(
        self,
        reader: PackReader,
        path: Path,
        frames: tuple[Frame, ...],
        missing: set[str],
        writer: PackWriter,
    ) -> set[str]:
        """Copy single pieces of a pack: those that are missing here and intact there."""
        copied: set[str] = set()
        for frame in frames:
            if missing.isdisjoint(frame.hashes):
                continue
            try:
                pieces = list(reader.pieces(path, frame))
            except Unreadable as error:
                self._refuse(reader.store, str(error))
                continue
            for hash_, data in pieces:
                if hash_ not in missing or hash_ in copied:
                    continue
                if data is not None:
                    writer.add(Piece(hash_, data))
                    copied.add(hash_)
                else:
                    self._refuse(reader.store, f"a piece in {path.name!r} does not match its hash")
        return copied

    def _import_runs(
        self,
        other: Store,
        new: list[tuple[Path, Manifest]],
        forgotten: _ForgottenRows,
        piece_lists: dict[str, PieceList],
    ) -> None:
        """Import the manifests whose files, and whose predecessors, are all here now."""
        hashes = {manifest.hash for manifest in self._catalogue.manifests}
        located = self._catalogue.located
        for path, manifest in sorted(new, key=lambda item: (item[1].run.machine, item[1].run.number)):
            run = manifest.run
            if manifest.hash in hashes:
                continue
            incomplete = _count_incomplete_files(manifest, forgotten, piece_lists, located)
            is_orphan = run.before is not None and run.before not in hashes
            if (incomplete or is_orphan) and not self._even_damaged:
                why = (
                    f"{incomplete:,} of its files are incomplete, or larger than it says"
                    if incomplete
                    else "the run before it is missing"
                )
                self._refuse(other, f"run {run.number} of {run.label}: {why}. Repair that keep, then merge again")
                continue
            if self._store.info.recipients == other.info.recipients:
                self._store.put_raw(self._store.runs, self._machine.id, path.name, b"".join(_read_chunks(path)))
            else:
                self._store.put_manifest_text(run, read_manifest_text(other, path))
            hashes.add(manifest.hash)
            self._runs += 1

    def _refuse(self, other: Store, why: str) -> None:
        message = f"{other.folder}: {why}"
        self._refused.append(message if message.endswith(".") else f"{message}.")


def _is_about_forgotten(manifest: Manifest, forgotten: ForgottenFiles) -> bool:
    """Whether a manifest forgets something, or lists a file that was forgotten later and may lack bytes."""
    return any(
        isinstance(row, ForgetRow) or (isinstance(row, FileRow) and forgotten.matches_row(row)) for row in manifest.rows
    )


def _new_forget_rows(
    catalogue: Catalogue, theirs: ForgetRules, new: list[tuple[Path, Manifest]], *, accepts: bool
) -> list[ForgetRow]:
    """What the other keep has forgotten: according to new manifests; to accept it, all that is not forgotten here."""
    if accepts:
        return [row for row in theirs.applied.rows if not catalogue.forgotten.covers(row)]
    manifests = (manifest for _path, manifest in new if manifest.hash not in theirs.held)
    return [row for manifest in manifests for row in manifest.rows if isinstance(row, ForgetRow)]


class _ForgottenRows:
    """Which files of the manifests of two keeps were forgotten, here or in the keep that they come from."""

    def __init__(self, catalogue: Catalogue, theirs: ForgetRules, new: set[str], accepted: Sequence[ForgetRow]) -> None:
        self._ours = catalogue.rules
        self._accepted = ForgottenFiles((*catalogue.forgotten.rows, *accepted))
        self._theirs = theirs
        self._new = new

    def has(self, manifest: Manifest, row: FileRow) -> bool:
        """Whether a file of a manifest was forgotten."""
        if self._accepted.matches_row(row):
            return True
        rules = self._theirs if manifest.hash in self._new else self._ours
        return rules.is_forgotten(manifest, row)


def _sessions_to_forget(catalogue: Catalogue, rows: list[ForgetRow]) -> set[str]:
    """The sessions in these rows that are kept here."""
    sessions = set()
    for row in rows:
        forgotten = ForgottenFiles([row])
        if any(forgotten.has(version.path) for version in catalogue.all_versions()):
            sessions.add(row.session)
    return sessions


def _forgotten_pieces(files: Sequence[tuple[FileRow, bool]], piece_lists: dict[str, PieceList]) -> set[str]:
    """The pieces that only forgotten files need. Each file comes with whether it was forgotten."""
    live: set[str] = set()
    gone: set[str] = set()
    if any(is_forgotten for _row, is_forgotten in files):
        for row, is_forgotten in files:
            if (pieces := piece_lists.get(piece_list_id(row))) is not None:
                (gone if is_forgotten else live).update(pieces)
    return gone - live


def _count_incomplete_files(
    manifest: Manifest,
    forgotten: _ForgottenRows,
    piece_lists: dict[str, PieceList],
    located: Mapping[str, PieceLocation],
) -> int:
    """How many files of a manifest are missing pieces, or are not as long as it says."""
    count = 0
    for row in manifest.rows:
        if isinstance(row, FileRow) and not forgotten.has(manifest, row):
            pieces = piece_lists.get(piece_list_id(row))
            locations = [located.get(hash_) for hash_ in pieces] if pieces is not None else [None]
            size = sum(location.length for location in locations if location is not None)
            count += None in locations or size != row.size
    return count


def _read_chunks(path: Path) -> Iterator[bytes]:
    """The bytes of another keep's file.

    Raises:
        Unreadable: it cannot be read.
    """
    try:
        with files.open_regular(path, follow_symlinks=False) as file:
            while data := file.read(_COPY_SIZE):
                yield data
    except OSError as error:
        raise read_error(path, error) from None
