"""Find what separates the pieces of a word: table cells, line prefixes, carriage returns, word diffs, joined strings.

Each function yields lists of parts to replace. Each list becomes one view of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from operator import itemgetter

from threadline.redact.decoding import Part
from threadline.redact.rules.patterns import LiteralPattern, compile_lazily

# Line ends inside words.

_WORD = r"[\w+/=~.-]"
_NUMBER_GUTTER = r"[0-9]{1,6}+(?:[ \t]{0,4}[:|?)]|\t|[ ]{1,2})"
_PLACE_GUTTER = r"(?:[^\s:|]{1,160}+:[0-9]{1,6}+:(?:[0-9]{1,4}+:)?|[^\s:|]{1,160}-[0-9]{1,6}-)"
_BLAME_GUTTER = r"\^?[0-9a-f]{7,40}+ (?:[^\s(]{1,120}+ ++)?\([^\n)]{8,100}+\)"
_LOG_GUTTER = r"[\w.-]{2,40}+[ \t]{1,24}+[|?]"
_COMMENT = r"(?:#{1,4}|//+!?|--+|;{1,3}|\*{1,2}|%{1,2}|REM|rem|dnl|'|!|>+(?: ?>)*)"
_PREFIX = rf"[ \t]{{0,32}}+(?:{_NUMBER_GUTTER}|{_COMMENT}|{_PLACE_GUTTER}|{_LOG_GUTTER}|{_BLAME_GUTTER})([ \t]{{0,16}})"
_MARGIN = compile_lazily(rf"\n(?:[ \t]{{0,32}}+(?:{_NUMBER_GUTTER}|{_PLACE_GUTTER}|{_LOG_GUTTER})([ \t]{{0,16}})|[+-])")
# Before the line end is the sign of a continued line, a word that may continue, or a sign that a value follows.
_LINE_END = LiteralPattern(
    "\n",
    rf"\n(?:(?<=[\\`^]\n)(?=\S)(?![*+-][ ])|(?<=\\\r\n)(?=\S)"
    rf"|(?:(?<={_WORD}{{8}}\n)|(?<=[ \t\r]\n)){_PREFIX}(?={_WORD}{{4}})|(?<=[:=|>]\n){_PREFIX}|(?<=[:=|>]\n)[+-])",
)
_CONTINUATION_SIGNS = frozenset("\\`^")
_LONG_WORD = compile_lazily(rf"{_WORD}{{8}}")
_OPEN_END = compile_lazily(r"[:=][ \t]?[|>]?[+-]?[ \t\r]*\Z")
_SECRET_WORD = compile_lazily(r"(?i)pass|secret|token|key|cred|pwd|auth")
_REACH = 80
_MAX_VALUE_LINES = 8


def find_line_breaks(text: str) -> Iterator[Part]:
    """Find prefixes of lines (numbers, places, comments) after a piece of a word, and continued lines of a shell."""
    for match in _LINE_END.finditer(text):
        start = match.start()
        sign = text[start - 2 : start].rstrip("\r")[-1:]
        near = max(0, start - _REACH)
        if sign in _CONTINUATION_SIGNS and match.end() == start + 1:
            yield Part(text.rindex(sign, near, start), match.end(), "")
        elif _LONG_WORD.fullmatch(text[near:start].rstrip(" \t\r")[-8:]):
            yield Part(*match.span(), "\n" + (match[1] or ""))
        elif _OPEN_END.search(text, near, start) and _SECRET_WORD.search(text, near, start):
            yield from _strip_margins(text, start)


def _strip_margins(text: str, at: int) -> Iterator[Part]:
    """Find the margins of the lines from a line end on."""
    for _ in range(_MAX_VALUE_LINES):
        match = _MARGIN.match(text, at)
        if match is None:
            return
        yield Part(*match.span(), "\n" + (match[1] or ""))
        at = text.find("\n", match.end())
        if at < 0:
            return


# Strings that are joined in code.

_OPERATOR = r"(?:[+.&~]|\.\.|\|\||\+\+|<>|<<)"
# The next line may have a number, as in the output of Claude Code's Read.
_LINE_BREAK = r"(?:[\\_`]?(?:\r?\n|\\n)[ \t]{0,64}(?:[0-9]{1,6}[ \t]{0,4}[?|:\t][ \t]{0,64})?)"
_JOINT = (
    rf"[ \t]{{0,8}}(?:{_OPERATOR}[ \t]{{0,8}}{_LINE_BREAK}?|{_LINE_BREAK}{_OPERATOR}?[ \t]{{0,8}}"
    rf"|\\?{_LINE_BREAK}|[ \t])"
)
_LITERAL = r"[\w+/=~.!#$%&*-]"
_JOINTS = tuple(
    LiteralPattern(
        quote,
        rf"{quote}(?=[ \t+.&~|<\\\r\n])(?<={_LITERAL}{quote}){_JOINT}[fbrFBRuU@$]{{0,2}}{quote}(?={_LITERAL})",
    )
    for quote in ('"', "'", "`")
) + tuple(
    # A shell joins strings in different quotes.
    LiteralPattern(first, rf"{first}(?={second})(?<={_LITERAL}{first}){second}(?={_LITERAL})")
    for first, second in (('"', "'"), ("'", '"'))
)
# Calls that join the strings of a list with nothing between them. The list is in the call or before it.
_JOIN_CALL = LiteralPattern(
    "(",
    r"\((?:(?<=\"\"\.join\()|(?<=''\.join\()|(?<=s\.Join\()|(?<=g\.Join\()|(?<=concat\()|(?<=Concat\()|(?<=CONCAT\()"
    r"|(?<=implode\()|(?<=paste0\()|(?<=[\])]\.join\()(?=[\"'`]{2}\))"
    r"|((?<=ppend\()|(?<=strcat\()|(?<=push_str\()|(?<=strncat\()|(?<=\.write\()|(?<=WriteString\()))",
)
_APPENDED = compile_lazily(
    r"([\"'`])(?<=[\w-]{3}.)(?:[ \t]{0,4}\))?;?\s{0,64}(?:[0-9]{1,6}[ \t]{0,4}[?|:\t][ \t]{0,64})?"
    r"[\w.>-]{0,48}(?:append|Append|concat|push_str|strn?cat|write|WriteString)\((?:\w{1,40},\s?)?\1(?=[\w-]{3})"
)
_CALL_REACH = 600
_LIST_START = compile_lazily(
    r"[=:][ \t]{0,4}((?:[\"'`]{2}\.)?[\w.$]{0,40}\(?\s{0,8}(?:\[\]string)?[\[({]?\s{0,40})(?=[\"'`])"
)
_LIST_SEPARATOR = compile_lazily(r"([\"'`])[ \t]{0,8},(?:\s|\\n){0,40}\1")


def find_joined_strings(text: str) -> Iterator[Part]:
    """Find what is between two strings that are joined by an operator, by their position, or by a call."""
    for pattern in _JOINTS:
        yield from (Part(*match.span(), "") for match in pattern.finditer(text))
    done = appended = 0
    for call in _JOIN_CALL.finditer(text):
        if call.lastindex is None:
            start, end = max(done, call.start() - _CALL_REACH), call.end() + _CALL_REACH
            yield from (Part(*match.span(), "") for match in _LIST_SEPARATOR.finditer(text, start, end))
            yield from (Part(*match.span(1), "") for match in _LIST_START.finditer(text, start, end))
            done = max(done, end)
        match = _APPENDED.search(text, max(appended, call.start() - _APPEND_REACH), call.end() + _APPEND_REACH // 2)
        if match is not None:
            yield Part(*match.span(), "")
            appended = match.end()


_APPEND_REACH = 200


# Carriage returns.

_CARRIAGE_RETURN = LiteralPattern("\r", r"\r(?!\n)")


def find_carriage_returns(text: str) -> Iterator[list[Part]]:
    """Find carriage returns: as line ends, as nothing, and lines of which the terminal shows a mixture."""
    places = [match.start() for match in _CARRIAGE_RETURN.finditer(text)]
    if not places:
        return
    yield [Part(at, at + 1, "\n") for at in places]
    yield [_without_padding(text, at) for at in places]
    shown: list[Part] = []
    end = -1
    for at in places:
        if at > end:
            start = text.rfind("\n", 0, at) + 1
            end = text.find("\n", at)
            end = len(text) if end < 0 else end
            shown.append(Part(start, end, _shown_line(text[start:end])))
    yield [part for part in shown if part.text]


def _without_padding(text: str, at: int) -> Part:
    """A carriage return as nothing. After a label it is a blank, also with the padding before it."""
    near = text[max(0, at - _REACH) : at]
    label = near.rstrip(" \t")
    return Part(at - len(near) + len(label), at + 1, " ") if label[-1:] in {":", "="} else Part(at, at + 1, "")


def _shown_line(line: str) -> str:
    """What a terminal shows of a line, if that is a mixture of its texts."""
    *earlier, last = line.rstrip("\r").split("\r")
    before = _overwritten(earlier)
    return last + before[len(last) :] if len(last) < len(before.rstrip()) else ""


def _overwritten(texts: list[str]) -> str:
    """What is left of texts that are written over each other: a character of the last one that is long enough."""
    parts: list[str] = []
    length = 0
    for text in reversed(texts):
        if len(text) > length:
            parts.append(text[length:])
            length = len(text)
    return "".join(parts)


# Word diffs.

_CHANGE = compile_lazily(r"\[-([^\n]{0,500}?)-\]|\{\+([^\n]{0,500}?)\+\}")
_CHANGE_HINT = LiteralPattern("{", r"\{(?=\+)")
_REMOVAL_HINT = LiteralPattern("[", r"\[(?=-[^\n\]]{1,200}-\])")
# With colours, what is red was removed and what is green was added.
_COLOURED_CHANGE = compile_lazily(
    "\x1b\\[(?:[01];)?(?:31(m[^\x1b\n]{0,2000}\x1b\\[0?m)(?=\x1b\\[(?:[01];)?32m)|32(m[^\x1b\n]{0,2000}\x1b\\[0?m))"
)


def find_changes(text: str) -> Iterator[list[Part]]:
    """Find the changes of a word diff: once without what was removed, and once without what was added."""
    changes = list(_CHANGE.finditer(text)) if _CHANGE_HINT.search(text) or _REMOVAL_HINT.search(text) else []
    for kept in (2, 1) if changes else ():
        yield [part for change in changes for part in _unwrap(change, is_kept=change[kept] is not None)]
    coloured = list(_COLOURED_CHANGE.finditer(text)) if "\x1b" in text else []
    if any(change[1] for change in coloured):
        yield [Part(*change.span(), "") for change in coloured if change[1]]


def _unwrap(change: re.Match[str], *, is_kept: bool) -> list[Part]:
    start, end = change.span()
    return [Part(start, start + 2, ""), Part(end - 2, end, "")] if is_kept else [Part(start, end, "")]


# Tables and boxes.

_ROW_END = LiteralPattern("|", r"\|(?=[ \t]*\r?\n[ \t]*\|)")
_BOX_BARS = "\u2502\u2503\u2551"
_CELL_END = compile_lazily(r"[^\s|]{6}[ \t]*\Z")
_MAX_COLUMNS = 12
_MAX_PADDING = 2
_Cell = tuple[int, int]


def find_wrapped_cells(text: str, plain: str, foreign: str) -> Iterator[list[Part]]:
    """Find what is between the pieces of a word that is wrapped inside a cell. Each column is a view."""
    by_column: dict[int, list[Part]] = {}
    ends = [("|", match.start()) for match in _ROW_END.finditer(plain)]
    for bar in _BOX_BARS:
        if bar in foreign:
            ends += ((bar, match.start()) for match in re.finditer(rf"{bar}(?=[ \t]*\r?\n[ \t]*{bar})", text))
    for bar, at in ends:
        next_line = text.index("\n", at) + 1
        above = _split_cells(text, text.rfind("\n", max(0, at - _MAX_ROW), at) + 1, at, bar)
        end = text.find("\n", next_line, next_line + _MAX_ROW)
        last = text.rfind(bar, next_line, end if end >= 0 else next_line + _MAX_ROW)
        cells = _split_cells(text, next_line, last, bar)
        if above and len(cells) == len(above):
            for column, (upper, lower) in enumerate(zip(above, cells, strict=True)):
                part = _wrapped_gap(text, upper, lower, is_alone=_is_alone(text, cells, column))
                if part is not None:
                    by_column.setdefault(column, []).append(part)
    yield from by_column.values()


_MAX_ROW = 2000


def _split_cells(text: str, start: int, end: int, bar: str) -> list[_Cell]:
    """The positions of a row's cells. The row ends with a bar at `end`; it must also start with one."""
    row = text[start:end]
    if not row.lstrip().startswith(bar):
        return []
    bars = [start + match.start() for match in re.finditer(re.escape(bar), row)] + [end]
    return [(first + 1, last) for first, last in pairwise(bars)][: _MAX_COLUMNS + 1]


