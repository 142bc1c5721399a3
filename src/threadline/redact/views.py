"""Views of a text without what can hide a word: terminal sequences, invisible characters, Markdown and HTML markup."""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator

# Each view is one more scan of the text, so their number is limited. Real terminal output needs two.
_MAX_NESTED = 16
# By the standard a sequence may also end with a backslash or a bracket. None does in practice, and another sequence may
# start there.
_SEQUENCE_END = "[0-?]{0,64}[ !$]?[A-Za-z@`{|}~]"
# Colours and other terminal sequences, unescaped. Each starts with a rare character, which makes the search fast.
_SEQUENCE = re.compile(f"\x1b(?:\\[{_SEQUENCE_END}|\\][^\x07\x1b]{{0,512}}(?:\x07|\x1b\\\\)|[()][AB0])")
_SEQUENCE_8_BIT = re.compile(f"\x9b{_SEQUENCE_END}")
# The same escaped, in JSON, in JSON within JSON, and in programs.
_MAYBE_ESCAPED_SEQUENCE = re.compile(r"\[(?<=(?:1b|1B|33|\\e)\[)")
_ESCAPED_SEQUENCE = re.compile(rf"\\{{1,16}}(?:u001[bB]|x1[bB]|033|e)\[{_SEQUENCE_END}")
# Invisible characters, unescaped and escaped; backspace; NUL.
_INVISIBLE = re.compile("[\u200b-\u200f\u2060-\u2064\ufeff\u00ad\u202a-\u202e\u2066-\u2069\u034f]")
_ESCAPED_INVISIBLE = re.compile(r"\\{1,16}u(?:200[b-fB-F]|206[0-4]|[fF][eE][fF][fF]|00[aA][dD])")
_MAYBE_ESCAPED_INVISIBLE = re.compile(r"u(?:200|206|feff|FEFF|00ad|00AD)")
_BACKSPACE = re.compile("\x08")
_NUL = re.compile("\0")


def _find_hidden(text: str) -> list[tuple[int, int]]:
    """The spans of hidden characters and sequences, in order."""
    spans = [match.span() for pattern in (_SEQUENCE, _BACKSPACE, _NUL) for match in pattern.finditer(text)]
    if _MAYBE_ESCAPED_SEQUENCE.search(text):
        spans += [match.span() for match in _ESCAPED_SEQUENCE.finditer(text)]
    if _MAYBE_ESCAPED_INVISIBLE.search(text):
        spans += [match.span() for match in _ESCAPED_INVISIBLE.finditer(text)]
    if not text.isascii():
        spans += [match.span() for pattern in (_SEQUENCE_8_BIT, _INVISIBLE) for match in pattern.finditer(text)]
    return sorted(spans)


class TextView:
    """A text with parts removed, which maps positions back to the original text.

    Each of `seams` is (start, end, replacement of at most one character).
    `below` is the view that this one was created from; None if it was created from the text itself.
    """

    def __init__(self, text: str, seams: Iterable[tuple[int, int, str]], below: TextView | None = None) -> None:
        self._below = below
        self._starts: list[int] = []
        self._moved: list[int] = []
        parts: list[str] = []
        last = removed = 0
        for start, end, replacement in seams:
            if start < last:
                continue
            parts += [text[last:start], replacement]
            removed += end - start - len(replacement)
            last = end
            self._starts.append(last - removed - len(replacement))
            self._moved.append(removed)
        self.text = "".join([*parts, text[last:]])

    def where(self, start: int, end: int) -> tuple[int, int]:
        """The position of a span of this view in the original text."""
        first, last = self._at(start), self._at(end - 1) + 1
        return self._below.where(first, last) if self._below is not None else (first, last)

    def _at(self, position: int) -> int:
        index = bisect_right(self._starts, position)
        return position + (self._moved[index - 1] if index else 0)


def text_views(text: str) -> Iterator[TextView]:
    """Yield the text without hidden characters, and again without those that appear only after a removal.

    The last view contains only the lines with Markdown or HTML markup inside words, without this markup.
    """
    current, below = text, None
    for _round in range(_MAX_NESTED):
        seams = _find_hidden(current)
        if not seams:
            break
        below = TextView(current, [(start, end, "") for start, end in seams], below)
        current = below.text
        yield below
    removals = markup_removals(current)
    if removals:
        yield TextView(current, removals, below)


_MAX_LINE = 2000
_MARK_CONTEXT = 600
_WORD_CLASS = "[A-Za-z0-9_-]"
# Each starts with a rare sign, which makes the search fast. Both sides must be part of a word.
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
    """The parts to remove so that only lines with markup remain, without the markup; empty if there is no markup.

    Each is (start, end, replacement).
    """
    marks = sorted(_find_markup(text))
    return list(_keep_marked_lines(text, marks)) if marks else []


def _find_markup(text: str) -> Iterator[tuple[int, int, str]]:
    for pattern in (_MARKDOWN_ESCAPE, *_EMPHASIS):
        yield from ((*match.span(), "") for match in pattern.finditer(text))
    for match in _ENTITY.finditer(text):
        character = html.unescape(match[0])
        if len(character) == 1 and _WORD_CHARACTER.match(character):
            yield (*match.span(), character)


def _keep_marked_lines(text: str, marks: list[tuple[int, int, str]]) -> Iterator[tuple[int, int, str]]:
    """The marks, everything between their lines, and the parts of long lines that are far from a mark."""
    last = -1
    for start, end, replacement in marks:
        if start >= last:
            first = _line_start(text, start)
            if first > max(last, 0):
                yield max(last, 0), first, "\n"
            last = _line_end(text, end)
        yield start, end, replacement
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
