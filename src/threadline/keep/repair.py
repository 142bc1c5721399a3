"""Repair keep.json, README.txt and dictionaries, from a copy of the keep or from what is left."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from uuid import uuid4

from msgspec.structs import replace

from threadline import files
from threadline.errors import Unreadable
from threadline.keep import encryption
from threadline.keep.machine import Machine
from threadline.keep.pack import PackReader
from threadline.keep.store import (
    KEEP_FORMAT,
    KEEP_VERSION,
    KeepInfo,
    Store,
    is_damaged,
    write_keep_info,
)

_MAX_DICTIONARY_SIZE = 16 * 1024 * 1024
"""Far larger than any dictionary that threadline writes."""


def repair_keep_info(store: Store, machine: Machine, others: Sequence[Store] = ()) -> bool:
    """Rewrite a damaged keep.json from a copy of the keep, or from its files; return whether that was necessary.

    Raises:
        IndexBusy: another process is writing.
        Unreadable: neither reveals what was in it, or it cannot be written.
    """
    if store.problem is None:
        return False
    with store.lock(machine.id, shared=True):
        copy = next((other.info for other in others if _is_copy(store, other)), None)
        info = copy or _reconstruct_keep_info(store, machine)
        write_keep_info(store.folder, info.id, info.recipients, info.identity)
    store.reload_info()
    return True


def _is_copy(store: Store, other: Store) -> bool:
    """Whether another keep is a copy of this one: they share a file, since names are hashes."""
    if other.problem is not None or other.is_encrypted != store.is_encrypted:
        return False
    names = {path.name for path in (*store.pack_files(), *store.run_files())}
    return any(path.name in names for path in (*other.pack_files(), *other.run_files()))


def _reconstruct_keep_info(store: Store, machine: Machine) -> KeepInfo:
    """The content of keep.json as far as it is certain. Its id matters only to this machine's cache."""
    last_run = machine.last_run(store.folder)
    info = KeepInfo(KEEP_FORMAT, KEEP_VERSION, last_run.id if last_run is not None else str(uuid4()))
    runs = store.run_files()
    if not store.is_encrypted and runs:
        return info
    if store.identity is None or not runs:
        raise Unreadable(store.problem or "")
    with files.open_regular(runs[0], follow_symlinks=False) as file:
        recipients = encryption.count_recipients(file.read())
    store.read(runs[0])  # raises if this is not the key
    paths = (store.folder / name for name in (encryption.IDENTITY_FILE, encryption.IDENTITY_COPY_FILE))
    identities = {files.read_file(path, follow_symlinks=False) for path in paths if path.is_file()}
    if recipients != 1 or len(identities) > 1:
        raise Unreadable(store.problem or "")
    identity = sha256(identities.pop()).hexdigest() if identities else ""
    return replace(info, recipients=(encryption.public_key_of(store.identity),), identity=identity)


def repair_from_copy(store: Store, owner: str, other: Store) -> int:
    """Copy missing or damaged dictionaries that packs need; return the number of repaired files.

    Raises:
        Unreadable: the keep cannot be written.
    """
    frames = (frame for frames in PackReader(store).all_frames().values() for frame in frames)
    needed = {frame.dictionary for frame in frames if frame.dictionary is not None}
    lost = {hash_ for hash_ in needed if not _has_dictionary(store, hash_)}
    repaired = sum(copy_dictionaries(store, owner, other, [hash_]) for hash_ in lost)
    if all(_has_dictionary(store, hash_) for hash_ in lost):
        repaired += _remove_damaged_dictionaries(store)
    return repaired + store.repair_readme()


def copy_dictionaries(store: Store, owner: str, other: Store, hashes: Iterable[str]) -> bool:
    """Copy dictionaries from another keep; return whether this keep has all of them now, intact."""
    for hash_ in hashes:
        if _has_dictionary(store, hash_):
            continue
        try:
            data = other.dictionary(hash_)
        except Unreadable:
            return False
        if len(data) > _MAX_DICTIONARY_SIZE:
            return False
        store.put_dictionary(owner, data)
    return True


def _has_dictionary(store: Store, hash_: str) -> bool:
    try:
        store.dictionary(hash_)
    except Unreadable:
        return False
    return True


def _remove_damaged_dictionaries(store: Store) -> int:
    """Remove damaged dictionaries once intact ones are in place; return how many."""
    damaged = [path for path in store.dictionary_files() if is_damaged(path)]
    for path in damaged:
        path.unlink(missing_ok=True)
    if damaged:
        files.sync_folder(store.dictionaries)
    return len(damaged)
