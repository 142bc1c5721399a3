"""Mending: what of a keep is damaged or not there, and is not a pack or a manifest, made good from a copy of it."""

from __future__ import annotations

from collections.abc import Iterable

from threadline.errors import Unreadable
from threadline.keep import durable
from threadline.keep.repacking import frames_of
from threadline.keep.store import README, Store, file_hash, told_hash

_MOST = 16 * 1024 * 1024
"""No dictionary that threadline writes is nearly as large."""


def mend(store: Store, writer: str, other: Store) -> int:
    """Take over the dictionaries that packs of a keep need and cannot be read with; how many files were made good.

    Raises:
        Unreadable: the keep cannot be written.
    """
    frames = (frame for path in store.pack_files() for frame in frames_of(store, path) or ())
    needed = {frame.dictionary for frame in frames if frame.dictionary is not None}
    lost = {hash_ for hash_ in needed if not _has(store, hash_)}
    mended = sum(taught(store, writer, other, [hash_]) for hash_ in lost)
    if all(_has(store, hash_) for hash_ in lost):
        mended += _drop_damaged(store)
    return mended + mend_text(store)


def taught(store: Store, writer: str, other: Store, needed: Iterable[str]) -> bool:
    """Take over dictionaries from another keep; whether all of them are there now, and right."""
    for hash_ in needed:
        if _has(store, hash_):
            continue
        try:
            data = other.dictionary(hash_)
        except Unreadable:
            return False
        if len(data) > _MOST:
            return False
        store.put_dictionary(writer, data)
    return True


def mend_text(store: Store) -> int:
    """Write the text for people anew, where it is not what was written: it is the same in every keep."""
    try:
        said = durable.small(store.folder / "README.txt")
    except OSError:
        said = b""
    if said == README.encode():
        return 0
    try:
        durable.put(store.folder, "keep", "README.txt", README.encode())
    except OSError as error:
        raise durable.unwritable(store.folder, error) from None
    return 1


def _has(store: Store, hash_: str) -> bool:
    try:
        store.dictionary(hash_)
    except Unreadable:
        return False
    return True


def _drop_damaged(store: Store) -> int:
    """Take away what is left of dictionaries that cannot be read, once others are there in their place."""
    found = 0
    for path in store.dictionary_files():
        try:
            is_right = file_hash(path) == told_hash(path)
        except OSError:
            is_right = False
        if not is_right:
            path.unlink(missing_ok=True)
            found += 1
    if found:
        durable.sync(store.dictionaries)
    return found
