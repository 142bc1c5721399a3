"""Verify finds every flipped bit, and names what it affects."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.keep.stores import HERE, is_clean, keep_home, kept_versions, lines, session_id, transcript_path, write_home

from threadline.find import homes
from threadline.keep import Catalogue, Store, VerifyResult, read_status, repack, run_keep, verify_keep
from threadline.keep.cache import DamagedPacks
from threadline.keep.manifest import EndRow, FileRow, RunRow


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A keep of two sessions, in two packs."""
    store = Store.make(tmp_path / "keep")
    home = write_home(tmp_path / "home", {transcript_path(1): b'{"sessionId":"%s"}\n' % session_id(1).encode() * 9})
    keep_home(store, home)
    keep_home(store, write_home(home, {transcript_path(2): lines(2, 9)}))
    return store


def test_intact_keep_is_clean(store: Store) -> None:
    """An intact keep is reported as such, with the amounts checked."""
    verified = verify_keep(Catalogue(store))
    assert (verified.packs, verified.runs, verified.problems, verified.affected) == (2, 2, (), ())
    assert verified.bytes == sum(
        len(data) for data in (b'{"sessionId":"%s"}\n' % session_id(1).encode() * 9, lines(2, 9))
    )


def test_finds_every_flipped_bit(store: Store) -> None:
    """Any flipped bit of any file is reported. Once repaired, the keep is clean again."""
    for path in sorted(path for path in store.folder.rglob("*") if path.is_file() and not path.name.startswith(".")):
        content = path.read_bytes()
        for offset in {*range(0, len(content), 37), len(content) - 1}:
            flipped = bytearray(content)
            flipped[offset] ^= 1 << offset % 8
            path.write_bytes(flipped)
            assert not is_clean(Store(store.folder)), f"byte {offset} of {path.name}"
        path.write_bytes(content)
    assert is_clean(store)


def test_names_versions_of_a_damaged_pack(store: Store) -> None:
    """Only the versions that need a damaged piece are affected."""
    for path in store.pack_files():
        content = path.read_bytes()
        path.write_bytes(content[:20] + bytes([content[20] ^ 1]) + content[21:])
        assert len(verify_keep(Catalogue(store)).affected) == 1
        path.write_bytes(content)


def test_reports_missing_pack_or_manifest(store: Store) -> None:
    """A missing pack affects the versions that need it. A missing manifest breaks the chain."""
    pack, run = store.pack_files()[0], store.run_files()[0]
    content = pack.read_bytes()
    pack.unlink()
    assert len(verify_keep(Catalogue(store)).affected) == 1
    pack.write_bytes(content)
    run.unlink()
    assert any("The manifest before run" in problem for problem in verify_keep(Catalogue(store)).problems)


def test_names_sessions_of_a_damaged_manifest(store: Store) -> None:
    """Sessions whose bytes no other manifest contains are named by their lines."""
    run = store.run_files()[0]
    run.write_bytes(run.read_bytes()[:-1])
    assert verify_keep(Catalogue(store)).sessions == (session_id(1),)


def test_sample_checks_that_many_frames(store: Store) -> None:
    """A sample reads at most that many frames."""
    assert verify_keep(Catalogue(store), sample=1).pieces == 1
    assert verify_keep(Catalogue(store), sample=99).pieces == 2


def test_reports_missing_newest_manifest_from_cache(store: Store, tmp_path: Path) -> None:
    """No manifest refers to the newest one, but this machine remembers it, and names its sessions."""
    machine = replace(HERE, folder=tmp_path / "memory")
    home = write_home(tmp_path / "home", {transcript_path(3): b'{"sessionId":"%s"}\n' % session_id(3).encode() * 9})
    keep_home(store, home, machine)

    def verify() -> VerifyResult:
        return verify_keep(Catalogue(store, machine.folder, trust_cache=False))

    assert verify().problems == ()
    newest = store.run_files()[-1]
    content = newest.read_bytes()
    newest.unlink()
    assert verify_keep(Catalogue(store)).problems == ()
    result = verify()
    assert (result.missing_manifests, result.sessions) == (1, (session_id(3),))
    assert "run 3 of here was in the keep" in result.problems[0]
    newest.write_bytes(content)
    assert verify().problems == ()


