"""Rebuild a home as it was on each of its last ten days, by the times in its own rows."""

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
    """A copy of the files of a home that `keep` stores. It advances from day to day.

    Transcripts have the rows up to a day. Other files are complete from the first day: their history is unknown.
    """

    def __init__(self, home: Path, copy: Path) -> None:
        self.home = copy
        shutil.rmtree(copy, ignore_errors=True)
        self._ends_by_day: dict[Path, list[tuple[bytes, int]]] = {}
        self._others: list[Path] = []
        self._original = home
        for source in find_source_files(homes(home)[0], []):
            relative = source.file.relative_to(home)
            if source.file.suffix == ".jsonl" and source.path.startswith("projects/"):
                self._ends_by_day[relative] = _ends_by_day(source.file)
            else:
                self._others.append(relative)
        self.days = sorted({day for ends in self._ends_by_day.values() for day, _end in ends})[-DAYS - 1 :]

    def start(self) -> int:
        """Create the home as it was before its last ten days; return its size in bytes."""
        for relative in self._others:
            self._grow_file(relative, (self._original / relative).stat().st_size)
        return self.advance_to(self.days[0])

    def advance_to(self, day: bytes) -> int:
        """Append what was written up to a day; return the size of the home in bytes."""
        for relative, ends in self._ends_by_day.items():
            size = max((end for other, end in ends if other <= day), default=0)
            if size:
                self._grow_file(relative, size)
        return sum(path.stat().st_size for path in self.home.rglob("*") if path.is_file())

    def _grow_file(self, relative: Path, size: int) -> None:
        target_path = self.home / relative
        target_path.parent.mkdir(parents=True, exist_ok=True)
        size_now = target_path.stat().st_size if target_path.exists() else 0
        if size_now == size and target_path.exists():
            return
        with (self._original / relative).open("rb") as source, target_path.open("ab") as target:
            source.seek(size_now)
            target.write(source.read(size - size_now))
            os.fsync(target.fileno())


def _ends_by_day(path: Path) -> list[tuple[bytes, int]]:
    """The days on which a transcript was written, each with the offset after its last row of that day."""
    ends: dict[bytes, int] = {}
    day, end = b"0000-00-00", 0
    with path.open("rb") as file:
        for line in file:
            end += len(line)
            match = _DAY.search(line)
            day = max(day, match[1]) if match else day
            ends[day] = end
    return list(ends.items())
