"""What no database takes stands in transcripts, too: it is kept as well as can be, and breaks nothing."""

from __future__ import annotations

import json
import os
from contextlib import closing
from pathlib import Path

from tests.index.work_rows import content
from tests.transcripts import SESSION, Pen, Row, call, chain, prompt, transcript

from threadline.find import homes
from threadline.index import open_read_only, refresh_index

HALF = "half \ud83d of a pair"
HUGE = 10**30


def _rows() -> list[Row]:
    """Halves of characters and numbers beyond all bounds, wherever they can stand."""
    todos = [{"content": HALF, "status": HALF, "id": HALF}]
    task = {"task": {"id": HALF, "subject": HALF}}
    rows = transcript(
        prompt(HALF, timestamp=HALF),
        call(HALF, {HALF: HALF}, HALF),
        call("Read", HALF, "1\tx", details={"type": "text", "file": {"filePath": HALF, "content": HALF}}),
        call("BashOutput", HALF, "x", details={"shellId": HALF, "stdout": "", "exitCode": HUGE}),
        call("TodoWrite", {"todos": todos}, "x", details={"newTodos": todos}),
        call("TaskCreate", {"subject": HALF}, "x", details=task),
        call("Agent", {"subagent_type": HALF, "prompt": HALF}, "x", details={"agentId": HALF, "status": HALF}),
        chain("system", subtype="compact_boundary", compactMetadata={"trigger": HALF, "preTokens": HUGE}),
        chain("attachment", attachment={"type": "edited_text_file", "filename": HALF}),
        call("Bash", HALF),
        pen=Pen(cwd=HALF, agentId=HALF),
    )
    return [row for row in rows if isinstance(row, dict)]


def test_halves_of_characters_and_huge_numbers_break_nothing(tmp_path: Path) -> None:
    """In ids, tools, paths, lists and counts, of main agents and of others: rows are made, bit by bit or at once."""
    home = tmp_path / "home"
    path = home / f"projects/-a/{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    rows = _rows()
    told = [json.dumps(row).encode() + b"\n" for row in (*rows, *({**row, "isSidechain": True} for row in rows))]
    for count in range(0, len(told) + 1, 3):
        path.write_bytes(b"".join(told[:count]))
        refresh_index(tmp_path / "index.sqlite", homes(home))
    path.write_bytes(b"".join(told))
    for name in ("index.sqlite", "anew.sqlite"):
        refresh_index(tmp_path / name, homes(home))
    grown = content(tmp_path / "index.sqlite")
    assert grown == content(tmp_path / "anew.sqlite")
    assert {name: bool(found) for name, found in grown.items()} == dict.fromkeys(grown, True)


def test_a_transcript_whose_name_is_no_text_is_told_of(tmp_path: Path) -> None:
    """Its calls are there, and a result that comes twice is found by its place."""
    home = tmp_path / "home"
    path = home / "projects/-a" / os.fsdecode(SESSION.encode() + b"\xff.jsonl")
    path.parent.mkdir(parents=True)
    rows = [json.dumps(row).encode() + b"\n" for row in transcript(prompt("go"), call("Bash", "ls", "x", error=True))]
    for told in (rows, [*rows, rows[-1].replace(b'"is_error": true', b'"is_error": false')]):
        path.write_bytes(b"".join(told))
        refresh_index(tmp_path / "index.sqlite", homes(home))
        with closing(open_read_only(tmp_path / "index.sqlite")) as connection:
            outcomes = connection.execute("SELECT outcome, result_line FROM calls").fetchall()
    assert outcomes == [("ok", 4)]
