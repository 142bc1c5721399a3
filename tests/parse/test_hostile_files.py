"""Tests of hostile files, and of files that are too large for the corpus."""

from __future__ import annotations

import json
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path
from time import process_time

import pytest
from tests.profiles import scale_examples
from tests.reader_properties import check_reader, read_lazy_fields
from tests.transcripts import line, lines, prompt, reply, transcript, write

import threadline
from threadline.model.entries import AssistantEntry, UserEntry
from threadline.parse import recover

ROW = line({"type": "user", "uuid": "u1", "sessionId": "s", "message": {"role": "user", "content": "hello"}})


def _read(path: Path, data: bytes) -> list[threadline.Entry]:
    path.write_bytes(data)
    return check_reader(path)


def _row(member: bytes) -> bytes:
    return ROW[:-2] + b"," + member + b"}\n"


# what is no file, or not ours to read


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _directory(path: Path) -> None:
    path.mkdir()


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server, chdir(path.parent):  # a socket's path may have 107 bytes
        server.bind(path.name)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no FIFOs on Windows")
@pytest.mark.parametrize("make", [_fifo, _directory, _device, _socket])
@pytest.mark.parametrize("reader", [threadline.entries, threadline.heads, threadline.read])
def test_special_files_are_refused_without_blocking(
    tmp_path: Path, make: Callable[[Path], None], reader: Callable[[Path], object]
) -> None:
    """A FIFO, a directory, a device or a socket named like a transcript is refused with a message."""
    path = tmp_path / "x.jsonl"
    make(path)
    with pytest.raises(threadline.Unreadable, match=r"x\.jsonl.*\.$"):
        list(reader(path))  # type: ignore[call-overload]  # a session is iterable, too


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads everything")
def test_file_without_permission_is_unreadable(tmp_path: Path) -> None:
    """The message has the reason."""
    path = write(tmp_path / "x.jsonl", ROW)
    path.chmod(0)
    with pytest.raises(threadline.Unreadable, match="Permission denied"):
        list(threadline.entries(path))


def test_file_deleted_before_opening_is_not_found(tmp_path: Path) -> None:
    """A file that is deleted while it is open is read to its end."""
    path = write(tmp_path / "x.jsonl", ROW)
    iterator = threadline.entries(path)
    path.unlink()
    with pytest.raises(threadline.NotFound, match=r"x\.jsonl"):
        next(iterator)
    path = write(tmp_path / "y.jsonl", *[ROW] * 5000)
    iterator = threadline.entries(path)
    next(iterator)
    path.unlink()
    assert sum(1 for _ in iterator) == 4999


def test_file_truncated_while_reading_ends_early(tmp_path: Path) -> None:
    """What was read is returned, and only the last line may be torn."""
    path = write(tmp_path / "x.jsonl", *[ROW] * 20_000)
    iterator = threadline.entries(path)
    first = next(iterator)
    os.truncate(path, 0)
    *rows, last = iterator
    assert all(entry.raw == first.raw for entry in rows)
    assert first.raw.startswith(last.raw)


def test_empty_file_that_grows_can_be_continued(tmp_path: Path) -> None:
    """Reading from the old end returns what is new."""
    path = write(tmp_path / "x.jsonl")
    assert list(threadline.entries(path)) == []
    path.write_bytes(ROW + ROW[:30])
    first, pending = threadline.entries(path)
    assert (first.kind, pending.kind) == ("user", "pending")
    path.write_bytes(ROW + ROW)
    (second,) = threadline.entries(path, offset=pending.line.offset, line=pending.line.number)
    assert (second.kind, second.line.number, second.raw) == ("user", 2, ROW)


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right that not everyone has on Windows")
def test_symlink_is_read_and_a_symlink_loop_is_refused(tmp_path: Path) -> None:
    """A symlink to a transcript is read as that transcript."""
    path = write(tmp_path / "x.jsonl", ROW)
    link = tmp_path / "link.jsonl"
    link.symlink_to(path)
    assert check_reader(link)[0].raw == ROW
    loop = tmp_path / "loop.jsonl"
    loop.symlink_to(loop)
    with pytest.raises(threadline.Unreadable, match=r"loop\.jsonl"):
        list(threadline.entries(loop))
    dangling = tmp_path / "dangling.jsonl"
    dangling.symlink_to(tmp_path / "gone")
    with pytest.raises(threadline.NotFound):
        list(threadline.entries(dangling))


