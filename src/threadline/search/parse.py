"""Parse what a person typed into a query, or raise an error that points at the column."""

from __future__ import annotations

import re
from datetime import datetime, tzinfo
from decimal import Decimal
from difflib import get_close_matches
from typing import Literal, NamedTuple, cast
from unicodedata import combining, east_asian_width

from threadline.errors import BadQuery
from threadline.index import normalize_text, tokenize
from threadline.model.times import parse_moment
from threadline.search.query import (
    FIELD_NAME,
    FIELDS,
    FLAGS,
    OPERATOR_WORD,
    TEXT_FIELDS,
    VALUE_FIELDS,
    Cost,
    Has,
    Is,
    Operator,
    Query,
    Regex,
    Text,
    When,
    all_of,
    any_of,
    negate,
    split_escapes,
)
from threadline.search.regex import BadRegex, get_finder

MAX_QUERY_CHARS = 20_000
"""The characters that a query may have."""
MAX_TERMS = 256
"""The terms that a query may have."""
MAX_DEPTH = 12
"""How deep parentheses may be nested: SQLite's own parser gives up soon after."""
_MIN_SIMILARITY = 0.7

_PATH_BACKSLASH = re.compile(r"\\(?=[^\W_])")
_SPACES = re.compile(r"\s*")
# The slash that closes is followed by flags at most: those inside a path or an expression are not.
_REGEX = re.compile(r"/((?:[^\\/]|\\.|/(?![ic]*(?:[\s)]|$)))+)/([ic]*)(?=[\s)]|$)", re.DOTALL)
_PATH = re.compile(r"/[\w./~@+:-]*\*?(?=[\s()]|$)")
_AMOUNT = re.compile(r"(>=|<=|>|<|=|)\$?(\d{1,12}(?:\.\d{1,12})?|\.\d{1,12})")
_BANG = re.compile(r'!(?=[\w"(/])')
_SUFFIX_PATTERN = re.compile(r"\*(\.\w+)(?=[\s()]|$)")
_WORD_ENDS = frozenset('"()')
_FIELD_SYNONYMS = {
    "path": "file",
    "user": "prompt",
    "assistant": "reply",
    "after": "since",
    "before": "until",
    "price": "cost",
}
_OPERATOR_HINTS = {
    "AND": "AND is not needed: terms side by side must all be there. To find the word itself, write it small: and.",
    "NOT": "NOT is written as a minus before a term: -word. To find the word itself, write it small: not.",
}


def parse_query(text: str, *, now: datetime | None = None, zone: tzinfo | None = None) -> Query:
    """The query that a text means. Days are days in `zone`, UTC unless one is given.

    >>> str(parse_query('deploy OR (ship -"dry run") file:src/app.py'))
    'deploy OR ship -"dry run" file:src/app.py'

    Raises:
        BadQuery: it cannot be understood; the text shows where, and says what to write instead.
    """
    if len(text) > MAX_QUERY_CHARS:
        raise BadQuery(f"The query has {len(text):,} characters; at most {MAX_QUERY_CHARS:,} are understood.")
    return _Parser(text, now, zone).query()


class _Word(NamedTuple):
    """A word or what stands in quotes, without its marks."""

    text: str
    phrase: bool = False
    prefix: bool = False
    # Whether it is written without any mark, and so may be one of the words that mean more.
    plain: bool = False


