"""The archive reads the keep: what a home has lost is read from it, and what the home has is read once."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace
from tests.keep.homes import SECOND
from tools.demo import write

import threadline
from threadline.archive import Archive
from threadline.find import homes
from threadline.keep import Catalogue, Machine, Store, forget_session, kept_files, kept_home, restore_files, run_keep
from threadline.keep.sessions import lost_part_id
from threadline.model.homes import KEEP_SOURCE
from threadline.summary import SessionFilter

QUERIES: dict[str, Callable[[Archive], Any]] = {
    "sessions": lambda archive: [without_path(session) for session in archive.sessions().sessions],
    "days": lambda archive: archive.ledger().by("day"),
    "homes": lambda archive: archive.ledger().by("home"),
    "sessions and models": lambda archive: archive.ledger().by("session", "model"),
    "agents and tools": lambda archive: archive.ledger().by("agent", "agent-type", "tool"),
    "overview": lambda archive: [
        getattr(archive.overview(), name)
        for name in ("sessions", "agents", "entries", "bytes", "continuations", "projects", "kinds")
    ],
    "entries": lambda archive: [
        (session.id, session.title, len(session), len(session.agents), session.continuations, session.ledger.total)
        for session in (archive.session(str(summary.id)) for summary in archive.sessions().sessions)
    ],
}


class HomeAndKeep:
    """A home, its keep, and the archive of both."""

    def __init__(self, folder: Path, template: Path) -> None:
        self.home = folder / "home"
        self.keep = folder / "keep"
        self.cache = folder / "cache"
        self.machine = Machine("first_1", "first", folder / "data" / "threadline")
        shutil.copytree(template, self.home, symlinks=True)
        (folder / "data" / "threadline").mkdir(parents=True)
        (folder / "data" / "threadline" / "machine").write_text("first_1\n")

    def run(self, machine: Machine | None = None) -> None:
        """Keep the current state."""
        machine = machine or self.machine
        run_keep(Catalogue(Store.make(self.keep), machine.folder), homes(self.home), machine)

    def open(self, **options: Any) -> Archive:
        """Open the archive of the home."""
        return threadline.open(self.home, **options)

    def results(self, **options: Any) -> dict[str, Any]:
        """The results of all queries."""
        with self.open(**options) as archive:
            assert not archive.keep_problems
            return {name: query(archive) for name, query in QUERIES.items()}

    def kept_files(self) -> set[str]:
        """The files of the kept home, by path."""
        with self.open() as archive:
            tops = [home.path for home in archive.homes if home.source == KEEP_SOURCE]
        return {str(path.relative_to(top)) for top in tops for path in top.rglob("*") if path.is_file()}

    def transcripts(self) -> list[Path]:
        """The main transcripts, sorted."""
        return sorted(self.home.glob("projects/*/*-*-*.jsonl"))

    def relative_paths(self, paths: Iterable[Path]) -> set[str]:
        """Paths as the keep stores them."""
        return {str(path.relative_to(self.home)) for path in paths}


@pytest.fixture
def setup(tmp_path: Path, small_home: Path, monkeypatch: pytest.MonkeyPatch) -> HomeAndKeep:
    """A generated home, with its own keep and cache."""
    created = HomeAndKeep(tmp_path, small_home)
    monkeypatch.setenv("THREADLINE_KEEP", str(created.keep))
    monkeypatch.setenv("THREADLINE_CACHE", str(created.cache))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return created


LOST: dict[str, Callable[[HomeAndKeep], list[Path]]] = {
    "every other session": lambda setup: [
        path
        for main in setup.transcripts()[::2]
        for path in (main, *(file for file in main.with_suffix("").rglob("*") if file.is_file()))
    ],
    "main transcripts alone": lambda setup: setup.transcripts()[1::2],
    "agents alone": lambda setup: list(setup.home.rglob("agent-*.jsonl")),
    "what is told of agents": lambda setup: list(setup.home.rglob("*.meta.json")),
    "everything": lambda setup: [path for path in (setup.home / "projects").rglob("*") if path.is_file()],
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("lost", LOST)
@pytest.mark.parametrize("index", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_results_are_the_same_after_loss(setup: HomeAndKeep, lost: str, index: bool) -> None:
    """Whatever a home has lost, all results are as before, also if a session is partly here and partly kept."""
    setup.run()
    before = setup.results(index=index)
    deleted = LOST[lost](setup)
    assert deleted
    for path in deleted:
        path.unlink()
    assert setup.results(index=index) == before
    assert setup.kept_files() == setup.relative_paths(deleted)


def test_index_and_files_agree_on_kept_sessions(setup: HomeAndKeep) -> None:
    """With kept sessions, the index gives the same results as reading, and marks them as kept."""
    setup.run()
    for path in LOST["every other session"](setup):
        path.unlink()
    with setup.open() as indexed, setup.open(index=False) as plain:
        indexed.refresh()
        assert indexed.sessions() == plain.sessions()
        assert indexed.overview() == plain.overview()
        assert indexed.ledger().by("project", "home") == plain.ledger().by("project", "home")
        assert indexed.search("test", every=True, limit=None).hits
        kept = {str(session.id) for session in indexed.sessions().sessions if session.kept}
        assert kept
        assert kept.isdisjoint(path.stem for path in setup.transcripts())
        assert {hit.session for hit in indexed.search("test", limit=None).hits if hit.kept} <= kept


def test_index_follows_deleted_session_without_rereading(setup: HomeAndKeep) -> None:
    """The index recognises that a deleted session moved to the keep, and keeps its entries."""
    setup.run()
    with setup.open() as archive:
        archive.refresh()
        before = archive.connection.execute("SELECT MAX(entry_id), COUNT(*) FROM entries").fetchone()
    for path in LOST["every other session"](setup):
        path.unlink()
    with setup.open() as archive:
        archive.refresh()
        assert archive.connection.execute("SELECT MAX(entry_id), COUNT(*) FROM entries").fetchone() == before
        assert any(home.source == KEEP_SOURCE for home in archive.homes)


def test_no_kept_home_while_nothing_is_lost(setup: HomeAndKeep) -> None:
    """While the home has everything, there is no kept home. A file that changed since is left as it is."""
    setup.run()
    grown, cut, *_others = setup.transcripts()
    with grown.open("ab") as file:
        file.write(b'{"type":"summary","summary":"more","leafUuid":"x"}\n')
    os.truncate(cut, cut.stat().st_size // 2)
    with setup.open() as archive:
        assert [home.source for home in archive.homes] == ["option"]
        assert not any(session.kept for session in archive.sessions().sessions)


@pytest.mark.slow
def test_restored_session_is_read_from_the_home(setup: HomeAndKeep) -> None:
    """A session that is in the home again is read only from there."""
    setup.run()
    first, second, *_others = setup.transcripts()
    contents = {path: path.read_bytes() for path in (first, second)}
    before = setup.results()
    for path in contents:
        path.unlink()
    assert setup.kept_files() == setup.relative_paths(contents)
    first.write_bytes(contents[first])
    assert setup.kept_files() == setup.relative_paths([second])
    second.write_bytes(contents[second])
    assert setup.kept_files() == set()
    assert len(setup.results()["sessions"]) == len(before["sessions"])


@pytest.mark.slow
def test_moved_session_is_counted_once(setup: HomeAndKeep) -> None:
    """If a project's folder was renamed, what was kept of its sessions is a copy."""
    setup.run()
    before = len(setup.results()["sessions"])
    folder = setup.transcripts()[0].parent
    folder.rename(folder.with_name("-somewhere-else"))
    assert {path for path in setup.kept_files() if path.endswith(".jsonl")} == set()
    assert len(setup.results()["sessions"]) == before