NAMES = {
    "newline": "a\nb.jsonl",
    "dots": "...jsonl",
    "option": "-rf.jsonl",
    "percent": "%00.jsonl",
    "long": "x" * 249 + ".jsonl",
    "right to left": "\u202eabc\u2066.jsonl",
    "NFC": "caf\u00e9.jsonl",
    "NFD": "cafe\u0301.jsonl",
    "emoji": "\U0001f600\u200d.jsonl",
    "reserved": "CON.jsonl",
    "upper": "SAME.jsonl",
    "lower": "same.jsonl",
    "dollar and colon": "$HOME:12.jsonl",
    "not UTF-8": "caf\udce9.jsonl",
    "quotes": "'\"`.jsonl",
}


@pytest.mark.skipif(sys.platform == "win32", reason="most of these names cannot be made on Windows")
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_any_file_name_can_be_read(tmp_path: Path, name: str) -> None:
    """The text of a place can be parsed back to the path."""
    try:
        path = write(tmp_path / name, ROW)
    except (OSError, ValueError):
        pytest.skip("this file system has no such names")
    (entry,) = check_reader(path)
    parsed = threadline.Place.parse(str(entry.place))
    assert (parsed.transcript, parsed.line) == (str(path), 1)
    inner = threadline.Place.parse(str(entry.place.within("$.message.content[0].x:9")))
    assert (inner.transcript, inner.json_path) == (str(path), "$.message.content[0].x:9")
    with pytest.raises(threadline.NotFound):
        list(threadline.entries(tmp_path / ("z" + name[1:])))


def test_impossible_file_names_are_errors(tmp_path: Path) -> None:
    """A path that contains a NUL or is too long is the caller's mistake."""
    for name in ("a\0b.jsonl", "x" * 5000):
        with pytest.raises(threadline.Error, match=r"\.$"):
            list(threadline.entries(tmp_path / name))


# values


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
@pytest.mark.parametrize("field", [b"toolUseResult", b"message", b"neverHeardOf"])
def test_deep_nesting_damages_only_its_line(tmp_path: Path, opening: bytes, closing: bytes, field: bytes) -> None:
    """200 levels are read. 100,000 levels are one damaged line, and the lines around it are read."""
    inner = b"{}" if closing == b"}" else b""
    shallow = _row(b'"%b":%b' % (field, opening * 200 + inner + closing * 200))
    deep = _row(b'"%b":%b' % (field, opening * 100_000 + inner + closing * 100_000))
    entries = _read(tmp_path / "x.jsonl", ROW + shallow + deep + ROW)
    assert [entry.kind for entry in entries] == ["user", "user", "damaged", "user"]
    (problem,) = entries[2].problems
    assert (problem.kind, problem.lost) == ("too-deep", len(deep))


@pytest.mark.sample(4)
@pytest.mark.parametrize("levels", range(880, 1010, 3))
def test_nesting_near_the_limit_raises_nothing(tmp_path: Path, levels: int) -> None:
    """At the interpreter's nesting limit, also with two rows on a line, nothing is raised or lost.

    Which side of the limit a line is on depends on the caller's stack depth, so heads need not agree with entries.
    """
    deep = _row(b'"toolUseResult":["\\ud83d",%b]' % (b"[" * levels + b"]" * levels))
    path = write(tmp_path / "x.jsonl", deep[:-1] + ROW + ROW)
    entries = list(threadline.entries(path))
    assert b"".join(entry.raw for entry in entries) == path.read_bytes()
    assert list(threadline.heads(path))[-1].kind == "user"
    for entry in entries:
        read_lazy_fields(entry)
    assert [entry.kind for entry in entries] in (["user"] * 3, ["damaged", "user", "user"], ["damaged", "user"])


