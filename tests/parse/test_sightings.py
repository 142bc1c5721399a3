"""Tests of sightings: finding lines by bytes and decoding parts of them gives the same as reading every entry."""

from __future__ import annotations

import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.transcripts import SESSION, Pen, reply, transcript, write

import threadline
from threadline.find import transcript_at
from threadline.model.entries import AssistantEntry, ProgressEntry
from threadline.model.homes import Home, Transcript, TranscriptKind
from threadline.model.places import AgentId, SessionId
from threadline.model.usage import SYNTHETIC_MODEL, TranscriptSightings
from threadline.parse import USAGE_NEEDLE, MatchingLines, SightingCollector, read_sightings

_COUNTS: st.SearchStrategy[Any] = st.sampled_from(
    [0, 1, 7, 90, 2**53, 2**53 + 1, 2**64, -1, 1.5, 3.0, "12", "x", None, True, [], {}]
)
_TEXT = st.sampled_from(["a", "naïve 日本", "\U0001f600", 'put_tokens"', "\\u005f", "\ud83d", "a b", "", "\u2028"])
_BITS = (b"", b"\n", b"\0", b"{", b"}", b'"', b"\xff", b"\xef\xbb\xbf", b'{"type":"assistant"}')
_IDS = st.sampled_from(["msg_01AbCdEfGhIjKlMnOpQrStUv", "msg_1", "", None, 5, "a b", "\ud83d"])


def _split() -> st.SearchStrategy[Any]:
    whole = st.fixed_dictionaries(
        {}, optional={"ephemeral_5m_input_tokens": _COUNTS, "ephemeral_1h_input_tokens": _COUNTS}
    )
    return whole | st.sampled_from([None, [], 4])


def _usage() -> st.SearchStrategy[Any]:
    counts = {
        "input_tokens": _COUNTS,
        "output_tokens": _COUNTS,
        "cache_read_input_tokens": _COUNTS,
        "cache_creation_input_tokens": _COUNTS,
        "cache_creation": _split(),
        "server_tool_use": st.sampled_from([None, {}, {"web_search_requests": 2}, {"web_search_requests": "x"}, 5]),
        "iterations": st.sampled_from(
            [None, [], [{"type": "advisor_message", "model": "m", "output_tokens": 3}], [None], ["x"], 3]
        ),
        "speed": st.sampled_from([None, "fast", 4]),
    }
    return st.fixed_dictionaries({}, optional=counts) | st.sampled_from([None, 4, "x", []])


def _blocks() -> st.SearchStrategy[Any]:
    call = st.sampled_from(["Bash", "WebSearch", None, 5])
    use = st.builds(lambda name, id_: {"type": "tool_use", "name": name, "id": id_, "input": {"a": 1}}, call, _IDS)
    text = st.builds(lambda text: {"type": "text", "text": text * 9}, _TEXT)
    return st.lists(use | text | st.sampled_from(["bare", None, {}]), max_size=2) | st.sampled_from([None, "x", 5])


def _row() -> st.SearchStrategy[dict[str, Any]]:
    message = st.fixed_dictionaries(
        {"id": _IDS, "usage": _usage()},
        optional={
            "model": st.sampled_from(["claude-opus-5", SYNTHETIC_MODEL, None, 5]),
            "content": _blocks(),
            "stop_reason": st.sampled_from([None, "end_turn", 4]),
        },
    )
    envelope = st.fixed_dictionaries(
        {"message": message},
        optional={
            "type": st.sampled_from(["assistant", "user", "other", None, 3]),
            "uuid": _IDS,
            "requestId": _IDS,
            "sessionId": _TEXT,
            "agentId": _IDS,
            "cwd": _TEXT | st.just(5),
            "version": st.sampled_from(["2.1.1", "x", 5]),
            "timestamp": st.sampled_from(["2026-01-05T09:00:00.000Z", "never", 1767603600000, None, [1]]),
            "isSidechain": st.sampled_from([True, False, None, "x"]),
            "costUSD": st.sampled_from([0.5, "x", None]),
            "forkedFrom": st.sampled_from([None, {"sessionId": "s"}]),
        },
    )
    typed = envelope.map(lambda row: {"type": "assistant", **row})
    progress = typed.map(
        lambda row: {
            "type": "progress",
            "uuid": "g1",
            "data": {"type": "agent_progress", "agentId": "a1", "message": {"uuid": row.get("uuid"), **row}},
        }
    )
    return typed | envelope | progress


