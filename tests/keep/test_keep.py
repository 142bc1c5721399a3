"""A run keeps what is new, and every version that was ever kept comes back byte for byte."""

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
from tests.keep.stores import HERE, THERE, given_back, home_with, is_clean, kept, lines, transcript
from tests.profiles import scale_examples

from threadline import files
from threadline.errors import IndexBusy, Unreadable
from threadline.files import AtomicFile
from threadline.find import homes
from threadline.keep import Catalogue, Machine, Store, run_keep, verify_keep
from threadline.keep import keep as keeping
from threadline.keep.pack import DictionaryTrainer
from threadline.model.places import ProblemKind


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A keep with nothing in it."""
    return Store.make(tmp_path / "keep")


def _size(store: Store) -> int:
    return sum(path.stat().st_size for path in store.folder.rglob("*") if path.is_file())


class _Days(RuleBasedStateMachine):
    """A home to which anything happens, with runs in between."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="threadline-keep-"))
        self.store = Store.make(self.folder / "keep")
        self.home = home_with(self.folder / "home", {})
        self.seen: dict[str, list[bytes]] = {}
        self.clock = 1_700_000_000

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    def _touched(self, place: Path) -> None:
        self.clock += 1
        os.utime(place, (self.clock, self.clock))

    def _place(self, number: int) -> Path:
        return self.home / transcript(number)

    @rule(number=st.integers(0, 3), seed=st.integers(0, 9), count=st.integers(0, 400))
    def write(self, number: int, seed: int, count: int) -> None:
        """A transcript is written, whatever it held."""
        home_with(self.home, {transcript(number): lines(seed, count)})
        self._touched(self._place(number))

    @rule(number=st.integers(0, 3), more=st.binary(max_size=50) | st.builds(lines, st.integers(0, 9), st.just(300)))
    def append(self, number: int, more: bytes) -> None:
        """A transcript grows."""
        if self._place(number).exists():
            with self._place(number).open("ab") as file:
                file.write(more)
            self._touched(self._place(number))

    @rule(number=st.integers(0, 3), part=st.floats(0, 1))
    def truncate(self, number: int, part: float) -> None:
        """A transcript is cut off."""
        if self._place(number).exists():
            os.truncate(self._place(number), int(self._place(number).stat().st_size * part))
            self._touched(self._place(number))

    @rule(number=st.integers(0, 3), at=st.floats(0, 1))
    def overwrite(self, number: int, at: float) -> None:
        """A byte in the middle becomes another one, with the time left as it was."""
        place = self._place(number)
        if place.exists() and place.stat().st_size:
            before = place.stat()
            with place.open("r+b") as file:
                file.seek(int((before.st_size - 1) * at))
                file.write(b"#")
            os.utime(place, ns=(before.st_atime_ns, before.st_mtime_ns))

    @rule(one=st.integers(0, 3), other=st.integers(0, 3))
    def rename(self, one: int, other: int) -> None:
        """A transcript takes another's place."""
        if self._place(one).exists() and one != other:
            self._place(one).replace(self._place(other))

    @rule(number=st.integers(0, 3))
    def delete(self, number: int) -> None:
        """A transcript is swept away."""
        self._place(number).unlink(missing_ok=True)

    @rule()
    def run(self) -> None:
        """A run; what it saw is to come back for ever."""
        assert not kept(self.store, self.home).problems
        for number in range(4):
            if self._place(number).exists():
                data = self._place(number).read_bytes()
                versions = self.seen.setdefault(transcript(number), [])
                if data not in versions:
                    versions.append(data)

    @invariant()
    def everything_comes_back(self) -> None:
        """Every version that a run saw is in the keep, and no other bytes are."""
        found = given_back(self.store)
        assert {path: set(all_) for path, all_ in found.items()} == {
            path: set(all_) for path, all_ in self.seen.items()
        }


TestDays = _Days.TestCase
TestDays.settings = settings(max_examples=scale_examples(25), stateful_step_count=20)


