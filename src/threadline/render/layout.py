"""Spans into lines that fit: wide characters count twice, and a word longer than a line is cut."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from threadline.render.style import Role, Span, Spans
from threadline.render.terminal_text import clip, columns, fitting, plain

_WORDS = re.compile(r"\s+|\S+")
_LEAST = 10
"""However deep something is nested, this many columns are left for it."""


def width_of(spans: Iterable[Span]) -> int:
    """How many columns the spans take."""
    return sum(columns(span.text) for span in spans)


def wrap(spans: Iterable[Span], width: int, *, first: Spans = (), rest: Spans = ()) -> Iterator[Spans]:
    """Wrap a paragraph at white space; `first` and `rest` stand before its first line and the others."""
    line: list[Span] = list(first)
    room = left = max(_LEAST, width - width_of(first))
    for gap, word in _words(spans):
        space = gap if left < room else Span("")
        if left < room and width_of((space, *word)) > left:
            yield tuple(line)
            line = list(rest)
            room = left = max(_LEAST, width - width_of(rest))
            space = Span("")
        line.append(space)
        left -= columns(space.text)
        for piece in word:
            text, start = piece.text, 0
            while (end := fitting(text, left, start)) < len(text):
                end = max(end, start + int(left == room))
                line.append(Span(text[start:end], piece.role))
                yield tuple(line)
                start = end
                line = list(rest)
                room = left = max(_LEAST, width - width_of(rest))
            line.append(Span(text[start:], piece.role))
            left -= columns(text[start:])
    yield tuple(line)


def indented(line: str, width: int) -> tuple[str, str]:
    """The white space a line begins with, and the rest; of a narrow page it takes no more than half."""
    rest = line.lstrip()
    return line[: min(len(line) - len(rest), max(0, width) // 2)], rest


def _words(spans: Iterable[Span]) -> Iterator[tuple[Span, list[Span]]]:
    """The words, each with the white space before it; a word may be made of several spans."""
    gap = Span("")
    word: list[Span] = []
    for span in spans:
        for match in _WORDS.finditer(plain(span.text.replace("\n", " ").replace("\t", " "))):
            if not match[0].isspace():
                word.append(Span(match[0], span.role))
                continue
            if word:
                yield gap, word
            gap, word = Span(match[0], span.role), []
    if word:
        yield gap, word


def hard(text: str, width: int) -> Iterator[str]:
    """A line of code or output in pieces that fit: its white space is part of it."""
    room = max(_LEAST, width)
    start = 0
    while (end := fitting(text, room, start)) < len(text):
        end = max(end, start + 1)
        yield text[start:end]
        start = end
    yield text[start:]


def cut(spans: Iterable[Span], width: int) -> Spans:
    """One line that fits, cut with an ellipsis where it does not."""
    kept: list[Span] = []
    left = width
    for span in spans:
        text = plain(span.text)
        taken = columns(text)
        if taken > left:
            kept.append(Span(clip(text, max(1, left)), span.role))
            break
        kept.append(Span(text, span.role))
        left -= taken
    return tuple(kept)


def rule(label: Spans, width: int, *, line: str = "─", role: Role = Role.FAINT) -> Spans:
    """A line across with a label near its beginning."""
    shown = cut(label, max(_LEAST, width - 6))
    rest = max(0, width - 4 - width_of(shown))
    return (Span(line * 2 + " ", role), *shown, Span(" " + line * rest, role))
