"""Homes to be kept, which change as days go by; and what a keep holds of them, to be compared with what it held."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import pytest

from threadline.find import homes
from threadline.keep import Catalogue, KeepResult, Machine, Store, Version, run_keep, verify_keep
from threadline.keep.sessions import find_source_files

FIRST, SECOND = Machine("first_1", "first"), Machine("second_2", "second")
SOURCE = str(Path(__file__).parents[2] / "src")
SMALL_FRAME, SMALL_PACK = 100_000, 200_000


class Looks(NamedTuple):
    """What must be the same of a file: its bytes, by their hash, its mode and its time."""

    hash: str
    mode: int
    mtime_ns: int


def small_packs(patch: pytest.MonkeyPatch) -> None:
    """Frames and packs that are small enough for a made-up home to fill several."""
    patch.setattr("threadline.keep.pack.FRAME_SIZE", SMALL_FRAME)
    patch.setattr("threadline.keep.pack.PACK_SIZE", SMALL_PACK)


def kept(store: Store, home: Path, machine: Machine = FIRST) -> KeepResult:
    """Keep a home once."""
    return run_keep(Catalogue(store, machine.folder), homes(home), machine)


def on_disk(home: Path) -> dict[str, Looks]:
    """The files of a home that are to be kept, by their paths below it."""
    found = {}
    for source in find_source_files(homes(home)[0], []):
        status = source.file.lstat()
        hash_ = sha256(source.file.read_bytes()).hexdigest()
        found[source.path] = Looks(hash_, stat.S_IMODE(status.st_mode), status.st_mtime_ns)
    return found


def newest(store: Store, home: Path, machine: Machine = FIRST) -> dict[str, Looks]:
    """The files that a keep says are still in a home, as it would give them back."""
    catalogue = Catalogue(store)
    mine = (one for one in catalogue.newest() if (one.machine, one.home) == (machine.id, str(home)))
    return {one.path: looks(catalogue, one) for one in mine if one.gone is None}


def looks(catalogue: Catalogue, version: Version) -> Looks:
    """A version as it would be given back."""
    digest = sha256()
    for data in catalogue.data(version):
        digest.update(data)
    return Looks(digest.hexdigest(), version.mode, version.mtime_ns)


Held = frozenset[tuple[str, str, str, int, int, str]]
"""Versions: machine, home, path, mode, time, and the hash of the list of hashes that their pieces have."""


def held(store: Store) -> Held:
    """Every version that a keep tells of."""
    return frozenset(_held(Catalogue(store)))


def _held(catalogue: Catalogue) -> Iterator[tuple[str, str, str, int, int, str]]:
    for version in catalogue.all_versions():
        pieces = sha256("".join(version.pieces).encode()).hexdigest()
        yield version.machine, version.home, version.path, version.mode, version.mtime_ns, pieces


def assert_whole(store: Store, before: Held = frozenset()) -> None:
    """Every byte is what its hash says, every version can be given back, and those that were there before still are."""
    told = verify_keep(Catalogue(store))
    assert told.problems == ()
    assert told.affected == ()
    catalogue = Catalogue(store)
    missing = {hash_ for version in catalogue.all_versions() for hash_ in version.pieces} - set(catalogue.located)
    assert not missing
    assert before <= frozenset(_held(catalogue))


def leftovers(store: Store) -> list[str]:
    """Unfinished packs, manifests and dictionaries that lie about in a keep."""
    return sorted(path.name for path in store.folder.glob("*/*.new"))


def started(code: str, *arguments: object) -> subprocess.Popen[bytes]:
    """A process of our own code that has begun with what it is to do."""
    process = subprocess.Popen(  # noqa: S603 - our own code
        [sys.executable, "-c", code, *map(str, arguments)],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": SOURCE},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"begun\n"
    return process
