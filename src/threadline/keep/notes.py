"""Notes: how the files under the cache were left, to be compared with how they are; they can be deleted at any time."""

from __future__ import annotations

import os
from hashlib import blake2b
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

VERSION = 4
NEW = ".new"
"""The end of the name of what is being written."""
_NAME = 16
_GRAIN_NS = 2_000_000_000
"""The coarsest times there are come every two seconds: what changed since may have the time that was noted."""
_UNSETTLED = -1


class Note(Struct, frozen=True):
    """What was noted; that of another version is as none."""

    version: int


_Noted = TypeVar("_Noted", bound=Note)


def noted(path: Path, kind: type[_Noted]) -> _Noted | None:
    """What was noted in a file, if anything was."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError):
        return None
    return found if found.version == VERSION else None


def note(path: Path, told: Note) -> None:
    """Note something, whole or not at all, for the owner alone."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}{NEW}")
    try:
        temporary.write_bytes(msgspec.json.encode(told))
        temporary.chmod(0o600)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def make(folder: Path) -> None:
    """A folder, and those above it that are not there, for its owner alone."""
    if not folder.is_dir():
        make(folder.parent)
        folder.mkdir(exist_ok=True, mode=0o700)


def name_of(*parts: str) -> str:
    """A name for what these tell apart."""
    return blake2b("\n".join(parts).encode(errors="surrogateescape")).hexdigest()[:_NAME]


def time_of(path: str) -> int:
    """When a file or directory was written to; 0 where it is not there."""
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116 - paths are text here
    except OSError:
        return 0


def settled(path: str, began: int) -> int:
    """The same, or what no time equals where it may change once more without that being seen."""
    told = time_of(path)
    return told if told < began - _GRAIN_NS else _UNSETTLED
