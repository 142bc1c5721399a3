"""Local caches about a keep: tables and manifests already read, and the state of the kept homes. Safe to delete.

An encrypted keep can be added to without its key only because the cache knows what the keep contains.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import TypeVar
from zlib import crc32

import msgspec
from msgspec import Struct

from threadline import atomic

_RECORD_HEADER = struct.Struct("<HII")
_SLACK = 1024 * 1024


class KeepCache:
    """The tables of packs and the texts of manifests, by the names of their files, which never change.

    A keep that is sealed can be added to without its key only where this remembers what is in it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, bytes] = {}
        self._size = 0
        try:
            data = path.read_bytes()
        except OSError:
            return
        self._size = len(data)
        at = 0
        while at + _RECORD_HEADER.size <= len(data):
            named, length, check = _RECORD_HEADER.unpack_from(data, at)
            at += _RECORD_HEADER.size
            body = data[at : at + named + length]
            at += named + length
            if crc32(body) != check:
                self._size = 0  # the machine stopped while this was written: it is to be written anew
                break
            self._known[body[:named].decode(errors="replace")] = body[named:]

    def get(self, name: str) -> bytes | None:
        """What a file told, if it was read before."""
        return self._known.get(name)

    def texts(self) -> Iterator[tuple[str, bytes]]:
        """All that is remembered, by the names of the files; some may not be there any more."""
        return iter(self._known.items())

    def is_there(self) -> bool:
        """Whether there is one on disk."""
        return self._size > 0

    def add(self, found: Iterable[tuple[str, bytes]], there: Iterable[str]) -> None:
        """Put by what was read; what is not `there` any more may be let go. Not being able to harms nothing."""
        new = dict(found)
        self._known |= new
        live = set(there)
        wanted = sum(len(data) for name, data in self._known.items() if name in live)
        try:
            if not self._path.exists():
                self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            if self._size > 2 * wanted + _SLACK or self._size == 0:
                self._known = {name: data for name, data in self._known.items() if name in live}
                whole = b"".join(map(_encode_record, self._known.items()))
                atomic.write_file(self._path.parent, "memory", self._path.name, whole)
                self._size = len(whole)
            elif new:
                with self._path.open("ab") as file:
                    file.write(b"".join(map(_encode_record, new.items())))
        except OSError:
            return


def open_keep_cache(folder: Path | None, keep: str) -> KeepCache | None:
    """What is remembered in a folder of the keep with this id, if anything is to be."""
    return KeepCache(folder / f"{keep}.memory") if folder is not None else None


def _encode_record(item: tuple[str, bytes]) -> bytes:
    body = item[0].encode() + item[1]
    return _RECORD_HEADER.pack(len(item[0].encode()), len(item[1]), crc32(body)) + body


STATE_VERSION = 4
NEW_SUFFIX = ".new"
"""The end of the name of what is being written."""
_HASH_LENGTH = 16
_MTIME_GRANULARITY_NS = 2_000_000_000
"""The coarsest times there are come every two seconds: what changed since may have the time that was noted."""
_UNSETTLED = -1


class SavedState(Struct, frozen=True):
    """What was noted; that of another version is as none."""

    version: int


_StateType = TypeVar("_StateType", bound=SavedState)


def load_state(path: Path, kind: type[_StateType]) -> _StateType | None:
    """What was noted in a file, if anything was."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError):
        return None
    return found if found.version == STATE_VERSION else None


def save_state(path: Path, told: SavedState) -> None:
    """Note something, whole or not at all, for the owner alone."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}{NEW_SUFFIX}")
    try:
        temporary.write_bytes(msgspec.json.encode(told))
        temporary.chmod(0o600)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def make_private_folder(folder: Path) -> None:
    """A folder, and those above it that are not there, for its owner alone."""
    if not folder.is_dir():
        make_private_folder(folder.parent)
        folder.mkdir(exist_ok=True, mode=0o700)


def short_hash(*parts: str) -> str:
    """A name for what these tell apart."""
    return blake2b("\n".join(parts).encode(errors="surrogateescape")).hexdigest()[:_HASH_LENGTH]


def get_mtime_ns(path: str) -> int:
    """When a file or directory was written to; 0 where it is not there."""
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116 - paths are text here
    except OSError:
        return 0


def get_settled_mtime_ns(path: str, began: int) -> int:
    """The same, or what no time equals where it may change once more without that being seen."""
    told = get_mtime_ns(path)
    return told if told < began - _MTIME_GRANULARITY_NS else _UNSETTLED
