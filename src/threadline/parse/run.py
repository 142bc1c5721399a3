"""A run of lines decoded at once, when all of them are as they should be."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any

import msgspec

REFUSALS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What the fast decoder raises at a line that is not for it."""

DecodeLines = Callable[[list[bytes]], list[Any] | None]
_FIRST, _LAST = itemgetter(0), itemgetter(-2)
_OPENING, _CLOSING = {ord("{")}, {ord("}")}


def lines_decoder(types: Any) -> DecodeLines:
    """A function that decodes a run of lines at once, or says (None) that some line needs a closer look."""
    decode_all = msgspec.json.Decoder[Any](types).decode_lines

    def decode(lines: list[bytes]) -> list[Any] | None:
        # The decoder takes any white space between objects. When every line begins with `{` and ends with `}`, an
        # object that spans lines is impossible (after a nested object's `}` comes `,`, `]` or `}`), and so is a
        # blank line; then equal counts mean that no line holds two.
        try:
            if set(map(_FIRST, lines)) != _OPENING or not set(map(_LAST, lines[:-1])) <= _CLOSING:
                return None
            found = decode_all(b"".join(lines))
        except (*REFUSALS, IndexError):
            return None
        return found if len(found) == len(lines) else None

    return decode
