"""Packs: pieces one after the other in zstd frames, in a file that `zstd -dc` reads, with its contents at the end."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import BinaryIO

import msgspec
import zstandard
from msgspec import Struct

from threadline.errors import Unreadable
from threadline.keep.manifest import Count, Hash

VERSION = 1
FRAME_MOST = 64 * 1024 * 1024
"""A frame holds no more than this, so that reading one piece never takes more memory."""
_SKIPPED = struct.Struct("<II")
_MAGIC = 0x184D2A5B
"""A skippable frame: what reads zstd passes over it."""
_TAIL = struct.Struct("<I8s")
_SIGN = b"threadln"


class Frame(Struct, frozen=True, omit_defaults=True):
    """One zstd frame: where it lies, how long it is, how much is in it, and the pieces inside, in order.

    A piece is told by its SHA-256 (in hexadecimal) and its length. `dictionary` is the SHA-256 of the dictionary that
    the frame was written with, if any.
    """

    offset: Count
    length: Count
    size: Count
    pieces: tuple[tuple[Hash, Count], ...]
    dictionary: Hash | None = None


class Contents(Struct, frozen=True):
    """What a pack holds."""

    version: int
    frames: tuple[Frame, ...]


_encode = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(Contents)


def table(frames: Sequence[Frame]) -> bytes:
    """The contents of a pack as text."""
    return _encode(Contents(VERSION, tuple(frames)))


def written(body: bytes) -> bytes:
    """The skippable frame that ends a pack: its contents, their hash, their length and a sign."""
    whole = body + sha256(body).digest() + _TAIL.pack(len(body), _SIGN)
    return _SKIPPED.pack(_MAGIC, len(whole)) + whole


def table_of(file: BinaryIO, name: str) -> bytes:
    """The contents of a pack, as text.

    Raises:
        Unreadable: they are cut off or damaged.
    """
    end = file.seek(0, 2)
    if end < _TAIL.size:
        raise _damaged(name, "it is cut off")
    file.seek(end - _TAIL.size)
    length, sign = _TAIL.unpack(file.read(_TAIL.size))
    start = end - _TAIL.size - sha256().digest_size - length
    if sign != _SIGN or start < 0:
        raise _damaged(name, "it is cut off")
    file.seek(start)
    body = file.read(length)
    if sha256(body).digest() != file.read(sha256().digest_size):
        raise _damaged(name, "its table of contents is not what was written")
    return body


def contents(body: bytes, name: str) -> Contents:
    """What a pack says that it holds, of the text of its contents.

    Raises:
        Unreadable: that is no table of contents, claims what cannot be, or is of a later version.
    """
    try:
        told = _decoder.decode(body)
    except msgspec.MsgspecError:
        raise _damaged(name, "its table of contents cannot be read") from None
    if told.version > VERSION:
        raise Unreadable(f"The pack {name!r} is of a later version ({told.version}); update threadline.")
    if any(one.size > FRAME_MOST or one.size != sum(length for _hash, length in one.pieces) for one in told.frames):
        raise _damaged(name, "its table of contents claims what cannot be")
    return told


def frame_bytes(file: BinaryIO, name: str, frame: Frame, dictionary: bytes | None = None) -> bytes:
    """What a frame holds, decompressed.

    Raises:
        Unreadable: it is not what was written.
    """
    where = f"the frame at byte {frame.offset:,}"
    known = zstandard.ZstdCompressionDict(dictionary) if dictionary is not None else None
    try:
        file.seek(frame.offset)
        packed = file.read(min(frame.length, 2 * FRAME_MOST))
        # Asked before anything is unpacked: what claims to hold more than is told could be made to fill the memory.
        if zstandard.get_frame_parameters(packed).content_size != frame.size:
            raise _damaged(name, f"{where} does not hold the {frame.size:,} bytes that are told")
        data = zstandard.ZstdDecompressor(dict_data=known).decompress(packed, max_output_size=frame.size)
    except OSError as error:
        raise Unreadable(f"The pack {name!r} cannot be read: {error.strerror or error}.") from None
    except (zstandard.ZstdError, MemoryError) as error:
        raise _damaged(name, f"{where} cannot be unpacked ({error})") from None
    if len(data) != frame.size:
        raise _damaged(name, f"{where} holds {len(data):,} bytes, not {frame.size:,}")
    return data


def pieces_in(frame: Frame, data: bytes) -> Iterator[tuple[str, bytes]]:
    """The pieces of a frame: the hash that each should have, and its bytes."""
    at = 0
    for digest, length in frame.pieces:
        yield digest, data[at : at + length]
        at += length


def _damaged(name: str, what: str) -> Unreadable:
    return Unreadable(f"The pack {name!r} is damaged: {what}; `threadline keep verify` says what it touches.")
