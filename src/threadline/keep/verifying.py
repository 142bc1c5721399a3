"""Verifying: every byte of a keep against its hash, and what a damaged one touches."""

from __future__ import annotations

import random
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from threadline.errors import Unreadable
from threadline.keep.catalogue import Catalogue, Version, checked
from threadline.keep.manifest import Manifest
from threadline.keep.pack import Frame, contents
from threadline.keep.store import Store


class Verified(Struct, frozen=True):
    """What was looked at, what is wrong, and the newest versions of files that cannot be given back for it."""

    packs: int
    pieces: int
    bytes: int
    runs: int
    problems: tuple[str, ...] = ()
    touched: tuple[Version, ...] = ()


def verify(
    store: Store,
    *,
    sample: int | None = None,
    seed: int = 0,
    planned: Callable[[int], None] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Verified:
    """Read everything, or so many frames, and compare it with what it should be."""
    catalogue = Catalogue(store)
    problems = list(catalogue.problems)
    problems += _chain(catalogue.manifests)
    frames: list[tuple[Path, Frame]] = []
    whole: set[str] = set()
    for path in store.pack_files():
        try:
            frames += ((path, frame) for frame in contents(path).frames)
        except Unreadable as error:
            problems.append(str(error))
    chosen = frames if sample is None else random.Random(seed).sample(frames, min(sample, len(frames)))  # noqa: S311 - a sample
    if planned is not None:
        planned(sum(frame.size for _path, frame in chosen))
    bad: set[str] = set()
    for path, frame in chosen:
        wrong = _wrong(store, path, frame)
        if wrong:
            problems.append(f"{path.name}: the frame at byte {frame.offset:,} is damaged.")
            bad |= wrong
        whole |= {hash_ for hash_, _length in frame.pieces} - bad
        if progress is not None:
            progress(frame.size)
    if sample is None:
        problems += _renamed(store)
    # A piece may lie in two packs: it is lost only where no copy of it is whole.
    lost = bad - whole | ({hash_ for one in catalogue.newest() for hash_ in one.pieces} - set(catalogue.located))
    touched = tuple(
        one for versions in catalogue.versions.values() for one in versions if lost.intersection(one.pieces)
    )
    pieces = sum(len(frame.pieces) for _path, frame in chosen)
    size = sum(frame.size for _path, frame in chosen)
    return Verified(len(store.pack_files()), pieces, size, len(catalogue.manifests), tuple(problems), touched)


def _wrong(store: Store, path: Path, frame: Frame) -> set[str]:
    """The pieces of a frame that are not what they should be."""
    try:
        known = store.dictionary(frame.dictionary) if frame.dictionary is not None else None
        return {hash_ for hash_, right in checked(path, frame, known) if not right}
    except Unreadable:
        return {hash_ for hash_, _length in frame.pieces}


def _renamed(store: Store) -> list[str]:
    """Packs whose bytes are not those that their name says; what lies between frames is seen only so."""
    found = []
    for path in store.pack_files():
        digest = sha256()
        with path.open("rb") as file:
            while data := file.read(1024 * 1024):
                digest.update(data)
        if digest.hexdigest() not in path.name:
            found.append(f"{path.name}: its bytes are not those that it was written with.")
    return found


def _chain(manifests: list[Manifest]) -> list[str]:
    """Where a manifest does not go on from the one before it."""
    hashes = {one.hash for one in manifests}
    return [
        f"Run {one.run.number} of {one.run.label} goes on from a manifest that is not in the keep."
        for one in manifests
        if one.run.before is not None and one.run.before not in hashes
    ]
