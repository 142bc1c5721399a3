"""A keep that was spoilt in any way: merging it in, reading it and restoring from it harm nothing, nor do they stop."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from tests.changing_home import ChangingHome
from tests.keep.homes import FIRST, SECOND, assert_whole, held, kept, looks, small_packs
from tests.profiles import scale_examples

from threadline.errors import Error, Unreadable
from threadline.keep import Catalogue, Store, merge_keeps, repack, restore_files, verify_keep
from threadline.keep.manifest import EndRow, FileRow, RunRow
from threadline.keep.pack import PackWriter, Piece
from threadline.keep.truncation import join_lost_parts

Spoil = Callable[[Path, Path, Random], object]


def _noise(path: Path, _other: Path, random: Random) -> None:
    data = bytearray(path.read_bytes() or b"\0")
    for _ in range(random.choice((1, 3, 50))):
        data[random.randrange(len(data))] = random.randrange(256)
    path.write_bytes(data)


def _cut(path: Path, _other: Path, random: Random) -> None:
    os.truncate(path, random.randrange(path.stat().st_size + 1))


def _longer(path: Path, other: Path, random: Random) -> None:
    with path.open("ab") as file:
        file.write(random.choice((b"\0" * 1000, other.read_bytes(), random.randbytes(500))))


def _link(path: Path, other: Path, random: Random) -> None:
    path.unlink()
    path.symlink_to(random.choice((other, Path("/etc/passwd"), Path("/dev/zero"), path)))


def _pipe(path: Path, _other: Path, _random: Random) -> None:
    path.unlink()
    os.mkfifo(path)


def _folder(path: Path, _other: Path, _random: Random) -> None:
    path.unlink()
    path.mkdir()


def _renamed(path: Path, _other: Path, random: Random) -> None:
    path.rename(path.with_name(f"{random.getrandbits(256):064x}").with_suffix("".join(path.suffixes)))


def _swapped(path: Path, other: Path, _random: Random) -> None:
    path.write_bytes(other.read_bytes())


SPOILING: dict[str, Spoil] = {
    "noise": _noise,
    "cut": _cut,
    "longer": _longer,
    "link": _link,
    "pipe": _pipe,
    "folder": _folder,
    "renamed": _renamed,
    "swapped": _swapped,
    "gone": lambda path, _other, _random: path.unlink(),
}


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A keep of ours, and one of another machine with several runs."""
    folder = tmp_path_factory.mktemp("hostile")
    ours, theirs = Store.make(folder / "ours"), Store.make(folder / "theirs")
    here, there = ChangingHome(folder / "here", 51, 0.4), ChangingHome(folder / "there", 52, 0.4)
    with pytest.MonkeyPatch.context() as patch:
        small_packs(patch)
        patch.setattr("threadline.keep.pack._MIN_SAMPLE_SIZE", 20_000)
        kept(ours, here.path)
        for _ in range(3):
            there.change()
            kept(theirs, there.path, SECOND)
    return ours.folder, theirs.folder


@pytest.fixture
def copies(stores: tuple[Path, Path], tmp_path: Path) -> tuple[Path, Path]:
    """The same, to be spoilt."""
    for folder in stores:
        shutil.copytree(folder, tmp_path / folder.name)
    return tmp_path / "ours", tmp_path / "theirs"


