"""Tests of failures: a failure that a session copied from another one is listed once, as the original's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.transcripts import SESSION, Row, call, prompt, reply, transcript, write

import threadline

ORIGINAL, COPY = "55555555-0000-4000-8000-000000000002", "55555555-0000-4000-8000-000000000001"


def _fork(rows: list[Row]) -> list[Row]:
    """The rows with new ids, and a note of where they were copied from."""
    return [
        {
            **row,
            "uuid": f"f{row['uuid'][1:]}",
            "forkedFrom": {"sessionId": ORIGINAL, "messageUuid": row["uuid"]},
            "sessionId": COPY,
        }
        for row in rows
    ]


@pytest.mark.parametrize("copied", [_fork, list])
def test_copied_failure_is_listed_once(copied: Any, tmp_path: Path) -> None:
    """By the id of its original, or by its own if it was copied unchanged. The path of the copy sorts first."""
    parts = transcript(prompt("go"), call("Bash", "make", result="no rule", error=True), reply("It failed."))
    rows = [row for row in parts if isinstance(row, dict)]
    later = [row for row in transcript(prompt("again", timestamp="2026-02-01T00:00:00.000Z")) if isinstance(row, dict)]
    folder = tmp_path / "projects" / "-work-app"
    original = write(folder / f"{ORIGINAL}.jsonl", *rows)
    write(folder / f"{COPY}.jsonl", *copied(rows), *later)
    (failure,) = threadline.open(tmp_path).failures()
    assert (failure.session, failure.place.rpartition(":")[0]) == (ORIGINAL, str(original))


@pytest.mark.parametrize("repeating", ["acompact-0123456789abcdef", "a0000000000000001"])
def test_failure_that_an_agent_repeats_is_the_main_agents(repeating: str, tmp_path: Path) -> None:
    """A compaction's side agent repeats the rows of the main agent, as forked agents did; the session goes on later."""
    parts = transcript(prompt("go"), call("Bash", "make", result="no rule", error=True), reply("It failed."))
    rows = [row for row in parts if isinstance(row, dict)]
    later = transcript(prompt("again", timestamp="2026-02-01T00:00:00.000Z"))
    main = write(tmp_path / f"projects/-work-app/{SESSION}.jsonl", *rows, *later)
    repeated = [{**row, "isSidechain": True, "agentId": repeating} for row in rows]
    write(main.with_suffix("") / f"subagents/agent-{repeating}.jsonl", *repeated)
    with threadline.open(tmp_path) as archive:
        (failure,) = archive.failures()
        (listed,) = archive.calls()
    assert (failure.agent, failure.turn, failure.place.rpartition(":")[0]) == (None, 1, str(main))
    assert (listed.agent, str(listed.place)) == (None, failure.place)
