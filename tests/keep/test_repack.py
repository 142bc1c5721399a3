"""Packing writes small packs into large ones; whatever happens meanwhile, nothing is missing."""

from __future__ import annotations

from pathlib import Path

import pytest
import zstandard
from tests.keep.stores import HERE, given_back, home_with, is_clean, kept, lines, transcript

from threadline.keep import Catalogue, Store, forget, repack
from threadline.keep.pack import PackReader, PackWriter


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A keep of twelve days, each with a pack of its own."""
    store = Store.make(tmp_path / "keep")
    home = home_with(tmp_path / "home", {transcript(1): lines(1, 3000)})
    for day in range(12):
        with (home / transcript(1)).open("ab") as file:
            file.write(lines(100 + day, 20))
        kept(store, home)
    return store


def test_many_packs_become_one(store: Store) -> None:
    """Every version comes back as before, from fewer packs that take less room; once more, there is nothing to do."""
    before = given_back(store)
    packed = repack(Catalogue(store, trust_cache=False), HERE)
    assert (packed.before, packed.after, packed.problems) == (12, 1, ())
    assert packed.bytes_after < packed.bytes_before
    assert len(store.pack_files()) == 1
    assert given_back(store) == before
    assert is_clean(store)
    assert repack(Catalogue(store, trust_cache=False), HERE) == forget.RepackResult()


def test_a_reader_goes_on(store: Store) -> None:
    """Who was reading when the packs were written anew finds the pieces where they are now."""
    catalogue = Catalogue(store)
    assert catalogue.located
    repack(Catalogue(store, trust_cache=False), HERE)
    assert all(b"".join(catalogue.data(version)) for version in catalogue.all_versions())


def test_stopped_before_the_old_go_everything_is_there_twice(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old packs are taken away only when the new ones are on the disk; the next time, what is there twice goes."""
    before = given_back(store)

    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", stopped)
        with pytest.raises(KeyboardInterrupt):
            repack(Catalogue(store, trust_cache=False), HERE)
    assert len(store.pack_files()) == 13
    assert given_back(store) == before
    assert is_clean(store)
    repack(Catalogue(store, trust_cache=False), HERE)
    assert len(store.pack_files()) == 1
    assert given_back(store) == before


def test_what_is_damaged_stays(store: Store) -> None:
    """A pack that cannot be read whole is not taken away, and is told."""
    victim = max(store.pack_files(), key=lambda path: path.stat().st_size)
    data = bytearray(victim.read_bytes())
    data[100] ^= 1
    victim.write_bytes(data)
    packed = repack(Catalogue(store, trust_cache=False), HERE)
    assert packed.problems
    assert victim.exists()
    assert not is_clean(store)


def test_what_no_manifest_tells_of_stays(store: Store) -> None:
    """Only forgetting takes anything out: pieces of a stopped run are written anew with the others."""
    for path in store.run_files()[-3:]:
        path.unlink()
    before = set(Catalogue(store).located)
    repack(Catalogue(store, trust_cache=False), HERE)
    assert set(Catalogue(store).located) == before


def test_what_would_take_more_room_is_left_as_it_is(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old packs stay, and nothing of the new is left, where these are not smaller."""
    names = {path.name: path.read_bytes() for path in store.pack_files()}
    monkeypatch.setattr(
        PackWriter, "_compress", lambda _self, data, _known: zstandard.ZstdCompressor(level=-50).compress(data)
    )
    assert repack(Catalogue(store, trust_cache=False), HERE) == forget.RepackResult()
    assert {path.name: path.read_bytes() for path in store.packs.iterdir()} == names
    assert is_clean(store)


def test_what_a_file_grew_by_comes_together(tmp_path: Path) -> None:
    """Of many small frames, those of one file follow one another, in the order of its versions."""
    store = Store.make(tmp_path / "keep")
    home = home_with(tmp_path / "home", {})
    for day in range(6):
        name = transcript(day % 2)
        before = (home / name).read_bytes() if (home / name).exists() else b""
        kept(store, home_with(home, {name: before + lines(day, 40)}))
    wanted = [hash_ for one in sorted(Catalogue(store).newest(), key=lambda one: one.path) for hash_ in one.pieces]
    repack(Catalogue(store, trust_cache=False), HERE)
    (path,) = store.pack_files()
    frames = PackReader(store).frames(path)
    assert [hash_ for frame in frames for hash_, _length in frame.pieces] == wanted
