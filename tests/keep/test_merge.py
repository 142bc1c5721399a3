"""Keeps are merged by content: either way round the same, twice the same, and nothing of a hostile one gets in."""

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
    given_back,
    home_with,
    is_clean,
    kept,
    lines,
    listed,
    session_id,
    transcript,
)
from tests.profiles import scale_examples

from threadline.errors import Unreadable
from threadline.keep import Catalogue, Machine, Store, forget_session, merge_keeps, repack
from threadline.keep.manifest import MANIFEST_VERSION, AnyRow, EndRow, FileRow, ForgetRow, RunRow
from threadline.keep.pack import Frame, PackWriter, Piece, build_footer, encode_table

_MOMENT = "2026-11-15T00:00:00Z"


def _keep(folder: Path, days: list[dict[int, int]], machine: Machine) -> Store:
    """A keep of a home whose transcripts (by number) hold lines of a seed, day by day."""
    store = Store.make(folder / "keep")
    for day in days:
        kept(
            store, home_with(folder / "home", {transcript(one): lines(seed, 60) for one, seed in day.items()}), machine
        )
    return store


def _copy(store: Store, to: Path) -> Store:
    shutil.copytree(store.folder, to)
    return Store(to)


def _run(machine: str = "evil_9", number: int = 1, before: str | None = None) -> RunRow:
    return RunRow(MANIFEST_VERSION, machine, "evil", number, before, _MOMENT, ("/home",))


def _evil(store: Store, *rows: AnyRow) -> None:
    """A manifest of somebody else's, whatever it says."""
    store.put_run([_run(), *rows, EndRow(_MOMENT, 0, 0)])


def _pack(store: Store, frames: bytes, told: list[Frame]) -> Path:
    data = frames + build_footer(encode_table(told))
    place = store.packs / f"{sha256(data).hexdigest()}.zst"
    place.write_bytes(data)
    return place


_days = st.lists(st.dictionaries(st.integers(0, 3), st.integers(0, 5), max_size=3), min_size=1, max_size=3)


@settings(max_examples=scale_examples(12))
@given(_days, _days)
def test_merging_is_commutative_and_idempotent(
    tmp_path_factory: pytest.TempPathFactory, one: list[dict[int, int]], other: list[dict[int, int]]
) -> None:
    """Two keeps merged either way list the same versions with the same bytes, and merging once more changes nothing."""
    folder = tmp_path_factory.mktemp("merge")
    first, second = _keep(folder / "a", one, HERE), _keep(folder / "b", other, THERE)
    this, that = _copy(first, folder / "c"), _copy(second, folder / "d")
    assert not merge_keeps(Catalogue(this, trust_cache=False), HERE, [second]).refused
    assert not merge_keeps(Catalogue(that, trust_cache=False), THERE, [first]).refused
    assert listed(this) == listed(that)
    assert given_back(this) == given_back(that)
    assert {*listed(first), *listed(second)} == {*listed(this)}
    before = sorted(this.folder.rglob("*"))
    again = merge_keeps(Catalogue(this, trust_cache=False), HERE, [second, first, that])
    assert (again.packs, again.runs, again.bytes) == (0, 0, 0)
    assert sorted(this.folder.rglob("*")) == before
    assert is_clean(this)
    assert is_clean(that)


def test_copies_that_went_on_apart_come_together(tmp_path: Path) -> None:
    """One machine that wrote two copies of its keep has all versions of both in the merged one, and goes on."""
    store = _keep(tmp_path, [{1: 1}], HERE)
    copy = _copy(store, tmp_path / "copy")
    home = tmp_path / "home"
    kept(store, home_with(home, {transcript(1): lines(2, 60)}))
    kept(copy, home_with(home, {transcript(1): lines(3, 60)}))
    merge_keeps(Catalogue(store, trust_cache=False), HERE, [copy])
    assert sorted(given_back(store)[transcript(1)]) == sorted(lines(seed, 60) for seed in (1, 2, 3))
    kept(store, home_with(home, {transcript(1): lines(4, 60)}))
    assert is_clean(store)
    assert given_back(store)[transcript(1)][-1] == lines(4, 60)


def test_a_packed_keep_merges_with_one_that_is_not(tmp_path: Path) -> None:
    """What is here in other packs is not taken over again."""
    store = _keep(tmp_path, [{1: 1}, {1: 2}, {2: 3}], HERE)
    copy = _copy(store, tmp_path / "copy")
    repack(Catalogue(store, trust_cache=False), HERE)
    assert merge_keeps(Catalogue(store, trust_cache=False), HERE, [copy]).packs == 0
    assert merge_keeps(Catalogue(copy, trust_cache=False), HERE, [store]).packs == 0
    assert listed(store) == listed(copy)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", ["packs", "runs"])
def test_what_is_damaged_here_is_mended_by_a_merge(tmp_path: Path, kind: str, *, packed: bool) -> None:
    """Packs and manifests that are damaged or gone come back from a copy, though it was packed meanwhile."""
    store = _keep(tmp_path, [{1: 1}, {2: 2}, {3: 3}], HERE)
    copy = _copy(store, tmp_path / "copy")
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
    assert given_back(store) == given_back(copy)


