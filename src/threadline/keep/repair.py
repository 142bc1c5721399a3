"""Repair keep.json, the README and dictionaries, and remember which packs `verify` found damaged.

Damaged packs are listed on this machine by name, which is a hash: a repaired pack has its old name again. The next
run stores again whatever is in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

from msgspec.structs import replace

from threadline import atomic, locks
from threadline.errors import Unreadable
from threadline.keep import encryption
from threadline.keep.forget import read_frames
from threadline.keep.machine import Machine, read_last_run
from threadline.keep.store import (
    KEEP_FORMAT,
    KEEP_VERSION,
    README_TEXT,
    KeepInfo,
    Store,
    hash_file,
    hash_in_name,
    write_keep_info,
)

_MAX_DICTIONARY_SIZE = 16 * 1024 * 1024
"""No dictionary that threadline writes is nearly as large."""


def repair_from_copy(store: Store, writer: str, other: Store) -> int:
    """Take over the dictionaries that packs of a keep need and cannot be read with; how many files were made good.

    Raises:
        Unreadable: the keep cannot be written.
    """
    frames = (frame for path in store.pack_files() for frame in read_frames(store, path) or ())
    needed = {frame.dictionary for frame in frames if frame.dictionary is not None}
    lost = {hash_ for hash_ in needed if not _has_dictionary(store, hash_)}
    mended = sum(copy_dictionaries(store, writer, other, [hash_]) for hash_ in lost)
    if all(_has_dictionary(store, hash_) for hash_ in lost):
        mended += _remove_damaged_dictionaries(store)
    return mended + repair_readme(store)


def copy_dictionaries(store: Store, writer: str, other: Store, needed: Iterable[str]) -> bool:
    """Take over dictionaries from another keep; whether all of them are there now, and right."""
    for hash_ in needed:
        if _has_dictionary(store, hash_):
            continue
        try:
            data = other.dictionary(hash_)
        except Unreadable:
            return False
        if len(data) > _MAX_DICTIONARY_SIZE:
            return False
        store.put_dictionary(writer, data)
    return True


def repair_readme(store: Store) -> int:
    """Write the text for people anew, where it is not what was written: it is the same in every keep."""
    try:
        said = atomic.read_small_file(store.folder / "README.txt")
    except OSError:
        said = b""
    if said == README_TEXT.encode():
        return 0
    try:
        atomic.write_file(store.folder, "keep", "README.txt", README_TEXT.encode())
    except OSError as error:
        raise atomic.keep_write_error(store.folder, error) from None
    return 1


def _has_dictionary(store: Store, hash_: str) -> bool:
    try:
        store.dictionary(hash_)
    except Unreadable:
        return False
    return True


def _remove_damaged_dictionaries(store: Store) -> int:
    """Take away what is left of dictionaries that cannot be read, once others are there in their place."""
    found = 0
    for path in store.dictionary_files():
        try:
            is_right = hash_file(path) == hash_in_name(path)
        except OSError:
            is_right = False
        if not is_right:
            path.unlink(missing_ok=True)
            found += 1
    if found:
        atomic.sync_folder(store.dictionaries)
    return found


def repair_keep_info(store: Store, machine: Machine, others: Sequence[Store] = ()) -> int:
    """Write keep.json anew, from a copy of the keep, or from what is in it; whether that was done, as a number.

    Raises:
        Unreadable: neither says what was in it, or it cannot be written.
    """
    if store.problem is None:
        return 0
    with locks.lock_for_adding(store.folder, machine.id):
        found = next((one.about for one in others if _is_copy(store, one)), None) or _reconstruct_keep_info(
            store, machine
        )
        try:
            write_keep_info(store.folder, found.id, found.recipients, found.identity)
        except OSError as error:
            raise atomic.keep_write_error(store.folder, error) from None
    store.reload_info()
    return 1


def _is_copy(store: Store, other: Store) -> bool:
    """Whether another keep is one of this: some file is in both, for names are hashes."""
    if other.problem is not None or other.is_encrypted != store.is_encrypted:
        return False
    names = {path.name for path in (*store.pack_files(), *store.run_files())}
    return any(path.name in names for path in (*other.pack_files(), *other.run_files()))


def _reconstruct_keep_info(store: Store, machine: Machine) -> KeepInfo:
    """What keep.json said, as far as it can be told without doubt: its id is for nobody but this machine's memory."""
    known = read_last_run(machine.memory, store.folder)
    made = KeepInfo(KEEP_FORMAT, KEEP_VERSION, known.id if known is not None else str(uuid4()))
    runs = store.run_files()
    if not store.is_encrypted and runs:
        return made
    if store.identity is None or not runs:
        raise Unreadable(store.problem or "")
    with atomic.open_regular_file(runs[0]) as file:
        many = encryption.count_recipients(file.read())
    store.read(runs[0])  # that the key is the one
    places = (store.folder / name for name in (encryption.IDENTITY_FILE, encryption.IDENTITY_COPY_FILE))
    locked = {atomic.read_small_file(path) for path in places if path.is_file()}
    if many != 1 or len(locked) > 1:
        raise Unreadable(store.problem or "")
    identity = sha256(locked.pop()).hexdigest() if locked else ""
    return replace(made, recipients=(encryption.public_key_of(store.identity),), identity=identity)


class DamagedPacks:
    """Which packs of a keep are not to be relied on. Names are hashes: a pack that is mended has its old name again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.packs = frozenset(atomic.read_small_file(path).decode(errors="replace").split())
        except OSError:
            self.packs = frozenset()

    def judge(self, looked: Iterable[str], damaged: Iterable[str]) -> None:
        """Put by what was found out: of the packs looked at, which are damaged. Not being able to harms nothing."""
        packs = (self.packs - set(looked)) | set(damaged)
        if packs == self.packs:
            return
        self.packs = packs
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            atomic.write_file(self.path.parent, "doubts", self.path.name, "\n".join(sorted(packs)).encode())
        except OSError:
            return


def open_damaged_packs(folder: Path | None, keep: str) -> DamagedPacks | None:
    """What is doubted, in a machine's folder, of the keep with this id."""
    return DamagedPacks(folder / f"{keep}.doubted") if folder is not None else None
