"""The examples in docs/keep.md work."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.doc_commands import ROOT, run_shell_lines
from tools.demo import write

PAGE = ROOT / "docs/keep.md"


@pytest.mark.slow
def test_every_command_works(tmp_path: Path) -> None:
    """Every line of the shell blocks succeeds, in order, and creates the files it names."""
    home = tmp_path / "home"
    write(home)
    count = 0
    for line, process in run_shell_lines(PAGE, tmp_path, home):
        assert (process.returncode, process.stderr) == (0, b""), line
        assert process.stdout or ">" in line, line
        count += 1
    assert count >= 20
    work = tmp_path / "work"
    assert (work / ".local/share/threadline/keep/keep.json").is_file()
    assert {"copy-of-all", "status.json", "another-home", "as-it-was", "everything", "sealed"} <= {
        path.name for path in work.iterdir()
    }
    assert not (work / ".config").exists()  # `install` only prints
