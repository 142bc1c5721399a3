"""Values that a database cannot store are kept as well as possible, and break nothing."""

from __future__ import annotations

import json
import os
from contextlib import closing
from pathlib import Path

from tests.index.session_rows import content
from tests.transcripts import SESSION, Pen, Row, call, chain, prompt, transcript

from threadline.find import homes
from threadline.index import Index, open_read_only, refresh_index

HALF = "half \ud83d of a pair"
HUGE = 10**30


def _rows() -> list[Row]:
    """Rows with lone surrogates and huge numbers in every possible place."""
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


def test_indexes_lone_surrogates_and_huge_numbers(tmp_path: Path) -> None:
    """In ids, tools, paths, lists and counts, of main agents and others: rows are written, incrementally or at once."""
    home = tmp_path / "home"
    path = home / f"projects/-a/{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    rows = _rows()
    lines = [json.dumps(row).encode() + b"\n" for row in (*rows, *({**row, "isSidechain": True} for row in rows))]
    for count in range(0, len(lines) + 1, 3):
        path.write_bytes(b"".join(lines[:count]))
        refresh_index(tmp_path / "index.sqlite", homes(home))
    path.write_bytes(b"".join(lines))
    for name in ("index.sqlite", "rebuilt.sqlite"):
        refresh_index(tmp_path / name, homes(home))
    grown = content(tmp_path / "index.sqlite")
    assert grown == content(tmp_path / "rebuilt.sqlite")
    assert {name: bool(rows) for name, rows in grown.items()} == dict.fromkeys(grown, True)


def test_indexes_calls_of_a_transcript_whose_name_is_not_utf_8(tmp_path: Path) -> None:
    """Its calls are indexed, and a repeated result is found by its place."""
    home = tmp_path / "home"
    path = home / "projects/-a" / os.fsdecode(SESSION.encode() + b"\xff.jsonl")
    path.parent.mkdir(parents=True)
    rows = [json.dumps(row).encode() + b"\n" for row in transcript(prompt("go"), call("Bash", "ls", "x", error=True))]
    for content_lines in (rows, [*rows, rows[-1].replace(b'"is_error": true', b'"is_error": false')]):
        path.write_bytes(b"".join(content_lines))
        refresh_index(tmp_path / "index.sqlite", homes(home))
        with closing(open_read_only(tmp_path / "index.sqlite")) as connection:
            outcomes = connection.execute("SELECT outcome, result_line FROM calls").fetchall()
    assert outcomes == [("ok", 4)]


def test_answers_questions_about_names_that_are_not_utf_8(tmp_path: Path) -> None:
    """Paths and ids of such names are found, and names that nothing has are not."""
    home = tmp_path / "home"
    path = home / "projects" / os.fsdecode(b"-a\xff") / os.fsdecode(SESSION.encode() + b"\xff.jsonl")
    agent = path.with_suffix("") / "subagents/agent-a1b2c3d4e5f60718a.jsonl"
    for file in (path, agent):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"".join(json.dumps(row).encode() + b"\n" for row in transcript(prompt("go"))))
    refresh_index(tmp_path / "index.sqlite", homes(home))
    with Index.open(tmp_path / "index.sqlite") as index:
        assert index.main_transcript(str(path)) == str(path)
        assert index.main_transcript(str(agent)) == str(path)
        assert index.titles([f"{SESSION}\\xff", HALF]) == {f"{SESSION}\\xff": "go"}
        assert index.session_facts(HALF).first_prompt is None
        assert index.message_amounts(HALF) == {}
        assert index.touches(HALF, 1) == []
        assert list(index.commands_naming(HALF)) == []
