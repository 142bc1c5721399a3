"""Verifying: every byte of a keep against its hash, and what a damaged one touches."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

from threadline.errors import Unreadable
from threadline.keep import durable
from threadline.keep.catalogue import Catalogue, Version, checked
from threadline.keep.manifest import Manifest, parsed
from threadline.keep.pack import Frame, contents, table_of
from threadline.keep.remembering import Memory
from threadline.keep.sealing import COPY, IDENTITY
from threadline.keep.store import README, Store, file_hash, told_hash

_SESSION = re.compile(rb'"sessionId":"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"')


class Verified(Struct, frozen=True):
    """What was looked at, what is wrong, and the versions of files that cannot be given back for it.

    `sessions` are those that a damaged manifest told of: their bytes are there, but not which files they make.
    `missing` is how many manifests are known of and not there. `damaged` are the names of packs that are not to be
    relied on, of those that were `looked` at.
    """

    packs: int
    pieces: int
    bytes: int
    runs: int
    problems: tuple[str, ...] = ()
    touched: tuple[Version, ...] = ()
    sessions: tuple[str, ...] = ()
    missing: int = 0
    looked: tuple[str, ...] = ()
    damaged: tuple[str, ...] = ()


def verify(
    store: Store,
    *,
    memory: Memory | None = None,
    sample: int | None = None,
    seed: int = 0,
    planned: Callable[[int], None] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Verified:
    """Read everything, or so many frames, and compare it with what it should be.

    `memory` is what this machine remembers: no other manifest names the newest one, so only that tells if it is gone.
    """
    store.require_key()
    catalogue = Catalogue(store)
    apart = [*_chain(catalogue.manifests), *(_vanished(catalogue, memory) if memory is not None else ())]
    frames, unread = _tables(store)
    problems = [*catalogue.problems, *apart, *_about(store), *unread.values()]
    damaged = set(unread)
    chosen = frames if sample is None else random.Random(seed).sample(frames, min(sample, len(frames)))  # noqa: S311 - a sample
    if planned is not None:
        planned(sum(frame.size for _path, frame in chosen))
    bad: set[str] = set()
    whole: set[str] = set()
    for path, frame in chosen:
        wrong = _wrong(store, path, frame)
        if wrong:
            problems.append(f"{path.name}: the frame at byte {frame.offset:,} is damaged.")
            bad |= wrong
            damaged.add(path.name)
        whole |= {hash_ for hash_, _length in frame.pieces} - wrong
        if progress is not None:
            progress(frame.size)
    if sample is None:
        renamed = dict(_renamed(store))
        problems += renamed.values()
        damaged.update(renamed)
    # A piece may lie in two packs: it is lost only where no copy of it is whole.
    there = {hash_ for _path, frame in frames for hash_, _length in frame.pieces}
    lengths = {hash_: length for _path, frame in frames for hash_, length in frame.pieces}
    lost = bad - whole
    touched = tuple(one for one in catalogue.all_versions() if _is_touched(one, lost, lengths))
    untrue = sum(there.issuperset(one.pieces) and lost.isdisjoint(one.pieces) for one in touched)
    if untrue:
        problems.append(
            f"{untrue:,} versions of files are not as long as a manifest says, which threadline did not write so: they"
            " are not given back."
        )
    missing = {hash_ for one in touched for hash_ in one.pieces} - there
    if missing:
        problems.append(f"{len(missing):,} pieces are in no pack; copy the packs from another copy of this keep.")
    pieces = sum(len(frame.pieces) for _path, frame in chosen)
    size = sum(frame.size for _path, frame in chosen)
    sessions = _untold(catalogue) if catalogue.problems or apart else ()
    runs = len(catalogue.manifests)
    return Verified(
        len(store.pack_files()),
        pieces,
        size,
        runs,
        tuple(problems),
        touched,
        sessions,
        missing=len(apart),
        # Of a pack that was seen in part, nobody knows that it is whole.
        looked=tuple(path.name for path in store.pack_files()) if sample is None else (),
        damaged=tuple(sorted(damaged)),
    )


def _tables(store: Store) -> tuple[list[tuple[Path, Frame]], dict[str, str]]:
    """The frames of all packs; and of those that do not tell theirs, by name, why."""
    frames: list[tuple[Path, Frame]] = []
    unread: dict[str, str] = {}
    for path in store.pack_files():
        try:
            with store.opened(path) as file:
                frames += ((path, frame) for frame in contents(table_of(file, path.name), path.name).frames)
        except (Unreadable, OSError) as error:
            unread[path.name] = str(error)
    return frames, unread


def _untold(catalogue: Catalogue) -> tuple[str, ...]:
    """The sessions that pieces name which no manifest tells of."""
    told = {hash_ for one in catalogue.all_versions() for hash_ in one.pieces}
    told.update(hash_ for one in catalogue.forgotten_versions for hash_ in one.pieces)
    found: set[str] = set()
    for hash_ in catalogue.located.keys() - told:
        try:
            data = catalogue.piece(hash_)
        except Unreadable:
            continue
        found.update(name.decode() for name in _SESSION.findall(data))
    return tuple(sorted(found))


def _is_touched(version: Version, lost: set[str], lengths: dict[str, int]) -> bool:
    """Whether a version cannot be given back: a piece is lost or not there, or they do not make up its size."""
    size = 0
    for hash_ in version.pieces:
        if hash_ in lost or hash_ not in lengths:
            return True
        size += lengths[hash_]
    return size != version.size


def _about(store: Store) -> list[str]:
    """What is wrong with the files that tell what the folder is."""
    try:
        said = durable.small(store.folder / "README.txt")
    except OSError:
        said = b""
    text = [] if said == README.encode() else ["README.txt is not what was written; nothing but that text is lost."]
    if store.about.identity:
        text += [
            f"{name} is damaged, or not there; copy the other one over it (identity.age, identity-copy.age)."
            for name in (IDENTITY, COPY)
            if _hash(store.folder / name) != store.about.identity
        ]
    return text if store.problem is None else [store.problem, *text]


def _hash(path: Path) -> str | None:
    try:
        return file_hash(path)
    except OSError:
        return None


def _wrong(store: Store, path: Path, frame: Frame) -> set[str]:
    """The pieces of a frame that are not what they should be."""
    try:
        known = store.dictionary(frame.dictionary) if frame.dictionary is not None else None
        return {hash_ for hash_, right in checked(store, path, frame, known) if not right}
    except Unreadable:
        return {hash_ for hash_, _length in frame.pieces}


def _renamed(store: Store) -> Iterator[tuple[str, str]]:
    """Files whose bytes are not those that their name says; what lies between frames is seen only so."""
    for path in (*store.pack_files(), *store.dictionary_files()):
        try:
            right = file_hash(path) == told_hash(path)
        except OSError as error:
            yield path.name, f"{path.name}: it cannot be read: {error.strerror or error}."
            continue
        if not right:
            yield path.name, f"{path.name}: its bytes are not those that it was written with."


def _vanished(catalogue: Catalogue, memory: Memory) -> Iterator[str]:
    """The manifests that this machine has seen, and whose files are not there, unless another one tells it already."""
    there = {path.name for path in catalogue.store.run_files()}
    hashes = {one.hash for one in catalogue.manifests}
    named = {one.run.before for one in catalogue.manifests}
    for name, text in memory.texts():
        if name in there:
            continue
        try:
            one = parsed(text, name)
        except Unreadable:
            continue  # a pack's contents
        if one.hash not in hashes and one.hash not in named:
            yield f"Run {one.run.number} of {one.run.label} was in the keep, and its manifest is not there any more."


def _chain(manifests: list[Manifest]) -> list[str]:
    """Where a manifest does not go on from the one before it."""
    hashes = {one.hash for one in manifests}
    return [
        f"Run {one.run.number} of {one.run.label} goes on from a manifest that is not in the keep."
        for one in manifests
        if one.run.before is not None and one.run.before not in hashes
    ]