@pytest.mark.parametrize("kind", ["packs", "runs"])
@pytest.mark.parametrize("place", [0.1, 0.5, 0.9])
def test_what_is_damaged_there_is_told_and_not_taken(tmp_path: Path, kind: str, place: float) -> None:
    """A flipped bit in another keep is told; what is whole is taken, and this keep stays clean."""
    store = _keep(tmp_path / "a", [{1: 1}], HERE)
    other = _keep(tmp_path / "b", [{5: 5}, {6: 6}], THERE)
    victim = min((other.folder / kind).iterdir())
    data = bytearray(victim.read_bytes())
    data[int(len(data) * place)] ^= 4
    victim.write_bytes(data)
    merged = merge_keeps(Catalogue(store, trust_cache=False), HERE, [other])
    assert merged.refused
    assert is_clean(store)
    assert given_back(store)[transcript(1)] == [lines(1, 60)]


def test_one_damaged_frame_does_not_hide_the_rest(tmp_path: Path) -> None:
    """With `even_damaged`, all that can be had of a damaged keep is listed, and given back where it is whole."""
    other = _keep(tmp_path / "b", [{5: 5}, {6: 6}], THERE)
    store = Store.make(tmp_path / "keep")
    there = Catalogue(other)
    (lost,) = (one for one in there.newest() if one.path == transcript(5))
    there.located[next(iter(lost.pieces))].pack.unlink()
    assert merge_keeps(Catalogue(store, trust_cache=False), HERE, [other]).runs == 0
    assert merge_keeps(Catalogue(store, trust_cache=False), HERE, [other], even_damaged=True).runs == 2
    catalogue = Catalogue(store)
    versions = {one.path: one for one in catalogue.newest()}
    assert b"".join(catalogue.data(versions[transcript(6)])) == lines(6, 60)
    with pytest.raises(Unreadable):
        list(catalogue.data(versions[transcript(5)]))


def test_links_and_pipes_in_another_keep_are_not_followed(tmp_path: Path) -> None:
    """A link in packs/, a pipe in runs/ and a folder named like a pack are none of a keep's."""
    secret = tmp_path / "secret"
    secret.write_bytes(b"do not read me")
    other = Store.make(tmp_path / "other")
    digest = sha256(secret.read_bytes()).hexdigest()
    (other.packs / f"{digest}.zst").symlink_to(secret)
    (other.dictionaries / f"{digest}.dict").symlink_to(secret)
    os.mkfifo(other.runs / f"evil_9-000001-{digest}.jsonl.zst")
    (other.packs / f"{'0' * 64}.zst").mkdir()
    store = _keep(tmp_path / "a", [{1: 1}], HERE)
    before = listed(store)
    merge_keeps(Catalogue(store, trust_cache=False), HERE, [other])
    assert listed(store) == before
    assert is_clean(store)
    assert b"do not read me" not in all_bytes(store)


@pytest.mark.parametrize("path", ["../../escape", "/etc/escape", "projects/../../escape", "a\0b", "", "."])
def test_paths_that_lead_out_lead_nowhere(tmp_path: Path, path: str) -> None:
    """A merged manifest may name any path; nothing is written outside of the home that is restored to."""
    from threadline.keep import restore_files  # noqa: PLC0415

    other = _keep(tmp_path / "b", [{5: 5}], THERE)
    pieces = tuple(next(iter(Catalogue(other).newest())).pieces)
    _evil(other, FileRow("/home", path, 0o644, 10**18 * 9, len(lines(5, 60)), pieces))
    store = Store.make(tmp_path / "keep")
    merge_keeps(Catalogue(store, trust_cache=False), HERE, [other])
    catalogue = Catalogue(store)
    (tmp_path / "to" / "home").mkdir(parents=True)
    before = {*tmp_path.rglob("*")}
    restored = restore_files(
        catalogue, [one for one in catalogue.newest() if one.path == path], tmp_path / "to" / "home"
    )
    assert not restored.files
    assert len(restored.refused) == 1
    assert {*tmp_path.rglob("*")} == before


@pytest.mark.slow
def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    """A frame or manifest that would fill the memory is told, whatever it claims, and not taken."""
    store = _keep(tmp_path / "a", [{1: 1}], HERE)
    other = Store.make(tmp_path / "other")
    huge = zstandard.ZstdCompressor(level=3).compress(bytes(300 * 1024 * 1024))
    _pack(other, huge, [Frame(0, len(huge), 10, (("0" * 64, 10),))])
    _pack(other, huge + b"x", [Frame(0, len(huge), 300 * 1024 * 1024, (("0" * 64, 300 * 1024 * 1024),))])
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
def test_claims_that_cannot_be_are_not_believed(tmp_path: Path, change: dict[str, object]) -> None:
    """A manifest with impossible values is told and left out."""
    other = Store.make(tmp_path / "other")
    _evil(other)
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


