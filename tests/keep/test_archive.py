"""The archive reads the keep: what a home has lost is told as before, and what it has is told once."""

from __future__ import annotations

import json
import os
import shutil
import stat
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

ASKED: dict[str, Callable[[Archive], Any]] = {
    "sessions": lambda archive: [_without_path(session) for session in archive.sessions().sessions],
    "days": lambda archive: archive.ledger().by("day"),
    "homes": lambda archive: archive.ledger().by("home"),
    "sessions and models": lambda archive: archive.ledger().by("session", "model"),
    "agents and tools": lambda archive: archive.ledger().by("agent", "agent-type", "tool"),
    "overview": lambda archive: [
        getattr(archive.overview(), name)
        for name in ("sessions", "agents", "entries", "bytes", "continuations", "projects", "kinds")
    ],
    "entries": lambda archive: [
        (one.id, one.title, len(one), len(one.agents), one.continuations, one.ledger.total)
        for one in (archive.session(str(each.id)) for each in archive.sessions().sessions)
    ],
}


class Place:
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
        """Keep what there is now."""
        machine = machine or self.machine
        run_keep(Catalogue(Store.make(self.keep), machine.folder), homes(self.home), machine)

    def open(self, **given: Any) -> Archive:
        """The archive of the home."""
        return threadline.open(self.home, **given)

    def told(self, **given: Any) -> dict[str, Any]:
        """What it tells."""
        with self.open(**given) as archive:
            assert not archive.keep_problems
            return {name: asked(archive) for name, asked in ASKED.items()}

    def kept(self) -> set[str]:
        """The files of the kept home, by their paths below it."""
        with self.open() as archive:
            tops = [home.path for home in archive.homes if home.source == KEEP_SOURCE]
        return {str(path.relative_to(top)) for top in tops for path in top.rglob("*") if path.is_file()}

    def transcripts(self) -> list[Path]:
        """The main transcripts, in order."""
        return sorted(self.home.glob("projects/*/*-*-*.jsonl"))

    def below(self, paths: Iterable[Path]) -> set[str]:
        """Paths as the keep has them."""
        return {str(path.relative_to(self.home)) for path in paths}


