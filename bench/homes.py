"""Homes to measure on, generated once and kept in bench/out."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from uuid import UUID

OUT = Path(__file__).parent / "out"
MAX_GROWING_BYTES = 50_000_000
"""The size of the transcript that lines are appended to."""


def generated_home(megabytes: float) -> Path:
    """A generated home whose transcripts have realistic sizes."""
    from tools.demo import write

    home = OUT / f"home-{megabytes:g}"
    if not home.exists():
        print(f"generating {home} …", file=sys.stderr)
        write(home, megabytes=megabytes)
    return home


def transcripts(home: Path) -> list[Path]:
    """The transcripts of a home."""
    return sorted((home / "projects").rglob("*.jsonl"))


def writable_copy(home: Path) -> tuple[Path, Path]:
    """A copy of a home, and its largest transcript, cut to 50 MB, which may be written to.

    The other transcripts are hard links to those of the home, and must not be changed.
    """
    copy = home.with_name(f"{home.name}-grown")
    if copy.exists():
        shutil.rmtree(copy)
    shutil.copytree(home, copy, copy_function=os.link)
    largest = max(transcripts(copy), key=lambda path: path.stat().st_size)
    data = largest.read_bytes()
    largest.unlink()
    largest.write_bytes(data[: data.rfind(b"\n", 0, MAX_GROWING_BYTES) + 1])
    return copy, largest


class GrowingTranscript:
    """A transcript that grows: each new line is a reply like the last one, with its own ids and text."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = path.stat().st_size
        self._count = 0
        with path.open("rb") as file:
            file.seek(max(0, self.size - 10_000_000))
            rows = file.read().splitlines()
        self._row = next(row for line in reversed(rows) if (row := json.loads(line))["type"] == "assistant")

    def append_line(self) -> None:
        """Append a line."""
        self._count += 1
        row = json.loads(json.dumps(self._row))
        row["parentUuid"], row["uuid"] = row["uuid"], str(UUID(int=self._count + (os.getpid() << 64)))
        row["requestId"] = f"req_grown{os.getpid()}x{self._count}"
        row["message"]["id"] = f"msg_grown{os.getpid()}x{self._count}"
        row["message"]["content"] = [{"type": "text", "text": f"Line {self._count} was appended to be measured."}]
        with self.path.open("ab") as file:
            file.write(json.dumps(row, separators=(",", ":")).encode() + b"\n")

    def truncate(self) -> None:
        """Remove the appended lines."""
        os.truncate(self.path, self.size)

    def fork(self) -> Path:
        """Write a transcript with the same messages and another session id beside it."""
        session = self.path.stem
        other = "f0" + session[2:]
        path = self.path.with_name(f"{other}.jsonl")
        path.write_bytes(self.path.read_bytes().replace(session.encode(), other.encode()))
        return path
