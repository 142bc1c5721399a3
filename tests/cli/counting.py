"""A home counted a second time, with nothing but json and open."""

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


def mains(home: Path) -> list[Path]:
    """The main transcripts: those that a session's id names."""
    return [path for path in (home / "projects").glob("*/*.jsonl") if _UUID.fullmatch(path.stem)]


def rows(*paths: Path) -> Iterator[dict[str, Any]]:
    """The rows that can be read; a demo home has just one that cannot."""
    for path in paths:
        for line in path.read_bytes().split(b"\n"):
            try:
                yield json.loads(line)
            except ValueError:
                continue


def lines(home: Path) -> int:
    """How many lines there are, a last one without a newline included."""
    return sum(len(path.read_bytes().splitlines()) for path in transcripts(home))


def size(home: Path) -> int:
    """How many bytes the transcripts have."""
    return sum(path.stat().st_size for path in transcripts(home))


def kinds(home: Path) -> Counter[str]:
    """How many rows of each kind."""
    return Counter(row["type"] for row in rows(*transcripts(home)))


def versions(home: Path) -> Counter[str]:
    """How many rows name each version."""
    return Counter(row["version"] for row in rows(*transcripts(home)) if isinstance(row.get("version"), str))


def times(home: Path) -> list[str]:
    """When rows were written, sorted."""
    return sorted(row["timestamp"] for row in rows(*transcripts(home)) if isinstance(row.get("timestamp"), str))
