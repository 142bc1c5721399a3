"""Packing rewrites small packs into large ones. Whatever happens meanwhile, nothing is missing."""

from __future__ import annotations

from pathlib import Path

import pytest
import zstandard
from tests.keep.stores import HERE, is_clean, keep_home, kept_versions, lines, transcript_path, write_home

from threadline.keep import Catalogue, Store, forget, repack
from threadline.keep.pack import PackReader, PackWriter


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A keep of twelve runs, each with its own pack."""
    store = Store.make(tmp_path / "keep")
    home = write_home(tmp_path / "home", {transcript_path(1): lines(1, 3000)})
    for day in range(12):
        with (home / transcript_path(1)).open("ab") as file:
            file.write(lines(100 + day, 20))
        keep_home(store, home)
    return store


def test_many_packs_become_one(store: Store) -> None:
    """Every version is as before, in fewer and smaller packs. A second time there is nothing to do."""
    before = kept_versions(store)
    packed = repack(Catalogue(store, trust_cache=False), HERE)
    assert (packed.before, packed.after, packed.problems) == (12, 1, ())
    assert packed.bytes_after < packed.bytes_before
    assert len(store.pack_files()) == 1
    assert kept_versions(store) == before
    assert is_clean(store)
    assert repack(Catalogue(store, trust_cache=False), HERE) == forget.RepackResult()


def test_reader_survives_repacking(store: Store) -> None:
    """A reader that was open finds the pieces in their new packs."""
    catalogue = Catalogue(store)
    assert catalogue.located
    repack(Catalogue(store, trust_cache=False), HERE)
    assert all(b"".join(catalogue.data(version)) for version in catalogue.all_versions())


def test_interrupted_repack_keeps_old_and_new_packs(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Old packs are removed only after the new ones are on disk. The next repack removes duplicates."""
    before = kept_versions(store)

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", interrupt)
        with pytest.raises(KeyboardInterrupt):
            repack(Catalogue(store, trust_cache=False), HERE)
    assert len(store.pack_files()) == 13
    assert kept_versions(store) == before
    assert is_clean(store)
    repack(Catalogue(store, trust_cache=False), HERE)
    assert len(store.pack_files()) == 1
    assert kept_versions(store) == before


def test_damaged_pack_is_not_removed(store: Store) -> None:
    """A pack that cannot be read completely is kept, and reported."""
    victim = max(store.pack_files(), key=lambda path: path.stat().st_size)
    data = bytearray(victim.read_bytes())
    data[100] ^= 1
    victim.write_bytes(data)
    packed = repack(Catalogue(store, trust_cache=False), HERE)
    assert packed.problems
    assert victim.exists()
    assert not is_clean(store)


@pytest.mark.slow
def test_unlisted_pieces_are_kept(store: Store) -> None:
    """Only forgetting removes anything: pieces of an interrupted run are rewritten with the others."""
    for path in store.run_files()[-3:]:
        path.unlink()
    before = set(Catalogue(store).located)
    repack(Catalogue(store, trust_cache=False), HERE)
    assert set(Catalogue(store).located) == before


@pytest.mark.slow
def test_larger_packs_are_discarded(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the new packs are not smaller, the old ones stay, and nothing of the new is left."""
    names = {path.name: path.read_bytes() for path in store.pack_files()}
    monkeypatch.setattr(
        PackWriter, "_compress", lambda _self, data, _known: zstandard.ZstdCompressor(level=-50).compress(data)
    )
    assert repack(Catalogue(store, trust_cache=False), HERE) == forget.RepackResult()
    assert {path.name: path.read_bytes() for path in store.packs.iterdir()} == names
    assert is_clean(store)


def test_pieces_of_a_file_become_adjacent(tmp_path: Path) -> None:
    """The pieces of one file follow each other, in the order of its versions."""
    store = Store.make(tmp_path / "keep")
    home = write_home(tmp_path / "home", {})
    for day in range(6):
        name = transcript_path(day % 2)
        before = (home / name).read_bytes() if (home / name).exists() else b""
        keep_home(store, write_home(home, {name: before + lines(day, 40)}))
    expected = [
        hash_
        for version in sorted(Catalogue(store).newest(), key=lambda version: version.path)
        for hash_ in version.pieces
    ]
    repack(Catalogue(store, trust_cache=False), HERE)
    (path,) = store.pack_files()
    frames = PackReader(store).frames(path)
    assert [hash_ for frame in frames for hash_, _length in frame.pieces] == expected
