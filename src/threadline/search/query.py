"""The query tree, its text form, and how the words of a query expand to phrases of tokens.

`str(query)` parses back to the same tree. Full-text search and matching by reading use the same expansion, so both
find the same entries: a name is found in camelCase, snake_case or as separate words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from typing import Literal, TypeAlias

from msgspec import Struct

from threadline.index import Index, normalize_text, tokenize

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

VALUE_FIELDS = ("tool", "project", "branch", "model", "agent", "session", "kind", "version")
"""The fields with one value or a few, which are compared as a whole."""

FIELDS = (*TEXT_FIELDS, "error", *VALUE_FIELDS, "since", "until", "cost")
"""All fields, as typed before a colon."""

Operator: TypeAlias = Literal[">=", "<=", ">", "<", "="]
FLAGS = {"agent": {"sub": True, "main": False}, "error": {"true": True, "yes": True, "false": False, "no": False}}
"""Values of a field that ask whether it has a value at all."""

FIELD_NAME = re.compile(r"([A-Za-z][A-Za-z_-]+):(?!//|:)")
"""A field's name before a colon. `http://` and `std::` are none."""

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
