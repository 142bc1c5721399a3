"""Every version of every kept file and where its pieces are, read from the manifests and packs alone.

Damage is reported in `problems` and never hides the rest. Merged keeps may contain anything, so sizes and hashes are
checked when bytes are read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from threadline.errors import Unreadable
from threadline.keep import manifest as manifests
from threadline.keep import pack
from threadline.keep.cache import KeepCache, open_keep_cache
from threadline.keep.manifest import FileRow, ForgetRow, GoneRow, Manifest, RunRow, path_from_json, path_to_json
from threadline.keep.pack import Frame, split_frame
from threadline.keep.store import Store, hash_file, hash_in_name

__all__ = [
    "Catalogue",
    "FileKey",
    "PieceLocation",
    "Span",
    "Version",
    "check_frame",
    "read_manifest_text",
    "update_cache",
]
_MAX_RESCANS = 4
"""How often packs are looked for that were written meanwhile."""
_CACHED_FRAMES = 6
"""How many frames that were read last are held: what follows is often in the same."""


class PieceLocation(Struct, frozen=True, gc=False):
    """Where a piece lies: in which pack and frame, and from where to where inside what that holds."""

    pack: Path
    frame: Frame
    start: int
    length: int


class Catalogue:
    """What a keep holds. What cannot be read is told in `problems`, and does not hide the rest."""

    def __init__(self, store: Store, memory: KeepCache | None = None) -> None:
        self.store = store
        self.problems: list[str] = []
        self.manifests: list[Manifest] = []
        self.versions: dict[FileKey, list[Version]] = {}
        self.forgotten_versions: list[Version] = []
        self.forgotten = ForgottenFiles()
        self.unread = 0
        """How many files of a sealed keep could not be read, since the key is not at hand."""
        self._memory = memory
        self._new: dict[str, bytes] = {}
        self._located: dict[str, PieceLocation] | None = None
        self._elsewhere: dict[str, list[PieceLocation]] = {}
        """Where pieces lie, too, that lie in more than one pack."""
        self._frame = lru_cache(maxsize=_CACHED_FRAMES)(self._frame_bytes)
        self._known = lru_cache(maxsize=4)(store.dictionary)
        self._read()

    def last_run(self, machine: str) -> Manifest | None:
        """The newest manifest of a machine."""
        return max(
            (manifest for manifest in self.manifests if manifest.run.machine == machine),
            key=_manifest_order,
            default=None,
        )

    @property
    def located(self) -> dict[str, PieceLocation]:
        """Where every piece lies, by its hash."""
        if self._located is None:
            self._located, self._elsewhere = {}, {}
            for path in self._packs():
                found = self._told(path, self._table)
                if found is not None and self._is_cut(path, found):
                    self.problems.append(f"The pack {path.name!r} is cut off, or longer than it was written.")
                elif found is not None:
                    try:
                        self._locate(self._located, _locate_pieces(path, found))
                    except Unreadable as error:
                        self.problems.append(str(error))
        return self._located

    def _locate(self, located: dict[str, PieceLocation], found: Iterator[tuple[str, PieceLocation]]) -> None:
        for hash_, place in found:
            if located.setdefault(hash_, place) is not place:
                self._elsewhere.setdefault(hash_, []).append(place)

    def pieces_outside(self, doubted: AbstractSet[str]) -> set[str]:
        """The pieces, by their hashes, that lie in other packs than these, which are told by name."""
        if not doubted:
            return set(self.located)
        return {
            hash_
            for hash_, place in self.located.items()
            if any(one.pack.name not in doubted for one in (place, *self._elsewhere.get(hash_, ())))
        }

    def _packs(self) -> Iterator[Path]:
        """All packs, those included that are written while others are looked at: they may take their place."""
        seen: set[Path] = set()
        for _turn in range(_MAX_RESCANS):
            new = [path for path in self.store.pack_files() if path not in seen]
            if not new:
                return
            seen.update(new)
            yield from new

    def reload_locations(self) -> None:
        """Look at the packs anew: another process may have written them otherwise."""
        self._located = None
        self._frame.cache_clear()

    def newest(self) -> Iterator[Version]:
        """The newest version of every file."""
        return (versions[-1] for versions in self.versions.values())

    def all_versions(self) -> Iterator[Version]:
        """Every version of every file."""
        return (version for versions in self.versions.values() for version in versions)

    def piece(self, hash_: str) -> bytes:
        """The bytes of a piece, which have that hash.

        Raises:
            Unreadable: it is not there, or is not what was kept.
        """
        try:
            return self._piece(hash_)
        except Unreadable:
            # Packs are rewritten into larger ones: what was here may be there.
            found = self.located.get(hash_)
            if found is not None and found.pack.exists():
                raise
            self.reload_locations()
            return self._piece(hash_)

    def data(self, version: Version) -> Iterator[bytes]:
        """What a file held, piece by piece, and never more than is told: a merged keep may name a piece many times.

        Raises:
            Unreadable: it cannot be given back, or is not as long as is told.
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
            raise Unreadable(f"What was kept of {version.path!r} is not the {version.size:,} bytes that are told.")

    def place(self, version: Version) -> tuple[str, int, int]:
        """Where a file begins: to read several in this order takes the least."""
        first = next(iter(version.spans[0].version.pieces if version.spans else version.pieces), "")
        found = self.located.get(first)
        return (found.pack.name, found.frame.offset, found.start) if found is not None else ("", 0, 0)

    def remember(self) -> None:
        """Put by what was read, if there is a memory: the next one to look need not."""
        if self._memory is not None and (self._new or not self._memory.is_there()):
            there = [path.name for path in (*self.store.run_files(), *self.store.pack_files())]
            self._memory.add(self._new.items(), there)
            self._new = {}

    def note(self, told: dict[str, bytes]) -> None:
        """What files tell that were written just now."""
        self._new |= told

    def _piece(self, hash_: str) -> bytes:
        found = self.located.get(hash_)
        if found is None:
            raise Unreadable(
                f"A piece of the keep is not there ({hash_[:16]}); copy the packs from another copy of it."
            )
        places = [found, *self._elsewhere.get(hash_, ())]
        for place in places[:-1]:
            try:
                return self._bytes_at(place, hash_)
            except Unreadable:
                continue  # one of the packs is damaged: another may be whole
        return self._bytes_at(places[-1], hash_)

    def _bytes_at(self, place: PieceLocation, hash_: str) -> bytes:
        data = self._frame(place.pack, place.frame)[place.start : place.start + place.length]
        if sha256(data).hexdigest() != hash_:
            raise Unreadable(
                f"A piece in {place.pack.name!r} is not what was kept; `threadline keep verify` says more."
            )
        return data

    def _frame_bytes(self, path: Path, frame: Frame) -> bytes:
        known = self._known(frame.dictionary) if frame.dictionary is not None else None
        with self.store.opened(path) as file:
            return pack.read_frame(file, path.name, frame, known)

    def _is_cut(self, path: Path, table: bytes) -> bool:
        """Whether a pack is not as long as what is remembered of it says: what is in it is kept again, then."""
        if path.suffix != ".zst" or self._memory is None:
            return False
        try:
            frames = pack.decode_table(table, path.name).frames
            end = max((frame.offset + frame.length for frame in frames), default=0)
            return path.lstat().st_size != end + len(pack.build_footer(table))
        except (Unreadable, OSError):
            return False  # whoever reads it tells

    def _told(self, path: Path, read: Callable[[Path], bytes]) -> bytes | None:
        """What a file tells, from memory or from itself; None where it cannot be read."""
        known = self._memory.get(path.name) if self._memory is not None else None
        if known is not None:
            return known
        if self.store.is_key_missing:
            self.unread += 1
            return None
        try:
            told = read(path)
        except Unreadable as error:
            # A pack may be taken away once others hold what is in it; what is lost by that is told by who needs it.
            if path.parent != self.store.packs or path.exists():
                self.problems.append(str(error))
            return None
        self._new[path.name] = told
        return told

    def _table(self, path: Path) -> bytes:
        with self.store.opened(path) as file:
            try:
                return pack.read_table(file, path.name)
            except OSError as error:
                raise Unreadable(f"The pack {path.name!r} cannot be read: {error.strerror or error}.") from None

    def _text(self, path: Path) -> bytes:
        return read_manifest_text(self.store, path)

    def _read(self) -> None:
        seen: set[str] = set()
        for path in self.store.run_files():
            text = self._told(path, self._text)
            if text is None:
                continue
            try:
                manifest = manifests.parse_manifest(text, path.name)
            except Unreadable as error:
                self.problems.append(str(error))
                continue
            if manifest.hash not in seen:
                seen.add(manifest.hash)
                self.manifests.append(manifest)
        self.manifests.sort(key=_manifest_order)
        for manifest in self.manifests:
            for row in manifest.rows:
                if isinstance(row, ForgetRow):
                    self.forgotten.add(row)
        self._take()

    def _take(self) -> None:
        """Make versions of the rows. What a version goes on from may be told by another machine, further down."""
        pieces: dict[str, PieceList] = {}
        resolve_piece_lists((row for one in self.manifests for row in one.rows if isinstance(row, FileRow)), pieces)
        for manifest in self.manifests:
            for row in manifest.rows:
                if isinstance(row, GoneRow):
                    self._went(manifest.run, row)
                elif isinstance(row, FileRow):
                    made = pieces.get(piece_list_id(row))
                    if made is not None:
                        self._add(make_version(manifest.run, row, made))
                    else:
                        where = f"{row.path} of run {manifest.run.number} of {manifest.run.label}"
                        self.problems.append(f"What {where} goes on from is not in the keep; a manifest is missing.")

    def _add(self, version: Version) -> None:
        if self.forgotten.has(version.path):
            self.forgotten_versions.append(version)
            return
        before = self.versions.setdefault((version.machine, version.home, version.path), [])
        if before and is_same_version(before[-1], version):
            before[-1] = replace(before[-1], ctime_ns=version.ctime_ns)
        else:
            before.append(version)

    def _went(self, run: RunRow, row: GoneRow) -> None:
        key = (run.machine, path_from_json(row.home, row.raw_home), path_from_json(row.path, row.raw_path))
        versions = self.versions.get(key)
        if versions:
            versions[-1] = replace(versions[-1], gone=run.began)


