"""Views of a text in which hidden, encoded and broken words are plain, with positions in the original text."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from operator import itemgetter

from threadline.redact.decoding import Part, find_encoded, find_escapes, find_lookalikes, foreign_characters
from threadline.redact.rejoining import find_broken
from threadline.redact.rules.patterns import LiteralPattern, compile_lazily

# By the standard a sequence may also end with a backslash or a bracket. None does in practice, and another sequence may
# start there.
_SEQUENCE_END = "[0-?]{0,64}[ !$]?[A-Za-z@`{|}~]"
# Colours and other terminal sequences, unescaped. Each starts with a rare character, which makes the search fast.
_SEQUENCE = LiteralPattern("\x1b", f"\x1b(?:\\[{_SEQUENCE_END}|\\][^\x07\x1b]{{0,512}}(?:\x07|\x1b\\\\)|[()][AB0])")
_SEQUENCE_8_BIT = compile_lazily(f"\x9b{_SEQUENCE_END}")
# The same escaped, in JSON, in JSON within JSON, and in programs.
_MAYBE_ESCAPED_SEQUENCE = LiteralPattern("[", r"\[(?<=(?:1b|1B|33|\\e)\[)")
_ESCAPED_SEQUENCE = compile_lazily(rf"\\\\{{0,15}}(?:u001[bB]|x1[bB]|033|e)\[{_SEQUENCE_END}")
# Invisible characters, unescaped and escaped; backspace; NUL.
# All that Unicode calls default-ignorable, and marks that are drawn over a letter. A variation selector counts only
# inside a word, because emoji have one.
_INVISIBLE = compile_lazily(
    "[\u200b-\u200f\u2060-\u206f\ufeff\u00ad\u202a-\u202e\u0300-\u036f\u20d0-\u20e2\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\uffa0"
    "\ufff0-\ufff8\ufe00-\ufe0f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_ESCAPED_INVISIBLE = LiteralPattern(
    "\\",
    r"\\\\{0,15}(?:u(?:0000|200[b-fB-F]|202[a-eA-E]|206[0-9a-fA-F]|[fF][eE][fF][fF]|00[aA][dD]|034[fF]|061[cC]|115[fF]|1160"
    r"|17[bB][45]|180[b-fB-F]|3164|[fF][fF][aA]0|[fF][eE]0[0-9a-fA-F])|x00"
    # Before something hidden it may be the start of another sequence, which the next view shows.
    r"|0(?![0-9\\?\x00-\x1f\x7f-\U0010ffff]))",
)
_BACKSPACE = LiteralPattern("\x08", "\x08")
_OVERSTRUCK = compile_lazily("[^\x08\n]\x08")
_NUL = LiteralPattern("\0", "\0")
_CARET_NUL = LiteralPattern("^", r"\^@")


def find_hidden(text: str, plain: str, foreign: str) -> list[Part]:
    """Find hidden characters and sequences.

    `plain` is the text with a question mark for each character that is not ASCII, and `foreign` are these characters.
    """
    spans = [match.span() for pattern in (_SEQUENCE, _BACKSPACE, _NUL) for match in pattern.finditer(plain)]
    if _MAYBE_ESCAPED_SEQUENCE.search(plain):
        spans += [match.span() for match in _ESCAPED_SEQUENCE.finditer(plain)]
    spans += [match.span() for pattern in (_ESCAPED_INVISIBLE, _CARET_NUL) for match in pattern.finditer(plain)]
    if "\x9b" in foreign:
        spans += [match.span() for match in _SEQUENCE_8_BIT.finditer(text)]
    for character in {*_INVISIBLE.findall(foreign)} if foreign else ():
        is_selector = "\ufe00" <= character <= "\ufe0f"
        pattern = re.escape(character) + ("(?<=[!-~].)(?=[!-~])" if is_selector else "")
        spans += [match.span() for match in re.finditer(pattern, text)]
    return [Part(start, end, "") for start, end in sorted({*spans})]


class TextView:
    """A text with parts replaced, which maps positions back to the original text.

    Each of `parts` is (start, end, replacement, …) in the order of the text; a part that overlaps the one before is
    ignored. `below` is the view that this one was created from; None if it was created from the text itself. `places`
    are the positions in the original text that a view of the text itself decodes or joins.
    """

    def __init__(
        self, text: str, parts: Iterable[Part], below: TextView | None = None, places: Iterable[tuple[int, int]] = ()
    ) -> None:
        self._below = below
        self.places = places
        self._source = text
        self._parts: list[Part] = []
        self._starts: list[int] = []
        self._units: dict[int, list[tuple[int, int]]] = {}
        pieces: list[str] = []
        last = length = 0
        for part in parts:
            if part.start < last:
                continue
            pieces += [text[last : part.start], part.text]
            length += part.start - last
            self._starts.append(length)
            self._parts.append(part)
            length += len(part.text)
            last = part.end
        self.text = "".join([*pieces, text[last:]])

    def where(self, start: int, end: int) -> tuple[int, int]:
        """The position of a span of this view in the original text."""
        first, last = self._at(start)[0], self._at(max(start, end - 1))[1]
        return self._below.where(first, last) if self._below is not None else (first, last)

    def _at(self, position: int) -> tuple[int, int]:
        """The position below this view of a character of this view."""
        index = bisect_right(self._starts, position) - 1
        if index < 0:
            return position, position + 1
        part = self._parts[index]
        offset = position - self._starts[index]
        if offset < len(part.text):
            if index not in self._units:
                self._units[index] = part.unit_positions(self._source)
            units = self._units[index]
            return units[offset] if offset < len(units) else (part.start, part.end)
        at = part.end + offset - len(part.text)
        return at, at + 1


_MAX_DEPTH = 4.0
# Hidden characters are nested more often than encodings.
_HIDDEN_DEPTH = 0.25
_MIN_BUDGET = 1 << 16
_BUDGET_FACTOR = 4
"""All views together are at most this many times as long as the text, so that the time stays linear."""


# Most texts of a transcript are names, ids, times and short paths.
_PLAIN_WORD = compile_lazily(r"[A-Za-z0-9_.:/ -]{0,19}|[0-9a-f-]{36}|(?:toolu|msg|req|agent)_\w{0,40}", re.ASCII)


def text_views(text: str) -> list[TextView]:
    """Views of a text in which hidden, encoded and broken words are plain.

    A view may have views itself, because encodings are nested. Views of encoded text contain only the lines that have
    an encoded part.
    """
    return complete_views(text)[0]


def complete_views(text: str) -> tuple[list[TextView], bool]:
    """The same, and whether that are all views: of a text with very many, the last are left out."""
    views: list[TextView] = []
    if _PLAIN_WORD.fullmatch(text):
        return views, True
    budget = max(_MIN_BUDGET, _BUDGET_FACTOR * len(text))
    seen = {hash(text)}
    pending: list[tuple[str, TextView | None, float]] = [(text, None, 0)]
    while pending:
        current, below, depth = pending.pop()
        for added_depth, parts in _transform(current):
            places = [(part.start, part.end) for part in parts] if below is None else ()
            view = TextView(current, _keep_marked_lines(current, parts), below, places)
            if hash(view.text) in seen:
                continue
            budget -= len(view.text)
            if budget < 0:
                return views, False
            seen.add(hash(view.text))
            views.append(view)
            if depth + added_depth <= _MAX_DEPTH:
                pending.append((view.text, view, depth + added_depth))
    return views, True


_MAX_LINE = 2000
_MARK_CONTEXT = 600
_WORD_CLASS = "[A-Za-z0-9_-]"
# Each starts with a rare sign, which makes the search fast. Both sides must be part of a word.
_MARKDOWN_ESCAPE = LiteralPattern("\\", r"\\(?<=[A-Za-z0-9]\\)\\{0,3}(?=[_*~-][A-Za-z0-9])")
_EMPHASIS = tuple(
    LiteralPattern(sign, f"[{sign}](?<={_WORD_CLASS}{{3}}[{sign}]){rest}(?={_WORD_CLASS}{{4}})")
    for sign, rest in (
        ("*", r"\*{0,2}"),
        ("~", "~"),
        ("`", "`?"),
        ("<", r"/?[a-z][a-z0-9]{0,9}(?:[ ][^<>\n]{0,200})?/?>(?:</?[a-z][a-z0-9]{0,9}(?:[ ][^<>\n]{0,200})?/?>){0,4}"),
    )
)


def _find_markup(text: str, plain: str, foreign: str) -> list[Part]:
    """Find Markdown and HTML markup inside words, and escapes."""
    parts = [Part(*match.span(), "") for pattern in (_MARKDOWN_ESCAPE, *_EMPHASIS) for match in pattern.finditer(plain)]
    parts += find_escapes(plain)
    if foreign:
        parts += find_lookalikes(text, foreign)
    return sorted(parts, key=itemgetter(0))


def _transform(text: str) -> Iterator[tuple[float, list[Part]]]:
    """The parts to replace for each view, each with the depth that the view adds."""
    foreign = foreign_characters(text)
    # A text of ASCII characters takes less memory and is searched faster.
    plain = text.encode("ascii", "replace").decode() if foreign else text
    # A terminal sequence can start with this character, which must not be taken for a part of another one.
    hidden = find_hidden(text, text if "\x9b" in foreign else plain, foreign)
    if hidden:
        yield _HIDDEN_DEPTH, hidden
    if "\x08" in plain:  # bold and underlined characters of a printer
        yield _HIDDEN_DEPTH, [Part(*match.span(), "") for match in _OVERSTRUCK.finditer(plain)]
    for parts in (_find_markup(text, plain, foreign), find_encoded(plain), *find_broken(text, plain, foreign)):
        if parts:
            yield 1, parts


def _keep_marked_lines(text: str, parts: list[Part]) -> Iterator[Part]:
    """The parts, everything between their lines, and the pieces of long lines that are far from a part."""
    last = -1
    for part in parts:
        if part.start >= last:
            first = _line_start(text, part.start)
            if first > max(last, 0):
                yield Part(max(last, 0), first, "\n\n")
        yield part
        if part.end > last:
            last = _line_end(text, part.end)
    if last < len(text):
        yield Part(last, len(text), "\n")


def _line_start(text: str, at: int) -> int:
    """The start of the line before the one at a position, or of a piece of a long line."""
    floor = max(0, at - _MAX_LINE)
    line = text.rfind("\n", floor, at) + 1
    if line or not floor:
        return max(text.rfind("\n", floor, max(floor, line - 1)) + 1, floor) if line else 0
    return max(text.rfind(" ", floor, at - _MARK_CONTEXT), floor)


def _line_end(text: str, at: int) -> int:
    """The end of the line at a position, or of a piece of a long line."""
    line = text.find("\n", at, at + _MAX_LINE)
    if line >= 0:
        return line
    blank = text.find(" ", at + _MARK_CONTEXT, at + _MAX_LINE)
    return blank if blank >= 0 else min(len(text), at + _MAX_LINE)
