"""Light Markdown for a terminal: an allow-list of what replies are written in. There is no HTML: tags are text.

It goes line by line and keeps the lines as they were written, as the program itself does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from threadline.render.layout import hard, indented, wrap
from threadline.render.markdown_table import is_row, table
from threadline.render.style import Role, Span, Spans
from threadline.render.terminal_text import plain_lines

# What can stand within a line. Lengths are bounded, so that no text takes more than its share of time.
_INLINE = re.compile(
    r"(?P<ticks>`{1,3})(?P<code>[^`](?:.{0,1000}?[^`])?)(?P=ticks)(?!`)"
    r"|\*\*(?P<strong>\S(?:.{0,1000}?\S)?)\*\*"
    r"|(?<![\w*])\*(?P<emphasis>[^\s*](?:[^*]{0,500}[^\s*])?)\*(?![\w*])"
    r"|!?\[(?P<label>[^\]\[]{1,300})\]\((?P<address>[^()\s]{1,500})\)"
)
_HEADING = re.compile(r"\s{0,3}(#{1,6})\s+(?P<text>.*)")
_ITEM = re.compile(r"(?P<indent>\s*)(?P<mark>[-*+]|\d{1,9}[.)])\s+(?P<text>.*)")
_QUOTE = re.compile(r"\s{0,3}>\s?(?P<text>.*)")
_RULE = re.compile(r"\s{0,3}(?:-\s*){3,}|\s{0,3}(?:\*\s*){3,}|\s{0,3}(?:_\s*){3,}")
_FENCE = re.compile(r"\s*(?P<fence>`{3,}|~{3,})[^`]*")
_BOXES = {"[ ] ": "☐ ", "[x] ": "☒ ", "[X] ": "☒ "}
# Beyond this a line is data rather than prose.
_LONGEST = 20_000


def markdown(text: str, width: int) -> Iterator[Spans]:
    """The lines of a text; blank lines at its ends are left out, and several become one."""
    blank = False
    begun = False
    for line in _lines(text, width):
        if not line:
            blank = begun
            continue
        if blank:
            yield ()
        blank, begun = False, True
        yield line


def inline(text: str) -> Iterator[Span]:
    """One line's text with what stands within it."""
    at = 0
    for match in _INLINE.finditer(text) if len(text) <= _LONGEST else ():
        if match.start() > at:
            yield Span(text[at : match.start()])
        at = match.end()
        yield from _within(match)
    if at < len(text):
        yield Span(text[at:])


def _within(match: re.Match[str]) -> Iterator[Span]:
    for name, role in (("code", Role.CODE), ("strong", Role.STRONG), ("emphasis", Role.EMPHASIS)):
        if match[name] is not None:
            yield Span(match[name], role)
            return
    # The address is always shown: a label may lie about it.
    label, address = match["label"], match["address"]
    yield Span(label)
    if label != address:
        yield Span(f" ({address})", Role.FAINT)


def _lines(text: str, width: int) -> Iterator[Spans]:
    fence = ""
    rows: list[str] = []
    for line in plain_lines(text):
        mark = _FENCE.fullmatch(line)
        if fence:
            if mark and mark["fence"].startswith(fence):
                fence = ""
            else:
                yield from _code(line, width)
            continue
        if is_row(line):
            rows.append(line)
            continue
        yield from table(rows, width, inline)
        rows = []
        if mark:
            fence = mark["fence"]
        else:
            yield from _line(line, width)
    yield from table(rows, width, inline)


def _code(line: str, width: int) -> Iterator[Spans]:
    for piece in hard(line, width - 2):
        # A blank line inside code stays: a span that holds a space is a line.
        yield (Span("  "), Span(piece or " ", Role.CODE))


def _line(line: str, width: int) -> Iterator[Spans]:
    if not line.strip():
        yield ()
        return
    if _RULE.fullmatch(line):
        yield (Span("─" * min(width, 40), Role.FAINT),)
        return
    for pattern, draw in _BLOCKS:
        match = pattern.fullmatch(line)
        if match:
            yield from draw(match, width)
            return
    space, rest = indented(line, width)
    indent = (Span(space),)
    yield from wrap(inline(rest), width, first=indent, rest=indent)


def _heading(match: re.Match[str], width: int) -> Iterator[Spans]:
    text = match["text"].rstrip("#").rstrip()
    yield from wrap((Span(span.text, Role.HEADING) for span in inline(text)), width)


def _item(match: re.Match[str], width: int) -> Iterator[Spans]:
    mark = match["mark"]
    bullet = mark + " " if mark[:-1].isdecimal() else "• "
    text = match["text"]
    box = _BOXES.get(text[:4])
    if box is not None:
        bullet, text = box, text[4:]
    indent, _ = indented(match["indent"] + ".", width)
    first = (Span(indent), Span(bullet, Role.FAINT))
    rest = (Span(indent + " " * len(bullet)),)
    yield from wrap(inline(text), width, first=first, rest=rest)


def _quote(match: re.Match[str], width: int) -> Iterator[Spans]:
    bar = (Span("│ ", Role.FAINT),)
    yield from wrap(inline(match["text"]), width, first=bar, rest=bar)


_BLOCKS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], int], Iterator[Spans]]], ...] = (
    (_HEADING, _heading),
    (_ITEM, _item),
    (_QUOTE, _quote),
)
