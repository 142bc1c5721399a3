"""Tests of `Follower`: each complete line is reported once, whatever happens to the files."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from datetime import datetime, timedelta
from itertools import groupby
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.profiles import scale_examples
from tests.transcripts import SESSION, Pen, line, lines, meta, prompt, transcript

from threadline.find import watch
from threadline.model.homes import Home
from threadline.model.places import SessionId
from threadline.parse import entries
from threadline.watch import Follower, tail
from threadline.watch import follower as module

OTHER = "5e551011-0000-4000-8000-000000000002"


def row(number: int, size: int = 0) -> bytes:
    """Return a unique line."""
    return line({"type": "user", "n": number, "message": {"role": "user", "content": "x" * size}})


def rows(*numbers: int) -> bytes:
    """Return lines that are all different."""
    return b"".join(map(row, numbers))


def home(path: Path) -> Home:
    """Create a home to follow."""
    (path / "projects" / "-a").mkdir(parents=True, exist_ok=True)
    return Home(path, "option")


def main_path(path: Path, session: str = SESSION, folder: str = "-a") -> Path:
    """Return the path of a session's main transcript."""
    return path / "projects" / folder / f"{session}.jsonl"


def poll_lines(follower: Follower) -> list[bytes]:
    """Poll, and return the new lines in order. A damaged line may have several entries."""
    polled = follower.poll(everything=True)
    by_line = groupby(polled, key=lambda pair: (pair[0].path, pair[1].line.number))
    return [b"".join(entry.raw for _, entry in entries_) for _, entries_ in by_line]


def add(path: Path, data: bytes) -> None:
    """Append to a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(data)


def test_starts_at_the_end_of_each_file(tmp_path: Path) -> None:
    """Appended lines are reported once, with line number and offset."""
    add(main_path(tmp_path), rows(1, 2, 3))
    follower = Follower([home(tmp_path)])
    assert poll_lines(follower) == []
    add(main_path(tmp_path), rows(4))
    ((transcript_, entry),) = follower.poll(everything=True)
    assert (transcript_.path, transcript_.session) == (main_path(tmp_path), SESSION)
    assert (entry.raw, entry.line.number, entry.line.offset) == (row(4), 4, len(rows(1, 2, 3)))
    assert poll_lines(follower) == []


@given(st.lists(st.integers(0, 400), min_size=1, max_size=12), st.data())
def test_reports_complete_lines_wherever_a_write_ends(sizes: list[int], data: st.DataObject) -> None:
    """A line is reported once its newline is written, equal to what a reader returns."""
    content = b"".join(row(number, size) for number, size in enumerate(sizes))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(content)), max_size=20)))
    first = data.draw(st.integers(0, len(content)))
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder)
        path = main_path(top)
        add(path, content[:first])
        follower = Follower([home(top)])
        polled = []
        at = first
        for cut in [*(cut for cut in cuts if cut > first), len(content)]:
            add(path, content[at:cut])
            at = cut
            polled += [entry for _, entry in follower.poll(everything=True)]
            assert all(entry.raw.endswith(b"\n") for entry in polled)
        start = content.rfind(b"\n", 0, first) + 1
        assert b"".join(entry.raw for entry in polled) == content[start:]
        expected = [entry.line for entry in entries(path) if entry.line.offset >= start]
        assert [entry.line for entry in polled] == expected


def poll_texts(follower: Follower) -> list[str]:
    """Poll, and return the texts of the new entries."""
    return [str(getattr(entry, "text", "")) for _, entry in follower.poll(everything=True)]


def test_starts_at_a_time(tmp_path: Path) -> None:
    """`since` includes what was written from then on, and everything that is appended later."""
    pen = Pen()
    old, new = transcript(prompt("old"), meta("mode", mode="plan"), prompt("new"), pen=pen)[::2]
    assert isinstance(old, dict)
    assert isinstance(new, dict)
    add(main_path(tmp_path), lines(old, *transcript(meta("mode", mode="plan")), new))
    since = datetime.fromisoformat(new["timestamp"])
    follower = Follower([home(tmp_path)], since=since)
    assert [entry.kind for _, entry in follower.poll()] == ["mode", "user"]
    add(main_path(tmp_path), lines(*transcript(prompt("a copy of long ago"))))
    assert poll_texts(follower) == ["a copy of long ago"]
    late = Follower([home(tmp_path)], since=since + timedelta(seconds=1))
    assert late.poll() == []


def test_follows_one_session_in_all_its_files(tmp_path: Path) -> None:
    """Its main transcript and its agents in any layout, also in another project."""
    follower = Follower([home(tmp_path)], session=SessionId(SESSION))
    add(main_path(tmp_path), rows(1))
    add(main_path(tmp_path, OTHER), rows(2))
    add(main_path(tmp_path).with_suffix("") / "subagents" / "workflows" / "run" / "agent-a.jsonl", rows(3))
    add(main_path(tmp_path, folder="-b").with_suffix("") / "subagents" / "agent-b.jsonl", rows(4))
    mine = line({"type": "user", "n": 5, "sessionId": SESSION})
    add(main_path(tmp_path).with_name("agent-c.jsonl"), line({"type": "user", "sessionId": OTHER}) + mine)
    assert sorted(poll_lines(follower)) == sorted([row(1), row(3), row(4), mine])


def test_ids_that_differ_in_case_are_different_sessions(tmp_path: Path) -> None:
    """An agent's rows beside the sessions are followed for the session that they name."""
    session = OTHER.replace("5e551011", "ABCDEF01")
    follower = Follower([home(tmp_path)], session=SessionId(session))
    mine, other = (line({"type": "user", "sessionId": id_}) for id_ in (session, session.lower()))
    add(main_path(tmp_path).with_name("agent-c.jsonl"), other + mine)
    assert poll_lines(follower) == [mine]