def update_cache(store: Store, folder: Path | None) -> None:
    """Remember, in a machine's folder, what a keep holds by now: runs without the key would not know it otherwise."""
    memory = open_keep_cache(folder, store.about.id)
    if memory is not None:
        known = Catalogue(store, memory)
        if known.located is not None:
            known.remember()


def read_manifest_text(store: Store, path: Path) -> bytes:
    """The text of a manifest, whose file is what its name says.

    Raises:
        Unreadable: it cannot be read, or is not what was written.
    """
    try:
        if hash_file(path) != hash_in_name(path):
            raise manifests.damaged_manifest_error(path.name, "its bytes are not those that its name says")
    except OSError as error:
        raise Unreadable(f"The manifest {path.name!r} cannot be read: {error.strerror or error}.") from None
    return manifests.decompress_manifest(store.read(path), path.name)


def _slice_stream(pieces: Iterator[bytes], start: int, stop: int) -> Iterator[bytes]:
    """Of bytes that come in pieces, those from one place to another."""
    at = 0
    for data in pieces:
        if at >= stop:
            return
        found = data[max(0, start - at) : stop - at]
        at += len(data)
        if found:
            yield found


def _manifest_order(manifest: Manifest) -> tuple[str, int, str, str]:
    return manifest.run.machine, manifest.run.number, manifest.run.began, manifest.hash


