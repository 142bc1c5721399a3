"""Render Markdown for a terminal, line by line.

Only the elements that replies use are recognised, and HTML tags are shown as text. Line breaks are kept,
as in Claude Code itself. A table is aligned if it fits, otherwise its rows are shown as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from threadline.render.text import Role, Span, Spans, line_width, plain_lines, split_indent, wrap, wrap_hard

# Inline markup. Lengths are bounded, so that the time is bounded for any text.
_INLINE = re.compile(
    r"(?P<ticks>`{1,3})(?P<code>[^`](?:.{0,1000}?[^`])?)(?P=ticks)(?!`)"
    r"|\*\*(?P<strong>\S(?:.{0,1000}?\S)?)\*\*"
    r"|(?<![\w*])\*(?P<emphasis>[^\s*](?:[^*]{0,500}[^\s*])?)\*(?![\w*])"
    r"|!?\[(?P<label>[^\]\[]{1,300})\]\((?P<address>[^()\s]{1,500})\)"
)
_HEADING = re.compile(r"\s{0,3}(#{1,6})\s+(?P<text>.*)")
_HEADING_END = re.compile(r"(?:^|\s)#+\s*\Z")
_ITEM = re.compile(r"(?P<indent>\s*)(?P<mark>[-*+]|\d{1,9}[.)])\s+(?P<text>.*)")
_QUOTE = re.compile(r"\s{0,3}>\s?(?P<text>.*)")
_RULE = re.compile(r"\s{0,3}(?:-\s*){3,}|\s{0,3}(?:\*\s*){3,}|\s{0,3}(?:_\s*){3,}")
_FENCE = re.compile(r"\s*(?P<fence>`{3,}|~{3,})[^`]*")
_BOXES = {"[ ] ": "☐ ", "[x] ": "☒ ", "[X] ": "☒ "}
# A longer line is data rather than prose.
_MAX_LINE = 20_000


def markdown_lines(text: str, width: int) -> Iterator[Spans]:
    """The lines of a text, without blank lines at its ends. Several blank lines become one."""
    blank = False
    begun = False
    for line in _source_lines(text, width):
        if not line:
            blank = begun
            continue
        if blank:
            yield ()
        blank, begun = False, True
        yield line


def inline_spans(text: str) -> Iterator[Span]:
    """The text of one line with its inline markup as spans."""
    at = 0
    for match in _INLINE.finditer(text) if len(text) <= _MAX_LINE else ():
        if match.start() > at:
            yield Span(text[at : match.start()])
        at = match.end()
        yield from _match_spans(match)
    if at < len(text):
        yield Span(text[at:])


def _match_spans(match: re.Match[str]) -> Iterator[Span]:
    for name, role in (("code", Role.CODE), ("strong", Role.STRONG), ("emphasis", Role.EMPHASIS)):
        if match[name] is not None:
            yield Span(match[name], role)
            return
    # The URL is always shown, because a label may be misleading.
    label, address = match["label"], match["address"]
    yield Span(label)
    if label != address:
        yield Span(f" ({address})", Role.FAINT)


def _source_lines(text: str, width: int) -> Iterator[Spans]:
    fence = ""
    rows: list[str] = []
    for line in plain_lines(text):
        mark = _FENCE.fullmatch(line)
        if fence:
            if mark and line.strip() == mark["fence"] and mark["fence"].startswith(fence):
                fence = ""
            else:
                yield from _code_lines(line, width)
            continue
        if _TABLE_ROW.fullmatch(line):
            rows.append(line)
            continue
        yield from _table_lines(rows, width)
        rows = []
        if mark:
            fence = mark["fence"]
        else:
            yield from _block_lines(line, width)
    yield from _table_lines(rows, width)


def _code_lines(line: str, width: int) -> Iterator[Spans]:
    for piece in wrap_hard(line, width - 2):
        # A blank line inside code is kept: a span with a space counts as a line.
        yield (Span("  "), Span(piece or " ", Role.CODE))


def _block_lines(line: str, width: int) -> Iterator[Spans]:
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
    space, rest = split_indent(line, width)
    indent = (Span(space),)
    yield from wrap(inline_spans(rest), width, first=indent, rest=indent)


def _heading_lines(match: re.Match[str], width: int) -> Iterator[Spans]:
    # Signs at the end close a heading only after a space: `## Notes on C#`.
    text = _HEADING_END.sub("", match["text"]).rstrip()
    yield from wrap((Span(span.text, Role.HEADING) for span in inline_spans(text)), width)


def _item_lines(match: re.Match[str], width: int) -> Iterator[Spans]:
    mark = match["mark"]
    bullet = mark + " " if mark[:-1].isdecimal() else "• "
    text = match["text"]
    box = _BOXES.get(text[:4])
    if box is not None:
        bullet, text = box, text[4:]
    indent, _ = split_indent(match["indent"] + ".", width)
    first = (Span(indent), Span(bullet, Role.FAINT))
    rest = (Span(indent + " " * len(bullet)),)
    yield from wrap(inline_spans(text), width, first=first, rest=rest)


def _quote_lines(match: re.Match[str], width: int) -> Iterator[Spans]:
    bar = (Span("│ ", Role.FAINT),)
    yield from wrap(inline_spans(match["text"]), width, first=bar, rest=bar)


_BLOCKS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], int], Iterator[Spans]]], ...] = (
    (_HEADING, _heading_lines),
    (_ITEM, _item_lines),
    (_QUOTE, _quote_lines),
)


_TABLE_ROW = re.compile(r"\s*\|.*\|\s*")
_SEPARATOR_ROW = re.compile(r"[\s|:-]*")
_CELL_BORDER = re.compile(r"(?<!\\)\|")


def _table_lines(rows: list[str], width: int) -> Iterator[Spans]:
    """The rows of a table with a rule under its heading; empty without rows."""
    if not rows:
        return
    # Only the row below the heading is a rule. Any other row of dashes has dashes as its values.
    cells = [
        None if at == 1 and "-" in row and _SEPARATOR_ROW.fullmatch(row) else _split_cells(row)
        for at, row in enumerate(rows)
    ]
    widths = _column_widths(row for row in cells if row is not None)
    if sum(widths) + 3 * (len(widths) - 1) > width:
        for written in rows:
            yield from wrap(inline_spans(written.strip()), width)
        return
    for row in cells:
        if row is None:
            yield (Span("─┼─".join("─" * column_width for column_width in widths), Role.FAINT),)
        else:
            yield tuple(_pad_cells(row, widths))


def _split_cells(row: str) -> list[Spans]:
    inner = row.strip().removeprefix("|").removesuffix("|")
    return [tuple(inline_spans(cell.strip().replace("\\|", "|"))) for cell in _CELL_BORDER.split(inner)]


def _column_widths(rows: Iterable[list[Spans]]) -> list[int]:
    """The width of each column. Rows may have different numbers of cells."""
    widths: list[int] = []
    for row in rows:
        widths += [0] * (len(row) - len(widths))
        for at, cell in enumerate(row):
            widths[at] = max(widths[at], line_width(cell))
    return widths


def _pad_cells(row: list[Spans], widths: list[int]) -> Iterator[Span]:
    missing: list[Spans] = [()] * (len(widths) - len(row))
    for at, (cell, width) in enumerate(zip([*row, *missing], widths, strict=True)):
        if at:
            yield Span(" │ ", Role.FAINT)
        yield from cell
        yield Span(" " * (width - line_width(cell)))