def test_newest_version_is_read(setup: HomeAndKeep) -> None:
    """The last version of a transcript that grew between two runs is read, even if an older one was restored."""
    path = setup.transcripts()[0]
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    setup.run()
    path.unlink()
    (kept,) = setup.kept_files()
    path.write_bytes(content)
    setup.run()
    path.unlink()
    with setup.open() as archive:
        assert (archive.homes[1].path / kept).read_bytes() == content
        assert archive.session(path.stem).kept


def test_forgotten_session_leaves_the_kept_home(setup: HomeAndKeep) -> None:
    """A session that was removed from the keep leaves the kept home, too."""
    setup.run()
    first, second, *_others = setup.transcripts()
    for path in (first, second):
        path.unlink()
    setup.kept_files()
    store = Store(setup.keep)
    files = [version for version in Catalogue(store).all_versions() if first.stem in version.path]
    forget_session(
        Catalogue(store, setup.machine.folder, trust_cache=False), setup.machine, first.stem, files, "no longer wanted"
    )
    assert setup.kept_files() == setup.relative_paths([second])
    assert first.stem not in {str(session.id) for session in setup.open().sessions().sessions}


def test_kept_home_can_be_deleted(setup: HomeAndKeep) -> None:
    """It is rebuilt after a full or partial deletion, and only its owner can read it."""
    setup.run()
    deleted = setup.transcripts()[:3]
    for path in deleted:
        path.unlink()
    before = setup.results()
    shutil.rmtree(setup.cache / "kept")
    assert setup.results() == before
    (top,) = (home.path for home in setup.open().homes if home.source == KEEP_SOURCE)
    assert {stat.S_IMODE(entry.stat().st_mode) for entry in (top, *top.rglob("*"))} == {0o700, 0o600}
    shutil.rmtree(top)
    assert setup.results() == before


