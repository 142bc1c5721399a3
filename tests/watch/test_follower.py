"""Transcripts followed as they grow: each whole line once, whatever happens to the files."""

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


def told_text(follower: Follower) -> list[str]:
    """The texts of what is new."""
    return [str(getattr(entry, "text", "")) for _, entry in follower.poll(everything=True)]


def test_beginning_a_while_ago(tmp_path: Path) -> None:
    """`since` gives what was written from then on, and what is appended later whatever time it tells."""
    pen = Pen()
    old, new = transcript(prompt("old"), meta("mode", mode="plan"), prompt("new"), pen=pen)[::2]
    assert isinstance(old, dict)
    assert isinstance(new, dict)
    add(main(tmp_path), lines(old, *transcript(meta("mode", mode="plan")), new))
    since = datetime.fromisoformat(new["timestamp"])
    follower = Follower([home(tmp_path)], since=since)
    assert [entry.kind for _, entry in follower.poll()] == ["mode", "user"]
    add(main(tmp_path), lines(*transcript(prompt("a copy of long ago"))))
    assert told_text(follower) == ["a copy of long ago"]
    late = Follower([home(tmp_path)], since=since + timedelta(seconds=1))
    assert late.poll() == []


def test_one_session_wherever_it_is_written(tmp_path: Path) -> None:
    """Of one session come its main transcript, its agents below it and beside it, also in another project."""
    follower = Follower([home(tmp_path)], session=SessionId(SESSION))
    add(main(tmp_path), rows(1))
    add(main(tmp_path, OTHER), rows(2))
    add(main(tmp_path).with_suffix("") / "subagents" / "workflows" / "run" / "agent-a.jsonl", rows(3))
    add(main(tmp_path, folder="-b").with_suffix("") / "subagents" / "agent-b.jsonl", rows(4))
    mine = line({"type": "user", "n": 5, "sessionId": SESSION})
    add(main(tmp_path).with_name("agent-c.jsonl"), line({"type": "user", "sessionId": OTHER}) + mine)
    assert sorted(told(follower)) == sorted([row(1), row(3), row(4), mine])


def test_one_transcript_that_lies_anywhere(tmp_path: Path) -> None:
    """A transcript outside of any home is followed with its session's directory, and with nothing beside it."""
    path = tmp_path / "kept" / f"{SESSION}.jsonl"
    add(path, rows(1))
    follower = Follower(path=path)
    add(path, rows(2))
    add(path.with_suffix("") / "subagents" / "agent-a.jsonl", rows(3))
    add(path.with_name(f"{OTHER}.jsonl"), rows(4))
    assert sorted(told(follower)) == [row(2), row(3)]


def test_what_is_no_transcript_is_not_followed(tmp_path: Path) -> None:
    """Tools' output, memories, links, pipes and directories named as transcripts are passed over."""
    follower = Follower([home(tmp_path)])
    add(main(tmp_path).with_suffix("") / "tool-results" / "x.jsonl", rows(1))
    add(tmp_path / "projects" / "-a" / "memory" / "x.jsonl", rows(2))
    outside = tmp_path / "outside.jsonl"
    add(outside, rows(3))
    (tmp_path / "projects" / "-a" / "link.jsonl").symlink_to(outside)
    os.mkfifo(tmp_path / "projects" / "-a" / "pipe.jsonl")
    (tmp_path / "projects" / "-a" / "folder.jsonl").mkdir()
    add(main(tmp_path), rows(4))
    assert told(follower) == [row(4)]


def test_a_home_whose_projects_come_later(tmp_path: Path) -> None:
    """A home may be empty when following begins."""
    follower = Follower([Home(tmp_path, "option")])
    assert told(follower) == []
    add(main(tmp_path), rows(1))
    assert told(follower) == [row(1)]


