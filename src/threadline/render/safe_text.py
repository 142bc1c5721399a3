"""Make transcript text safe to display: escape control and hidden characters, measure and cut it.

Transcripts contain hostile text: escape sequences, marks that change the reading direction, invisible characters.
Whatever reaches a terminal goes through `plain`, whatever reaches a page through `visible`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

# Format and control characters, lone surrogates and private use characters must not reach a terminal unescaped.
_CONTROL_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
# Marks that combine with the character before them.
_COMBINING_CATEGORIES = frozenset({"Mn", "Me"})
# Invisible selectors, joiners and fillers. A sentence can be hidden in them.
_HIDDEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
# An emoji selector is kept after an emoji. `1`, `#` and `*` are emoji inside a keycap.
_EMOJI = re.compile("[\ufe0e\ufe0f]")
_KEYCAP = re.compile("[0-9#*]\ufe0f\u20e3")
_SYMBOLS = frozenset({"So", "Sm", "Sk"})
# Colour sequences are removed, because no content is lost. Every other sequence stays visible as an escape.
_COLOUR = re.compile("(?:\x1b\\[|\x9b)[0-9;:]*m")
_TAB = 4


def plain(text: str) -> str:
    r"""Text that cannot control a terminal: control and format characters become escapes such as `\x1b`.

    >>> plain("a\x1b[31mb\u202e")
    'a\\x1b[31mb\\u202e'
    """
    # A printable string has none of the categories above, but Python treats a few hidden characters as letters.
    if text.isprintable() and (text.isascii() or not _HIDDEN.search(text)):
        return text
    shown = _HIDDEN.sub(_reveal, text) if _HIDDEN.search(text) else text
    return "".join(map(_escape, shown)) if any(map(_is_control, shown)) else shown


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode() if _is_control(character) else character


def _is_control(character: str) -> bool:
    return unicodedata.category(character) in _CONTROL_CATEGORIES


def _reveal(match: re.Match[str]) -> str:
    """Escape a hidden character, unless it belongs to an emoji."""
    text, at = match.string, match.start()
    drawn = at > 0 and _EMOJI.match(match[0]) is not None
    if drawn and (unicodedata.category(text[at - 1]) in _SYMBOLS or _KEYCAP.match(text, at - 1)):
        return match[0]
    return match[0].encode("unicode_escape").decode()


def plain_lines(text: str) -> Iterator[str]:
    r"""The lines of a text, each `plain`. Tabs become spaces, and colours are removed.

    >>> list(plain_lines("a\tb\r\n\x1b[32mgreen\x1b[0m"))
    ['a   b', 'green']
    """
    for line in text.split("\n"):
        bare = line.removesuffix("\r")
        if "\x1b" in bare or "\x9b" in bare:
            bare = _COLOUR.sub("", bare)
        yield plain(bare.expandtabs(_TAB))


def one_line(text: str, width: int) -> str:
    """The text on one line for a terminal: white space collapsed, cut with an ellipsis at `width` columns."""
    # A text may have a hundred megabytes, but only its start is shown. A few characters take no column.
    folded = " ".join(text[: 16 * width + 64].split())
    return clip(plain(folded[: 4 * width]), width)


def display_width(text: str) -> int:
    """The number of terminal columns of a text."""
    return len(text) if text.isascii() else sum(map(_character_width, text))


def _character_width(character: str) -> int:
    if unicodedata.category(character) in _COMBINING_CATEGORIES:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def clip(text: str, width: int) -> str:
    """Cut a text with an ellipsis if it has more than `width` columns."""
    if display_width(text) <= width:
        return text
    return text[: fitting_length(text, width - 1)] + "…"


def clip_left(text: str, width: int) -> str:
    """Cut a path at its start, because its end is more informative."""
    return text if display_width(text) <= width else "…" + clip(text[::-1], width)[-2::-1]


def fitting_length(text: str, width: int, start: int = 0) -> int:
    """The index where a text from `start` must end to fit into `width` columns."""
    if text.isascii():
        return min(len(text), start + max(0, width))
    taken = 0
    for at in range(start, len(text)):
        taken += _character_width(text[at])
        if taken > width:
            return at
    return len(text)


_COLOUR_SEQUENCE = re.compile("(?:\x1b\\[|\x9b)[0-9;:]*m")
# Joins emoji and letters of some scripts. Between such characters it hides nothing.
_JOINED = re.compile("(?<=[^\x00-\u02ff])[\u200d\u200c](?=[^\x00-\u02ff])")
_JOINER, _OTHER_JOINER = "\u200d", "\u200c"


def visible(text: str) -> str:
    r"""The text with every control or hidden character escaped, except newlines and tabs.

    >>> visible("a\x1b[31mb\u202e\n\tc")
    'ab\\u202e\n\tc'
    """
    if text.replace("\n", "").replace("\t", "").isascii() and _has_no_controls(text):
        return text
    if "\x1b" in text or "\x9b" in text:
        text = _COLOUR_SEQUENCE.sub("", text)
    return "\n".join(map(_visible_line, text.split("\n")))


def shorten(text: str, most: int) -> str:
    """The text on one line for a page or file: white space collapsed, cut with an ellipsis by characters."""
    folded = " ".join(text[: 4 * most + 64].split())
    return visible(folded if len(folded) <= most else folded[: most - 1] + "…")


def _has_no_controls(text: str) -> bool:
    return text.replace("\n", "").replace("\t", "").isprintable()


def _visible_line(line: str) -> str:
    bare = line.removesuffix("\r")
    return "\t".join(map(_visible_piece, bare.split("\t")))


def _visible_piece(text: str) -> str:
    if _JOINER not in text and _OTHER_JOINER not in text:
        return plain(text)
    parts = _JOINED.split(text)
    joiners = _JOINED.findall(text)
    return "".join(plain(part) + joiner for part, joiner in zip(parts, [*joiners, ""], strict=True))
