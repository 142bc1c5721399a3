"""Homes to measure on, made once and kept."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from uuid import UUID

OUT = Path(__file__).parent / "out"
GROWN = 50_000_000
"""The size of the transcript that lines are appended to."""


def generated(megabytes: float) -> Path:
    """A home of that size, with the sizes of real ones."""
    from tools.demo import write

    home = OUT / f"home-{megabytes:g}"
    if not home.exists():
        print(f"generating {home} …", file=sys.stderr)
        write(home, megabytes=megabytes)
    return home


def transcripts(home: Path) -> list[Path]:
    """The transcripts of a home."""
    return sorted((home / "projects").rglob("*.jsonl"))


def writable(home: Path) -> tuple[Path, Path]:
    """A home with the same transcripts that may be written to, and its largest, cut to 50 MB, to append lines to.

    All others are links to the same files, and must stay as they are.
    """
    copy = home.with_name(f"{home.name}-grown")
    if copy.exists():
        shutil.rmtree(copy)
    shutil.copytree(home, copy, copy_function=os.link)
    largest = max(transcripts(copy), key=lambda path: path.stat().st_size)
    data = largest.read_bytes()
    largest.unlink()
    largest.write_bytes(data[: data.rfind(b"\n", 0, GROWN) + 1])
    return copy, largest


class Growing:
    """Lines appended to a transcript: a reply each, as the last one, with ids and words of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = path.stat().st_size
        self._count = 0
        with path.open("rb") as file:
            file.seek(max(0, self.size - 10_000_000))
            rows = file.read().splitlines()
        self._row = next(row for line in reversed(rows) if (row := json.loads(line))["type"] == "assistant")

    def grow(self) -> None:
        """One more line."""
        self._count += 1
        row = json.loads(json.dumps(self._row))
        row["parentUuid"], row["uuid"] = row["uuid"], str(UUID(int=self._count + (os.getpid() << 64)))
        row["requestId"] = f"req_grown{os.getpid()}x{self._count}"
        row["message"]["id"] = f"msg_grown{os.getpid()}x{self._count}"
        row["message"]["content"] = [{"type": "text", "text": f"Line {self._count} was appended to be measured."}]
        with self.path.open("ab") as file:
            file.write(json.dumps(row, separators=(",", ":")).encode() + b"\n")

    def cut_back(self) -> None:
        """Take the lines away again."""
        os.truncate(self.path, self.size)

    def fork(self) -> Path:
        """A transcript beside it with the same messages under the id of another session."""
        session = self.path.stem
        other = "f0" + session[2:]
        path = self.path.with_name(f"{other}.jsonl")
        path.write_bytes(self.path.read_bytes().replace(session.encode(), other.encode()))
        return path