def test_follows_a_transcript_outside_any_home(tmp_path: Path) -> None:
    """Its session's directory is followed, but no file next to it."""
    path = tmp_path / "kept" / f"{SESSION}.jsonl"
    add(path, rows(1))
    follower = Follower(path=path)
    add(path, rows(2))
    add(path.with_suffix("") / "subagents" / "agent-a.jsonl", rows(3))
    add(path.with_name(f"{OTHER}.jsonl"), rows(4))
    assert sorted(poll_lines(follower)) == [row(2), row(3)]


def test_other_files_are_not_followed(tmp_path: Path) -> None:
    """Tool output, memories, symlinks, pipes and directories named like transcripts are skipped."""
    follower = Follower([home(tmp_path)])
    add(main_path(tmp_path).with_suffix("") / "tool-results" / "x.jsonl", rows(1))
    add(tmp_path / "projects" / "-a" / "memory" / "x.jsonl", rows(2))
    outside = tmp_path / "outside.jsonl"
    add(outside, rows(3))
    (tmp_path / "projects" / "-a" / "link.jsonl").symlink_to(outside)
    os.mkfifo(tmp_path / "projects" / "-a" / "pipe.jsonl")
    (tmp_path / "projects" / "-a" / "folder.jsonl").mkdir()
    add(main_path(tmp_path), rows(4))
    assert poll_lines(follower) == [row(4)]


def test_home_without_projects_is_followed(tmp_path: Path) -> None:
    """Projects may be created later."""
    follower = Follower([Home(tmp_path, "option")])
    assert poll_lines(follower) == []
    add(main_path(tmp_path), rows(1))
    assert poll_lines(follower) == [row(1)]