def test_reports_missing_manifest_once(store: Store, tmp_path: Path) -> None:
    """A manifest that another one continues is reported only by the chain, not by the cache."""
    machine = replace(HERE, folder=tmp_path / "memory")
    keep_home(store, write_home(tmp_path / "home", {transcript_path(3): lines(3, 3)}), machine)
    store.run_files()[1].unlink()
    assert verify_keep(Catalogue(store, machine.folder, trust_cache=False)).missing_manifests == 1


@pytest.mark.parametrize("grows", [False, True], ids=["the same pack again", "another pack"])
def test_damaged_pack_is_stored_again(store: Store, tmp_path: Path, *, grows: bool) -> None:
    """Once verify has found a damaged pack, the next run stores its content again, and packing drops it."""
    home, machine = tmp_path / "home", replace(HERE, folder=tmp_path / "machine")
    run_keep(Catalogue(store, machine.folder), homes(str(home)), machine)
    before = kept_versions(store)
    path = store.pack_files()[0]
    content = path.read_bytes()
    path.write_bytes(content[:20] + bytes([content[20] ^ 1]) + content[21:])
    assert not run_keep(Catalogue(store, machine.folder), homes(str(home)), machine).read, (
        "the damage is unknown before verify"
    )
    result = verify_keep(Catalogue(store))
    assert (result.damaged_packs, len(result.affected)) == ((path.name,), 1)
    damaged = DamagedPacks(tmp_path / "machine" / f"{store.info.id}.doubted")
    damaged.update(result.checked_packs, result.damaged_packs)
    assert "stores again" in status_problems(store, damaged)
    if grows:
        write_home(home, {transcript_path(3): lines(3, 9)})
    again = run_keep(Catalogue(store, machine.folder), homes(str(home)), machine)
    assert (again.changed, again.problems) == (1, ())
    repaired = verify_keep(Catalogue(store))
    assert (repaired.affected, repaired.damaged_packs) == ((), (path.name,) if grows else ())
    assert ("were stored again" in status_problems(store, damaged)) == grows
    versions = kept_versions(store)
    assert {name: set(versions[name]) for name in before} == {name: set(before[name]) for name in before}
    assert not run_keep(Catalogue(store, machine.folder), homes(str(home)), machine).read, (
        "it is stored again only once"
    )
    assert repack(Catalogue(store, machine.folder, trust_cache=False), machine).problems == ()
    assert is_clean(store)
    assert kept_versions(store) == versions


def test_any_number_of_damaged_packs_is_remembered(tmp_path: Path) -> None:
    """A disk that fails may damage all packs of a keep, which has one for each run until it is repacked."""
    names = [f"{number:064x}.zst" for number in range(2000)]
    DamagedPacks(tmp_path / "keep.doubted").update(names, names)
    assert DamagedPacks(tmp_path / "keep.doubted").packs == frozenset(names)


def status_problems(store: Store, damaged: DamagedPacks) -> str:
    """The problems in the status of the keep."""
    return "\n".join(
        read_status(Catalogue(store), (), "here_1", damaged_packs=DamagedPacks(damaged.path).packs).problems
    )


@pytest.mark.parametrize("size", [10**18, 5])
def test_reports_wrong_size(store: Store, size: int) -> None:
    """A forged manifest may be valid, but name a file whose size does not match its pieces."""
    (piece,) = next(iter(Catalogue(store).newest())).pieces
    moment = "2026-11-15T00:00:00Z"
    file = FileRow("/home", transcript_path(5), 0o600, 0, size, (piece,))
    store.put_run([RunRow(1, "evil_9", "evil", 1, None, moment, ("/home",)), file, EndRow(moment, 1, size)])
    verified = verify_keep(Catalogue(store))
    assert [version.path for version in verified.affected] == [transcript_path(5)]
    assert [("do not have the size" in problem) for problem in verified.problems] == [True]