def _is_alone(text: str, cells: list[_Cell], column: int) -> bool:
    """Whether a row continues only this column, or another cell of it is empty."""
    return len(cells) == 1 or any(not text[start:end].strip() for start, end in cells[:column] + cells[column + 1 :])


def _wrapped_gap(text: str, upper: _Cell, lower: _Cell, *, is_alone: bool) -> Part | None:
    """The gap between two cells if the lower one can continue a word of the upper one."""
    first, second = text[slice(*upper)], text[slice(*lower)]
    if not is_alone or not second.strip() or not _CELL_END.search(first):
        return None
    is_full = len(first) - len(first.rstrip()) <= _MAX_PADDING
    if not is_full and len(first.split()) > 1:
        return None
    return Part(upper[0] + len(first.rstrip()), lower[0] + len(second) - len(second.lstrip()), "")


# The marks of psql at the borders of cells: a dot where a value is wrapped, a plus where it has a line end.
_PSQL_WRAP = LiteralPattern("|", r"\|\.(?=[\w-])")
_PSQL_WRAPPED = compile_lazily(r"\.[ ]?(?=\||\r?\n)")
_PSQL_LINE_END = LiteralPattern("+", r"\+(?<=[\w-]{6}\+)\r?\n[^\n|]{0,80}(?:\|[^\n|]{0,80}){0,8}\|[ ](?=[\w-]{4})")


