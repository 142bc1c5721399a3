"""Local caches about a keep, stored on this machine. All of them are safe to delete.

- `KeepCache` remembers the tables of packs and the texts of manifests. An encrypted keep can be added to without its
  key only because the cache knows what the keep contains.
- `DamagedPacks` remembers which packs `verify` found damaged, so that the next run stores their contents again.
- `load_state` and `save_state` remember what the kept homes were made from.
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

from threadline import files

_RECORD_HEADER = struct.Struct("<HII")
_SLACK = 1024 * 1024


class KeepCache:
    """Tables of packs and texts of manifests by file name. The files never change, so entries never get stale."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._entries: dict[str, bytes] = {}
        self._size = 0
        try:
            data = path.read_bytes()
        except OSError:
            return
        at = end = 0
        while at + _RECORD_HEADER.size <= len(data):
            name_length, length, checksum = _RECORD_HEADER.unpack_from(data, at)
            at += _RECORD_HEADER.size
            body = data[at : at + name_length + length]
            at += name_length + length
            if crc32(body) != checksum:
                break
            self._entries[body[:name_length].decode(errors="replace")] = body[name_length:]
            end = at
        # If the machine stopped while the last record was appended, the file is written again.
        self._size = len(data) if end == len(data) else 0

    def get(self, name: str) -> bytes | None:
        """What was read from a file."""
        return self._entries.get(name)

    def items(self) -> Iterator[tuple[str, bytes]]:
        """All entries by file name, including those of files that are gone."""
        return iter(self._entries.items())

    def is_stored(self) -> bool:
        """Whether there is an intact cache file on disk."""
        return self._size > 0

    def add(self, entries: Iterable[tuple[str, bytes]], existing: Iterable[str]) -> None:
        """Store entries; those of files that are not `existing` may be dropped. Failing to write is not an error."""
        new = {name: data for name, data in entries if self._entries.get(name) != data}
        self._entries |= new
        live = set(existing)
        live_size = sum(len(data) for name, data in self._entries.items() if name in live)
        try:
            if not self._path.exists():
                self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            if self._size > 2 * live_size + _SLACK or self._size == 0:
                self._entries = {name: data for name, data in self._entries.items() if name in live}
                content = b"".join(map(_encode_record, self._entries.items()))
                files.write_file(self._path, content)
                self._size = len(content)
            elif new:
                with self._path.open("ab") as file:
                    file.write(b"".join(map(_encode_record, new.items())))
        except OSError:
            return


def _encode_record(item: tuple[str, bytes]) -> bytes:
    name = item[0].encode()
    body = name + item[1]
    return _RECORD_HEADER.pack(len(name), len(item[1]), crc32(body)) + body


def open_keep_cache(folder: Path | None, keep: str) -> KeepCache | None:
    """The cache in a machine's folder about the keep with this id; None without a folder or an id."""
    return KeepCache(folder / f"{keep}.memory") if folder is not None and keep else None


class DamagedPacks:
    """The names of packs that `verify` found damaged. A repaired pack has its old name, since names are hashes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.packs = frozenset(path.read_text(errors="replace").split())
        except OSError:
            self.packs = frozenset()

    def update(self, checked: Iterable[str], damaged: Iterable[str]) -> None:
        """Record which of the checked packs are damaged. Failing to write is not an error."""
        packs = (self.packs - set(checked)) | set(damaged)
        if packs == self.packs:
            return
        self.packs = packs
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            files.write_file(self.path, "\n".join(sorted(packs)).encode())
        except OSError:
            return


def open_damaged_packs(folder: Path | None, keep: str) -> DamagedPacks | None:
    """The list in a machine's folder about the keep with this id; None without a folder."""
    return DamagedPacks(folder / f"{keep}.doubted") if folder is not None else None


STATE_VERSION = 6
_HASH_LENGTH = 16
_MTIME_GRANULARITY_NS = 2_000_000_000
"""Some file systems store mtimes in steps of two seconds: a later change may have the mtime that was noted."""
_UNSETTLED = -1


class SavedState(Struct, frozen=True):
    """State that was saved to a file. Another version's is ignored."""

    version: int


_StateType = TypeVar("_StateType", bound=SavedState)


def load_state(path: Path, kind: type[_StateType]) -> _StateType | None:
    """Load saved state; None if there is none, or not of this version."""
    try:
        state = msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return state if state.version == STATE_VERSION else None


def save_state(path: Path, state: SavedState) -> None:
    """Save state atomically, readable by its owner only.

    Raises:
        OSError: it cannot be written.
    """
    files.write_file(path, msgspec.json.encode(state), durable=False)


def make_private_folder(folder: Path) -> None:
    """Create a folder and its missing parents, accessible by their owner only."""
    if not folder.is_dir():
        make_private_folder(folder.parent)
        folder.mkdir(exist_ok=True, mode=0o700)


def short_hash(*parts: str) -> str:
    """A short file name that identifies these texts."""
    return blake2b("\n".join(parts).encode(errors="surrogateescape")).hexdigest()[:_HASH_LENGTH]


def get_mtime_ns(path: str) -> int:
    """The mtime of a file or directory; 0 if it does not exist."""
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116 - paths are text here
    except OSError:
        return 0


def get_settled_mtime_ns(path: str, began: int) -> int:
    """The mtime, or -1 if it is so recent that another change could leave it the same."""
    mtime = get_mtime_ns(path)
    return mtime if mtime < began - _MTIME_GRANULARITY_NS else _UNSETTLED