def test_entries_of_several_files_come_by_time(tmp_path: Path) -> None:
    """What several files gained between two looks comes in the order of time; a file's own order stays."""
    follower = Follower([home(tmp_path)])
    times = {SESSION: (3, 1, 5), OTHER: (2, 4)}
    for session, seconds in times.items():
        written = (f"2026-01-05T09:00:0{second}.000Z" for second in seconds)
        add(main(tmp_path, session), b"".join(line({"type": "user", "timestamp": when}) for when in written))
    found = [str(entry.timestamp_text)[18] for _, entry in follower.poll(everything=True)]
    assert found == ["2", "3", "1", "4", "5"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_yet(tmp_path: Path) -> None:
    """A file that may not be read is not news; once it may, what it gains is."""
    add(main(tmp_path), rows(1))
    main(tmp_path).chmod(0)
    follower = Follower([home(tmp_path)])
    assert told(follower) == []
    main(tmp_path).chmod(0o600)
    assert told(follower) == []
    add(main(tmp_path), rows(2))
    assert told(follower) == [row(2)]


def test_much_at_once_comes_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A poll gives no more than its share of bytes, says that there is more, and nothing is lost or told twice."""
    monkeypatch.setattr(module, "_MAX_BYTES", 1000)
    follower = Follower([home(tmp_path)])
    for session in (SESSION, OTHER):
        add(main(tmp_path, session), rows(*range(100)))
    found = told(follower)
    assert 10 < len(found) < 50
    while follower.is_behind:
        more = [entry.raw for _, entry in follower.poll()]
        assert len(more) < 50
        found += more
    assert Counter(found) == dict.fromkeys(map(row, range(100)), 2)


def test_what_is_remembered_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Older lines are forgotten; line numbers go on, and the last lines can still be cut off and written anew."""
    monkeypatch.setattr(tail, "_MAX_LINES", 20)
    follower = Follower([home(tmp_path)])
    for number in range(50):
        add(main(tmp_path), rows(number))
        assert [entry.line.number for _, entry in follower.poll(everything=True)] == [number + 1]
    (only,) = follower._files.values()
    assert len(only.tail._ends) <= 21
    os.truncate(main(tmp_path), main(tmp_path).stat().st_size - len(rows(48, 49)))
    add(main(tmp_path), rows(100))
    ((_, entry),) = follower.poll(everything=True)
    assert (entry.raw, entry.line.number) == (row(100), 49)


def test_a_session_that_has_been_still_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Among more files than are looked at each time, one that goes on is seen, and its agents from then on."""
    monkeypatch.setattr(watch, "_HOT_COUNT", 2)
    for number in range(20):
        path = main(tmp_path, f"5e551011-0000-4000-8000-{number:012}")
        add(path, rows(number))
        os.utime(path, (number, number))
    agent = main(tmp_path, "5e551011-0000-4000-8000-000000000003").with_suffix("") / "subagents" / "agent-a.jsonl"
    add(agent, rows(30))
    os.utime(agent, (1, 1))
    follower = Follower([home(tmp_path)])
    follower.poll(everything=True)
    monkeypatch.setattr(follower._watcher, "_look_everywhere", lambda: None)  # only what the frequent looks see
    monkeypatch.setattr(watch, "_MAIN_SECONDS", 0.0)
    monkeypatch.setattr(watch, "_MAIN_SHARE", 1e9)
    follower._watcher._next_main_look = 0.0
    add(main(tmp_path, "5e551011-0000-4000-8000-000000000003"), rows(40))
    assert [entry.raw for _, entry in follower.poll()] == [row(40)]
    add(agent, rows(41))
    assert [entry.raw for _, entry in follower.poll()] == [row(41)]


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
        there = {line for path in self.paths for line in self.lines(path)}
        assert there - set(self.found) - self.before == set()

    @invariant()
    def none_twice(self) -> None:
        """No line comes twice, none that was there at first, and nothing that was never written."""
        assert not {one for one, count in self.found.items() if count > 1}
        assert not self.before & set(self.found)


TestWriters = Writers.TestCase
TestWriters.settings = settings(max_examples=scale_examples(50), stateful_step_count=30)


class ForgetfulWriters(Writers):
    """The same where little is remembered of what was there, so that cuts go deeper than that."""

    def __init__(self) -> None:
        self.remembered, tail._REMEMBERED = tail._REMEMBERED, 50
        super().__init__()

    def teardown(self) -> None:
        """Leave nothing behind."""
        tail._REMEMBERED = self.remembered
        super().teardown()

    @precondition(lambda self: self.follower is not None)
    @invariant()
    def none_twice(self) -> None:
        """No line comes twice; of a file that was written anew, lines may come that were there before."""
        assert not {one for one, count in self.found.items() if count > 1}


TestForgetfulWriters = ForgetfulWriters.TestCase
TestForgetfulWriters.settings = settings(max_examples=scale_examples(50), stateful_step_count=30)
