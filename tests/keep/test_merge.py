"""Keeps are merged by content: in any order, repeatedly, and without importing anything hostile."""

from __future__ import annotations

import json
import os
import shutil
from hashlib import sha256
from pathlib import Path
from threading import Thread

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.keep.stores import (
    HERE,
    THERE,
    all_bytes,
    is_clean,
    keep_home,
    kept_versions,
    lines,
    listed_versions,
    session_id,
    transcript_path,
    write_home,
)
from tests.profiles import scale_examples

from threadline.errors import Unreadable
from threadline.keep import Catalogue, Machine, Store, forget_session, merge_keeps, repack
from threadline.keep.manifest import MANIFEST_VERSION, AnyRow, EndRow, FileRow, ForgetRow, RunRow
from threadline.keep.pack import Frame, PackWriter, Piece, build_footer, encode_table

_MOMENT = "2026-11-15T00:00:00Z"


def make_keep(folder: Path, days: list[dict[int, int]], machine: Machine) -> Store:
    """A keep of a home whose transcripts (by number) contain lines of a seed, day by day."""
    store = Store.make(folder / "keep")
    for day in days:
        keep_home(
            store,
            write_home(folder / "home", {transcript_path(number): lines(seed, 60) for number, seed in day.items()}),
            machine,
        )
    return store


def copy_keep(store: Store, to: Path) -> Store:
    """A copy of a keep."""
    shutil.copytree(store.folder, to)
    return Store(to)


def hostile_run(machine: str = "evil_9", number: int = 1, before: str | None = None) -> RunRow:
    """The first row of a hostile manifest."""
    return RunRow(MANIFEST_VERSION, machine, "evil", number, before, _MOMENT, ("/home",))


def put_hostile_run(store: Store, *rows: AnyRow) -> None:
    """Add a hostile manifest with these rows."""
    store.put_run([hostile_run(), *rows, EndRow(_MOMENT, 0, 0)])


def put_pack(store: Store, frames: bytes, table: list[Frame]) -> Path:
    """Add a pack with these frames and this table."""
    data = frames + build_footer(encode_table(table))
    path = store.packs / f"{sha256(data).hexdigest()}.zst"
    path.write_bytes(data)
    return path


_days = st.lists(st.dictionaries(st.integers(0, 3), st.integers(0, 5), max_size=3), min_size=1, max_size=3)


@settings(max_examples=scale_examples(12))
@given(_days, _days)
def test_merging_is_commutative_and_idempotent(
    tmp_path_factory: pytest.TempPathFactory, days: list[dict[int, int]], other_days: list[dict[int, int]]
) -> None:
    """Merged either way, two keeps list the same versions with the same bytes. Merging again changes nothing."""
    folder = tmp_path_factory.mktemp("merge")
    first, second = make_keep(folder / "a", days, HERE), make_keep(folder / "b", other_days, THERE)
    first_copy, second_copy = copy_keep(first, folder / "c"), copy_keep(second, folder / "d")
    assert not merge_keeps(Catalogue(first_copy, trust_cache=False), HERE, [second]).refused
    assert not merge_keeps(Catalogue(second_copy, trust_cache=False), THERE, [first]).refused
    assert listed_versions(first_copy) == listed_versions(second_copy)
    assert kept_versions(first_copy) == kept_versions(second_copy)
    assert {*listed_versions(first), *listed_versions(second)} == {*listed_versions(first_copy)}
    before = sorted(first_copy.folder.rglob("*"))
    again = merge_keeps(Catalogue(first_copy, trust_cache=False), HERE, [second, first, second_copy])
    assert (again.packs, again.runs, again.bytes) == (0, 0, 0)
    assert sorted(first_copy.folder.rglob("*")) == before
    assert is_clean(first_copy)
    assert is_clean(second_copy)


def test_merges_diverged_copies(tmp_path: Path) -> None:
    """All versions of two diverged copies are in the merged keep, which can be continued."""
    store = make_keep(tmp_path, [{1: 1}], HERE)
    copy = copy_keep(store, tmp_path / "copy")
    home = tmp_path / "home"
    keep_home(store, write_home(home, {transcript_path(1): lines(2, 60)}))
    keep_home(copy, write_home(home, {transcript_path(1): lines(3, 60)}))
    merge_keeps(Catalogue(store, trust_cache=False), HERE, [copy])
    assert sorted(kept_versions(store)[transcript_path(1)]) == sorted(lines(seed, 60) for seed in (1, 2, 3))
    keep_home(store, write_home(home, {transcript_path(1): lines(4, 60)}))
    assert is_clean(store)
    assert kept_versions(store)[transcript_path(1)][-1] == lines(4, 60)


