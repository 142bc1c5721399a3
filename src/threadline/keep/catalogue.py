"""Every version of every kept file and where its pieces are, read only from the manifests and packs.

A `Catalogue` is built once per command. `refresh` then reads only what was written since, so that a run can look again
once it holds the lock. Damage is reported in `problems` and never hides the rest. Merged keeps may contain anything, so
sizes and hashes are checked when bytes are read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from threadline.errors import Unreadable
from threadline.keep import pack
from threadline.keep.cache import KeepCache, open_keep_cache
from threadline.keep.manifest import (
    MANIFEST_VERSION,
    FileRow,
    ForgetRow,
    GoneRow,
    Manifest,
    RunRow,
    damaged_manifest_error,
    decompress_manifest,
    encode_rows,
    parse_manifest,
    path_from_json,
    path_to_json,
)
from threadline.keep.pack import Frame, PackReader
from threadline.keep.store import Store, hash_file, hash_in_name, read_error

_MAX_RESCANS = 4
"""How often new packs are looked for while others are read."""
_CACHED_FRAMES = 6
"""How many frames are kept decompressed: the next piece is often in the same one."""
_UUID_PATTERN = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
FileKey = tuple[str, str, str]
"""A file: the machine's id, the home, and the path inside the home."""


class PieceLocation(Struct, frozen=True, gc=False):
    """Where a piece is stored: the pack, the frame, and its offset and length in the decompressed frame."""

    pack: Path
    frame: Frame
    start: int
    length: int


class PieceList:
    """The pieces of a version, by their hashes, in order: those of an earlier version, and those that follow.

    `id` is how later versions refer to it: the hash of the earlier list's id and the added hashes, one per line.
    """

    __slots__ = ("added", "before", "id")
    id: str

    def __init__(self, added: tuple[str, ...], before: PieceList | None = None, id_: str | None = None) -> None:
        self.added = added
        self.before = before
        self.id = id_ or _piece_list_id(before.id if before is not None else None, added)

    def __iter__(self) -> Iterator[str]:
        parts = []
        part: PieceList | None = self
        while part is not None:
            parts.append(part.added)
            part = part.before
        return (hash_ for added in reversed(parts) for hash_ in added)

    def __len__(self) -> int:
        return sum(1 for _hash in self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PieceList) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"PieceList({self.id!r})"


class Span(Struct, frozen=True):
    """The bytes of a version from `start` to `stop`."""

    version: Version
    start: int
    stop: int


class Version(Struct, frozen=True):
    """A file as one run saw it: its machine, home, path, mode, mtime, and the pieces it consists of.

    A version that was assembled from several others consists of `spans` of those.
    """

    machine: str
    label: str
    home: str
    path: str
    mode: int
    mtime_ns: int
    size: int
    pieces: PieceList
    run: int
    seen: str
    gone: str | None = None
    torn: bool = False
    ctime_ns: int = 0
    spans: tuple[Span, ...] = ()

    @property
    def key(self) -> FileKey:
        """Which file it is a version of."""
        return self.machine, self.home, self.path


class ForgottenFiles:
    """Which files were forgotten: they are neither listed nor kept."""

    def __init__(self, rows: Iterable[ForgetRow] = ()) -> None:
        self.rows: list[ForgetRow] = []
        self._paths: dict[str, ForgetRow] = {}
        self._sessions: dict[str, ForgetRow] = {}
        for row in rows:
            self.add(row)

    def add(self, row: ForgetRow) -> None:
        """Add a forgotten session."""
        self.rows.append(row)
        self._paths.update(dict.fromkeys(row.paths, row))
        # Only a UUID cannot be in a path by accident: a merged keep may contain anything.
        if _UUID_PATTERN.fullmatch(row.session):
            self._sessions[row.session] = row

    def covers(self, row: ForgetRow) -> bool:
        """Whether everything that a row forgets is forgotten."""
        return any(known.session == row.session for known in self.rows) and all(map(self.has, row.paths))

    def matches_row(self, row: FileRow) -> bool:
        """Whether the file of a manifest's row was forgotten."""
        return self.has(path_from_json(row.path, row.raw_path))

    def has(self, path: str) -> bool:
        """Whether the file with this path was forgotten, in any home."""
        return self.find(path) is not None

    def find(self, path: str) -> ForgetRow | None:
        """The row by which the file with this path was forgotten, in any home."""
        if not self.rows:
            return None
        text = path_to_json(path)[0]
        if (row := self._paths.get(text)) is not None:
            return row
        sessions = (self._sessions.get(match[0]) for match in _UUID_PATTERN.finditer(text))
        return next((row for row in sessions if row is not None), None)


