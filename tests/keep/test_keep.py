"""A run keeps what is new, and every version that was ever kept is restored byte for byte."""

from __future__ import annotations

import os
import shutil
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from msgspec.structs import replace
from tests.keep.stores import HERE, THERE, is_clean, keep_home, kept_versions, lines, transcript_path, write_home
from tests.profiles import scale_examples

from threadline import files
from threadline.errors import IndexBusy, Unreadable
from threadline.files import AtomicFile
from threadline.find import homes
from threadline.keep import Catalogue, Machine, Store, run_keep, verify_keep
from threadline.keep import keep as keeping
from threadline.keep.cache import KeepCache
from threadline.keep.manifest import FileRow
from threadline.keep.pack import DictionaryTrainer
from threadline.model.places import ProblemKind


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty keep."""
    return Store.make(tmp_path / "keep")


def keep_size(store: Store) -> int:
    """The size of all files of a keep."""
    return sum(path.stat().st_size for path in store.folder.rglob("*") if path.is_file())


class _HomeOverTime(RuleBasedStateMachine):
    """A home that changes in any way, with runs in between."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="threadline-keep-"))
        self.store = Store.make(self.folder / "keep")
        self.home = write_home(self.folder / "home", {})
        self.seen: dict[str, list[bytes]] = {}
        self.clock = 1_700_000_000

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    def _touch(self, place: Path) -> None:
        self.clock += 1
        os.utime(place, (self.clock, self.clock))

    def _place(self, number: int) -> Path:
        return self.home / transcript_path(number)

    @rule(number=st.integers(0, 3), seed=st.integers(0, 9), count=st.integers(0, 400))
    def write(self, number: int, seed: int, count: int) -> None:
        """A transcript is written, whatever it contained."""
        write_home(self.home, {transcript_path(number): lines(seed, count)})
        self._touch(self._place(number))

    @rule(number=st.integers(0, 3), more=st.binary(max_size=50) | st.builds(lines, st.integers(0, 9), st.just(300)))
    def append(self, number: int, more: bytes) -> None:
        """A transcript grows."""
        if self._place(number).exists():
            with self._place(number).open("ab") as file:
                file.write(more)
            self._touch(self._place(number))

    @rule(number=st.integers(0, 3), part=st.floats(0, 1))
    def truncate(self, number: int, part: float) -> None:
        """A transcript is truncated."""
        if self._place(number).exists():
            os.truncate(self._place(number), int(self._place(number).stat().st_size * part))
            self._touch(self._place(number))

    @rule(number=st.integers(0, 3), at=st.floats(0, 1))
    def overwrite(self, number: int, at: float) -> None:
        """A byte in the middle changes, but the mtime does not."""
        place = self._place(number)
        if place.exists() and place.stat().st_size:
            before = place.stat()
            with place.open("r+b") as file:
                file.seek(int((before.st_size - 1) * at))
                file.write(b"#")
            os.utime(place, ns=(before.st_atime_ns, before.st_mtime_ns))

    @rule(source=st.integers(0, 3), destination=st.integers(0, 3))
    def rename(self, source: int, destination: int) -> None:
        """A transcript replaces another."""
        if self._place(source).exists() and source != destination:
            self._place(source).replace(self._place(destination))

    @rule(number=st.integers(0, 3))
    def delete(self, number: int) -> None:
        """A transcript is deleted."""
        self._place(number).unlink(missing_ok=True)

    @rule()
    def run(self) -> None:
        """A run. What it saw must be restorable forever."""
        assert not keep_home(self.store, self.home).problems
        for number in range(4):
            if self._place(number).exists():
                data = self._place(number).read_bytes()
                versions = self.seen.setdefault(transcript_path(number), [])
                if data not in versions:
                    versions.append(data)

    @invariant()
    def everything_comes_back(self) -> None:
        """The keep contains exactly the versions that runs saw."""
        versions = kept_versions(self.store)
        assert {path: set(contents) for path, contents in versions.items()} == {
            path: set(contents) for path, contents in self.seen.items()
        }


TestDays = _HomeOverTime.TestCase
TestDays.settings = settings(max_examples=scale_examples(25), stateful_step_count=20)


def test_unchanged_home_costs_nothing(store: Store, tmp_path: Path) -> None:
    """A second run over the same home writes no file."""
    home = write_home(tmp_path / "home", {transcript_path(1): lines(1, 500)})
    keep_home(store, home)
    before = sorted(store.folder.rglob("*"))
    again = keep_home(store, home)
    assert sorted(store.folder.rglob("*")) == before
    assert (again.read, again.stored, again.new) == (0, 0, 0)


