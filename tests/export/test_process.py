"""`threadline export` in a new process: closed streams and termination."""

from __future__ import annotations

import shlex
import subprocess
import time
from pathlib import Path

import pytest
from tests.cli.runner import COMMAND, start_in_subprocess, subprocess_environment
from tests.export.test_cli_export import write_session
from tests.transcripts import prompt, reply


@pytest.mark.slow
def test_closed_standard_output_is_an_error(tmp_path: Path) -> None:
    """If standard output is closed, that is reported with exit code 2."""
    session = write_session(tmp_path, prompt("hello"), reply("Good day."))
    command = f"exec {shlex.join([*COMMAND, 'export', str(session), '--out', '-'])} >&-"
    process = subprocess.run(["/bin/sh", "-c", command], capture_output=True, check=False, env=subprocess_environment())  # noqa: S603 - our own command
    assert (process.returncode, b"Standard output is closed" in process.stderr) == (2, True), process.stderr


@pytest.mark.slow
def test_sigterm_leaves_no_copy_behind(tmp_path: Path) -> None:
    """SIGTERM during the work exits with 143. The working folder is removed, and nothing was written."""
    turns = [part for number in range(1000) for part in (prompt(f"turn {number}"), reply("word " * 200))]
    session = write_session(tmp_path, *turns)
    work, target = tmp_path / "work", tmp_path / "talk.html"
    work.mkdir()
    with start_in_subprocess("export", session, "--out", target, TMPDIR=str(work)) as process:
        while not list(work.glob("threadline-export-*/copies/*/*.jsonl")):
            assert process.poll() is None, "it was over before it could be ended"
            time.sleep(0.01)
        process.terminate()
        code = process.wait(timeout=60)
    assert (code, list(work.iterdir()), target.exists()) == (143, [], False)
