"""Summaries in other transcripts title a lake's sessions as on one machine, whoever has pushed them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.lake.machines import push
from tests.lake.test_build import rows_of
from tests.lake.test_copies import assert_rows_of_one_machine
from tests.lake.test_lake_pages import json_of, lake_client
from tests.transcripts import Pen, Row, prompt, reply, transcript, write

pytest.importorskip("obstore", reason="needs the extra lake")
pytest.importorskip("pyiceberg", reason="needs the extra lake")

from threadline.archive import Archive
from threadline.lake import build_lake, forget_sources, select_sources
from threadline.model.homes import Home
from threadline.storage import Bucket

OLD, NEW, NEWER, NAMED = (f"01d00000-0000-4000-8000-00000000000{number}" for number in range(1, 5))
PROMPT = "Sort the shelves"


def conversation(session: str, turns: int = 2) -> list[Any]:
    """The rows of a conversation."""
    parts = [part for turn in range(turns) for part in (prompt(PROMPT if not turn else f"More {turn}"), reply("Done"))]
    return transcript(*parts, pen=Pen(session, version="1.0.60"))


def summary(leaf: str, text: str) -> Row:
    """A summary of the conversation that contains an entry."""
    return {"type": "summary", "summary": text, "leafUuid": leaf}


def write_session(home: Path, session: str, rows: Sequence[Any]) -> Path:
    """Write the transcript of a session."""
    return write(home / "projects" / "-work-app" / f"{session}.jsonl", *rows)


def titles(bucket: Bucket) -> dict[str, tuple[str, str]]:
    """The title of each session, and its source."""
    return {row["session"]: (row["title"], row["title_source"]) for row in rows_of(bucket, "sessions")}


@pytest.fixture
def homes(tmp_path: Path) -> list[Path]:
    """Three machines: an old session, and two that begin with summaries of it, one of its last entry."""
    homes = [tmp_path / name for name in "abc"]
    old = conversation(OLD)
    write_session(homes[0], OLD, old)
    new = [summary(old[1]["uuid"], "Half of it"), summary("gone", "Nothing"), *conversation(NEW)]
    write_session(homes[1], NEW, new)
    write_session(homes[2], NEWER, [summary(old[-1]["uuid"], "Shelves sorted"), *conversation(NEWER)])
    return homes


@pytest.mark.slow
@pytest.mark.parametrize("order", [(1, 2, 3), (3, 2, 1), (2, 1, 3)])
def test_titles_do_not_depend_on_who_pushes_first(tmp_path: Path, homes: list[Path], order: Sequence[int]) -> None:
    """A session is titled by the summary of its latest entry, whether the session or the summary is pushed first."""
    bucket = Bucket(str(tmp_path / "lake"))
    for number in order:
        push(bucket, [homes[number - 1]], number)
        build_lake(bucket, jobs=1)
    assert titles(bucket)[OLD] == ("Shelves sorted", "summary")
    assert_rows_of_one_machine(bucket, homes, tmp_path / "index.sqlite")
    build_lake(bucket, jobs=1, rebuild=True)
    assert_rows_of_one_machine(bucket, homes, tmp_path / "index.sqlite")


@pytest.mark.slow
def test_a_title_changes_with_its_summaries(tmp_path: Path, homes: list[Path]) -> None:
    """If a session with a summary is forgotten or rewritten, the next best title counts, and its text is gone."""
    bucket = Bucket(str(tmp_path / "lake"))
    for number, home in enumerate(homes, 1):
        push(bucket, [home], number)
    build_lake(bucket, jobs=1)
    forget_sources(bucket, select_sources(bucket, sessions=[NEWER]))
    assert titles(bucket) == {OLD: ("Half of it", "summary"), NEW: (PROMPT, "first-prompt")}
    assert not any("Shelves sorted" in str(row) for row in rows_of(bucket, "sessions"))
    write_session(homes[1], NEW, conversation(NEW))
    push(bucket, [homes[1]], 2)
    build_lake(bucket, jobs=1)
    assert titles(bucket)[OLD] == (PROMPT, "first-prompt")


@pytest.mark.slow
def test_a_summary_titles_only_what_it_may(tmp_path: Path) -> None:
    """A title that somebody chose stays, and a summary that names the row of an agent titles nothing."""
    homes = [tmp_path / "a", tmp_path / "b"]
    named, old = conversation(NAMED), conversation(OLD)
    write_session(homes[0], NAMED, [*named, {"type": "custom-title", "customTitle": "Mine", "sessionId": NAMED}])
    agent = {**old[-1], "uuid": "a9e40000-0000-4000-8000-000000000009", "isSidechain": True, "parentUuid": None}
    write_session(homes[0], OLD, [*old, agent])
    refs = [summary(named[-1]["uuid"], "Not mine"), summary(agent["uuid"], "An agent's")]
    write_session(homes[1], NEW, [*refs, *conversation(NEW)])
    bucket = Bucket(str(tmp_path / "lake"))
    for number, home in enumerate(homes, 1):
        push(bucket, [home], number)
    build_lake(bucket, jobs=1)
    assert titles(bucket)[NAMED] == ("Mine", "custom-title")
    assert titles(bucket)[OLD] == (PROMPT, "first-prompt")
    assert_rows_of_one_machine(bucket, homes, tmp_path / "index.sqlite")


@pytest.mark.slow
@pytest.mark.parametrize("order", [(OLD, NEW, NEWER, NAMED), (NAMED, NEWER, NEW, OLD)])
def test_pages_have_the_titles_of_one_machine(tmp_path: Path, homes: list[Path], order: Sequence[str]) -> None:
    """On the list and on its page, a session has the title that one machine gives it, whatever was opened before.

    Three sessions have summaries of the last entry of `OLD`, and one has nothing else. None titles another session.
    """
    old = conversation(OLD)
    write_session(homes[0], NAMED, [summary(old[-1]["uuid"], "The first by path")])
    write_session(homes[1], NEW, [summary(old[-1]["uuid"], "The second"), *conversation(NEW)])
    bucket = Bucket(str(tmp_path / "lake"))
    for number, home in enumerate(homes, 1):
        push(bucket, [home], number)
    build_lake(bucket, jobs=1)
    with Archive([Home(home, "path") for home in homes], index=tmp_path / "index.sqlite") as archive:
        expected = {str(session.id): session.title for session in archive.sessions()}
    assert expected == {OLD: "Shelves sorted", NEW: PROMPT, NEWER: PROMPT}
    with lake_client(bucket) as client:
        assert {row["session"]: row["title"] for row in json_of(client, "/sessions.json")["sessions"]} == expected
        pages = {session: json_of(client, f"/session/{session}.json")["title"] for session in order}
    assert pages == {**expected, NAMED: "The first by path"}
