"""The manifest of a run: what it saw, as lines of JSON, chained by hash to the manifest before it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from hashlib import sha256
from io import BytesIO
from typing import Annotated

import msgspec
import zstandard
from msgspec import Meta, Struct

from threadline.errors import Unreadable

MANIFEST_VERSION = 1
MAX_TEXT_SIZE = 1024 * 1024 * 1024
"""A manifest's text is no longer than this, nor than so many times its file: more is a bomb."""
_MAX_COMPRESSION_RATIO = 4096

Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Hash = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
_Hex = Annotated[str, Meta(pattern="^([0-9a-f]{2})*$")]
_Timestamp = Annotated[str, Meta(pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$")]


class ManifestRow(Struct, frozen=True, tag_field="kind", omit_defaults=True):
    """A line of a manifest."""


class RunRow(ManifestRow, frozen=True, tag="run"):
    """The first line: which run of which machine, and the hash of the manifest before it (None: it is the first).

    `machine` is an id that is made once a machine; `label` is what people call it.
    """

    version: int
    machine: Annotated[str, Meta(pattern="^[0-9A-Za-z_]{1,64}$")]
    label: str
    number: Annotated[int, Meta(ge=1, le=2**53)]
    before: Hash | None
    began: _Timestamp
    homes: tuple[str, ...]


class FileRow(ManifestRow, frozen=True, tag="file"):
    """A file as it was seen, made of these pieces in this order.

    Where `base` is told, it begins with another version, of `start` bytes: `pieces` are what follows those. A home or
    path that is no text is told by its bytes, in hexadecimal, too. `torn`: it changed while it was read, and may be a
    mix.
    """

    home: str
    path: str
    mode: Count
    mtime_ns: int
    size: Count
    pieces: tuple[Hash, ...]
    start: Count = 0
    base: Hash | None = None
    ctime_ns: int = 0
    raw_home: _Hex | None = None
    raw_path: _Hex | None = None
    torn: bool = False


class GoneRow(ManifestRow, frozen=True, tag="gone"):
    """A file that was there in the run before and is not any more: what the keep has of it stays."""

    home: str
    path: str
    raw_home: _Hex | None = None
    raw_path: _Hex | None = None


class ForgetRow(ManifestRow, frozen=True, tag="forgot"):
    """That a session was taken out of the keep, and why: none of these files is listed or kept any more.

    Nor is any file of any machine that has the session's id, where that is a UUID, in its path.
    """

    session: str
    reason: str
    paths: tuple[str, ...]


class EndRow(ManifestRow, frozen=True, tag="end"):
    """The last line: the run was finished, and saw so many files and bytes."""

    ended: _Timestamp
    files: Count
    bytes: Count


AnyRow = RunRow | FileRow | GoneRow | ForgetRow | EndRow
_encode = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(AnyRow)


class Manifest(Struct, frozen=True):
    """A manifest that was read: its first line, the others, and the hash of its text, which the next one names."""

    run: RunRow
    rows: tuple[AnyRow, ...]
    hash: str


def encode_rows(rows: Iterable[AnyRow]) -> bytes:
    """The rows as the text that is hashed: a line of JSON each."""
    return b"".join(_encode(row) + b"\n" for row in rows)


def compress_manifest(text: bytes) -> bytes:
    """The text as it lies on disk."""
    return zstandard.ZstdCompressor(level=12, write_checksum=True).compress(text)


def decompress_manifest(data: bytes, name: str) -> bytes:
    """The text of a manifest, of what lies on disk.

    Raises:
        Unreadable: it is no zstd frame, or holds more than a manifest does.
    """
    most = min(MAX_TEXT_SIZE, _MAX_COMPRESSION_RATIO * len(data))
    try:
        with zstandard.ZstdDecompressor().stream_reader(BytesIO(data)) as reader:
            text = reader.read(most + 1)
    except (zstandard.ZstdError, MemoryError) as error:
        raise damaged_manifest_error(name, str(error)) from None
    if len(text) > most:
        raise damaged_manifest_error(name, "it holds more than a manifest does")
    return text


def parse_manifest(text: bytes, name: str) -> Manifest:
    """A manifest, of its text.

    Raises:
        Unreadable: it is not what was written.
    """
    try:
        rows = tuple(_decoder.decode(line) for line in text.split(b"\n") if line)
    except msgspec.MsgspecError as error:
        raise damaged_manifest_error(name, str(error)) from None
    if not rows or not isinstance(rows[0], RunRow) or not isinstance(rows[-1], EndRow):
        raise damaged_manifest_error(name, "it is cut off")
    if rows[0].version > MANIFEST_VERSION:
        raise Unreadable(f"The manifest {name!r} is of a later version; update threadline.")
    return Manifest(rows[0], rows[1:], sha256(text).hexdigest())


def damaged_manifest_error(name: str, what: str) -> Unreadable:
    """That a manifest is not what was written."""
    return Unreadable(f"The manifest {name!r} is damaged: {what}; `threadline keep verify` says what it touches.")


def path_to_json(path: str) -> tuple[str, str | None]:
    """A path as JSON can hold it, and its bytes in hexadecimal where that is not all."""
    try:
        path.encode()
    except UnicodeEncodeError:
        raw = os.fsencode(path)
        return raw.decode(errors="replace"), raw.hex()
    return path, None


def path_from_json(text: str, raw: str | None) -> str:
    """A path, of what a manifest tells of it."""
    return os.fsdecode(bytes.fromhex(raw)) if raw is not None else text
