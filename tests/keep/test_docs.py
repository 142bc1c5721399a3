"""What the page on the keep shows works."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from threadline.demo import write

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/keep.md"


def test_every_command_works(tmp_path: Path) -> None:
    """Every line of the shell blocks succeeds, one after the other, and leaves what it names."""
    lines = [
        line
        for block in re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
        for line in block.splitlines()
    ]
    assert len(lines) >= 20
    home = tmp_path / "home"
    write(home)
    (tmp_path / "threadline").write_text(f'#!/bin/sh\nexec {sys.executable} -m threadline "$@"\n')
    (tmp_path / "threadline").chmod(0o755)
    work = tmp_path / "work"
    work.mkdir()
    environment = {
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "HOME": str(work),
        "CLAUDE_CONFIG_DIR": str(home),
        "THREADLINE_CACHE": str(tmp_path / "cache"),
    }
    for line in lines:
        done = subprocess.run(  # noqa: S603 - our own examples
            ["/bin/sh", "-ec", line], cwd=work, env=environment, capture_output=True, check=False, timeout=120
        )
        assert (done.returncode, done.stderr) == (0, b""), line
        assert done.stdout or ">" in line, line
    assert (work / ".local/share/threadline/keep/keep.json").is_file()
    assert {"copy-of-all", "status.json", "another-home", "as-it-was", "everything", "sealed"} <= {
        path.name for path in work.iterdir()
    }
    assert not (work / ".config").exists()  # installing was only shown
