"""What somebody who works has at hand: the project's texts, its files, the todo list, room on the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    from threadline.demo.eras import Era
    from threadline.demo.projects import Project
    from threadline.demo.text import Pools

HOME = "/home/mara/.claude"
"""Where the home says it lies. It is written elsewhere, but paths in it must not differ between machines."""

LONGEST = 900_000
"""No single text is longer; with its envelope and a second copy a line may reach 1 MB and more."""


class Call(msgspec.Struct):
    """A tool call and what came back."""

    name: str
    input: dict[str, Any]
    content: Any
    """What the model gets: text, or a list of blocks."""
    result: Any = None
    """`toolUseResult`; an error's is its text."""
    error: bool = False
    flagged: bool = False
    """Whether `is_error: false` is written, as for shell commands."""
    wide: bool = False
    """Long-running: progress rows make sense."""


class Desk:
    """The state of one agent at work: the main one or a subagent."""

    def __init__(self, *, rng: Random, era: Era, project: Project, pools: Pools, session: str, root: Path) -> None:
        self.rng = rng
        self.era = era
        self.project = project
        self.pools = pools
        self.session = session
        self.root = root
        """The home, as it is being written."""
        self.room = 1 << 60
        """How many bytes the next line may take."""
        self.files = [pools.words.path() for _ in range(12)]
        self.todos: list[dict[str, Any]] = []
        self.tasks: list[dict[str, Any]] = []
        self.edited: dict[str, int] = {}
        """Path relative to the project: how often it was edited."""
        self.added = 0
        self.removed = 0
        self.searches = 0

    def chance(self, share: float) -> bool:
        """True in that share of cases."""
        return self.rng.random() < share

    def length(self, median: int, spread: float = 1.0, copies: float = 1.0) -> int:
        """A length around the median, lognormal, that leaves room when the text is written so many times."""
        wanted = int(self.rng.lognormvariate(0.0, spread) * median)
        return max(24, min(wanted, LONGEST, int(self.room / (copies * 1.25))))

    def file(self) -> str:
        """A file of the project, relative to it: mostly one that was seen before."""
        if self.chance(0.1):
            self.files[int(self.rng.random() * len(self.files))] = self.pools.words.path()
        return self.files[int(self.rng.random() * len(self.files))]

    def code(self, length: int, *, top: bool = False) -> str:
        """Lines of the project's code; from the top of a file they begin with a whole piece."""
        return self.pools.code.take(self.rng, length, "\n\n" if top else None)

    def folder(self) -> str:
        """Where side files of the session lie, as rows name it."""
        return f"{HOME}/projects/{self.project.folder}/{self.session}"

    def side(self, name: str, content: bytes) -> str:
        """Write a file beside the transcript, and give the path that rows name."""
        path = self.root / "projects" / self.project.folder / self.session / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return f"{self.folder()}/{name}"
