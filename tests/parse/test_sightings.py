"""Sightings: finding lines by bytes and decoding a part of them gives what reading every entry gives."""

from __future__ import annotations

import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.transcripts import SESSION, Pen

import threadline
from threadline.model.entries import AssistantEntry, ProgressEntry
from threadline.model.homes import Home, Transcript, TranscriptKind
from threadline.model.places import AgentId, SessionId
from threadline.model.usage import SYNTHETIC_MODEL, TranscriptSightings
from threadline.parse import USAGE_NEEDLE, SightingCollector, read_sightings
from threadline.parse.lines import MatchingLines

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
    """Rows, each written in a style of its own."""
    written = []
    for row in draw(st.lists(_row(), min_size=1, max_size=4)):
        space = st.sampled_from(["", " ", "\t ", "  \r"])
        separators = (draw(space) + "," + draw(space), draw(space) + ":" + draw(space))
        text = json.dumps(row, separators=separators, sort_keys=draw(st.booleans()), ensure_ascii=draw(st.booleans()))
        written.append(text.encode("utf-8", "surrogatepass") + draw(st.sampled_from([b"\n", b"\r\n", b"", b"\n\n"])))
    return b"".join(written)


@st.composite
def _damaged(draw: st.DrawFn) -> bytes:
    """The same, with bytes cut out, put in or changed."""
    data = draw(_lines())
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(data)))
        gone = draw(st.sampled_from([0, 1, 5, 60]))
        new = draw(
            st.sampled_from([b"", b"\n", b"\0", b"{", b"}", b'"', b"\xff", b"\xef\xbb\xbf", b'{"type":"assistant"}'])
        )
        data = data[:at] + new + data[at + gone :]
    return data


def _transcript(path: Path) -> Transcript:
    home = Home(path.parent, "option")
    return Transcript(path, home, "-w", TranscriptKind.MAIN, path.stat().st_size, 0, SessionId(SESSION))


def _slowly(transcript: Transcript) -> TranscriptSightings:
    """Every entry read, written again in one plain style, and gathered: nothing was passed over for its bytes."""
    data = transcript.path.read_bytes()
    offsets, lines = [], []
    for entry in threadline.entries(transcript.path):
        if isinstance(entry, AssistantEntry | ProgressEntry):
            offsets.append(data.rfind(b"\n", 0, entry.line.offset) + 1)
            lines.append(json.dumps(entry.data).encode() + b"\n")
    collector = SightingCollector(transcript)
    collector.add(MatchingLines(data, offsets, lines))
    return collector.result(data.splitlines())


def _told(seen: TranscriptSightings) -> list[tuple[Any, ...]]:
    """Sightings with their origins, so that they can be compared."""
    return [
        (
            seen.origins[sighting.origin_number],
            *(getattr(sighting, name) for name in sighting.__struct_fields__ if name not in _LEFT),
        )
        for sighting in seen.sightings
    ]


# How long a row is decides whether it is a placeholder, and rewriting it changes that.
_LEFT = {"origin_number", "origin", "partial"}


@given(_lines())
def test_finding_by_bytes_equals_reading_every_entry(data: bytes) -> None:
    """Whatever the spacing, the order of keys, the characters and the types, the same is seen."""
    with TemporaryDirectory() as top:
        path = Path(top, "a.jsonl")
        path.write_bytes(data)
        assert _told(read_sightings(_transcript(path))) == _told(_slowly(_transcript(path)))


@given(_damaged())
@example(b'\xef\xbb\xbf{"type":"assistant","uuid":"u","message":{"usage":{"output_tokens":3}}}')
def test_damage_hides_nothing_that_entries_recover(data: bytes) -> None:
    """What the reader recovers of a damaged file is seen, and nothing else is."""
    with TemporaryDirectory() as top:
        path = Path(top, "a.jsonl")
        path.write_bytes(data)
        assert _told(read_sightings(_transcript(path))) == _told(_slowly(_transcript(path)))


@given(_damaged())
def test_every_usage_that_entries_show_is_on_a_line_that_is_looked_at(data: bytes) -> None:
    """The bytes that are looked for stand on every line whose entry has a token count."""
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
        pen.chain("assistant", message={"id": f"msg_{at}", "usage": one}, **fields) for at, one in enumerate(usages)
    ]
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def _seen(path: Path, data: bytes) -> TranscriptSightings:
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
def test_each_count_alone_is_enough(tmp_path: Path, usage: dict[str, Any]) -> None:
    """A row with any one token count is seen."""
    assert len(_seen(tmp_path / "a.jsonl", _rows(usage)).sightings) == 1


def test_offsets_are_where_the_lines_begin(tmp_path: Path) -> None:
    """A sighting leads back to its lines, also in a file of many blocks."""
    data = _rows(*({"input_tokens": at, "output_tokens": 1} for at in range(3000)))
    seen = _seen(tmp_path / "a.jsonl", data)
    starts = [0, *(at + 1 for at, byte in enumerate(data[:-1]) if byte == ord("\n"))]
    assert [sighting.offsets for sighting in seen.sightings] == [[start] for start in starts]


def test_an_id_on_every_row_is_one_message_of_many_sightings(tmp_path: Path) -> None:
    """A gateway's constant id on thousands of rows is gathered in time that grows with the rows, losing none."""
    pen = Pen()
    rows = [pen.chain("assistant", message={"id": "same", "usage": {"output_tokens": 0}}) for _ in range(4000)]
    seen = _seen(tmp_path / "a.jsonl", b"".join(json.dumps(row).encode() + b"\n" for row in rows))
    assert sum(len(sighting.offsets) for sighting in seen.sightings) == 4000
    assert max(len(sighting.rows) for sighting in seen.sightings) < 10_000