@st.composite
def _lines(draw: st.DrawFn) -> bytes:
    """Draw rows, each with its own JSON formatting."""
    encoded = []
    for row in draw(st.lists(_row(), min_size=1, max_size=4)):
        space = st.sampled_from(["", " ", "\t ", "  \r"])
        separators = (draw(space) + "," + draw(space), draw(space) + ":" + draw(space))
        text = json.dumps(row, separators=separators, sort_keys=draw(st.booleans()), ensure_ascii=draw(st.booleans()))
        encoded.append(text.encode("utf-8", "surrogatepass") + draw(st.sampled_from([b"\n", b"\r\n", b"", b"\n\n"])))
    return b"".join(encoded)


@st.composite
def _damaged(draw: st.DrawFn) -> bytes:
    """Draw rows with bytes removed, inserted or changed."""
    data = draw(_lines())
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(data)))
        removed = draw(st.sampled_from([0, 1, 5, 60]))
        inserted = draw(
            st.sampled_from([b"", b"\n", b"\0", b"{", b"}", b'"', b"\xff", b"\xef\xbb\xbf", b'{"type":"assistant"}'])
        )
        data = data[:at] + inserted + data[at + removed :]
    return data


def _transcript(path: Path) -> Transcript:
    home = Home(path.parent, "option")
    return Transcript(path, home, "-w", TranscriptKind.MAIN, path.stat().st_size, 0, SessionId(SESSION))


def _read_every_entry(transcript: Transcript) -> TranscriptSightings:
    """Collect sightings by reading every entry and encoding it again, so that no line is skipped by its bytes."""
    data = transcript.path.read_bytes()
    offsets, lines = [], []
    for entry in threadline.entries(transcript.path):
        if isinstance(entry, AssistantEntry | ProgressEntry):
            offsets.append(data.rfind(b"\n", 0, entry.line.offset) + 1)
            lines.append(json.dumps(entry.data).encode() + b"\n")
    collector = SightingCollector(transcript)
    collector.add(MatchingLines(data, offsets, lines))
    return collector.result(data.splitlines())


def _comparable(sightings: TranscriptSightings) -> list[tuple[Any, ...]]:
    """Return sightings with their origins, so that they can be compared."""
    return [
        (
            sightings.origins[sighting.origin_number],
            *(getattr(sighting, name) for name in sighting.__struct_fields__ if name not in _IGNORED_FIELDS),
        )
        for sighting in sightings.sightings
    ]


# How long a row is decides whether it is a placeholder, and rewriting it changes that.
_IGNORED_FIELDS = {"origin_number", "origin", "partial"}


@given(_lines())
def test_finding_by_bytes_equals_reading_every_entry(data: bytes) -> None:
    """For any spacing, order of keys, characters and types."""
    with TemporaryDirectory() as top:
        path = Path(top, "a.jsonl")
        path.write_bytes(data)
        assert _comparable(read_sightings(_transcript(path))) == _comparable(_read_every_entry(_transcript(path)))


@given(_damaged())
@example(b'\xef\xbb\xbf{"type":"assistant","uuid":"u","message":{"usage":{"output_tokens":3}}}')
def test_damaged_files_have_the_sightings_of_recovered_entries(data: bytes) -> None:
    """What the reader recovers is found, and nothing else."""
    with TemporaryDirectory() as top:
        path = Path(top, "a.jsonl")
        path.write_bytes(data)
        assert _comparable(read_sightings(_transcript(path))) == _comparable(_read_every_entry(_transcript(path)))


@given(_damaged())
def test_every_line_with_usage_contains_the_needle(data: bytes) -> None:
    """Every line whose entry has a token count contains the bytes that are searched for."""
    with TemporaryDirectory() as top:
        path = Path(top, "a.jsonl")
        path.write_bytes(data)
        for entry in threadline.entries(path):
            usage = entry.message.usage if isinstance(entry, AssistantEntry) and entry.message else None
            if usage is not None and (usage.input_tokens, usage.output_tokens) != (None, None):
                assert USAGE_NEEDLE in entry.raw


