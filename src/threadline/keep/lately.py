"""Lately: where this machine keeps, and when a run last ended there, put by on this machine.

A hook that fails, or a disk that is not there, is noticed by that: neither leaves anything in the keep.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from threadline.keep import durable
from threadline.keep.folder import KEEPS


class Lately(Struct, frozen=True):
    """The keep that was in a folder, by its id, and when a run into it last ended."""

    id: str
    ended: str


def lately(machine: Path | None, folder: Path) -> Lately | None:
    """What this machine, whose own folder is `machine`, knows of the keep in a folder."""
    return _all(machine).get(os.path.realpath(folder)) if machine is not None else None


def away(machine: Path | None, folder: Path) -> str | None:
    """What to say of a keep that this machine has kept into and that is not there any more, if it has."""
    if lately(machine, folder) is None:
        return None
    return f"The keep that was in {str(folder)!r} is not there. Is its disk mounted, or was it moved (--keep DIR)?"


def has_kept(machine: Path) -> bool:
    """Whether a run of this machine has ended anywhere."""
    return bool(_all(machine))


def note(machine: Path | None, folder: Path, id_: str, ended: str) -> None:
    """Put by that a run ended. Not being able to harms nothing."""
    if machine is None:
        return
    known = {**_all(machine), os.path.realpath(folder): Lately(id_, ended)}
    with suppress(OSError):
        machine.mkdir(parents=True, exist_ok=True, mode=0o700)
        durable.put(machine, "lately", KEEPS, msgspec.json.encode(known, order="sorted"))


def _all(machine: Path) -> dict[str, Lately]:
    try:
        return msgspec.json.decode(durable.small(machine / KEEPS), type=dict[str, Lately])
    except (OSError, msgspec.MsgspecError):
        return {}