def test_a_pack_that_lies_about_its_pieces_gives_nothing(tmp_path: Path) -> None:
    """Bytes under the hash of others are not taken over: nothing that is kept can be replaced."""
    store = _keep(tmp_path / "a", [{1: 1}], HERE)
    (version,) = Catalogue(store).newest()
    other = Store.make(tmp_path / "other")
    false = zstandard.ZstdCompressor().compress(b"forged")
    _pack(other, false, [Frame(0, len(false), 6, ((next(iter(version.pieces)), 6),))])
    _pack(other, false + b" ", [Frame(0, len(false), 6, (("1" * 64, 6),))])
    merged = merge_keeps(Catalogue(store, trust_cache=False), HERE, [other])
    assert merged.packs == 0
    assert merged.refused
    assert is_clean(store)
    assert given_back(store)[transcript(1)] == [lines(1, 60)]


def test_somebody_elses_wish_to_forget_is_asked_about(tmp_path: Path) -> None:
    """A keep that forgot what is kept here is left out, unless it is said that it is to go here, too."""
    store = _keep(tmp_path / "a", [{1: 1, 2: 2}], HERE)
    other = Store.make(tmp_path / "other")
    _evil(other, ForgetRow(session_id(1), "none", ()), ForgetRow("", "all", ()), ForgetRow("-", "all", ()))
    before = listed(store)
    refused = merge_keeps(Catalogue(store, trust_cache=False), HERE, [other])
    assert session_id(1) in refused.refused[0]
    assert listed(store) == before
    assert merge_keeps(Catalogue(store, trust_cache=False), HERE, [other], forgets=True).forgotten == (session_id(1),)
    assert set(given_back(store)) == {transcript(2)}


def test_what_was_forgotten_does_not_come_back(tmp_path: Path) -> None:
    """A copy that still has a session is merged: neither its versions nor its bytes come along; either way round."""
    store = _keep(tmp_path, [{1: 1, 2: 2}, {1: 3}], HERE)
    copy = _copy(store, tmp_path / "copy")
    forget_session(Catalogue(store, trust_cache=False), HERE, session_id(1), [], "a wish")
    merge_keeps(Catalogue(store, trust_cache=False), HERE, [copy])
    merge_keeps(Catalogue(copy, trust_cache=False), HERE, [store], forgets=True)
    assert listed(store) == listed(copy)
    for one in (store, copy):
        assert set(given_back(one)) == {transcript(2)}
        assert lines(1, 60)[100:200] not in all_bytes(one)
        assert lines(3, 60)[100:200] not in all_bytes(one)
        assert is_clean(one)


def test_two_machines_write_into_one_folder_at_once(tmp_path: Path) -> None:
    """Runs of two machines into one keep at the same time lose nothing of either."""
    store = Store.make(tmp_path / "keep")
    files = {transcript(number): lines(number, 400) for number in range(20)}
    homes = {one.id: home_with(tmp_path / one.id, files) for one in (HERE, THERE)}
    failed: list[BaseException] = []

    def many(machine: Machine, seed: int) -> None:
        try:
            for day in range(5):
                home_with(homes[machine.id], {transcript(day): lines(seed + day, 300)})
                kept(Store(store.folder), homes[machine.id], machine)
        except BaseException as error:  # noqa: BLE001 - told below
            failed.append(error)

    threads = [Thread(target=many, args=(HERE, 100)), Thread(target=many, args=(THERE, 200))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert is_clean(store)
    found = given_back(store)
    for number, data in list(files.items())[1:]:
        assert data in found[number]
    assert all(lines(seed + day, 300) in found[transcript(day)] for seed in (100, 200) for day in range(5))


@pytest.mark.parametrize("size", [10**18, 1, 199])
def test_a_size_that_is_made_up_is_not_taken_over(tmp_path: Path, size: int) -> None:
    """A file that is told to be longer or shorter than its pieces is no file of anybody's."""
    data = b"x" * 200
    store, other = Store.make(tmp_path / "keep"), Store.make(tmp_path / "other")
    with PackWriter(other, "evil_9") as packing:
        packing.add(Piece.of(data))
    _evil(other, FileRow("/home", transcript(1), 0o600, 0, size, (Piece.of(data).hash,), 0, None, 0))
    merged = merge_keeps(Catalogue(store, trust_cache=False), HERE, [other])
    assert (merged.runs, len(merged.refused)) == (0, 1)


def test_what_belongs_to_no_session_is_not_forgotten_for_one(tmp_path: Path) -> None:
    """Another keep may name any path as a session's: what all sessions share does not go by it, even if accepted."""
    store, other = Store.make(tmp_path / "keep"), Store.make(tmp_path / "other")
    kept(store, home_with(tmp_path / "home", {transcript(1): lines(1, 5), "history.jsonl": lines(2, 5)}))
    _evil(other, ForgetRow(session_id(1), "a wish", (transcript(1), "history.jsonl")))
    merged = merge_keeps(Catalogue(store, trust_cache=False), HERE, [other], forgets=True)
    assert (merged.runs, ["history.jsonl" in one for one in merged.refused]) == (0, [True])
    assert set(given_back(store)) == {transcript(1), "history.jsonl"}
