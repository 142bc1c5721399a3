"""The catalogue: every version of every file that is kept and where its pieces lie, from manifests and packs alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from threadline.errors import Unreadable
from threadline.keep import manifest as manifests
from threadline.keep import pack
from threadline.keep.manifest import File, Forgot, Gone, Manifest, Run, as_path
from threadline.keep.pack import Frame, pieces_in
from threadline.keep.remembering import Memory, memory_in
from threadline.keep.store import Store, file_hash, told_hash
from threadline.keep.versions import Forgotten, Key, Pieces, Span, Version, is_same, row_id, version_of, work_out

__all__ = ["Catalogue", "Key", "Located", "Span", "Version", "checked", "run_text", "take_in"]
_TURNS = 4
"""How often packs are looked for that were written meanwhile."""
_FRAMES = 6
"""How many frames that were read last are held: what follows is often in the same."""


class Located(Struct, frozen=True, gc=False):
    """Where a piece lies: in which pack and frame, and from where to where inside what that holds."""

    pack: Path
    frame: Frame
    start: int
    length: int


class Catalogue:
    """What a keep holds. What cannot be read is told in `problems`, and does not hide the rest."""

    def __init__(self, store: Store, memory: Memory | None = None) -> None:
        self.store = store
        self.problems: list[str] = []
        self.manifests: list[Manifest] = []
        self.versions: dict[Key, list[Version]] = {}
        self.forgotten_versions: list[Version] = []
        self.forgotten = Forgotten()
        self.unread = 0
        """How many files of a sealed keep could not be read, since the key is not at hand."""
        self._memory = memory
        self._new: dict[str, bytes] = {}
        self._located: dict[str, Located] | None = None
        self._elsewhere: dict[str, list[Located]] = {}
        """Where pieces lie, too, that lie in more than one pack."""
        self._frame = lru_cache(maxsize=_FRAMES)(self._frame_bytes)
        self._known = lru_cache(maxsize=4)(store.dictionary)
        self._read()

    def last_run(self, machine: str) -> Manifest | None:
        """The newest manifest of a machine."""
        return max((one for one in self.manifests if one.run.machine == machine), key=_order, default=None)

    @property
    def located(self) -> dict[str, Located]:
        """Where every piece lies, by its hash."""
        if self._located is None:
            self._located, self._elsewhere = {}, {}
            for path in self._packs():
                found = self._told(path, self._table)
                if found is not None and self._is_cut(path, found):
                    self.problems.append(f"The pack {path.name!r} is cut off, or longer than it was written.")
                elif found is not None:
                    try:
                        self._locate(self._located, _pieces_of(path, found))
                    except Unreadable as error:
                        self.problems.append(str(error))
        return self._located

    def _locate(self, located: dict[str, Located], found: Iterator[tuple[str, Located]]) -> None:
        for hash_, place in found:
            if located.setdefault(hash_, place) is not place:
                self._elsewhere.setdefault(hash_, []).append(place)

    def outside(self, doubted: AbstractSet[str]) -> set[str]:
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
        for _turn in range(_TURNS):
            new = [path for path in self.store.pack_files() if path not in seen]
            if not new:
                return
            seen.update(new)
            yield from new

    def locate_again(self) -> None:
        """Look at the packs anew: another process may have written them otherwise."""
        self._located = None
        self._frame.cache_clear()

    def newest(self) -> Iterator[Version]:
        """The newest version of every file."""
        return (versions[-1] for versions in self.versions.values())

    def all_versions(self) -> Iterator[Version]:
        """Every version of every file."""
        return (one for versions in self.versions.values() for one in versions)

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
            self.locate_again()
            return self._piece(hash_)

    def data(self, version: Version) -> Iterator[bytes]:
        """What a file held, piece by piece, and never more than is told: a merged keep may name a piece many times.

        Raises:
            Unreadable: it cannot be given back, or is not as long as is told.
        """
        if version.spans:
            for span in version.spans:
                yield from _within(self.data(span.version), span.start, span.stop)
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

    def _bytes_at(self, place: Located, hash_: str) -> bytes:
        data = self._frame(place.pack, place.frame)[place.start : place.start + place.length]
        if sha256(data).hexdigest() != hash_:
            raise Unreadable(
                f"A piece in {place.pack.name!r} is not what was kept; `threadline keep verify` says more."
            )
        return data

    def _frame_bytes(self, path: Path, frame: Frame) -> bytes:
        known = self._known(frame.dictionary) if frame.dictionary is not None else None
        with self.store.opened(path) as file:
            return pack.frame_bytes(file, path.name, frame, known)

    def _is_cut(self, path: Path, table: bytes) -> bool:
        """Whether a pack is not as long as what is remembered of it says: what is in it is kept again, then."""
        if path.suffix != ".zst" or self._memory is None:
            return False
        try:
            frames = pack.contents(table, path.name).frames
            end = max((one.offset + one.length for one in frames), default=0)
            return path.lstat().st_size != end + len(pack.written(table))
        except (Unreadable, OSError):
            return False  # whoever reads it tells

    def _told(self, path: Path, read: Callable[[Path], bytes]) -> bytes | None:
        """What a file tells, from memory or from itself; None where it cannot be read."""
        known = self._memory.get(path.name) if self._memory is not None else None
        if known is not None:
            return known
        if self.store.is_locked:
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
                return pack.table_of(file, path.name)
            except OSError as error:
                raise Unreadable(f"The pack {path.name!r} cannot be read: {error.strerror or error}.") from None

    def _text(self, path: Path) -> bytes:
        return run_text(self.store, path)

    def _read(self) -> None:
        seen: set[str] = set()
        for path in self.store.run_files():
            text = self._told(path, self._text)
            if text is None:
                continue
            try:
                manifest = manifests.parsed(text, path.name)
            except Unreadable as error:
                self.problems.append(str(error))
                continue
            if manifest.hash not in seen:
                seen.add(manifest.hash)
                self.manifests.append(manifest)
        self.manifests.sort(key=_order)
        for manifest in self.manifests:
            for row in manifest.rows:
                if isinstance(row, Forgot):
                    self.forgotten.add(row)
        self._take()

    def _take(self) -> None:
        """Make versions of the rows. What a version goes on from may be told by another machine, further down."""
        pieces: dict[str, Pieces] = {}
        work_out((row for one in self.manifests for row in one.rows if isinstance(row, File)), pieces)
        for manifest in self.manifests:
            for row in manifest.rows:
                if isinstance(row, Gone):
                    self._went(manifest.run, row)
                elif isinstance(row, File):
                    made = pieces.get(row_id(row))
                    if made is not None:
                        self._add(version_of(manifest.run, row, made))
                    else:
                        where = f"{row.path} of run {manifest.run.number} of {manifest.run.label}"
                        self.problems.append(f"What {where} goes on from is not in the keep; a manifest is missing.")

    def _add(self, version: Version) -> None:
        if self.forgotten.has(version.path):
            self.forgotten_versions.append(version)
            return
        before = self.versions.setdefault((version.machine, version.home, version.path), [])
        if before and is_same(before[-1], version):
            before[-1] = replace(before[-1], ctime_ns=version.ctime_ns)
        else:
            before.append(version)

    def _went(self, run: Run, row: Gone) -> None:
        key = (run.machine, as_path(row.home, row.raw_home), as_path(row.path, row.raw_path))
        versions = self.versions.get(key)
        if versions:
            versions[-1] = replace(versions[-1], gone=run.began)


def take_in(store: Store, folder: Path | None) -> None:
    """Remember, in a machine's folder, what a keep holds by now: runs without the key would not know it otherwise."""
    memory = memory_in(folder, store.about.id)
    if memory is not None:
        known = Catalogue(store, memory)
        if known.located is not None:
            known.remember()


