"""The catalogue: every version of every file that is kept and where its pieces lie, from manifests and packs alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from threadline.errors import Unreadable
from threadline.keep import manifest as manifests
from threadline.keep import pack
from threadline.keep.manifest import File, Forgot, Gone, Manifest, Run, as_path, as_text
from threadline.keep.pack import Frame, pieces_in
from threadline.keep.remembering import Memory
from threadline.keep.store import Store, file_hash, told_hash

_FRAMES = 6
"""How many frames that were read last are held: what follows is often in the same."""
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


class Version(Struct, frozen=True):
    """A file as one run saw it: which machine's and home's, its path, mode and time, and the pieces it is made of."""

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
            self._located = {}
            for path in self.store.pack_files():
                found = self._told(path, self._table)
                if found is not None:
                    try:
                        self._located.update(_pieces_of(path, found))
                    except Unreadable as error:
                        self.problems.append(str(error))
        return self._located

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
        """What a file held, piece by piece."""
        return map(self.piece, version.pieces)

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
        data = self._frame(found.pack, found.frame)[found.start : found.start + found.length]
        if sha256(data).hexdigest() != hash_:
            raise Unreadable(
                f"A piece in {found.pack.name!r} is not what was kept; `threadline keep verify` says more."
            )
        return data

    def _frame_bytes(self, path: Path, frame: Frame) -> bytes:
        known = self._known(frame.dictionary) if frame.dictionary is not None else None
        with self.store.opened(path) as file:
            return pack.frame_bytes(file, path.name, frame, known)

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
                        self._add(_version(manifest.run, row, made))
                    else:
                        where = f"{row.path} of run {manifest.run.number} of {manifest.run.label}"
                        self.problems.append(f"What {where} goes on from is not in the keep; a manifest is missing.")

    def _add(self, version: Version) -> None:
        if self.forgotten.has(version.path):
            self.forgotten_versions.append(version)
            return
        before = self.versions.setdefault((version.machine, version.home, version.path), [])
        if before and _same(before[-1], version):
            before[-1] = replace(before[-1], ctime_ns=version.ctime_ns)
        else:
            before.append(version)

    def _went(self, run: Run, row: Gone) -> None:
        key = (run.machine, as_path(row.home, row.raw_home), as_path(row.path, row.raw_path))
        versions = self.versions.get(key)
        if versions:
            versions[-1] = replace(versions[-1], gone=run.began)


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


def _version(run: Run, row: File, pieces: Pieces) -> Version:
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


def _same(one: Version, other: Version) -> bool:
    """Whether nothing changed but what the system notes of a file."""
    return (one.gone, one.size, one.mtime_ns, one.mode, one.torn) == (
        other.gone,
        other.size,
        other.mtime_ns,
        other.mode,
        other.torn,
    ) and list(one.pieces) == list(other.pieces)


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
