"""Transcripts followed as they grow: each whole line once, whatever happens to the files."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from itertools import groupby
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.make import SESSION, line

from threadline.model.found import Home
from threadline.parse import entries
from threadline.survey import followed
from threadline.survey.follow import Follower

OTHER = "5e551011-0000-4000-8000-000000000002"


def row(number: int, size: int = 0) -> bytes:
    """A line that no other is like."""
    return line({"type": "user", "n": number, "message": {"role": "user", "content": "x" * size}})


def rows(*numbers: int) -> bytes:
    """Lines that are all different."""
    return b"".join(map(row, numbers))


def home(path: Path) -> Home:
    """A home to follow."""
    (path / "projects" / "-a").mkdir(parents=True, exist_ok=True)
    return Home(path, "option")


def main(path: Path, session: str = SESSION, folder: str = "-a") -> Path:
    """Where a session's main transcript lies."""
    return path / "projects" / folder / f"{session}.jsonl"


def told(follower: Follower) -> list[bytes]:
    """The lines that are new, in the order given; a damaged one may have several entries."""
    found = follower.poll(everything=True)
    by_line = groupby(found, key=lambda one: (one[0].path, one[1].line.number))
    return [b"".join(entry.raw for _, entry in some) for _, some in by_line]


def add(path: Path, data: bytes) -> None:
    """Append."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(data)


def test_what_was_there_is_not_news(tmp_path: Path) -> None:
    """Following begins at the end of each file; what is appended comes once, with its line number and offset."""
    add(main(tmp_path), rows(1, 2, 3))
    follower = Follower([home(tmp_path)])
    assert told(follower) == []
    add(main(tmp_path), rows(4))
    ((where, entry),) = follower.poll(everything=True)
    assert (where.path, where.session) == (main(tmp_path), SESSION)
    assert (entry.raw, entry.line.number, entry.line.offset) == (row(4), 4, len(rows(1, 2, 3)))
    assert told(follower) == []


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 400), min_size=1, max_size=12), st.data())
def test_lines_come_whole_wherever_a_write_ends(sizes: list[int], data: st.DataObject) -> None:
    """Appends cut at arbitrary bytes: a line comes when its newline is there, once, equal to what a reader sees."""
    content = b"".join(row(number, size) for number, size in enumerate(sizes))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(content)), max_size=20)))
    first = data.draw(st.integers(0, len(content)))
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder)
        path = main(top)
        add(path, content[:first])
        follower = Follower([home(top)])
        found = []
        at = first
        for cut in [*(cut for cut in cuts if cut > first), len(content)]:
            add(path, content[at:cut])
            at = cut
            found += [entry for _, entry in follower.poll(everything=True)]
            assert all(entry.raw.endswith(b"\n") for entry in found)
        known = content.rfind(b"\n", 0, first) + 1
        assert b"".join(entry.raw for entry in found) == content[known:]
        wanted = [entry.line for entry in entries(path) if entry.line.offset >= known]
        assert [entry.line for entry in found] == wanted


class Writers(RuleBasedStateMachine):
    """Writers that do to transcripts all that writers do, while they are followed.

    No two lines are alike, so that it can be told which were given, and how often.
    """

    def __init__(self) -> None:
        super().__init__()
        self.top = Path(tempfile.mkdtemp())
        self.number = 0
        self.paths = [
            main(self.top),
            main(self.top, OTHER, "-b"),
            main(self.top).with_suffix("") / "subagents/agent-x.jsonl",
        ]
        add(self.paths[0], self.fresh(3))
        self.before = set(self.lines(self.paths[0]))
        self.follower = Follower([home(self.top)])
        self.found: Counter[bytes] = Counter()

    def teardown(self) -> None:
        """Leave nothing behind."""
        shutil.rmtree(self.top)

    def fresh(self, count: int, size: int = 0) -> bytes:
        """Lines that were never written before."""
        self.number += count
        return b"".join(row(self.number - one, size) for one in range(count))

    @staticmethod
    def lines(path: Path) -> list[bytes]:
        """The whole lines of a file."""
        return path.read_bytes().splitlines(keepends=True)[: path.read_bytes().count(b"\n")] if path.exists() else []

    @rule(which=st.integers(0, 2), count=st.integers(1, 4), size=st.sampled_from([0, 40, 900]), torn=st.integers(0, 60))
    def append(self, which: int, count: int, size: int, torn: int) -> None:
        """Whole lines and the beginning of another, which may go on where one was torn."""
        path = self.paths[which]
        ends_torn = path.exists() and path.read_bytes()[-1:] not in (b"", b"\n")
        # What was torn gets an end that no other line has.
        data = (
            (b"#%d\n" % self.number if ends_torn else b"")
            + self.fresh(count, size)
            + self.fresh(1)[:torn].rstrip(b"\n")
        )
        add(path, data)

    @rule(which=st.integers(0, 2), cut=st.integers(1, 300))
    def truncate(self, which: int, cut: int) -> None:
        """The end is cut off, as after a failed stream, at whatever byte."""
        path = self.paths[which]
        if path.exists():
            os.truncate(path, max(0, path.stat().st_size - cut))

    @rule(which=st.integers(0, 2), keep=st.integers(0, 5), count=st.integers(0, 3), in_place=st.booleans())
    def rewrite(self, which: int, keep: int, count: int, in_place: bool) -> None:
        """The file is written again with some of its lines left out at the end, and others instead."""
        path = self.paths[which]
        content = b"".join(self.lines(path)[:keep]) + self.fresh(count)
        path.parent.mkdir(parents=True, exist_ok=True)
        target = path if in_place else path.with_suffix(".new")
        target.write_bytes(content)
        target.replace(path)

    @rule(which=st.integers(0, 2))
    def delete(self, which: int) -> None:
        """The file is taken away."""
        self.paths[which].unlink(missing_ok=True)

    @rule(copied=st.booleans())
    def move(self, copied: bool) -> None:
        """The session goes on in another project's folder."""
        old = self.paths[1]
        new = main(self.top, OTHER, f"-moved-{self.number}")
        if old.exists() and not new.exists():
            new.parent.mkdir(parents=True, exist_ok=True)
            if copied:
                shutil.copyfile(old, new)
                old.unlink()
            else:
                old.rename(new)
            self.paths[1] = new

    @rule()
    def look(self) -> None:
        """Somebody looks. Every whole line that is there now has been given; none was ever given twice."""
        self.found.update(told(self.follower))
        while self.follower.is_behind:
            self.found.update(told(self.follower))
        there = {one for path in self.paths for one in self.lines(path)}
        assert there - set(self.found) - self.before == set()

    @invariant()
    def none_twice(self) -> None:
        """No line comes twice, none that was there at first, and nothing that was never written."""
        assert not {one for one, count in self.found.items() if count > 1}
        assert not self.before & set(self.found)


TestWriters = Writers.TestCase
TestWriters.settings = settings(deadline=None, max_examples=50, stateful_step_count=30)


class ForgetfulWriters(Writers):
    """The same where little is remembered of what was there, so that cuts go deeper than that."""

    def __init__(self) -> None:
        self.remembered, followed._REMEMBERED = followed._REMEMBERED, 50
        super().__init__()

    def teardown(self) -> None:
        """Leave nothing behind."""
        followed._REMEMBERED = self.remembered
        super().teardown()

    @precondition(lambda self: self.follower is not None)
    @invariant()
    def none_twice(self) -> None:
        """No line comes twice; of a file that was written anew, lines may come that were there before."""
        assert not {one for one, count in self.found.items() if count > 1}


TestForgetfulWriters = ForgetfulWriters.TestCase
TestForgetfulWriters.settings = settings(deadline=None, max_examples=50, stateful_step_count=30)
