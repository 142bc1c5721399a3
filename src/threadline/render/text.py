"""Make text safe to display, measure, style and wrap it; describe costs, draw bars.

Transcripts contain hostile text: escape sequences, marks that change the reading direction, invisible characters.
All text for a terminal goes through `plain`, all text for a page through `visible`. `Style.line` is the only place that
writes escape sequences, and the last one that text passes through.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from threadline.model.text import count, fold_line, format_amount, format_tokens

if TYPE_CHECKING:
    from threadline.model.ledger import Sum

# Format and control characters, lone surrogates and private use characters must not reach a terminal unescaped.
_CONTROL_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
# Marks that combine with the character before them.
_COMBINING_CATEGORIES = frozenset({"Mn", "Me"})
# Invisible selectors, joiners and fillers. A sentence can be hidden in them.
_HIDDEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
# An emoji selector is kept after an emoji. `1`, `#` and `*` are emoji inside a keycap.
_EMOJI = re.compile("[\ufe0e\ufe0f]")
_KEYCAP = re.compile("[0-9#*]\ufe0f\u20e3")
_SYMBOLS = frozenset({"So", "Sm", "Sk"})
# Colour sequences are removed, because no content is lost. Every other sequence stays visible as an escape.
_COLOUR = re.compile("(?:\x1b\\[|\x9b)[0-9;:]*m")
_TAB = 4


def plain(text: str) -> str:
    r"""Text that cannot control a terminal: control and format characters become escapes such as `\x1b`.

    >>> plain("a\x1b[31mb\u202e")
    'a\\x1b[31mb\\u202e'
    """
    # A printable string has none of the categories above, but Python treats a few hidden characters as letters.
    if text.isprintable() and (text.isascii() or not _HIDDEN.search(text)):
        return text
    shown = _HIDDEN.sub(_reveal, text) if _HIDDEN.search(text) else text
    return "".join(map(_escape, shown)) if any(map(_is_control, shown)) else shown


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode() if _is_control(character) else character


def _is_control(character: str) -> bool:
    return unicodedata.category(character) in _CONTROL_CATEGORIES


def _reveal(match: re.Match[str]) -> str:
    """Escape a hidden character, unless it belongs to an emoji."""
    text, at = match.string, match.start()
    is_selector = at > 0 and _EMOJI.match(match[0]) is not None
    if is_selector and (unicodedata.category(text[at - 1]) in _SYMBOLS or _KEYCAP.match(text, at - 1)):
        return match[0]
    return match[0].encode("unicode_escape").decode()


def plain_lines(text: str) -> Iterator[str]:
    r"""The lines of a text, each `plain`. Tabs become spaces, and colours are removed.

    >>> list(plain_lines("a\tb\r\n\x1b[32mgreen\x1b[0m"))
    ['a   b', 'green']
    """
    for line in text.split("\n"):
        bare = line.removesuffix("\r")
        if "\x1b" in bare or "\x9b" in bare:
            bare = _COLOUR.sub("", bare)
        yield plain(bare.expandtabs(_TAB))


def one_line(text: str, width: int) -> str:
    """The text on one line for a terminal: white space collapsed, cut with an ellipsis at `width` columns."""
    # A text may have a hundred megabytes, but only its start is shown. Some characters have no width.
    folded = " ".join(text[: 16 * width + 64].split())
    return clip(plain(folded[: 4 * width]), width)


def display_width(text: str) -> int:
    """The number of terminal columns of a text."""
    return len(text) if text.isascii() else sum(map(_character_width, text))


@lru_cache(maxsize=4096)  # the same few characters occur again and again
def _character_width(character: str) -> int:
    if unicodedata.category(character) in _COMBINING_CATEGORIES:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def clip(text: str, width: int) -> str:
    """Cut a text with an ellipsis if it has more than `width` columns."""
    if display_width(text) <= width:
        return text
    return text[: fitting_length(text, width - 1)] + "…"


def clip_left(text: str, width: int) -> str:
    """Cut a path at its start, because its end is more informative."""
    return text if display_width(text) <= width else "…" + clip(text[::-1], width)[-2::-1]


def clip_path(text: str, width: int) -> str:
    """Cut a text with an ellipsis; if it ends with a path, inside that path, so that the file's name stays.

    >>> clip_path("Result of Read /home/you/projects/app/src/main.py", 32)
    'Result of Read /home/yo…/main.py'
    """
    if display_width(text) <= width:
        return text
    name_at = max(text.rfind("/"), text.rfind("\\"))
    path_at = text.rfind(" ", 0, name_at) + 1
    name = "…" + text[name_at:]
    room = width - display_width(name)
    if name_at <= path_at or room < path_at:
        return clip(text, width)
    return text[: fitting_length(text, room)] + name


def fitting_length(text: str, width: int, start: int = 0) -> int:
    """The index where a text from `start` must end to fit into `width` columns."""
    if text.isascii():
        return min(len(text), start + max(0, width))
    used = 0
    for at in range(start, len(text)):
        used += _character_width(text[at])
        if used > width:
            return at
    return len(text)


# Joins emoji and letters of some scripts. Between such characters it hides nothing.
_JOINED = re.compile("(?<=[^\x00-\u02ff])[\u200d\u200c](?=[^\x00-\u02ff])")
_JOINER, _OTHER_JOINER = "\u200d", "\u200c"


def visible(text: str) -> str:
    r"""The text with every control or hidden character escaped, except newlines and tabs.

    >>> visible("a\x1b[31mb\u202e\n\tc")
    'ab\\u202e\n\tc'
    """
    if text.replace("\n", "").replace("\t", "").isascii() and _has_no_controls(text):
        return text
    if "\x1b" in text or "\x9b" in text:
        text = _COLOUR.sub("", text)
    return "\n".join(map(_visible_line, text.split("\n")))


def shorten(text: str, most: int) -> str:
    """The text on one line for a page or file: white space collapsed, cut with an ellipsis by characters."""
    return visible(fold_line(text, most))


def _has_no_controls(text: str) -> bool:
    return text.replace("\n", "").replace("\t", "").isprintable()


def _visible_line(line: str) -> str:
    bare = line.removesuffix("\r")
    return "\t".join(map(_visible_piece, bare.split("\t")))


def _visible_piece(text: str) -> str:
    if _JOINER not in text and _OTHER_JOINER not in text:
        return plain(text)
    parts = _JOINED.split(text)
    joiners = _JOINED.findall(text)
    return "".join(plain(part) + joiner for part, joiner in zip(parts, [*joiners, ""], strict=True))


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
    """Converts spans to a line. Only this class writes escape sequences."""

    def __init__(self, *, colour: bool) -> None:
        self._codes: Mapping[Role, str] = _COLOUR_CODES if colour else {}

    def line(self, spans: Iterable[Span]) -> str:
        """One line without trailing white space."""
        merged: list[Span] = []
        for span in spans:
            if merged and merged[-1].role is span.role:
                merged[-1] = Span(merged[-1].text + span.text, span.role)
            elif span.text:
                merged.append(span)
        while merged and not merged[-1].text.strip():
            merged.pop()
        if merged:
            merged[-1] = Span(merged[-1].text.rstrip(), merged[-1].role)
        return "".join(map(self._colour, merged))

    def _colour(self, span: Span) -> str:
        code = self._codes.get(span.role)
        safe = plain(span.text)
        return f"\x1b[{code}m{safe}\x1b[0m" if code is not None else safe


def should_use_colour(environment: Mapping[str, str], *, terminal: bool) -> bool:
    """Whether to use colours: on a terminal that supports them, unless NO_COLOR (no-color.org) is set."""
    return terminal and not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"


_WORDS = re.compile(r"\s+|\S+")
_MIN_WIDTH = 10
"""The minimum number of columns, even for deeply nested content."""


def line_width(spans: Iterable[Span]) -> int:
    """The number of columns of the spans."""
    return sum(display_width(span.text) for span in spans)


def wrap(spans: Iterable[Span], width: int, *, first: Spans = (), rest: Spans = ()) -> Iterator[Spans]:
    """Wrap a paragraph at white space. `first` is the prefix of its first line, `rest` that of the others."""
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
    line: list[Span] = []
    left = width
    for span in spans:
        text = plain(span.text)
        size = display_width(text)
        if size > left:
            line.append(Span(clip(text, max(1, left)), span.role))
            break
        line.append(Span(text, span.role))
        left -= size
    return tuple(line)


def fit_columns(widths: Mapping[str, int], drop: Iterable[str], room: int, *, gap: int = 2) -> list[str]:
    """Return the names of the columns that fit, dropping as many of `drop` as necessary, the first ones first.

    >>> fit_columns({"time": 16, "size": 8, "title": 20}, ["size", "time"], 40)
    ['time', 'title']
    """
    fitting = dict(widths)
    for name in drop:
        if sum(fitting.values()) + gap * len(fitting) <= room:
            break
        fitting.pop(name, None)
    return list(fitting)


def dropped_note(names: Sequence[str]) -> str:
    """Say which columns a narrow table leaves out."""
    return (
        f"Not shown at this width: {', '.join(filter(None, names))}. Use a wider terminal, set COLUMNS, or use --json."
    )


def fit_facts(facts: Iterable[tuple[str, int]], room: int) -> str:
    """Join facts, without the least important ones if there is too little room.

    Each fact has a rank. Those with the highest rank are dropped first, and those with rank 0 never.

    >>> fit_facts([("3 calls", 2), ("$4.20", 1), ("09:30", 0)], 15)
    '$4.20 · 09:30'
    """
    fitting = [fact for fact in facts if fact[0]]
    while True:
        text = " · ".join(fact for fact, _rank in fitting)
        last = max(fitting, key=lambda fact: fact[1], default=("", 0))
        if display_width(text) <= room or not last[1]:
            return text
        fitting.remove(last)


def labelled_rule(label: Spans, width: int, *, line: str = "─", role: Role = Role.FAINT) -> Spans:
    """A horizontal rule with a label near its start."""
    shown = cut_line(label, max(_MIN_WIDTH, width - 6))
    rest = max(0, width - 4 - line_width(shown))
    return (Span(line * 2 + " ", role), *shown, Span(" " + line * rest, role))


def describe_cost(total: Sum, *, exact: bool = False) -> str:
    """The cost, with the number of charges that have no known price. `exact` shows all digits."""
    if total.amount is None:
        return "amount unknown" if total.charges else "nothing spent"
    unpriced = f", not including {count(total.unpriced, 'charge')} without a known price" if total.unpriced else ""
    return f"{format_amount(total.amount, exact=exact)}{unpriced}"


def describe_tokens(total: Sum) -> str:
    """`12.3k tokens`."""
    return f"{format_tokens(total.tokens)} {'token' if total.tokens == 1 else 'tokens'}"


_EIGHTHS = "▏▎▍▌▋▊▉█"
_COLUMNS = "▁▂▃▄▅▆▇█"
_PLAIN_COLUMNS = "_.-=*#"
_HALVES = ":#"
_C_LOCALES = frozenset({"C", "POSIX"})
# Python sets this itself if the locale is C. The terminal may still not support UTF-8.
_COERCED_LOCALES = frozenset({"", "C", "POSIX", "C.UTF-8", "C.utf8", "UTF-8"})

Number = Decimal | int | float


def bar(value: Number | None, most: Number, width: int, *, ascii_only: bool = False) -> str:
    """A bar of up to `width` columns. Any value above zero is visible, and only `most` itself fills the bar.

    >>> bar(5, 10, 4), bar(1, 1000, 4), bar(0, 10, 4), bar(5, 10, 4, ascii_only=True)
    ('██', '▏', '', '##')
    """
    steps = _HALVES if ascii_only else _EIGHTHS
    if not value or value < 0 or most <= 0 or width <= 0:
        return ""
    size = width * len(steps)
    share = min(1.0, float(value) / float(most))
    filled = size if value >= most else min(size - 1, max(1, round(share * size)))
    full, rest = divmod(filled, len(steps))
    return steps[-1] * full + (steps[rest - 1] if rest else "")


def sparkline(values: Sequence[Number | None], *, ascii_only: bool = False) -> str:
    """Values as adjacent columns, scaled to the largest value; a space for a missing value.

    >>> sparkline([1, 4, None, 8]), sparkline([1, 4, None, 8], ascii_only=True)
    ('▁▄ █', '_- #')
    """
    steps = _PLAIN_COLUMNS if ascii_only else _COLUMNS
    most = max((float(value) for value in values if value), default=0.0)
    return "".join(_column(value, most, steps) for value in values)


def _column(value: Number | None, most: float, steps: str) -> str:
    if not value or value < 0 or most <= 0:
        return " "
    return steps[min(len(steps) - 1, max(0, round(float(value) / most * len(steps)) - 1))]


def can_show_blocks(environment: Mapping[str, str], encoding: str | None) -> bool:
    """Whether a terminal can show block characters: its encoding has them, it is not dumb, and the locale is not C."""
    try:
        (_EIGHTHS + _COLUMNS).encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return environment.get("TERM") != "dumb" and not _is_c_locale(environment)


def _is_c_locale(environment: Mapping[str, str]) -> bool:
    lc_all = environment.get("LC_ALL", "")
    if lc_all:
        return lc_all in _C_LOCALES
    lc_ctype = environment.get("LC_CTYPE", "")
    return lc_ctype in _C_LOCALES or (lc_ctype in _COERCED_LOCALES and environment.get("LANG", "") in _C_LOCALES)
