"""What the page on the keep shows works."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.doc_commands import ROOT, run_shell_lines
from tools.demo import write

PAGE = ROOT / "docs/keep.md"


@pytest.mark.slow
def test_every_command_works(tmp_path: Path) -> None:
    """Every line of the shell blocks succeeds, one after the other, and leaves what it names."""
    home = tmp_path / "home"
    write(home)
    many = 0
    for line, done in run_shell_lines(PAGE, tmp_path, home):
        assert (done.returncode, done.stderr) == (0, b""), line
        assert done.stdout or ">" in line, line
        many += 1
    assert many >= 20
    work = tmp_path / "work"
    assert (work / ".local/share/threadline/keep/keep.json").is_file()
    assert {"copy-of-all", "status.json", "another-home", "as-it-was", "everything", "sealed"} <= {
        path.name for path in work.iterdir()
    }
    assert not (work / ".config").exists()  # installing was only shown
