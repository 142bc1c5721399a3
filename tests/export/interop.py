"""Exports a home and reads the result with the real library, if that is installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from decimal import Decimal
from math import isclose
from pathlib import Path
from typing import Any

import pytest
from tests.cli.runner import CliRunner
from tests.export.interop_readers import READERS

import threadline

FORMATS = tuple(READERS)
_SCRIPT = Path(__file__).with_name("interop_readers.py")
_FILES = {"inspect": "log.eval", "messages": "messages.jsonl"}


def _find_python(library: str) -> str:
    """A Python that has a library: this one, or that of another environment. Skips the test if there is none."""
    for python in (sys.executable, os.environ.get("THREADLINE_INTEROP_PYTHON")):
        code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({library!r}) is None)"
        if python and subprocess.run([python, "-c", code], check=False).returncode == 0:  # noqa: S603 - our own code
            return python
    pytest.skip(f"{library} is not installed; THREADLINE_INTEROP_PYTHON may name a Python that has it")


def check_with_library(form: str, home: Path, cli: CliRunner, folder: Path) -> list[dict[str, Any]]:
    """Export a home, read it with the library, and compare each session with the archive; return the library's rows."""
    python = _find_python(READERS[form][0])
    target = folder / _FILES.get(form, form)
    out = str(target) if target.suffix else f"{target}/"
    result = cli("export", "--home", home, "--since", "2000-01-01", "--no-redact", "--format", form, "--out", out)
    assert (result.code, result.err) == (0, "")
    offline = {
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1",
        "HF_HOME": str(folder / "hf-home"),
        "HOME": str(folder),
    }
    process = subprocess.run(  # noqa: S603 - our own script
        [python, str(_SCRIPT), form, str(target)],
        cwd=folder,
        env={"PATH": os.environ["PATH"], **offline},
        capture_output=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr.decode()[-3000:]
    rows = [json.loads(line) for line in process.stdout.splitlines() if line.startswith(b"{")]
    with threadline.open(home, keep=False) as archive:
        spending = archive.spending()
        for session in archive.sessions():
            _compare([row for row in rows if row["session"] == str(session.id)], spending.of(session.path))
    return rows


def _compare(rows: list[dict[str, Any]], total: threadline.Sum) -> None:
    """Compare what a library says about a session, as far as the format has it, with the ledger's total."""
    expected = {
        "input": total.tokens - total.output,
        "output": total.output,
        "cache_read": total.cache_read,
        "tokens": total.tokens,
    }
    for key in expected.keys() & set().union(*rows):
        assert sum(row[key] for row in rows) == expected[key], (key, rows)
    if any("amount" in row for row in rows):
        amount = sum(Decimal(str(row["amount"] or 0)) for row in rows)
        assert isclose(amount, total.amount or 0, rel_tol=1e-12), rows
