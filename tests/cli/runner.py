"""Runs the `threadline` command, in this process or in a new one."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
import unicodedata
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from threadline.cli import run

COMMAND = (sys.executable, "-c", "from threadline.cli import main; main()")
SOURCE = str(Path(__file__).parents[2] / "src")


@dataclass
class CliResult:
    """The exit code and the output of a command. Both streams must be UTF-8."""

    code: int
    raw: bytes
    raw_err: bytes

    @property
    def out(self) -> str:
        """Standard output."""
        return self.raw.decode()

    @property
    def err(self) -> str:
        """Standard error."""
        return self.raw_err.decode()

    @property
    def json(self) -> Any:
        """The output of `--json`, with exact numbers."""
        return json.loads(self.raw, parse_float=Decimal)

    @property
    def jsonl(self) -> list[dict[str, Any]]:
        """The output of `--jsonl`."""
        return [json.loads(line, parse_float=Decimal) for line in self.raw.split(b"\n") if line]

    @property
    def csv(self) -> list[dict[str, str]]:
        """The output of `--csv`."""
        return list(csv.DictReader(io.StringIO(self.out, newline="")))


class CliRunner:
    """Runs the command in this process."""

    def __init__(self, streams: pytest.CaptureFixture[bytes]) -> None:
        self._streams = streams

    def __call__(self, *arguments: str | Path) -> CliResult:
        """Run the command with these arguments. Its output goes through a pipe."""
        self._streams.readouterr()
        code = run([str(argument) for argument in arguments])
        sys.stdout.flush()
        out, err = self._streams.readouterr()
        return CliResult(code, out, err)


def subprocess_environment(**more: str) -> dict[str, str]:
    """The minimal environment of a new process, with this test run's folders, so that it writes to no others."""
    inherited = {name: os.environ[name] for name in ("PATH", "HOME", "THREADLINE_CACHE", "THREADLINE_KEEP")}
    return {**inherited, "PYTHONPATH": SOURCE, **more}


def run_in_subprocess(*arguments: str | Path, **env: str) -> CliResult:
    """Run the command in a new process and wait for it."""
    process = subprocess.run(  # noqa: S603 - our own command
        [*COMMAND, *map(str, arguments)],
        env=subprocess_environment(**env),
        capture_output=True,
        check=False,
        timeout=60,
    )
    return CliResult(process.returncode, process.stdout, process.stderr)


class TypedLines(io.StringIO):
    """Standard input that is a terminal, on which these lines are typed. Its end is Ctrl-D."""

    def isatty(self) -> bool:
        """Return True."""
        return True


def control_characters(text: str) -> set[str]:
    """The characters in a text that could control a terminal or be invisible, except newlines."""
    categories = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
    return {character for character in text if unicodedata.category(character) in categories and character != "\n"}


def start_in_subprocess(*arguments: str | Path, stderr: int = subprocess.PIPE, **env: str) -> subprocess.Popen[bytes]:
    """Start the command in a new process, which leads its own process group."""
    return subprocess.Popen(  # noqa: S603 - our own command
        [*COMMAND, *map(str, arguments)],
        env=subprocess_environment(**env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=stderr,
        start_new_session=True,
    )
