"""The folder that a keep is."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from tests.keep.stores import HERE, given_back, home_with, kept, lines, transcript

from threadline import files
from threadline.errors import IndexBusy, NotFound, Unreadable
from threadline.keep import Catalogue, Store, default_folder, merge_keeps, repack, this_machine


def test_there_must_be_a_keep(tmp_path: Path) -> None:
    """A folder without a keep is told, with what begins one."""
    with pytest.raises(NotFound, match="threadline keep"):
        Store(tmp_path)


def test_a_keep_is_not_begun_among_other_things(tmp_path: Path) -> None:
    """A folder that holds something else is left as it is."""
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(Unreadable, match=r"letter\.txt"):
        Store.make(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_a_begin_that_was_stopped_is_gone_on_with(tmp_path: Path) -> None:
    """Whatever a killed `make` left, the next one makes a keep of it."""
    store = Store.make(tmp_path / "keep")
    (store.folder / "keep.json").rename(store.folder / "keep-123-0.new")
    assert Store.make(tmp_path / "keep").problem is None


def test_a_later_version_is_not_touched(tmp_path: Path) -> None:
    """A keep of a version that is not known yet is refused, and says to update."""
    store = Store.make(tmp_path / "keep")
    later = msgspec.structs.replace(store.info, version=2)
    later = msgspec.structs.replace(later, check=later.expected_check())
    (store.folder / "keep.json").write_bytes(msgspec.json.encode(later))
    with pytest.raises(Unreadable, match="Update threadline"):
        Store(store.folder)


@pytest.mark.parametrize(
    "damage", [b"", b"{}", b"\xff\xfe", b'{"format":"threadline keep","version":1,"id":"x"}', None]
)
def test_without_its_label_a_keep_is_read_and_labelled_anew(tmp_path: Path, damage: bytes | None) -> None:
    """Where keep.json is damaged or missing, everything comes back, and the next run writes it as it was."""
    store = Store.make(tmp_path / "keep")
    machine = replace(HERE, folder=tmp_path / "machine")
    home = home_with(tmp_path / "home", {transcript(1): lines(1, 5)})
    kept(store, home, machine)
    about = store.folder / "keep.json"
    whole = about.read_bytes()
    if damage is None:
        about.unlink()
    else:
        about.write_bytes(damage)
    assert given_back(Store(store.folder))[transcript(1)] == [lines(1, 5)]
    with pytest.raises(Unreadable, match="`threadline keep` rebuilds it"):
        repack(Catalogue(Store(store.folder), machine.folder, trust_cache=False), machine)
    home_with(home, {transcript(2): lines(2, 5)})
    assert kept(Store.make(store.folder), home, machine).new == 1
    assert about.read_bytes() == whole
    assert set(given_back(Store(store.folder))) == {transcript(1), transcript(2)}


def test_a_label_comes_from_a_copy(tmp_path: Path) -> None:
    """A copy of a keep has what its keep.json said; another keep does not."""
    store = Store.make(tmp_path / "keep")
    kept(store, home_with(tmp_path / "home", {transcript(1): lines(1, 5)}))
    shutil.copytree(store.folder, tmp_path / "copy")
    other = Store.make(tmp_path / "other")
    (store.folder / "keep.json").unlink()
    assert (
        merge_keeps(Catalogue(Store(store.folder), trust_cache=False), HERE, [other, Store(tmp_path / "copy")]).mended
        == 1
    )
    assert Store(store.folder).info == Store(tmp_path / "copy").info


def test_only_what_is_named_so_is_of_the_keep(tmp_path: Path) -> None:
    """Whatever else a file tool leaves in the folders is passed over."""
    store = Store.make(tmp_path / "keep")
    kept(store, home_with(tmp_path / "home", {transcript(1): lines(1, 5)}))
    (pack,) = store.pack_files()
    (pack.with_name("pack (copy).zst")).write_bytes(b"x")
    (pack.with_name(f"{pack.name}.tmp")).write_bytes(b"x")
    (pack.with_name(f"{'0' * 64}.zst")).symlink_to(pack)
    assert store.pack_files() == [pack]


def test_a_write_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be put on the disk has no name there, and the one before stays."""
    files.write_file(tmp_path / "name", b"before")

    def failing(_handle: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(OSError, match="Input/output"):
        files.write_file(tmp_path / "name", b"after")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("name", b"before")]


def test_who_takes_away_is_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While anybody adds, nothing is taken away, and the other way round; many may add."""
    monkeypatch.setattr("threadline.locks.TIMEOUT_SECONDS", 0.1)
    store = Store.make(tmp_path / "keep")
    with store.adding("one_1"), store.adding("two_2"), pytest.raises(IndexBusy), store.removing("three_3"):
        pass
    with store.removing("one_1"), pytest.raises(IndexBusy), store.adding("two_2"):
        pass
    with store.removing("two_2"):
        pass


def test_a_dictionary_is_named_by_a_hash_alone(tmp_path: Path) -> None:
    """No name that a manifest or pack tells leads out of the folder."""
    (tmp_path / "secret").write_bytes(b"x")
    store = Store.make(tmp_path / "keep")
    with pytest.raises(Unreadable, match="not the hash of a dictionary"):
        store.dictionary("../../secret")


def test_a_machine_is_known_again(tmp_path: Path) -> None:
    """The id of a machine is made once; what is no id is replaced."""
    first = this_machine(tmp_path / "data")
    assert this_machine(tmp_path / "data") == first
    (tmp_path / "data" / "machine").write_text("../..\n")
    assert this_machine(tmp_path / "data").id != "../.."
    assert HERE.id == "here_1"


def test_where_a_keep_lies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The place that is named counts, else the platform's folder for data."""
    monkeypatch.setenv("THREADLINE_KEEP", str(tmp_path))
    assert default_folder() == tmp_path
    monkeypatch.delenv("THREADLINE_KEEP")
    assert default_folder().parts[-2:] == ("threadline", "keep")
