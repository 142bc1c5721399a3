"""A pack tells what it holds, and what it does not hold cannot be read out of it."""

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


def _pack(data: bytes) -> tuple[bytes, Frame]:
    packed = zstandard.ZstdCompressor(write_checksum=True).compress(data)
    frame = Frame(0, len(packed), len(data), ((sha256(data).hexdigest(), len(data)),))
    return packed + build_footer(encode_table([frame])), frame


def test_pieces_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces that are packed into several frames and packs are all found again, each with its bytes."""
    monkeypatch.setattr(pack, "FRAME_SIZE", 20_000)
    monkeypatch.setattr(pack, "PACK_SIZE", 30_000)
    store = Store.make(tmp_path / "keep")
    pieces = [Piece.of(lines(seed, 30)) for seed in range(60)]
    with PackWriter(store, HERE.id) as packing:
        for piece in pieces:
            packing.add(piece)
    assert len(packing.finished) > 1
    catalogue = Catalogue(store)
    assert {hash_: catalogue.piece(hash_) for hash_ in catalogue.located} == {one.hash: one.data for one in pieces}


def test_what_is_given_up_leaves_nothing(tmp_path: Path) -> None:
    """A pack that is not finished is not in the folder."""
    store = Store.make(tmp_path / "keep")
    packing = PackWriter(store, HERE.id)
    packing.add(Piece.of(b"x"))
    packing._start_frame()
    packing._write_frames(0)
    assert [path.suffix for path in store.packs.iterdir()] == [".new"]
    packing.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert not list(store.packs.iterdir())


def test_a_flipped_bit_in_the_contents_is_seen() -> None:
    """No bit of the table of contents can be another without being told."""
    data, _frame = _pack(b"some bytes")
    start = data.index(b'{"version"')
    for at in range(start, len(data)):
        flipped = bytearray(data)
        flipped[at] ^= 16
        with pytest.raises(Unreadable):
            read_table(BytesIO(bytes(flipped)), "a pack")


@given(st.binary(max_size=200))
def test_any_bytes_are_no_pack(data: bytes) -> None:
    """Bytes that are no pack are told to be none."""
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
def test_contents_that_cannot_be_are_refused(frame: Frame) -> None:
    """Sizes that are too large or do not add up, and names that are no hashes, are not believed."""
    with pytest.raises(Unreadable):
        decode_table(encode_table([frame]), "a pack")


@pytest.mark.parametrize("size", [3, 11, 40_000_000])
def test_a_frame_holds_what_is_told(size: int) -> None:
    """A frame with more or less in it than the contents tell is refused before it is unpacked."""
    data, frame = _pack(b"some bytes")
    with pytest.raises(Unreadable, match="does not contain"):
        read_frame(BytesIO(data), "a pack", Frame(0, frame.length, size, frame.pieces))
    assert dict(split_frame(frame, read_frame(BytesIO(data), "a pack", frame))) == {frame.pieces[0][0]: b"some bytes"}
