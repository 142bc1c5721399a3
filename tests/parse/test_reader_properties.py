"""Properties of the reader that hold for any bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reader_properties import check_reader
from tests.transcripts import call, chain, line, meta, prompt, reply, transcript

import threadline
from threadline.model.entries import KINDS, ChainEntry, Entry
from threadline.parse import lines, load_entries

ROWS = [
    row if isinstance(row, bytes) else line(row)
    for row in transcript(
        meta("mode", mode="normal"),
        prompt("what is in here? naïve 日本 \U0001f600"),
        reply({"type": "thinking", "thinking": "", "signature": "c2ln"}, "I will look.", output=9),
        call("Bash", "ls", result="a\nb", details={"stdout": "a\nb", "stderr": "", "interrupted": False}),
        chain("progress", data={"type": "agent_progress", "message": {"type": "user", "uuid": "in", "timestamp": "t"}}),
        chain("system", subtype="turn_duration", durationMs=12),
        {"type": "brand-new", "uuid": "n1", "sessionId": "s"},
    )
]
FILE = b"".join(ROWS)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file to write examples to."""
    return tmp_path_factory.mktemp("laws") / "a.jsonl"


def test_loaded_entries_share_repeated_values(path: Path) -> None:
    """Entries that stay in memory do not each have a copy of the session's id and directory."""
    path.write_bytes(FILE * 3)
    entries = [entry for entry in load_entries(path) if isinstance(entry, ChainEntry)]
    assert len(entries) > len(ROWS)
    assert len({id(entry.session_id) for entry in entries}) == len({entry.session_id for entry in entries})
    assert len({id(entry.cwd) for entry in entries}) == len({entry.cwd for entry in entries})


def _read(path: Path, data: bytes) -> list[Entry]:
    path.write_bytes(data)
    return check_reader(path)


def _content(entry: Entry) -> tuple[bytes, str, Any, tuple[str, ...]]:
    """Return an entry without its place, so that it can be compared with one at another place."""
    return entry.raw, entry.kind, entry.data, tuple(problem.kind for problem in entry.problems)


_fragments = st.lists(
    st.sampled_from(
        [
            *ROWS,
            *(row[: len(row) // 2] for row in ROWS),
            *(row[:-1] for row in ROWS),
            *(
                b'{ } [ ] " , : \\ \n \r\n \r \0 \xef\xbb\xbf \xff \xed\xa0\x80 NaN -Infinity 1e999 null true 0'.split(
                    b" "
                )
            ),
            *(b'{" {"a":" {"type":"user" {"type":"user"} {"uuid":"x"} \\ud83d {"a":{ }} []'.split(b" ")),
            b"\0" * 30,
            b" ",
            b"9" * 5000,
            b"[" * 3000,
            "\u2028\x85".encode(),
        ]
    ),
    max_size=12,
).map(b"".join)


@given(data=st.binary(max_size=400) | _fragments)
def test_any_bytes_are_read_and_join_back(path: Path, data: bytes) -> None:
    """Nothing raises, raw lines join to the bytes, and offsets and lengths tile them."""
    _read(path, data)


_scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
    | st.sampled_from([*KINDS, "text", "tool_use", "tool_result", "threadline:other", "2026-01-05T09:00:00Z"])
)
_keys = st.text(max_size=4) | st.sampled_from(
    [
        *("type", "uuid", "parentUuid", "sessionId", "timestamp", "message", "content", "usage", "role", "id", "model"),
        *("input_tokens", "output_tokens", "toolUseResult", "data", "attachment", "text", "input", "tool_use_id"),
        *("snapshot", "compactMetadata", "threadline:line", "threadline:tag", "iterations", "cache_creation"),
    ]
)
_values = st.recursive(
    _scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_keys, inner, max_size=5), max_leaves=20
)
_objects = st.builds(
    lambda value, kind, message: value | ({"type": kind} if kind else {}) | ({"message": message} if message else {}),
    st.dictionaries(_keys, _values, max_size=6),
    st.none() | st.sampled_from(sorted(KINDS)),
    st.none() | st.dictionaries(_keys, _values, max_size=4),
)


@given(value=_objects, ascii_only=st.booleans(), spaced=st.booleans())
def test_any_object_round_trips(path: Path, value: dict[str, Any], ascii_only: bool, spaced: bool) -> None:
    """Any JSON object is one entry, and its `data` equals `json.loads` of the line."""
    separators = (" , ", " : ") if spaced else (",", ":")
    raw = json.dumps(value, ensure_ascii=ascii_only, separators=separators).encode(errors="surrogatepass") + b"\n"
    (entry,) = _read(path, raw)
    assert entry.data == json.loads(raw.decode(errors="replace"))
    kind = value.get("type")
    assert entry.kind == (kind if isinstance(kind, str) else "untyped")


@given(
    at=st.integers(0, len(ROWS) - 1),
    how=st.sampled_from(["cut", "insert", "delete", "duplicate", "flip"]),
    where=st.tuples(st.floats(0, 1), st.integers(1, 40)),
    what=st.binary(min_size=1, max_size=20)
    | st.sampled_from([b"\0" * 40, b"\xef\xbb\xbf", b"\r", b"\n", b'{"', b"}\n{"]),
)
def test_damage_to_a_line_does_not_affect_others(
    path: Path, at: int, how: str, where: tuple[float, int], what: bytes
) -> None:
    """Whatever is cut, inserted, deleted, duplicated or flipped in a line, all other entries stay the same."""
    row = ROWS[at][:-1]
    start = round(where[0] * (len(row) - 1))
    end = min(len(row), start + where[1])
    damaged = {
        "cut": row[:start],
        "insert": row[:start] + what + row[start:],
        "delete": row[:start] + row[end:],
        "duplicate": row[:end] + row[start:],
        "flip": row[:start] + bytes(byte ^ what[0] for byte in row[start:end]) + row[end:],
    }[how]
    before = [_content(entry) for entry in _read(path, FILE)]
    after = [_content(entry) for entry in _read(path, b"".join([*ROWS[:at], damaged + b"\n", *ROWS[at + 1 :]]))]
    rest = len(ROWS) - at - 1
    assert after[:at] == before[:at]
    assert after[len(after) - rest :] == before[len(before) - rest :]


