"""Random histories of a file by sessions, people, formatters, rewinds and commits: no line gets a wrong writer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.profiles import scale_examples

from threadline.insight import CommittedVersion, FileHistory, GitVersions, OwnedFact
from threadline.model.insight.blame import BlamedLine
from threadline.model.places import Place, SessionId
from threadline.model.state import Evidence, EvidenceKind
from threadline.thread import FactKind, FileFact

PATH = "/work/app.py"
PERSON = "person"
COMMON_LINES = ("", "}", "pass", "    return x", "")


@dataclass
class Line:
    """A line with everyone who may be said to have written it."""

    text: str
    writers: frozenset[str]


@dataclass
class World:
    """A file that several writers change. It knows the truth, and records what sessions and git would record."""

    random: Random
    with_git: bool
    lines: list[Line] = field(default_factory=list)
    facts: list[OwnedFact] = field(default_factory=list)
    commits: list[CommittedVersion] = field(default_factory=list)
    backups: list[list[Line]] = field(default_factory=list)
    origins: dict[str, BlamedLine] = field(default_factory=dict)
    inserted: list[Line] = field(default_factory=list)
    deleted: list[Line] = field(default_factory=list)
    time: float = 1000.0
    serial: int = 0

    @property
    def text(self) -> str:
        """The current text."""
        return "".join(f"{line.text}\n" for line in self.lines)

    def new_text(self) -> str:
        """A line that is new, or one of those that occur everywhere."""
        self.serial += 1
        if self.random.random() < 0.4:
            return self.random.choice(COMMON_LINES)
        return f"{' ' * self.random.choice((0, 4))}value_{self.serial} = {self.serial}"

    def change(self, writer: str) -> tuple[int, int, list[Line]]:
        """Replace, insert or delete some lines."""
        start = self.random.randint(0, len(self.lines))
        end = min(len(self.lines), start + self.random.choice((0, 0, 1, 1, 2, 4)))
        new = [Line(self.new_text(), frozenset({writer})) for _ in range(self.random.choice((0, 1, 1, 2, 3, 5)))]
        if self.random.random() < 0.3 and end > start:
            kept = self.lines[self.random.randrange(start, end)]
            new.insert(self.random.randint(0, len(new)), Line(kept.text, frozenset({writer})))
        self.deleted += self.lines[start:end]
        self.inserted += new
        self.lines[start:end] = new
        return start, end, new

    def settle(self) -> None:
        """End a step: a line that was removed and written again, in whatever indentation, has either writer."""
        removed: dict[str, set[str]] = {}
        for line in self.deleted:
            removed.setdefault(line.text.strip(), set()).update(line.writers)
        written = {id(line) for line in self.inserted if line.text.strip() in removed}
        for line in self.inserted:
            line.writers |= removed.get(line.text.strip(), set())
        for _, run in groupby(self.lines, key=lambda line: line.text):
            equal = list(run)
            if any(id(line) in written for line in equal):  # nobody can tell which of them was written again
                writers = frozenset[str]().union(*(line.writers for line in equal))
                for line in equal:
                    line.writers = writers
        self.deleted, self.inserted = [], []

    def origin(self, session: str) -> BlamedLine:
        """The origin of a new edit."""
        name = f"{session}-{len(self.facts)}"
        self.origins[name] = BlamedLine(0, "", known=True, session=SessionId(name))
        return self.origins[name]

    def record(
        self,
        kind: FactKind,
        origin: BlamedLine | None = None,
        *,
        old: str | None = None,
        new: str | None = None,
        is_backup: bool = False,
    ) -> None:
        """Record the current text as a fact."""
        how = EvidenceKind.BACKUP if is_backup else EvidenceKind.EDIT
        evidence = Evidence(Place("t.jsonl", len(self.facts) + 1), how)
        self.facts.append(OwnedFact(FileFact(kind, PATH, self.time, evidence, None, self.text, old, new), origin))

    def see(self, *, is_backup: bool = False) -> None:
        """A session sees the complete text."""
        self.settle()
        self.record(FactKind.SEEN, is_backup=is_backup)
        if is_backup:
            self.backups.append(list(self.lines))

    def session_write(self, session: str) -> None:
        """A session writes the whole file."""
        self.see(is_backup=self.random.random() < 0.5)
        origin = self.origin(session)
        for _ in range(self.random.randint(1, 4)):
            self.change(str(origin.session))
        self.settle()
        self.record(FactKind.WRITE, origin)

    def session_edit(self, session: str) -> None:
        """A session replaces some lines."""
        self.see(is_backup=self.random.random() < 0.5)
        origin = self.origin(session)
        before, lines = self.text, list(self.lines)
        start, end, new = self.change(str(origin.session))
        self.settle()
        old = "".join(f"{line.text}\n" for line in lines[start:end])
        offset = len("".join(f"{line.text}\n" for line in lines[:start]))
        if not old or before.find(old) != offset or before.count(old) > 1:
            self.record(FactKind.WRITE, origin)
            return
        text = "".join(f"{line.text}\n" for line in new)
        self.record(FactKind.EDIT, origin, old=old, new=text)

    def person(self) -> None:
        """A person changes the file, and nobody records it."""
        for _ in range(self.random.randint(1, 3)):
            self.change(PERSON)

    def move(self) -> None:
        """A person moves some lines."""
        self.see()
        start = self.random.randint(0, len(self.lines))
        end = min(len(self.lines), start + self.random.randint(1, 4))
        block = self.lines[start:end]
        del self.lines[start:end]
        at = self.random.randint(0, len(self.lines))
        self.lines[at:at] = block
        self.see()

    def format(self) -> None:
        """A formatter changes the indentation of some lines."""
        self.see()
        start = self.random.randint(0, len(self.lines))
        for at, line in list(enumerate(self.lines))[start : start + 5]:
            if line.text.strip():
                self.lines[at] = Line(f"  {line.text}", line.writers)
        self.see()

    def rewind(self) -> None:
        """A backup is restored."""
        if self.backups:
            self.see()
            backup = self.random.choice(self.backups)
            if [line.text for line in backup] != [line.text for line in self.lines]:
                self.lines = list(backup)
            self.see()

    def commit(self) -> None:
        """The text is committed."""
        if not self.with_git:
            return
        self.settle()
        parents = (self.commits[-1].id,) if self.commits else ()
        name = f"{len(self.commits):040x}"
        if self.commits and self.commits[-1].text == self.text:
            return
        self.commits.append(CommittedVersion(name, name, self.time // 1, "P", parents, "app.py", self.text))

    def act(self) -> None:
        """Do something."""
        self.time += 10
        session = self.random.choice(("a", "b", "c"))
        actions: list[Callable[[], None]] = [
            *(partial(self.session_edit, session), partial(self.session_edit, session)),
            partial(self.session_write, session),
            *(self.person, self.person, self.move, self.format, self.rewind, self.commit),
        ]
        self.random.choice(actions)()


def play(seed: int, steps: int, *, with_git: bool) -> tuple[World, list[BlamedLine]]:
    """A random history, and the origins of the last text."""
    world = World(Random(seed), with_git)  # noqa: S311 - not a secret
    for _ in range(steps):
        world.act()
    world.settle()
    git = GitVersions(world.commits[-1].id if world.commits else None, world.commits, ["app.py"])
    history = FileHistory([PATH], git if with_git else None, lambda *_: False)
    history.replay(world.facts)
    return world, history.explain(PATH, world.text)


def check(world: World, origins: list[BlamedLine]) -> tuple[int, int]:
    """Compare with the truth; return how many lines are known, and how many there are."""
    known = 0
    for number, (line, origin) in enumerate(zip(world.lines, origins, strict=True), 1):
        if origin.known:
            known += 1
            writer = str(origin.session) if origin.session is not None else PERSON
            assert writer in line.writers, (
                f"line {number} {line.text!r}: {writer}, not {set(line.writers)}\n{world.text}"
            )
    return known, len(world.lines)


@pytest.mark.parametrize("with_git", [False, True])
@settings(max_examples=scale_examples(60), deadline=None, derandomize=True)
@given(seed=st.integers(0, 1_000_000), steps=st.integers(1, 14))
def test_no_line_gets_a_wrong_writer(seed: int, steps: int, with_git: bool) -> None:
    """Every line has the writer that the world knows, or none."""
    check(*play(seed, steps, with_git=with_git))


def test_most_lines_are_known() -> None:
    """Unknown is the exception."""
    known, total = map(sum, zip(*(check(*play(seed, 8, with_git=True)) for seed in range(60)), strict=True))
    assert known > total * 0.4
