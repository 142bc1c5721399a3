"""Counts the transcripts of a home with only `json` and `open`, as a second opinion."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def transcripts(home: Path) -> list[Path]:
    """All transcripts of a home."""
    return sorted((home / "projects").glob("**/*.jsonl"))


def main_transcripts(home: Path) -> list[Path]:
    """The main transcripts, whose names are session ids."""
    return [path for path in (home / "projects").glob("*/*.jsonl") if _UUID.fullmatch(path.stem)]


def rows(*paths: Path) -> Iterator[dict[str, Any]]:
    """The rows that can be decoded. A demo home has exactly one that cannot."""
    for path in paths:
        for line in path.read_bytes().split(b"\n"):
            try:
                yield json.loads(line)
            except ValueError:
                continue


def count_lines(home: Path) -> int:
    """The number of lines, including a last one without a newline."""
    return sum(len(path.read_bytes().splitlines()) for path in transcripts(home))


def total_size(home: Path) -> int:
    """The total size of the transcripts in bytes."""
    return sum(path.stat().st_size for path in transcripts(home))


def count_kinds(home: Path) -> Counter[str]:
    """The number of rows per kind."""
    return Counter(row["type"] for row in rows(*transcripts(home)))


def count_versions(home: Path) -> Counter[str]:
    """The number of rows per Claude Code version."""
    return Counter(row["version"] for row in rows(*transcripts(home)) if isinstance(row.get("version"), str))


def timestamps(home: Path) -> list[str]:
    """The timestamps of all rows, sorted."""
    return sorted(row["timestamp"] for row in rows(*transcripts(home)) if isinstance(row.get("timestamp"), str))
