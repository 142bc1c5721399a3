"""Stateful test of change detection: whatever happens to files, applying the changes gives exactly their lines."""

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
from tests.find.line_store import SECOND, LineStore, whole_lines
from tests.profiles import scale_examples

from threadline.find import stat_transcripts
from threadline.model.homes import ChangeKind

NAMES = [f"-{folder}/{name}.jsonl" for folder in "ab" for name in ("one", "two", "s/subagents/agent-1")]
THEN = 1_700_000_000 * SECOND

names = st.sampled_from(NAMES)
amounts = st.integers(0, 6)
# Minutes that a file's time is off: now, long ago, or still to come.
offsets = st.sampled_from([0, 0, 0, -600, 600])


class FileChanges(RuleBasedStateMachine):
    """Files that are written, truncated, replaced, moved and deleted, and a store of their lines.

    The hashed ends are shorter than a few lines here, so that every file has a middle.
    """

    def __init__(self) -> None:
        super().__init__()
        self.small = patch("threadline.find.fingerprint.END", 32)
        self.small.start()
        self.folder = tempfile.TemporaryDirectory()
        self.home = Path(os.path.realpath(self.folder.name))
        (self.home / "projects").mkdir()
        self.store = LineStore(self.home)
        self.now = THEN
        self.count = 0

    def teardown(self) -> None:
        """Remove the files."""
        self.folder.cleanup()
        self.small.stop()

    @rule(name=names, amount=amounts, torn=st.booleans(), offset=offsets)
    def append(self, name: str, amount: int, torn: bool, offset: int) -> None:
        """Append lines, the last one perhaps torn. The file may be new."""
        path = self.path(name)
        with path.open("ab") as file:
            file.write(self.new_lines(amount) + (b'{"torn' if torn else b""))
        self.set_mtime(path, offset)

    @rule(name=names, share=st.floats(0, 1), offset=offsets)
    def truncate(self, name: str, share: float, offset: int) -> None:
        """Truncate a file at any byte."""
        path = self.path(name)
        if path.exists():
            os.truncate(path, int(path.stat().st_size * share))
            self.set_mtime(path, offset)

    @rule(name=names, more=amounts, offset=offsets)
    def replace_last_line(self, name: str, more: int, offset: int) -> None:
        """Remove the last line, and append others."""
        path = self.path(name)
        if path.exists():
            lines = whole_lines(path.read_bytes())
            self.write_in_place(path, b"".join(lines[:-1]) + self.new_lines(more))
            self.set_mtime(path, offset)

    @rule(name=names, share=st.floats(0, 1), offset=offsets)
    def change_one_byte(self, name: str, share: float, offset: int) -> None:
        """Change one byte of a file. It is detected if nothing else happened to the file since the last refresh."""
        path = self.path(name)
        if path.exists() and path.stat().st_size:
            self.store.refresh(self.now)
            self.write_in_place(path, change_byte(path.read_bytes(), share))
            self.set_mtime(path, offset)
            self.store.refresh(self.now)
            self.check()

    @rule(name=names, amount=amounts, offset=offsets)
    def replace(self, name: str, amount: int, offset: int) -> None:
        """Replace a file by one with other lines."""
        self.replace_file(self.path(name), self.new_lines(amount), offset)

    @rule(name=names, more=amounts, share=st.none() | st.floats(0, 1), offset=offsets)
    def save_again(self, name: str, more: int, share: float | None, offset: int) -> None:
        """Replace a file by one with the same lines and more, or with one byte changed."""
        path = self.path(name)
        if path.exists() and (data := path.read_bytes()):
            changed = data if share is None else change_byte(data, share)
            self.replace_file(path, changed + self.new_lines(more), offset)

    @rule(name=names, to=names)
    def rename(self, name: str, to: str) -> None:
        """Rename a file, perhaps over another."""
        if self.path(name).exists():
            self.path(name).rename(self.path(to))

    @rule(name=names, to=names)
    def swap_names(self, name: str, to: str) -> None:
        """Swap the names of two files."""
        first, second = self.path(name), self.path(to)
        if first.exists() and second.exists() and first != second:
            aside = self.home / "aside"
            first.rename(aside)
            second.rename(first)
            aside.rename(second)

    @rule(name=names, to=names, keep_time=st.booleans())
    def copy(self, name: str, to: str, keep_time: bool) -> None:
        """Copy a file over another, or to a new name."""
        if name != to and self.path(name).exists():
            self.path(to).unlink(missing_ok=True)
            shutil.copy2(self.path(name), self.path(to))
            if not keep_time:
                self.set_mtime(self.path(to), 0)

    @rule(name=names, to=names)
    def link(self, name: str, to: str) -> None:
        """Add a hard link."""
        if self.path(name).exists() and not self.path(to).exists():
            os.link(self.path(name), self.path(to))

    @rule()
    def rename_project(self) -> None:
        """Rename a project's folder."""
        source, target = self.home / "projects/-a", self.home / "projects/-b"
        if source.exists():
            shutil.rmtree(target, ignore_errors=True)
            source.rename(target)

    @rule(name=names)
    def delete(self, name: str) -> None:
        """Delete a file."""
        self.path(name).unlink(missing_ok=True)

    @rule(name=names, amount=st.integers(1, 6))
    def write_twice_at_the_same_mtime(self, name: str, amount: int) -> None:
        """Write a line, read it, and replace it by another of the same size, all with the same mtime."""
        path = self.path(name)
        with path.open("ab") as file:
            file.write(b"\n" + self.new_lines(amount))
        self.set_mtime(path, 0)
        self.store.refresh(self.now + SECOND)
        status = path.stat()
        data = path.read_bytes()
        self.write_in_place(path, data[:-3] + bytes([data[-3] ^ 1]) + data[-2:])
        os.utime(path, ns=(status.st_mtime_ns, status.st_mtime_ns))
        self.store.refresh(self.now + SECOND)
        self.check()

    @precondition(lambda self: self.store.fingerprints)
    @rule(later=st.sampled_from([0, 1, 5]))
    def refresh(self, later: int) -> None:
        """Refresh the store. A second refresh finds nothing to read."""
        self.store.refresh(self.now + later * SECOND)
        self.check()
        remaining = self.store.refresh(self.now + later * SECOND)
        racy_and_torn = {
            fingerprint.path
            for fingerprint in self.store.fingerprints.values()
            if fingerprint.racy and fingerprint.size > fingerprint.read_to
        }
        assert {change.before.path for change in remaining.changed if change.before} <= racy_and_torn
        assert {change.kind for change in remaining.changed} <= {ChangeKind.GROWN}

    @rule()
    def start(self) -> None:
        """Refresh, perhaps for the first time."""
        self.store.refresh(self.now)
        self.check()

    @invariant()
    def fingerprints_end_with_a_line(self) -> None:
        """Every fingerprint ends after a complete line."""
        for path, lines in self.store.lines.items():
            assert self.store.fingerprints[path].read_to == sum(map(len, lines))

    def check(self) -> None:
        """Check that the store has the lines of the files."""
        expected = {path: whole_lines(Path(path).read_bytes()) for path, _ in stat_transcripts(self.store.homes[0])}
        assert self.store.lines == expected

    def path(self, name: str) -> Path:
        """Return the path of a file, whose folder exists."""
        path = self.home / "projects" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def new_lines(self, amount: int) -> bytes:
        """Return lines that were never written before."""
        self.count += amount
        return b"".join(b'{"number":%06d}\n' % (self.count - number) for number in range(amount))

    def replace_file(self, path: Path, data: bytes, offset: int) -> None:
        """Write a temporary file and rename it over the path."""
        aside = self.home / "aside"
        aside.write_bytes(data)
        self.set_mtime(aside, offset)
        aside.rename(path)

    def write_in_place(self, path: Path, data: bytes) -> None:
        """Overwrite the bytes of the same file."""
        with path.open("r+b") as file:
            file.write(data)
            file.truncate()

    def set_mtime(self, path: Path, offset: int) -> None:
        """Set the mtime to the next moment, plus an offset. No two writes have the same."""
        self.now += 10 * SECOND + 1
        at = self.now + offset * 60 * SECOND
        os.utime(path, ns=(at, at))


def change_byte(data: bytes, share: float) -> bytes:
    """Return the bytes with one of them changed."""
    at = min(int(len(data) * share), len(data) - 1)
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


FileChanges.TestCase.settings = settings(
    max_examples=scale_examples(100),
    stateful_step_count=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestTranscripts = pytest.mark.skipif(os.name == "nt", reason="Windows has no inodes in directories")(
    FileChanges.TestCase
)
