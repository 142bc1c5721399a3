"""Views of a text without what can hide a word: terminal sequences, invisible characters, Markdown and HTML markup."""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator

# Each layer is one more look at the text, so that there must be a last one; a person's terminal makes two.
_MAX_LAYERS = 16
# A sequence may by rights end with a backslash or a bracket, too; no terminal's does, and another one may begin there.
_SEQUENCE_END = "[0-?]{0,64}[ !$]?[A-Za-z@`{|}~]"
# Colours and other sequences of a terminal, as they are; each by a letter that is rare, which makes the search fast.
_SEQUENCE = re.compile(f"\x1b(?:\\[{_SEQUENCE_END}|\\][^\x07\x1b]{{0,512}}(?:\x07|\x1b\\\\)|[()][AB0])")
_SEQUENCE_8_BIT = re.compile(f"\x9b{_SEQUENCE_END}")
# The same escaped, in JSON, in JSON within JSON, and in programs.
_MAYBE_ESCAPED_SEQUENCE = re.compile(r"\[(?<=(?:1b|1B|33|\\e)\[)")
_ESCAPED_SEQUENCE = re.compile(rf"\\{{1,16}}(?:u001[bB]|x1[bB]|033|e)\[{_SEQUENCE_END}")
# Characters that take no room, as they are and escaped; a backspace, a zero.
_INVISIBLE = re.compile("[\u200b-\u200f\u2060-\u2064\ufeff\u00ad\u202a-\u202e\u2066-\u2069\u034f]")
_ESCAPED_INVISIBLE = re.compile(r"\\{1,16}u(?:200[b-fB-F]|206[0-4]|[fF][eE][fF][fF]|00[aA][dD])")
_MAYBE_ESCAPED_INVISIBLE = re.compile(r"u(?:200|206|feff|FEFF|00ad|00AD)")
_BACKSPACE = re.compile("\x08")
_NUL = re.compile("\0")


def _find_hidden(text: str) -> list[tuple[int, int]]:
    """Where seams are, in order."""
    found = [one.span() for pattern in (_SEQUENCE, _BACKSPACE, _NUL) for one in pattern.finditer(text)]
    if _MAYBE_ESCAPED_SEQUENCE.search(text):
        found += [one.span() for one in _ESCAPED_SEQUENCE.finditer(text)]
    if _MAYBE_ESCAPED_INVISIBLE.search(text):
        found += [one.span() for one in _ESCAPED_INVISIBLE.finditer(text)]
    if not text.isascii():
        found += [one.span() for pattern in (_SEQUENCE_8_BIT, _INVISIBLE) for one in pattern.finditer(text)]
    return sorted(found)


class TextLayer:
    """A text without its seams, that knows where its characters stood.

    A seam is from where to where, and the one character that stands there instead, if any.
    `below` is the layer that it was made of, where it was not made of the text itself.
    """

    def __init__(self, text: str, seams: Iterable[tuple[int, int, str]], below: TextLayer | None = None) -> None:
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


def text_layers(text: str) -> Iterator[TextLayer]:
    """The text without seams; again without those that only then come to light, as one was within another.

    The last layer are the lines that have marks of Markdown or HTML within words, without these.
    """
    shown, below = text, None
    for _layer in range(_MAX_LAYERS):
        seams = _find_hidden(shown)
        if not seams:
            break
        below = TextLayer(shown, [(start, end, "") for start, end in seams], below)
        shown = below.text
        yield below
    within = markup_removals(shown)
    if within:
        yield TextLayer(shown, within, below)


_MAX_LINE = 2000
_MARK_CONTEXT = 600
_WORD_CLASS = "[A-Za-z0-9_-]"
# Each by a sign that is rare, which makes the search fast; what stands on both sides must be a part of a word.
_MARKDOWN_ESCAPE = re.compile(r"\\(?<=[A-Za-z0-9]\\)\\{0,3}(?=[_*~-][A-Za-z0-9])")
_EMPHASIS = tuple(
    re.compile(f"{sign}(?<={_WORD_CLASS}{{3}}{sign}){rest}(?={_WORD_CLASS}{{4}})")
    for sign, rest in (
        (r"\*", r"\*{0,2}"),
        ("~", "~"),
        ("`", "`?"),
        ("<", "/?(?:b|i|em|strong|code|span|wbr|mark|u|s)/?>"),
    )
)
_ENTITY = re.compile(
    "&(?:#(?:[0-9]{2,5}|[xX]0{0,2}[0-9a-fA-F]{2})|lowbar|UnderBar|period|hyphen|dash|equals|plus|sol);"
)
_WORD_CHARACTER = re.compile(r"[\w./+=~-]", re.ASCII)


def markup_removals(text: str) -> list[tuple[int, int, str]]:
    """What is to be taken away so that only lines with marks are left, as they are read; empty where there are none.

    Each with what stands there instead.
    """
    found = sorted(_find_markup(text))
    return list(_keep_marked_lines(text, found)) if found else []


def _find_markup(text: str) -> Iterator[tuple[int, int, str]]:
    for pattern in (_MARKDOWN_ESCAPE, *_EMPHASIS):
        yield from ((*one.span(), "") for one in pattern.finditer(text))
    for one in _ENTITY.finditer(text):
        said = html.unescape(one[0])
        if len(said) == 1 and _WORD_CHARACTER.match(said):
            yield (*one.span(), said)


def _keep_marked_lines(text: str, found: list[tuple[int, int, str]]) -> Iterator[tuple[int, int, str]]:
    """The marks, and all that lies between their lines; of a long line, what is far from them."""
    last = -1
    for start, end, put in found:
        if start >= last:
            first = _line_start(text, start)
            if first > max(last, 0):
                yield max(last, 0), first, "\n"
            last = _line_end(text, end)
        yield start, end, put
    if last < len(text):
        yield last, len(text), "\n"


def _line_start(text: str, at: int) -> int:
    line = text.rfind("\n", max(0, at - _MAX_LINE), at) + 1
    if line or at <= _MAX_LINE:
        return line
    return max(text.rfind(" ", 0, at - _MARK_CONTEXT), at - _MAX_LINE)


def _line_end(text: str, at: int) -> int:
    line = text.find("\n", at, at + _MAX_LINE)
    if line >= 0:
        return line
    blank = text.find(" ", at + _MARK_CONTEXT, at + _MAX_LINE)
    return blank if blank >= 0 else min(len(text), at + _MAX_LINE)
