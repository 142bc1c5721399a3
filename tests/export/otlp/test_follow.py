"""Tests of following sessions: each span comes once, when it has finished."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from tests.cli.runner import start_in_subprocess
from tests.export.otlp.decoding import DecodedSpan, decode_json, encode_and_decode, read_traces, sum_spans
from tests.transcripts import SESSION, Pen, Row, call, lines, prompt, reply, transcript

from threadline import archive as archives
from threadline.archive import Archive
from threadline.export import TraceFollower, TraceOptions


class _Session:
    """A session that grows, its follower, and a clock."""

    def __init__(self, home: Path, archive: Archive) -> None:
        self.path = home / "projects" / "-work-app" / f"{SESSION}.jsonl"
        self.path.parent.mkdir(parents=True)
        self.now = 0.0
        self.follower = TraceFollower(archive, archive.watch(), TraceOptions(), idle=60, clock=lambda: self.now)

    def append(self, *rows: Row | bytes) -> None:
        with self.path.open("ab") as file:
            file.write(lines(*rows))

    def poll(self) -> list[DecodedSpan]:
        self.now += 1
        return [span for trace in self.follower.poll() for span in encode_and_decode(trace.spans)]


def test_spans_are_sent_when_they_have_finished(tmp_path: Path) -> None:
    """A message comes after the next entry, a call with its result, the session when it is idle; each of them once."""
    question, use, result, answer = transcript(prompt("hi"), call("Bash", "ls", "a"), reply("done"), pen=Pen())
    (tmp_path / "projects").mkdir()
    with archives.open([str(tmp_path)]) as archive:
        session = _Session(tmp_path, archive)
        session.append(question, use)
        assert session.poll() == []
        session.append(result)
        assert [span.name.split()[0] for span in session.poll()] == ["chat", "execute_tool"]
        session.append(answer)
        assert session.poll() == []
        session.now += 60
        last = session.poll()
        assert [span.name.split()[0] for span in last] == ["chat", "invoke_agent"]
        session.now += 60
        assert session.poll() == []


def test_a_session_that_continues_after_it_was_idle(tmp_path: Path) -> None:
    """What was sent before is not sent again, except the session itself, which is longer now."""
    rows = transcript(prompt("a"), reply("one"), prompt("b"), reply("two"), pen=Pen())
    (tmp_path / "projects").mkdir()
    with archives.open([str(tmp_path)]) as archive:
        session = _Session(tmp_path, archive)
        ids = []
        for part in (rows[:2], rows[2:]):
            session.append(*part)
            sent = session.poll()
            session.now += 60
            sent += session.poll()
            assert [span.name.split()[0] for span in sent] == ["chat", "invoke_agent"]
            ids.append([span.id for span in sent])
        assert ids[0][0] != ids[1][0]
        assert ids[0][1] == ids[1][1]


def test_following_gives_what_a_backfill_gives(tmp_path: Path) -> None:
    """When following ends, everything has been sent, and it is what a backfill sends."""
    rows = transcript(prompt("hi"), call("Bash", "ls", "a"), call("Read", "/x", "b"), reply("done"), pen=Pen())
    (tmp_path / "projects").mkdir()
    with archives.open([str(tmp_path)]) as archive:
        session = _Session(tmp_path, archive)
        received: dict[str, DecodedSpan] = {}
        for row in rows:
            session.append(row)
            received |= {span.id: span for span in session.poll()}
        for trace in session.follower.finish():
            received |= {span.id: span for span in encode_and_decode(trace.spans)}
        archive.close()
        backfill = [span for trace in read_traces(archive).values() for span in trace]
        assert received == {span.id: span for span in backfill}
        assert sum_spans(received.values()) == archive.ledger().total


def test_agent_without_a_session_is_followed(tmp_path: Path) -> None:
    """An agent's transcript whose session does not exist is followed, too."""
    (tmp_path / "projects").mkdir()
    with archives.open([str(tmp_path)]) as archive:
        session = _Session(tmp_path, archive)
        session.path = session.path.with_name("agent-a1b2c3d4.jsonl")
        pen = Pen(isSidechain=True, agentId="a1b2c3d4")
        session.append(*transcript(prompt("hi"), reply("one"), reply("two"), pen=pen))
        assert [span.name.split()[0] for span in session.poll()] == ["chat"]


@pytest.mark.slow
def test_command_follows_until_it_is_interrupted(tmp_path: Path) -> None:
    """`--follow --out -` writes spans as they finish; Ctrl-C writes the rest and exits with 0."""
    folder = tmp_path / "projects" / "-work-app"
    folder.mkdir(parents=True)
    first, *rest = transcript(prompt("hi"), call("Bash", "ls", "a"), reply("done"), pen=Pen())
    path = folder / f"{SESSION}.jsonl"
    path.write_bytes(lines(first))
    process = start_in_subprocess("export", "--format", "otlp", "--follow", "--out", "-", "--home", tmp_path)
    assert process.stdout is not None
    spans: list[DecodedSpan] = []
    deadline = time.monotonic() + 60
    with path.open("ab", buffering=0) as file:
        while not spans and time.monotonic() < deadline:  # until it has started, what is written is not new
            file.write(lines(*rest))
            time.sleep(1)
            os.set_blocking(process.stdout.fileno(), False)
            spans += [
                span for line in (process.stdout.read() or b"").splitlines() for span in decode_json(line.decode())
            ]
    process.send_signal(signal.SIGINT)
    os.set_blocking(process.stdout.fileno(), True)
    output, errors = process.communicate(timeout=60)
    spans += [span for line in output.splitlines() for span in decode_json(line.decode())]
    assert (process.returncode, errors) == (0, b"")
    names = {span.id: span.name.split()[0] for span in spans}
    assert sorted(names.values()) == ["chat", "chat", "execute_tool", "invoke_agent"]
    assert spans[-1].name == "invoke_agent claude-code"
