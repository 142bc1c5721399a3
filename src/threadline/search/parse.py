"""Parse a query as it was typed, or raise an error that points at the column."""

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
"""How many characters a query may have."""
MAX_TERMS = 256
"""How many terms a query may have."""
MAX_DEPTH = 12
"""How deep parentheses may be nested: the parser of FTS5 fails soon after."""
_MIN_SIMILARITY = 0.7

_PATH_BACKSLASH = re.compile(r"\\(?=[^\W_])")
_SPACES = re.compile(r"\s*")
# After the closing slash there are at most flags; other slashes belong to a path or to the expression.
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
    "AND": "AND is not needed: terms side by side must all match. To search for the word, write it in lower case: and.",
    "NOT": "Write NOT as a minus before a term: -word. To search for the word, write it in lower case: not.",
}


def parse_query(text: str, *, now: datetime | None = None, zone: tzinfo | None = None) -> Query:
    """Parse a query. Days are days in `zone`, by default UTC.

    >>> str(parse_query('deploy OR (ship -"dry run") file:src/app.py'))
    'deploy OR ship -"dry run" file:src/app.py'

    Raises:
        BadQuery: it is invalid; the message shows where, and says what to write instead.
    """
    if len(text) > MAX_QUERY_CHARS:
        raise BadQuery(f"The query has {len(text):,} characters. At most {MAX_QUERY_CHARS:,} are allowed.")
    return _Parser(text, now, zone).query()


class _Word(NamedTuple):
    """A word or a quoted phrase, without its marks."""

    text: str
    phrase: bool = False
    prefix: bool = False
    # Whether it has no quotes or backslashes, and so may be a keyword.
    plain: bool = False


