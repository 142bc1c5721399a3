"""The query language: parser, query tree, its text form, and how words expand to phrases of tokens.

`str(query)` parses back to the same tree. Full-text search and matching by reading use the same expansion, so both
find the same entries: a name is found in camelCase, snake_case or as separate words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from decimal import Decimal
from difflib import get_close_matches
from functools import cache
from typing import Literal, NamedTuple, TypeAlias, cast
from unicodedata import combining, east_asian_width

from msgspec import Struct

from threadline.errors import BadQuery
from threadline.index import Index, normalize_text, tokenize
from threadline.model.times import TimeRange, parse_moment
from threadline.search.regex import BadRegex, get_finder

TEXT_FIELDS = {
    "title": "title",
    "prompt": "prompt",
    "reply": "reply",
    "thinking": "thinking",
    "command": "command",
    "file": "path",
    "input": "input",
    "result": "result",
    "injected": "injected",
}
"""The fields that contain words, each with its column in the full-text table."""

WEIGHTS = {
    "title": 10.0,
    "prompt": 8.0,
    "reply": 5.0,
    "command": 4.0,
    "path": 4.0,
    "input": 2.0,
    "thinking": 2.0,
    "injected": 1.0,
    "result": 1.0,
}
"""How much the words of a field count: prompts and replies more than the output of tools."""

VALUE_FIELDS = (
    *("tool", "project", "branch", "model", "agent", "session", "kind", "version"),
    *("stop", "request", "tier", "slug", "platform"),
)
"""The fields with one value or a few, which are compared as a whole."""

FIELDS = (*TEXT_FIELDS, "error", *VALUE_FIELDS, "since", "until", "cost")
"""All fields, as typed before a colon."""

Operator: TypeAlias = Literal[">=", "<=", ">", "<", "="]
FLAGS = {"agent": {"sub": True, "main": False}, "error": {"true": True, "yes": True, "false": False, "no": False}}
"""Values of a field that ask whether it has a value at all."""

FIELD_NAME = re.compile(r"([A-Za-z][A-Za-z_-]+):(?!//|:)")
"""A field's name before a colon. `http://` and `std::` are not field names."""

OPERATOR_WORD = re.compile(r"(OR|AND|NOT)(?=[\s()]|$)")
"""Operators."""

_SPECIAL_CHARS = frozenset('"()\\*')
_SPECIAL_STARTS = frozenset("-/:!")


class Text(Struct, frozen=True):
    """A word, which may be split into several tokens, or a quoted phrase.

    `field` is one of `TEXT_FIELDS`, or `error`; without one, every field is searched. With `prefix`, the last token is
    the beginning of a word.
    """

    text: str
    field: str | None = None
    phrase: bool = False
    prefix: bool = False

    def __str__(self) -> str:
        star = "*" if self.prefix else ""
        return (
            f"{_field_prefix(self.field)}{_quote(self.text) if self.phrase else _escape(self.text, self.field)}{star}"
        )


class Regex(Struct, frozen=True):
    """A regular expression that matches in some line of a text, or in a value."""

    pattern: str
    field: str | None = None
    exact_case: bool = False

    def __str__(self) -> str:
        escaped = "".join(part if part != "/" else "\\/" for part in split_escapes(self.pattern))
        return f"{_field_prefix(self.field)}/{escaped}/{'c' if self.exact_case else ''}"


class Is(Struct, frozen=True):
    """One of `VALUE_FIELDS` has this value; with `prefix`, a value that begins with it."""

    field: str
    value: str
    prefix: bool = False

    def __str__(self) -> str:
        return f"{self.field}:{_escape(self.value, self.field)}{'*' if self.prefix else ''}"


class Has(Struct, frozen=True):
    """One of `VALUE_FIELDS` has any value. `error`: something failed; `agent`: a subagent wrote it."""

    field: str

    def __str__(self) -> str:
        return f"{self.field}:*"


class When(Struct, frozen=True):
    """Not before a time (`since`), or not after it (`until`)."""

    field: Literal["since", "until"]
    moment: datetime

    def __str__(self) -> str:
        moment = self.moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
        return f"{self.field}:{moment}"


class Cost(Struct, frozen=True):
    """The cost of the session in USD, compared with an amount."""

    operator: Operator
    amount: Decimal

    def __str__(self) -> str:
        return f"cost:{self.operator}{self.amount:f}"