def test_unchanged_keep_is_not_opened(setup: HomeAndKeep, monkeypatch: pytest.MonkeyPatch) -> None:
    """If nothing changed, the keep is not opened and no home is listed."""
    setup.run()
    for path in setup.transcripts()[:3]:
        path.unlink()
    make_folders_old(setup.home)
    before = [home.path for home in setup.open().homes]

    def fail_if_called(*_arguments: object, **_keywords: object) -> None:
        raise AssertionError("the keep was opened, or a home was listed")

    monkeypatch.setattr(kept_home, "find_missing_files", fail_if_called)
    monkeypatch.setattr(kept_files, "open_catalogue", fail_if_called)
    assert [home.path for home in setup.open().homes] == before


def test_without_a_keep_nothing_is_loaded(setup: HomeAndKeep, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a keep there is no cost, and an existing one can be turned off."""
    monkeypatch.setattr(kept_home, "kept_homes", None)
    assert len(setup.open().homes) == 1
    setup.run()
    setup.transcripts()[0].unlink()
    assert len(setup.open(keep=False).homes) == 1
    monkeypatch.setenv("THREADLINE_KEEP", "off")
    assert len(setup.open().homes) == 1


def test_reads_keep_of_another_machine(setup: HomeAndKeep, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read if no home is given, and named after the machine. A copy of our own sessions is not."""
    setup.run()
    setup.run(SECOND)
    path = setup.transcripts()[0]
    content = path.read_bytes()
    other = path.with_name("aaaaaaaa-1111-4111-8111-111111111111.jsonl")
    other.write_bytes(content.replace(path.stem.encode(), other.stem.encode()))
    setup.run(SECOND)
    other.unlink()
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(setup.home))
    with threadline.open() as archive:
        assert {str(session.id) for session in archive.sessions().sessions if session.kept} == {other.stem}
        assert {row.keys["home"] for row in archive.ledger().by("home")} <= {str(setup.home), f"second:{setup.home}"}
    with setup.open() as archive:
        assert not any(session.kept for session in archive.sessions().sessions)


