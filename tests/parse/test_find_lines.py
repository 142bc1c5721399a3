"""Tests of `find_lines`, which finds the lines that contain certain bytes, whatever the block size."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadline.errors import NotFound, Unreadable
from threadline.parse import find_lines, find_lines_in_block, read_first_lines
from threadline.parse import lines as module

_NEEDLE = b"ab"
_DATA = st.lists(st.sampled_from([b"a", b"b", b"ab", b"\n", b"\r\n", b"xyz" * 5, b"\0"]), max_size=40).map(b"".join)


def _expected(data: bytes) -> Iterator[tuple[int, bytes]]:
    offset = 0
    for line in data.split(b"\n"):
        ended = line + b"\n" if offset + len(line) < len(data) else line
        if _NEEDLE in line:
            yield offset, ended
        offset += len(ended)


@given(_DATA, st.integers(1, 20))
def test_finds_exactly_the_matching_lines(data: bytes, size: int) -> None:
    """However small the blocks are, lines are complete, in order and have their offsets."""
    with TemporaryDirectory() as top, patch.object(module, "_BLOCK_SIZE", size):
        path = Path(top, "a")
        path.write_bytes(data)
        pairs = [
            pair for matches in find_lines(path, _NEEDLE) for pair in zip(matches.offsets, matches.lines, strict=True)
        ]
    assert pairs == list(_expected(data))


@given(_DATA, st.integers(1, 20))
def test_blocks_contain_every_line_complete(data: bytes, size: int) -> None:
    """Each line, matching or not, is complete in some block, so that other bytes can be searched in blocks."""
    with TemporaryDirectory() as top, patch.object(module, "_BLOCK_SIZE", size):
        path = Path(top, "a")
        path.write_bytes(data)
        blocks = [matches.block for matches in find_lines(path, _NEEDLE)]
    for line in data.split(b"\n"):
        assert any(line in block for block in blocks) or not line


@given(_DATA, st.integers(1, 12), st.integers(5, 30))
def test_lines_above_the_limit_are_skipped(data: bytes, size: int, longest: int) -> None:
    """Lines after it have the right offset, and a line below the limit is never skipped."""
    with (
        TemporaryDirectory() as top,
        patch.object(module, "_BLOCK_SIZE", size),
        patch.object(module, "MAX_LINE_LENGTH", longest),
    ):
        path = Path(top, "a")
        path.write_bytes(data)
        pairs = [
            pair for matches in find_lines(path, _NEEDLE) for pair in zip(matches.offsets, matches.lines, strict=True)
        ]
    every = list(_expected(data))
    assert set(pairs) <= set(every)
    assert {pair for pair in every if len(pair[1]) <= longest - size} <= set(pairs)


@given(_DATA)
def test_finds_lines_in_a_block(data: bytes) -> None:
    """The same for bytes in memory."""
    assert list(find_lines_in_block(data, _NEEDLE)) == [line for _offset, line in _expected(data)]


def test_starts_at_an_offset(tmp_path: Path) -> None:
    """Offsets are still those of the file."""
    path = tmp_path / "a"
    path.write_bytes(b"ab 1\nxy 2\nab 3\nab 4")
    pairs = [
        pair
        for matches in find_lines(path, b"ab", offset=5)
        for pair in zip(matches.offsets, matches.lines, strict=True)
    ]
    assert pairs == [(10, b"ab 3\n"), (15, b"ab 4")]


def test_reads_the_first_lines_of_a_long_file(tmp_path: Path) -> None:
    """One small read returns lines in order, the last one truncated."""
    path = tmp_path / "a"
    path.write_bytes(b"one\ntwo\n" + b"x" * 100_000)
    assert read_first_lines(path)[:2] == [b"one\n", b"two\n"]
    assert len(b"".join(read_first_lines(path))) < 100_000


@pytest.mark.parametrize("read", [lambda path: list(find_lines(path, b"x")), read_first_lines])
def test_missing_file_and_directory_are_errors(tmp_path: Path, read: object) -> None:
    """The message says which it is."""
    assert callable(read)
    with pytest.raises(NotFound, match="There is no file"):
        read(tmp_path / "none.jsonl")
    with pytest.raises(Unreadable, match="not a regular file"):
        read(tmp_path)
