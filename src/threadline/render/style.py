"""Spans and styles: what a piece of text is, and how a terminal shows that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from threadline.render.terminal_text import plain

ASKS = "❯"  # noqa: RUF001 - the sign that Claude Code itself puts before a prompt
"""Stands before what a person said."""


# The signs of acts; all others are a person's words, and have that sign. A command is no prompt, though it is typed.
_ACTS = {"shell": "!", "memory": "#", "command": "▸", "interrupt": "■", "plan": "◆"}


def act_sign(kind: str) -> str:
    """The sign before an act of that kind."""
    return _ACTS.get(kind, ASKS)


class Role(StrEnum):
    """What a piece of text is."""

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


# Only the sixteen colours that every terminal has, in whatever shade its owner chose.
_CODES: dict[Role, str] = {
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
    """A piece of a line."""

    text: str
    role: Role = Role.BODY


Spans = tuple[Span, ...]
"""A line, or a paragraph before it is wrapped."""


class Style:
    """Turns spans into a line: the only place where an escape sequence is made, and the last one text comes through."""

    def __init__(self, *, colour: bool) -> None:
        self._codes: Mapping[Role, str] = _CODES if colour else {}

    def line(self, spans: Iterable[Span]) -> str:
        """One line, without white space at its end."""
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


def colour_wanted(environment: Mapping[str, str], *, terminal: bool) -> bool:
    """Whether to use colours: on a terminal that has them, unless NO_COLOR (no-color.org) says not to."""
    return terminal and not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"
