"""Building the tables of a lake: the figures of one machine, whatever dies or runs twice."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from importlib import import_module
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import pytest
from tests.lake.machines import FORK, make_homes, push, session_id, write_fork, write_session

from threadline.account import KEY_DESCRIPTIONS
from threadline.errors import BadQuery, NotFound, Unreadable
from threadline.reports import read_ledger

pytest.importorskip("obstore", reason="needs the extra lake")
pytest.importorskip("pyiceberg", reason="needs the extra lake")

from threadline.lake import (
    TABLES,
    Catalogue,
    build_lake,
    forget_sources,
    read_commit,
    read_usage,
    register_tables,
    remove_orphans,
    select_sources,
)
from threadline.storage import Bucket

KEYS = [key for key in KEY_DESCRIPTIONS if key != "machine"]


def rows_of(bucket: Bucket, table: str) -> list[dict[str, Any]]:
    """All rows of a table."""
    catalogue = Catalogue(bucket, read_commit(bucket))
    names = [field.name for field in catalogue.table(table).schema().fields]
    rows: list[dict[str, Any]] = catalogue.scan(table, names).to_pylist()
    return rows


def snapshot(bucket: Bucket) -> dict[str, Counter[str]]:
    """All rows of all tables, without the order."""
    return {table: Counter(map(repr, rows_of(bucket, table))) for table in TABLES}


def assert_equal_usage(bucket: Bucket, homes: Sequence[Path], keys: Sequence[str] = KEYS) -> None:
    """Check that a lake reports what one machine with all homes reports."""
    local, lake = read_ledger(homes), read_usage(bucket)
    for key in keys:
        expected = {row.keys[key]: row for row in local.by(key, zone="UTC")}
        actual = {row.keys[key]: row for row in lake.ledger.by(key, zone="UTC", extra=lake.keys)}
        assert actual == expected, key
    assert len(lake.ledger.missing_agents) == len(local.missing_agents)


@pytest.fixture
def lake(tmp_path: Path) -> Bucket:
    """An empty lake in a folder."""
    return Bucket(str(tmp_path / "lake"))


def test_agents_in_another_folder_are_of_the_sessions_project(tmp_path: Path, lake: Bucket) -> None:
    """A lake reports an agent's usage for the project of its session, as one machine does."""
    main = write_session(tmp_path / "a", 1)
    agent = write_session(tmp_path / "other", 2)
    moved = main.parent.with_name("-work-app-assets") / main.stem / "subagents" / "agent-a1.jsonl"
    moved.parent.mkdir(parents=True)
    moved.write_text(agent.read_text().replace(agent.stem, main.stem).replace("/work/app", "/work/app/assets"))
    push(lake, [tmp_path / "a"])
    build_lake(lake, jobs=1)
    assert_equal_usage(lake, [tmp_path / "a"], ["project", "session"])
    assert len(list(read_usage(lake).ledger.by("project"))) == 1
    assert len({row["project"] for row in rows_of(lake, "calls")}) == 1


@pytest.mark.smoke
@pytest.mark.slow
def test_overlapping_machines_are_counted_once(tmp_path: Path, lake: Bucket) -> None:
    """A copied session and a fork on other machines add nothing but their own messages; amounts are exact."""
    homes = [tmp_path / "a", tmp_path / "b"]
    original = write_session(homes[0], 1)
    write_fork(homes[1], original)
    for number, home in enumerate(homes, 1):
        push(lake, [home], number)
    assert build_lake(lake, jobs=1).sessions == 2
    assert_equal_usage(lake, homes)
    charges = rows_of(lake, "charges")
    assert sum(row["amount"] for row in charges) == read_ledger(homes).total.amount
    assert Counter(row["person"] for row in charges) == {"person1": 4, "person2": 1}
    assert build_lake(lake, jobs=1).sessions == 0  # nothing is new


