"""Lines that hold certain bytes: all of them, whole, with where they begin, whatever the blocks they were read in."""

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
def test_every_line_that_holds_it_and_no_other(data: bytes, size: int) -> None:
    """However small the blocks are, lines come whole, once and in order, with their offsets."""
    with TemporaryDirectory() as top, patch.object(module, "_BLOCK_SIZE", size):
        path = Path(top, "a")
        path.write_bytes(data)
        found = [pair for some in find_lines(path, _NEEDLE) for pair in zip(some.offsets, some.lines, strict=True)]
    assert found == list(_expected(data))


@given(_DATA, st.integers(1, 20))
def test_blocks_hold_every_line_whole(data: bytes, size: int) -> None:
    """Each line, found or not, lies whole in some block: what is looked for beside the needle is not torn."""
    with TemporaryDirectory() as top, patch.object(module, "_BLOCK_SIZE", size):
        path = Path(top, "a")
        path.write_bytes(data)
        blocks = [some.block for some in find_lines(path, _NEEDLE)]
    for line in data.split(b"\n"):
        assert any(line in block for block in blocks) or not line


@given(_DATA, st.integers(1, 12), st.integers(5, 30))
def test_a_line_too_long_to_be_decoded_is_passed_over(data: bytes, size: int, longest: int) -> None:
    """What follows such a line is found at its own place; a line that is not too long is never passed over."""
    with (
        TemporaryDirectory() as top,
        patch.object(module, "_BLOCK_SIZE", size),
        patch.object(module, "MAX_LINE_LENGTH", longest),
    ):
        path = Path(top, "a")
        path.write_bytes(data)
        found = [pair for some in find_lines(path, _NEEDLE) for pair in zip(some.offsets, some.lines, strict=True)]
    every = list(_expected(data))
    assert set(found) <= set(every)
    assert {pair for pair in every if len(pair[1]) <= longest - size} <= set(found)


@given(_DATA)
def test_lines_of_a_block(data: bytes) -> None:
    """The same of bytes that are at hand."""
    assert list(find_lines_in_block(data, _NEEDLE)) == [line for _offset, line in _expected(data)]


def test_a_start_within_the_file(tmp_path: Path) -> None:
    """Reading may begin at any line, and offsets are still those of the file."""
    path = tmp_path / "a"
    path.write_bytes(b"ab 1\nxy 2\nab 3\nab 4")
    found = [pair for some in find_lines(path, b"ab", offset=5) for pair in zip(some.offsets, some.lines, strict=True)]
    assert found == [(10, b"ab 3\n"), (15, b"ab 4")]


def test_first_lines_of_a_long_file(tmp_path: Path) -> None:
    """One small read gives lines in order, the last of them cut."""
    path = tmp_path / "a"
    path.write_bytes(b"one\ntwo\n" + b"x" * 100_000)
    assert read_first_lines(path)[:2] == [b"one\n", b"two\n"]
    assert len(b"".join(read_first_lines(path))) < 100_000


@pytest.mark.parametrize("reading", [lambda path: list(find_lines(path, b"x")), read_first_lines])
def test_refusals_are_sentences(tmp_path: Path, reading: object) -> None:
    """What is not there or is no file is said so."""
    assert callable(reading)
    with pytest.raises(NotFound, match="There is no file"):
        reading(tmp_path / "none.jsonl")
    with pytest.raises(Unreadable, match="not a regular file"):
        reading(tmp_path)