def test_what_did_not_change_costs_nothing(store: Store, tmp_path: Path) -> None:
    """A second run over the same home writes no file."""
    home = home_with(tmp_path / "home", {transcript(1): lines(1, 500)})
    kept(store, home)
    before = sorted(store.folder.rglob("*"))
    again = kept(store, home)
    assert sorted(store.folder.rglob("*")) == before
    assert (again.read, again.stored, again.new) == (0, 0, 0)


def test_growth_costs_the_growth(store: Store, tmp_path: Path) -> None:
    """A file that grew by a thousandth takes a hundredth of itself at the most, manifest included."""
    home = home_with(tmp_path / "home", {transcript(1): lines(1, 30_000)})
    kept(store, home)
    before = _size(store)
    with (home / transcript(1)).open("ab") as file:
        file.write(lines(2, 30))
    run = kept(store, home)
    assert run.grown == 1
    assert run.read == len(lines(2, 30))
    assert _size(store) - before < before / 100


def test_the_same_bytes_are_kept_once(store: Store, tmp_path: Path) -> None:
    """Two sessions with the same bytes, or a session that moved to another project, take their room once."""
    home = home_with(tmp_path / "home", {transcript(1): lines(1, 5000)})
    kept(store, home)
    before = _size(store)
    home_with(home, {transcript(2): lines(1, 5000), transcript(1, "-moved"): lines(1, 5000) + b"{}\n"})
    run = kept(store, home)
    assert run.new == 2
    assert _size(store) - before < before / 50


