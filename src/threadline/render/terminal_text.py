"""Text that is safe and measured for a terminal.

Transcripts hold hostile text: escape sequences, marks that turn the reading direction, characters that take no room.
Whatever reaches a terminal has been through `plain`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

# Format and control characters, lone surrogates, private use: none may reach a terminal as they are.
_STEERING = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
# Marks that sit on the character before them.
_NO_COLUMN = frozenset({"Mn", "Me"})
# Selectors that no font shows: a sentence can be hidden in them.
_HIDDEN = (0xE0100, 0xE01EF)
# Colour alone: taken away, nothing that was said is lost. Every other sequence stays visible, as an escape.
_COLOUR = re.compile("(?:\x1b\\[|\x9b)[0-9;:]*m")
_TAB = 4


def plain(text: str) -> str:
    r"""Text that cannot steer a terminal: control and format characters as `\x1b`-like escapes.

    >>> plain("a\x1b[31mb\u202e")
    'a\\x1b[31mb\\u202e'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        character.encode("unicode_escape").decode() if _steers(character) else character for character in text
    )


def _steers(character: str) -> bool:
    return unicodedata.category(character) in _STEERING or _HIDDEN[0] <= ord(character) <= _HIDDEN[1]


def plain_lines(text: str) -> Iterator[str]:
    r"""The lines of a text, each plain: tabs become spaces, colours are left out.

    >>> list(plain_lines("a\tb\r\n\x1b[32mgreen\x1b[0m"))
    ['a   b', 'green']
    """
    for line in text.split("\n"):
        bare = line.removesuffix("\r")
        if "\x1b" in bare or "\x9b" in bare:
            bare = _COLOUR.sub("", bare)
        yield plain(bare.expandtabs(_TAB))


def one_line(text: str, width: int) -> str:
    """The text on one line, white space folded, cut with an ellipsis at `width` columns."""
    # A text may be a hundred megabytes, of which a line shows a few words; a few characters take no column.
    folded = " ".join(text[: 16 * width + 64].split())
    return clip(plain(folded[: 4 * width]), width)


def columns(text: str) -> int:
    """How many columns of a terminal the text takes."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.category(character) in _NO_COLUMN:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def clip(text: str, width: int) -> str:
    """The text, cut with an ellipsis where it takes more columns than `width`."""
    if columns(text) <= width:
        return text
    return text[: fitting(text, width - 1)] + "…"


def clip_left(text: str, width: int) -> str:
    """A path, cut at its beginning: its end tells more."""
    return text if columns(text) <= width else "…" + clip(text[::-1], width)[-2::-1]


def fitting(text: str, width: int) -> int:
    """How many characters of the text fit into `width` columns."""
    taken = 0
    for at, character in enumerate(text):
        taken += _columns(character)
        if taken > width:
            return at
    return len(text)
