"""Homes that change from day to day, and the versions that a keep has of them."""

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


class FileState(NamedTuple):
    """What must be the same of a file: the hash of its bytes, its mode and its mtime."""

    hash: str
    mode: int
    mtime_ns: int


def use_small_packs(patch: pytest.MonkeyPatch) -> None:
    """Make frames and packs so small that a generated home fills several."""
    patch.setattr("threadline.keep.pack.FRAME_SIZE", SMALL_FRAME)
    patch.setattr("threadline.keep.pack.PACK_SIZE", SMALL_PACK)


def keep_home(store: Store, home: Path, machine: Machine = FIRST) -> KeepResult:
    """Run `keep` once over a home."""
    return run_keep(Catalogue(store, machine.folder), homes(home), machine)


def files_on_disk(home: Path) -> dict[str, FileState]:
    """The files of a home that should be kept, by path."""
    states = {}
    for source in find_source_files(homes(home)[0], []):
        status = source.file.lstat()
        hash_ = sha256(source.file.read_bytes()).hexdigest()
        states[source.path] = FileState(hash_, stat.S_IMODE(status.st_mode), status.st_mtime_ns)
    return states


def restored_states(states: dict[str, FileState]) -> dict[str, FileState]:
    """These files as they are restored: with the same bytes and times, for their owner only."""
    return {path: state._replace(mode=0o600) for path, state in states.items()}


def newest_files(store: Store, home: Path, machine: Machine = FIRST) -> dict[str, FileState]:
    """The files that, according to the keep, are still in a home, as it would restore them."""
    catalogue = Catalogue(store)
    versions = (version for version in catalogue.newest() if (version.machine, version.home) == (machine.id, str(home)))
    return {version.path: version_state(catalogue, version) for version in versions if version.gone is None}


def version_state(catalogue: Catalogue, version: Version) -> FileState:
    """The state of a version, as it would be restored."""
    digest = sha256()
    for data in catalogue.data(version):
        digest.update(data)
    return FileState(digest.hexdigest(), version.mode, version.mtime_ns)


Versions = frozenset[tuple[str, str, str, int, int, str]]
"""Versions: machine, home, path, mode, mtime, and a hash of their pieces' hashes."""


def stored_versions(store: Store) -> Versions:
    """Every version that a keep contains."""
    return frozenset(_describe_versions(Catalogue(store)))


def _describe_versions(catalogue: Catalogue) -> Iterator[tuple[str, str, str, int, int, str]]:
    for version in catalogue.all_versions():
        pieces = sha256("".join(version.pieces).encode()).hexdigest()
        yield version.machine, version.home, version.path, version.mode, version.mtime_ns, pieces


def assert_intact(store: Store, before: Versions = frozenset()) -> None:
    """Every byte matches its hash, every version can be restored, and the earlier versions still exist."""
    verified = verify_keep(Catalogue(store))
    assert verified.problems == ()
    assert verified.affected == ()
    catalogue = Catalogue(store)
    missing = {hash_ for version in catalogue.all_versions() for hash_ in version.pieces} - set(catalogue.located)
    assert not missing
    assert before <= frozenset(_describe_versions(catalogue))


def unfinished_files(store: Store) -> list[str]:
    """Unfinished packs, manifests and dictionaries in a keep."""
    return sorted(path.name for path in store.folder.glob("*/*.new"))


def start_process(code: str, *arguments: object) -> subprocess.Popen[bytes]:
    """Start a process that runs our code, and wait until it begins its work."""
    process = subprocess.Popen(  # noqa: S603 - our own code
        [sys.executable, "-c", code, *map(str, arguments)],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": SOURCE},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"begun\n"
    return process
