"""Verifying finds every flipped bit, and names what it touches."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.keep.stores import HERE, given_back, home_with, is_clean, kept, lines, session_id, transcript

from threadline.find import homes
from threadline.keep import Catalogue, Store, VerifyResult, read_status, repack, run_keep, verify_keep
from threadline.keep.cache import DamagedPacks
from threadline.keep.manifest import EndRow, FileRow, RunRow


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A keep of two sessions, in two packs."""
    store = Store.make(tmp_path / "keep")
    home = home_with(tmp_path / "home", {transcript(1): b'{"sessionId":"%s"}\n' % session_id(1).encode() * 9})
    kept(store, home)
    kept(store, home_with(home, {transcript(2): lines(2, 9)}))
    return store


def test_a_whole_keep_is_clean(store: Store) -> None:
    """What was not touched is told to be whole, with what was looked at."""
    verified = verify_keep(Catalogue(store))
    assert (verified.packs, verified.runs, verified.problems, verified.affected) == (2, 2, (), ())
    assert verified.bytes == sum(
        len(data) for data in (b'{"sessionId":"%s"}\n' % session_id(1).encode() * 9, lines(2, 9))
    )


def test_every_flipped_bit_is_found(store: Store) -> None:
    """Whichever bit of whichever file is another one, it is told; mended, the keep is clean again."""
    for path in sorted(path for path in store.folder.rglob("*") if path.is_file() and not path.name.startswith(".")):
        whole = path.read_bytes()
        for at in {*range(0, len(whole), 37), len(whole) - 1}:
            flipped = bytearray(whole)
            flipped[at] ^= 1 << at % 8
            path.write_bytes(flipped)
            assert not is_clean(Store(store.folder)), f"byte {at} of {path.name}"
        path.write_bytes(whole)
    assert is_clean(store)


def test_what_a_damaged_pack_touches_is_named(store: Store) -> None:
    """Only the versions that need a damaged piece are touched."""
    for path in store.pack_files():
        whole = path.read_bytes()
        path.write_bytes(whole[:20] + bytes([whole[20] ^ 1]) + whole[21:])
        assert len(verify_keep(Catalogue(store)).affected) == 1
        path.write_bytes(whole)


def test_a_missing_pack_or_manifest_is_told(store: Store) -> None:
    """A pack that is gone touches what needs it; a manifest that is gone breaks the chain."""
    pack, run = store.pack_files()[0], store.run_files()[0]
    whole = pack.read_bytes()
    pack.unlink()
    assert len(verify_keep(Catalogue(store)).affected) == 1
    pack.write_bytes(whole)
    run.unlink()
    assert any("The manifest before run" in said for said in verify_keep(Catalogue(store)).problems)


def test_sessions_of_a_damaged_manifest_are_named(store: Store) -> None:
    """Where a manifest is damaged, the sessions whose bytes no other one tells of are named by their lines."""
    run = store.run_files()[0]
    run.write_bytes(run.read_bytes()[:-1])
    assert verify_keep(Catalogue(store)).sessions == (session_id(1),)


def test_a_sample_looks_at_so_many_frames(store: Store) -> None:
    """A sample reads as many frames as were asked for."""
    assert verify_keep(Catalogue(store), sample=1).pieces == 1
    assert verify_keep(Catalogue(store), sample=99).pieces == 2


def test_the_newest_manifest_is_missed_by_who_has_seen_it(store: Store, tmp_path: Path) -> None:
    """No manifest names the newest one; this machine remembers it, and says so, with the sessions it told of."""
    machine = replace(HERE, folder=tmp_path / "memory")
    home = home_with(tmp_path / "home", {transcript(3): b'{"sessionId":"%s"}\n' % session_id(3).encode() * 9})
    kept(store, home, machine)

    def verified() -> VerifyResult:
        return verify_keep(Catalogue(store, machine.folder, trust_cache=False))

    assert verified().problems == ()
    newest = store.run_files()[-1]
    whole = newest.read_bytes()
    newest.unlink()
    assert verify_keep(Catalogue(store)).problems == ()
    result = verified()
    assert (result.missing_manifests, result.sessions) == (1, (session_id(3),))
    assert "run 3 of here was in the keep" in result.problems[0]
    newest.write_bytes(whole)
    assert verified().problems == ()


def test_a_manifest_in_the_middle_is_told_once(store: Store, tmp_path: Path) -> None:
    """One that another goes on from is told by that, and not by memory once more."""
    machine = replace(HERE, folder=tmp_path / "memory")
    kept(store, home_with(tmp_path / "home", {transcript(3): lines(3, 3)}), machine)
    store.run_files()[1].unlink()
    assert verify_keep(Catalogue(store, machine.folder, trust_cache=False)).missing_manifests == 1


@pytest.mark.parametrize("grows", [False, True], ids=["the same pack again", "another pack"])
def test_what_was_found_damaged_is_kept_again(store: Store, tmp_path: Path, *, grows: bool) -> None:
    """Once verify has told which pack is damaged, the next run keeps again what is still there; packing drops it."""
    home, here = tmp_path / "home", replace(HERE, folder=tmp_path / "machine")
    run_keep(Catalogue(store, here.folder), homes(str(home)), here)
    before = given_back(store)
    path = store.pack_files()[0]
    whole = path.read_bytes()
    path.write_bytes(whole[:20] + bytes([whole[20] ^ 1]) + whole[21:])
    assert not run_keep(Catalogue(store, here.folder), homes(str(home)), here).read, (
        "nothing tells that it is damaged before it is looked at"
    )
    found = verify_keep(Catalogue(store))
    assert (found.damaged_packs, len(found.affected)) == ((path.name,), 1)
    doubts = DamagedPacks(tmp_path / "machine" / f"{store.info.id}.doubted")
    doubts.update(found.checked_packs, found.damaged_packs)
    assert "stores again" in _doubted(store, doubts)
    if grows:
        home_with(home, {transcript(3): lines(3, 9)})
    again = run_keep(Catalogue(store, here.folder), homes(str(home)), here)
    assert (again.changed, again.problems) == (1, ())
    mended = verify_keep(Catalogue(store))
    assert (mended.affected, mended.damaged_packs) == ((), (path.name,) if grows else ())
    assert ("were stored again" in _doubted(store, doubts)) == grows
    given = given_back(store)
    assert {name: set(given[name]) for name in before} == {name: set(before[name]) for name in before}
    assert not run_keep(Catalogue(store, here.folder), homes(str(home)), here).read, "it is kept again once"
    assert repack(Catalogue(store, here.folder, trust_cache=False), here).problems == ()
    assert is_clean(store)
    assert given_back(store) == given


def _doubted(store: Store, doubts: DamagedPacks) -> str:
    return "\n".join(
        read_status(Catalogue(store), (), "here_1", damaged_packs=DamagedPacks(doubts.path).packs).problems
    )


@pytest.mark.parametrize("size", [10**18, 5])
def test_a_size_that_is_made_up_is_told(store: Store, size: int) -> None:
    """A manifest that somebody put there may be whole, and tell of a file that is not as long as its pieces."""
    (piece,) = next(iter(Catalogue(store).newest())).pieces
    moment = "2026-11-15T00:00:00Z"
    file = FileRow("/home", transcript(5), 0o600, 0, size, (piece,))
    store.put_run([RunRow(1, "evil_9", "evil", 1, None, moment, ("/home",)), file, EndRow(moment, 1, size)])
    verified = verify_keep(Catalogue(store))
    assert [one.path for one in verified.affected] == [transcript(5)]
    assert [("do not have the size" in problem) for problem in verified.problems] == [True]