@pytest.mark.slow
def test_growth_costs_only_the_growth(store: Store, tmp_path: Path) -> None:
    """A file that grew by a thousandth takes at most a hundredth of its size, including the manifest."""
    home = write_home(tmp_path / "home", {transcript_path(1): lines(1, 30_000)})
    keep_home(store, home)
    before = keep_size(store)
    with (home / transcript_path(1)).open("ab") as file:
        file.write(lines(2, 30))
    run = keep_home(store, home)
    assert run.grown == 1
    assert run.read == len(lines(2, 30))
    assert keep_size(store) - before < before / 100


def test_same_content_is_stored_once(store: Store, tmp_path: Path) -> None:
    """Sessions with the same content, or one that moved to another project, are stored once."""
    home = write_home(tmp_path / "home", {transcript_path(1): lines(1, 5000)})
    keep_home(store, home)
    before = keep_size(store)
    write_home(home, {transcript_path(2): lines(1, 5000), transcript_path(1, "-moved"): lines(1, 5000) + b"{}\n"})
    run = keep_home(store, home)
    assert run.new == 2
    assert keep_size(store) - before < before / 50


def test_detects_change_in_the_middle(store: Store, tmp_path: Path) -> None:
    """A file that grew and also changed in the middle is stored as it is."""
    data = bytearray(lines(1, 3000))
    home = write_home(tmp_path / "home", {transcript_path(1): bytes(data)})
    keep_home(store, home)
    data[len(data) // 2] ^= 1
    data += b"{}\n"
    write_home(home, {transcript_path(1): bytes(data)})
    keep_home(store, home)
    assert kept_versions(store)[transcript_path(1)][-1] == bytes(data)


def test_names_that_are_not_utf8_round_trip(store: Store, tmp_path: Path) -> None:
    """A home and a project whose names are not UTF-8 are kept, recognised, and listed by their bytes."""
    home = Path(os.fsdecode(os.fsencode(tmp_path) + b"/ho\xffme"))
    path = os.fsdecode(b"projects/-\xfe/" + transcript_path(1).rpartition("/")[2].encode())
    write_home(home, {path: lines(1, 5)})
    keep_home(store, home)
    assert keep_home(store, home).new == 0
    (home / path).unlink()
    assert keep_home(store, home).gone == 1
    (version,) = Catalogue(store).newest()
    assert (version.home, version.path) == (os.fspath(home), path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read all")
def test_unreadable_project_is_not_gone(store: Store, tmp_path: Path) -> None:
    """A project that cannot be entered is a problem. Its files are not marked as gone."""
    home = write_home(tmp_path / "home", {transcript_path(1): lines(1, 5)})
    keep_home(store, home)
    (home / "projects/-work").chmod(0)
    try:
        assert keep_home(store, home).gone == 0
    finally:
        (home / "projects/-work").chmod(0o700)


def test_fifo_does_not_block_a_run(store: Store, tmp_path: Path) -> None:
    """A FIFO in place of a transcript is not waited for, and the others are kept."""
    home = write_home(tmp_path / "home", {transcript_path(1): lines(1, 5), transcript_path(2): lines(2, 5)})
    keep_home(store, home)
    (home / transcript_path(1)).unlink()
    os.mkfifo(home / transcript_path(1))
    write_home(home, {transcript_path(2): lines(3, 5)})
    assert keep_home(store, home).changed == 1
    assert kept_versions(store)[transcript_path(1)] == [lines(1, 5)]


@pytest.mark.slow
def test_rereads_file_replaced_while_reading(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is rewritten while it is read is kept in its final state, not as a mix."""
    home = write_home(tmp_path / "home", {transcript_path(1): lines(1, 8000)})
    once = iter([True])
    real_sample = DictionaryTrainer.sample

    def sample_and_replace(self: DictionaryTrainer, data: bytes) -> None:
        real_sample(self, data)
        if next(once, False):
            (home / transcript_path(1)).write_bytes(lines(2, 12_000))

    monkeypatch.setattr(DictionaryTrainer, "sample", sample_and_replace)
    assert not keep_home(store, home).problems
    assert kept_versions(store)[transcript_path(1)] == [lines(2, 12_000)]


def test_reports_file_that_always_changes(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that changes at every attempt is kept, marked as torn, reported, and read again by the next run."""
    monkeypatch.setattr("threadline.keep.pack._MIN_SAMPLE_SIZE", 20_000)
    home = write_home(tmp_path / "home", {transcript_path(1): lines(1, 1000)})
    numbers = iter(range(2, 99))
    real_sample = DictionaryTrainer.sample

    def sample_and_rewrite(self: DictionaryTrainer, data: bytes) -> None:
        real_sample(self, data)
        (home / transcript_path(1)).write_bytes(lines(next(numbers), 1000))

    with monkeypatch.context() as patched:
        patched.setattr(DictionaryTrainer, "sample", sample_and_rewrite)
        assert [problem.kind for problem in keep_home(store, home).problems] == [ProblemKind.CHANGED]
    assert Catalogue(store).versions.popitem()[1][-1].torn
    assert not keep_home(store, home).problems
    assert kept_versions(store)[transcript_path(1)][-1] == (home / transcript_path(1)).read_bytes()


def test_file_that_grows_while_reading_is_complete(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Appended lines are kept by this run or the next. No line is lost."""
    home = write_home(tmp_path / "home", {transcript_path(1): lines(1, 8000)})
    real_sample = DictionaryTrainer.sample

    def sample_and_append(self: DictionaryTrainer, data: bytes) -> None:
        real_sample(self, data)
        with (home / transcript_path(1)).open("ab") as file:
            file.write(b"{}\n")

    with monkeypatch.context() as patched:
        patched.setattr(DictionaryTrainer, "sample", sample_and_append)
        assert not keep_home(store, home).problems
    keep_home(store, home)
    content = (home / transcript_path(1)).read_bytes()
    assert kept_versions(store)[transcript_path(1)][-1] == content
    assert all(content.startswith(version) for version in kept_versions(store)[transcript_path(1)])


def test_failed_write_ends_the_run(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk is reported, leaves no partial file and damages nothing. The next run continues."""
    home = write_home(tmp_path / "home", {transcript_path(1): lines(1, 500)})
    keep_home(store, home)
    write_home(home, {transcript_path(number): lines(number, 2000) for number in range(2, 9)})

    def raise_disk_full(_file: object, _data: bytes) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(files, "write_all", raise_disk_full)
        with pytest.raises(Unreadable, match="No space left on device"):
            keep_home(store, home)
    assert not list(store.folder.rglob("*.new"))
    assert is_clean(store)
    assert keep_home(store, home).new == 7
    assert is_clean(store)


def test_reuses_packs_of_an_interrupted_run(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is interrupted before its manifest leaves packs, whose pieces the next one reuses."""
    home = write_home(tmp_path / "home", {transcript_path(1): lines(1, 5000)})

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Store, "put_run", interrupt)
        with pytest.raises(KeyboardInterrupt):
            keep_home(store, home)
    packs = store.pack_files()
    assert packs
    assert keep_home(store, home).stored == 0
    assert store.pack_files() == packs
    assert is_clean(store)


def test_clock_may_go_back(store: Store, tmp_path: Path) -> None:
    """The order of versions is that of the runs, whatever the clock says."""
    home = write_home(tmp_path / "home", {transcript_path(1): lines(1, 5)})
    day = datetime(2026, 11, 15, tzinfo=UTC)
    kept_homes = homes(os.fspath(home))
    run_keep(Catalogue(store), kept_homes, HERE, now=lambda: day)
    write_home(home, {transcript_path(1): lines(2, 5)})
    run_keep(Catalogue(store), kept_homes, HERE, now=lambda: day - timedelta(days=400))
    assert kept_versions(store)[transcript_path(1)] == [lines(1, 5), lines(2, 5)]


def test_lost_packs_are_stored_again(store: Store, tmp_path: Path) -> None:
    """If packs are missing, the next run stores what still exists again, even if it did not change."""
    home = write_home(tmp_path / "home", {transcript_path(1): lines(1, 500)})
    keep_home(store, home)
    for path in store.pack_files():
        path.unlink()
    assert not is_clean(store)
    keep_home(store, home)
    assert is_clean(store)


def test_run_reports_damaged_keep(store: Store, tmp_path: Path) -> None:
    """A run over a keep with a damaged manifest or pack reports it, and still keeps what is new."""
    home = write_home(tmp_path / "home", {transcript_path(1): lines(1, 50)})
    keep_home(store, home)
    for path in (*store.run_files(), *store.pack_files()):
        path.write_bytes(path.read_bytes()[:-1])
    write_home(home, {transcript_path(2): lines(2, 50)})
    run = keep_home(store, home)
    assert len(run.problems) == 2
    assert transcript_path(2) in {version.path for version in Catalogue(store).newest()}


def test_packs_removed_during_a_run_are_rewritten(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another machine removes before the manifest is written is stored again."""
    home = write_home(tmp_path / "home", {transcript_path(1): lines(1, 500)})
    keep_home(store, home)
    write_home(home, {transcript_path(2): lines(1, 500)})
    once = iter([True])
    store_files = keeping._KeepRun._store_files

    def store_and_delete(self: keeping._KeepRun, changed: object) -> int:
        stored = store_files(self, changed)  # type: ignore[arg-type]
        if next(once, False):
            for path in store.pack_files():
                path.unlink()
        return stored

    monkeypatch.setattr(keeping._KeepRun, "_store_files", store_and_delete)
    keep_home(store, home)
    assert is_clean(store)


def test_concurrent_runs_of_one_machine_are_refused(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second run of the same machine is refused, one of another machine is not."""
    monkeypatch.setattr("threadline.locks.TIMEOUT_SECONDS", 0.1)
    home = write_home(tmp_path / "home", {transcript_path(1): lines(1, 500)})
    with store.adding(HERE.id):
        with pytest.raises(IndexBusy):
            keep_home(store, home)
        assert keep_home(store, home, THERE).new == 1


def test_machines_do_not_remove_each_others_files(store: Store) -> None:
    """Unfinished files of this machine are removed, those of another are left alone."""
    ours, theirs = (AtomicFile(store.packs, owner=machine.id) for machine in (HERE, THERE))
    with store.adding(HERE.id):
        assert (ours.path.exists(), theirs.path.exists()) == (False, True)
    ours.discard()
    theirs.discard()


def test_cache_does_not_change_results(tmp_path: Path) -> None:
    """With a cache, results are the same, whether it is there, deleted or torn."""
    store = Store.make(tmp_path / "keep")
    machine = Machine("here_1", "here", tmp_path / "memory")
    home = write_home(tmp_path / "home", {})
    random = Random(1)  # noqa: S311 - made-up days
    for day in range(8):
        write_home(home, {transcript_path(random.randrange(4)): lines(day, 100)})
        keep_home(store, home, machine)
        (cache,) = (tmp_path / "memory").glob("*.memory")
        if day == 3:
            cache.unlink()
        if day == 5:
            os.truncate(cache, cache.stat().st_size - 3)
        assert keep_home(store, home, machine).stored == 0
    assert is_clean(store)
    assert sum(map(len, kept_versions(store).values())) == 8


def test_torn_cache_takes_new_entries(tmp_path: Path) -> None:
    """Wherever the last record was cut off, what is added afterwards is there the next time."""
    path = tmp_path / "keep.memory"
    KeepCache(path).add([("first", b"1")], ["first"])
    start = path.stat().st_size
    KeepCache(path).add([("second", b"2")], ["first", "second"])
    whole = path.read_bytes()
    for length in range(start, len(whole)):
        path.write_bytes(whole[:length])
        KeepCache(path).add([("third", b"3")], ["first", "third"])
        assert dict(KeepCache(path).items()) == {"first": b"1", "third": b"3"}


def test_file_is_complete_whatever_size_another_manifest_claims(store: Store, tmp_path: Path) -> None:
    """Another machine's version claims to be longer than it is. A file that starts with it is kept completely."""
    keep_home(store, write_home(tmp_path / "theirs", {transcript_path(1): lines(1, 10)}), THERE)
    (manifest,) = Catalogue(store).manifests
    for path in store.run_files():
        path.unlink()
    rows = [replace(row, size=row.size + 500) if isinstance(row, FileRow) else row for row in manifest.rows]
    store.put_run([manifest.run, *rows])
    data = lines(1, 10) + lines(2, 100)
    keep_home(store, write_home(tmp_path / "home", {transcript_path(1): data}))
    catalogue = Catalogue(store)
    (version,) = [version for version in catalogue.newest() if version.machine == HERE.id]
    assert b"".join(catalogue.data(version)) == data


def test_truncated_pack_is_stored_again(store: Store, tmp_path: Path) -> None:
    """The next run notices the length, and what the home still has is complete again."""
    home = write_home(tmp_path / "home", {transcript_path(1): lines(1, 500), transcript_path(2): lines(2, 500)})
    machine = Machine("here_1", "here", tmp_path / "memory")
    keep_home(store, home, machine)
    (truncated,) = store.pack_files()
    os.truncate(truncated, truncated.stat().st_size // 2)
    again = keep_home(store, home, machine)
    assert again.stored
    assert any("truncated" in problem.message for problem in again.problems)
    catalogue = Catalogue(store)
    assert {version.path: b"".join(catalogue.data(version)) for version in catalogue.newest()} == {
        transcript_path(number): lines(number, 500) for number in (1, 2)
    }
    assert not verify_keep(Catalogue(store)).affected