def test_row_read_from_a_deep_stack_is_kept(tmp_path: Path) -> None:
    """If the caller's stack is nearly used up, a line may be too deep, but nothing is raised or lost."""
    path = write(tmp_path / "x.jsonl", _row(b'"toolUseResult":%b' % (b"[" * 200 + b"]" * 200)))

    def dig(levels: int) -> bytes:
        return dig(levels - 1) if levels else b"".join(entry.raw for entry in threadline.entries(path))

    assert dig(sys.getrecursionlimit() - 250) == path.read_bytes()


DIGITS = {
    "5,000 digits": (b"7" * 5000, "7" * 5000),
    "2**64": (b"18446744073709551616", 2**64),
    "-2**63": (b"-9223372036854775808", -(2**63)),
    "NaN": (b"NaN", "NaN"),
    "Infinity": (b"Infinity", "Infinity"),
    "-Infinity": (b"-Infinity", "-Infinity"),
    "1e999": (b"1e999", "1e999"),
    "1e5": (b"1e5", 100_000.0),
    "0.1": (b"0.1", 0.1),
}


@pytest.mark.parametrize(("digits", "value"), DIGITS.values(), ids=DIGITS)
def test_numbers_are_never_rounded(tmp_path: Path, digits: bytes, value: object) -> None:
    """A number is exact, or its digits as text if JSON cannot represent it."""
    for field in (b"toolUseResult", b"neverHeardOf", b"timestamp", b"version"):
        (entry,) = _read(tmp_path / "x.jsonl", _row(b'"%b":%b' % (field, digits)))
        assert isinstance(entry, UserEntry)
        assert entry.data[field.decode()] == value
        assert type(entry.data[field.decode()]) is type(value)


@pytest.mark.parametrize("digits", [digits for digits, _value in DIGITS.values()], ids=DIGITS)
def test_invalid_token_count_is_none(tmp_path: Path, digits: bytes) -> None:
    """It is reported as a problem, so that it is never summed."""
    usage = b'"message":{"usage":{"input_tokens":%b,"output_tokens":5}}' % digits
    (entry,) = _read(tmp_path / "x.jsonl", b'{"type":"assistant",%b}\n' % usage)
    assert isinstance(entry, AssistantEntry)
    assert entry.message is not None
    assert entry.message.usage is not None
    assert entry.message.usage.input_tokens in (None, 100_000)
    assert "$.message.usage.input_tokens" in [problem.place.json_path for problem in entry.problems]
    assert entry.message.usage.output_tokens == 5


def test_lone_surrogates_are_kept(tmp_path: Path) -> None:
    """In a value, a key or an id, it is kept, reported once, and no output of ours fails on it."""
    half = b"\\ud83d"
    for member in (b'"cwd":"%b"', b'"%b":1', b'"uuid":"%b"', b'"timestamp":"%b"', b'"type":"%b"'):
        (entry,) = _read(tmp_path / "x.jsonl", _row(member % half))
        assert [problem.kind for problem in entry.problems] == ["lone-surrogate"]
        assert "\ud83d" in json.dumps(entry.data, ensure_ascii=False)
        read_lazy_fields(entry)


def test_only_newlines_split_lines(tmp_path: Path) -> None:
    """U+2028, U+2029, U+0085, form feed, vertical tab and the file separators split no line."""
    text = "\u2028\u2029\x85\x0b\x0c\x1c\x1d\x1e"
    entries = _read(tmp_path / "x.jsonl", lines(*transcript(prompt(text), prompt(f"{text}again"))))
    assert [entry.text for entry in entries if isinstance(entry, UserEntry)] == [text, f"{text}again"]
    raw = line({"type": "user", "cwd": "CWD"}).replace(b"CWD", text.encode())
    (entry,) = _read(tmp_path / "y.jsonl", raw)
    assert [problem.kind for problem in entry.problems] == ["control-character"]


