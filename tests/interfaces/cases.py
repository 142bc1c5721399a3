"""Every case folder as a home of its own: the inputs on which all interfaces are asked the same."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.transcripts import SESSION

TESTS = Path(__file__).parents[1]
CORPORA = {"corpus": TESTS / "corpus", "sessions": TESTS / "sessions", "account": TESTS / "account" / "cases"}
"""Folders of cases, by the name that golden files and disagreements have them under."""
WRITTEN = 1_763_200_000
"""When every file of a home was last written, in seconds since 1970: where a transcript tells no time, this shows."""


@dataclass(frozen=True)
class Case:
    """A case: the corpus it is in, and its folder."""

    corpus: str
    folder: Path

    @property
    def name(self) -> str:
        """`sessions/warm-up-is-a-side-agent`."""
        return f"{self.corpus}/{self.folder.name}"

    def home(self, place: Path) -> Path:
        """A Claude home with what the case holds, written to a folder that is not there yet."""
        inputs = self.folder / "in"
        is_home = (inputs / "projects").is_dir()
        shutil.copytree(inputs, place if is_home else place / "projects" / "-work-app")
        for path in place.glob("projects/*/session.jsonl"):
            path.rename(path.with_name(f"{SESSION}.jsonl"))  # as Claude Code names it, so that it is a session
        date(place)
        return place


def date(home: Path) -> None:
    """Give every file the same time, so that no answer tells when the test ran."""
    for path in home.rglob("*"):
        os.utime(path, (WRITTEN, WRITTEN))


def cases(corpus: str) -> list[Case]:
    """The cases of a corpus, by name."""
    return [Case(corpus, folder) for folder in sorted(CORPORA[corpus].iterdir()) if (folder / "in").is_dir()]
