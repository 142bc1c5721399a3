"""Seams: what can stand in the middle of a word unseen, so that no search finds the word."""

from __future__ import annotations

import re
from bisect import bisect_right

# Colours and other sequences of a terminal, as they are or escaped; characters that take no room; a backspace.
_SEAM = re.compile(
    "(?:\x1b|\\\\{1,2}u001[bB]|\\\\{1,2}x1[bB]|\\\\{1,2}033|\\\\{1,2}e)\\[[0-9;:?]{0,32}[A-Za-z]"
    "|\x1b\\][^\x07\x1b]{0,512}(?:\x07|\x1b\\\\)|\x1b[()][AB0]|\x9b[0-9;:?]{0,32}[A-Za-z]"
    "|[\u200b-\u200f\u2060-\u2064\ufeff\u00ad\u202a-\u202e\u2066-\u2069\u034f\x08]"
    "|\\\\{1,2}u(?:200[b-fB-F]|206[0-4]|[fF][eE][fF][fF]|00[aA][dD])"
)
_MARKS = ("\x1b", "\x9b", "\x08", "1b[", "1B[", "033[", "\\e[", "u200", "u206")


class Seamless:
    """A text without its seams, that knows where its characters stood."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts: list[int] = []
        self._moved: list[int] = []
        parts: list[str] = []
        last = taken = 0
        for seam in _SEAM.finditer(text):
            parts.append(text[last : seam.start()])
            taken += seam.end() - seam.start()
            last = seam.end()
            self._starts.append(last - taken)
            self._moved.append(taken)
        self.text = "".join([*parts, text[last:]]) if parts else text

    def where(self, start: int, end: int) -> tuple[int, int]:
        """Where a span of the seamless text stands in the text."""
        return self._at(start), self._at(end - 1) + 1

    def _at(self, position: int) -> int:
        index = bisect_right(self._starts, position)
        return position + (self._moved[index - 1] if index else 0)


def seamless(text: str) -> Seamless | None:
    """The text without seams, or None where it has none."""
    if text.isascii():
        if not any(mark in text for mark in _MARKS):
            return None
    elif not _SEAM.search(text):
        return None
    without = Seamless(text)
    return without if without.text != text else None