def find_psql_wraps(text: str) -> Iterator[Part]:
    """Find what is between the pieces of a word that psql wraps inside a cell."""
    for mark in _PSQL_WRAP.finditer(text):
        line = text.rfind("\n", max(0, mark.start() - _MAX_ROW), mark.start()) + 1
        above = text.rfind("\n", max(0, line - 1 - _MAX_ROW), max(0, line - 1)) + 1
        at = above + mark.start() - line
        if line and text[at : at + 1] == "|":
            end = _PSQL_WRAPPED.search(text, at, line)
            if end is not None and "|" not in text[at + 1 : end.start()]:
                yield Part(end.start(), mark.end(), "")
    yield from (Part(*match.span(), "") for match in _PSQL_LINE_END.finditer(text))


def find_panes(text: str, foreign: str) -> Iterator[list[Part]]:
    """Find what is between the pieces of a word that is wrapped inside the left or the right of two panes."""
    for bar in _BOX_BARS:
        if bar in foreign:
            left = re.compile(rf"{bar}(?<=[\w.~+/=-]{{6}}{bar})[^\n{bar}]{{0,400}}\n(?=[\w.~+/=-]{{2}})")
            yield [
                Part(*match.span(), "") for match in left.finditer(text) if _is_same_column(text, match.start(), bar)
            ]
            right = re.compile(rf"\n(?<=[\w.~+/=-]{{6}}\n)[^\n{bar}]{{0,400}}{bar}[ ]?(?=[\w.~+/=-]{{2}})")
            yield [
                Part(*match.span(), "")
                for match in right.finditer(text)
                if _is_same_column(text, text.rfind(bar, max(0, match.start() - _MAX_ROW), match.start()), bar)
            ]


def _is_same_column(text: str, at: int, bar: str) -> bool:
    """Whether the next line has its bar in the same column as the one at a position."""
    if at < 0:
        return False
    column = at - text.rfind("\n", max(0, at - _MAX_ROW), at) - 1
    next_line = text.find("\n", at, at + _MAX_ROW) + 1
    return next_line > 0 and text[next_line + column : next_line + column + 1] == bar


def find_broken(text: str, plain: str, foreign: str) -> Iterator[list[Part]]:
    """Find everything that separates the pieces of words.

    `plain` is the text with a question mark for each character that is not ASCII, and `foreign` are these characters.
    """
    parts = [*find_line_breaks(plain), *find_joined_strings(plain)]
    if parts:
        yield sorted(parts, key=itemgetter(0))
    yield from find_carriage_returns(plain)
    yield from find_changes(plain)
    yield from find_wrapped_cells(text, plain, foreign)
    wraps = sorted(find_psql_wraps(plain), key=itemgetter(0))
    if wraps:
        yield wraps
    yield from find_panes(text, foreign)