def test_unreadable_keep_is_reported_and_hides_nothing(setup: HomeAndKeep) -> None:
    """The home is still read, and what was restored before stays."""
    setup.run()
    setup.transcripts()[0].unlink()
    before = {str(session.id) for session in setup.open().sessions().sessions}
    content = (setup.keep / "keep.json").read_bytes()
    for damaged in (b"{", content.replace(b'"id":"', b'"id":"\xff')):
        (setup.keep / "keep.json").write_bytes(damaged)
        assert {str(session.id) for session in setup.open().sessions().sessions} == before
    (setup.keep / "keep.json").write_bytes(content)
    for path in (setup.keep / "runs").iterdir():
        path.write_bytes(b"not a manifest")
        path.rename(path.with_name(f"{'0' * 64}.jsonl.zst"))
    with setup.open() as archive:
        assert archive.keep_problems
        assert {path.stem for path in setup.transcripts()} <= before
        assert {str(session.id) for session in archive.sessions().sessions} <= before


def test_paths_out_of_the_kept_home_are_ignored(setup: HomeAndKeep, monkeypatch: pytest.MonkeyPatch) -> None:
    """A keep may come from anywhere: no path in it leads out of the kept home."""
    setup.run()
    real_open_catalogue = kept_files.open_catalogue

    def open_hostile_catalogue(folder: Path) -> Catalogue:
        catalogue = real_open_catalogue(folder)
        for (machine, home, path), versions in list(catalogue.versions.items()):
            for bad in (
                f"../../../out/{path}",
                f"{setup.cache}/out/{path}",
                f"projects/../../out/{path}",
                "out\\..\\x",
            ):
                catalogue.versions[machine, home, bad] = [replace(version, path=bad) for version in versions]
        return catalogue

    monkeypatch.setattr(kept_files, "open_catalogue", open_hostile_catalogue)
    deleted = setup.transcripts()[:2]
    for path in deleted:
        path.unlink()
    assert setup.kept_files() == setup.relative_paths(deleted)
    assert not [path for path in setup.cache.parent.rglob("out*") if "home" not in path.parts]


def without_path(session: Any) -> Any:
    """The fields of a session, without its path and mark."""
    return {name: getattr(session, name) for name in session.__struct_fields__ if name not in {"path", "kept"}}


def make_folders_old(home: Path) -> None:
    """Set old times on all folders, as if nothing had changed for a while."""
    for path in (home, *home.rglob("*")):
        if path.is_dir():
            os.utime(path, (1_700_000_000, 1_700_000_000))


