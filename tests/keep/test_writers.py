"""Several processes write and read a keep at once: all succeed, and nothing is lost."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.changing_home import ChangingHome
from tests.keep.homes import (
    FIRST,
    SECOND,
    assert_intact,
    files_on_disk,
    keep_home,
    newest_files,
    start_process,
    stored_versions,
    unfinished_files,
)
from tests.profiles import scale_examples

from threadline import files
from threadline.keep import Store

WRITING = """
import sys, pathlib, time
from threadline.errors import IndexBusy
from threadline.find import homes
from threadline.keep import pack
from threadline.keep.catalogue import Catalogue
from threadline.keep.keep import run_keep as keep
from threadline.keep.machine import Machine
from threadline.keep.forget import repack
from threadline.keep.store import Store
pack.FRAME_SIZE, pack.PACK_SIZE = 100_000, 200_000
store, machine = Store.make(pathlib.Path(sys.argv[1])), Machine(sys.argv[3], sys.argv[3])
print("begun", flush=True)
until = time.monotonic() + float(sys.argv[4])
done = 0
while time.monotonic() < until:
    try:
        if sys.argv[2] == "-":
            repack(Catalogue(store, trust_cache=False), machine)
        else:
            keep(Catalogue(store), homes(sys.argv[2]), machine)
        done += 1
    except IndexBusy:
        pass
print(done)
"""
READING = """
import sys, pathlib, time
from threadline.keep.catalogue import Catalogue
from threadline.keep.store import Store
print("begun", flush=True)
until = time.monotonic() + float(sys.argv[2])
done = 0
while time.monotonic() < until:
    catalogue = Catalogue(Store(pathlib.Path(sys.argv[1])))
    for version in catalogue.newest():
        assert sum(map(len, catalogue.data(version))) == version.size, version
    assert not catalogue.problems, catalogue.problems
    done += 1
print(done)
"""


@pytest.mark.crash
def test_concurrent_writers_and_readers(tmp_path: Path) -> None:
    """Two processes of one machine, one of another, one that packs, and readers."""
    here, there = ChangingHome(tmp_path / "here", 36, 0.6), ChangingHome(tmp_path / "there", 37, 0.6)
    store = Store.make(tmp_path / "keep")
    keep_home(store, here.path)
    seconds = 2.0 + scale_examples(6)
    writers = [(here.path, FIRST.id), (here.path, FIRST.id), (there.path, SECOND.id), ("-", "third_3")]
    processes = [start_process(WRITING, store.folder, home, name, seconds) for home, name in writers]
    processes += [start_process(READING, store.folder, seconds) for _ in range(2)]
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        here.change()
        there.change()
        before = stored_versions(store)
        time.sleep(0.2)
        assert before <= stored_versions(store)
    outputs = [process.communicate() for process in processes]
    assert [err.decode() for _out, err in outputs] == [""] * len(processes)
    assert all(int(out) for out, _err in outputs)
    keep_home(store, here.path)
    keep_home(store, there.path, SECOND)
    assert_intact(store)
    assert newest_files(store, here.path) == files_on_disk(here.path)
    assert newest_files(store, there.path, SECOND) == files_on_disk(there.path)
    assert unfinished_files(store) == []


def test_temporary_file_that_another_machine_finishes_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer looks for abandoned temporary files while another machine renames its own: both succeed."""
    store = Store.make(tmp_path / "keep")
    unfinished = store.packs / f"{SECOND.id}-1-a0{files.TEMPORARY_SUFFIX}"
    unfinished.touch()

    def rename_and_name_owner(_name: str) -> str:
        unfinished.rename(store.packs / "other.pack")
        return SECOND.id

    monkeypatch.setattr(files, "temporary_owner", rename_and_name_owner)
    with store.adding(FIRST.id):
        assert (store.packs / "other.pack").exists()