class _Parser:
    """Goes through a query from left to right, once."""

    def __init__(self, text: str, now: datetime | None, zone: tzinfo | None) -> None:
        self._text = text
        self._now = now
        self._zone = zone
        self._at = 0
        self._depth = 0
        self._terms = 0

    def query(self) -> Query:
        self._skip_spaces()
        if self._is_over():
            raise BadQuery('The query is empty; write a word, a "phrase", or a field such as prompt:word.')
        found = self._alternatives()
        if not self._is_over():
            raise self._refused(self._at, "This parenthesis closes nothing; put it in quotes to look for text with it.")
        return found

    def _alternatives(self) -> Query:
        found = [self._together()]
        while (sign := OPERATOR_WORD.match(self._text, self._at)) is not None:
            self._at = sign.end()
            self._skip_spaces()
            found.append(self._together(after=sign.start()))
        return any_of(found)

    def _together(self, after: int | None = None) -> Query:
        """Terms side by side, up to an OR, a closing parenthesis or the end; `after` is where an OR stands before."""
        found: list[Query] = []
        while not self._is_over() and self._text[self._at] != ")":
            sign = OPERATOR_WORD.match(self._text, self._at)
            if sign is not None and sign[1] == "OR":
                break
            if sign is not None:
                raise self._refused(self._at, _OPERATOR_HINTS[sign[1]])
            found.append(self._term())
            self._skip_spaces()
        if not found:
            at = after if after is not None else self._at
            raise self._refused(at, 'OR needs a term on either side; to find the word itself, write "OR".')
        return all_of(found)

    def _term(self) -> Query:
        at = self._at
        if _BANG.match(self._text, at):
            raise self._refused(at, 'What is not wanted has a minus before it: -word; to find the sign, use "quotes".')
        if self._text[at] != "-" or self._text.startswith("--", at):
            return self._atom()
        self._at += 1
        if self._is_over() or self._text[self._at].isspace() or self._text[self._at] == ")":
            raise self._refused(at, 'A minus stands right before what is not wanted: -word, -"a phrase", -tool:Bash.')
        return negate(self._atom())

    def _atom(self) -> Query:
        if self._text[self._at] == "(":
            return self._group()
        self._terms += 1
        if self._terms > MAX_TERMS:
            raise self._refused(
                self._at, f'A query has at most {MAX_TERMS} terms; put text to find as it is in "quotes".'
            )
        at = self._at
        named = FIELD_NAME.match(self._text, at)
        field = named[1].lower() if named is not None else ""
        is_field = field in FIELDS
        if named is not None and not is_field and not self._ends(named.end()):
            raise self._refused(at, _unknown_field_message(named[1], self._text[named.end() : named.end() + 1]))
        if named is None or not is_field:
            return self._anywhere()
        self._at = named.end()
        if self._ends(self._at) and not self._text.startswith('"', self._at):
            raise self._refused(
                self._at,
                f"{field}: needs its value right after the colon; to find the word itself, leave the colon out.",
            )
        return self._in_field(field, at)

    def _group(self) -> Query:
        opened = self._at
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._refused(opened, f"Parentheses are understood {MAX_DEPTH} deep, and no deeper.")
        self._at += 1
        self._skip_spaces()
        if self._text.startswith(")", self._at):
            raise self._refused(opened, 'These parentheses are empty; put text with parentheses in "quotes".')
        found = self._alternatives() if not self._is_over() else None
        if found is None or self._is_over():
            raise self._refused(opened, 'This parenthesis is never closed; put text with parentheses in "quotes".')
        self._at += 1
        self._depth -= 1
        return found

    def _anywhere(self) -> Query:
        at = self._at
        return self._regex(None) or self._words(self._value(at), None, at)

    def _in_field(self, field: str, at: int) -> Query:
        start = self._at
        regex = self._regex(field) if field not in {"since", "until", "cost"} else None
        if regex is not None:
            return regex
        ending = _SUFFIX_PATTERN.match(self._text, start) if field in TEXT_FIELDS else None
        if ending is not None:
            meant = f"{field}:/{re.escape(ending[1])}$/"
            raise self._refused(start, f"A star stands at the end of a word; what ends so is found by {meant}.")
        if self._text.startswith("*", start) and self._ends(start + 1):
            self._at = start + 1
            return self._any_value(field, at)
        word = self._value(start)
        if field in {"since", "until", "cost"}:
            return self._cost(word, start) if field == "cost" else self._when(field, word, start)
        flag = FLAGS.get(field, {}).get(word.text.lower()) if word.plain else None
        if flag is not None:
            return Has(field) if flag else negate(Has(field))
        return Is(field, word.text, word.prefix) if field in VALUE_FIELDS else self._words(word, field, start)

    def _any_value(self, field: str, at: int) -> Query:
        if field in VALUE_FIELDS or field == "error":
            return Has(field)
        example = "cost:>1" if field == "cost" else "since:7d" if field not in TEXT_FIELDS else f"{field}:word*"
        raise self._refused(at, f"{field}: needs more than a star, such as {example}.")

    def _words(self, word: _Word, field: str | None, at: int) -> Query:
        if not tokenize(normalize_text(word.text)):
            raise self._refused(
                at, "There is no letter or digit here to look for; signs are found by a regular expression: /->/."
            )
        return Text(word.text, field, word.phrase, word.prefix)

    def _when(self, field: str, word: _Word, at: int) -> Query:
        try:
            found = parse_moment(word.text, now=self._now, end=field == "until", zone=self._zone)
        except BadQuery as error:
            raise self._refused(at, str(error)) from None
        return When(cast("Literal['since', 'until']", field), found)

    def _cost(self, word: _Word, at: int) -> Query:
        found = _AMOUNT.fullmatch(word.text) if not word.prefix else None
        if found is None:
            raise self._refused(at, "This is no amount in USD; write cost:>1, cost:>=0.50, cost:<10 or cost:=0.")
        return Cost(cast("Operator", found[1] or "="), Decimal(found[2]))

    def _regex(self, field: str | None) -> Query | None:
        """A regular expression, if one stands here. A path, as long as it does not end like one, is a word."""
        start = self._at
        if not self._text.startswith("/", start):
            return None
        found = _REGEX.match(self._text, start)
        if found is None and _PATH.match(self._text, start):
            return None
        if found is None:
            raise self._refused(start, 'This regular expression is never closed with a slash; put a path in "quotes".')
        self._at = found.end()
        regex = Regex(
            "".join(part if part != "\\/" else "/" for part in split_escapes(found[1])), field, "c" in found[2]
        )
        try:
            get_finder(regex)
        except BadRegex as error:
            raise self._refused(start + 1 + _typed_offset(found[1], error.at), error.sentence) from None
        return regex

    def _value(self, at: int) -> _Word:
        return self._quoted() if self._text.startswith('"', at) else self._bare()

    def _quoted(self) -> _Word:
        opened = self._at
        self._at += 1
        parts: list[str] = []
        while not self._is_over() and self._text[self._at] != '"':
            parts.append(self._character())
        if self._is_over():
            raise self._refused(opened, 'This quote is never closed; write \\" to find a quote that stands alone.')
        self._at += 1
        if not parts:
            raise self._refused(opened, "There is nothing between these quotes.")
        has_star = self._text.startswith("*", self._at)
        self._at += has_star
        return _Word("".join(parts), phrase=True, prefix=has_star)

    def _bare(self) -> _Word:
        start = self._at
        parts: list[str] = []
        prefix = False
        while not self._ends(self._at):
            if self._text[self._at] == "*":
                prefix = bool(parts) and self._ends(self._at + 1)
                if not prefix:
                    raise self._refused(
                        self._at, "A star stands at the end of a word; what lies between is a matter for /a.*b/."
                    )
                self._at += 1
            elif parts and _PATH_BACKSLASH.match(self._text, self._at):
                parts.append("\\")
                self._at += 1
            else:
                parts.append(self._character())
        text = "".join(parts)
        return _Word(text, prefix=prefix, plain=self._text[start : self._at] == text)

    def _character(self) -> str:
        """The character here, or the one that a backslash makes an ordinary one."""
        is_escaped = self._text[self._at] == "\\" and self._at + 1 < len(self._text)
        self._at += 1 + is_escaped
        return self._text[self._at - 1]

    def _ends(self, at: int) -> bool:
        """Whether a word ends here."""
        return at >= len(self._text) or self._text[at].isspace() or self._text[at] in _WORD_ENDS

    def _is_over(self) -> bool:
        return self._at >= len(self._text)

    def _skip_spaces(self) -> None:
        found = _SPACES.match(self._text, self._at)
        self._at = found.end() if found is not None else self._at

    def _refused(self, at: int, sentence: str) -> BadQuery:
        return query_error(self._text, at, sentence)


