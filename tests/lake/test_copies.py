"""What several machines have a copy of is counted as on one machine that has all their homes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.cli.runner import CliRunner
from tests.interfaces import odd_homes
from tests.interfaces.odd_homes import FIRST, SECOND
from tests.lake.machines import FORK, make_homes, push, session_id, write_session
from tests.lake.test_build import rows_of
from tests.transcripts import write

import threadline

pytest.importorskip("obstore", reason="needs the extra lake")
pytest.importorskip("pyiceberg", reason="needs the extra lake")

from threadline.lake import build_lake
from threadline.storage import Bucket

# The columns of each table that do not name a file by its full path or by a number.
COLUMNS = {
    "entries": "kind, uuid, line, message",
    "charges": "message, part, session, agent, agent_type, project, model, input, output, cache_read, copied",
    "calls": "call, tool, outcome, exit_code, session, agent, started_agent, project, line, result_line, duration",
    "sessions": "session, title, title_source, project, turns, agents, model, entries, size",
    "agents": "agent, session, type, call, model, entries, project, side",
    "prompts": "text, kind, turn, session, project, line",
    "compactions": "kind, trigger, tokens_before, tokens_after, session, agent, project, line",
    "problems": "line, kind, message, recovered",
}


def assert_rows_of_one_machine(bucket: Bucket, homes: Sequence[Path], index: Path) -> None:
    """Check that a lake's tables have the rows that the index of one machine with all homes has."""
    with threadline.open(homes, index=index, keep=False) as archive:
        for table, columns in COLUMNS.items():
            expected = Counter(archive.connection.execute(f"SELECT {columns} FROM {table}").fetchall())  # noqa: S608
            actual = Counter(tuple(row[name] for name in columns.split(", ")) for row in rows_of(bucket, table))
            assert actual == expected, table
        query = "SELECT path, session, reads, writes FROM files"
        touched: Counter[Any] = Counter()
        for row in rows_of(bucket, "files"):
            touched[row["path"], row["session"], "reads"] += row["reads"]
            touched[row["path"], row["session"], "writes"] += row["writes"]
        for path, session, reads, writes in archive.connection.execute(query).fetchall():
            assert (touched[path, session, "reads"], touched[path, session, "writes"]) == (reads, writes)


@pytest.mark.parametrize(
    ("name", "spent"),
    [("copy under another id", {FIRST: 1000}), ("copy under an id that sorts first", {SECOND: 1020})],
)
def test_original_is_the_session_that_the_rows_name(tmp_path: Path, name: str, spent: dict[str, int]) -> None:
    """A lake charges the same session as one machine does, whatever the order of the ids."""
    bucket = Bucket(str(tmp_path / "lake"))
    push(bucket, odd_homes.CASES[name](tmp_path / "homes"))
    build_lake(bucket)
    charged: Counter[str] = Counter()
    for row in rows_of(bucket, "charges"):
        charged[row["session"]] += row["input"] + row["output"]
    assert charged == spent


@pytest.mark.slow
def test_tables_have_the_rows_of_one_machine(tmp_path: Path, demo_home: Path) -> None:
    """Five machines with copies, a fork and half a session: every table equals that of one machine with all homes."""
    homes = make_homes(tmp_path / "homes", demo_home)
    bucket = Bucket(str(tmp_path / "lake"))
    for number, home in enumerate(homes, 1):
        push(bucket, [home], number)
        if number == 3:
            build_lake(bucket, jobs=1)
    build_lake(bucket, jobs=1)
    assert_rows_of_one_machine(bucket, homes, tmp_path / "index.sqlite")
    assert rows_of(bucket, "call_copies")


@pytest.mark.slow
def test_the_copy_of_a_call_counts_after_the_original_is_gone(tmp_path: Path) -> None:
    """A call is in `calls` once, with its original; if the original no longer has it, the copy takes its place."""
    homes = [tmp_path / "a", tmp_path / "b"]
    original = write_session(homes[0], 1)
    copy = homes[1] / "projects" / "-work-app" / original.name
    copy.parent.mkdir(parents=True)
    copy.write_bytes(original.read_bytes())
    bucket = Bucket(str(tmp_path / "lake"))
    push(bucket, [homes[1]], 2)
    build_lake(bucket, jobs=1)
    alone = [row["call"] for row in rows_of(bucket, "calls")]
    assert {row["person"] for row in rows_of(bucket, "calls")} == {"person2"}
    push(bucket, [homes[0]], 1)
    build_lake(bucket, jobs=1)
    calls, copies = rows_of(bucket, "calls"), rows_of(bucket, "call_copies")
    assert sorted(row["call"] for row in calls) == sorted(alone)
    assert {row["person"] for row in calls} == {row["person"] for row in rows_of(bucket, "charges")} == {"person1"}
    assert [row["person"] for row in copies] == ["person2"] * len(alone)
    write_session(homes[0], 1, turns=1)
    push(bucket, [homes[0]], 1)
    build_lake(bucket, jobs=1)
    calls = rows_of(bucket, "calls")
    assert sorted(row["call"] for row in calls) == sorted(alone)
    assert Counter(row["person"] for row in calls) == {"person1": 1, "person2": 1}
    assert len(rows_of(bucket, "call_copies")) == 1


@pytest.mark.slow
def test_a_search_finds_copies_once(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """An entry that a resumed session and another machine repeat is one hit: the original. A person's copy is found."""
    homes = [tmp_path / "a", tmp_path / "b", tmp_path / "c"]
    original = write_session(homes[1], 1, text="needle", turns=1)
    write(homes[0] / "projects" / "-work-app" / f"{FORK}.jsonl", *original.read_bytes().splitlines(keepends=True))
    write_session(homes[2], 1, text="needle", turns=1)
    bucket = Bucket(str(tmp_path / "lake"))
    for number, home in enumerate(homes, 1):
        push(bucket, [home], number)
    build_lake(bucket, jobs=1)
    cli = CliRunner(capfdbinary)
    hits = cli("lake", "search", bucket.uri, "needle", "--json").json
    assert {(hit["session"], hit["person"]) for hit in hits} == {(session_id(1), "person2")}
    assert len({hit["field"] for hit in hits}) == len(hits)
    copies = cli("lake", "search", bucket.uri, "needle", "--person", "person1", "--json").json
    assert {hit["session"] for hit in copies} == {FORK}