def test_a_change_in_the_middle_is_seen(store: Store, tmp_path: Path) -> None:
    """A file that grew, and of which one byte in the middle is another, comes back as it is."""
    data = bytearray(lines(1, 3000))
    home = home_with(tmp_path / "home", {transcript(1): bytes(data)})
    kept(store, home)
    data[len(data) // 2] ^= 1
    data += b"{}\n"
    home_with(home, {transcript(1): bytes(data)})
    kept(store, home)
    assert given_back(store)[transcript(1)][-1] == bytes(data)


def test_names_that_are_no_text_come_back(store: Store, tmp_path: Path) -> None:
    """A home and a project whose names are no UTF-8 are kept, known again, and told by their bytes."""
    home = Path(os.fsdecode(os.fsencode(tmp_path) + b"/ho\xffme"))
    path = os.fsdecode(b"projects/-\xfe/" + transcript(1).rpartition("/")[2].encode())
    home_with(home, {path: lines(1, 5)})
    kept(store, home)
    assert kept(store, home).new == 0
    (home / path).unlink()
    assert kept(store, home).gone == 1
    (version,) = Catalogue(store).newest()
    assert (version.home, version.path) == (os.fspath(home), path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read all")
def test_what_may_not_be_read_is_not_gone(store: Store, tmp_path: Path) -> None:
    """A project that may not be entered is a problem; its files are not told to be gone."""
    home = home_with(tmp_path / "home", {transcript(1): lines(1, 5)})
    kept(store, home)
    (home / "projects/-work").chmod(0)
    try:
        assert kept(store, home).gone == 0
    finally:
        (home / "projects/-work").chmod(0o700)


def test_a_pipe_where_a_transcript_was_does_not_stop_the_run(store: Store, tmp_path: Path) -> None:
    """A FIFO in a transcript's place is not waited for; the others are kept."""
    home = home_with(tmp_path / "home", {transcript(1): lines(1, 5), transcript(2): lines(2, 5)})
    kept(store, home)
    (home / transcript(1)).unlink()
    os.mkfifo(home / transcript(1))
    home_with(home, {transcript(2): lines(3, 5)})
    assert kept(store, home).changed == 1
    assert given_back(store)[transcript(1)] == [lines(1, 5)]


def test_a_file_that_is_replaced_while_it_is_read_is_read_again(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is cut off and written anew while it is read is kept as it was in the end, not as a mix."""
    home = home_with(tmp_path / "home", {transcript(1): lines(1, 8000)})
    once = iter([True])
    hear = DictionaryTrainer.sample

    def meanwhile(self: DictionaryTrainer, data: bytes) -> None:
        hear(self, data)
        if next(once, False):
            (home / transcript(1)).write_bytes(lines(2, 12_000))

    monkeypatch.setattr(DictionaryTrainer, "sample", meanwhile)
    assert not kept(store, home).problems
    assert given_back(store)[transcript(1)] == [lines(2, 12_000)]


def test_a_file_that_never_holds_still_is_told(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What changes at every try is kept as it was read, marked, told, and read again by the next run."""
    monkeypatch.setattr("threadline.keep.pack._MIN_SAMPLE_SIZE", 20_000)
    home = home_with(tmp_path / "home", {transcript(1): lines(1, 1000)})
    numbers = iter(range(2, 99))
    hear = DictionaryTrainer.sample

    def meanwhile(self: DictionaryTrainer, data: bytes) -> None:
        hear(self, data)
        (home / transcript(1)).write_bytes(lines(next(numbers), 1000))

    with monkeypatch.context() as patched:
        patched.setattr(DictionaryTrainer, "sample", meanwhile)
        assert [problem.kind for problem in kept(store, home).problems] == [ProblemKind.CHANGED]
    assert Catalogue(store).versions.popitem()[1][-1].torn
    assert not kept(store, home).problems
    assert given_back(store)[transcript(1)][-1] == (home / transcript(1)).read_bytes()


def test_a_file_that_grows_while_it_is_read_is_whole(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is appended while it is read is this run's or the next one's; no line is lost."""
    home = home_with(tmp_path / "home", {transcript(1): lines(1, 8000)})
    hear = DictionaryTrainer.sample

    def meanwhile(self: DictionaryTrainer, data: bytes) -> None:
        hear(self, data)
        with (home / transcript(1)).open("ab") as file:
            file.write(b"{}\n")

    with monkeypatch.context() as patched:
        patched.setattr(DictionaryTrainer, "sample", meanwhile)
        assert not kept(store, home).problems
    kept(store, home)
    whole = (home / transcript(1)).read_bytes()
    assert given_back(store)[transcript(1)][-1] == whole
    assert all(whole.startswith(one) for one in given_back(store)[transcript(1)])


def test_a_write_that_fails_ends_the_run(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk is told, leaves nothing half-written, and harms nothing that was kept; the next run goes on."""
    home = home_with(tmp_path / "home", {transcript(1): lines(1, 500)})
    kept(store, home)
    home_with(home, {transcript(number): lines(number, 2000) for number in range(2, 9)})

    def full(_file: object, _data: bytes) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(files, "write_all", full)
        with pytest.raises(Unreadable, match="No space left on device"):
            kept(store, home)
    assert not list(store.folder.rglob("*.new"))
    assert is_clean(store)
    assert kept(store, home).new == 7
    assert is_clean(store)


def test_what_finished_packs_hold_is_found_again(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is stopped before its manifest leaves packs, whose pieces the next one does not write again."""
    home = home_with(tmp_path / "home", {transcript(1): lines(1, 5000)})

    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Store, "put_run", stopped)
        with pytest.raises(KeyboardInterrupt):
            kept(store, home)
    packs = store.pack_files()
    assert packs
    assert kept(store, home).stored == 0
    assert store.pack_files() == packs
    assert is_clean(store)


def test_the_clock_may_go_back(store: Store, tmp_path: Path) -> None:
    """The order of versions is that of the runs, whatever the clock says."""
    home = home_with(tmp_path / "home", {transcript(1): lines(1, 5)})
    day = datetime(2026, 11, 15, tzinfo=UTC)
    found = homes(os.fspath(home))
    run_keep(Catalogue(store), found, HERE, now=lambda: day)
    home_with(home, {transcript(1): lines(2, 5)})
    run_keep(Catalogue(store), found, HERE, now=lambda: day - timedelta(days=400))
    assert given_back(store)[transcript(1)] == [lines(1, 5), lines(2, 5)]


def test_what_the_keep_lost_is_kept_again(store: Store, tmp_path: Path) -> None:
    """Where packs are missing, the next run takes what is still at the source, though it did not change."""
    home = home_with(tmp_path / "home", {transcript(1): lines(1, 500)})
    kept(store, home)
    for path in store.pack_files():
        path.unlink()
    assert not is_clean(store)
    kept(store, home)
    assert is_clean(store)


def test_a_damaged_keep_is_told_by_a_run(store: Store, tmp_path: Path) -> None:
    """A run over a keep with a damaged manifest or pack tells of it, and keeps what is new all the same."""
    home = home_with(tmp_path / "home", {transcript(1): lines(1, 50)})
    kept(store, home)
    for path in (*store.run_files(), *store.pack_files()):
        path.write_bytes(path.read_bytes()[:-1])
    home_with(home, {transcript(2): lines(2, 50)})
    run = kept(store, home)
    assert len(run.problems) == 2
    assert transcript(2) in {one.path for one in Catalogue(store).newest()}


def test_packs_that_vanish_during_a_run_are_made_up_for(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another machine takes away between the look and the manifest is written again before it is told of."""
    home = home_with(tmp_path / "home", {transcript(1): lines(1, 500)})
    kept(store, home)
    home_with(home, {transcript(2): lines(1, 500)})
    once = iter([True])
    store_files = keeping._KeepRun._store_files

    def meanwhile(self: keeping._KeepRun, changed: object) -> int:
        stored = store_files(self, changed)  # type: ignore[arg-type]
        if next(once, False):
            for path in store.pack_files():
                path.unlink()
        return stored

    monkeypatch.setattr(keeping._KeepRun, "_store_files", meanwhile)
    kept(store, home)
    assert is_clean(store)


def test_one_machine_writes_once_at_a_time(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second run of the same machine is refused; one of another machine is not."""
    monkeypatch.setattr("threadline.locks.TIMEOUT_SECONDS", 0.1)
    home = home_with(tmp_path / "home", {transcript(1): lines(1, 500)})
    with store.adding(HERE.id):
        with pytest.raises(IndexBusy):
            kept(store, home)
        assert kept(store, home, THERE).new == 1


def test_two_machines_do_not_sweep_each_other(store: Store) -> None:
    """What another machine is writing is left alone; what this one left unfinished is not."""
    ours, theirs = (AtomicFile(store.packs, owner=machine.id) for machine in (HERE, THERE))
    with store.adding(HERE.id):
        assert (ours.path.exists(), theirs.path.exists()) == (False, True)
    ours.discard()
    theirs.discard()


def test_memory_tells_the_same(tmp_path: Path) -> None:
    """With a memory, runs come to the same, whether it is there, thrown away or torn."""
    store = Store.make(tmp_path / "keep")
    machine = Machine("here_1", "here", tmp_path / "memory")
    home = home_with(tmp_path / "home", {})
    random = Random(1)  # noqa: S311 - made-up days
    for day in range(8):
        home_with(home, {transcript(random.randrange(4)): lines(day, 100)})
        kept(store, home, machine)
        (remembered,) = (tmp_path / "memory").glob("*.memory")
        if day == 3:
            remembered.unlink()
        if day == 5:
            os.truncate(remembered, remembered.stat().st_size - 3)
        assert kept(store, home, machine).stored == 0
    assert is_clean(store)
    assert sum(map(len, given_back(store).values())) == 8


def test_a_pack_that_was_cut_off_is_kept_again(store: Store, tmp_path: Path) -> None:
    """The next run sees by its length that it is not what was written; what the home still has is whole again."""
    home = home_with(tmp_path / "home", {transcript(1): lines(1, 500), transcript(2): lines(2, 500)})
    machine = Machine("here_1", "here", tmp_path / "memory")
    kept(store, home, machine)
    (cut,) = store.pack_files()
    os.truncate(cut, cut.stat().st_size // 2)
    again = kept(store, home, machine)
    assert again.stored
    assert any("truncated" in problem.message for problem in again.problems)
    catalogue = Catalogue(store)
    assert {one.path: b"".join(catalogue.data(one)) for one in catalogue.newest()} == {
        transcript(number): lines(number, 500) for number in (1, 2)
    }
    assert not verify_keep(Catalogue(store)).affected
