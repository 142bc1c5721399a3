"""Styled text for a terminal: roles, spans, colours, wrapping and cutting.

`Style.line` is the only place that writes an escape sequence, and the last one that text passes through.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple

from threadline.render.safe_text import clip, display_width, fitting_length, plain

PROMPT_SIGN = "❯"  # noqa: RUF001 - the sign that Claude Code itself puts before a prompt
"""The sign before a prompt."""


# Signs of acts; all others have the sign of a prompt. A command is typed, but is not a prompt.
_ACT_SIGNS = {"shell": "!", "memory": "#", "command": "▸", "interrupt": "■", "plan": "◆"}


def act_sign(kind: str) -> str:
    """The sign before an act of this kind."""
    return _ACT_SIGNS.get(kind, PROMPT_SIGN)


class Role(StrEnum):
    """The role of a piece of text, which determines its colour."""

    BODY = "body"
    PROMPT = "prompt"
    TITLE = "title"
    HEADING = "heading"
    STRONG = "strong"
    EMPHASIS = "emphasis"
    CODE = "code"
    TOOL = "tool"
    FAINT = "faint"
    GOOD = "good"
    BAD = "bad"
    NOTICE = "notice"
    ADDED = "added"
    REMOVED = "removed"
    AGENT = "agent"


# Only the sixteen colours that every terminal has, so that the user's colour scheme applies.
_COLOUR_CODES: dict[Role, str] = {
    Role.PROMPT: "1;36",
    Role.TITLE: "1",
    Role.HEADING: "1;34",
    Role.STRONG: "1",
    Role.EMPHASIS: "3",
    Role.CODE: "36",
    Role.TOOL: "1",
    Role.FAINT: "2",
    Role.GOOD: "32",
    Role.BAD: "31",
    Role.NOTICE: "33",
    Role.ADDED: "32",
    Role.REMOVED: "31",
    Role.AGENT: "35",
}


class Span(NamedTuple):
    """A piece of a line with a role."""

    text: str
    role: Role = Role.BODY


Spans = tuple[Span, ...]
"""A line, or a paragraph before it is wrapped."""


class Style:
    """Converts spans to a line. This is the only place that writes escape sequences, and the last that text passes."""

    def __init__(self, *, colour: bool) -> None:
        self._codes: Mapping[Role, str] = _COLOUR_CODES if colour else {}

    def line(self, spans: Iterable[Span]) -> str:
        """One line without trailing white space."""
        kept: list[Span] = []
        for span in spans:
            if kept and kept[-1].role is span.role:
                kept[-1] = Span(kept[-1].text + span.text, span.role)
            elif span.text:
                kept.append(span)
        while kept and not kept[-1].text.strip():
            kept.pop()
        if kept:
            kept[-1] = Span(kept[-1].text.rstrip(), kept[-1].role)
        return "".join(map(self._shown, kept))

    def _shown(self, span: Span) -> str:
        code = self._codes.get(span.role)
        safe = plain(span.text)
        return f"\x1b[{code}m{safe}\x1b[0m" if code is not None else safe


def should_use_colour(environment: Mapping[str, str], *, terminal: bool) -> bool:
    """Whether to use colours: on a terminal that supports them, unless NO_COLOR (no-color.org) is set."""
    return terminal and not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"


_WORDS = re.compile(r"\s+|\S+")
_MIN_WIDTH = 10
"""The minimum number of columns, however deep something is nested."""


def line_width(spans: Iterable[Span]) -> int:
    """The number of columns of the spans."""
    return sum(display_width(span.text) for span in spans)


def wrap(spans: Iterable[Span], width: int, *, first: Spans = (), rest: Spans = ()) -> Iterator[Spans]:
    """Wrap a paragraph at white space. `first` is put before its first line, `rest` before the others."""
    line: list[Span] = list(first)
    room = left = max(_MIN_WIDTH, width - line_width(first))
    for gap, word in _split_words(spans):
        space = gap if left < room else Span("")
        if left < room and line_width((space, *word)) > left:
            yield tuple(line)
            line = list(rest)
            room = left = max(_MIN_WIDTH, width - line_width(rest))
            space = Span("")
        line.append(space)
        left -= display_width(space.text)
        for piece in word:
            text, start = piece.text, 0
            while (end := fitting_length(text, left, start)) < len(text):
                end = max(end, start + int(left == room))
                line.append(Span(text[start:end], piece.role))
                yield tuple(line)
                start = end
                line = list(rest)
                room = left = max(_MIN_WIDTH, width - line_width(rest))
            line.append(Span(text[start:], piece.role))
            left -= display_width(text[start:])
    yield tuple(line)


def split_indent(line: str, width: int) -> tuple[str, str]:
    """Split a line into its indent and the rest. The indent takes at most half of the width."""
    rest = line.lstrip()
    return line[: min(len(line) - len(rest), max(0, width) // 2)], rest


def _split_words(spans: Iterable[Span]) -> Iterator[tuple[Span, list[Span]]]:
    """The words, each with the white space before it. A word may consist of several spans."""
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


def wrap_hard(text: str, width: int) -> Iterator[str]:
    """Split a line of code or output into pieces that fit, keeping its white space."""
    room = max(_MIN_WIDTH, width)
    start = 0
    while (end := fitting_length(text, room, start)) < len(text):
        end = max(end, start + 1)
        yield text[start:end]
        start = end
    yield text[start:]


def cut_line(spans: Iterable[Span], width: int) -> Spans:
    """Cut a line with an ellipsis if it does not fit."""
    kept: list[Span] = []
    left = width
    for span in spans:
        text = plain(span.text)
        taken = display_width(text)
        if taken > left:
            kept.append(Span(clip(text, max(1, left)), span.role))
            break
        kept.append(Span(text, span.role))
        left -= taken
    return tuple(kept)


def labelled_rule(label: Spans, width: int, *, line: str = "─", role: Role = Role.FAINT) -> Spans:
    """A horizontal rule with a label near its start."""
    shown = cut_line(label, max(_MIN_WIDTH, width - 6))
    rest = max(0, width - 4 - line_width(shown))
    return (Span(line * 2 + " ", role), *shown, Span(" " + line * rest, role))
