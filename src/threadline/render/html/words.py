"""Words of a transcript as a page may show them: what steers, hides or turns the reading direction is made visible."""

from __future__ import annotations

import re

from threadline.render.terminal_text import plain

_COLOUR = re.compile("(?:\x1b\\[|\x9b)[0-9;:]*m")
# Joins emoji and letters of some scripts into one; between such characters it hides nothing.
_JOINED = re.compile("(?<=[^\x00-\u02ff])[\u200d\u200c](?=[^\x00-\u02ff])")
_JOINER, _OTHER_JOINER = "\u200d", "\u200c"


def shown(text: str) -> str:
    r"""The text with newlines and tabs as they are, and every other control or hidden character as an escape.

    >>> shown("a\x1b[31mb\u202e\n\tc")
    'ab\\u202e\n\tc'
    """
    if text.replace("\n", "").replace("\t", "").isascii() and _is_plain(text):
        return text
    if "\x1b" in text or "\x9b" in text:
        text = _COLOUR.sub("", text)
    return "\n".join(map(_line, text.split("\n")))


def one(text: str, most: int) -> str:
    """The text on one line, white space folded, cut with an ellipsis after so many characters."""
    folded = " ".join(text[: 4 * most + 64].split())
    return shown(folded if len(folded) <= most else folded[: most - 1] + "…")


def _is_plain(text: str) -> bool:
    return text.replace("\n", "").replace("\t", "").isprintable()


def _line(line: str) -> str:
    bare = line.removesuffix("\r")
    return "\t".join(map(_piece, bare.split("\t")))


def _piece(text: str) -> str:
    if _JOINER not in text and _OTHER_JOINER not in text:
        return plain(text)
    parts = _JOINED.split(text)
    joiners = _JOINED.findall(text)
    return "".join(plain(part) + joiner for part, joiner in zip(parts, [*joiners, ""], strict=True))
