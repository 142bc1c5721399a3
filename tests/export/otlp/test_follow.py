"""Tests of following sessions: each span comes once, when it has finished."""

from __future__ import annotations

from pathlib import Path

from tests.export.otlp.decoding import DecodedSpan, encode_and_decode, read_traces, sum_spans
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