def test_merges_packed_and_unpacked_keep(tmp_path: Path) -> None:
    """Content that exists in other packs is not imported again."""
    store = make_keep(tmp_path, [{1: 1}, {1: 2}, {2: 3}], HERE)
    copy = copy_keep(store, tmp_path / "copy")
    repack(Catalogue(store, trust_cache=False), HERE)
    assert merge_keeps(Catalogue(store, trust_cache=False), HERE, [copy]).packs == 0
    assert merge_keeps(Catalogue(copy, trust_cache=False), HERE, [store]).packs == 0
    assert listed_versions(store) == listed_versions(copy)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", ["packs", "runs"])
def test_merge_repairs_damage(tmp_path: Path, kind: str, *, packed: bool) -> None:
    """Damaged or missing packs and manifests are restored from a copy, even if it was packed meanwhile."""
    store = make_keep(tmp_path, [{1: 1}, {2: 2}, {3: 3}], HERE)
    copy = copy_keep(store, tmp_path / "copy")
    if packed:
        repack(Catalogue(copy, trust_cache=False), HERE)
    first, second, _third = sorted((store.folder / kind).iterdir())
    first.unlink()
    data = bytearray(second.read_bytes())
    data[20] ^= 1
    second.write_bytes(data)
    assert not is_clean(store)
    merge_keeps(Catalogue(store, trust_cache=False), HERE, [copy])
    assert is_clean(store)
    assert kept_versions(store) == kept_versions(copy)


@pytest.mark.parametrize("kind", ["packs", "runs"])
@pytest.mark.parametrize("position", [0.1, 0.5, 0.9])
def test_damage_in_another_keep_is_not_imported(tmp_path: Path, kind: str, position: float) -> None:
    """A flipped bit in another keep is reported. Intact content is imported, and this keep stays clean."""
    store = make_keep(tmp_path / "a", [{1: 1}], HERE)
    other = make_keep(tmp_path / "b", [{5: 5}, {6: 6}], THERE)
    victim = min((other.folder / kind).iterdir())
    data = bytearray(victim.read_bytes())
    data[int(len(data) * position)] ^= 4
    victim.write_bytes(data)
    merged = merge_keeps(Catalogue(store, trust_cache=False), HERE, [other])
    assert merged.refused
    assert is_clean(store)
    assert kept_versions(store)[transcript_path(1)] == [lines(1, 60)]


def test_even_damaged_imports_the_rest(tmp_path: Path) -> None:
    """With `even_damaged`, everything readable of a damaged keep is listed, and restored if intact."""
    other = make_keep(tmp_path / "b", [{5: 5}, {6: 6}], THERE)
    store = Store.make(tmp_path / "keep")
    source = Catalogue(other)
    (lost,) = (version for version in source.newest() if version.path == transcript_path(5))
    source.located[next(iter(lost.pieces))].pack.unlink()
    assert merge_keeps(Catalogue(store, trust_cache=False), HERE, [other]).runs == 0
    assert merge_keeps(Catalogue(store, trust_cache=False), HERE, [other], even_damaged=True).runs == 2
    catalogue = Catalogue(store)
    versions = {version.path: version for version in catalogue.newest()}
    assert b"".join(catalogue.data(versions[transcript_path(6)])) == lines(6, 60)
    with pytest.raises(Unreadable):
        list(catalogue.data(versions[transcript_path(5)]))


def test_ignores_links_and_fifos_in_another_keep(tmp_path: Path) -> None:
    """A link in packs/, a FIFO in runs/ and a folder named like a pack are ignored."""
    secret = tmp_path / "secret"
    secret.write_bytes(b"do not read me")
    other = Store.make(tmp_path / "other")
    digest = sha256(secret.read_bytes()).hexdigest()
    (other.packs / f"{digest}.zst").symlink_to(secret)
    (other.dictionaries / f"{digest}.dict").symlink_to(secret)
    os.mkfifo(other.runs / f"evil_9-000001-{digest}.jsonl.zst")
    (other.packs / f"{'0' * 64}.zst").mkdir()
    store = make_keep(tmp_path / "a", [{1: 1}], HERE)
    before = listed_versions(store)
    merge_keeps(Catalogue(store, trust_cache=False), HERE, [other])
    assert listed_versions(store) == before
    assert is_clean(store)
    assert b"do not read me" not in all_bytes(store)


