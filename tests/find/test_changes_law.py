"""The law of changes: whatever happens to files, reading as `changes` says gives exactly their lines."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.find.held_lines import SECOND, HeldLines, whole_lines
from tests.profiles import scale_examples

from threadline.find import stat_transcripts
from threadline.model.homes import ChangeKind

NAMES = [f"-{folder}/{name}.jsonl" for folder in "ab" for name in ("one", "two", "s/subagents/agent-1")]
THEN = 1_700_000_000 * SECOND

names = st.sampled_from(NAMES)
amounts = st.integers(0, 6)
# Minutes that a file's time is off: now, long ago, or still to come.
offsets = st.sampled_from([0, 0, 0, -600, 600])


class Transcripts(RuleBasedStateMachine):
    """Files that are written, cut, replaced, moved and deleted, and lines that are held of them.

    The ends that are hashed are shorter here than a few lines, so that every file has a middle.
    """

    def __init__(self) -> None:
        super().__init__()
        self.small = patch("threadline.find.fingerprint.END", 32)
        self.small.start()
        self.folder = tempfile.TemporaryDirectory()
        self.home = Path(os.path.realpath(self.folder.name))
        (self.home / "projects").mkdir()
        self.held = HeldLines(self.home)
        self.now = THEN
        self.count = 0

    def teardown(self) -> None:
        """Leave nothing behind."""
        self.folder.cleanup()
        self.small.stop()

    @rule(name=names, amount=amounts, torn=st.booleans(), offset=offsets)
    def append(self, name: str, amount: int, torn: bool, offset: int) -> None:
        """Lines are added, the last one perhaps not to its end; a new file may come to be."""
        path = self.path(name)
        with path.open("ab") as file:
            file.write(self.some_lines(amount) + (b'{"torn' if torn else b""))
        self.stamp(path, offset)

    @rule(name=names, share=st.floats(0, 1), offset=offsets)
    def truncate(self, name: str, share: float, offset: int) -> None:
        """A file is cut at any byte."""
        path = self.path(name)
        if path.exists():
            os.truncate(path, int(path.stat().st_size * share))
            self.stamp(path, offset)

    @rule(name=names, more=amounts, offset=offsets)
    def take_a_line_back(self, name: str, more: int, offset: int) -> None:
        """The last line goes, others may come."""
        path = self.path(name)
        if path.exists():
            lines = whole_lines(path.read_bytes())
            self.write_in_place(path, b"".join(lines[:-1]) + self.some_lines(more))
            self.stamp(path, offset)

    @rule(name=names, share=st.floats(0, 1), offset=offsets)
    def change_one_byte(self, name: str, share: float, offset: int) -> None:
        """The same file, the same size, and one byte is another: found if nothing else happened to it meanwhile."""
        path = self.path(name)
        if path.exists() and path.stat().st_size:
            self.held.refresh(self.now)
            self.write_in_place(path, with_another_byte(path.read_bytes(), share))
            self.stamp(path, offset)
            self.held.refresh(self.now)
            self.check()

    @rule(name=names, amount=amounts, offset=offsets)
    def replace(self, name: str, amount: int, offset: int) -> None:
        """Another file with other lines is put in its place."""
        self.put_in_place(self.path(name), self.some_lines(amount), offset)

    @rule(name=names, more=amounts, share=st.none() | st.floats(0, 1), offset=offsets)
    def save_anew(self, name: str, more: int, share: float | None, offset: int) -> None:
        """Another file with the same lines and some more, or one byte changed, is put in its place."""
        path = self.path(name)
        if path.exists() and (data := path.read_bytes()):
            changed = data if share is None else with_another_byte(data, share)
            self.put_in_place(path, changed + self.some_lines(more), offset)

    @rule(name=names, to=names)
    def rename(self, name: str, to: str) -> None:
        """A file gets another name, which another file may have had."""
        if self.path(name).exists():
            self.path(name).rename(self.path(to))

    @rule(name=names, to=names)
    def exchange(self, name: str, to: str) -> None:
        """Two files change names."""
        one, two = self.path(name), self.path(to)
        if one.exists() and two.exists() and one != two:
            aside = self.home / "aside"
            one.rename(aside)
            two.rename(one)
            aside.rename(two)

    @rule(name=names, to=names, keep_time=st.booleans())
    def copy(self, name: str, to: str, keep_time: bool) -> None:
        """A file is copied over another, or to a new name."""
        if name != to and self.path(name).exists():
            self.path(to).unlink(missing_ok=True)
            shutil.copy2(self.path(name), self.path(to))
            if not keep_time:
                self.stamp(self.path(to), 0)

    @rule(name=names, to=names)
    def link(self, name: str, to: str) -> None:
        """A file gets a second name."""
        if self.path(name).exists() and not self.path(to).exists():
            os.link(self.path(name), self.path(to))

    @rule()
    def rename_a_project(self) -> None:
        """All files of a folder move, with the folder."""
        one, two = self.home / "projects/-a", self.home / "projects/-b"
        if one.exists():
            shutil.rmtree(two, ignore_errors=True)
            one.rename(two)

    @rule(name=names)
    def delete(self, name: str) -> None:
        """A file goes."""
        self.path(name).unlink(missing_ok=True)

    @rule(name=names, amount=st.integers(1, 6))
    def write_twice_in_one_moment(self, name: str, amount: int) -> None:
        """A line is written, read, and exchanged for another of the same size, all at one time."""
        path = self.path(name)
        with path.open("ab") as file:
            file.write(b"\n" + self.some_lines(amount))
        self.stamp(path, 0)
        self.held.refresh(self.now + SECOND)
        status = path.stat()
        data = path.read_bytes()
        self.write_in_place(path, data[:-3] + bytes([data[-3] ^ 1]) + data[-2:])
        os.utime(path, ns=(status.st_mtime_ns, status.st_mtime_ns))
        self.held.refresh(self.now + SECOND)
        self.check()

    @precondition(lambda self: self.held.known)
    @rule(later=st.sampled_from([0, 1, 5]))
    def refresh(self, later: int) -> None:
        """What happened is read, and nothing is left to read."""
        self.held.refresh(self.now + later * SECOND)
        self.check()
        left = self.held.refresh(self.now + later * SECOND)
        racy_and_torn = {one.path for one in self.held.known.values() if one.racy and one.size > one.read_to}
        assert {change.before.path for change in left.changed if change.before} <= racy_and_torn
        assert {change.kind for change in left.changed} <= {ChangeKind.GROWN}

    @rule()
    def start(self) -> None:
        """The first look, or one more."""
        self.held.refresh(self.now)
        self.check()

    @invariant()
    def is_settled(self) -> None:
        """What is known ends with a line."""
        for path, lines in self.held.lines.items():
            assert self.held.known[path].read_to == sum(map(len, lines))

    def check(self) -> None:
        """The lines that are held are those of the files."""
        there = {path: whole_lines(Path(path).read_bytes()) for path, _ in stat_transcripts(self.held.homes[0])}
        assert self.held.lines == there

    def path(self, name: str) -> Path:
        """The path of a file, whose folder is there."""
        path = self.home / "projects" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def some_lines(self, amount: int) -> bytes:
        """Lines that were never written before."""
        self.count += amount
        return b"".join(b'{"number":%06d}\n' % (self.count - each) for each in range(amount))

    def put_in_place(self, path: Path, data: bytes, offset: int) -> None:
        """Write a file aside and rename it."""
        aside = self.home / "aside"
        aside.write_bytes(data)
        self.stamp(aside, offset)
        aside.rename(path)

    def write_in_place(self, path: Path, data: bytes) -> None:
        """Write over the bytes of the same file."""
        with path.open("r+b") as file:
            file.write(data)
            file.truncate()

    def stamp(self, path: Path, offset: int) -> None:
        """Give a file the next moment, or one that is off; no two writes have the same."""
        self.now += 10 * SECOND + 1
        at = self.now + offset * 60 * SECOND
        os.utime(path, ns=(at, at))


def with_another_byte(data: bytes, share: float) -> bytes:
    """The same bytes but one."""
    at = min(int(len(data) * share), len(data) - 1)
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


Transcripts.TestCase.settings = settings(
    max_examples=scale_examples(100),
    stateful_step_count=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestTranscripts = pytest.mark.skipif(os.name == "nt", reason="Windows has no inodes in directories")(
    Transcripts.TestCase
)
