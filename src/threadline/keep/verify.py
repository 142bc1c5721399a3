"""Check every byte of a keep against its hash, and list the file versions that damage affects.

No other manifest refers to the newest one, so only this machine's cache can reveal that it is missing.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

from threadline.errors import Unreadable
from threadline.keep.cache import KeepCache
from threadline.keep.catalogue import Catalogue, Version
from threadline.keep.encryption import IDENTITY_COPY_FILE, IDENTITY_FILE
from threadline.keep.manifest import Manifest, parse_manifest
from threadline.keep.pack import Frame, PackReader
from threadline.keep.store import README_FILE, Store, has_readme, hash_file, hash_in_name

_SESSION_ID = re.compile(rb'"sessionId":"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"')


class VerifyResult(Struct, frozen=True):
    """What was checked, what is damaged, and the versions of files that cannot be restored.

    `sessions` are those whose manifest is damaged: their bytes are stored, but not which files they belong to.
    `missing_manifests` counts manifests that are known to have existed. `damaged_packs` are the names of the packs
    among `checked_packs` that cannot be relied on.
    """

    packs: int
    pieces: int
    bytes: int
    runs: int
    problems: tuple[str, ...] = ()
    affected: tuple[Version, ...] = ()
    sessions: tuple[str, ...] = ()
    missing_manifests: int = 0
    checked_packs: tuple[str, ...] = ()
    damaged_packs: tuple[str, ...] = ()


def verify_keep(
    catalogue: Catalogue,
    *,
    sample: int | None = None,
    seed: int = 0,
    planned: Callable[[int], None] | None = None,
    progress: Callable[[int], None] | None = None,
) -> VerifyResult:
    """Read everything, or a random sample of frames, and compare it with the hashes.

    The catalogue must not trust the cache. Its cache is used only to find out whether the newest manifest is missing.
    """
    store = catalogue.store
    store.require_key()
    missing_manifests = [*_check_chain(catalogue.manifests), *_manifests_only_in_cache(catalogue)]
    frames, unreadable = _read_tables(store)
    problems = [*catalogue.problems, *missing_manifests, *_check_top_files(store), *unreadable.values()]
    checked = frames if sample is None else random.Random(seed).sample(frames, min(sample, len(frames)))  # noqa: S311 - a sample
    if planned is not None:
        planned(sum(frame.size for _path, frame in checked))
    damaged_packs = set(unreadable)
    damaged: set[str] = set()
    intact: set[str] = set()
    reader = PackReader(store)
    for path, frame in checked:
        damaged_here = reader.damaged_pieces(path, frame)
        if damaged_here:
            problems.append(f"{path.name}: the frame at byte {frame.offset:,} is damaged.")
            damaged |= damaged_here
            damaged_packs.add(path.name)
        intact |= set(frame.hashes) - damaged_here
        if progress is not None:
            progress(frame.size)
    if sample is None:
        mismatches = dict(_check_hashes(store))
        problems += mismatches.values()
        damaged_packs.update(mismatches)
    # A piece may be in two packs: it is lost only if no copy is intact.
    lost = damaged - intact
    lengths = {hash_: length for _path, frame in frames for hash_, length in frame.pieces}
    affected = tuple(version for version in catalogue.all_versions() if _is_unrestorable(version, lost, lengths))
    problems += _describe_affected(affected, lost, lengths)
    return VerifyResult(
        len(store.pack_files()),
        sum(len(frame.pieces) for _path, frame in checked),
        sum(frame.size for _path, frame in checked),
        len(catalogue.manifests),
        tuple(problems),
        affected,
        _unlisted_sessions(catalogue) if catalogue.problems or missing_manifests else (),
        missing_manifests=len(missing_manifests),
        # A sample does not show that a pack is intact.
        checked_packs=tuple(path.name for path in store.pack_files()) if sample is None else (),
        damaged_packs=tuple(sorted(damaged_packs)),
    )


def _read_tables(store: Store) -> tuple[list[tuple[Path, Frame]], dict[str, str]]:
    """The frames of all packs; and by name, why the table of a pack cannot be read."""
    reader = PackReader(store)
    frames: list[tuple[Path, Frame]] = []
    unreadable: dict[str, str] = {}
    for path in store.pack_files():
        try:
            frames += ((path, frame) for frame in reader.frames(path))
        except Unreadable as error:
            unreadable[path.name] = str(error)
    return frames, unreadable


def _describe_affected(affected: tuple[Version, ...], lost: set[str], lengths: dict[str, int]) -> Iterator[str]:
    wrong_size = sum(lengths.keys() >= set(version.pieces) and lost.isdisjoint(version.pieces) for version in affected)
    if wrong_size:
        yield (
            f"{wrong_size:,} versions of files do not have the size that their manifest says. threadline does not write"
            " such manifests. These versions cannot be restored."
        )
    missing = {hash_ for version in affected for hash_ in version.pieces} - lengths.keys()
    if missing:
        yield f"{len(missing):,} pieces are in no pack. Copy the packs from another copy of this keep."


def _is_unrestorable(version: Version, lost: set[str], lengths: dict[str, int]) -> bool:
    """Whether a piece of a version is lost or missing, or the pieces do not add up to its size."""
    size = 0
    for hash_ in version.pieces:
        if hash_ in lost or hash_ not in lengths:
            return True
        size += lengths[hash_]
    return size != version.size


def _unlisted_sessions(catalogue: Catalogue) -> tuple[str, ...]:
    """The sessions in pieces that no manifest refers to."""
    referenced = {hash_ for version in catalogue.all_versions() for hash_ in version.pieces}
    referenced.update(hash_ for version in catalogue.forgotten_versions for hash_ in version.pieces)
    sessions: set[str] = set()
    for hash_ in catalogue.located.keys() - referenced:
        try:
            data = catalogue.piece(hash_)
        except Unreadable:
            continue
        sessions.update(id_.decode() for id_ in _SESSION_ID.findall(data))
    return tuple(sorted(sessions))


def _check_top_files(store: Store) -> list[str]:
    """What is wrong with keep.json, README.txt and the passphrase-protected key."""
    problems = [store.problem] if store.problem is not None else []
    if not has_readme(store.folder):
        problems.append(f"{README_FILE} was changed or removed. Nothing else is affected.")
    if store.info.identity:
        problems += [
            f"{name} is damaged or missing. Copy the other one over it ({IDENTITY_FILE}, {IDENTITY_COPY_FILE})."
            for name in (IDENTITY_FILE, IDENTITY_COPY_FILE)
            if _hash_or_none(store.folder / name) != store.info.identity
        ]
    return problems


def _hash_or_none(path: Path) -> str | None:
    try:
        return hash_file(path)
    except OSError:
        return None


def _check_hashes(store: Store) -> Iterator[tuple[str, str]]:
    """Packs and dictionaries whose bytes do not match their names: only this finds damage between frames."""
    for path in (*store.pack_files(), *store.dictionary_files()):
        try:
            is_intact = hash_file(path) == hash_in_name(path)
        except OSError as error:
            yield path.name, f"{path.name} cannot be read: {error.strerror or error}."
            continue
        if not is_intact:
            yield path.name, f"{path.name} is damaged: its bytes do not match the hash in its name."


def _manifests_only_in_cache(catalogue: Catalogue) -> Iterator[str]:
    """Manifests that this machine has seen and that are missing now, unless another manifest refers to them."""
    cache: KeepCache | None = catalogue.cache
    existing = {path.name for path in catalogue.store.run_files()}
    hashes = {manifest.hash for manifest in catalogue.manifests}
    hashes |= {manifest.run.before for manifest in catalogue.manifests if manifest.run.before is not None}
    for name, text in cache.items() if cache is not None else ():
        if name in existing:
            continue
        try:
            manifest = parse_manifest(text, name)
        except Unreadable:
            continue  # the table of a pack
        if manifest.hash not in hashes:
            yield f"The manifest of run {manifest.run.number} of {manifest.run.label} was in the keep and is missing."


def _check_chain(manifests: list[Manifest]) -> Iterator[str]:
    """Manifests whose predecessor is missing."""
    hashes = {manifest.hash for manifest in manifests}
    for manifest in manifests:
        if manifest.run.before is not None and manifest.run.before not in hashes:
            yield f"The manifest before run {manifest.run.number} of {manifest.run.label} is missing."