@pytest.mark.slow
@pytest.mark.parametrize("lost", ["every other session", "agents alone", "everything"])
@pytest.mark.parametrize("inside", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_projects_may_be_a_link(setup: HomeAndKeep, tmp_path: Path, lost: str, inside: bool) -> None:
    """If `projects` is a link to another disk, or within the home, everything is kept by its path through the link."""
    moved = setup.home / "store" if inside else tmp_path / "disk"
    (setup.home / "projects").rename(moved)
    (setup.home / "projects").symlink_to(moved)
    setup.run()
    before = setup.results()
    deleted = LOST[lost](setup) if lost != "agents alone" else list(moved.rglob("agent-*.jsonl"))
    deleted = deleted if lost != "everything" else [path for path in moved.rglob("*") if path.is_file()]
    assert deleted
    for path in deleted:
        path.unlink()
    assert setup.results() == before
    catalogue = Catalogue(Store(setup.keep))
    assert not restore_files(catalogue, catalogue.newest(), setup.home).refused
    assert all(path.is_file() for path in deleted)


@pytest.mark.slow
@pytest.mark.parametrize("index", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_emptied_transcript_is_read_from_the_keep(setup: HomeAndKeep, index: bool) -> None:
    """Also after a run saw it empty. Once it is written again, it is read from the home."""
    setup.run()
    before = setup.results(index=index)
    emptied = setup.transcripts()[::2]
    data = {path: path.read_bytes() for path in emptied}
    for path in emptied:
        path.write_bytes(b"")
    setup.run()
    assert setup.results(index=index) == before
    assert setup.kept_files() == setup.relative_paths(emptied)
    for path in emptied:
        path.write_bytes(data[path])
    assert setup.results(index=index) == before
    assert not setup.kept_files()


@pytest.mark.parametrize("remaining", [pytest.param(0.0, marks=pytest.mark.slow), 0.6])
def test_truncated_and_deleted_transcript_is_read_completely(setup: HomeAndKeep, remaining: float) -> None:
    """After it was deleted, the version from before the truncation is read."""
    setup.run()
    before = setup.results()
    for path in setup.transcripts()[::2]:
        os.truncate(path, int(path.stat().st_size * remaining))
    setup.run()
    for path in setup.transcripts()[::2]:
        path.unlink()
    assert setup.results() == before


def test_keep_with_a_fifo_is_ignored(setup: HomeAndKeep) -> None:
    """A FIFO in place of keep.json is not waited for."""
    setup.run()
    (setup.keep / "keep.json").unlink()
    os.mkfifo(setup.keep / "keep.json")
    with setup.open() as archive:
        assert "cannot be read" in archive.keep_problems[0]
        assert archive.sessions().sessions


@pytest.mark.sample(2)
@pytest.mark.parametrize("index", [True, False])
def test_splits_results_by_machine(
    setup: HomeAndKeep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, index: bool
) -> None:
    """Lists and sums can be split by machine, with an index and without. What this one lost stays its own."""
    monkeypatch.setattr("platform.node", lambda: "first")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(setup.home))
    write(tmp_path / "there", megabytes=1, seed=7)
    setup.run()
    run_keep(Catalogue(Store.make(setup.keep)), homes(tmp_path / "there"), SECOND)
    with threadline.open(setup.home, keep=False, index=False) as archive:
        own_results = archive.ledger().total, {session.id for session in archive.sessions().sessions}
    with threadline.open(tmp_path / "there", keep=False, index=False) as archive:
        other_results = archive.ledger().total, {session.id for session in archive.sessions().sessions}
    setup.transcripts()[0].unlink()
    with threadline.open(index=index) as archive:
        sums = {row.keys["machine"]: row.amount for row in archive.ledger().by("machine")}
        assert sums == {"first": own_results[0].amount, "second": other_results[0].amount}
        for name, ids in (("first", own_results[1]), ("Second", other_results[1])):
            listed = archive.sessions(SessionFilter(machine=name)).sessions
            assert {session.id for session in listed} == ids
            assert {session.machine for session in listed} == {name.lower()}
        assert not archive.sessions(SessionFilter(machine="third")).sessions


def test_files_without_disk_space_are_skipped(setup: HomeAndKeep, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many files are restored as fit, the smallest first. The others are reported."""
    setup.run()
    lost = setup.transcripts()
    sizes = sorted(path.stat().st_size for path in lost)
    for path in lost:
        path.unlink()
    room = 512 * 1024 * 1024 + sum(sizes[:-2])
    monkeypatch.setattr("shutil.disk_usage", lambda _path: SimpleNamespace(free=room))
    with setup.open() as archive:
        assert "The largest 2 of" in archive.keep_problems[0]
        (kept,) = (home.path for home in archive.homes if home.source == KEEP_SOURCE)
        assert len([path for path in kept.rglob("*") if path.is_file()]) == len(lost) - 2


@pytest.mark.slow
def test_machines_with_the_same_name_get_their_id(
    setup: HomeAndKeep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If another machine has the name of this one, its id is part of its name."""
    monkeypatch.setattr("platform.node", lambda: "first")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(setup.home))
    write(tmp_path / "there", megabytes=1, seed=7)
    setup.run()
    run_keep(
        Catalogue(Store.make(setup.keep), replace(SECOND, label="first").folder),
        homes(tmp_path / "there"),
        replace(SECOND, label="first"),
    )
    with threadline.open() as archive:
        assert {session.machine for session in archive.sessions().sessions} == {"first", f"first ({SECOND.id})"}


CUTS: dict[str, float] = {"to nothing": 0.0, "to a beginning": 0.6}


@pytest.mark.sample(2)
@pytest.mark.parametrize("remaining", CUTS.values(), ids=CUTS)
@pytest.mark.parametrize("is_run_between", [True, False], ids=["a run saw it cut", "no run did"])
@pytest.mark.parametrize("index", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_truncated_and_continued_session_is_complete(
    setup: HomeAndKeep, remaining: float, is_run_between: bool, index: bool
) -> None:
    """The sums are those of all lines, each counted once, and all of them are found."""
    main = max(setup.transcripts(), key=lambda path: path.stat().st_size)
    lines = main.read_bytes().splitlines(keepends=True)
    head, tail = lines[: len(lines) * 3 // 4], lines[len(lines) * 3 // 4 :]
    expected = ledger_totals(setup, index=index)
    main.write_bytes(b"".join(head))
    setup.run()
    rest = head[: int(len(head) * remaining)]
    main.write_bytes(b"".join(rest))
    if is_run_between:
        setup.run()
    main.write_bytes(b"".join([*rest, *tail]))
    setup.run()
    assert ledger_totals(setup, index=index)[1:] == expected[1:]
    lost = str(lost_part_id(main.stem))
    assert _tokens_by_session(setup, {lost: main.stem}, index=index) == {
        row.keys["session"]: row.tokens for row in expected[0]
    }
    assert main.read_bytes() == b"".join([*rest, *tail])
    with setup.open(index=index) as archive:
        ids = {main.stem, lost}
        sessions = [session for session in archive.sessions().sessions if str(session.id) in ids]
        assert sorted(session.kept for session in sessions) == [False, True]
        assert sum(session.entries for session in sessions) == len(lines)
        assert archive.session(main.stem).path == main
    main.unlink()
    assert ledger_totals(setup, index=index) == expected
    with setup.open(index=index) as archive:
        (kept_session,) = (session for session in archive.sessions().sessions if session.id == main.stem)
        assert (kept_session.kept, kept_session.entries, Path(kept_session.path).read_bytes()) == (
            True,
            len(lines),
            b"".join(lines),
        )


def _tokens_by_session(setup: HomeAndKeep, names: dict[str, str], *, index: bool) -> Counter[str]:
    """The tokens of each session; those of a lost part, which is a session of its own, go to the one in `names`."""
    tokens: Counter[str] = Counter()
    with setup.open(index=index) as archive:
        for row in archive.ledger().by("session"):
            tokens[names.get(row.keys["session"], row.keys["session"])] += row.tokens
    return tokens


def ledger_totals(setup: HomeAndKeep, *, index: bool) -> list[Any]:
    """The ledger by session, day, model and home."""
    with setup.open(index=index) as archive:
        assert not archive.keep_problems
        return [archive.ledger().by(name) for name in ("session", "day", "model", "home")]


def test_recovered_lines_are_counted_once(setup: HomeAndKeep) -> None:
    """Once the lines are in the transcript again, nothing is read from the keep, before and after a run."""
    setup.run()
    main = max(setup.transcripts(), key=lambda path: path.stat().st_size)
    data = main.read_bytes()
    os.truncate(main, 0)
    setup.run()
    last = [line["uuid"] for line in map(json.loads, data.splitlines()) if "uuid" in line][-1]
    more = f'{{"type":"user","uuid":"new","parentUuid":"{last}","message":{{"role":"user","content":"on"}}}}\n'.encode()
    main.write_bytes(more)
    assert len(setup.kept_files()) == 1
    setup.run()
    assert len(setup.kept_files()) == 1
    main.write_bytes(data + more)
    assert not setup.kept_files()
    setup.run()
    assert not setup.kept_files()


def test_edited_transcript_is_not_restored(setup: HomeAndKeep) -> None:
    """Lines that were removed from the middle, or rewritten, are not lost: the transcript in the home counts."""
    setup.run()
    first, second, *_others = sorted(setup.transcripts(), key=lambda path: -path.stat().st_size)
    lines = first.read_bytes().splitlines(keepends=True)
    first.write_bytes(b"".join(lines[: len(lines) // 3] + lines[len(lines) // 2 :]))
    second.write_bytes(second.read_bytes().replace(b"the", b"---"))
    setup.run()
    assert not setup.kept_files()


def test_two_truncations_are_joined_in_order(setup: HomeAndKeep) -> None:
    """A transcript that was truncated and continued twice is complete once it is gone, each line in its place."""
    main = max(setup.transcripts(), key=lambda path: path.stat().st_size)
    lines = main.read_bytes().splitlines(keepends=True)
    third = len(lines) // 3
    parts = [lines[:third], lines[third : 2 * third], lines[2 * third :]]
    for part in (parts[0], parts[1], parts[2]):
        main.write_bytes(b"".join(part))
        setup.run()
    assert len(setup.kept_files()) == 1
    main.unlink()
    (path,) = setup.kept_files()
    with setup.open() as archive:
        (home,) = (found.path for found in archive.homes if found.source == KEEP_SOURCE)
    assert (home / path).read_bytes() == b"".join(lines)


def test_paths_of_keep_and_index_may_be_text(setup: HomeAndKeep, tmp_path: Path) -> None:
    """`keep` and `index` take a path as text, too."""
    setup.run()
    setup.transcripts()[0].unlink()
    with (
        threadline.open(setup.home, keep=str(setup.keep), index=str(tmp_path / "text.sqlite")) as by_text,
        threadline.open(setup.home, keep=setup.keep, index=False) as by_path,
    ):
        assert by_text.index == tmp_path / "text.sqlite"
        assert len(by_text.homes) == len(by_path.homes) == 2


@pytest.mark.slow
@pytest.mark.parametrize("index", [True, False])
def test_archives_with_different_keeps_do_not_influence_each_other(
    setup: HomeAndKeep, tmp_path: Path, index: bool
) -> None:
    """What one archive reads from its keep does not appear in another archive of the same process."""
    setup.run()
    main = next(main for main in setup.transcripts() if any(main.with_suffix("").rglob("agent-*.jsonl")))
    expected = len(threadline.read(main).agents)
    deleted = [path for path in main.with_suffix("").rglob("*") if path.is_file()]
    for path in deleted:
        path.unlink()
    Store.make(tmp_path / "empty")
    with (
        setup.open(keep=setup.keep, index=index) as full,
        setup.open(keep=tmp_path / "empty", index=tmp_path / "empty.sqlite" if index else False) as empty,
    ):
        assert len(full.session(main.stem).agents) == expected
        assert len(empty.session(main.stem).agents) < expected
        assert len(threadline.read(main).agents) < expected
        assert full.session(main.stem).ledger.total.charges > empty.session(main.stem).ledger.total.charges
        (kept,) = (home for home in full.homes if home.is_kept)
        assert [row.keys["home"] for row in full.ledger().by("home")] == [str(setup.home)]
    with threadline.open(kept.path, keep=tmp_path / "empty", index=index) as other:
        assert {row.keys["home"] for row in other.ledger().by("home")} == {str(kept.path)}
        assert not any(session.kept for session in other.sessions().sessions)


def test_kept_session_is_marked(setup: HomeAndKeep) -> None:
    """A session of the archive is marked if only the keep has it. The same file read by its path is not."""
    setup.run()
    main = setup.transcripts()[0]
    main.unlink()
    with setup.open() as archive:
        session = archive.session(main.stem)
    assert session.kept
    assert session.path is not None
    assert not threadline.read(session.path).kept