def _rows(*usages: dict[str, Any], **fields: Any) -> bytes:
    pen = Pen()
    rows = [
        pen.chain("assistant", message={"id": f"msg_{at}", "usage": usage}, **fields) for at, usage in enumerate(usages)
    ]
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def _sightings(path: Path, data: bytes) -> TranscriptSightings:
    path.write_bytes(data)
    return read_sightings(_transcript(path))


@pytest.mark.parametrize(
    "usage",
    [
        {"input_tokens": 1},
        {"output_tokens": 1},
        {"cache_read_input_tokens": 1},
        {"cache_creation_input_tokens": 1},
        {"cache_creation": {"ephemeral_5m_input_tokens": 1}},
        {"cache_creation": {"ephemeral_1h_input_tokens": 1}},
    ],
)
def test_any_token_count_is_enough(tmp_path: Path, usage: dict[str, Any]) -> None:
    """A row with a single token count has a sighting."""
    assert len(_sightings(tmp_path / "a.jsonl", _rows(usage)).sightings) == 1


def test_sightings_have_the_offsets_of_their_lines(tmp_path: Path) -> None:
    """Also in a file of many blocks."""
    data = _rows(*({"input_tokens": at, "output_tokens": 1} for at in range(3000)))
    result = _sightings(tmp_path / "a.jsonl", data)
    starts = [0, *(at + 1 for at, byte in enumerate(data[:-1]) if byte == ord("\n"))]
    assert [sighting.offsets for sighting in result.sightings] == [[start] for start in starts]


def test_constant_id_on_every_row_is_linear(tmp_path: Path) -> None:
    """A gateway's constant id on thousands of rows takes linear time and loses no row."""
    pen = Pen()
    rows = [pen.chain("assistant", message={"id": "same", "usage": {"output_tokens": 0}}) for _ in range(4000)]
    result = _sightings(tmp_path / "a.jsonl", b"".join(json.dumps(row).encode() + b"\n" for row in rows))
    assert sum(len(sighting.offsets) for sighting in result.sightings) == 4000
    assert max(len(sighting.rows) for sighting in result.sightings) < 10_000


@pytest.mark.parametrize(
    "time",
    [
        "2026-11-15T09:99:00Z",
        "2026-11-15T09:00:00.000ZZ",
        "xxxxxxxxxxTxxxZ",
        "\x1b]0;evil\x07TxZ",
        "2026-11-15T09Z",
        "2026-11-31T09:00:00.000Z",
        "2026-11-00T09:00:00.000Z",
    ],
)
def test_row_without_a_valid_time_gets_the_previous_one(tmp_path: Path, time: str) -> None:
    """A day then has what `--since` finds."""
    data = _rows({"output_tokens": 1}, timestamp="2026-11-14T09:00:00.000Z") + _rows(
        {"output_tokens": 2}, timestamp=time
    )
    data = data.replace(b'"msg_0"', b'"msg_1"', 1)
    times = [(sighting.time, sighting.timeless) for sighting in _sightings(tmp_path / "a.jsonl", data).sightings]
    parsed = threadline.parse_timestamp(time)
    expected = ("2026-11-14T09:00:00.000Z", True) if parsed is None else (parsed.isoformat(), False)
    assert times == [("2026-11-14T09:00:00.000Z", False), expected]


def _call(pen: Pen, name: str, *ids: str, message: str = "msg_1") -> bytes:
    content = [{"type": "tool_use", "id": id_, "name": name, "input": {}} for id_ in ids]
    body = {"id": message, "usage": {"input_tokens": 1, "output_tokens": 1}, "content": content}
    return json.dumps(pen.chain("assistant", message=body)).encode() + b"\n"


def test_repeated_calls_are_counted_once(tmp_path: Path) -> None:
    """Rows that repeat calls add none, and calls are not compared with all others."""
    pen = Pen()
    ids = [f"toolu_{at}" for at in range(300)]
    data = _call(pen, "Bash", *ids[:40]) + _call(pen, "Bash", *ids[20:200]) + _call(pen, "Bash", *ids)
    (sighting,) = _sightings(tmp_path / "a.jsonl", data).sightings
    assert sighting.calls == [f"{id_} Bash" for id_ in ids]