@pytest.fixture
def place(tmp_path: Path, small_home: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A made-up home, and folders of its own."""
    made = Place(tmp_path, small_home)
    monkeypatch.setenv("THREADLINE_KEEP", str(made.keep))
    monkeypatch.setenv("THREADLINE_CACHE", str(made.cache))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return made


LOST: dict[str, Callable[[Place], list[Path]]] = {
    "every other session": lambda place: [
        path
        for main in place.transcripts()[::2]
        for path in (main, *(one for one in main.with_suffix("").rglob("*") if one.is_file()))
    ],
    "main transcripts alone": lambda place: place.transcripts()[1::2],
    "agents alone": lambda place: list(place.home.rglob("agent-*.jsonl")),
    "what is told of agents": lambda place: list(place.home.rglob("*.meta.json")),
    "everything": lambda place: [path for path in (place.home / "projects").rglob("*") if path.is_file()],
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("lost", LOST)
@pytest.mark.parametrize("index", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_what_is_lost_is_told_as_before(place: Place, lost: str, index: bool) -> None:
    """Whatever a home has lost, all is told as before, also where some of a session is here and some is only kept."""
    place.run()
    before = place.told(index=index)
    gone = LOST[lost](place)
    assert gone
    for path in gone:
        path.unlink()
    assert place.told(index=index) == before
    assert place.kept() == place.below(gone)


def test_the_index_only_makes_it_quick(place: Place) -> None:
    """With kept sessions, an index tells what reading tells; and that they are kept."""
    place.run()
    for path in LOST["every other session"](place):
        path.unlink()
    with place.open() as quick, place.open(index=False) as plain:
        quick.refresh()
        assert quick.sessions() == plain.sessions()
        assert quick.overview() == plain.overview()
        assert quick.ledger().by("project", "home") == plain.ledger().by("project", "home")
        assert quick.search("test", every=True, limit=None).hits
        kept = {str(session.id) for session in quick.sessions().sessions if session.kept}
        assert kept
        assert kept.isdisjoint(path.stem for path in place.transcripts())
        assert {hit.session for hit in quick.search("test", limit=None).hits if hit.kept} <= kept


def test_what_is_deleted_moves_in_the_index(place: Place) -> None:
    """A session that Claude Code deletes keeps its entries: the index knows that it moved, and reads nothing anew."""
    place.run()
    with place.open() as archive:
        archive.refresh()
        before = archive.connection.execute("SELECT MAX(entry_id), COUNT(*) FROM entries").fetchone()
    for path in LOST["every other session"](place):
        path.unlink()
    with place.open() as archive:
        archive.refresh()
        assert archive.connection.execute("SELECT MAX(entry_id), COUNT(*) FROM entries").fetchone() == before
        assert any(home.source == KEEP_SOURCE for home in archive.homes)


def test_nothing_is_put_back_that_is_there(place: Place) -> None:
    """As long as the home has everything, there is no kept home; a file that changed since is left as it is there."""
    place.run()
    grown, cut, *_others = place.transcripts()
    with grown.open("ab") as file:
        file.write(b'{"type":"summary","summary":"more","leafUuid":"x"}\n')
    os.truncate(cut, cut.stat().st_size // 2)
    with place.open() as archive:
        assert [home.source for home in archive.homes] == ["option"]
        assert not any(session.kept for session in archive.sessions().sessions)


def test_what_comes_back_leaves(place: Place) -> None:
    """A session that is in the home again, restored or by another way, is told from there alone."""
    place.run()
    first, second, *_others = place.transcripts()
    whole = {path: path.read_bytes() for path in (first, second)}
    before = place.told()
    for path in whole:
        path.unlink()
    assert place.kept() == place.below(whole)
    first.write_bytes(whole[first])
    assert place.kept() == place.below([second])
    second.write_bytes(whole[second])
    assert place.kept() == set()
    assert len(place.told()["sessions"]) == len(before["sessions"])


def test_a_session_that_went_elsewhere_is_told_once(place: Place) -> None:
    """A project's folder that was renamed, and a session that was taken along: what was kept of them is a copy."""
    place.run()
    before = len(place.told()["sessions"])
    folder = place.transcripts()[0].parent
    folder.rename(folder.with_name("-somewhere-else"))
    assert {path for path in place.kept() if path.endswith(".jsonl")} == set()
    assert len(place.told()["sessions"]) == before


def test_the_newest_version_is_read(place: Place) -> None:
    """Of a transcript that grew between two runs, what it was last; also where an older one was put back before."""
    path = place.transcripts()[0]
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    place.run()
    path.unlink()
    (kept,) = place.kept()
    path.write_bytes(whole)
    place.run()
    path.unlink()
    with place.open() as archive:
        assert (archive.homes[1].path / kept).read_bytes() == whole
        assert archive.session(path.stem).kept


def test_what_was_forgotten_is_gone(place: Place) -> None:
    """A session that was taken out of the keep leaves the kept home, too."""
    place.run()
    first, second, *_others = place.transcripts()
    for path in (first, second):
        path.unlink()
    place.kept()
    store = Store(place.keep)
    files = [version for version in Catalogue(store).all_versions() if first.stem in version.path]
    forget_session(
        Catalogue(store, place.machine.folder, trust_cache=False), place.machine, first.stem, files, "no longer wanted"
    )
    assert place.kept() == place.below([second])
    assert first.stem not in {str(session.id) for session in place.open().sessions().sessions}


def test_it_may_be_thrown_away(place: Place) -> None:
    """The kept home can be deleted, in whole or in part, and is made again; only its owner may look into it."""
    place.run()
    gone = place.transcripts()[:3]
    for path in gone:
        path.unlink()
    before = place.told()
    shutil.rmtree(place.cache / "kept")
    assert place.told() == before
    (top,) = (home.path for home in place.open().homes if home.source == KEEP_SOURCE)
    assert {stat.S_IMODE(one.stat().st_mode) for one in (top, *top.rglob("*"))} == {0o700, 0o600}
    shutil.rmtree(top)
    assert place.told() == before


def test_nothing_is_looked_for_twice(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing changed, the keep is not opened and no home is listed."""
    place.run()
    for path in place.transcripts()[:3]:
        path.unlink()
    _age(place.home)
    before = [home.path for home in place.open().homes]

    def never(*_given: object, **_more: object) -> None:
        raise AssertionError("the keep was opened, or a home was listed")

    monkeypatch.setattr(kept_home, "find_missing_files", never)
    monkeypatch.setattr(kept_files, "open_catalogue", never)
    assert [home.path for home in place.open().homes] == before


def test_without_a_keep_nothing_is_loaded(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has no keep pays nothing for it; who has one may leave it out."""
    monkeypatch.setattr(kept_home, "kept_homes", None)
    assert len(place.open().homes) == 1
    place.run()
    place.transcripts()[0].unlink()
    assert len(place.open(keep=False).homes) == 1
    monkeypatch.setenv("THREADLINE_KEEP", "off")
    assert len(place.open().homes) == 1


def test_another_machine(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """What another machine kept is read where no home was named, and called after it; a copy of ours is not."""
    place.run()
    place.run(SECOND)
    path = place.transcripts()[0]
    whole = path.read_bytes()
    other = path.with_name("aaaaaaaa-1111-4111-8111-111111111111.jsonl")
    other.write_bytes(whole.replace(path.stem.encode(), other.stem.encode()))
    place.run(SECOND)
    other.unlink()
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(place.home))
    with threadline.open() as archive:
        assert {str(session.id) for session in archive.sessions().sessions if session.kept} == {other.stem}
        assert {row.keys["home"] for row in archive.ledger().by("home")} <= {str(place.home), f"second:{place.home}"}
    with place.open() as archive:
        assert not any(session.kept for session in archive.sessions().sessions)


def test_a_keep_that_cannot_be_read_hides_nothing(place: Place) -> None:
    """What is wrong with a keep is told; the home is read all the same, and what was put back before stays."""
    place.run()
    place.transcripts()[0].unlink()
    before = {str(session.id) for session in place.open().sessions().sessions}
    whole = (place.keep / "keep.json").read_bytes()
    (place.keep / "keep.json").write_text("{")
    assert {str(session.id) for session in place.open().sessions().sessions} == before
    (place.keep / "keep.json").write_bytes(whole)
    for path in (place.keep / "runs").iterdir():
        path.write_bytes(b"not a manifest")
        path.rename(path.with_name(f"{'0' * 64}.jsonl.zst"))
    with place.open() as archive:
        assert archive.keep_problems
        assert {path.stem for path in place.transcripts()} <= before
        assert {str(session.id) for session in archive.sessions().sessions} <= before


def test_a_path_that_leads_out_is_not_put_back(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A keep may come from anywhere: no path in it leads out of the kept home."""
    place.run()
    really = kept_files.open_catalogue

    def hostile(folder: Path) -> Catalogue:
        made = really(folder)
        for (machine, home, path), versions in list(made.versions.items()):
            for bad in (
                f"../../../out/{path}",
                f"{place.cache}/out/{path}",
                f"projects/../../out/{path}",
                "out\\..\\x",
            ):
                made.versions[machine, home, bad] = [replace(version, path=bad) for version in versions]
        return made

    monkeypatch.setattr(kept_files, "open_catalogue", hostile)
    gone = place.transcripts()[:2]
    for path in gone:
        path.unlink()
    assert place.kept() == place.below(gone)
    assert not [path for path in place.cache.parent.rglob("out*") if "home" not in path.parts]


def _without_path(one: Any) -> Any:
    return {name: getattr(one, name) for name in one.__struct_fields__ if name not in {"path", "kept"}}


def _age(home: Path) -> None:
    """As if nothing had changed for a while."""
    for path in (home, *home.rglob("*")):
        if path.is_dir():
            os.utime(path, (1_700_000_000, 1_700_000_000))


@pytest.mark.sample(3)
@pytest.mark.parametrize("lost", ["every other session", "agents alone", "everything"])
@pytest.mark.parametrize("inside", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_projects_may_be_a_link(place: Place, tmp_path: Path, lost: str, inside: bool) -> None:
    """Where `projects` leads to another disk, or elsewhere in the home, all is kept by the path it seems to have."""
    moved = place.home / "store" if inside else tmp_path / "disk"
    (place.home / "projects").rename(moved)
    (place.home / "projects").symlink_to(moved)
    place.run()
    before = place.told()
    gone = LOST[lost](place) if lost != "agents alone" else list(moved.rglob("agent-*.jsonl"))
    gone = gone if lost != "everything" else [path for path in moved.rglob("*") if path.is_file()]
    assert gone
    for path in gone:
        path.unlink()
    assert place.told() == before
    catalogue = Catalogue(Store(place.keep))
    assert not restore_files(catalogue, catalogue.newest(), place.home).refused
    assert all(path.is_file() for path in gone)


@pytest.mark.parametrize("index", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_transcript_that_was_emptied_is_told_from_the_keep(place: Place, index: bool) -> None:
    """One that a crash left empty is told as before, also after a run has seen it so; written anew, it is its own."""
    place.run()
    before = place.told(index=index)
    emptied = place.transcripts()[::2]
    data = {path: path.read_bytes() for path in emptied}
    for path in emptied:
        path.write_bytes(b"")
    place.run()
    assert place.told(index=index) == before
    assert place.kept() == place.below(emptied)
    for path in emptied:
        path.write_bytes(data[path])
    assert place.told(index=index) == before
    assert not place.kept()


@pytest.mark.parametrize("left", [pytest.param(0.0, marks=pytest.mark.slow), 0.6])
def test_a_transcript_that_was_cut_and_deleted_is_told_whole(place: Place, left: float) -> None:
    """After it is gone altogether, what stood before it was cut off is what is read."""
    place.run()
    before = place.told()
    for path in place.transcripts()[::2]:
        os.truncate(path, int(path.stat().st_size * left))
    place.run()
    for path in place.transcripts()[::2]:
        path.unlink()
    assert place.told() == before


def test_a_keep_whose_first_file_is_a_pipe_is_left_out(place: Place) -> None:
    """What is no file in place of keep.json is not waited for."""
    place.run()
    (place.keep / "keep.json").unlink()
    os.mkfifo(place.keep / "keep.json")
    with place.open() as archive:
        assert "cannot be read" in archive.keep_problems[0]
        assert archive.sessions().sessions


@pytest.mark.sample(2)
@pytest.mark.parametrize("index", [True, False])
def test_what_other_machines_kept_is_told_apart(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, index: bool
) -> None:
    """Lists and sums can be split by machine, with an index and without; what this one has lost stays its own."""
    monkeypatch.setattr("platform.node", lambda: "first")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(place.home))
    write(tmp_path / "there", megabytes=1, seed=7)
    place.run()
    run_keep(Catalogue(Store.make(place.keep)), homes(tmp_path / "there"), SECOND)
    with threadline.open(place.home, keep=False, index=False) as archive:
        own = archive.ledger().total, {session.id for session in archive.sessions().sessions}
    with threadline.open(tmp_path / "there", keep=False, index=False) as archive:
        others = archive.ledger().total, {session.id for session in archive.sessions().sessions}
    place.transcripts()[0].unlink()
    with threadline.open(index=index) as archive:
        sums = {row.keys["machine"]: row.amount for row in archive.ledger().by("machine")}
        assert sums == {"first": own[0].amount, "second": others[0].amount}
        for name, ids in (("first", own[1]), ("Second", others[1])):
            listed = archive.sessions(SessionFilter(machine=name)).sessions
            assert {one.id for one in listed} == ids
            assert {one.machine for one in listed} == {name.lower()}
        assert not archive.sessions(SessionFilter(machine="third")).sessions


def test_what_there_is_no_room_for_hides_nothing_else(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what only the keep has, as many files are put back as fit, the smallest first; the others are told."""
    place.run()
    lost = place.transcripts()
    sizes = sorted(path.stat().st_size for path in lost)
    for path in lost:
        path.unlink()
    room = 512 * 1024 * 1024 + sum(sizes[:-2])
    monkeypatch.setattr("shutil.disk_usage", lambda _path: SimpleNamespace(free=room))
    with place.open() as archive:
        assert "The largest 2 of" in archive.keep_problems[0]
        (kept,) = (home.path for home in archive.homes if home.source == KEEP_SOURCE)
        assert len([path for path in kept.rglob("*") if path.is_file()]) == len(lost) - 2


def test_machines_of_one_name_are_told_apart(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where another machine is called as this one is, its id is part of what it is called."""
    monkeypatch.setattr("platform.node", lambda: "first")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(place.home))
    write(tmp_path / "there", megabytes=1, seed=7)
    place.run()
    run_keep(
        Catalogue(Store.make(place.keep), replace(SECOND, label="first").folder),
        homes(tmp_path / "there"),
        replace(SECOND, label="first"),
    )
    with threadline.open() as archive:
        assert {session.machine for session in archive.sessions().sessions} == {"first", f"first ({SECOND.id})"}


CUTS: dict[str, float] = {"to nothing": 0.0, "to a beginning": 0.6}


@pytest.mark.sample(2)
@pytest.mark.parametrize("left", CUTS.values(), ids=CUTS)
@pytest.mark.parametrize("seen", [True, False], ids=["a run saw it cut", "no run did"])
@pytest.mark.parametrize("index", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_what_a_cut_took_is_told_though_the_session_went_on(place: Place, left: float, seen: bool, index: bool) -> None:
    """Kept whole, cut off, gone on with: the sums are those of all lines, each once, and all of them are found."""
    main = max(place.transcripts(), key=lambda path: path.stat().st_size)
    lines = main.read_bytes().splitlines(keepends=True)
    head, tail = lines[: len(lines) * 3 // 4], lines[len(lines) * 3 // 4 :]
    wanted = _sums(place, index=index)
    main.write_bytes(b"".join(head))
    place.run()
    rest = head[: int(len(head) * left)]
    main.write_bytes(b"".join(rest))
    if seen:
        place.run()
    main.write_bytes(b"".join([*rest, *tail]))
    place.run()
    assert _sums(place, index=index) == wanted
    assert main.read_bytes() == b"".join([*rest, *tail])
    with place.open(index=index) as archive:
        ids = {main.stem, lost_part_id(main.stem)}
        sessions = [session for session in archive.sessions().sessions if str(session.id) in ids]
        assert sorted(session.kept for session in sessions) == [False, True]
        assert sum(session.entries for session in sessions) == len(lines)
        assert archive.session(main.stem).path == main
    main.unlink()
    assert _sums(place, index=index) == wanted
    with place.open(index=index) as archive:
        (one,) = (session for session in archive.sessions().sessions if session.id == main.stem)
        assert (one.kept, one.entries, Path(one.path).read_bytes()) == (True, len(lines), b"".join(lines))


def _sums(place: Place, *, index: bool) -> list[Any]:
    with place.open(index=index) as archive:
        assert not archive.keep_problems
        return [archive.ledger().by(name) for name in ("session", "day", "model", "home")]


def test_what_a_cut_took_and_came_back_is_told_once(place: Place) -> None:
    """Once the lines are in the living transcript again, nothing is read from the keep, before and after a run."""
    place.run()
    main = max(place.transcripts(), key=lambda path: path.stat().st_size)
    data = main.read_bytes()
    os.truncate(main, 0)
    place.run()
    last = [line["uuid"] for line in map(json.loads, data.splitlines()) if "uuid" in line][-1]
    more = f'{{"type":"user","uuid":"new","parentUuid":"{last}","message":{{"role":"user","content":"on"}}}}\n'.encode()
    main.write_bytes(more)
    assert len(place.kept()) == 1
    place.run()
    assert len(place.kept()) == 1
    main.write_bytes(data + more)
    assert not place.kept()
    place.run()
    assert not place.kept()


def test_what_was_edited_stays_edited(place: Place) -> None:
    """Lines that somebody took out of the middle, or rewrote, are not lost: the living transcript is as it is."""
    place.run()
    first, second, *_others = sorted(place.transcripts(), key=lambda path: -path.stat().st_size)
    lines = first.read_bytes().splitlines(keepends=True)
    first.write_bytes(b"".join(lines[: len(lines) // 3] + lines[len(lines) // 2 :]))
    second.write_bytes(second.read_bytes().replace(b"the", b"---"))
    place.run()
    assert not place.kept()


def test_two_cuts_are_told_in_order(place: Place) -> None:
    """A transcript that was cut off twice, and gone on with twice, is whole once it is gone, each line in its place."""
    main = max(place.transcripts(), key=lambda path: path.stat().st_size)
    lines = main.read_bytes().splitlines(keepends=True)
    third = len(lines) // 3
    parts = [lines[:third], lines[third : 2 * third], lines[2 * third :]]
    for kept in (parts[0], parts[1], parts[2]):
        main.write_bytes(b"".join(kept))
        place.run()
    assert len(place.kept()) == 1
    main.unlink()
    (path,) = place.kept()
    with place.open() as archive:
        (home,) = (one.path for one in archive.homes if one.source == KEEP_SOURCE)
    assert (home / path).read_bytes() == b"".join(lines)


@pytest.mark.parametrize("index", [True, False])
def test_archives_with_different_keeps_do_not_influence_each_other(place: Place, tmp_path: Path, index: bool) -> None:
    """What one archive reads from its keep does not appear in another archive of the same process."""
    place.run()
    main = next(main for main in place.transcripts() if any(main.with_suffix("").rglob("agent-*.jsonl")))
    expected = len(threadline.read(main).agents)
    deleted = [path for path in main.with_suffix("").rglob("*") if path.is_file()]
    for path in deleted:
        path.unlink()
    Store.make(tmp_path / "empty")
    with (
        place.open(keep=place.keep, index=index) as full,
        place.open(keep=tmp_path / "empty", index=tmp_path / "empty.sqlite" if index else False) as empty,
    ):
        assert len(full.session(main.stem).agents) == expected
        assert len(empty.session(main.stem).agents) < expected
        assert len(threadline.read(main).agents) < expected
        assert full.session(main.stem).ledger.total.charges > empty.session(main.stem).ledger.total.charges
        (kept,) = (home for home in full.homes if home.is_kept)
        assert [row.keys["home"] for row in full.ledger().by("home")] == [str(place.home)]
    with threadline.open(kept.path, keep=tmp_path / "empty", index=index) as other:
        assert {row.keys["home"] for row in other.ledger().by("home")} == {str(kept.path)}
        assert not any(session.kept for session in other.sessions().sessions)


def test_a_kept_session_knows_that_it_is_kept(place: Place) -> None:
    """A session of the archive is kept if only the keep has it; the same file read by its path alone is not."""
    place.run()
    main = place.transcripts()[0]
    main.unlink()
    with place.open() as archive:
        session = archive.session(main.stem)
    assert session.kept
    assert session.path is not None
    assert not threadline.read(session.path).kept
