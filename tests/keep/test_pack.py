"""A pack describes its content, and nothing else can be read from it."""

from __future__ import annotations

from hashlib import sha256
from io import BytesIO
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from tests.keep.stores import HERE, lines

from threadline.errors import Unreadable
from threadline.keep import Catalogue, Store, pack
from threadline.keep.pack import (
    Frame,
    PackWriter,
    Piece,
    build_footer,
    decode_table,
    encode_table,
    read_frame,
    read_table,
    split_frame,
)


def make_pack(data: bytes) -> tuple[bytes, Frame]:
    """A pack with one frame."""
    packed = zstandard.ZstdCompressor(write_checksum=True).compress(data)
    frame = Frame(0, len(packed), len(data), ((sha256(data).hexdigest(), len(data)),))
    return packed + build_footer(encode_table([frame])), frame


def test_pieces_round_trip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces in several frames and packs are all found again, each with its bytes."""
    monkeypatch.setattr(pack, "FRAME_SIZE", 20_000)
    monkeypatch.setattr(pack, "PACK_SIZE", 30_000)
    store = Store.make(tmp_path / "keep")
    pieces = [Piece.of(lines(seed, 30)) for seed in range(60)]
    with PackWriter(store, HERE.id) as writer:
        for piece in pieces:
            writer.add(piece)
    assert len(writer.finished) > 1
    catalogue = Catalogue(store)
    assert {hash_: catalogue.piece(hash_) for hash_ in catalogue.located} == {
        piece.hash: piece.data for piece in pieces
    }


def test_interrupted_pack_leaves_nothing(tmp_path: Path) -> None:
    """An unfinished pack is removed from the folder."""
    store = Store.make(tmp_path / "keep")
    writer = PackWriter(store, HERE.id)
    writer.add(Piece.of(b"x"))
    writer._start_frame()
    writer._write_frames(0)
    assert [path.suffix for path in store.packs.iterdir()] == [".new"]
    writer.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert not list(store.packs.iterdir())


def test_flipped_bit_in_the_table_is_an_error() -> None:
    """Every flipped bit in the table of contents is detected."""
    data, _frame = make_pack(b"some bytes")
    start = data.index(b'{"version"')
    for offset in range(start, len(data)):
        flipped = bytearray(data)
        flipped[offset] ^= 16
        with pytest.raises(Unreadable):
            read_table(BytesIO(bytes(flipped)), "a pack")


@given(st.binary(max_size=200))
def test_random_bytes_are_not_a_pack(data: bytes) -> None:
    """Bytes that are not a pack are an error."""
    with pytest.raises(Unreadable):
        read_table(BytesIO(data), "a pack")
    with pytest.raises(Unreadable):
        decode_table(data, "a pack")


@pytest.mark.parametrize(
    "frame",
    [
        Frame(0, 10, 2**40, (("0" * 64, 2**40),)),
        Frame(0, 10, 5, (("0" * 64, 4),)),
        Frame(-1, 10, 4, (("0" * 64, 4),)),
        Frame(0, 10, 4, (("../etc", 4),)),
        Frame(0, 10, 4, (("0" * 64, 4),), "../../secret"),
    ],
)
def test_impossible_tables_are_refused(frame: Frame) -> None:
    """Sizes that are too large or do not add up, and names that are not hashes, are refused."""
    with pytest.raises(Unreadable):
        decode_table(encode_table([frame]), "a pack")


@pytest.mark.parametrize("size", [3, 11, 40_000_000])
def test_frame_must_match_the_table(size: int) -> None:
    """A frame with more or less content than the table says is refused before it is unpacked."""
    data, frame = make_pack(b"some bytes")
    with pytest.raises(Unreadable, match="does not contain"):
        read_frame(BytesIO(data), "a pack", Frame(0, frame.length, size, frame.pieces))
    assert dict(split_frame(frame, read_frame(BytesIO(data), "a pack", frame))) == {frame.pieces[0][0]: b"some bytes"}