class ForgetRules:
    """Which files of which manifests of a keep were forgotten.

    A merge imports manifests with what another keep has forgotten. It lists them in the `held` of a manifest that it
    writes: `groups` are the hashes of such manifests, by merge. What they have forgotten does not apply to this keep,
    only to themselves: the bytes of those files never came here.
    """

    def __init__(self, manifests: Sequence[Manifest]) -> None:
        rows = {
            manifest.hash: forget_rows
            for manifest in manifests
            if (forget_rows := [row for row in manifest.rows if isinstance(row, ForgetRow)])
        }
        self.groups = _find_held_manifests(manifests)
        self.held = {hash_ for group in self.groups for hash_ in group}
        self.applied = ForgottenFiles(row for hash_ in rows if hash_ not in self.held for row in rows[hash_])
        self._held_rows = [row for hash_ in rows if hash_ in self.held for row in rows[hash_]]
        self._missing: dict[str, list[ForgottenFiles]] = {}
        for group in self.groups:
            forgotten = ForgottenFiles(row for hash_ in group for row in rows.get(hash_, ()))
            for hash_ in group:
                self._missing.setdefault(hash_, []).append(forgotten)

    def is_missing(self, manifest: Manifest, row: FileRow) -> bool:
        """Whether the keep that a manifest was imported from has forgotten this file of it."""
        return any(forgotten.matches_row(row) for forgotten in self._missing.get(manifest.hash, ()))

    def is_forgotten(self, manifest: Manifest, row: FileRow) -> bool:
        """Whether a file of a manifest was forgotten, here or where the manifest was imported from."""
        return self.applied.matches_row(row) or self.is_missing(manifest, row)

    def pending(self) -> list[ForgetRow]:
        """What applies only where it was imported from; each session once."""
        pending: dict[str, ForgetRow] = {}
        for row in self._held_rows:
            if not self.applied.covers(row):
                known = pending.get(row.session)
                paths = tuple(sorted({*row.paths, *(known.paths if known is not None else ())}))
                pending[row.session] = ForgetRow(row.session, row.reason, paths)
        return list(pending.values())


def _find_held_manifests(manifests: Sequence[Manifest]) -> list[set[str]]:
    """The hashes of the manifests that merges imported and that manifests of this keep hold, by merge.

    What a held manifest holds does not count: another keep could undo what was forgotten here. A manifest can only name
    older ones, since it contains their hashes, so those that nobody names decide first.
    """
    held_by = {manifest.hash: manifest.run.held for manifest in manifests if manifest.run.held}
    waiting = Counter(hash_ for hashes in held_by.values() for hash_ in set(hashes))
    ready = [hash_ for hash_ in held_by if not waiting[hash_]]
    held: set[str] = set()
    groups = []
    while ready:
        name = ready.pop()
        group = set(held_by[name])
        if name not in held:
            held |= group
            groups.append(group)
        for hash_ in group:
            waiting[hash_] -= 1
            if not waiting[hash_] and hash_ in held_by:
                ready.append(hash_)
    return groups


