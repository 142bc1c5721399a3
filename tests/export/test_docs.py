"""The examples in docs/export.md work, and every key is documented."""

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
    """Every line of the shell blocks succeeds, in order, and creates the files it names."""
    results = dict(run_shell_lines(PAGE, tmp_path, demo_home))
    assert len(results) >= 5
    assert {line: result.stderr for line, result in results.items() if result.returncode} == {}
    work = tmp_path / "work"
    names = {path.name for path in work.iterdir()}
    assert {"session.md", "talk.txt", "kettle-site", "hidden.json", "kettle.json", "transcript.jsonl"} <= names
    assert (work / "kettle-site/index.html").is_file()
    assert "kettle" not in (work / "kettle.json").read_text().lower()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("trajectories.md", {"trajectories", "all.eval", "kettle-scout"}),
        ("datasets.md", {"kettle.jsonl", "messages.jsonl", "my-sessions"}),
    ],
)
def test_every_command_for_other_programs_works(page: str, names: set[str], demo_home: Path, tmp_path: Path) -> None:
    """Every line of the pages about trajectories and data sets succeeds, and creates the files it names."""
    results = dict(run_shell_lines(ROOT / "docs" / page, tmp_path, demo_home))
    assert {line: result.stderr for line, result in results.items() if result.returncode} == {}
    assert names <= {path.name for path in (tmp_path / "work").iterdir()}


def test_every_key_is_documented(demo_home: Path) -> None:
    """Every key of an exported session is in the table of keys."""
    documented = set(re.findall(r"`([a-z0-9_]+)`", PAGE.read_text().split("## Keys")[1]))
    biggest = max((demo_home / "projects").glob("*/*.jsonl"), key=lambda path: path.stat().st_size)
    session = read(biggest)
    value = session_to_json(session, total=session.ledger.total)
    assert set(value) <= documented
    assert set(value["spent"]) <= documented
    branched = next(
        candidate for path in (demo_home / "projects").glob("*/*.jsonl") if (candidate := read(path)).branches
    )
    assert all(set(branch) <= documented for branch in session_to_json(branched)["branches"])
    for turn in value["turns"]:
        assert set(turn) <= documented
    for agent in value["agents"]:
        assert set(agent) <= documented
    calls = [item["call"] for item in value["items"] if item["kind"] == "call"]
    assert calls
    assert set(calls[0]) <= documented
    assert json.loads(json.dumps(value, default=str))