@pytest.mark.parametrize("path", ["../../escape", "/etc/escape", "projects/../../escape", "a\0b", "", "."])
def test_paths_out_of_the_home_are_refused(tmp_path: Path, path: str) -> None:
    """A merged manifest may contain any path, but nothing is written outside the target home."""
    from threadline.keep import restore_files  # noqa: PLC0415

    other = make_keep(tmp_path / "b", [{5: 5}], THERE)
    pieces = tuple(next(iter(Catalogue(other).newest())).pieces)
    put_hostile_run(other, FileRow("/home", path, 0o644, 10**18 * 9, len(lines(5, 60)), pieces))
    store = Store.make(tmp_path / "keep")
    merge_keeps(Catalogue(store, trust_cache=False), HERE, [other])
    catalogue = Catalogue(store)
    (tmp_path / "to" / "home").mkdir(parents=True)
    before = {*tmp_path.rglob("*")}
    restored = restore_files(
        catalogue, [version for version in catalogue.newest() if version.path == path], tmp_path / "to" / "home"
    )
    assert not restored.files
    assert len(restored.refused) == 1
    assert {*tmp_path.rglob("*")} == before


@pytest.mark.slow
def test_decompression_bombs_are_refused(tmp_path: Path) -> None:
    """A frame or manifest that would fill the memory is reported and not imported, whatever it claims."""
    store = make_keep(tmp_path / "a", [{1: 1}], HERE)
    other = Store.make(tmp_path / "other")
    huge = zstandard.ZstdCompressor(level=3).compress(bytes(300 * 1024 * 1024))
    put_pack(other, huge, [Frame(0, len(huge), 10, (("0" * 64, 10),))])
    put_pack(other, huge + b"x", [Frame(0, len(huge), 300 * 1024 * 1024, (("0" * 64, 300 * 1024 * 1024),))])
    bomb = zstandard.ZstdCompressor(level=19).compress(b"\n" * (200 * 1024 * 1024))
    (other.runs / f"evil_9-000001-{sha256(bomb).hexdigest()}.jsonl.zst").write_bytes(bomb)
    merged = merge_keeps(Catalogue(store, trust_cache=False), HERE, [other])
    assert (merged.packs, merged.runs) == (0, 0)
    assert len(merged.refused) >= 2
    assert is_clean(store)


@pytest.mark.parametrize(
    "change",
    [
        {"machine": "../../x"},
        {"number": 10**30},
        {"number": -1},
        {"began": "yesterday"},
        {"before": "x"},
        {"version": 99},
    ],
)
def test_impossible_manifests_are_refused(tmp_path: Path, change: dict[str, object]) -> None:
    """A manifest with impossible values is reported and skipped."""
    other = Store.make(tmp_path / "other")
    put_hostile_run(other)
    (path,) = other.run_files()
    first, last, _ = zstandard.ZstdDecompressor().decompress(path.read_bytes()).split(b"\n")
    text = json.dumps(json.loads(first) | change).encode() + b"\n" + last + b"\n"
    data = zstandard.ZstdCompressor().compress(text)
    path.unlink()
    (other.runs / f"evil_9-000001-{sha256(data).hexdigest()}.jsonl.zst").write_bytes(data)
    store = Store.make(tmp_path / "keep")
    merged = merge_keeps(Catalogue(store, trust_cache=False), HERE, [other])
    assert merged.runs == 0
    assert len(merged.refused) == 1


def test_packs_with_wrong_hashes_are_refused(tmp_path: Path) -> None:
    """Bytes under another hash are not imported, so nothing that is kept can be replaced."""
    store = make_keep(tmp_path / "a", [{1: 1}], HERE)
    (version,) = Catalogue(store).newest()
    other = Store.make(tmp_path / "other")
    forged = zstandard.ZstdCompressor().compress(b"forged")
    put_pack(other, forged, [Frame(0, len(forged), 6, ((next(iter(version.pieces)), 6),))])
    put_pack(other, forged + b" ", [Frame(0, len(forged), 6, (("1" * 64, 6),))])
    merged = merge_keeps(Catalogue(store, trust_cache=False), HERE, [other])
    assert merged.packs == 0
    assert merged.refused
    assert is_clean(store)
    assert kept_versions(store)[transcript_path(1)] == [lines(1, 60)]