@pytest.mark.slow
def test_five_machines_report_what_one_would(tmp_path: Path, lake: Bucket, demo_home: Path) -> None:
    """Five homes with overlaps, built in steps: usage by every key equals that of one machine, to the last digit."""
    homes = make_homes(tmp_path / "homes", demo_home)
    for number, home in enumerate(homes, 1):
        push(lake, [home], number)
        if number in {2, 3}:
            build_lake(lake, jobs=1)
    build_lake(lake, jobs=1)
    assert_equal_usage(lake, homes)
    people = {row.keys["person"] for row in read_usage(lake).ledger.by("person", extra=read_usage(lake).keys)}
    assert people == {f"person{number}" for number in range(1, 6)}
    before = snapshot(lake)
    build_lake(lake, jobs=1, rebuild=True)
    rebuilt = snapshot(lake)
    assert {name: len(rows) for name, rows in rebuilt.items()} == {name: len(rows) for name, rows in before.items()}
    assert rebuilt["charges"] == before["charges"]


@pytest.mark.slow
def test_a_session_that_grew_replaces_its_rows(tmp_path: Path, lake: Bucket) -> None:
    """After a second push and build, a lake has the rows that a build of everything at once has."""
    home, other = tmp_path / "home", Bucket(str(tmp_path / "other"))
    write_session(home, 1, turns=1)
    write_session(home, 2)
    push(lake, [home])
    build_lake(lake, jobs=1)
    write_session(home, 1, turns=3)
    push(lake, [home])
    assert build_lake(lake, jobs=1).sessions == 1
    push(other, [home])
    build_lake(other, jobs=1)
    for table in ("entries", "calls", "prompts", "sessions", "charges", "texts"):
        grown, fresh = ([{**row, "batch": 0} for row in rows_of(bucket, table)] for bucket in (lake, other))
        assert Counter(map(repr, grown)) == Counter(map(repr, fresh)), table