class _Parser:
    """A recursive-descent parser that reads a query once, from left to right."""

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
            raise BadQuery('The query is empty. Write a word, a "phrase", or a field such as prompt:word.')
        query = self._alternatives()
        if not self._is_over():
            raise self._error(self._at, "This parenthesis closes nothing. To search for it, quote the text.")
        return query

    def _alternatives(self) -> Query:
        options = [self._together()]
        while (operator := OPERATOR_WORD.match(self._text, self._at)) is not None:
            self._at = operator.end()
            self._skip_spaces()
            options.append(self._together(after=operator.start()))
        return any_of(options)

    def _together(self, after: int | None = None) -> Query:
        """Terms side by side, up to an OR, a closing parenthesis or the end. `after` is where the OR before is."""
        terms: list[Query] = []
        while not self._is_over() and self._text[self._at] != ")":
            operator = OPERATOR_WORD.match(self._text, self._at)
            if operator is not None and operator[1] == "OR":
                break
            if operator is not None:
                raise self._error(self._at, _OPERATOR_HINTS[operator[1]])
            terms.append(self._term())
            self._skip_spaces()
        if not terms:
            at = after if after is not None else self._at
            raise self._error(at, 'OR needs a term on either side. To search for the word itself, write "OR".')
        return all_of(terms)

    def _term(self) -> Query:
        at = self._at
        if _BANG.match(self._text, at):
            raise self._error(at, "Exclude a term with a minus: -word. To search for the sign itself, quote it.")
        if self._text[at] != "-" or self._text.startswith("--", at):
            return self._atom()
        self._at += 1
        if self._is_over() or self._text[self._at].isspace() or self._text[self._at] == ")":
            raise self._error(at, 'Write the minus directly before the term: -word, -"a phrase", -tool:Bash.')
        return negate(self._atom())

    def _atom(self) -> Query:
        if self._text[self._at] == "(":
            return self._group()
        self._terms += 1
        if self._terms > MAX_TERMS:
            raise self._error(self._at, f"A query has at most {MAX_TERMS} terms. To search for a long text, quote it.")
        at = self._at
        name = FIELD_NAME.match(self._text, at)
        field = name[1].lower() if name is not None else ""
        is_field = field in FIELDS
        if name is not None and not is_field and not self._ends(name.end()):
            raise self._error(at, _unknown_field_message(name[1], self._text[name.end() : name.end() + 1]))
        if name is None or not is_field:
            return self._anywhere()
        self._at = name.end()
        if self._ends(self._at) and not self._text.startswith('"', self._at):
            raise self._error(
                self._at,
                f"{field}: needs its value right after the colon. To search for the word itself, omit the colon.",
            )
        return self._in_field(field, at)

    def _group(self) -> Query:
        opened = self._at
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._error(opened, f"Parentheses may be nested at most {MAX_DEPTH} deep.")
        self._at += 1
        self._skip_spaces()
        if self._text.startswith(")", self._at):
            raise self._error(opened, "These parentheses are empty. To search for them, quote the text.")
        query = self._alternatives() if not self._is_over() else None
        if query is None or self._is_over():
            raise self._error(opened, "This parenthesis is never closed. To search for it, quote the text.")
        self._at += 1
        self._depth -= 1
        return query

    def _anywhere(self) -> Query:
        at = self._at
        return self._regex(None) or self._words(self._value(at), None, at)

    def _in_field(self, field: str, at: int) -> Query:
        start = self._at
        regex = self._regex(field) if field not in {"since", "until", "cost"} else None
        if regex is not None:
            return regex
        suffix = _SUFFIX_PATTERN.match(self._text, start) if field in TEXT_FIELDS else None
        if suffix is not None:
            regex_form = f"{field}:/{re.escape(suffix[1])}$/"
            raise self._error(
                start, f"A star is only allowed at the end of a word. To match an ending, use {regex_form}."
            )
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
        raise self._error(at, f"{field}: needs more than a star, such as {example}.")

    def _words(self, word: _Word, field: str | None, at: int) -> Query:
        if not tokenize(normalize_text(word.text)):
            raise self._error(
                at, "This contains no letter or digit. To search for signs, use a regular expression: /->/."
            )
        return Text(word.text, field, word.phrase, word.prefix)

    def _when(self, field: str, word: _Word, at: int) -> Query:
        try:
            moment = parse_moment(word.text, now=self._now, end=field == "until", zone=self._zone)
        except BadQuery as error:
            raise self._error(at, str(error)) from None
        return When(cast("Literal['since', 'until']", field), moment)

    def _cost(self, word: _Word, at: int) -> Query:
        amount = _AMOUNT.fullmatch(word.text) if not word.prefix else None
        if amount is None:
            raise self._error(at, "This is not an amount in USD. Write cost:>1, cost:>=0.50, cost:<10 or cost:=0.")
        return Cost(cast("Operator", amount[1] or "="), Decimal(amount[2]))

    def _regex(self, field: str | None) -> Query | None:
        """A regular expression, if there is one here. A path that does not end with a slash is a word."""
        start = self._at
        if not self._text.startswith("/", start):
            return None
        match = _REGEX.match(self._text, start)
        if match is None and _PATH.match(self._text, start):
            return None
        if match is None:
            raise self._error(
                start, "This regular expression is never closed with a slash. To search for a path, quote it."
            )
        self._at = match.end()
        pattern = "".join(part if part != "\\/" else "/" for part in split_escapes(match[1]))
        regex = Regex(pattern, field, "c" in match[2])
        try:
            get_finder(regex)
        except BadRegex as error:
            raise self._error(start + 1 + _typed_offset(match[1], error.at), error.sentence) from None
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
            raise self._error(opened, 'This quote is never closed. To search for a quote, write \\".')
        self._at += 1
        if not parts:
            raise self._error(opened, "There is nothing between these quotes.")
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
                    raise self._error(
                        self._at,
                        "A star is only allowed at the end of a word. Elsewhere, use a regular expression: /a.*b/.",
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
        """The character here, without the backslash that removes its special meaning."""
        is_escaped = self._text[self._at] == "\\" and self._at + 1 < len(self._text)
        self._at += 1 + is_escaped
        return self._text[self._at - 1]

    def _ends(self, at: int) -> bool:
        """Whether a word ends here."""
        return at >= len(self._text) or self._text[at].isspace() or self._text[at] in _WORD_ENDS

    def _is_over(self) -> bool:
        return self._at >= len(self._text)

    def _skip_spaces(self) -> None:
        spaces = _SPACES.match(self._text, self._at)
        self._at = spaces.end() if spaces is not None else self._at

    def _error(self, at: int, sentence: str) -> BadQuery:
        return query_error(self._text, at, sentence)


def _unknown_field_message(name: str, after: str) -> str:
    """The message for an unknown name before a colon. Before a number, it usually is a host, a file or an hour."""
    similar = get_close_matches(name.lower()[:40], FIELDS, n=1, cutoff=_MIN_SIMILARITY) if not after.isdecimal() else []
    field = _FIELD_SYNONYMS.get(name.lower()) or (similar[0] if similar else None)
    unknown = f'Unknown field "{name[:40]}".'
    if field is not None:
        return f"{unknown} Did you mean {field}:? To search for the text itself, quote it."
    return f"{unknown} To search for the text itself, quote it. Fields: {', '.join(FIELDS)}."


def _typed_offset(typed: str, at: int) -> int:
    """The position in the typed text of a character of the pattern, which lacks the backslashes before slashes."""
    offset = 0
    for part in split_escapes(typed):
        if at <= 0:
            break
        at -= 1 if part == "\\/" else len(part)
        offset += len(part)
    return offset


_CONTEXT_BEFORE = 50
_CONTEXT_AFTER = 30


def query_error(query: str, at: int, sentence: str) -> BadQuery:
    """The error for a query that is invalid from that character on (counted from 0).

    >>> print(query_error("foo promt:bar", 4, 'Unknown field "promt".'))
    Unknown field "promt". (column 5)
      foo promt:bar
          ^
    """
    first, last = max(0, at - _CONTEXT_BEFORE), min(len(query), at + _CONTEXT_AFTER)
    before, after = _printable(query[first:at]), _printable(query[at:last])
    left, right = "…" if first else "", "…" if last < len(query) else ""
    caret = " " * _terminal_width(left + before) + "^"
    return BadQuery(f"{sentence} (column {at + 1})\n  {left}{before}{after}{right}\n  {caret}")


def _printable(text: str) -> str:
    """A part of a query without characters that control a terminal."""
    return "".join(char if char.isprintable() else " " if char.isspace() else "�" for char in text)


def _terminal_width(text: str) -> int:
    """The number of terminal columns that a text takes."""
    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text)
