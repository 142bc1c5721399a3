"""Files are split into pieces by content."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.keep.stores import lines

from threadline.keep.pack import MAX_PIECE_SIZE, MIN_PIECE_SIZE, Chunker, Piece


def split(data: bytes, sizes: list[int] | None = None) -> list[bytes]:
    """The pieces of the data, fed in chunks of these sizes."""
    chunker = Chunker()
    pieces: list[bytes] = []
    offset = 0
    for size in sizes or []:
        pieces += chunker.feed(data[offset : offset + size])
        offset += size
    pieces += chunker.feed(data[offset:])
    return [*pieces, *chunker.finish()]


# Long streams repeat a short one, so that hypothesis does not have to draw every byte.
_streams = st.builds(
    lambda parts, times: b"\n".join(parts) * times, st.lists(st.binary(max_size=300), max_size=8), st.integers(1, 1500)
) | st.builds(lines, st.integers(0, 5), st.integers(0, 3000))


@given(_streams)
def test_pieces_joined_are_the_bytes(data: bytes) -> None:
    """Any bytes, split and joined, are the same, and no piece is empty, too small or too large."""
    pieces = split(data)
    assert b"".join(pieces) == data
    assert all(MIN_PIECE_SIZE <= len(piece) <= MAX_PIECE_SIZE for piece in pieces[:-1])
    assert all(0 < len(piece) <= MAX_PIECE_SIZE for piece in pieces)


@given(_streams, st.lists(st.integers(0, 200_000), max_size=12))
def test_pieces_do_not_depend_on_chunks(data: bytes, sizes: list[int]) -> None:
    """The same bytes are split alike, however many are fed at a time."""
    assert split(data, sizes) == split(data)


@given(_streams, _streams)
def test_growth_keeps_the_earlier_pieces(data: bytes, more: bytes) -> None:
    """All pieces of a beginning except the last are pieces of the whole."""
    before = split(data)[:-1]
    assert split(data + more)[: len(before)] == before


def test_inserted_line_changes_only_nearby_pieces() -> None:
    """A line inserted at the beginning changes the first pieces. Later pieces stay the same."""
    data = lines(7, 20_000)
    before, after = split(data), split(b"another line\n" + data)
    assert len(set(before) - set(after)) <= 4 < len(before) / 4


def test_splits_overlong_line() -> None:
    """A line longer than the maximum is split at the maximum."""
    assert [len(piece) for piece in split(b"x" * (2 * MAX_PIECE_SIZE + 5))] == [MAX_PIECE_SIZE, MAX_PIECE_SIZE, 5]


def test_piece_name_is_its_hash() -> None:
    """A piece is named by the SHA-256 of its content."""
    assert Piece.of(b"").hash == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
