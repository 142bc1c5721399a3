"""Decode the JSON value of one side file leniently.

An editor's lock holds the token to talk to it. `authToken` is dropped here and never reaches the model.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from msgspec import Struct

from threadline.model.places import Place, Problem, ProblemKind
from threadline.parse.lines import open_transcript
from threadline.shape import UnknownPart, find_unknown, fit, lenient_loads

# A side file is small; what is bigger than this is not one of the shapes above.
_MAX_SIZE = 64 * 1024 * 1024
# An editor's lock holds the key to talk to it, and nobody but the editor's peer has any business with that.
_SECRET_KEYS = frozenset({"authToken"})


class SideReading(Struct, frozen=True):
    """What a side file holds: typed where its kind has a shape, else None; what was wrong, and what is unknown."""

    content: Any
    problems: tuple[Problem, ...] = ()
    unknown: tuple[UnknownPart, ...] = ()


def read_side_bytes(path: Path) -> bytes:
    """What a side file holds, as far as one can be."""
    descriptor = open_transcript(path)
    with os.fdopen(descriptor, "rb") as file:
        return file.read(_MAX_SIZE)


def decode_side_value(data: bytes, shape: Any, place: Place) -> SideReading:
    """The value that bytes hold, with what was wrong with it."""
    bare = data.strip(b"\0 \t\r\n")
    if not bare:
        return SideReading(None)
    try:
        loaded = lenient_loads(bare)
    except (ValueError, RecursionError):
        problem = Problem(ProblemKind.FOREIGN, place, "not JSON", recovered=False, lost=len(data))
        return SideReading(None, (problem,))
    value = loaded.value
    if isinstance(value, dict):
        value = {key: item for key, item in value.items() if key not in _SECRET_KEYS}
    content, misfits = fit(value, shape)
    problems = [Problem(ProblemKind(kind), place, message) for kind, message in loaded.defects]
    problems += [Problem(ProblemKind.WRONG_TYPE, place.within(misfit.json_path), misfit.message) for misfit in misfits]
    return SideReading(content, tuple(problems), tuple(find_unknown(value, shape)))