def _spoil(folder: Path, how: Spoil, random: Random) -> None:
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith((".lock", "keep")))
    for path in random.sample(files, random.choice((1, 1, 2, len(files) // 2))):
        others = [file for file in files if file != path and file.is_file() and not file.is_symlink()]
        if path.is_file() and not path.is_symlink():
            how(path, random.choice(others), random)


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", ["README.txt", "keep.json"])
@pytest.mark.parametrize("how", SPOILING)
def test_what_tells_of_the_keep_is_spoilt(how: str, name: str, copies: tuple[Path, Path]) -> None:
    """A pipe, a link to a device, noise: nothing is waited for, and what is kept is read all the same, or refused."""
    folder = copies[1]
    before = held(Store(folder))
    SPOILING[how](folder / name, next((folder / "packs").iterdir()), Random(9))  # noqa: S311 - seeded
    try:
        store = Store(folder)
    except Unreadable:
        assert name == "keep.json"
        return
    assert verify_keep(Catalogue(store)).problems
    assert held(store) == before


@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", range(scale_examples(6)))
@pytest.mark.parametrize("how", SPOILING)
def test_a_spoilt_keep_is_merged(how: str, seed: int, copies: tuple[Path, Path]) -> None:
    """What is right in it is taken, what is not is told; ours is whole, and has all that it had."""
    ours, theirs = Store(copies[0]), Store(copies[1])
    before, there = held(ours), held(theirs)
    random = Random(f"{how} {seed}")  # noqa: S311 - seeded, so that a failure comes again
    _spoil(theirs.folder, SPOILING[how], random)
    for _ in range(2):
        merge_keeps(Catalogue(ours, trust_cache=False), FIRST, [Store(theirs.folder)])
        assert_whole(ours, before)
        assert held(ours) <= before | there


@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", range(scale_examples(6)))
@pytest.mark.parametrize("how", SPOILING)
def test_a_spoilt_keep_is_used(how: str, seed: int, copies: tuple[Path, Path], tmp_path: Path) -> None:
    """Listing, verifying, packing, restoring, keeping: each gives what is right, or says what is not, in a sentence."""
    store = Store(copies[1])
    catalogue = Catalogue(store)
    known = {(version.path, version.run): looks(catalogue, version) for version in catalogue.all_versions()}
    random = Random(f"{how} {seed}")  # noqa: S311 - seeded, so that a failure comes again
    _spoil(store.folder, SPOILING[how], random)
    store = Store(store.folder)
    verify_keep(Catalogue(store))
    catalogue = Catalogue(store)
    right = set()
    for version in catalogue.all_versions():
        try:
            assert looks(catalogue, version) == known[version.path, version.run]
            right.add((version.path, version.run))
        except Unreadable:
            continue
    newest = list(catalogue.newest())
    put = restore_files(catalogue, newest, tmp_path / "home")
    assert len(put.files) == sum((one.path, one.run) in right for one in newest)
    for work in (
        lambda: repack(Catalogue(store, trust_cache=False), SECOND),
        lambda: kept(store, tmp_path / "home", SECOND),
    ):
        try:
            work()
        except Error as error:
            assert str(error).endswith(".")  # noqa: PT017 - most of the time there is none
    catalogue = Catalogue(Store(store.folder))
    assert all(
        looks(catalogue, version) for version in catalogue.all_versions() if (version.path, version.run) in right
    )


@pytest.mark.parametrize(
    ("filling", "times"), [(b"\n", 300), pytest.param(b"{}\n", 100, marks=pytest.mark.slow), (b"x", 2000)]
)
def test_lines_without_end_are_not_looked_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, filling: bytes, times: int
) -> None:
    """Versions of a transcript may name one piece a thousand times: what was lost by a cut is not sought in such."""
    store = Store.make(tmp_path / "keep")
    pieces = [Piece.of(filling * 1_000_000), Piece.of(b'{"uuid":"a"}\n'), Piece.of(b'{"uuid":"b"}\n')]
    with PackWriter(store, "evil_9") as packing:
        for piece in pieces:
            packing.add(piece)
    session = "00000000-0000-4000-8000-000000000000"
    for number, hashes in ((1, (pieces[1].hash, *[pieces[0].hash] * times)), (2, (pieces[2].hash,))):
        size = sum(len(piece.data) * hashes.count(piece.hash) for piece in pieces)
        row = FileRow("/home", f"projects/-a/{session}.jsonl", 0o600, number, size, hashes)
        run = RunRow(1, "evil_9", "evil", number, None, "2026-11-15T00:00:00Z", ("/home",))
        store.put_run([run, row, EndRow("2026-11-15T00:00:00Z", 1, size)])
    catalogue = Catalogue(store)
    (versions,) = catalogue.versions.values()
    read: list[str] = []
    real = catalogue.piece

    def counted(hash_: str) -> bytes:
        read.append(hash_)
        return real(hash_)

    monkeypatch.setattr(catalogue, "piece", counted)
    assert join_lost_parts(catalogue, versions) == versions[-1]
    assert len(read) < 10
