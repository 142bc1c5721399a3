"""The folder of a keep."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from tests.keep.stores import HERE, keep_home, kept_versions, lines, transcript_path, write_home

from threadline import files
from threadline.errors import IndexBusy, NotFound, Unreadable
from threadline.find import homes
from threadline.keep import (
    Catalogue,
    Store,
    clear_kept_homes,
    default_folder,
    kept_homes,
    merge_keeps,
    repack,
    this_machine,
)
from threadline.keep.manifest import FileRow


def test_folder_without_a_keep_is_an_error(tmp_path: Path) -> None:
    """The message says how to create one."""
    with pytest.raises(NotFound, match="threadline keep"):
        Store(tmp_path)


def test_keep_is_not_created_in_a_used_folder(tmp_path: Path) -> None:
    """A folder with other files is left as it is."""
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(Unreadable, match=r"letter\.txt"):
        Store.make(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_interrupted_creation_is_finished(tmp_path: Path) -> None:
    """Whatever a killed `make` left, the next one completes it."""
    store = Store.make(tmp_path / "keep")
    (store.folder / "keep.json").rename(store.folder / "keep-123-0.new")
    assert Store.make(tmp_path / "keep").problem is None


@pytest.mark.parametrize("id_", ["..", "../../elsewhere", "a\n"])
def test_id_does_not_lead_out_of_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, id_: str) -> None:
    """Folders are named after the id of a keep, which may come from anywhere."""
    monkeypatch.setenv("XDG_DATA_HOME", os.fspath(tmp_path / "data"))
    store = Store.make(tmp_path / "keep")
    home = write_home(tmp_path / "home", {transcript_path(1): lines(1, 5)})
    keep_home(store, home)
    info = replace(store.info, id=id_)
    (store.folder / "keep.json").write_bytes(msgspec.json.encode(replace(info, check=info.expected_check())))
    (home / transcript_path(1)).unlink()
    cache = tmp_path / "cache"
    kept = kept_homes(store.folder, homes(home), cache)
    assert [path.name for path in cache.rglob("*.jsonl")] == [Path(transcript_path(1)).name]
    assert all(found.path.is_relative_to(cache / "kept") for found in kept.homes)
    clear_kept_homes(store.folder, cache)
    assert cache.is_dir()
    assert Store(store.folder).problem is not None


def test_mtime_that_no_file_can_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A merged keep may contain one. The file is reported, and the others are read."""
    monkeypatch.setenv("XDG_DATA_HOME", os.fspath(tmp_path / "data"))
    store = Store.make(tmp_path / "keep")
    home = write_home(tmp_path / "home", {transcript_path(number): lines(number, 5) for number in (1, 2)})
    keep_home(store, home)
    catalogue = Catalogue(store)
    (rows,) = (manifest.rows for manifest in catalogue.manifests)
    hostile = [
        replace(row, mtime_ns=10**40) if isinstance(row, FileRow) and "0001-" in row.path else row for row in rows
    ]
    store.put_run([catalogue.next_run(HERE.id, HERE.label, "2026-11-01T00:00:00Z", [str(home)]), *hostile])
    for number in (1, 2):
        (home / transcript_path(number)).unlink()
    kept = kept_homes(store.folder, homes(home), tmp_path / "cache")
    assert [path.name for path in (tmp_path / "cache").rglob("*.jsonl")] == [Path(transcript_path(2)).name]
    assert [problem for problem in kept.problems if transcript_path(1) in problem]


def test_later_version_is_an_error(tmp_path: Path) -> None:
    """A keep of a later version is refused, and the message says to update."""
    store = Store.make(tmp_path / "keep")
    later = msgspec.structs.replace(store.info, version=2)
    later = msgspec.structs.replace(later, check=later.expected_check())
    (store.folder / "keep.json").write_bytes(msgspec.json.encode(later))
    with pytest.raises(Unreadable, match="Update threadline"):
        Store(store.folder)


