"""The manifest of a run: the files it saw, as lines of JSON, chained by hash to the manifest before it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import UTC, datetime
from hashlib import sha256
from io import BytesIO
from typing import Annotated

import msgspec
import zstandard
from msgspec import Meta, Struct

from threadline.errors import Unreadable

MANIFEST_VERSION = 1
MAX_TEXT_SIZE = 1024 * 1024 * 1024
"""The longest text of a manifest."""
_MAX_COMPRESSION_RATIO = 4096
"""A text that is longer than this many times its file is a decompression bomb."""

Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Hash = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
_Hex = Annotated[str, Meta(pattern="^([0-9a-f]{2})*$")]
_Timestamp = Annotated[str, Meta(pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$")]


class ManifestRow(Struct, frozen=True, tag_field="kind", omit_defaults=True):
    """A line of a manifest."""


class RunRow(ManifestRow, frozen=True, tag="run"):
    """The first line: which run of which machine, and the hash of the manifest before it (None for the first).

    `machine` is the machine's id; `label` is its host name. `held` are the hashes of manifests that a merge imported:
    what they say about forgetting applies to nothing here, unless it was accepted.
    """

    version: int
    machine: Annotated[str, Meta(pattern="^[0-9A-Za-z_]{1,64}$")]
    label: str
    number: Annotated[int, Meta(ge=1, le=2**53)]
    before: Hash | None
    began: _Timestamp
    homes: tuple[str, ...]
    held: tuple[Hash, ...] = ()


class FileRow(ManifestRow, frozen=True, tag="file"):
    """The state of a file in a run: it consists of these pieces, in this order.

    With `base`, the file starts with another version of `start` bytes, and `pieces` follow. A home or path that is not
    valid text is also given as bytes, in hexadecimal. `torn`: the file changed while it was read, and may mix versions.
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
    """A file that the previous run saw and that is gone now. Its kept versions stay."""

    home: str
    path: str
    raw_home: _Hex | None = None
    raw_path: _Hex | None = None


class ForgetRow(ManifestRow, frozen=True, tag="forgot"):
    """A session that was forgotten, and why: these files are no longer listed or kept.

    If the session's id is a UUID, neither is any file of any machine with the id in its path.
    """

    session: str
    reason: str
    paths: tuple[str, ...]


class EndRow(ManifestRow, frozen=True, tag="end"):
    """The last line: when the run ended, and how many files and bytes it saw."""

    ended: _Timestamp
    files: Count
    bytes: Count


AnyRow = RunRow | FileRow | GoneRow | ForgetRow | EndRow
_encode = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(AnyRow)


class Manifest(Struct, frozen=True):
    """A manifest: its first line, the other lines, and the hash of its text, which the next manifest refers to."""

    run: RunRow
    rows: tuple[AnyRow, ...]
    hash: str


def encode_rows(rows: Iterable[AnyRow]) -> bytes:
    """Encode rows as the text that is hashed: one line of JSON each."""
    return b"".join(_encode(row) + b"\n" for row in rows)


def compress_manifest(text: bytes) -> bytes:
    """Compress the text of a manifest for storage."""
    return zstandard.ZstdCompressor(level=12, write_checksum=True).compress(text)


def decompress_manifest(data: bytes, name: str) -> bytes:
    """The text of a stored manifest.

    Raises:
        Unreadable: it is not a zstd frame, or too long for a manifest.
    """
    limit = min(MAX_TEXT_SIZE, _MAX_COMPRESSION_RATIO * len(data))
    try:
        with zstandard.ZstdDecompressor().stream_reader(BytesIO(data)) as reader:
            text = reader.read(limit + 1)
    except (zstandard.ZstdError, MemoryError) as error:
        raise damaged_manifest_error(name, str(error)) from None
    if len(text) > limit:
        raise damaged_manifest_error(name, "it is too long for a manifest")
    return text


def parse_manifest(text: bytes, name: str) -> Manifest:
    """Parse the text of a manifest.

    Raises:
        Unreadable: it is damaged, or of a newer version.
    """
    try:
        rows = tuple(_decoder.decode(line) for line in text.split(b"\n") if line)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise damaged_manifest_error(name, str(error)) from None
    if not rows or not isinstance(rows[0], RunRow) or not isinstance(rows[-1], EndRow):
        raise damaged_manifest_error(name, "it is cut off")
    if rows[0].version > MANIFEST_VERSION:
        raise Unreadable(f"The manifest {name!r} has a newer format. Update threadline.")
    return Manifest(rows[0], rows[1:], sha256(text).hexdigest())


def damaged_manifest_error(name: str, problem: str) -> Unreadable:
    """The error for a damaged manifest."""
    return Unreadable(f"The manifest {name!r} is damaged: {problem}. `threadline keep verify` lists what is affected.")


def path_to_json(path: str) -> tuple[str, str | None]:
    """A path as valid text, and its bytes in hexadecimal if the text cannot represent it."""
    try:
        path.encode()
    except UnicodeEncodeError:
        raw = os.fsencode(path)
        return raw.decode(errors="replace"), raw.hex()
    return path, None


def format_timestamp(when: datetime) -> str:
    """A time as manifests store it."""
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def path_from_json(text: str, raw: str | None) -> str:
    """The path that `path_to_json` encoded."""
    return os.fsdecode(bytes.fromhex(raw)) if raw is not None else text