class Not(Struct, frozen=True):
    """Everything that the inner query does not match. Create it with `negate`."""

    of: Query

    def __str__(self) -> str:
        return f"-{_parenthesize(self.of)}"


class And(Struct, frozen=True):
    """All queries match the same entry. Create it with `all_of`."""

    of: tuple[Query, ...]

    def __str__(self) -> str:
        return " ".join(f"({query})" if isinstance(query, Or) else str(query) for query in self.of)


class Or(Struct, frozen=True):
    """Any of the queries matches. Create it with `any_of`."""

    of: tuple[Query, ...]

    def __str__(self) -> str:
        return " OR ".join(map(str, self.of))


class Phrase(Struct, frozen=True):
    """Tokens in a row in one column, or in any: the expansion of a `Text`."""

    tokens: tuple[str, ...]
    column: str | None = None
    prefix: bool = False


class Match(Struct, frozen=True):
    """An FTS5 expression: the translation of phrases."""

    expression: str


Query: TypeAlias = Text | Regex | Is | Has | When | Cost | Not | And | Or | Phrase | Match


def all_of(queries: Iterable[Query]) -> Query:
    """The conjunction of queries, flattened. A single query stays as it is."""
    parts = tuple(inner for query in queries for inner in (query.of if isinstance(query, And) else (query,)))
    return parts[0] if len(parts) == 1 else And(parts)


def any_of(queries: Iterable[Query]) -> Query:
    """The disjunction of queries, flattened. A single query stays as it is."""
    options = tuple(inner for query in queries for inner in (query.of if isinstance(query, Or) else (query,)))
    return options[0] if len(options) == 1 else Or(options)


def value_filters(values: Mapping[str, str | None], time: TimeRange) -> list[Query]:
    """The filters for values of `VALUE_FIELDS` and a period, without those that are None."""
    filters: list[Query] = [Is(field, value) for field, value in values.items() if value is not None]
    filters += [When("since", time.since)] if time.since is not None else []
    return filters + ([When("until", time.until)] if time.until is not None else [])


def negate(query: Query) -> Query:
    """The negation of a query. A double negation is removed."""
    return query.of if isinstance(query, Not) else Not(query)


def leaves(query: Query) -> Iterator[Query]:
    """The terms of a query, from left to right."""
    if isinstance(query, And | Or):
        for inner in query.of:
            yield from leaves(inner)
    elif isinstance(query, Not):
        yield from leaves(query.of)
    else:
        yield query


def split_escapes(text: str) -> Iterator[str]:
    r"""The characters of a text; a backslash comes with the character after it."""
    at = 0
    while at < len(text):
        step = 2 if text[at] == "\\" else 1
        yield text[at : at + step]
        at += step


def _field_prefix(field: str | None) -> str:
    return f"{field}:" if field is not None else ""


def _parenthesize(query: Query) -> str:
    return f"({query})" if isinstance(query, And | Or) else str(query)


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _escape(text: str, field: str | None) -> str:
    """A text without quotes; special characters get a backslash."""
    escaped = "".join(f"\\{char}" if char in _SPECIAL_CHARS or char.isspace() else char for char in text)
    if field is None and FIELD_NAME.match(escaped):
        return escaped.replace(":", "\\:", 1)
    is_keyword = OPERATOR_WORD.fullmatch(text) if field is None else text.lower() in FLAGS.get(field, ())
    return f"\\{escaped}" if is_keyword or escaped[:1] in _SPECIAL_STARTS else escaped


# A name of several words, which another spelling joins to one.
_COMPOUND_NAME = re.compile("-{0,2}[A-Za-z][0-9A-Za-z]*(?:[_-][A-Za-z][0-9A-Za-z]*)+")


def expand(query: Query) -> Query:
    """The query with phrases of tokens instead of text.

    `parseTimestamp` also matches the words `parse timestamp` in a row. So does `parse_timestamp`, which also matches as
    one word. Two words side by side also match the name they form: `parse timestamp` finds `parseTimestamp`. Quoted
    text matches only as written.
    """
    if isinstance(query, And):
        return all_of(_expand_adjacent(query.of))
    if isinstance(query, Or):
        return any_of(map(expand, query.of))
    if isinstance(query, Not):
        return negate(expand(query.of))
    if isinstance(query, Text):
        return _to_phrases(query, _spellings(query))
    if isinstance(query, Regex) and query.field == "error":
        return all_of((Has("error"), Regex(query.pattern, exact_case=query.exact_case)))
    return query