def _unknown_field_message(name: str, after: str) -> str:
    """What to say of a name before a colon; a number after it is as a rule a port, a line or a time."""
    near = get_close_matches(name.lower()[:40], FIELDS, n=1, cutoff=_MIN_SIMILARITY) if not after.isdecimal() else []
    meant = _FIELD_SYNONYMS.get(name.lower()) or (near[0] if near else None)
    there = f"There is no field {name[:40]}:;"
    if meant is not None:
        return f"{there} did you mean {meant}:? To find it as text, put it in quotes."
    return f"{there} to find it as text, put it in quotes. Fields are {', '.join(FIELDS)}."


def _typed_offset(typed: str, at: int) -> int:
    """How many typed characters stand before one of the pattern, which lacks the backslashes of its slashes."""
    seen = 0
    for part in split_escapes(typed):
        if at <= 0:
            break
        at -= 1 if part == "\\/" else len(part)
        seen += len(part)
    return seen


_CONTEXT_BEFORE = 50
_CONTEXT_AFTER = 30


def query_error(query: str, at: int, sentence: str) -> BadQuery:
    """The error for a query that is not understood from that character on (counted from 0).

    >>> print(query_error("foo promt:bar", 4, "There is no field promt."))
    There is no field promt. (column 5)
      foo promt:bar
          ^
    """
    first, last = max(0, at - _CONTEXT_BEFORE), min(len(query), at + _CONTEXT_AFTER)
    before, after = _printable(query[first:at]), _printable(query[at:last])
    left, right = "…" if first else "", "…" if last < len(query) else ""
    caret = " " * _terminal_width(left + before) + "^"
    return BadQuery(f"{sentence} (column {at + 1})\n  {left}{before}{after}{right}\n  {caret}")


def _printable(text: str) -> str:
    """A part of a query with nothing in it that steers a terminal."""
    return "".join(one if one.isprintable() else " " if one.isspace() else "�" for one in text)


def _terminal_width(text: str) -> int:
    """How many columns a terminal takes for it."""
    return sum(0 if combining(one) else 2 if east_asian_width(one) in "WF" else 1 for one in text)
