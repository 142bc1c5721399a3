"""A keep may be killed at any moment by any writer: nothing that was kept is missing afterwards."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from random import Random

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
    use_small_packs,
)
from tests.keep.steps import Step, intercept_steps, killed_at
from tests.profiles import scale_examples

from threadline.keep import Catalogue, Store, forget_session, merge_keeps, repack

pytestmark = pytest.mark.crash

KILLS = max(3, scale_examples(20))
_CHECK_INTERVAL = 10
_PREAMBLE = """
import sys, pathlib
from threadline.find import homes
from threadline.keep import pack
from threadline.keep.catalogue import Catalogue
from threadline.keep.keep import run_keep as keep
from threadline.keep.machine import Machine
from threadline.keep.merge import merge_keeps as merge
from threadline.keep.forget import repack
from threadline.keep.store import Store
pack.FRAME_SIZE, pack.PACK_SIZE = 100_000, 200_000
machine = Machine("first_1", "first", pathlib.Path(sys.argv[2]))
print("begun", flush=True)
store = Store.make(pathlib.Path(sys.argv[1]))
"""
WORK = {
    "keep": _PREAMBLE + "keep(Catalogue(store, machine.folder), homes(sys.argv[3]), machine)",
    "merge": _PREAMBLE
    + "merge(Catalogue(store, machine.folder, trust_cache=False), machine, [Store(pathlib.Path(sys.argv[3]))])",
    "pack": _PREAMBLE + "repack(Catalogue(store, machine.folder, trust_cache=False), machine)",
}


def run_and_kill(code: str, seconds: float | None, *arguments: object) -> bool:
    """Start it, and kill it after that time, if any. Returns whether it was still at work."""
    with start_process(code, *arguments) as process:
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        process.kill()
        _out, err = process.communicate()
    assert err == b""
    return process.returncode == -signal.SIGKILL


class Kills:
    """Kills of one kind of work, spread over its duration."""

    def __init__(self, name: str, random: Random) -> None:
        self.code = WORK[name]
        self.killed = 0
        self._random = random
        self._duration = 1.0

    def kill(self, *arguments: object) -> None:
        """Do the work, and kill it at some moment. If it finished before, that is its duration."""
        began = time.monotonic()
        if run_and_kill(self.code, self._random.uniform(0, self._duration), *arguments):
            self.killed += 1
            self._duration *= 1.02
        else:
            self._duration = min(self._duration, time.monotonic() - began) * 0.8


def test_killed_at_random_moments(tmp_path: Path) -> None:
    """Keep, merge and pack, each killed repeatedly: verify is clean, and everything that was kept is there."""
    random = Random(3)  # noqa: S311 - seeded, so that a failure comes again
    here, there = ChangingHome(tmp_path / "here", 1), ChangingHome(tmp_path / "there", 2)
    folder, cache, other = tmp_path / "keep", tmp_path / "memory", Store.make(tmp_path / "other")
    kills = {name: Kills(name, random) for name in WORK}
    targets = dict(zip(WORK, (KILLS - 2 * (KILLS // 3), KILLS // 3, KILLS // 3), strict=True))
    for number in count():
        pending = [name for name in WORK if kills[name].killed < targets[name]]
        if not pending or number > 8 * KILLS:
            break
        name = pending[number % len(pending)]
        here.change()
        arguments: tuple[Path, ...] = (here.path,)
        if name == "merge":
            there.change()
            keep_home(other, there.path, SECOND)
            arguments = (other.folder,)
        elif name == "pack":
            run_and_kill(WORK["keep"], None, folder, cache, here.path)
            arguments = ()
        before = stored_versions(Store.make(folder))
        kills[name].kill(folder, cache, *arguments)
        assert_intact(Store.make(folder), before)
        if number % _CHECK_INTERVAL == 0:
            check_recovery(folder, cache, here, other)
    assert sum(kill.killed for kill in kills.values()) == KILLS
    check_recovery(folder, cache, here, other)


def check_recovery(folder: Path, cache: Path, here: ChangingHome, other: Store) -> None:
    """The next process finishes what was killed: no unfinished files, and both homes are complete."""
    store = Store.make(folder)
    before = stored_versions(store)
    for name, arguments in (("keep", (here.path,)), ("merge", (other.folder,)), ("pack", ())):
        run_and_kill(WORK[name], None, folder, cache, *arguments)
    assert unfinished_files(store) == []
    assert newest_files(store, here.path) == files_on_disk(here.path)
    assert stored_versions(store) >= stored_versions(other)
    assert_intact(store, before)


def prepare_first_run(make_store: Callable[[], Store], home: ChangingHome, _other: Store) -> Callable[[], object]:
    """Returns the first run over a home."""
    return lambda: keep_home(make_store(), home.path)


def prepare_second_run(make_store: Callable[[], Store], home: ChangingHome, _other: Store) -> Callable[[], object]:
    """Keeps a home once, changes it, and returns the second run."""
    keep_home(make_store(), home.path)
    home.change()
    return lambda: keep_home(make_store(), home.path)


def prepare_merge(make_store: Callable[[], Store], home: ChangingHome, other: Store) -> Callable[[], object]:
    """Keeps a home, and returns a merge of another keep."""
    keep_home(make_store(), home.path)
    return lambda: merge_keeps(Catalogue(make_store(), trust_cache=False), FIRST, [other])


def prepare_pack(make_store: Callable[[], Store], home: ChangingHome, _other: Store) -> Callable[[], object]:
    """Keeps a home three times, and returns a repack."""
    for _ in range(3):
        home.change()
        keep_home(make_store(), home.path)
    return lambda: repack(Catalogue(make_store(), trust_cache=False), FIRST)


PREPARATIONS = {"first": prepare_first_run, "later": prepare_second_run, "merge": prepare_merge, "pack": prepare_pack}


@pytest.mark.smoke
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
@pytest.mark.parametrize("name", PREPARATIONS)
def test_killed_at_each_step(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between any two file operations, or in the middle of a write. The next process continues."""
    use_small_packs(monkeypatch)
    folder, saved = tmp_path / "keep", tmp_path / "saved"
    home, there = ChangingHome(tmp_path / "here", 4, 0.4), ChangingHome(tmp_path / "there", 5, 0.4)
    other = Store.make(tmp_path / "other")
    keep_home(other, there.path, SECOND)
    work = PREPARATIONS[name](lambda: Store.make(folder), home, other)
    if folder.exists():
        shutil.copytree(folder, saved)
    before = stored_versions(Store(saved)) if saved.exists() else frozenset()
    for number in count(1, max(1, 48 // KILLS)):
        shutil.rmtree(folder, ignore_errors=True)
        if saved.exists():
            shutil.copytree(saved, folder)
        if not killed_at(number, work):
            break
        if (folder / "keep.json").exists():
            assert_intact(Store(folder), before)
        work()
        store = Store(folder)
        assert_intact(store, before)
        assert unfinished_files(store) == []
        assert newest_files(store, home.path) == files_on_disk(home.path)
    assert number > 4


@pytest.mark.smoke
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_killed_forget_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At each step: what others need stays, and after the next run no byte of it is in the packs."""
    use_small_packs(monkeypatch)
    folder, saved = tmp_path / "keep", tmp_path / "saved"
    home = ChangingHome(tmp_path / "here", 6, 0.4)
    store = Store.make(saved)
    keep_home(store, home.path)
    home.change()
    keep_home(store, home.path)
    forgotten = max((home.path / "projects").glob("*/*-*.jsonl"), key=lambda path: path.stat().st_size)
    session = forgotten.stem
    secret = forgotten.read_bytes().splitlines()[-2]
    others = frozenset(version for version in stored_versions(store) if session not in version[2])
    for number in count(1, max(1, 24 // KILLS)):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(saved, folder)
        if not killed_at(
            number, lambda: forget_session(Catalogue(Store(folder), trust_cache=False), FIRST, session, (), "asked to")
        ):
            break
        assert_intact(Store(folder), others)
        is_listed = any(session in version[2] for version in stored_versions(Store(folder)))
        if is_listed:
            continue
        keep_home(Store(folder), home.path)
        assert_intact(Store(folder), others)
        assert not packs_contain(Store(folder), secret)
    assert number > 4


def packs_contain(store: Store, data: bytes) -> bool:
    """Whether a pack contains the bytes. Each pack is read completely, regardless of its table."""
    import zstandard  # noqa: PLC0415 - only this test reads packs by hand

    for path in store.pack_files():
        with path.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True) as raw:
            if data in raw.read():
                return True
    return False


@pytest.mark.parametrize("name", PREPARATIONS)
def test_files_are_synced_in_order(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is synced before it is renamed, and names before a manifest refers to them or other files are removed."""
    use_small_packs(monkeypatch)
    home, there = ChangingHome(tmp_path / "here", 7, 0.4), ChangingHome(tmp_path / "there", 8, 0.4)
    other = Store.make(tmp_path / "other")
    keep_home(other, there.path, SECOND)
    work = PREPARATIONS[name](lambda: Store.make(tmp_path / "keep"), home, other)
    steps: list[Step] = []
    with intercept_steps(steps.append):
        work()
    dirty: set[Path] = set()
    unnamed: set[Path] = set()
    for step in steps:
        if step.name in ("begin", "write"):
            dirty.add(step.path)
        elif step.name == "sync":
            dirty.discard(step.path)
            unnamed = {path for path in unnamed if path.parent != step.path}
        elif step.to is not None:
            assert step.path not in dirty
            assert step.to.parent.name != "runs" or not {path for path in unnamed if path.parent.name != "runs"}
            unnamed.add(step.to)
        elif step.name == "remove" and step.path.suffix != ".new":
            assert not unnamed
    assert not unnamed
    assert {step.name for step in steps} >= {"begin", "write", "sync", "rename"}