@pytest.mark.parametrize(
    "time",
    ["2026-11-15T09:99:00Z", "2026-11-15T09:00:00.000ZZ", "xxxxxxxxxxTxxxZ", "\x1b]0;evil\x07TxZ", "2026-11-15T09Z"],
)
def test_what_is_no_time_is_on_no_day(tmp_path: Path, time: str) -> None:
    """A row whose time nobody can read takes that of the row before: a day has what `--since` finds of it."""
    data = _rows({"output_tokens": 1}, timestamp="2026-11-14T09:00:00.000Z") + _rows(
        {"output_tokens": 2}, timestamp=time
    )
    data = data.replace(b'"msg_0"', b'"msg_1"', 1)
    told = [(sighting.time, sighting.timeless) for sighting in _seen(tmp_path / "a.jsonl", data).sightings]
    read = threadline.parse_timestamp(time)
    expected = ("2026-11-14T09:00:00.000Z", True) if read is None else (read.isoformat(), False)
    assert told == [("2026-11-14T09:00:00.000Z", False), expected]


def _call(pen: Pen, name: str, *ids: str, message: str = "msg_1") -> bytes:
    content = [{"type": "tool_use", "id": id_, "name": name, "input": {}} for id_ in ids]
    told = {"id": message, "usage": {"input_tokens": 1, "output_tokens": 1}, "content": content}
    return json.dumps(pen.chain("assistant", message=told)).encode() + b"\n"


def test_calls_of_a_message_with_hundreds_are_told_once_each(tmp_path: Path) -> None:
    """Rows that repeat calls add none, few or many, and none is held against all the others."""
    pen = Pen()
    ids = [f"toolu_{at}" for at in range(300)]
    data = _call(pen, "Bash", *ids[:40]) + _call(pen, "Bash", *ids[20:200]) + _call(pen, "Bash", *ids)
    (one,) = _seen(tmp_path / "a.jsonl", data).sightings
    assert one.calls == [f"{id_} Bash" for id_ in ids]


@pytest.mark.parametrize("count", [3, 40])
def test_results_of_searches_are_found_whether_few_are_waited_for_or_many(tmp_path: Path, count: int) -> None:
    """Each says how many searches were made: a number, one where it says none, and nothing where it failed."""
    pen = Pen()
    data = b"".join(_call(pen, "WebSearch", f"toolu_{at:04d}", message=f"msg_{at}") for at in range(count))
    for at, (error, told) in enumerate([(False, {"searchCount": 3}), (True, {}), (False, None)]):
        for _ in range(2):  # a result that is told again is counted once
            result = {"type": "tool_result", "tool_use_id": f"toolu_{at:04d}", "is_error": error, "content": "…"}
            row = pen.chain("user", message={"role": "user", "content": [result]}, toolUseResult=told)
            data += json.dumps(row).encode() + b"\n"
    seen = _seen(tmp_path / "a.jsonl", data).sightings
    assert [one.web_searches for one in seen] == [3, 0, 1, *[0] * (count - 3)]


@pytest.mark.slow
def test_a_line_of_thirty_megabytes_is_seen(tmp_path: Path) -> None:
    """A long line is a line."""
    long = _rows({"input_tokens": 5, "output_tokens": 6}, padding="x" * 30_000_000)
    after = _rows({"input_tokens": 7, "output_tokens": 8})
    seen = _seen(tmp_path / "a.jsonl", long + after.replace(b"msg_0", b"msg_9"))
    assert [(sighting.input, sighting.offset) for sighting in seen.sightings] == [(5, 0), (7, len(long))]


def test_the_time_of_a_file_is_found_behind_a_long_first_row(tmp_path: Path) -> None:
    """A long prompt at the beginning does not make a transcript as young as its file."""
    pen = Pen()
    prompt = pen.chain("user", message={"role": "user", "content": "x" * 50_000})
    reply = pen.chain("assistant", message={"id": "m", "usage": {"output_tokens": 1}})
    seen = _seen(tmp_path / "a.jsonl", b"".join(json.dumps(row).encode() + b"\n" for row in (prompt, reply)))
    assert seen.began in {prompt["timestamp"], reply["timestamp"]}


def test_a_file_that_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    """Refusals of the machine are told, and end nothing."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"{}\n")
    there = _transcript(path)
    path.unlink()
    seen = read_sightings(there)
    assert seen.sightings == []
    assert seen.problem is not None
    assert "There is no file" in seen.problem


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """A FIFO that calls itself a transcript is a problem at once."""
    os.mkfifo(tmp_path / "a.jsonl")
    assert read_sightings(_transcript(tmp_path / "a.jsonl")).problem is not None


def test_rows_of_an_agents_file_are_the_agents(tmp_path: Path) -> None:
    """The file's name says whose rows these are where the rows do not."""
    path = tmp_path / "agent-a1.jsonl"
    path.write_bytes(_rows({"output_tokens": 1}))
    home = Home(tmp_path, "option")
    one = Transcript(path, home, "-w", TranscriptKind.AGENT, 1, 0, SessionId("s"), AgentId("a1"))
    assert read_sightings(one).origins[0].agent == "a1"


def test_a_line_too_long_to_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is passed over is a problem, and the lines around it are counted."""
    monkeypatch.setattr("threadline.parse.lines.MAX_LINE_LENGTH", 1_000_000)
    usage = {"input_tokens": 5, "output_tokens": 6}
    data = _rows(usage) + _rows(usage, padding="x" * 2_000_000, uuid="long") + _rows({**usage, "input_tokens": 7})
    seen = _seen(tmp_path / "a.jsonl", data)
    assert len(seen.sightings) == 2
    assert "in lines that are too long to be read" in (seen.problem or "")