@pytest.mark.parametrize(
    "damage", [b"", b"{}", b"\xff\xfe", b'{"format":"threadline keep","version":1,"id":"x"}', None]
)
def test_damaged_keep_json_is_rebuilt(tmp_path: Path, damage: bytes | None) -> None:
    """With a damaged or missing keep.json, everything is readable, and the next run rewrites it as it was."""
    store = Store.make(tmp_path / "keep")
    machine = replace(HERE, folder=tmp_path / "machine")
    home = write_home(tmp_path / "home", {transcript_path(1): lines(1, 5)})
    keep_home(store, home, machine)
    info_file = store.folder / "keep.json"
    content = info_file.read_bytes()
    if damage is None:
        info_file.unlink()
    else:
        info_file.write_bytes(damage)
    assert kept_versions(Store(store.folder))[transcript_path(1)] == [lines(1, 5)]
    with pytest.raises(Unreadable, match="`threadline keep` rebuilds it"):
        repack(Catalogue(Store(store.folder), machine.folder, trust_cache=False), machine)
    write_home(home, {transcript_path(2): lines(2, 5)})
    assert keep_home(Store.make(store.folder), home, machine).new == 1
    assert info_file.read_bytes() == content
    assert set(kept_versions(Store(store.folder))) == {transcript_path(1), transcript_path(2)}


def test_keep_json_is_repaired_from_a_copy(tmp_path: Path) -> None:
    """Merging a copy restores keep.json. Merging another keep does not."""
    store = Store.make(tmp_path / "keep")
    keep_home(store, write_home(tmp_path / "home", {transcript_path(1): lines(1, 5)}))
    shutil.copytree(store.folder, tmp_path / "copy")
    other = Store.make(tmp_path / "other")
    (store.folder / "keep.json").unlink()
    assert (
        merge_keeps(Catalogue(Store(store.folder), trust_cache=False), HERE, [other, Store(tmp_path / "copy")]).mended
        == 1
    )
    assert Store(store.folder).info == Store(tmp_path / "copy").info


def test_ignores_files_with_other_names(tmp_path: Path) -> None:
    """Other files that a tool leaves in the folders are ignored."""
    store = Store.make(tmp_path / "keep")
    keep_home(store, write_home(tmp_path / "home", {transcript_path(1): lines(1, 5)}))
    (pack,) = store.pack_files()
    (pack.with_name("pack (copy).zst")).write_bytes(b"x")
    (pack.with_name(f"{pack.name}.tmp")).write_bytes(b"x")
    (pack.with_name(f"{'0' * 64}.zst")).symlink_to(pack)
    assert store.pack_files() == [pack]


def test_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that cannot be synced gets no name, and the previous one stays."""
    files.write_file(tmp_path / "name", b"before")

    def fail(_handle: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="Input/output"):
        files.write_file(tmp_path / "name", b"after")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("name", b"before")]


def test_removing_is_exclusive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While anyone adds, nothing is removed, and vice versa. Several may add."""
    monkeypatch.setattr("threadline.locks.TIMEOUT_SECONDS", 0.1)
    store = Store.make(tmp_path / "keep")
    with store.adding("one_1"), store.adding("two_2"), pytest.raises(IndexBusy), store.removing("three_3"):
        pass
    with store.removing("one_1"), pytest.raises(IndexBusy), store.adding("two_2"):
        pass
    with store.removing("two_2"):
        pass


def test_dictionary_name_must_be_a_hash(tmp_path: Path) -> None:
    """No name in a manifest or pack leads out of the folder."""
    (tmp_path / "secret").write_bytes(b"x")
    store = Store.make(tmp_path / "keep")
    with pytest.raises(Unreadable, match="not the hash of a dictionary"):
        store.dictionary("../../secret")


def test_machine_id_is_stable(tmp_path: Path) -> None:
    """The id of a machine is created once. An invalid id is replaced."""
    first = this_machine(tmp_path / "data")
    assert this_machine(tmp_path / "data") == first
    (tmp_path / "data" / "machine").write_text("../..\n")
    assert this_machine(tmp_path / "data").id != "../.."
    assert HERE.id == "here_1"


def test_default_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The variable counts, otherwise the platform's data folder."""
    monkeypatch.setenv("THREADLINE_KEEP", str(tmp_path))
    assert default_folder() == tmp_path
    monkeypatch.delenv("THREADLINE_KEEP")
    assert default_folder().parts[-2:] == ("threadline", "keep")
