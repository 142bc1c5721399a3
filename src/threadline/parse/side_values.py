"""Decode the JSON value of a side file leniently.

This is a module of its own because the types of all side files take time to load, and most commands need one.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import Struct

from threadline.errors import Error
from threadline.home_files import open_transcript, read_and_close
from threadline.json_values import DECODE_ERRORS
from threadline.model.places import Place, Problem, ProblemKind
from threadline.model.side_files import AgentMeta

if TYPE_CHECKING:
    from threadline.shape import UnknownPart

Content = TypeVar("Content", bound=Struct)

# Side files are small. A larger file is not one of them.
_MAX_SIZE = 64 * 1024 * 1024
# An editor's lock file contains the token for talking to the editor. It is never returned.
_SECRET_KEYS = frozenset({"authToken"})


class SideReading(Struct, frozen=True):
    """The content of a side file, with its problems and unknown fields. None if its kind has no type."""

    content: Any
    problems: tuple[Problem, ...] = ()
    unknown: tuple[UnknownPart, ...] = ()


def read_side_bytes(path: Path, home: Path) -> bytes:
    """Return the bytes of a side file of a home, 64 MB at most.

    Raises:
        NotFound: it does not exist.
        Unreadable: it cannot be read, or is outside the home.
    """
    return read_and_close(open_transcript(path, home=home), _MAX_SIZE)


def read_side_content(path: Path, home: Path, shape: type[Content]) -> Content | None:
    """Read the object in a side file of a home; None if it is missing or unreadable, or something else."""
    try:
        data = read_side_bytes(path, home)
    except Error:
        return None
    return decode_content(data, shape, Place(str(path), 1))[0]


def decode_content(data: bytes, shape: type[Content], place: Place) -> tuple[Content | None, tuple[Problem, ...]]:
    """Decode an object leniently, with its problems; None if it is something else.

    Most objects fit their type, and are decoded at once. The lenient decoder needs tables of the type, which take
    longer to build than a side file to read.
    """
    decoder: msgspec.json.Decoder[Content] = _decoder(shape)
    with suppress(*DECODE_ERRORS):
        return decoder.decode(data), ()
    reading = decode_side_value(data, shape, place)
    return reading.content if isinstance(reading.content, shape) else None, reading.problems


@cache
def _decoder(shape: type[Content]) -> msgspec.json.Decoder[Content]:
    return msgspec.json.Decoder(shape)


def read_agent_meta(path: Path) -> AgentMeta | None:
    """Read the `.meta.json` beside an agent's transcript; None if it is missing or unreadable."""
    return read_side_content(path, path.parent, AgentMeta)


def decode_side_value(data: bytes, shape: Any, place: Place) -> SideReading:
    """Decode a JSON value leniently, with its problems."""
    from threadline.shape import find_unknown, fit, lenient_loads  # noqa: PLC0415 - most contents need no leniency

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