def positive_terms(query: Query) -> Iterator[Phrase | Regex]:
    """The phrases and expressions that an expanded query looks for, without those it excludes."""
    if isinstance(query, And | Or):
        for inner in query.of:
            yield from positive_terms(inner)
    elif isinstance(query, Phrase) or (
        isinstance(query, Regex) and (query.field is None or query.field in TEXT_FIELDS)
    ):
        yield query


def word_lookup(index: Index) -> Callable[[str], bool]:
    """A function that says whether any entry contains a word."""
    text = index.full_text
    return cache(lambda word: text.has(f'"{word}"'))


def drop_unknown_spellings(query: Query, is_known: Callable[[str], bool]) -> Query:
    """An expanded query without the spellings that no entry contains, if another spelling is left."""
    if isinstance(query, And):
        return all_of([drop_unknown_spellings(inner, is_known) for inner in query.of])
    if isinstance(query, Or):
        phrases = [inner for inner in query.of if isinstance(inner, Phrase)]
        unknown = {
            phrase for phrase in phrases if not all(map(is_known, phrase.tokens[: -1 if phrase.prefix else None]))
        }
        rest = [drop_unknown_spellings(inner, is_known) for inner in query.of if inner not in unknown]
        return any_of(rest or query.of[:1])
    return query


def _expand_adjacent(queries: Sequence[Query]) -> list[Query]:
    expanded: list[Query] = []
    for at, query in enumerate(queries):
        if isinstance(query, Text):
            before = _joined_spelling(queries[at - 1], query) if at else []
            after = _joined_spelling(query, queries[at + 1]) if at + 1 < len(queries) else []
            expanded.append(_to_phrases(query, [*_spellings(query), *before, *after]))
        else:
            expanded.append(expand(query))
    return expanded


def _joined_spelling(query: Query, other: Query) -> list[tuple[str, ...]]:
    """Two words joined to one, if each is a single token and both are in the same field."""
    first, second = _single_token(query), _single_token(other)
    if first is None or second is None or first[1] != second[1]:
        return []
    both = tuple(tokenize(normalize_text(first[0] + second[0])))
    return [both] if len(both) == 1 else []


def _single_token(query: Query) -> tuple[str, str | None] | None:
    if not isinstance(query, Text) or query.phrase or query.prefix:
        return None
    tokens = tokenize(normalize_text(query.text))
    return (tokens[0], query.field) if len(tokens) == 1 else None


def _spellings(query: Text) -> list[tuple[str, ...]]:
    spellings = [tuple(tokenize(normalize_text(query.text)))]
    if not query.phrase:
        parts = tuple(tokenize(normalize_text(split_camel_case(query.text))))
        spellings += [parts] if parts != spellings[0] else []
        spellings += [("".join(spellings[0]),)] if _COMPOUND_NAME.fullmatch(query.text) else []
    return spellings


def _to_phrases(query: Text, spellings: Sequence[tuple[str, ...]]) -> Query:
    column = TEXT_FIELDS.get(query.field) if query.field is not None else None
    phrases = any_of(Phrase(tokens, column, query.prefix) for tokens in dict.fromkeys(spellings))
    return all_of((Has("error"), phrases)) if query.field == "error" else phrases


def split_camel_case(text: str) -> str:
    """Split a name where lower case changes to upper case.

    >>> split_camel_case("parseTimestamp HTTPServer utf8Decode E404 Word")
    'parse Timestamp HTTP Server utf8 Decode E404 Word'
    """
    return "".join(f" {char}" if _starts_part(text, at) else char for at, char in enumerate(text))


def _starts_part(text: str, at: int) -> bool:
    if at == 0 or not text[at].isupper():
        return False
    before, is_lower_next = text[at - 1], text[at + 1 : at + 2].islower()
    return before.islower() or (is_lower_next and (before.isupper() or before.isdecimal()))


_MIN_WORD = 4
_MIN_STEM = 3
_VOWELS = frozenset("aeiou")
_ENDINGS = ("", "e", "s", "es", "ed", "ing")


