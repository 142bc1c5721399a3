"""Manifests: what one run saw, in lines of JSON, each manifest chained by hash to the one before it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path

import msgspec
import zstandard
from msgspec import Struct

from threadline.errors import Unreadable

VERSION = 1
_LARGEST = 4 * 1024 * 1024 * 1024


class Row(Struct, frozen=True, tag_field="kind", omit_defaults=True):
    """A line of a manifest."""


class Run(Row, frozen=True, tag="run"):
    """The first line: which run of which machine, and the hash of the manifest before it (None: it is the first).

    `machine` is an id that is made once a machine; `label` is what people call it.
    """

    version: int
    machine: str
    label: str
    number: int
    before: str | None
    began: str
    homes: tuple[str, ...]


class File(Row, frozen=True, tag="file"):
    """A file as it was seen, made of these pieces in this order.

    `start` is how many bytes of the version before it are its own, too: `pieces` are what follows them. A path that is
    no text is told by its bytes, in hexadecimal, in `raw_path`. `torn`: it changed while it was read, and may be a mix.
    """

    home: str
    path: str
    mode: int
    mtime_ns: int
    size: int
    pieces: tuple[str, ...]
    start: int = 0
    raw_path: str | None = None
    torn: bool = False


class Gone(Row, frozen=True, tag="gone"):
    """A file that was there in the run before and is not any more: what the keep has of it stays."""

    home: str
    path: str


class Forgot(Row, frozen=True, tag="forgot"):
    """That a session was taken out of the keep, and why: the hashes of its pieces are not to come back."""

    session: str
    reason: str
    paths: tuple[str, ...]
    pieces: tuple[str, ...]


class End(Row, frozen=True, tag="end"):
    """The last line: the run was finished, and saw so many files and bytes."""

    ended: str
    files: int
    bytes: int


AnyRow = Run | File | Gone | Forgot | End
_encode = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(AnyRow)


class Manifest(Struct, frozen=True):
    """A manifest that was read: its first line, the others, and the hash of its text, which the next one names."""

    run: Run
    rows: tuple[AnyRow, ...]
    hash: str


def text_of(rows: Iterable[AnyRow]) -> bytes:
    """The rows as the text that is hashed: a line of JSON each."""
    return b"".join(_encode(row) + b"\n" for row in rows)


def packed(text: bytes) -> bytes:
    """The text as it lies on disk."""
    return zstandard.ZstdCompressor(level=9, write_checksum=True).compress(text)


def name_of(run: Run, text: bytes) -> str:
    """The name of a manifest's file: in order for people, unique by its hash."""
    return f"{run.machine}-{run.number:06d}-{sha256(text).hexdigest()[:16]}.jsonl.zst"


def read(path: Path) -> Manifest:
    """A manifest.

    Raises:
        Unreadable: it cannot be read, or is not what was written.
    """
    try:
        with path.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as reader:
            text = reader.read(_LARGEST)
    except OSError as error:
        raise Unreadable(f"The manifest {str(path)!r} cannot be read: {error.strerror or error}.") from None
    except zstandard.ZstdError as error:
        raise _damaged(path, str(error)) from None
    if sha256(text).hexdigest()[:16] != path.name.split("-")[-1].split(".")[0]:
        raise _damaged(path, "its text is not what its name says")
    try:
        rows = tuple(_rows(text))
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise _damaged(path, str(error)) from None
    if not rows or not isinstance(rows[0], Run) or not isinstance(rows[-1], End):
        raise _damaged(path, "it is cut off")
    if rows[0].version > VERSION:
        raise Unreadable(f"The manifest {str(path)!r} is of a later version; update threadline.")
    return Manifest(rows[0], rows[1:], sha256(text).hexdigest())


def _rows(text: bytes) -> Iterator[AnyRow]:
    return (_decoder.decode(line) for line in text.splitlines() if line)


def _damaged(path: Path, what: str) -> Unreadable:
    return Unreadable(f"The manifest {str(path)!r} is damaged: {what}; `threadline keep verify` says what it touches.")
