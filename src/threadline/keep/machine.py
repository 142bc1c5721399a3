"""The machine: an id that is made once, and what people call it."""

from __future__ import annotations

import platform
import re
from pathlib import Path
from uuid import uuid4

from msgspec import Struct

from threadline.errors import Unreadable
from threadline.keep import durable
from threadline.keep.folder import data_folder

_STRANGE = re.compile(r"[^0-9A-Za-z_]+")
_ID = re.compile(r"[0-9A-Za-z_]{1,64}")
_LONGEST = 24


class Machine(Struct, frozen=True):
    """Who keeps: `id` tells machines apart, `label` is for people; `memory` is where it remembers what keeps hold."""

    id: str
    label: str
    memory: Path | None = None


def this_machine(folder: Path | None = None) -> Machine:
    """This machine; its id lies in a folder of its own, never in the keep, which may be shared.

    Raises:
        Unreadable: the id cannot be put down.
    """
    folder = folder or machine_folder()
    label = platform.node() or "machine"
    path = folder / "machine"
    try:
        known = path.read_text(errors="replace").strip()
    except OSError:
        known = ""
    if _ID.fullmatch(known) is None:
        known = f"{_STRANGE.sub('_', label)[:_LONGEST]}_{uuid4().hex[:8]}"
        take_up(folder, known)
    return Machine(known, label, folder)


def take_up(folder: Path, id_: str) -> None:
    """Put down this machine's id.

    Raises:
        Unreadable: it cannot be put down.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        durable.put(folder, "machine", "machine", f"{id_}\n".encode())
    except OSError as error:
        said = f"This machine's id cannot be put in {str(folder / 'machine')!r}: {error.strerror or error}."
        raise Unreadable(said) from None


def machine_folder() -> Path:
    """Where a machine has its id and its memory: the platform's folder for data."""
    return Path(data_folder())