def _locate_pieces(path: Path, body: bytes) -> Iterator[tuple[str, PieceLocation]]:
    for frame in pack.decode_table(body, path.name).frames:
        at = 0
        for hash_, length in frame.pieces:
            yield hash_, PieceLocation(path, frame, at, length)
            at += length


def check_frame(store: Store, path: Path, frame: Frame, dictionary: bytes | None) -> Iterator[tuple[str, bool]]:
    """Every piece of a frame, and whether it is what its hash says."""
    with store.opened(path) as file:
        data = pack.read_frame(file, path.name, frame, dictionary)
    for hash_, piece in split_frame(frame, data):
        yield hash_, sha256(piece).hexdigest() == hash_


_UUID_PATTERN = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class PieceList:
    """The pieces that a version is made of, by their hashes, in order: those of another one, and those that follow.

    `id` is what those that go on from it call it: the hash of that of the other one and of its own, a line each.
    """

    __slots__ = ("added", "before", "id")
    id: str

    def __init__(self, added: tuple[str, ...], before: PieceList | None = None) -> None:
        self.added = added
        self.before = before
        self.id = sha256("\n".join((before.id if before is not None else "", *added)).encode()).hexdigest()

    def __iter__(self) -> Iterator[str]:
        parts = []
        one: PieceList | None = self
        while one is not None:
            parts.append(one.added)
            one = one.before
        return (hash_ for part in reversed(parts) for hash_ in part)

    def __len__(self) -> int:
        return sum(1 for _hash in self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PieceList) and self.id == other.id

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
    pieces: PieceList
    run: int
    seen: str
    gone: str | None = None
    torn: bool = False
    ctime_ns: int = 0
    spans: tuple[Span, ...] = ()


