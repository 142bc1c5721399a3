"""A keep that was damaged in any way: merging, reading and restoring it do no harm and do not hang."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from tests.changing_home import ChangingHome
from tests.keep.homes import FIRST, SECOND, assert_intact, keep_home, stored_versions, use_small_packs, version_state
from tests.profiles import scale_examples

from threadline.errors import Error, Unreadable
from threadline.keep import Catalogue, Store, merge_keeps, repack, restore_files, verify_keep
from threadline.keep.manifest import EndRow, FileRow, RunRow
from threadline.keep.pack import PackWriter, Piece
from threadline.keep.truncation import join_lost_parts

Damage = Callable[[Path, Path, Random], object]


def overwrite_bytes(path: Path, _other: Path, random: Random) -> None:
    """Overwrite some bytes."""
    data = bytearray(path.read_bytes() or b"\0")
    for _ in range(random.choice((1, 3, 50))):
        data[random.randrange(len(data))] = random.randrange(256)
    path.write_bytes(data)


def truncate(path: Path, _other: Path, random: Random) -> None:
    """Truncate at a random position."""
    os.truncate(path, random.randrange(path.stat().st_size + 1))


def extend(path: Path, other: Path, random: Random) -> None:
    """Append other bytes."""
    with path.open("ab") as file:
        file.write(random.choice((b"\0" * 1000, other.read_bytes(), random.randbytes(500))))


def replace_with_link(path: Path, other: Path, random: Random) -> None:
    """Replace it with a link to another file, a device or itself."""
    path.unlink()
    path.symlink_to(random.choice((other, Path("/etc/passwd"), Path("/dev/zero"), path)))


def replace_with_fifo(path: Path, _other: Path, _random: Random) -> None:
    """Replace it with a FIFO."""
    path.unlink()
    os.mkfifo(path)


def replace_with_folder(path: Path, _other: Path, _random: Random) -> None:
    """Replace it with a folder."""
    path.unlink()
    path.mkdir()


def rename(path: Path, _other: Path, random: Random) -> None:
    """Give it the name of another hash."""
    path.rename(path.with_name(f"{random.getrandbits(256):064x}").with_suffix("".join(path.suffixes)))


def replace_content(path: Path, other: Path, _random: Random) -> None:
    """Replace its content with that of another file."""
    path.write_bytes(other.read_bytes())


DAMAGES: dict[str, Damage] = {
    "noise": overwrite_bytes,
    "cut": truncate,
    "longer": extend,
    "link": replace_with_link,
    "pipe": replace_with_fifo,
    "folder": replace_with_folder,
    "renamed": rename,
    "swapped": replace_content,
    "gone": lambda path, _other, _random: path.unlink(),
}


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Our own keep, and one of another machine with several runs."""
    folder = tmp_path_factory.mktemp("hostile")
    ours, theirs = Store.make(folder / "ours"), Store.make(folder / "theirs")
    here, there = ChangingHome(folder / "here", 51, 0.4), ChangingHome(folder / "there", 52, 0.4)
    with pytest.MonkeyPatch.context() as patch:
        use_small_packs(patch)
        patch.setattr("threadline.keep.pack._MIN_SAMPLE_SIZE", 20_000)
        keep_home(ours, here.path)
        for _ in range(3):
            there.change()
            keep_home(theirs, there.path, SECOND)
    return ours.folder, theirs.folder


@pytest.fixture
def copies(stores: tuple[Path, Path], tmp_path: Path) -> tuple[Path, Path]:
    """Copies of both, to be damaged."""
    for folder in stores:
        shutil.copytree(folder, tmp_path / folder.name)
    return tmp_path / "ours", tmp_path / "theirs"


def damage_files(folder: Path, damage: Damage, random: Random) -> None:
    """Damage some files of a keep."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith((".lock", "keep")))
    for path in random.sample(files, random.choice((1, 1, 2, len(files) // 2))):
        others = [file for file in files if file != path and file.is_file() and not file.is_symlink()]
        if path.is_file() and not path.is_symlink():
            damage(path, random.choice(others), random)


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", ["README.txt", "keep.json"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_metadata(damage: str, name: str, copies: tuple[Path, Path]) -> None:
    """A FIFO, a link to a device, noise: nothing hangs, and the keep is still read, or refused."""
    folder = copies[1]
    before = stored_versions(Store(folder))
    DAMAGES[damage](folder / name, next((folder / "packs").iterdir()), Random(9))  # noqa: S311 - seeded
    try:
        store = Store(folder)
    except Unreadable:
        assert name == "keep.json"
        return
    assert verify_keep(Catalogue(store)).problems
    assert stored_versions(store) == before


@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", range(scale_examples(6)))
@pytest.mark.parametrize("damage", DAMAGES)
def test_merges_damaged_keep(damage: str, seed: int, copies: tuple[Path, Path]) -> None:
    """Intact parts are imported, damaged ones are reported. Our keep stays intact and complete."""
    ours, theirs = Store(copies[0]), Store(copies[1])
    before, theirs_before = stored_versions(ours), stored_versions(theirs)
    random = Random(f"{damage} {seed}")  # noqa: S311 - seeded, so that a failure comes again
    damage_files(theirs.folder, DAMAGES[damage], random)
    for _ in range(2):
        merge_keeps(Catalogue(ours, trust_cache=False), FIRST, [Store(theirs.folder)])
        assert_intact(ours, before)
        assert stored_versions(ours) <= before | theirs_before


@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", range(scale_examples(6)))
@pytest.mark.parametrize("damage", DAMAGES)
def test_uses_damaged_keep(damage: str, seed: int, copies: tuple[Path, Path], tmp_path: Path) -> None:
    """Listing, verifying, packing, restoring, keeping: each gives intact content, or a message."""
    store = Store(copies[1])
    catalogue = Catalogue(store)
    states = {(version.path, version.run): version_state(catalogue, version) for version in catalogue.all_versions()}
    random = Random(f"{damage} {seed}")  # noqa: S311 - seeded, so that a failure comes again
    damage_files(store.folder, DAMAGES[damage], random)
    store = Store(store.folder)
    verify_keep(Catalogue(store))
    catalogue = Catalogue(store)
    intact = set()
    for version in catalogue.all_versions():
        try:
            assert version_state(catalogue, version) == states[version.path, version.run]
            intact.add((version.path, version.run))
        except Unreadable:
            continue
    newest = list(catalogue.newest())
    restored = restore_files(catalogue, newest, tmp_path / "home")
    assert len(restored.files) == sum((file.path, file.run) in intact for file in newest)
    for work in (
        lambda: repack(Catalogue(store, trust_cache=False), SECOND),
        lambda: keep_home(store, tmp_path / "home", SECOND),
    ):
        try:
            work()
        except Error as error:
            assert str(error).endswith(".")  # noqa: PT017 - most of the time there is none
    catalogue = Catalogue(Store(store.folder))
    assert all(
        version_state(catalogue, version)
        for version in catalogue.all_versions()
        if (version.path, version.run) in intact
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("filling", "times"), [(b"\n", 300), pytest.param(b"{}\n", 100, marks=pytest.mark.slow), (b"x", 2000)]
)
def test_repeated_pieces_are_not_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, filling: bytes, times: int
) -> None:
    """A hostile version may name one piece a thousand times. Lost parts are not searched for in such versions."""
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
    real_piece = catalogue.piece

    def counting_piece(hash_: str) -> bytes:
        read.append(hash_)
        return real_piece(hash_)

    monkeypatch.setattr(catalogue, "piece", counting_piece)
    assert join_lost_parts(catalogue, versions) == versions[-1]
    assert len(read) < 10
