"""Check every byte of a keep against its hash, and list the file versions that damage affects.

No other manifest refers to the newest one, so only this machine's cache can reveal that it is missing.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

from threadline import atomic
from threadline.errors import Unreadable
from threadline.keep.cache import KeepCache
from threadline.keep.catalogue import Catalogue, Version, check_frame
from threadline.keep.encryption import IDENTITY_COPY_FILE, IDENTITY_FILE
from threadline.keep.manifest import Manifest, parse_manifest
from threadline.keep.pack import Frame, decode_table, read_table
from threadline.keep.store import README_TEXT, Store, hash_file, hash_in_name

_SESSION_ID = re.compile(rb'"sessionId":"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"')


class VerifyResult(Struct, frozen=True):
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


def verify_keep(
    store: Store,
    *,
    memory: KeepCache | None = None,
    sample: int | None = None,
    seed: int = 0,
    planned: Callable[[int], None] | None = None,
    progress: Callable[[int], None] | None = None,
) -> VerifyResult:
    """Read everything, or so many frames, and compare it with what it should be.

    `memory` is what this machine remembers: no other manifest names the newest one, so only that tells if it is gone.
    """
    store.require_key()
    catalogue = Catalogue(store)
    apart = [*_check_chain(catalogue.manifests), *(_missing_manifests(catalogue, memory) if memory is not None else ())]
    frames, unread = _read_tables(store)
    problems = [*catalogue.problems, *apart, *_check_keep_info(store), *unread.values()]
    damaged = set(unread)
    chosen = frames if sample is None else random.Random(seed).sample(frames, min(sample, len(frames)))  # noqa: S311 - a sample
    if planned is not None:
        planned(sum(frame.size for _path, frame in chosen))
    bad: set[str] = set()
    whole: set[str] = set()
    for path, frame in chosen:
        wrong = _damaged_pieces(store, path, frame)
        if wrong:
            problems.append(f"{path.name}: the frame at byte {frame.offset:,} is damaged.")
            bad |= wrong
            damaged.add(path.name)
        whole |= {hash_ for hash_, _length in frame.pieces} - wrong
        if progress is not None:
            progress(frame.size)
    if sample is None:
        renamed = dict(_check_hashes(store))
        problems += renamed.values()
        damaged.update(renamed)
    # A piece may lie in two packs: it is lost only where no copy of it is whole.
    there = {hash_ for _path, frame in frames for hash_, _length in frame.pieces}
    lengths = {hash_: length for _path, frame in frames for hash_, length in frame.pieces}
    lost = bad - whole
    touched = tuple(version for version in catalogue.all_versions() if _is_unrestorable(version, lost, lengths))
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
    sessions = _unlisted_sessions(catalogue) if catalogue.problems or apart else ()
    runs = len(catalogue.manifests)
    return VerifyResult(
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


def _read_tables(store: Store) -> tuple[list[tuple[Path, Frame]], dict[str, str]]:
    """The frames of all packs; and of those that do not tell theirs, by name, why."""
    frames: list[tuple[Path, Frame]] = []
    unread: dict[str, str] = {}
    for path in store.pack_files():
        try:
            with store.opened(path) as file:
                frames += ((path, frame) for frame in decode_table(read_table(file, path.name), path.name).frames)
        except (Unreadable, OSError) as error:
            unread[path.name] = str(error)
    return frames, unread


def _unlisted_sessions(catalogue: Catalogue) -> tuple[str, ...]:
    """The sessions that pieces name which no manifest tells of."""
    told = {hash_ for version in catalogue.all_versions() for hash_ in version.pieces}
    told.update(hash_ for version in catalogue.forgotten_versions for hash_ in version.pieces)
    found: set[str] = set()
    for hash_ in catalogue.located.keys() - told:
        try:
            data = catalogue.piece(hash_)
        except Unreadable:
            continue
        found.update(name.decode() for name in _SESSION_ID.findall(data))
    return tuple(sorted(found))


def _is_unrestorable(version: Version, lost: set[str], lengths: dict[str, int]) -> bool:
    """Whether a version cannot be given back: a piece is lost or not there, or they do not make up its size."""
    size = 0
    for hash_ in version.pieces:
        if hash_ in lost or hash_ not in lengths:
            return True
        size += lengths[hash_]
    return size != version.size


def _check_keep_info(store: Store) -> list[str]:
    """What is wrong with the files that tell what the folder is."""
    try:
        said = atomic.read_small_file(store.folder / "README.txt")
    except OSError:
        said = b""
    text = (
        [] if said == README_TEXT.encode() else ["README.txt is not what was written; nothing but that text is lost."]
    )
    if store.about.identity:
        text += [
            f"{name} is damaged, or not there; copy the other one over it (identity.age, identity-copy.age)."
            for name in (IDENTITY_FILE, IDENTITY_COPY_FILE)
            if _hash_or_none(store.folder / name) != store.about.identity
        ]
    return text if store.problem is None else [store.problem, *text]


def _hash_or_none(path: Path) -> str | None:
    try:
        return hash_file(path)
    except OSError:
        return None


def _damaged_pieces(store: Store, path: Path, frame: Frame) -> set[str]:
    """The pieces of a frame that are not what they should be."""
    try:
        known = store.dictionary(frame.dictionary) if frame.dictionary is not None else None
        return {hash_ for hash_, right in check_frame(store, path, frame, known) if not right}
    except Unreadable:
        return {hash_ for hash_, _length in frame.pieces}


def _check_hashes(store: Store) -> Iterator[tuple[str, str]]:
    """Files whose bytes are not those that their name says; what lies between frames is seen only so."""
    for path in (*store.pack_files(), *store.dictionary_files()):
        try:
            right = hash_file(path) == hash_in_name(path)
        except OSError as error:
            yield path.name, f"{path.name}: it cannot be read: {error.strerror or error}."
            continue
        if not right:
            yield path.name, f"{path.name}: its bytes are not those that it was written with."


def _missing_manifests(catalogue: Catalogue, memory: KeepCache) -> Iterator[str]:
    """The manifests that this machine has seen, and whose files are not there, unless another one tells it already."""
    there = {path.name for path in catalogue.store.run_files()}
    hashes = {manifest.hash for manifest in catalogue.manifests}
    named = {manifest.run.before for manifest in catalogue.manifests}
    for name, text in memory.texts():
        if name in there:
            continue
        try:
            one = parse_manifest(text, name)
        except Unreadable:
            continue  # a pack's contents
        if one.hash not in hashes and one.hash not in named:
            yield f"Run {one.run.number} of {one.run.label} was in the keep, and its manifest is not there any more."


def _check_chain(manifests: list[Manifest]) -> list[str]:
    """Where a manifest does not go on from the one before it."""
    hashes = {manifest.hash for manifest in manifests}
    return [
        f"Run {manifest.run.number} of {manifest.run.label} goes on from a manifest that is not in the keep."
        for manifest in manifests
        if manifest.run.before is not None and manifest.run.before not in hashes
    ]