@pytest.mark.slow
def test_sessions_of_a_day_are_built_together(tmp_path: Path, lake: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task has sessions of the same day, whatever their projects, so each table has one file for each day.

    The day is that of the transcripts: files that describe agents may be newer.
    """
    for number, day in enumerate((1, 2, 1, 2), 1):
        path = write_session(tmp_path / "home", number, project=f"-work-app{number}")
        text = path.read_text()
        path.write_text(text.replace(text.partition('"timestamp":"')[2][:10], f"2026-05-0{day}"))
        agent = path.with_suffix("") / "subagents" / "agent-a1.jsonl"
        agent.parent.mkdir(parents=True)
        shutil.copy2(path, agent)
        for file in (path, agent):
            os.utime(file, (ended := datetime(2026, 5, day, 12, tzinfo=UTC).timestamp(), ended))
        agent.with_suffix(".meta.json").write_text('{"agentType":"Explore"}')
        os.utime(agent.with_suffix(".meta.json"), (ended + 10**6 * number, ended + 10**6 * number))
    push(lake, [tmp_path / "home"])
    monkeypatch.setattr("threadline.lake.tasks.TASK_BYTES", 3 * path.stat().st_size)
    assert build_lake(lake, jobs=1).tasks == 2
    assert len(list(lake.list("silver/entries/data"))) == 2


@pytest.mark.slow
def test_rows_are_those_of_the_index(tmp_path: Path, lake: Bucket, small_home: Path) -> None:
    """A lake of one machine has the calls, prompts and sessions that the index of its home has."""
    import threadline  # noqa: PLC0415 - the library, as a user

    push(lake, [small_home])
    build_lake(lake, jobs=1)
    with threadline.open(small_home, index=tmp_path / "index.sqlite", keep=False) as archive:
        for table, columns in {
            "prompts": "text, kind, turn, session",
            "entries": "kind, uuid, line, message",
            "compactions": "kind, session, line",
        }.items():
            expected = Counter(archive.connection.execute(f"SELECT {columns} FROM {table}").fetchall())  # noqa: S608
            names = columns.split(", ")
            assert Counter(tuple(row[name] for name in names) for row in rows_of(lake, table)) == expected, table
    assert {row["day"].year >= 1970 for table in TABLES for row in rows_of(lake, table)} == {True}


@pytest.mark.slow
def test_a_build_that_dies_before_its_commit_changes_nothing(tmp_path: Path, lake: Bucket) -> None:
    """If the driver dies before the commit, readers see the old tables; the next build gives the same rows."""
    home = tmp_path / "home"
    write_session(home, 1)
    push(lake, [home])
    build_lake(lake, jobs=1)
    before = snapshot(lake)
    write_session(home, 2)
    push(lake, [home])
    script = (
        "import os, sys; from threadline.lake import build_lake; from threadline.storage import Bucket;"
        "from threadline.lake.iceberg import Catalogue;"
        "Catalogue.publish = lambda *_arguments, **_options: os.kill(os.getpid(), 9);"
        "build_lake(Bucket(sys.argv[1]), jobs=1)"
    )
    assert subprocess.run([sys.executable, "-c", script, lake.uri], check=False).returncode == -signal.SIGKILL  # noqa: S603 - ours
    assert snapshot(lake) == before
    assert build_lake(lake, jobs=1).sessions == 1
    assert_equal_usage(lake, [home])
    assert remove_orphans(lake, older_than=0) > 0
    assert_equal_usage(lake, [home])
    assert {row["session"] for row in rows_of(lake, "sessions")} == {session_id(1), session_id(2)}


@pytest.mark.slow
def test_a_killed_worker_loses_nothing(tmp_path: Path, lake: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a worker is killed, its tasks run again, and every row is there once."""
    home, reference = tmp_path / "home", Bucket(str(tmp_path / "reference"))
    for number in range(1, 5):
        write_session(home, number)
    push(lake, [home])
    push(reference, [home])
    build_lake(reference, jobs=1)
    monkeypatch.setattr("threadline.lake.tasks.TASK_BYTES", 1)
    monkeypatch.setattr("threadline.lake.tasks.MIN_PARALLEL_BYTES", 0)
    killed: list[int | None] = []

    def kill_all_once(_size: int) -> None:
        for worker in active_children() if not killed else ():
            killed.append(worker.pid)
            worker.kill()

    assert build_lake(lake, jobs=2, progress=kill_all_once).sessions == 4
    assert len(killed) == 2
    assert snapshot(lake) == snapshot(reference)


@pytest.mark.slow
def test_two_builds_at_once_publish_every_row_once(tmp_path: Path, lake: Bucket) -> None:
    """Of two builds at the same time, one publishes and the other finds nothing left to do."""
    home = tmp_path / "home"
    for number in range(1, 4):
        write_session(home, number)
    push(lake, [home])
    script = (
        "import sys; from threadline.lake import build_lake; from threadline.storage import Bucket;"
        "build_lake(Bucket(sys.argv[1]), jobs=1)"
    )
    builds = [subprocess.Popen([sys.executable, "-c", script, lake.uri]) for _ in range(2)]  # noqa: S603 - ours
    assert [build.wait() for build in builds] == [0, 0]
    assert_equal_usage(lake, [home])
    assert Counter(row["session"] for row in rows_of(lake, "sessions")) == {
        session_id(number): 1 for number in (1, 2, 3)
    }


@pytest.mark.slow
def test_a_batch_that_is_built_again_adds_nothing(
    tmp_path: Path, lake: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Running all tasks twice writes the same files: tables have every row once."""
    home = tmp_path / "home"
    write_session(home, 1)
    push(lake, [home])
    original = import_module("threadline.lake.tasks").run_task

    def run_twice(bucket: Bucket, task: Any) -> Any:
        first, second = original(bucket, task), original(bucket, task)
        assert first == second
        return second

    monkeypatch.setattr("threadline.lake.tasks.run_task", run_twice)
    build_lake(lake, jobs=1)
    assert len(rows_of(lake, "entries")) == len(next(home.rglob("*.jsonl")).read_bytes().splitlines())


def _all_bytes(bucket: Bucket) -> Iterator[bytes]:
    for path in bucket.folder.rglob("*"):
        if path.is_file():
            yield path.read_bytes()


@pytest.mark.slow
def test_a_forgotten_session_is_in_no_object(tmp_path: Path, lake: Bucket) -> None:
    """`forget` removes rows, objects, old snapshots and orphans; the session is not pushed again, the others stay."""
    homes = [tmp_path / "a", tmp_path / "b"]
    write_session(homes[0], 1, text="forgetmeplease")
    write_session(homes[0], 2)
    write_session(homes[1], 3)
    for number, home in enumerate(homes, 1):
        push(lake, [home], number)
        build_lake(lake, jobs=1)
    result = forget_sources(lake, select_sources(lake, sessions=[session_id(1)]))
    assert result.sessions == (session_id(1),)
    assert result.checked_objects > 10
    assert not any(session_id(1).encode() in data for data in _all_bytes(lake))
    (homes[0] / "projects" / "-work-app" / f"{session_id(1)}.jsonl").touch()
    assert push(lake, [homes[0]], 1).forgotten == 1
    build_lake(lake, jobs=1)
    next(homes[0].rglob(f"{session_id(1)}.jsonl")).unlink()
    assert_equal_usage(lake, homes)
    with pytest.raises(NotFound, match="no session"):
        select_sources(lake, sessions=[session_id(1)])
    forget_sources(lake, select_sources(lake, person="person2"))
    assert {row["person"] for table in TABLES for row in rows_of(lake, table)} == {"person1"}


@pytest.mark.slow
def test_forget_refuses_while_a_fork_has_the_same_entries(tmp_path: Path, lake: Bucket) -> None:
    """A session whose entries a fork repeats is only forgotten together with the fork."""
    homes = [tmp_path / "a", tmp_path / "b"]
    write_fork(homes[1], write_session(homes[0], 1))
    for number, home in enumerate(homes, 1):
        push(lake, [home], number)
    with pytest.raises(BadQuery, match="pushed since the last build"):
        forget_sources(lake, select_sources(lake, sessions=[session_id(1)]))
    build_lake(lake, jobs=1)
    before = snapshot(lake)
    with pytest.raises(BadQuery, match=f"--session {FORK}"):
        forget_sources(lake, select_sources(lake, sessions=[session_id(1)]))
    assert snapshot(lake) == before
    forget_sources(lake, select_sources(lake, sessions=[session_id(1), FORK]))
    assert all(not rows for rows in snapshot(lake).values())


@pytest.mark.slow
def test_a_missing_object_stops_the_build(tmp_path: Path, lake: Bucket) -> None:
    """A build that cannot read something publishes nothing."""
    home = tmp_path / "home"
    write_session(home, 1)
    push(lake, [home])
    (entry,) = lake.list("bronze/data")
    lake.delete([entry.path])
    with pytest.raises(Unreadable, match="is missing"):
        build_lake(lake, jobs=1)
    assert read_commit(lake) is None
    assert Decimal(0) == sum(entry.size for entry in lake.list("silver/commits"))


@pytest.mark.slow
def test_tables_are_registered_in_a_catalogue(tmp_path: Path, lake: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other engines find the tables of the latest commit in a catalogue, here SQLite."""
    catalogs = pytest.importorskip("pyiceberg.catalog")
    settings = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalogue.db"}
    monkeypatch.setattr(catalogs, "load_catalog", lambda name: catalogs.load_sql(name, settings))
    home = tmp_path / "home"
    for number in (1, 2):
        write_session(home, number)
        push(lake, [home])
        build_lake(lake, jobs=1)
        commit = read_commit(lake)
        assert commit is not None
        assert len(register_tables(commit, "team")) == len(TABLES)
        table = catalogs.load_catalog("team").load_table("threadline.sessions")
        assert table.scan().count() == number