def run_text(store: Store, path: Path) -> bytes:
    """The text of a manifest, whose file is what its name says.

    Raises:
        Unreadable: it cannot be read, or is not what was written.
    """
    try:
        if file_hash(path) != told_hash(path):
            raise manifests.damaged(path.name, "its bytes are not those that its name says")
    except OSError as error:
        raise Unreadable(f"The manifest {path.name!r} cannot be read: {error.strerror or error}.") from None
    return manifests.unpacked(store.read(path), path.name)


def _within(pieces: Iterator[bytes], start: int, stop: int) -> Iterator[bytes]:
    """Of bytes that come in pieces, those from one place to another."""
    at = 0
    for data in pieces:
        if at >= stop:
            return
        found = data[max(0, start - at) : stop - at]
        at += len(data)
        if found:
            yield found


def _order(manifest: Manifest) -> tuple[str, int, str, str]:
    return manifest.run.machine, manifest.run.number, manifest.run.began, manifest.hash


def _pieces_of(path: Path, body: bytes) -> Iterator[tuple[str, Located]]:
    for frame in pack.contents(body, path.name).frames:
        at = 0
        for hash_, length in frame.pieces:
            yield hash_, Located(path, frame, at, length)
            at += length


def checked(store: Store, path: Path, frame: Frame, dictionary: bytes | None) -> Iterator[tuple[str, bool]]:
    """Every piece of a frame, and whether it is what its hash says."""
    with store.opened(path) as file:
        data = pack.frame_bytes(file, path.name, frame, dictionary)
    for hash_, piece in pieces_in(frame, data):
        yield hash_, sha256(piece).hexdigest() == hash_
