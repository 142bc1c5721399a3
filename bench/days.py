"""Days: a home as it stood on each of its last ten days, by the times in its own rows, so that it grows as it did."""

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
    """A copy of a home's files that are kept, which is brought from one day to the next.

    Transcripts have the rows up to a day. Other files are there from the first on: what they were before is not known.
    """

    def __init__(self, home: Path, copy: Path) -> None:
        self.home = copy
        shutil.rmtree(copy, ignore_errors=True)
        self._ends: dict[Path, list[tuple[bytes, int]]] = {}
        self._others: list[Path] = []
        self._from = home
        for source in find_source_files(homes(home)[0], []):
            relative = source.file.relative_to(home)
            if source.file.suffix == ".jsonl" and source.path.startswith("projects/"):
                self._ends[relative] = _ends(source.file)
            else:
                self._others.append(relative)
        self.days = sorted({day for ends in self._ends.values() for day, _end in ends})[-DAYS - 1 :]

    def begin(self) -> int:
        """Make the home as it stood before its last ten days; how many bytes it has."""
        for relative in self._others:
            self._put(relative, (self._from / relative).stat().st_size)
        return self.go_on(self.days[0])

    def go_on(self, day: bytes) -> int:
        """Let transcripts grow by what was written up to a day; how many bytes the home has then."""
        for relative, ends in self._ends.items():
            size = max((end for other, end in ends if other <= day), default=0)
            if size:
                self._put(relative, size)
        return sum(path.stat().st_size for path in self.home.rglob("*") if path.is_file())

    def _put(self, relative: Path, size: int) -> None:
        to = self.home / relative
        to.parent.mkdir(parents=True, exist_ok=True)
        have = to.stat().st_size if to.exists() else 0
        if have == size and to.exists():
            return
        with (self._from / relative).open("rb") as source, to.open("ab") as target:
            source.seek(have)
            target.write(source.read(size - have))
            os.fsync(target.fileno())


def _ends(path: Path) -> list[tuple[bytes, int]]:
    """The days that a transcript was written on, each with where its last row of that day ends."""
    found: dict[bytes, int] = {}
    day, end = b"0000-00-00", 0
    with path.open("rb") as file:
        for line in file:
            end += len(line)
            said = _DAY.search(line)
            day = max(day, said[1]) if said else day
            found[day] = end
    return list(found.items())
