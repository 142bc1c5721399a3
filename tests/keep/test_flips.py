"""A flipped bit anywhere in a keep is found by verify, which names what it touches; all else can still be restored."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest
from tests.changing_home import ChangingHome
from tests.keep.homes import FIRST, SECOND, Looks, kept, looks, small_packs
from tests.profiles import scale_examples

from threadline.errors import Unreadable
from threadline.keep import Catalogue, Store, VerifyResult, Version, merge_keeps, restore_files, verify_keep

pytestmark = pytest.mark.crash

_EDGE = 6
"""So many bytes at either end of a file are flipped, each; between them some anywhere."""
KINDS = {
    "packs": "packs/*",
    "manifests": "runs/*",
    "dictionaries": "dictionaries/*",
    "what says that it is a keep": "keep.json",
    "what says how to read it": "README.txt",
}
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

_SAID = re.compile(rb'"sessionId":"([^"]+)"')

Key = tuple[str, str, str, int]
Known = dict[Key, Looks]
Pieces = dict[Key, tuple[str, ...]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, Known, Pieces]:
    """A keep of two machines and several runs, with a dictionary, and every version in it."""
    folder = tmp_path_factory.mktemp("flips")
    store = Store.make(folder / "keep")
    homes = {FIRST: ChangingHome(folder / "here", 21, 0.6), SECOND: ChangingHome(folder / "there", 22, 0.6)}
    with pytest.MonkeyPatch.context() as patch:
        small_packs(patch)
        patch.setattr("threadline.keep.pack._MIN_SAMPLE_SIZE", 20_000)
        for _ in range(3):
            for machine, home in homes.items():
                home.change()
                kept(store, home.path, machine)
    catalogue = Catalogue(store)
    assert store.dictionary_files()
    assert any(found.frame.dictionary for found in catalogue.located.values())
    versions = list(catalogue.all_versions())
    return (
        store,
        {_key(version): looks(catalogue, version) for version in versions},
        {_key(version): tuple(version.pieces) for version in versions},
    )


def _key(version: Version) -> Key:
    return version.machine, version.home, version.path, version.run


@contextmanager
def _flipped(path: Path, offset: int, bit: int) -> Iterator[None]:
    data = path.read_bytes()
    spoilt = bytearray(data)
    spoilt[offset] ^= 1 << bit
    path.write_bytes(spoilt)
    try:
        yield
    finally:
        path.write_bytes(data)


def _offsets(path: Path, random: Random) -> set[int]:
    size = path.stat().st_size
    edges = [*range(_EDGE), *range(size - _EDGE, size)]
    return {random.choice(edges), *(random.randrange(size) for _ in range(scale_examples(12)))}


def _as_it_was(store: Store, known: Known) -> tuple[set[Key], Catalogue]:
    """The versions that are given back as they were; none is given back otherwise."""
    catalogue = Catalogue(store)
    right = set()
    for version in catalogue.all_versions():
        try:
            seen = looks(catalogue, version)
        except Unreadable:
            continue
        assert seen == known[_key(version)]
        right.add(_key(version))
    return right, catalogue


def _named(told: VerifyResult) -> set[str]:
    """The sessions that verify names."""
    said = (*(one.path for one in told.affected), *told.problems, *told.sessions)
    return {found for text in said for found in _UUID.findall(text)}


def _untold(known: Known, pieces: Pieces, right: set[Key], catalogue: Catalogue) -> Iterator[set[str]]:
    """Of each transcript with bytes that no manifest tells of any more: the sessions that it may be said to be of."""
    there = {hash_ for version in catalogue.all_versions() for hash_ in version.pieces}
    for key in known.keys() - right:
        inside = [catalogue.piece(hash_) for hash_ in pieces[key] if hash_ not in there]
        named = {found for data in inside for found in _UUID.findall(b"".join(_SAID.findall(data)).decode())}
        if key[2].endswith(".jsonl") and named:
            yield named


@pytest.mark.smoke
@pytest.mark.parametrize("kind", KINDS)
def test_a_flipped_bit_is_found(kind: str, made: tuple[Store, Known, Pieces]) -> None:
    """Wherever it is: verify tells of it, names what cannot be given back, and that alone cannot be."""
    store, known, pieces = made
    random = Random(kind)  # noqa: S311 - seeded, so that a failure comes again
    paths = sorted(store.folder.glob(KINDS[kind]))
    assert paths
    for path in paths:
        for offset in sorted(_offsets(path, random)):
            with _flipped(path, offset, random.randrange(8)):
                spoilt = Store(store.folder)
                told = verify_keep(Catalogue(spoilt))
                assert told.problems, (path.name, offset)
                right, catalogue = _as_it_was(spoilt, known)
                touched = {_key(one) for one in told.affected}
                assert not touched & right
                assert {_key(version) for version in catalogue.all_versions()} - right == touched
                assert all(names & _named(told) for names in _untold(known, pieces, right, catalogue))
    assert verify_keep(Catalogue(store)).problems == ()


def test_all_else_is_restored(made: tuple[Store, Known, Pieces], tmp_path: Path) -> None:
    """With a byte of each pack in turn gone, what it does not touch is put back, and the rest is refused and named."""
    store, _known, _pieces = made
    for number, path in enumerate(store.pack_files()):
        with _flipped(path, path.stat().st_size // 3, 2):
            catalogue = Catalogue(store)
            wanted = [one for one in catalogue.newest() if one.machine == FIRST.id]
            touched = {one.path for one in verify_keep(Catalogue(store)).affected if one in wanted}
            put = restore_files(catalogue, wanted, tmp_path / str(number))
            assert len(put.files) + len(put.refused) == len(wanted)
            assert {said.split(": ")[0] for said in put.refused} == touched
            assert not list((tmp_path / str(number)).rglob("*.new"))


def test_a_missing_or_swapped_file_is_found(made: tuple[Store, Known, Pieces]) -> None:
    """A pack, manifest or dictionary that is not there, empty, cut off, or another's bytes under its name."""
    store, known, _pieces = made
    for kind in ("packs", "runs", "dictionaries"):
        paths = sorted((store.folder / kind).iterdir())
        for path in paths[:4]:
            data = path.read_bytes()
            for other in (None, b"", data[:-1], data[: len(data) // 2], data + b"\0", paths[-1].read_bytes()[::-1]):
                path.unlink()
                if other is not None:
                    path.write_bytes(other)
                told = verify_keep(Catalogue(store))
                right, catalogue = _as_it_was(store, known)
                path.write_bytes(data)
                newest = max((key for key in known if key[0] == FIRST.id), key=lambda key: key[3])
                is_last_run = kind == "runs" and other is None and f"-{newest[3]:06d}-" in path.name
                assert told.problems or is_last_run, (path.name, other and len(other))
                assert {_key(version) for version in catalogue.all_versions()} - right == {
                    _key(one) for one in told.affected
                }
    assert verify_keep(Catalogue(store)).problems == ()


SPOILT: dict[str, Callable[[Path], object]] = {
    "flipped": lambda path: path.write_bytes(bytes([path.read_bytes()[0] ^ 1]) + path.read_bytes()[1:]),
    "cut off": lambda path: path.write_bytes(path.read_bytes()[:50]),
    "empty": lambda path: path.write_bytes(b""),
    "gone": Path.unlink,
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"x"),
}


@pytest.mark.parametrize("spoilt", SPOILT)
def test_a_copy_mends_dictionaries_and_the_text(made: tuple[Store, Known, Pieces], tmp_path: Path, spoilt: str) -> None:
    """What is wrong with a dictionary or with README.txt is made good by merging a copy; then there is nothing more."""
    shutil.copytree(made[0].folder, tmp_path / "spoilt")
    store = Store(tmp_path / "spoilt")
    for path in (*store.dictionary_files(), store.folder / "README.txt"):
        SPOILT[spoilt](path)
    assert verify_keep(Catalogue(store)).affected
    assert merge_keeps(Catalogue(store, trust_cache=False), FIRST, [made[0]]).mended >= 2
    verified = verify_keep(Catalogue(store))
    assert (verified.problems, verified.affected) == ((), ())
    assert merge_keeps(Catalogue(store, trust_cache=False), FIRST, [made[0]]).mended == 0


def test_the_next_run_writes_the_text_anew(made: tuple[Store, Known, Pieces], tmp_path: Path) -> None:
    """README.txt is the same in every keep, so that no copy is needed."""
    shutil.copytree(made[0].folder, tmp_path / "keep")
    store = Store(tmp_path / "keep")
    (store.folder / "README.txt").unlink()
    (tmp_path / "home" / "projects").mkdir(parents=True)
    kept(store, tmp_path / "home", FIRST)
    assert not verify_keep(Catalogue(store)).problems
