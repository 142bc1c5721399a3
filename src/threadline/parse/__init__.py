"""Bytes to entries, losing nothing: `entries` for the whole of each, `heads` for what most questions need.

Names are loaded when they are first used: what counts tokens needs no entries.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from threadline.parse.reader import entries, heads
    from threadline.parse.side_files import read_side_file
    from threadline.parse.side_values import SideReading

__all__ = [
    "SideReading",
    "entries",
    "heads",
    "read_side_file",
]

_HOMES_OF_NAMES = {
    "SideReading": "side_values",
    "entries": "reader",
    "heads": "reader",
    "read_side_file": "side_files",
}


def __getattr__(name: str) -> Any:
    module = _HOMES_OF_NAMES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value
