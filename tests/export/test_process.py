"""`threadline export` as a process of its own: streams that are closed, and requests to end."""

from __future__ import annotations

import shlex
import subprocess
import time
from pathlib import Path

from tests.cli.runner import COMMAND, start_in_subprocess, subprocess_environment
from tests.export.test_cli_export import write_session
from tests.transcripts import prompt, reply


def test_a_closed_standard_output_is_an_error(tmp_path: Path) -> None:
    """Nothing can be written to a standard output that is closed: that is said, and is no success."""
    session = write_session(tmp_path, prompt("hello"), reply("Good day."))
    closed = f"exec {shlex.join([*COMMAND, 'export', str(session), '--out', '-'])} >&-"
    done = subprocess.run(["/bin/sh", "-c", closed], capture_output=True, check=False, env=subprocess_environment())  # noqa: S603 - our own command
    assert (done.returncode, b"Standard output is closed" in done.stderr) == (2, True), done.stderr


def test_a_request_to_end_leaves_no_copy_behind(tmp_path: Path) -> None:
    """SIGTERM in the middle of the work ends it with 143; the folder of the work is gone, and nothing was written."""
    turns = [part for at in range(3000) for part in (prompt(f"turn {at}"), reply("word " * 200))]
    session = write_session(tmp_path, *turns)
    work, place = tmp_path / "work", tmp_path / "talk.html"
    work.mkdir()
    with start_in_subprocess("export", session, "--out", place, TMPDIR=str(work)) as process:
        while not list(work.glob("threadline-export-*/copies/*/*.jsonl")):
            assert process.poll() is None, "it was over before it could be ended"
            time.sleep(0.01)
        process.terminate()
        code = process.wait(timeout=60)
    assert (code, list(work.iterdir()), place.exists()) == (143, [], False)
