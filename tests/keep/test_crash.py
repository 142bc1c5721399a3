"""A keep may be killed at any moment, by whatever writes to it: nothing that was kept is missing afterwards."""

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
    assert_whole,
    held,
    kept,
    leftovers,
    newest,
    on_disk,
    small_packs,
    started,
)
from tests.keep.steps import Step, dies_at, stepping
from tests.profiles import scale_examples

from threadline.keep import Catalogue, Store, forget_session, merge_keeps, repack

pytestmark = pytest.mark.crash

KILLS = max(3, scale_examples(20))
_OFTEN = 10
_BEGIN = """
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
    "keep": _BEGIN + "keep(Catalogue(store, machine.folder), homes(sys.argv[3]), machine)",
    "merge": _BEGIN
    + "merge(Catalogue(store, machine.folder, trust_cache=False), machine, [Store(pathlib.Path(sys.argv[3]))])",
    "pack": _BEGIN + "repack(Catalogue(store, machine.folder, trust_cache=False), machine)",
}


def _run(code: str, seconds: float | None, *arguments: object) -> bool:
    """Start it, and kill it so long after it has begun, if at all; whether it was still at work."""
    with started(code, *arguments) as process:
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        process.kill()
        _out, err = process.communicate()
    assert err == b""
    return process.returncode == -signal.SIGKILL


class Kills:
    """Kills of one kind of work, spread over as long as it takes."""

    def __init__(self, name: str, random: Random) -> None:
        self.code = WORK[name]
        self.killed = 0
        self._random = random
        self._lasts = 1.0

    def kill(self, *arguments: object) -> None:
        """Do the work, and kill it at some moment; if it was done before, that is how long it takes."""
        began = time.monotonic()
        if _run(self.code, self._random.uniform(0, self._lasts), *arguments):
            self.killed += 1
            self._lasts *= 1.02
        else:
            self._lasts = min(self._lasts, time.monotonic() - began) * 0.8


def test_killed_at_random_moments(tmp_path: Path) -> None:
    """Keep, merge and pack, each killed again and again: verify is clean, and all that was kept is there."""
    random = Random(3)  # noqa: S311 - seeded, so that a failure comes again
    here, there = ChangingHome(tmp_path / "here", 1), ChangingHome(tmp_path / "there", 2)
    folder, memory, other = tmp_path / "keep", tmp_path / "memory", Store.make(tmp_path / "other")
    kills = {name: Kills(name, random) for name in WORK}
    most = dict(zip(WORK, (KILLS - 2 * (KILLS // 3), KILLS // 3, KILLS // 3), strict=True))
    for number in count():
        left = [name for name in WORK if kills[name].killed < most[name]]
        if not left or number > 8 * KILLS:
            break
        name = left[number % len(left)]
        here.change()
        given: tuple[Path, ...] = (here.path,)
        if name == "merge":
            there.change()
            kept(other, there.path, SECOND)
            given = (other.folder,)
        elif name == "pack":
            _run(WORK["keep"], None, folder, memory, here.path)
            given = ()
        before = held(Store.make(folder))
        kills[name].kill(folder, memory, *given)
        assert_whole(Store.make(folder), before)
        if number % _OFTEN == 0:
            _gone_on_with(folder, memory, here, other)
    assert sum(kill.killed for kill in kills.values()) == KILLS
    _gone_on_with(folder, memory, here, other)


def _gone_on_with(folder: Path, memory: Path, here: ChangingHome, other: Store) -> None:
    """What was killed is finished by the next to come: nothing lies about, and both homes are there as they are."""
    store = Store.make(folder)
    before = held(store)
    for name, given in (("keep", (here.path,)), ("merge", (other.folder,)), ("pack", ())):
        _run(WORK[name], None, folder, memory, *given)
    assert leftovers(store) == []
    assert newest(store, here.path) == on_disk(here.path)
    assert held(store) >= held(other)
    assert_whole(store, before)


def _first(made: Callable[[], Store], home: ChangingHome, _other: Store) -> Callable[[], object]:
    return lambda: kept(made(), home.path)


def _later(made: Callable[[], Store], home: ChangingHome, _other: Store) -> Callable[[], object]:
    kept(made(), home.path)
    home.change()
    return lambda: kept(made(), home.path)


def _merge(made: Callable[[], Store], home: ChangingHome, other: Store) -> Callable[[], object]:
    kept(made(), home.path)
    return lambda: merge_keeps(Catalogue(made(), trust_cache=False), FIRST, [other])


def _pack(made: Callable[[], Store], home: ChangingHome, _other: Store) -> Callable[[], object]:
    for _ in range(3):
        home.change()
        kept(made(), home.path)
    return lambda: repack(Catalogue(made(), trust_cache=False), FIRST)


EACH = {"first": _first, "later": _later, "merge": _merge, "pack": _pack}


@pytest.mark.smoke
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
@pytest.mark.parametrize("name", EACH)
def test_killed_at_each_step(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between any two things that reach the disk, or in the middle of a write; the next one goes on."""
    small_packs(monkeypatch)
    folder, saved = tmp_path / "keep", tmp_path / "saved"
    home, there = ChangingHome(tmp_path / "here", 4, 0.4), ChangingHome(tmp_path / "there", 5, 0.4)
    other = Store.make(tmp_path / "other")
    kept(other, there.path, SECOND)
    work = EACH[name](lambda: Store.make(folder), home, other)
    if folder.exists():
        shutil.copytree(folder, saved)
    before = held(Store(saved)) if saved.exists() else frozenset()
    for number in count(1, max(1, 48 // KILLS)):
        shutil.rmtree(folder, ignore_errors=True)
        if saved.exists():
            shutil.copytree(saved, folder)
        if not dies_at(number, work):
            break
        if (folder / "keep.json").exists():
            assert_whole(Store(folder), before)
        work()
        store = Store(folder)
        assert_whole(store, before)
        assert leftovers(store) == []
        assert newest(store, home.path) == on_disk(home.path)
    assert number > 4


@pytest.mark.smoke
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_killed_forget_is_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At each step of it: what others need stays, and once the next run is done no byte of it is in the packs."""
    small_packs(monkeypatch)
    folder, saved = tmp_path / "keep", tmp_path / "saved"
    home = ChangingHome(tmp_path / "here", 6, 0.4)
    store = Store.make(saved)
    kept(store, home.path)
    home.change()
    kept(store, home.path)
    going = max((home.path / "projects").glob("*/*-*.jsonl"), key=lambda path: path.stat().st_size)
    session = going.stem
    secret = going.read_bytes().splitlines()[-2]
    stays = frozenset(one for one in held(store) if session not in one[2])
    for number in count(1, max(1, 24 // KILLS)):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(saved, folder)
        if not dies_at(
            number, lambda: forget_session(Catalogue(Store(folder), trust_cache=False), FIRST, session, (), "asked to")
        ):
            break
        assert_whole(Store(folder), stays)
        told = any(session in one[2] for one in held(Store(folder)))
        if told:
            continue
        kept(Store(folder), home.path)
        assert_whole(Store(folder), stays)
        assert not _holds(Store(folder), secret)
    assert number > 4


def _holds(store: Store, data: bytes) -> bool:
    """Whether some bytes are in a pack; each is read from beginning to end, whatever its table says."""
    import zstandard  # noqa: PLC0415 - only this test reads packs by hand

    for path in store.pack_files():
        with path.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True) as raw:
            if data in raw.read():
                return True
    return False


@pytest.mark.parametrize("name", EACH)
def test_what_others_rely_on_is_on_the_disk_first(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is synced before it has its name; names are synced before a manifest tells of them, or others go."""
    small_packs(monkeypatch)
    home, there = ChangingHome(tmp_path / "here", 7, 0.4), ChangingHome(tmp_path / "there", 8, 0.4)
    other = Store.make(tmp_path / "other")
    kept(other, there.path, SECOND)
    work = EACH[name](lambda: Store.make(tmp_path / "keep"), home, other)
    steps: list[Step] = []
    with stepping(steps.append):
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