@given(at=st.integers(0, len(ROWS) - 2), between=st.sampled_from([b"", b"\r", b" ", b"\0\0"]))
def test_missing_newline_loses_nothing(path: Path, at: int, between: bytes) -> None:
    """Two rows without a newline between them are both read, and all others stay the same."""
    before = [(entry.kind, entry.uuid, entry.data) for entry in _read(path, FILE)]
    glued = _read(path, b"".join([*ROWS[:at], ROWS[at][:-1], between, *ROWS[at + 1 :]]))
    assert [(entry.kind, entry.uuid, entry.data) for entry in glued] == before


@given(at=st.integers(0, len(ROWS) - 1), cut=st.floats(0, 1))
def test_row_after_a_torn_row_on_the_same_line_is_read(path: Path, at: int, cut: float) -> None:
    """Wherever a row was torn, the complete row that follows it is read once."""
    torn = ROWS[at][: 1 + round(cut * (len(ROWS[at]) - 3))]
    complete = ROWS[1]
    entries = _read(path, torn + complete + FILE)
    assert [entry.uuid for entry in entries[1:]] == [json.loads(row).get("uuid") for row in (complete, *ROWS)]
    assert entries[0].kind == "damaged"


@given(cut=st.integers(0, len(FILE)))
def test_truncated_file_has_at_most_one_pending_line(path: Path, cut: int) -> None:
    """A file that is being written has complete rows and at most one pending line. Nothing is lost or invented."""
    entries = _read(path, FILE[:cut])
    complete = FILE[:cut].count(b"\n")
    assert [entry.raw for entry in entries[:complete]] == ROWS[:complete]
    assert [entry.kind for entry in entries[complete:]] in (
        [],
        ["pending"],
        [json.loads(ROWS[min(complete, len(ROWS) - 1)])["type"]],
    )
    assert not sum(problem.lost for entry in entries for problem in entry.problems)


@given(crlf=st.booleans(), bom=st.booleans(), nul=st.integers(0, 3), newline=st.booleans())
def test_padding_changes_no_entry(path: Path, crlf: bool, bom: bool, nul: int, newline: bool) -> None:
    """CRLF, a byte order mark, NUL around rows and a missing last newline change no entry."""
    before = [(entry.kind, entry.uuid, entry.data) for entry in _read(path, FILE)]
    ending = b"\r\n" if crlf else b"\n"
    wrapped = b"".join(b"\0" * nul + row[:-1] + b"\0" * nul + ending for row in ROWS)
    entries = _read(path, b"\xef\xbb\xbf" * bom + (wrapped if newline else wrapped.removesuffix(ending)))
    assert [(entry.kind, entry.uuid, entry.data) for entry in entries] == before


@given(data=_fragments)
def test_reading_from_any_line_gives_the_rest(path: Path, data: bytes) -> None:
    """From the offset of any line, the remaining entries equal those of the whole file."""
    all_entries = _read(path, data)
    starts = {entry.line.number: entry.line.offset for entry in reversed(all_entries)}
    for number, offset in starts.items():
        rest = list(threadline.entries(path, offset=offset, line=number))
        assert rest == [entry for entry in all_entries if entry.line.number >= number]


@contextmanager
def _sizes(**sizes: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, size in sizes.items():
            patch.setattr(lines, name, size)
        yield


@given(data=_fragments, chunk=st.sampled_from([1, 7, 64]), long=st.sampled_from([0, 5, 50, 10_000]))
def test_chunk_size_changes_nothing(path: Path, data: bytes, chunk: int, long: int) -> None:
    """The entries do not depend on the chunk size or on what counts as a long line."""
    all_entries = _read(path, data)
    with _sizes(CHUNK_SIZE=chunk, _LONG_LINE=long):
        assert list(threadline.entries(path)) == all_entries
        check_reader(path)


@pytest.mark.slow
@given(data=_fragments, sizes=st.sampled_from([(1, 8), (1, 64), (1, 500), (7, 64), (7, 500), (64, 500)]))
def test_lines_above_the_limit_are_kept_in_pieces(path: Path, data: bytes, sizes: tuple[int, int]) -> None:
    """A line above the maximum length becomes damaged pieces. All other entries stay the same.

    The maximum is always longer than a chunk: a line is measured only if it does not end in the chunk it begins in.
    """
    chunk, longest = sizes
    all_entries = _read(path, data)
    with _sizes(CHUNK_SIZE=chunk, _LONG_LINE=4, MAX_LINE_LENGTH=longest, _PIECE_SIZE=max(1, longest // 2)):
        entries = check_reader(path)
    lengths = [len(raw) for raw in data.split(b"\n")]
    fits = [length + 1 <= longest for length in lengths[:-1]] + [lengths[-1] <= longest]
    assert [entry for entry in entries if fits[entry.line.number - 1]] == [
        entry for entry in all_entries if fits[entry.line.number - 1]
    ]
    assert {entry.kind for entry in entries if not fits[entry.line.number - 1]} <= {"damaged"}
