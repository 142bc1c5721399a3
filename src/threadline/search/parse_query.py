"""Text to query: what a person typed, understood, or refused with the column where it is not."""

from __future__ import annotations

import re
from datetime import datetime, tzinfo
from decimal import Decimal
from difflib import get_close_matches
from typing import Literal, NamedTuple, cast

from threadline.errors import BadQuery
from threadline.index.words import searchable, tokens
from threadline.model.when import moment
from threadline.search.pointing import refused
from threadline.search.query import (
    FIELDS,
    FLAGS,
    NAMED,
    SIGN,
    TEXTS,
    VALUES,
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
    negated,
    pairs,
)
from threadline.search.regex import BadRegex, finder

LONGEST = 20_000
"""The characters that a query may have."""
MOST_TERMS = 256
"""The terms that a query may have."""
DEEPEST = 12
"""How deep parentheses may be nested: SQLite's own parser gives up soon after."""
_LIKE = 0.7

_IN_A_PATH = re.compile(r"\\(?=[^\W_])")
_SPACES = re.compile(r"\s*")
# The slash that closes is followed by flags at most: those inside a path or an expression are not.
_REGEX = re.compile(r"/((?:[^\\/]|\\.|/(?![ic]*(?:[\s)]|$)))+)/([ic]*)(?=[\s)]|$)", re.DOTALL)
_PATH = re.compile(r"/[\w./~@+:-]*\*?(?=[\s()]|$)")
_AMOUNT = re.compile(r"(>=|<=|>|<|=|)\$?(\d{1,12}(?:\.\d{1,12})?|\.\d{1,12})")
_BANG = re.compile(r'!(?=[\w"(/])')
_ENDING = re.compile(r"\*(\.\w+)(?=[\s()]|$)")
_ENDS_A_WORD = frozenset('"()')
_MEANT = {"path": "file", "user": "prompt", "assistant": "reply", "after": "since", "before": "until", "price": "cost"}
_NEEDLESS = {
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
    if len(text) > LONGEST:
        raise BadQuery(f"The query has {len(text):,} characters; at most {LONGEST:,} are understood.")
    return _Reader(text, now, zone).query()


class _Word(NamedTuple):
    """A word or what stands in quotes, without its marks."""

    text: str
    phrase: bool = False
    prefix: bool = False
    # Whether it is written without any mark, and so may be one of the words that mean more.
    plain: bool = False


class _Reader:
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
        while (sign := SIGN.match(self._text, self._at)) is not None:
            self._at = sign.end()
            self._skip_spaces()
            found.append(self._together(after=sign.start()))
        return any_of(found)

    def _together(self, after: int | None = None) -> Query:
        """Terms side by side, up to an OR, a closing parenthesis or the end; `after` is where an OR stands before."""
        found: list[Query] = []
        while not self._is_over() and self._text[self._at] != ")":
            sign = SIGN.match(self._text, self._at)
            if sign is not None and sign[1] == "OR":
                break
            if sign is not None:
                raise self._refused(self._at, _NEEDLESS[sign[1]])
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
        return negated(self._atom())

    def _atom(self) -> Query:
        if self._text[self._at] == "(":
            return self._group()
        self._terms += 1
        if self._terms > MOST_TERMS:
            raise self._refused(
                self._at, f'A query has at most {MOST_TERMS} terms; put text to find as it is in "quotes".'
            )
        at = self._at
        named = NAMED.match(self._text, at)
        field = named[1].lower() if named is not None else ""
        is_field = field in FIELDS
        if named is not None and not is_field and not self._ends(named.end()):
            raise self._refused(at, _no_field(named[1], self._text[named.end() : named.end() + 1]))
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
        if self._depth > DEEPEST:
            raise self._refused(opened, f"Parentheses are understood {DEEPEST} deep, and no deeper.")
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
        ending = _ENDING.match(self._text, start) if field in TEXTS else None
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
            return Has(field) if flag else negated(Has(field))
        return Is(field, word.text, word.prefix) if field in VALUES else self._words(word, field, start)

    def _any_value(self, field: str, at: int) -> Query:
        if field in VALUES or field == "error":
            return Has(field)
        example = "cost:>1" if field == "cost" else "since:7d" if field not in TEXTS else f"{field}:word*"
        raise self._refused(at, f"{field}: needs more than a star, such as {example}.")

    def _words(self, word: _Word, field: str | None, at: int) -> Query:
        if not tokens(searchable(word.text)):
            raise self._refused(
                at, "There is no letter or digit here to look for; signs are found by a regular expression: /->/."
            )
        return Text(word.text, field, word.phrase, word.prefix)

    def _when(self, field: str, word: _Word, at: int) -> Query:
        try:
            found = moment(word.text, now=self._now, end=field == "until", zone=self._zone)
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
        regex = Regex("".join(part if part != "\\/" else "/" for part in pairs(found[1])), field, "c" in found[2])
        try:
            finder(regex)
        except BadRegex as error:
            raise self._refused(start + 1 + _before(found[1], error.at), error.sentence) from None
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
            elif parts and _IN_A_PATH.match(self._text, self._at):
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
        return at >= len(self._text) or self._text[at].isspace() or self._text[at] in _ENDS_A_WORD

    def _is_over(self) -> bool:
        return self._at >= len(self._text)

    def _skip_spaces(self) -> None:
        found = _SPACES.match(self._text, self._at)
        self._at = found.end() if found is not None else self._at

    def _refused(self, at: int, sentence: str) -> BadQuery:
        return refused(self._text, at, sentence)


def _no_field(name: str, after: str) -> str:
    """What to say of a name before a colon; a number after it is as a rule a port, a line or a time."""
    near = get_close_matches(name.lower()[:40], FIELDS, n=1, cutoff=_LIKE) if not after.isdecimal() else []
    meant = _MEANT.get(name.lower()) or (near[0] if near else None)
    there = f"There is no field {name[:40]}:;"
    if meant is not None:
        return f"{there} did you mean {meant}:? To find it as text, put it in quotes."
    return f"{there} to find it as text, put it in quotes. Fields are {', '.join(FIELDS)}."


def _before(typed: str, at: int) -> int:
    """How many typed characters stand before one of the pattern, which lacks the backslashes of its slashes."""
    seen = 0
    for part in pairs(typed):
        if at <= 0:
            break
        at -= 1 if part == "\\/" else len(part)
        seen += len(part)
    return seen
