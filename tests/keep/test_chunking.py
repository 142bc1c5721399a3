"""Files are cut into pieces by what is in them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.keep.stores import lines

from threadline.keep.pack import MAX_PIECE_SIZE, MIN_PIECE_SIZE, Chunker, Piece


def _cut(data: bytes, sizes: list[int] | None = None) -> list[bytes]:
    cutting = Chunker()
    found: list[bytes] = []
    at = 0
    for size in sizes or []:
        found += cutting.feed(data[at : at + size])
        at += size
    found += cutting.feed(data[at:])
    return [*found, *cutting.finish()]


# Long streams are made of a short one: what hypothesis would have to draw byte by byte is repeated instead.
_streams = st.builds(
    lambda parts, times: b"\n".join(parts) * times, st.lists(st.binary(max_size=300), max_size=8), st.integers(1, 1500)
) | st.builds(lines, st.integers(0, 5), st.integers(0, 3000))


@given(_streams)
def test_pieces_joined_are_the_bytes(data: bytes) -> None:
    """Any bytes cut into pieces and joined are the same, and no piece is empty, too small or too large."""
    found = _cut(data)
    assert b"".join(found) == data
    assert all(MIN_PIECE_SIZE <= len(one) <= MAX_PIECE_SIZE for one in found[:-1])
    assert all(0 < len(one) <= MAX_PIECE_SIZE for one in found)


@given(_streams, st.lists(st.integers(0, 200_000), max_size=12))
def test_how_the_bytes_come_does_not_matter(data: bytes, sizes: list[int]) -> None:
    """The same bytes are cut alike, however many are handed over at a time."""
    assert _cut(data, sizes) == _cut(data)


@given(_streams, _streams)
def test_a_file_that_grew_has_the_pieces_that_it_had(data: bytes, more: bytes) -> None:
    """All pieces of a beginning but the last are pieces of the whole."""
    before = _cut(data)[:-1]
    assert _cut(data + more)[: len(before)] == before


def test_what_stands_before_changes_only_what_is_near() -> None:
    """A line put at the begin of a file changes its first pieces; the cuts find each other again."""
    data = lines(7, 20_000)
    before, after = _cut(data), _cut(b"another line\n" + data)
    assert len(set(before) - set(after)) <= 4 < len(before) / 4


def test_a_line_without_end_is_cut() -> None:
    """A line longer than a piece may be is cut where it is too long."""
    assert [len(one) for one in _cut(b"x" * (2 * MAX_PIECE_SIZE + 5))] == [MAX_PIECE_SIZE, MAX_PIECE_SIZE, 5]


def test_a_piece_is_named_by_its_bytes() -> None:
    """A piece's name is the SHA-256 of what is in it."""
    assert Piece.of(b"").hash == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
