"""What the page on exports shows works, and tells of every key."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.doc_commands import ROOT, run_shell_lines

from threadline.load import read
from threadline.render import session_to_json

PAGE = ROOT / "docs/export.md"


@pytest.mark.slow
def test_every_command_works(demo_home: Path, tmp_path: Path) -> None:
    """Every line of the shell blocks succeeds, one after the other, and leaves what it names."""
    done = dict(run_shell_lines(PAGE, tmp_path, demo_home))
    assert len(done) >= 5
    assert {line: one.stderr for line, one in done.items() if one.returncode} == {}
    work = tmp_path / "work"
    made = {path.name for path in work.iterdir()}
    assert {"session.md", "talk.txt", "kettle-site", "hidden.json", "kettle.json", "transcript.jsonl"} <= made
    assert (work / "kettle-site/index.html").is_file()
    assert "kettle" not in (work / "kettle.json").read_text().lower()


def test_every_key_is_told(demo_home: Path) -> None:
    """Every key that an exported session has is in the table of keys."""
    told = set(re.findall(r"`([a-z0-9_]+)`", PAGE.read_text().split("## Keys")[1]))
    biggest = max((demo_home / "projects").glob("*/*.jsonl"), key=lambda path: path.stat().st_size)
    whole = read(biggest)
    value = session_to_json(whole, total=whole.ledger.total)
    assert set(value) <= told
    assert set(value["spent"]) <= told
    left = next(one for path in (demo_home / "projects").glob("*/*.jsonl") if (one := read(path)).branches)
    assert all(set(branch) <= told for branch in session_to_json(left)["branches"])
    for turn in value["turns"]:
        assert set(turn) <= told
    for agent in value["agents"]:
        assert set(agent) <= told
    calls = [item["call"] for item in value["items"] if item["kind"] == "call"]
    assert calls
    assert set(calls[0]) <= told
    assert json.loads(json.dumps(value, default=str))