class Catalogue:
    """What a keep contains.

    `cache_folder` is where this machine stores its cache of the keep. With `trust_cache=False` everything is read from
    the keep itself, and the cache is only written: commands that remove or check files rely on nothing else.
    """

    def __init__(self, store: Store, cache_folder: Path | None = None, *, trust_cache: bool = True) -> None:
        self.store = store
        self.manifests: list[Manifest] = []
        """All manifests, each machine's in order."""
        self.versions: dict[FileKey, list[Version]] = {}
        """The versions of every file, oldest first."""
        self.forgotten_versions: list[Version] = []
        self.rules = ForgetRules(())
        self.memo: dict[Any, Any] = {}
        """Results that other modules derived from this catalogue; cleared whenever it changes."""
        self.cache: KeepCache | None = None
        self._cache_folder = cache_folder
        self._cache_id: str | None = None
        self._trusts_cache = trust_cache
        self._unsaved: dict[str, bytes] = {}
        self._read_files: dict[str, Manifest] = {}
        self._piece_lists: dict[str, PieceList] = {}
        self._run_problems: list[str] = []
        self._orphan_problems: list[str] = []
        self._pack_problems: dict[str, str] = {}
        self._unread_runs = 0
        self._unread_packs: set[str] = set()
        self._located: dict[str, PieceLocation] | None = None
        self._located_packs: set[str] = set()
        self._duplicates: dict[str, list[PieceLocation]] = {}
        """Further locations of pieces that are in more than one pack."""
        self._reader = PackReader(store)
        self._frame = lru_cache(maxsize=_CACHED_FRAMES)(self._reader.frame)
        self.refresh()

    @property
    def problems(self) -> list[str]:
        """What could not be read, as messages; the problems of packs only once they have been read."""
        return list(dict.fromkeys((*self.manifest_problems, *self._pack_problems.values())))

    @property
    def manifest_problems(self) -> list[str]:
        """Which manifests are damaged or missing: then files may exist that this catalogue does not list."""
        return [*self._run_problems, *self._orphan_problems]

    @property
    def unread(self) -> int:
        """How many files of an encrypted keep could not be read without the key."""
        return self._unread_runs + len(self._unread_packs)

    def refresh(self) -> None:
        """Read what was written to the keep since. File names contain hashes, so no file is read twice."""
        self._open_cache()
        self._run_problems = []
        self._unread_runs = 0
        read_files: dict[str, Manifest] = {}
        new: list[Manifest] = []
        for path in self.store.run_files():
            manifest = self._read_files.get(path.name)
            if manifest is None:
                manifest = self._read_manifest(path)
                if manifest is None:
                    continue
                new.append(manifest)
            read_files[path.name] = manifest
        has_vanished = bool(self._read_files.keys() - read_files.keys())
        self._read_files = read_files
        if has_vanished:
            self.manifests = []
        self._add_manifests(read_files.values() if has_vanished else new, rebuild=has_vanished)
        self._refresh_locations()

    def add_run(self, path: Path, manifest: Manifest) -> None:
        """Add the manifest that was just written to a path."""
        self._read_files[path.name] = manifest
        self._unsaved[path.name] = encode_rows((manifest.run, *manifest.rows))
        self._add_manifests([manifest])

    def add_packs(self, tables: dict[str, bytes]) -> None:
        """Add packs that were just written: their encoded tables of contents by name."""
        self._unsaved |= tables
        self._refresh_locations()

    def save_cache(self) -> None:
        """Save what was read, if there is a cache, so that the next command does not have to read it."""
        if self.cache is not None and (self._unsaved or not self.cache.is_stored()):
            existing = [path.name for path in (*self.store.run_files(), *self.store.pack_files())]
            self.cache.add(self._unsaved.items(), existing)
            if self._trusts_cache:
                self._unsaved = {}

    def save_complete_cache(self) -> None:
        """Read and save everything: without the key, later runs know only what is in the cache."""
        if self.cache is not None:
            self.refresh()
            self._locate_all()
            self.save_cache()

    def last_run(self, machine: str) -> Manifest | None:
        """The newest manifest of a machine."""
        return next((manifest for manifest in reversed(self.manifests) if manifest.run.machine == machine), None)

    def next_run(
        self, machine: str, label: str, began: str, homes: Sequence[str] = (), held: Sequence[str] = ()
    ) -> RunRow:
        """The first row of a machine's next manifest."""
        last = self.last_run(machine)
        return RunRow(
            MANIFEST_VERSION,
            machine,
            path_to_json(label)[0],
            last.run.number + 1 if last is not None else 1,
            last.hash if last is not None else None,
            began,
            tuple(path_to_json(home)[0] for home in homes),
            tuple(sorted(held)),
        )

    def newest(self) -> Iterator[Version]:
        """The newest version of every file."""
        return (versions[-1] for versions in self.versions.values())

    def all_versions(self) -> Iterator[Version]:
        """Every version of every file."""
        return (version for versions in self.versions.values() for version in versions)

    @property
    def located(self) -> dict[str, PieceLocation]:
        """Where every piece is stored, by its hash."""
        return self._locate_all()

    def piece_length(self, hash_: str) -> int | None:
        """The length of a piece; None if it is not stored."""
        location = self.located.get(hash_)
        return location.length if location is not None else None

    def pieces_outside(self, packs: AbstractSet[str]) -> set[str]:
        """The hashes of the pieces that are stored in packs other than these, given by name."""
        located = self._locate_all()
        if not packs:
            return set(located)
        return {
            hash_
            for hash_, location in located.items()
            if any(copy.pack.name not in packs for copy in (location, *self._duplicates.get(hash_, ())))
        }

    def live_pieces(self) -> set[str]:
        """The hashes of the pieces that some version needs; forgotten versions do not count."""
        return {hash_ for version in self.all_versions() for hash_ in version.pieces}

    def forgotten_pieces(self, live: AbstractSet[str]) -> set[str]:
        """The hashes of the pieces that only forgotten versions need."""
        return {hash_ for version in self.forgotten_versions for hash_ in version.pieces} - live

    def reload_locations(self) -> None:
        """Locate all pieces again: another process may have rewritten the packs."""
        self._located = None
        self._frame.cache_clear()

    def piece(self, hash_: str) -> bytes:
        """The bytes of a piece, checked against its hash.

        Raises:
            Unreadable: it is missing or damaged.
        """
        try:
            return self._read_piece(hash_)
        except Unreadable:
            # Packs are rewritten into larger ones, so the piece may be elsewhere by now.
            location = self.located.get(hash_)
            if location is not None and location.pack.exists():
                raise
            self.reload_locations()
            return self._read_piece(hash_)

    def data(self, version: Version) -> Iterator[bytes]:
        """The content of a version, piece by piece; never more than its size, whatever a merged keep claims.

        Raises:
            Unreadable: a piece is missing or damaged, or the pieces do not add up to its size.
        """
        if version.spans:
            for span in version.spans:
                yield from _slice_stream(self.data(span.version), span.start, span.stop)
            return
        left = version.size
        for hash_ in version.pieces:
            data = self.piece(hash_)
            left -= len(data)
            if left < 0:
                break
            yield data
        if left:
            raise Unreadable(f"The stored pieces of {version.path!r} do not add up to its {version.size:,} bytes.")

    def position(self, version: Version) -> tuple[str, int, int]:
        """A sort key: reading files in this order decompresses each frame once."""
        first = next(iter(version.spans[0].version.pieces if version.spans else version.pieces), "")
        location = self.located.get(first)
        return (location.pack.name, location.frame.offset, location.start) if location is not None else ("", 0, 0)

    def _read_piece(self, hash_: str) -> bytes:
        location = self.located.get(hash_)
        if location is None:
            raise Unreadable(f"A piece of the keep is missing ({hash_[:16]}). Copy the packs from another copy of it.")
        locations = [location, *self._duplicates.get(hash_, ())]
        for duplicate in locations[:-1]:
            try:
                return self._read_location(duplicate, hash_)
            except Unreadable:
                continue  # this pack is damaged; another may be intact
        return self._read_location(locations[-1], hash_)

    def _read_location(self, location: PieceLocation, hash_: str) -> bytes:
        data = self._frame(location.pack, location.frame)[location.start : location.start + location.length]
        if sha256(data).hexdigest() != hash_:
            raise Unreadable(f"A piece in {location.pack.name!r} is damaged. `threadline keep verify` shows details.")
        return data

    def _open_cache(self) -> None:
        """Open the cache; again if the keep has another id, since a damaged keep.json is repaired by a run."""
        if self.store.info.id != self._cache_id:
            self._cache_id = self.store.info.id
            self.cache = open_keep_cache(self._cache_folder, self._cache_id)

    def _read_manifest(self, path: Path) -> Manifest | None:
        if self._is_unreadable(path):
            self._unread_runs += 1
            return None
        try:
            return parse_manifest(self._read_cached(path, lambda path: read_manifest_text(self.store, path)), path.name)
        except Unreadable as error:
            self._run_problems.append(str(error))
            return None

    def _is_unreadable(self, path: Path) -> bool:
        """Whether a file can be read neither from the cache nor without the key."""
        return self._cached(path) is None and self.store.is_key_missing

    def _cached(self, path: Path) -> bytes | None:
        unsaved = self._unsaved.get(path.name)
        if unsaved is None and self._trusts_cache and self.cache is not None:
            return self.cache.get(path.name)
        return unsaved

    def _read_cached(self, path: Path, read: Callable[[Path], bytes]) -> bytes:
        data = self._cached(path)
        if data is None:
            data = self._unsaved[path.name] = read(path)
        return data

    def _add_manifests(self, new: Iterable[Manifest], *, rebuild: bool = False) -> None:
        """Add manifests. Derive all versions again if they change more than the newest versions of files."""
        hashes = {manifest.hash for manifest in self.manifests}
        unique = {manifest.hash: manifest for manifest in new if manifest.hash not in hashes}
        added = sorted(unique.values(), key=_manifest_order)
        if not added and not rebuild:
            return
        self.memo.clear()
        can_append = not rebuild and not self._orphan_problems and all(map(self._is_newest, added))
        self.manifests = sorted((*self.manifests, *added), key=_manifest_order)
        if can_append:
            self._derive_versions(added)
            return
        self.versions, self.forgotten_versions, self._piece_lists = {}, [], {}
        self._orphan_problems = []
        self.rules = ForgetRules(self.manifests)
        self._derive_versions(self.manifests)

    @property
    def forgotten(self) -> ForgottenFiles:
        """What was forgotten here."""
        return self.rules.applied

    @property
    def pending(self) -> list[ForgetRow]:
        """What keeps that were merged have forgotten, and was not accepted here; each session once."""
        return self.rules.pending()

    def _is_newest(self, manifest: Manifest) -> bool:
        """Whether a manifest is only about files and comes after all others of its machine that were there before."""
        last = self.last_run(manifest.run.machine)
        is_after = last is None or _manifest_order(last) < _manifest_order(manifest)
        return is_after and not manifest.run.held and not any(isinstance(row, ForgetRow) for row in manifest.rows)

    def _derive_versions(self, added: Sequence[Manifest]) -> None:
        """Turn rows into versions. A version may continue one that another machine's manifest lists further down."""
        rows = [row for manifest in added for row in manifest.rows if isinstance(row, FileRow)]
        row_ids = iter(resolve_piece_lists(rows, self._piece_lists))
        for manifest in added:
            for row in manifest.rows:
                if isinstance(row, GoneRow):
                    self._mark_gone(manifest.run, row)
                elif isinstance(row, FileRow):
                    pieces = self._piece_lists.get(next(row_ids))
                    if self.rules.is_missing(manifest, row):
                        continue
                    if pieces is not None:
                        self._add_version(make_version(manifest.run, row, pieces))
                    else:
                        self._orphan_problems.append(
                            f"A manifest is missing: run {manifest.run.number} of {manifest.run.label} refers to an"
                            f" earlier version of {row.path} that is not in the keep."
                        )

    def _add_version(self, version: Version) -> None:
        if self.forgotten.has(version.path):
            self.forgotten_versions.append(version)
            return
        versions = self.versions.setdefault(version.key, [])
        if versions and is_same_version(versions[-1], version):
            versions[-1] = replace(versions[-1], ctime_ns=version.ctime_ns)
        else:
            versions.append(version)

    def _mark_gone(self, run: RunRow, row: GoneRow) -> None:
        key = (run.machine, path_from_json(row.home, row.raw_home), path_from_json(row.path, row.raw_path))
        versions = self.versions.get(key)
        if versions:
            versions[-1] = replace(versions[-1], gone=run.began)

    def _locate_all(self) -> dict[str, PieceLocation]:
        if self._located is None:
            self._located, self._duplicates, self._located_packs = {}, {}, set()
            self._pack_problems, self._unread_packs = {}, set()
            tried: set[Path] = set()
            # Packs that are written meanwhile may replace others, so look again until there are no new ones.
            for _scan in range(_MAX_RESCANS):
                new = [path for path in self.store.pack_files() if path not in tried]
                if not new:
                    break
                tried.update(new)
                for path in new:
                    self._locate_pack(self._located, path)
        return self._located

    def _refresh_locations(self) -> None:
        """Locate the pieces of new packs; all of them again if a pack has vanished."""
        if self._located is None:
            return
        paths = {path.name: path for path in self.store.pack_files()}
        if self._located_packs - paths.keys():
            self.reload_locations()
            return
        for name in paths.keys() - self._located_packs:
            self._locate_pack(self._located, paths[name])

    def _locate_pack(self, located: dict[str, PieceLocation], path: Path) -> None:
        self._pack_problems.pop(path.name, None)
        if self._is_unreadable(path):
            self._unread_packs.add(path.name)
            return
        try:
            frames = pack.decode_table(self._read_table(path), path.name).frames
        except Unreadable as error:
            # A pack may be removed once others contain its pieces. Reading a piece that is really lost reports it.
            if path.exists():
                self._pack_problems[path.name] = str(error)
            return
        self._located_packs.add(path.name)
        self._unread_packs.discard(path.name)
        for frame in frames:
            start = 0
            for hash_, length in frame.pieces:
                location = PieceLocation(path, frame, start, length)
                if located.setdefault(hash_, location) is not location:
                    self._duplicates.setdefault(hash_, []).append(location)
                start += length

    def _read_table(self, path: Path) -> bytes:
        table = self._read_cached(path, self._reader.table)
        if self._is_truncated(path, table):
            raise Unreadable(f"The pack {path.name!r} is truncated, or longer than it was written.")
        return table

    def _is_truncated(self, path: Path, table: bytes) -> bool:
        """Whether a pack is not as long as its cached table says: then its contents are stored again."""
        if path.suffix != ".zst" or self.cache is None or not self._trusts_cache:
            return False
        try:
            frames = pack.decode_table(table, path.name).frames
            end = max((frame.offset + frame.length for frame in frames), default=0)
            return path.lstat().st_size != end + len(pack.build_footer(table))
        except (Unreadable, OSError):
            return False  # reported when it is read


