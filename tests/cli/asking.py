"""Asking the command: in this process, or in one of its own."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from threadline.cli import run

COMMAND = (sys.executable, "-c", "from threadline.cli import main; main()")
SOURCE = str(Path(__file__).parents[2] / "src")


@dataclass
class Answer:
    """What came of a question: the exit code, and both streams, which must be UTF-8."""

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
        """The answer to `--json`."""
        return json.loads(self.raw)

    @property
    def jsonl(self) -> list[dict[str, Any]]:
        """The answer to `--jsonl`."""
        return [json.loads(line) for line in self.raw.split(b"\n") if line]

    @property
    def csv(self) -> list[dict[str, str]]:
        """The answer to `--csv`."""
        return list(csv.DictReader(io.StringIO(self.out, newline="")))


class Asker:
    """Asks the command in this process."""

    def __init__(self, streams: pytest.CaptureFixture[bytes]) -> None:
        self._streams = streams

    def __call__(self, *arguments: str | Path) -> Answer:
        """The answer; it has come through a pipe."""
        self._streams.readouterr()
        code = run([str(argument) for argument in arguments])
        sys.stdout.flush()
        out, err = self._streams.readouterr()
        return Answer(code, out, err)


def environment(**more: str) -> dict[str, str]:
    """The least that a separate process needs, and the folders of this run, so that it writes to no others."""
    own = {name: os.environ[name] for name in ("PATH", "HOME", "THREADLINE_CACHE", "THREADLINE_KEEP")}
    return {**own, "PYTHONPATH": SOURCE, **more}


def ask_alone(*arguments: str | Path, **env: str) -> Answer:
    """The answer of a process of its own."""
    done = subprocess.run(  # noqa: S603 - our own command
        [*COMMAND, *map(str, arguments)],
        env=environment(**env),
        capture_output=True,
        check=False,
        timeout=60,
    )
    return Answer(done.returncode, done.stdout, done.stderr)


def steering(text: str) -> set[str]:
    """The characters of a text that could steer a terminal or hide in it; a newline is none."""
    categories = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
    return {character for character in text if unicodedata.category(character) in categories and character != "\n"}


def start(*arguments: str | Path, stderr: int = subprocess.PIPE, **env: str) -> subprocess.Popen[bytes]:
    """The command in a process of its own that goes on, and leads a process group of its own."""
    return subprocess.Popen(  # noqa: S603 - our own command
        [*COMMAND, *map(str, arguments)],
        env=environment(**env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=stderr,
        start_new_session=True,
    )
