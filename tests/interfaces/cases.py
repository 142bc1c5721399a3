"""Every case folder as a separate home: the inputs for which all interfaces are compared."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.transcripts import SESSION

TESTS = Path(__file__).parents[1]
CORPORA = {"corpus": TESTS / "corpus", "sessions": TESTS / "sessions", "account": TESTS / "account" / "cases"}
"""Folders of cases, by the name that golden files use."""
MTIME = 1_763_200_000
"""The mtime of every file of a home, in seconds since 1970. It is shown for transcripts without times."""


@dataclass(frozen=True)
class Case:
    """A case: its corpus and its folder."""

    corpus: str
    folder: Path

    @property
    def name(self) -> str:
        """`sessions/warm-up-is-a-side-agent`."""
        return f"{self.corpus}/{self.folder.name}"

    def write_home(self, home: Path) -> Path:
        """Write a Claude home with the files of the case to a folder that does not exist yet."""
        inputs = self.folder / "in"
        is_home = (inputs / "projects").is_dir()
        shutil.copytree(inputs, home if is_home else home / "projects" / "-work-app")
        for path in home.glob("projects/*/session.jsonl"):
            path.rename(path.with_name(f"{SESSION}.jsonl"))  # as Claude Code names it, so that it is a session
        set_mtimes(home)
        return home


def set_mtimes(home: Path) -> None:
    """Give every file the same mtime, so that no answer depends on when the test ran."""
    for path in home.rglob("*"):
        os.utime(path, (MTIME, MTIME))


def cases(corpus: str) -> list[Case]:
    """Return the cases of a corpus, by name."""
    return [Case(corpus, folder) for folder in sorted(CORPORA[corpus].iterdir()) if (folder / "in").is_dir()]