@pytest.mark.parametrize("count", [3, 40])
def test_counts_web_searches_of_few_or_many_calls(tmp_path: Path, count: int) -> None:
    """A result counts its number of searches, one if it has no number, and none if it failed."""
    pen = Pen()
    data = b"".join(_call(pen, "WebSearch", f"toolu_{at:04d}", message=f"msg_{at}") for at in range(count))
    for at, (error, details) in enumerate([(False, {"searchCount": 3}), (True, {}), (False, None)]):
        for _ in range(2):  # a result that is told again is counted once
            result = {"type": "tool_result", "tool_use_id": f"toolu_{at:04d}", "is_error": error, "content": "…"}
            row = pen.chain("user", message={"role": "user", "content": [result]}, toolUseResult=details)
            data += json.dumps(row).encode() + b"\n"
    sightings = _sightings(tmp_path / "a.jsonl", data).sightings
    assert [sighting.web_searches for sighting in sightings] == [3, 0, 1, *[0] * (count - 3)]


@pytest.mark.slow
def test_line_of_thirty_megabytes_is_found(tmp_path: Path) -> None:
    """A long line is found like any other."""
    long = _rows({"input_tokens": 5, "output_tokens": 6}, padding="x" * 30_000_000)
    after = _rows({"input_tokens": 7, "output_tokens": 8})
    result = _sightings(tmp_path / "a.jsonl", long + after.replace(b"msg_0", b"msg_9"))
    assert [(sighting.input, sighting.offset) for sighting in result.sightings] == [(5, 0), (7, len(long))]


def test_start_time_is_found_after_a_long_first_row(tmp_path: Path) -> None:
    """With a long first prompt, the start is not the file's mtime."""
    pen = Pen()
    prompt = pen.chain("user", message={"role": "user", "content": "x" * 50_000})
    reply = pen.chain("assistant", message={"id": "m", "usage": {"output_tokens": 1}})
    result = _sightings(tmp_path / "a.jsonl", b"".join(json.dumps(row).encode() + b"\n" for row in (prompt, reply)))
    assert result.began in {prompt["timestamp"], reply["timestamp"]}


def test_unreadable_file_is_a_problem(tmp_path: Path) -> None:
    """Nothing raises."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"{}\n")
    transcript = _transcript(path)
    path.unlink()
    result = read_sightings(transcript)
    assert result.sightings == []
    assert result.problem is not None
    assert "There is no file" in result.problem


def test_pipe_does_not_block(tmp_path: Path) -> None:
    """A FIFO named like a transcript is a problem."""
    os.mkfifo(tmp_path / "a.jsonl")
    assert read_sightings(_transcript(tmp_path / "a.jsonl")).problem is not None


def test_rows_of_an_agents_file_belong_to_the_agent(tmp_path: Path) -> None:
    """The file's name provides the agent if the rows do not."""
    path = tmp_path / "agent-a1.jsonl"
    path.write_bytes(_rows({"output_tokens": 1}))
    home = Home(tmp_path, "option")
    transcript = Transcript(path, home, "-w", TranscriptKind.AGENT, 1, 0, SessionId("s"), AgentId("a1"))
    assert read_sightings(transcript).origins[0].agent == "a1"


@pytest.mark.parametrize(
    "name", [f"{SESSION}/subagents/worker.jsonl", f"{SESSION}/subagents/AGENT-a1.jsonl", "agent-a1.jsonl"]
)
def test_rows_of_an_agent_are_not_copies_whatever_its_file_is_called(tmp_path: Path, name: str) -> None:
    """They name the session of their directory. A folder above the home may have any name."""
    path = write(tmp_path / "subagents" / "projects" / "-w" / name, *transcript(reply("ok"), pen=Pen(isSidechain=True)))
    assert [origin.forked for origin in read_sightings(transcript_at(path)).origins] == [False]


def test_line_above_the_limit_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lines around it are counted."""
    monkeypatch.setattr("threadline.parse.lines.MAX_LINE_LENGTH", 1_000_000)
    usage = {"input_tokens": 5, "output_tokens": 6}
    data = _rows(usage) + _rows(usage, padding="x" * 2_000_000, uuid="long") + _rows({**usage, "input_tokens": 7})
    result = _sightings(tmp_path / "a.jsonl", data)
    assert len(result.sightings) == 2
    assert "in lines that are too long to be read" in (result.problem or "")
