"""Tests of failures: a failure that a session copied from another one is listed once, as the original's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.transcripts import Row, call, prompt, reply, transcript, write

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