STAMPS = r"""
"0001-01-01T00:00:00Z" "9999-12-31T23:59:59.999Z" "0001-01-01T00:00:00+14:00" "9999-12-31T23:59:59-14:00"
"2016-12-31T23:59:60Z" "2026-03-29T02:30:00" "2026-01-01T00:00:00+14:00" "2026-02-30T00:00:00Z"
"T" "" "\u0000" "\ud800" "999999999999999999999" null true [] {} -1 0 1e308 -1e308
"""


@pytest.mark.parametrize("stamp", [*STAMPS.split(), "9" * 400, "9" * 5000])
def test_no_timestamp_raises(tmp_path: Path, stamp: str) -> None:
    """Whatever the value, the entry is read, and its time is in UTC or None."""
    (entry,) = _read(tmp_path / "x.jsonl", _row(f'"timestamp":{stamp}'.encode()))
    assert entry.timestamp is None or entry.timestamp.utcoffset() is not None
    (head,) = threadline.heads(tmp_path / "x.jsonl")
    assert head.timestamp == entry.timestamp


# time: nothing is more than linear


TRAPS: dict[str, Callable[[int], bytes]] = {
    "openings": lambda size: b'{"' * (size // 2),
    "open strings": lambda size: b'{"a":"' * (size // 6),
    "open objects": lambda size: b'{"a":{' * (size // 6),
    "braces": lambda size: b"{" * size,
    "closing braces": lambda size: b"}" * size,
    "open arrays": lambda size: b'{"a":[' * (size // 6),
    "small objects in an open one": lambda size: b'{"a":[' + b'{"b":1},' * (size // 8),
    "torn rows": lambda size: (ROW[:60] * (size // 60 + 1))[:size],
    "backslashes": lambda size: b'{"a":"' + b"\\" * size,
    "quotes": lambda size: b'"' * size,
    "spaces": lambda size: b"{" + b" " * size + b"x",
    "NUL": lambda size: b"x" + b"\0" * size + b"x",
    "bad UTF-8": lambda size: b"\xff" * size,
    "commas": lambda size: b"[" + b"1," * (size // 2),
}


SLOW_TRAPS = {"openings", "open strings", "open objects", "torn rows"}
"""Lines that are searched until the search gives up: seconds each."""


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW_TRAPS else []) for name in TRAPS]
)
def test_time_is_linear_in_line_length(tmp_path: Path, name: str) -> None:
    """No line makes the search for rows quadratic: 2 MB take at most three times as long as 1 MB."""
    path = tmp_path / "x.jsonl"
    trap = TRAPS[name]
    # Below 1 MB the search does not give up, and its time may grow faster than the line.
    size = 1_000_000 if name in SLOW_TRAPS else scale_examples(1_000_000)

    def seconds(size: int) -> float:
        path.write_bytes(trap(size) + b"\n" + ROW)
        times = []
        for _ in range(2):
            start = process_time()
            entries = list(threadline.entries(path))
            times.append(process_time() - start)
        assert entries[-1].raw == ROW
        assert b"".join(entry.raw for entry in entries) == path.read_bytes()
        return min(times)

    once, twice = seconds(size), seconds(2 * size)
    assert twice <= 3 * once + 0.1


def test_search_for_rows_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search reads a bounded number of characters of a damaged line, however many attempts that takes."""
    spent = []
    decode = recover._decode_at

    def decode_and_count(text: str, start: int) -> tuple[object, int, int]:
        value, end, cost = decode(text, start)
        spent.append(cost)
        return value, end, cost

    monkeypatch.setattr(recover, "_decode_at", decode_and_count)
    monkeypatch.setattr(recover, "_SEARCH_BUDGET", 1_000_000)
    (tmp_path / "x.jsonl").write_bytes(b'{"a":{' * 20_000 + b"\n")
    (entry,) = threadline.entries(tmp_path / "x.jsonl")
    assert entry.kind == "damaged"
    assert sum(spent) < 1_000_000 + 2 * len(entry.raw)


def test_row_after_a_torn_row_with_many_objects_is_read(tmp_path: Path) -> None:
    """A torn row of 300 KB with thousands of objects does not hide the row after it."""
    torn = b'{"type":"user","toolUseResult":{"structuredPatch":[' + b'{"oldStart":1,"lines":["a"]},' * 10_000
    entries = _read(tmp_path / "x.jsonl", torn + ROW)
    assert [entry.kind for entry in entries] == ["damaged", "user"]


# memory: it does not grow with the file


_PROGRAM = """
import re, resource, sys, threadline
count = sum(1 for _ in getattr(threadline, sys.argv[2])(sys.argv[1]))
try:  # what getrusage says begins with the memory of the process that started this one
    peak = re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]
except OSError:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(int(peak) // 1024)
"""


def _peak_memory(path: Path, reader: str) -> int:
    """Return the peak memory, in MB, of a process that reads a file to its end."""
    command = [sys.executable, "-c", _PROGRAM, str(path), reader]
    environment = {**os.environ, "PYTHONPATH": str(Path(threadline.__file__).parents[1])}
    process = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)  # noqa: S603 - our own
    return int(process.stdout)


@pytest.mark.slow
def test_file_of_2_gb_is_streamed(tmp_path: Path) -> None:
    """Rows, a hole of 2 GB that a crash left, and rows again need less than 200 MB of memory."""
    path = write(tmp_path / "x.jsonl", *[ROW] * 1000)
    with path.open("r+b") as file:
        file.seek(2 * 1024**3)
        file.write(b"\n" + ROW * 1000)
    try:
        assert _peak_memory(path, "entries") < 200
        last = list(threadline.heads(path))[-1]
        assert (last.kind, last.line) == ("user", 2001)
    finally:
        path.unlink()


@pytest.mark.slow
def test_line_of_100_mb_needs_little_more_memory_than_its_size(tmp_path: Path) -> None:
    """A line of 100 MB between others needs less than 200 MB in addition to the line."""
    big = line({"type": "user", "uuid": "big", "message": {"role": "user", "content": "x" * 100_000_000}})
    path = write(tmp_path / "x.jsonl", ROW, big, ROW)
    try:
        assert _peak_memory(path, "entries") < 200 + 100
        assert _peak_memory(path, "heads") < 200 + 100
        assert [entry.uuid for entry in threadline.entries(path)] == ["u1", "big", "u1"]
    finally:
        path.unlink()


@pytest.mark.slow
@pytest.mark.parametrize("reader", ["entries", "heads"])
def test_million_lines_are_streamed(tmp_path: Path, reader: str) -> None:
    """A million rows of a conversation need less than 200 MB of memory."""
    turn = lines(*transcript(prompt("go on"), reply("Done.", output=5)))
    path = tmp_path / "x.jsonl"
    with path.open("wb") as file:
        for _ in range(500):
            file.write(turn * 1000)
    try:
        assert _peak_memory(path, reader) < 200
    finally:
        path.unlink()


def test_iterators_cost_nothing_before_the_first_entry() -> None:
    """Reading is lazy."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    iterators = [threadline.entries("/nowhere") for _ in range(10_000)]
    assert len(iterators) == 10_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


@pytest.mark.parametrize("name", [".credentials.json", "9998.key", ".env", ".env.local", ".CREDENTIALS.json"])
def test_secrets_are_never_opened(tmp_path: Path, name: str) -> None:
    """A file whose name says that it contains secrets is refused, even if the caller names it."""
    (tmp_path / name).write_text('{"type":"user"}\n')
    with pytest.raises(threadline.Unreadable, match="never opens"):
        list(threadline.entries(tmp_path / name))


@pytest.mark.slow
@pytest.mark.parametrize("reader", ["entries", "heads"])
def test_long_damaged_line_is_not_decoded(tmp_path: Path, reader: str) -> None:
    """Thirty megabytes of small objects in a torn row are kept, in a few times their size of memory."""
    path = tmp_path / "dense.jsonl"
    path.write_bytes(b'{"type":"user","x":[' + b'{"a":1},' * 3_700_000 + b'\n{"type":"mode"}\n')
    assert _peak_memory(path, reader) < 230
    assert [head.kind for head in threadline.heads(path)] == ["damaged", "mode"]
