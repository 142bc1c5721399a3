"""Replays the last ten days of a home: a copy that grows as the original did, by the times in its rows."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from threadline.find import homes
from threadline.keep.sessions import find_source_files

DAYS = 10
_DAY = re.compile(rb'"timestamp":"(\d{4}-\d\d-\d\d)')


class Days:
    """A copy of the files of a home that `keep` stores, which grows day by day.

    Transcripts have the rows up to a day. Other files are complete from the start, because their history is unknown.
    """

    def __init__(self, home: Path, copy: Path) -> None:
        self.home = copy
        shutil.rmtree(copy, ignore_errors=True)
        self._ends: dict[Path, list[tuple[bytes, int]]] = {}
        self._others: list[Path] = []
        self._source = home
        for source in find_source_files(homes(home)[0], []):
            relative = source.file.relative_to(home)
            if source.file.suffix == ".jsonl" and source.path.startswith("projects/"):
                self._ends[relative] = _day_ends(source.file)
            else:
                self._others.append(relative)
        self.days = sorted({day for ends in self._ends.values() for day, _end in ends})[-DAYS - 1 :]

    def start(self) -> int:
        """Create the home as it was before its last ten days, and return its size."""
        for relative in self._others:
            self._copy(relative, (self._source / relative).stat().st_size)
        return self.advance(self.days[0])

    def advance(self, day: bytes) -> int:
        """Add the rows written up to a day, and return the size of the home."""
        for relative, ends in self._ends.items():
            size = max((end for other, end in ends if other <= day), default=0)
            if size:
                self._copy(relative, size)
        return sum(path.stat().st_size for path in self.home.rglob("*") if path.is_file())

    def _copy(self, relative: Path, size: int) -> None:
        copy = self.home / relative
        copy.parent.mkdir(parents=True, exist_ok=True)
        copied = copy.stat().st_size if copy.exists() else 0
        if copied == size and copy.exists():
            return
        with (self._source / relative).open("rb") as source, copy.open("ab") as target:
            source.seek(copied)
            target.write(source.read(size - copied))
            os.fsync(target.fileno())


def _day_ends(path: Path) -> list[tuple[bytes, int]]:
    """Return each day on which a transcript grew, with the offset after the last row of that day."""
    ends: dict[bytes, int] = {}
    day, end = b"0000-00-00", 0
    with path.open("rb") as file:
        for line in file:
            end += len(line)
            match = _DAY.search(line)
            day = max(day, match[1]) if match else day
            ends[day] = end
    return list(ends.items())
