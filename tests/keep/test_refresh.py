"""A refreshed catalogue equals a newly built one, whatever was written meanwhile."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.keep.stores import HERE, THERE, lines, session_id, transcript_path, write_home
from tests.profiles import scale_examples

from threadline.errors import NotFound
from threadline.find import homes
from threadline.keep import (
    Catalogue,
    Machine,
    Store,
    Version,
    accept_forgotten,
    forget_session,
    merge_keeps,
    repack,
    run_keep,
)
from threadline.keep import catalogue as catalogue_module
from threadline.keep.catalogue import PieceList
from threadline.keep.manifest import FileRow, RunRow

STEPS = ("keep", "keep", "keep", "other", "forget", "merge", "merge", "accept", "pack", "vanish")


def _assert_equal(refreshed: Catalogue, built: Catalogue) -> None:
    assert [manifest.hash for manifest in refreshed.manifests] == [manifest.hash for manifest in built.manifests]
    assert refreshed.versions == built.versions
    assert (refreshed.pending, refreshed.forgotten.rows) == (built.pending, built.forgotten.rows)
    assert sorted(map(repr, refreshed.forgotten_versions)) == sorted(map(repr, built.forgotten_versions))
    assert refreshed.located.keys() == built.located.keys()
    assert refreshed.problems == built.problems
    for version in built.all_versions():
        assert b"".join(refreshed.data(version)) == b"".join(built.data(version))


class Keeps:
    """Two machines that keep into one folder, a second keep to merge, and a catalogue that is only refreshed."""

    def __init__(self, folder: Path, random: Random, *, cached: bool) -> None:
        self.random = random
        self.store, self.other = Store.make(folder / "keep"), Store.make(folder / "other")
        self.homes = {HERE: folder / "here", THERE: folder / "there"}
        self.cache = folder / "cache" if cached else None
        self.catalogue = Catalogue(self.store, self.cache)

    def _change(self, machine: Machine) -> Path:
        number = self.random.randrange(4)
        path = transcript_path(number)
        home = write_home(self.homes[machine], {})
        before = (home / path).read_bytes() if (home / path).exists() and self.random.random() < 0.7 else b""
        if before and self.random.random() < 0.2:
            (home / path).unlink()
            return home
        return write_home(home, {path: before + lines(self.random.randrange(50), 20)})

    def _keep(self, store: Store, machine: Machine) -> None:
        run_keep(Catalogue(store), homes(str(self._change(machine))), machine)

    def _forget(self, catalogue: Catalogue, machine: Machine) -> None:
        with suppress(NotFound):
            forget_session(catalogue, machine, session_id(self.random.randrange(4)), [], "a test")

    def do(self, step: str) -> None:
        """Do something to the keep with another catalogue."""
        fresh = Catalogue(self.store, trust_cache=False)
        if step == "keep":
            self._keep(self.store, HERE)
        elif step == "other":
            self._keep(self.store, THERE)
        elif step == "merge":
            self._keep(self.other, THERE)
            if self.random.random() < 0.5:
                self._forget(Catalogue(self.other, trust_cache=False), THERE)
            merge_keeps(fresh, HERE, [self.other], forgets=self.random.random() < 0.5)
        elif step == "accept":
            accept_forgotten(fresh, HERE, fresh.pending)
        elif step == "pack":
            repack(fresh, HERE)
        elif step == "forget":
            self._forget(fresh, HERE)
        elif self.store.run_files():  # lose a manifest
            self.random.choice(self.store.run_files()).unlink()


@given(st.lists(st.sampled_from(STEPS), min_size=1, max_size=8), st.integers(0, 1000), st.booleans())
@settings(max_examples=scale_examples(40), deadline=None)
def test_refreshed_catalogue_equals_a_new_one(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str], seed: int, cached: bool
) -> None:
    """After any sequence of runs, merges, forgets, repacks and lost manifests, by two machines."""
    keeps = Keeps(tmp_path_factory.mktemp("keeps"), Random(seed), cached=cached)  # noqa: S311 - made-up days
    for step in steps:
        keeps.do(step)
        if keeps.random.random() < 0.7:
            keeps.catalogue.refresh()
            _assert_equal(keeps.catalogue, Catalogue(keeps.store))
    keeps.catalogue.refresh()
    _assert_equal(keeps.catalogue, Catalogue(keeps.store))


def test_run_updates_its_catalogue(tmp_path: Path) -> None:
    """After a run, the catalogue contains what the run stored, without being rebuilt."""
    store = Store.make(tmp_path / "keep")
    catalogue = Catalogue(store)
    for number in range(4):
        home = write_home(tmp_path / "home", {transcript_path(number % 2): lines(number, 30)})
        run_keep(catalogue, homes(str(home)), HERE)
        _assert_equal(catalogue, Catalogue(store))


def test_no_manifest_is_read_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refresh reads only new manifests, and a run derives only the versions that it adds."""
    store = Store.make(tmp_path / "keep")
    for number in range(3):
        home = write_home(tmp_path / "home", {transcript_path(number): lines(number, 30)})
        run_keep(Catalogue(store), homes(str(home)), HERE)
    catalogue = Catalogue(store)
    versions: list[str] = []
    make_version = catalogue_module.make_version

    def counting_make_version(run: RunRow, row: FileRow, pieces: PieceList) -> Version:
        versions.append(row.path)
        return make_version(run, row, pieces)

    monkeypatch.setattr(catalogue_module, "make_version", counting_make_version)
    monkeypatch.setattr(catalogue_module, "read_manifest_text", lambda *_: pytest.fail("a manifest was read again"))
    write_home(home, {transcript_path(9): lines(9, 30)})
    run_keep(catalogue, homes(str(home)), HERE)
    catalogue.refresh()
    assert versions == [transcript_path(9)]