FileKey = tuple[str, str, str]
"""A file: its machine, its home, its path below that."""


class ForgottenFiles:
    """Which files are not to be listed or kept any more."""

    def __init__(self) -> None:
        self.rows: list[ForgetRow] = []
        self._paths: set[str] = set()
        self._sessions: set[str] = set()

    def add(self, row: ForgetRow) -> None:
        """One more session."""
        self.rows.append(row)
        self._paths.update(row.paths)
        # Only what cannot be in a path by accident: a merged keep may say anything.
        if _UUID_PATTERN.fullmatch(row.session):
            self._sessions.add(row.session)

    def matches_row(self, row: FileRow) -> bool:
        """Whether the file that a row tells of is to be left out."""
        return self.has(path_from_json(row.path, row.raw_path))

    def has(self, path: str) -> bool:
        """Whether a file is to be left out, wherever it lies."""
        if not self.rows:
            return False
        text = path_to_json(path)[0]
        return text in self._paths or any(found[0] in self._sessions for found in _UUID_PATTERN.finditer(text))


def piece_list_id(row: FileRow) -> str:
    """What rows that go on from this one call it."""
    return sha256("\n".join((row.base or "", *row.pieces)).encode()).hexdigest()


def resolve_piece_lists(rows: Iterable[FileRow], found: dict[str, PieceList]) -> None:
    """The pieces of each row, by its id, into `found`. What one goes on from may be told further down, or elsewhere."""
    waiting: dict[str, list[FileRow]] = {}
    for row in rows:
        if row.base is not None and row.base not in found:
            waiting.setdefault(row.base, []).append(row)
            continue
        ready = [row]
        while ready:
            one = ready.pop()
            made = PieceList(one.pieces, found[one.base] if one.base is not None else None)
            if made.id not in found:
                found[made.id] = made
                ready += waiting.pop(made.id, ())


def make_version(run: RunRow, row: FileRow, pieces: PieceList) -> Version:
    """The version that a row of a run tells of."""
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
    """Whether nothing changed but what the system notes of a file."""
    return (version.gone, version.size, version.mtime_ns, version.mode, version.torn) == (
        other.gone,
        other.size,
        other.mtime_ns,
        other.mode,
        other.torn,
    ) and list(version.pieces) == list(other.pieces)
