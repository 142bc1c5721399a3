"""Tests of how many modules take part in answering a question: a reader follows each of them."""

from __future__ import annotations

import os
from pathlib import Path

from bench.compare import HERE, Contender, executed_modules
from tools.demo import write

# Half of what each took before the packages had interfaces (e7de355).
LIMITS = {"usage, cold": 40, "usage, indexed": 30, "search": 32, "session page": 82, "keep": 25}


def test_few_modules_run_for_a_command(tmp_path: Path) -> None:
    """The commands people run most execute no more modules than their limits, code at import time left out."""
    write(tmp_path / "home", megabytes=2)
    for path in (tmp_path / "home").rglob("*.jsonl"):
        os.utime(path, (path.stat().st_mtime - 60,) * 2)  # a file that was just written is compared by its bytes
    modules = executed_modules(Contender("here", HERE, tmp_path / "home", tmp_path))
    assert {name: count for name, count in modules.items() if count > LIMITS[name]} == {}
