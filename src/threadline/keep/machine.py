"""The machine: an id that is made once, and what people call it."""

from __future__ import annotations

import platform
import re
from pathlib import Path
from uuid import uuid4

from msgspec import Struct

_STRANGE = re.compile(r"[^0-9A-Za-z_]+")
_LONGEST = 24


class Machine(Struct, frozen=True):
    """Who keeps: `id` tells machines apart, `label` is for people."""

    id: str
    label: str


def this_machine(folder: Path) -> Machine:
    """This machine; its id lies in a folder of its own, never in the keep, which may be shared."""
    label = platform.node() or "machine"
    path = folder / "machine"
    try:
        known = path.read_text().strip()
    except OSError:
        known = ""
    if not known:
        known = f"{_STRANGE.sub('_', label)[:_LONGEST]}_{uuid4().hex[:8]}"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.write_text(known + "\n")
    return Machine(known, label)