def read_manifest_text(store: Store, path: Path) -> bytes:
    """The text of a manifest, after checking the file against the hash in its name.

    Raises:
        Unreadable: it cannot be read, or is damaged.
    """
    try:
        if hash_file(path) != hash_in_name(path):
            raise damaged_manifest_error(path.name, "its bytes do not match the hash in its name")
    except OSError as error:
        raise read_error(path, error) from None
    return decompress_manifest(store.read(path), path.name)


def resolve_piece_lists(rows: Sequence[FileRow], piece_lists: dict[str, PieceList]) -> list[str]:
    """Add the piece list of each row to `piece_lists`, by its id; return the ids of the rows.

    The list that a row continues may be further down, or missing: then the row has none.
    """
    ids = [piece_list_id(row) for row in rows]
    waiting: dict[str, list[tuple[str, FileRow]]] = {}
    for id_, row in zip(ids, rows, strict=True):
        if row.base is not None and row.base not in piece_lists:
            waiting.setdefault(row.base, []).append((id_, row))
            continue
        ready = [(id_, row)]
        while ready:
            ready_id, ready_row = ready.pop()
            if ready_id not in piece_lists:
                before = piece_lists[ready_row.base] if ready_row.base is not None else None
                piece_lists[ready_id] = PieceList(ready_row.pieces, before, ready_id)
                ready += waiting.pop(ready_id, ())
    return ids