def test_entries_of_several_files_are_sorted_by_time(tmp_path: Path) -> None:
    """The order within a file is kept."""
    follower = Follower([home(tmp_path)])
    times = {SESSION: (3, 1, 5), OTHER: (2, 4)}
    for session, seconds in times.items():
        times_ = (f"2026-01-05T09:00:0{second}.000Z" for second in seconds)
        add(main_path(tmp_path, session), b"".join(line({"type": "user", "timestamp": when}) for when in times_))
    seconds_ = [str(entry.timestamp_text)[18] for _, entry in follower.poll(everything=True)]
    assert seconds_ == ["2", "3", "1", "4", "5"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_unreadable_file_is_followed_once_it_is_readable(tmp_path: Path) -> None:
    """Only what is appended after that is reported."""
    add(main_path(tmp_path), rows(1))
    main_path(tmp_path).chmod(0)
    follower = Follower([home(tmp_path)])
    assert poll_lines(follower) == []
    main_path(tmp_path).chmod(0o600)
    assert poll_lines(follower) == []
    add(main_path(tmp_path), rows(2))
    assert poll_lines(follower) == [row(2)]


def test_large_changes_are_reported_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A poll returns a limited number of bytes and says that there is more. Nothing is lost or repeated."""
    monkeypatch.setattr(module, "_MAX_BYTES", 1000)
    follower = Follower([home(tmp_path)])
    for session in (SESSION, OTHER):
        add(main_path(tmp_path, session), rows(*range(100)))
    polled = poll_lines(follower)
    assert 10 < len(polled) < 50
    while follower.is_behind:
        more = [entry.raw for _, entry in follower.poll()]
        assert len(more) < 50
        polled += more
    assert Counter(polled) == dict.fromkeys(map(row, range(100)), 2)


def test_file_cut_before_the_remembered_lines_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a long file, only the last lines are remembered when following starts."""
    monkeypatch.setattr(tail, "_REMEMBERED", len(rows(3)))
    add(main_path(tmp_path), rows(1, 2, 3))
    follower = Follower([home(tmp_path)])
    assert poll_lines(follower) == []
    os.truncate(main_path(tmp_path), len(rows(1)))
    assert poll_lines(follower) == []
    add(main_path(tmp_path), rows(4))
    assert poll_lines(follower) == [row(4)]


def test_remembered_lines_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Older lines are forgotten. Line numbers continue, and the last lines can still be truncated and rewritten."""
    monkeypatch.setattr(tail, "_MAX_LINES", 20)
    follower = Follower([home(tmp_path)])
    for number in range(50):
        add(main_path(tmp_path), rows(number))
        assert [entry.line.number for _, entry in follower.poll(everything=True)] == [number + 1]
    (followed,) = follower._files.values()
    assert len(followed.tail._ends) <= 21
    os.truncate(main_path(tmp_path), main_path(tmp_path).stat().st_size - len(rows(48, 49)))
    add(main_path(tmp_path), rows(100))
    ((_, entry),) = follower.poll(everything=True)
    assert (entry.raw, entry.line.number) == (row(100), 49)


def test_old_session_that_continues_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is detected among more files than are checked each time, and its agents from then on."""
    monkeypatch.setattr(watch, "_HOT_COUNT", 2)
    for number in range(20):
        path = main_path(tmp_path, f"5e551011-0000-4000-8000-{number:012}")
        add(path, rows(number))
        os.utime(path, (number, number))
    agent = main_path(tmp_path, "5e551011-0000-4000-8000-000000000003").with_suffix("") / "subagents" / "agent-a.jsonl"
    add(agent, rows(30))
    os.utime(agent, (1, 1))
    follower = Follower([home(tmp_path)])
    follower.poll(everything=True)
    monkeypatch.setattr(follower._watcher, "_look_everywhere", lambda: None)  # only what the frequent looks see
    monkeypatch.setattr(watch, "_MAIN_SECONDS", 0.0)
    monkeypatch.setattr(watch, "_MAIN_SHARE", 1e9)
    follower._watcher._next_main_look = 0.0
    add(main_path(tmp_path, "5e551011-0000-4000-8000-000000000003"), rows(40))
    assert [entry.raw for _, entry in follower.poll()] == [row(40)]
    add(agent, rows(41))
    assert [entry.raw for _, entry in follower.poll()] == [row(41)]


class TranscriptWriters(RuleBasedStateMachine):
    """Writers that change transcripts in every possible way while they are followed.

    No two lines are equal, so that it is known which were reported, and how often.
    """

    def __init__(self) -> None:
        super().__init__()
        self.top = Path(tempfile.mkdtemp())
        self.number = 0
        self.paths = [
            main_path(self.top),
            main_path(self.top, OTHER, "-b"),
            main_path(self.top).with_suffix("") / "subagents/agent-x.jsonl",
        ]
        add(self.paths[0], self.new_lines(3))
        self.before = set(self.complete_lines(self.paths[0]))
        self.follower = Follower([home(self.top)])
        self.reported: Counter[bytes] = Counter()

    def teardown(self) -> None:
        """Remove the files."""
        shutil.rmtree(self.top)

    def new_lines(self, count: int, size: int = 0) -> bytes:
        """Return lines that were never written before."""
        self.number += count
        return b"".join(row(self.number - index, size) for index in range(count))

    @staticmethod
    def complete_lines(path: Path) -> list[bytes]:
        """Return the complete lines of a file."""
        return path.read_bytes().splitlines(keepends=True)[: path.read_bytes().count(b"\n")] if path.exists() else []

    @rule(which=st.integers(0, 2), count=st.integers(1, 4), size=st.sampled_from([0, 40, 900]), torn=st.integers(0, 60))
    def append(self, which: int, count: int, size: int, torn: int) -> None:
        """Append lines and the beginning of another, perhaps after a torn one."""
        path = self.paths[which]
        ends_torn = path.exists() and path.read_bytes()[-1:] not in (b"", b"\n")
        # What was torn gets an end that no other line has.
        data = (
            (b"#%d\n" % self.number if ends_torn else b"")
            + self.new_lines(count, size)
            + self.new_lines(1)[:torn].rstrip(b"\n")
        )
        add(path, data)

    @rule(which=st.integers(0, 2), cut=st.integers(1, 300))
    def truncate(self, which: int, cut: int) -> None:
        """Truncate a file at any byte, as after a failed stream."""
        path = self.paths[which]
        if path.exists():
            os.truncate(path, max(0, path.stat().st_size - cut))

    @rule(which=st.integers(0, 2), keep=st.integers(0, 5), count=st.integers(0, 3), in_place=st.booleans())
    def rewrite(self, which: int, keep: int, count: int, in_place: bool) -> None:
        """Write a file again, with some lines at the end replaced."""
        path = self.paths[which]
        content = b"".join(self.complete_lines(path)[:keep]) + self.new_lines(count)
        path.parent.mkdir(parents=True, exist_ok=True)
        target = path if in_place else path.with_suffix(".new")
        target.write_bytes(content)
        target.replace(path)

    @rule(which=st.integers(0, 2))
    def delete(self, which: int) -> None:
        """Delete a file."""
        self.paths[which].unlink(missing_ok=True)

    @rule(copied=st.booleans())
    def move(self, copied: bool) -> None:
        """Move a session to another project's folder."""
        old = self.paths[1]
        new = main_path(self.top, OTHER, f"-moved-{self.number}")
        if old.exists() and not new.exists():
            new.parent.mkdir(parents=True, exist_ok=True)
            if copied:
                shutil.copyfile(old, new)
                old.unlink()
            else:
                old.rename(new)
            self.paths[1] = new

    @rule()
    def poll(self) -> None:
        """Poll. Every complete line has been reported, and none twice."""
        self.reported.update(poll_lines(self.follower))
        while self.follower.is_behind:
            self.reported.update(poll_lines(self.follower))
        written = {line for path in self.paths for line in self.complete_lines(path)}
        assert written - set(self.reported) - self.before == set()

    @invariant()
    def no_line_is_repeated(self) -> None:
        """No line is reported twice, and none that existed at the start or was never written."""
        assert not {line_ for line_, count in self.reported.items() if count > 1}
        assert not self.before & set(self.reported)


TestWriters = TranscriptWriters.TestCase
TestWriters.settings = settings(max_examples=scale_examples(50), stateful_step_count=30)


class ForgetfulWriters(TranscriptWriters):
    """The same with a small memory, so that truncations go deeper than what is remembered."""

    def __init__(self) -> None:
        self.remembered, tail._REMEMBERED = tail._REMEMBERED, 50
        super().__init__()

    def teardown(self) -> None:
        """Restore the limit and remove the files."""
        tail._REMEMBERED = self.remembered
        super().teardown()

    @precondition(lambda self: self.follower is not None)
    @invariant()
    def no_line_is_repeated(self) -> None:
        """No line is reported twice. Lines of a rewritten file may have existed before."""
        assert not {line_ for line_, count in self.reported.items() if count > 1}


TestForgetfulWriters = ForgetfulWriters.TestCase
TestForgetfulWriters.settings = settings(max_examples=scale_examples(50), stateful_step_count=30)
