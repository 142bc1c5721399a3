"""Runs the shell examples of a documentation page."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]


def shell_lines(page: Path) -> list[str]:
    """Return the lines of a page's shell blocks, in order."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


def run_shell_lines(
    page: Path,
    folder: Path,
    home: Path,
    files: Mapping[str, Path] | None = None,
    *,
    variables: Mapping[str, str] | None = None,
    is_done: Callable[[str], bool] = lambda _line: False,
) -> Iterator[tuple[str, subprocess.CompletedProcess[bytes]]]:
    """Run each line in `folder/work`, as a user with this Claude home, and yield it with its result.

    `files` are copied to that folder first, under these names. `variables` are added to the environment. A line for
    which `is_done` returns True has been run by it.
    """
    (folder / "threadline").write_text(f'#!/bin/sh\nexec {sys.executable} -m threadline "$@"\n')
    (folder / "threadline").chmod(0o755)
    work = folder / "work"
    work.mkdir()
    for name, path in (files or {}).items():
        (work / name).write_bytes(path.read_bytes())
    environment = {
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "HOME": str(work),
        "CLAUDE_CONFIG_DIR": str(home),
        "THREADLINE_CACHE": str(folder / "cache"),
        **(variables or {}),
    }
    for line in shell_lines(page):
        if is_done(line):
            continue
        yield (
            line,
            subprocess.run(  # noqa: S603 - our own examples
                ["/bin/sh", "-ec", line], cwd=work, env=environment, capture_output=True, check=False, timeout=120
            ),
        )