def piece_list_id(row: FileRow) -> str:
    """The id of a row's piece list, which rows that continue it refer to."""
    return _piece_list_id(row.base, row.pieces)


def _piece_list_id(base: str | None, pieces: tuple[str, ...]) -> str:
    return sha256("\n".join((base or "", *pieces)).encode()).hexdigest()


def make_version(run: RunRow, row: FileRow, pieces: PieceList) -> Version:
    """The version that a row of a run describes."""
    return Version(
        run.machine,
        run.label,
        path_from_json(row.home, row.raw_home),
        path_from_json(row.path, row.raw_path),
        row.mode,
        row.mtime_ns,
        row.size,
        pieces,
        run.number,
        run.began,
        torn=row.torn,
        ctime_ns=row.ctime_ns,
    )


def is_same_version(version: Version, other: Version) -> bool:
    """Whether two versions differ in nothing but their ctime."""
    return (version.gone, version.size, version.mtime_ns, version.mode, version.torn) == (
        other.gone,
        other.size,
        other.mtime_ns,
        other.mode,
        other.torn,
    ) and list(version.pieces) == list(other.pieces)


def _slice_stream(chunks: Iterator[bytes], start: int, stop: int) -> Iterator[bytes]:
    """The bytes of a stream from `start` to `stop`."""
    at = 0
    for data in chunks:
        if at >= stop:
            return
        part = data[max(0, start - at) : stop - at]
        at += len(data)
        if part:
            yield part


def _manifest_order(manifest: Manifest) -> tuple[str, int, str, str]:
    return manifest.run.machine, manifest.run.number, manifest.run.began, manifest.hash
