"""What the page on exports shows works, and tells of every key."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from threadline.load import read
from threadline.render.as_json import session_value

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/export.md"


def test_every_command_works(demo_home: Path, tmp_path: Path) -> None:
    """Every line of the shell blocks succeeds, one after the other, and leaves what it names."""
    lines = [
        line
        for block in re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
        for line in block.splitlines()
    ]
    assert len(lines) >= 5
    (tmp_path / "threadline").write_text(f'#!/bin/sh\nexec {sys.executable} -m threadline "$@"\n')
    (tmp_path / "threadline").chmod(0o755)
    work = tmp_path / "work"
    work.mkdir()
    environment = {
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "HOME": str(work),
        "CLAUDE_CONFIG_DIR": str(demo_home),
        "THREADLINE_CACHE": str(tmp_path / "cache"),
    }
    for line in lines:
        done = subprocess.run(  # noqa: S603 - our own examples
            ["/bin/sh", "-ec", line], cwd=work, env=environment, capture_output=True, check=False, timeout=120
        )
        assert done.returncode == 0, (line, done.stderr)
    made = {path.name for path in work.iterdir()}
    assert {"session.md", "talk.txt", "kettle-site", "hidden.json", "kettle.json", "transcript.jsonl"} <= made
    assert (work / "kettle-site/index.html").is_file()
    assert "kettle" not in (work / "kettle.json").read_text().lower()


def test_every_key_is_told(demo_home: Path) -> None:
    """Every key that an exported session has is in the table of keys."""
    told = set(re.findall(r"`([a-z0-9_]+)`", PAGE.read_text().split("## Keys")[1]))
    biggest = max((demo_home / "projects").glob("*/*.jsonl"), key=lambda path: path.stat().st_size)
    whole = read(biggest)
    value = session_value(whole, total=whole.ledger.total)
    assert set(value) <= told
    assert set(value["spent"]) <= told
    left = next(one for path in (demo_home / "projects").glob("*/*.jsonl") if (one := read(path)).branches)
    assert all(set(branch) <= told for branch in session_value(left)["branches"])
    for turn in value["turns"]:
        assert set(turn) <= told
    for agent in value["agents"]:
        assert set(agent) <= told
    calls = [item["call"] for item in value["items"] if item["kind"] == "call"]
    assert calls
    assert set(calls[0]) <= told
    assert json.loads(json.dumps(value, default=str))
