"""Verify finds a flipped bit anywhere in a keep and names what it affects. Everything else can be restored."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest
from tests.changing_home import ChangingHome
from tests.keep.homes import FIRST, SECOND, FileState, keep_home, use_small_packs, version_state
from tests.keep.stores import lines, transcript_path, write_home
from tests.profiles import scale_examples

from threadline.errors import Unreadable
from threadline.keep import Catalogue, Store, VerifyResult, Version, merge_keeps, restore_files, verify_keep

pytestmark = pytest.mark.crash

_EDGE = 6
"""Bytes at either end of a file that are flipped one by one, besides random ones in between."""
KINDS = {
    "packs": "packs/*",
    "manifests": "runs/*",
    "dictionaries": "dictionaries/*",
    "what says that it is a keep": "keep.json",
    "what says how to read it": "README.txt",
}
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

_SESSION_ID = re.compile(rb'"sessionId":"([^"]+)"')

Key = tuple[str, str, str, int]
States = dict[Key, FileState]
Pieces = dict[Key, tuple[str, ...]]


@pytest.fixture(scope="module")
def keep_with_states(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, States, Pieces]:
    """A keep of two machines and several runs, with a dictionary, and the state of every version."""
    folder = tmp_path_factory.mktemp("flips")
    store = Store.make(folder / "keep")
    homes = {FIRST: ChangingHome(folder / "here", 21, 0.6), SECOND: ChangingHome(folder / "there", 22, 0.6)}
    with pytest.MonkeyPatch.context() as patch:
        use_small_packs(patch)
        patch.setattr("threadline.keep.pack._MIN_SAMPLE_SIZE", 20_000)
        for _ in range(3):
            for machine, home in homes.items():
                home.change()
                keep_home(store, home.path, machine)
    catalogue = Catalogue(store)
    assert store.dictionary_files()
    assert any(location.frame.dictionary for location in catalogue.located.values())
    versions = list(catalogue.all_versions())
    return (
        store,
        {_key(version): version_state(catalogue, version) for version in versions},
        {_key(version): tuple(version.pieces) for version in versions},
    )


def _key(version: Version) -> Key:
    return version.machine, version.home, version.path, version.run


@contextmanager
def flipped_bit(path: Path, offset: int, bit: int) -> Iterator[None]:
    """A file with one bit flipped."""
    data = path.read_bytes()
    damaged = bytearray(data)
    damaged[offset] ^= 1 << bit
    path.write_bytes(damaged)
    try:
        yield
    finally:
        path.write_bytes(data)


def choose_offsets(path: Path, random: Random) -> set[int]:
    """Some offsets at the edges and in between."""
    size = path.stat().st_size
    edges = [*range(_EDGE), *range(size - _EDGE, size)]
    return {random.choice(edges), *(random.randrange(size) for _ in range(scale_examples(12)))}


def restorable_versions(store: Store, states: States) -> tuple[set[Key], Catalogue]:
    """The versions that are restored unchanged. None is restored with other content."""
    catalogue = Catalogue(store)
    restorable = set()
    for version in catalogue.all_versions():
        try:
            state = version_state(catalogue, version)
        except Unreadable:
            continue
        assert state == states[_key(version)]
        restorable.add(_key(version))
    return restorable, catalogue


def named_sessions(result: VerifyResult) -> set[str]:
    """The sessions that verify names."""
    texts = (*(version.path for version in result.affected), *result.problems, *result.sessions)
    return {id_ for text in texts for id_ in _UUID.findall(text)}


def sessions_of_lost_transcripts(
    states: States, pieces: Pieces, restorable: set[Key], catalogue: Catalogue
) -> Iterator[set[str]]:
    """For each transcript whose bytes no manifest contains any more, the session ids in its bytes."""
    listed = {hash_ for version in catalogue.all_versions() for hash_ in version.pieces}
    for key in states.keys() - restorable:
        lost = [catalogue.piece(hash_) for hash_ in pieces[key] if hash_ not in listed]
        ids = {id_ for data in lost for id_ in _UUID.findall(b"".join(_SESSION_ID.findall(data)).decode())}
        if key[2].endswith(".jsonl") and ids:
            yield ids


@pytest.mark.smoke
@pytest.mark.parametrize("kind", KINDS)
def test_finds_a_flipped_bit(kind: str, keep_with_states: tuple[Store, States, Pieces]) -> None:
    """Verify reports it and names exactly the versions that cannot be restored."""
    store, states, pieces = keep_with_states
    random = Random(kind)  # noqa: S311 - seeded, so that a failure comes again
    paths = sorted(store.folder.glob(KINDS[kind]))
    assert paths
    for path in paths:
        for offset in sorted(choose_offsets(path, random)):
            with flipped_bit(path, offset, random.randrange(8)):
                damaged = Store(store.folder)
                result = verify_keep(Catalogue(damaged))
                assert result.problems, (path.name, offset)
                restorable, catalogue = restorable_versions(damaged, states)
                affected = {_key(version) for version in result.affected}
                assert not affected & restorable
                assert {_key(version) for version in catalogue.all_versions()} - restorable == affected
                assert all(
                    names & named_sessions(result)
                    for names in sessions_of_lost_transcripts(states, pieces, restorable, catalogue)
                )
    assert verify_keep(Catalogue(store)).problems == ()


def test_restores_everything_else(keep_with_states: tuple[Store, States, Pieces], tmp_path: Path) -> None:
    """With one byte of each pack damaged in turn, unaffected files are restored, and the others are refused by name."""
    store, _states, _pieces = keep_with_states
    for number, path in enumerate(store.pack_files()):
        with flipped_bit(path, path.stat().st_size // 3, 2):
            catalogue = Catalogue(store)
            versions = [version for version in catalogue.newest() if version.machine == FIRST.id]
            affected = {version.path for version in verify_keep(Catalogue(store)).affected if version in versions}
            restored = restore_files(catalogue, versions, tmp_path / str(number))
            assert len(restored.files) + len(restored.refused) == len(versions)
            assert {message.split(": ")[0] for message in restored.refused} == affected
            assert not list((tmp_path / str(number)).rglob("*.new"))


def test_finds_missing_or_swapped_file(keep_with_states: tuple[Store, States, Pieces]) -> None:
    """A pack, manifest or dictionary that is missing, empty, truncated, or has other bytes."""
    store, states, _pieces = keep_with_states
    for kind in ("packs", "runs", "dictionaries"):
        paths = sorted((store.folder / kind).iterdir())
        for path in paths[:4]:
            data = path.read_bytes()
            for other in (None, b"", data[:-1], data[: len(data) // 2], data + b"\0", paths[-1].read_bytes()[::-1]):
                path.unlink()
                if other is not None:
                    path.write_bytes(other)
                result = verify_keep(Catalogue(store))
                restorable, catalogue = restorable_versions(store, states)
                path.write_bytes(data)
                newest = max((key for key in states if key[0] == FIRST.id), key=lambda key: key[3])
                is_last_run = kind == "runs" and other is None and f"-{newest[3]:06d}-" in path.name
                assert result.problems or is_last_run, (path.name, other and len(other))
                assert {_key(version) for version in catalogue.all_versions()} - restorable == {
                    _key(affected) for affected in result.affected
                }
    assert verify_keep(Catalogue(store)).problems == ()


DAMAGES: dict[str, Callable[[Path], object]] = {
    "flipped": lambda path: path.write_bytes(bytes([path.read_bytes()[0] ^ 1]) + path.read_bytes()[1:]),
    "cut off": lambda path: path.write_bytes(path.read_bytes()[:50]),
    "empty": lambda path: path.write_bytes(b""),
    "gone": Path.unlink,
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"x"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_merging_a_copy_repairs_dictionaries_and_readme(
    keep_with_states: tuple[Store, States, Pieces], tmp_path: Path, damage: str
) -> None:
    """Damage to a dictionary or README.txt is repaired by merging a copy. A second merge repairs nothing."""
    shutil.copytree(keep_with_states[0].folder, tmp_path / "spoilt")
    store = Store(tmp_path / "spoilt")
    for path in (*store.dictionary_files(), store.folder / "README.txt"):
        DAMAGES[damage](path)
    assert verify_keep(Catalogue(store)).affected
    assert merge_keeps(Catalogue(store, trust_cache=False), FIRST, [keep_with_states[0]]).mended >= 2
    verified = verify_keep(Catalogue(store))
    assert (verified.problems, verified.affected) == ((), ())
    assert merge_keeps(Catalogue(store, trust_cache=False), FIRST, [keep_with_states[0]]).mended == 0


def test_next_run_rewrites_the_readme(keep_with_states: tuple[Store, States, Pieces], tmp_path: Path) -> None:
    """README.txt is the same in every keep, so no copy is needed."""
    shutil.copytree(keep_with_states[0].folder, tmp_path / "keep")
    store = Store(tmp_path / "keep")
    (store.folder / "README.txt").unlink()
    (tmp_path / "home" / "projects").mkdir(parents=True)
    keep_home(store, tmp_path / "home", FIRST)
    assert not verify_keep(Catalogue(store)).problems


def test_run_does_not_compress_with_a_damaged_dictionary(tmp_path: Path) -> None:
    """Frames that are written with it could never be read: no file has the bytes that they were compressed with."""
    store = Store.make(tmp_path / "keep")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("threadline.keep.pack._MIN_SAMPLE_SIZE", 20_000)
        home = write_home(tmp_path / "home", {transcript_path(1): lines(1, 3000)})
        keep_home(store, home, FIRST)
        (dictionary,) = store.dictionary_files()
        data = bytearray(dictionary.read_bytes())
        data[len(data) // 2] ^= 1
        dictionary.write_bytes(data)
        write_home(home, {transcript_path(2): lines(2, 20)})
        keep_home(store, home, FIRST)
    catalogue = Catalogue(store)
    (version,) = (version for version in catalogue.newest() if version.path == transcript_path(2))
    assert b"".join(catalogue.data(version)) == lines(2, 20)
