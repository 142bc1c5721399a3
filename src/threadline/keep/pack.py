"""Packs: pieces one after the other in zstd frames, in a file that `zstd -dc` reads, with its contents at the end."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

import msgspec
import zstandard
from msgspec import Struct

from threadline.errors import Unreadable

VERSION = 1
_SKIPPED = struct.Struct("<II")
_MAGIC = 0x184D2A5B
"""A skippable frame: what reads zstd passes over it."""
_TAIL = struct.Struct("<I8s")
_SIGN = b"threadln"
_LARGEST = 256 * 1024 * 1024
"""A table of contents that claims to be longer is damaged."""


class Frame(Struct, frozen=True, gc=False, omit_defaults=True):
    """One zstd frame: where it lies, how long it is, how much is in it, and the pieces inside, in order.

    A piece is told by its SHA-256 (in hexadecimal) and its length. `dictionary` is the SHA-256 of the dictionary that
    the frame was written with, if any.
    """

    offset: int
    length: int
    size: int
    pieces: tuple[tuple[str, int], ...]
    dictionary: str | None = None


class Contents(Struct, frozen=True):
    """What a pack holds."""

    version: int
    frames: tuple[Frame, ...]


_encode = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(Contents)


def written(frames: Sequence[Frame]) -> bytes:
    """The skippable frame that ends a pack: its contents, their hash, their length and a sign."""
    body = _encode(Contents(VERSION, tuple(frames)))
    whole = body + sha256(body).digest() + _TAIL.pack(len(body), _SIGN)
    return _SKIPPED.pack(_MAGIC, len(whole)) + whole


def contents(path: Path) -> Contents:
    """What a pack says that it holds.

    Raises:
        Unreadable: it is cut off, damaged, or of a later version.
    """
    try:
        with path.open("rb") as file:
            return _contents(file, path)
    except OSError as error:
        raise Unreadable(f"The pack {str(path)!r} cannot be read: {error.strerror or error}.") from None


def _contents(file: BinaryIO, path: Path) -> Contents:
    end = file.seek(0, 2)
    if end < _TAIL.size:
        raise _damaged(path, "it is cut off")
    file.seek(end - _TAIL.size)
    length, sign = _TAIL.unpack(file.read(_TAIL.size))
    start = end - _TAIL.size - sha256().digest_size - length
    if sign != _SIGN or length > _LARGEST or start < 0:
        raise _damaged(path, "it is cut off")
    file.seek(start)
    body = file.read(length)
    if sha256(body).digest() != file.read(sha256().digest_size):
        raise _damaged(path, "its table of contents is not what was written")
    try:
        told = _decoder.decode(body)
    except (msgspec.DecodeError, msgspec.ValidationError):
        raise _damaged(path, "its table of contents cannot be read") from None
    if told.version > VERSION:
        raise Unreadable(f"The pack {str(path)!r} is of a later version ({told.version}); update threadline.")
    return told


def frame_bytes(path: Path, frame: Frame, dictionary: bytes | None = None) -> bytes:
    """What a frame holds, decompressed.

    Raises:
        Unreadable: it is not what was written.
    """
    known = zstandard.ZstdCompressionDict(dictionary) if dictionary is not None else None
    try:
        with path.open("rb") as file:
            file.seek(frame.offset)
            packed = file.read(frame.length)
        data = zstandard.ZstdDecompressor(dict_data=known).decompress(packed, max_output_size=frame.size)
    except OSError as error:
        raise Unreadable(f"The pack {str(path)!r} cannot be read: {error.strerror or error}.") from None
    except zstandard.ZstdError as error:
        raise _damaged(path, f"the frame at byte {frame.offset:,} cannot be unpacked ({error})") from None
    if len(data) != frame.size:
        raise _damaged(path, f"the frame at byte {frame.offset:,} holds {len(data):,} bytes, not {frame.size:,}")
    return data


def pieces_in(frame: Frame, data: bytes) -> Iterator[tuple[str, bytes]]:
    """The pieces of a frame: the hash that each should have, and its bytes."""
    at = 0
    for digest, length in frame.pieces:
        yield digest, data[at : at + length]
        at += length


def _damaged(path: Path, what: str) -> Unreadable:
    return Unreadable(f"The pack {str(path)!r} is damaged: {what}; `threadline keep verify` says what it touches.")