def word_forms(word: str) -> tuple[str, ...]:
    """Other forms of an English word; not all of them exist. None for anything but plain letters.

    >>> word_forms("crashes"), word_forms("src/app.py")
    (('crash', 'crashe', 'crashed', 'crashing', 'crashs'), ())
    """
    plain = word.lower()
    if len(plain) < _MIN_WORD or not (plain.isascii() and plain.isalpha()):
        return ()
    stem = _stem_of(plain)
    forms = {stem + ending for ending in _ENDINGS if len(stem + ending) >= _MIN_WORD}
    if stem.endswith("y"):
        forms |= {f"{stem[:-1]}ies", f"{stem[:-1]}ied"}
    if stem[-1] == stem[-2] not in _VOWELS:
        forms |= {stem[:-1], f"{stem[:-1]}s"}
    elif stem[-1] not in _VOWELS and stem[-2] in _VOWELS:
        forms |= {f"{stem}{stem[-1]}ed", f"{stem}{stem[-1]}ing"}
    return tuple(sorted(forms - {plain}))


def _stem_of(word: str) -> str:
    """A word without its ending."""
    if word.endswith(("ies", "ied")) and len(word) > _MIN_STEM + 2:
        return f"{word[:-3]}y"
    for ending in ("ing", "es", "ed", "s", "e"):
        stem = word.removesuffix(ending)
        if stem != word and len(stem) >= _MIN_STEM and not word.endswith("ss"):
            return stem
    return word


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
    "amount": "cost",
    "stop_reason": "stop",
    "requestid": "request",
    "request_id": "request",
    "service_tier": "tier",
    "os": "platform",
}
_OPERATOR_HINTS = {
    "AND": "AND is not needed: terms side by side must all match. To search for the word, write it in lower case: and.",
    "NOT": "Write NOT as a minus before a term: -word. To search for the word, write it in lower case: not.",
}


def parse_query(text: str, *, now: datetime | None = None, zone: tzinfo | None = None) -> Query:
    """Parse a query. Days are days in `zone`, by default the user's own.

    >>> str(parse_query('deploy OR (ship -"dry run") file:src/app.py'))
    'deploy OR ship -"dry run" file:src/app.py'

    Raises:
        BadQuery: it is invalid; the message shows where, and says what to write instead.
    """
    return parse_typed_query(text, now=now, zone=zone).query


class TypedQuery(NamedTuple):
    """A query, and each of its terms as it was typed."""

    query: Query
    typed: dict[Query, str]


def parse_typed_query(text: str, *, now: datetime | None = None, zone: tzinfo | None = None) -> TypedQuery:
    """Parse a query like `parse_query`. The text of each term is for messages.

    >>> parse_typed_query("error:yes since:7d").typed[Has("error")]
    'error:yes'

    Raises:
        BadQuery: it is invalid.
    """
    if len(text) > MAX_QUERY_CHARS:
        raise BadQuery(f"The query has {len(text):,} characters. At most {MAX_QUERY_CHARS:,} are allowed.")
    parser = _Parser(text, now, zone)
    return TypedQuery(parser.query(), parser.typed)


class _Word(NamedTuple):
    """A word or a quoted phrase, without its marks."""

    text: str
    phrase: bool = False
    prefix: bool = False
    # Whether it has no quotes or backslashes, so that it may be a keyword.
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
        self.typed: dict[Query, str] = {}

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
            start = self._at
            term = self._term()
            self.typed.setdefault(term, self._text[start : self._at])
            terms.append(term)
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
            moment = parse_moment(word.text, now=self._now, end=field == "until", tz=self._zone)
        except BadQuery as error:
            raise self._error(at, str(error)) from None
        return When(cast("Literal['since', 'until']", field), moment)

    def _cost(self, word: _Word, at: int) -> Query:
        amount = _AMOUNT.fullmatch(word.text) if not word.prefix else None
        if amount is None:
            raise self._error(at, "This is not an amount in USD. Write cost:>1, cost:>=0.50, cost:<10 or cost:=0.")
        if not amount[1]:
            number = amount[2]
            raise self._error(at, f"Say how to compare: cost:>{number}, cost:<{number}, or cost:={number} (exactly).")
        return Cost(cast("Operator", amount[1]), Decimal(amount[2]))

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