def test_foreign_forget_needs_confirmation(tmp_path: Path) -> None:
    """A keep that forgot what is kept here is skipped, unless forgetting is accepted."""
    store = make_keep(tmp_path / "a", [{1: 1, 2: 2}], HERE)
    other = Store.make(tmp_path / "other")
    put_hostile_run(other, ForgetRow(session_id(1), "none", ()), ForgetRow("", "all", ()), ForgetRow("-", "all", ()))
    before = listed_versions(store)
    refused = merge_keeps(Catalogue(store, trust_cache=False), HERE, [other])
    assert session_id(1) in refused.refused[0]
    assert listed_versions(store) == before
    assert merge_keeps(Catalogue(store, trust_cache=False), HERE, [other], forgets=True).forgotten == (session_id(1),)
    assert set(kept_versions(store)) == {transcript_path(2)}


def test_forgotten_session_is_not_imported(tmp_path: Path) -> None:
    """Merging a copy that still has the session, in either direction, imports neither versions nor bytes."""
    store = make_keep(tmp_path, [{1: 1, 2: 2}, {1: 3}], HERE)
    copy = copy_keep(store, tmp_path / "copy")
    forget_session(Catalogue(store, trust_cache=False), HERE, session_id(1), [], "a wish")
    merge_keeps(Catalogue(store, trust_cache=False), HERE, [copy])
    merge_keeps(Catalogue(copy, trust_cache=False), HERE, [store], forgets=True)
    assert listed_versions(store) == listed_versions(copy)
    for keep in (store, copy):
        assert set(kept_versions(keep)) == {transcript_path(2)}
        assert lines(1, 60)[100:200] not in all_bytes(keep)
        assert lines(3, 60)[100:200] not in all_bytes(keep)
        assert is_clean(keep)


@pytest.mark.slow
def test_two_machines_write_concurrently(tmp_path: Path) -> None:
    """Concurrent runs of two machines into one keep lose nothing."""
    store = Store.make(tmp_path / "keep")
    files = {transcript_path(number): lines(number, 400) for number in range(20)}
    homes = {machine.id: write_home(tmp_path / machine.id, files) for machine in (HERE, THERE)}
    errors: list[BaseException] = []

    def run_days(machine: Machine, seed: int) -> None:
        try:
            for day in range(5):
                write_home(homes[machine.id], {transcript_path(day): lines(seed + day, 300)})
                keep_home(Store(store.folder), homes[machine.id], machine)
        except BaseException as error:  # noqa: BLE001 - told below
            errors.append(error)

    threads = [Thread(target=run_days, args=(HERE, 100)), Thread(target=run_days, args=(THERE, 200))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert is_clean(store)
    versions = kept_versions(store)
    for number, data in list(files.items())[1:]:
        assert data in versions[number]
    assert all(lines(seed + day, 300) in versions[transcript_path(day)] for seed in (100, 200) for day in range(5))


@pytest.mark.parametrize("size", [10**18, 1, 199])
def test_wrong_sizes_are_not_imported(tmp_path: Path, size: int) -> None:
    """A file whose size does not match its pieces is not imported."""
    data = b"x" * 200
    store, other = Store.make(tmp_path / "keep"), Store.make(tmp_path / "other")
    with PackWriter(other, "evil_9") as writer:
        writer.add(Piece.of(data))
    put_hostile_run(other, FileRow("/home", transcript_path(1), 0o600, 0, size, (Piece.of(data).hash,), 0, None, 0))
    merged = merge_keeps(Catalogue(store, trust_cache=False), HERE, [other])
    assert (merged.runs, len(merged.refused)) == (0, 1)


def test_shared_files_are_not_forgotten(tmp_path: Path) -> None:
    """Another keep may name any path as a session's. Shared files are not forgotten, even if that is accepted."""
    store, other = Store.make(tmp_path / "keep"), Store.make(tmp_path / "other")
    keep_home(store, write_home(tmp_path / "home", {transcript_path(1): lines(1, 5), "history.jsonl": lines(2, 5)}))
    put_hostile_run(other, ForgetRow(session_id(1), "a wish", (transcript_path(1), "history.jsonl")))
    merged = merge_keeps(Catalogue(store, trust_cache=False), HERE, [other], forgets=True)
    assert (merged.runs, ["history.jsonl" in message for message in merged.refused]) == (0, [True])
    assert set(kept_versions(store)) == {transcript_path(1), "history.jsonl"}
