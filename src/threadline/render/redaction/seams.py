"""Seams: what can stand in the middle of a word unseen, so that no search finds the word."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator

from threadline.render.redaction.marks import marks

# Each layer is one more look at the text, so that there must be a last one; a person's terminal makes two.
_DEEPEST = 16
# A sequence may by rights end with a backslash or a bracket, too; no terminal's does, and another one may begin there.
_ENDS = "[0-?]{0,64}[ !$]?[A-Za-z@`{|}~]"
# Colours and other sequences of a terminal, as they are; each by a letter that is rare, which makes the search fast.
_SEQUENCE = re.compile(f"\x1b(?:\\[{_ENDS}|\\][^\x07\x1b]{{0,512}}(?:\x07|\x1b\\\\)|[()][AB0])")
_SEQUENCE_8_BIT = re.compile(f"\x9b{_ENDS}")
# The same escaped, in JSON, in JSON within JSON, and in programs.
_MAYBE_ESCAPED = re.compile(r"\[(?<=(?:1b|1B|33|\\e)\[)")
_ESCAPED = re.compile(rf"\\{{1,16}}(?:u001[bB]|x1[bB]|033|e)\[{_ENDS}")
# Characters that take no room, as they are and escaped; a backspace, a zero.
_NO_ROOM = re.compile("[\u200b-\u200f\u2060-\u2064\ufeff\u00ad\u202a-\u202e\u2066-\u2069\u034f]")
_NO_ROOM_ESCAPED = re.compile(r"\\{1,16}u(?:200[b-fB-F]|206[0-4]|[fF][eE][fF][fF]|00[aA][dD])")
_MAYBE_NO_ROOM = re.compile(r"u(?:200|206|feff|FEFF|00ad|00AD)")
_BACKSPACE = re.compile("\x08")
_NUL = re.compile("\0")


def _seams(text: str) -> list[tuple[int, int]]:
    """Where seams are, in order."""
    found = [one.span() for pattern in (_SEQUENCE, _BACKSPACE, _NUL) for one in pattern.finditer(text)]
    if _MAYBE_ESCAPED.search(text):
        found += [one.span() for one in _ESCAPED.finditer(text)]
    if _MAYBE_NO_ROOM.search(text):
        found += [one.span() for one in _NO_ROOM_ESCAPED.finditer(text)]
    if not text.isascii():
        found += [one.span() for pattern in (_SEQUENCE_8_BIT, _NO_ROOM) for one in pattern.finditer(text)]
    return sorted(found)


class Seamless:
    """A text without its seams, that knows where its characters stood.

    A seam is from where to where, and the one character that stands there instead, if any.
    `below` is the layer that it was made of, where it was not made of the text itself.
    """

    def __init__(self, text: str, seams: Iterable[tuple[int, int, str]], below: Seamless | None = None) -> None:
        self._below = below
        self._starts: list[int] = []
        self._moved: list[int] = []
        parts: list[str] = []
        last = taken = 0
        for start, end, put in seams:
            if start < last:
                continue
            parts += [text[last:start], put]
            taken += end - start - len(put)
            last = end
            self._starts.append(last - taken - len(put))
            self._moved.append(taken)
        self.text = "".join([*parts, text[last:]])

    def where(self, start: int, end: int) -> tuple[int, int]:
        """Where a span of the seamless text stands in the text."""
        first, last = self._at(start), self._at(end - 1) + 1
        return self._below.where(first, last) if self._below is not None else (first, last)

    def _at(self, position: int) -> int:
        index = bisect_right(self._starts, position)
        return position + (self._moved[index - 1] if index else 0)


def seamless(text: str) -> Iterator[Seamless]:
    """The text without seams; again without those that only then come to light, as one was within another.

    The last layer are the lines that have marks of Markdown or HTML within words, without these.
    """
    shown, below = text, None
    for _layer in range(_DEEPEST):
        seams = _seams(shown)
        if not seams:
            break
        below = Seamless(shown, [(start, end, "") for start, end in seams], below)
        shown = below.text
        yield below
    within = marks(shown)
    if within:
        yield Seamless(shown, within, below)
