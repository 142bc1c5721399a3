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
"""The fields that hold words, each with the column of full text that has them."""

VALUE_FIELDS = ("tool", "project", "branch", "model", "agent", "session", "kind", "version")
"""The fields that hold one value or a few, which are compared as they stand."""

FIELDS = (*TEXT_FIELDS, "error", *VALUE_FIELDS, "since", "until", "cost")
"""All fields, as they are typed before a colon."""

Operator: TypeAlias = Literal[">=", "<=", ">", "<", "="]
FLAGS = {"agent": {"sub": True, "main": False}, "error": {"true": True, "yes": True, "false": False, "no": False}}
"""Words that say, for a field, whether there is one at all."""

FIELD_NAME = re.compile(r"([A-Za-z][A-Za-z_-]+):(?!//|:)")
"""What looks like a field's name before a colon; `http://` and `std::` do not."""

OPERATOR_WORD = re.compile(r"(OR|AND|NOT)(?=[\s()]|$)")
"""Words that are no words."""

_SPECIAL_CHARS = frozenset('"()\\*')
_SPECIAL_STARTS = frozenset("-/:!")


class Text(Struct, frozen=True):
    """Words to be found next to each other: a word that may fall apart into several, or a phrase in quotes.

    `field` is one of `TEXTS`, or `error`; without one, any text counts. `prefix`: the last word may go on.
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
    """A regular expression to be found in some line of a text, or in a value."""

    pattern: str
    field: str | None = None
    exact_case: bool = False

    def __str__(self) -> str:
        escaped = "".join(part if part != "/" else "\\/" for part in split_escapes(self.pattern))
        return f"{_field_prefix(self.field)}/{escaped}/{'c' if self.exact_case else ''}"


class Is(Struct, frozen=True):
    """A field of `VALUES` that is such; with `prefix`, that begins so."""

    field: str
    value: str
    prefix: bool = False

    def __str__(self) -> str:
        return f"{self.field}:{_escape(self.value, self.field)}{'*' if self.prefix else ''}"


class Has(Struct, frozen=True):
    """A field of `VALUES` that has any value; `error`: something failed; `agent`: a subagent wrote it."""

    field: str

    def __str__(self) -> str:
        return f"{self.field}:*"


class When(Struct, frozen=True):
    """Not before a moment (`since`), or not after it (`until`)."""

    field: Literal["since", "until"]
    moment: datetime

    def __str__(self) -> str:
        moment = self.moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
        return f"{self.field}:{moment}"


class Cost(Struct, frozen=True):
    """What the session cost, in USD, compared with an amount."""

    operator: Operator
    amount: Decimal

    def __str__(self) -> str:
        return f"cost:{self.operator}{self.amount:f}"


class Not(Struct, frozen=True):
    """All but what is asked for inside. Made by `negated`."""

    of: Query

    def __str__(self) -> str:
        return f"-{_parenthesize(self.of)}"


class And(Struct, frozen=True):
    """All at once, in the same entry. Made by `all_of`."""

    of: tuple[Query, ...]

    def __str__(self) -> str:
        return " ".join(f"({one})" if isinstance(one, Or) else str(one) for one in self.of)


class Or(Struct, frozen=True):
    """Any of them. Made by `any_of`."""

    of: tuple[Query, ...]

    def __str__(self) -> str:
        return " OR ".join(map(str, self.of))


class Phrase(Struct, frozen=True):
    """Tokens that stand next to each other in one column, or in any: what becomes of a `Text`."""

    tokens: tuple[str, ...]
    column: str | None = None
    prefix: bool = False


class Match(Struct, frozen=True):
    """Phrases, as an expression that FTS5 takes: what becomes of phrases."""

    expression: str


Query: TypeAlias = Text | Regex | Is | Has | When | Cost | Not | And | Or | Phrase | Match


def all_of(queries: Iterable[Query]) -> Query:
    """All at once, as flat as can be; one by itself stays as it is."""
    found = tuple(inner for query in queries for inner in (query.of if isinstance(query, And) else (query,)))
    return found[0] if len(found) == 1 else And(found)


def any_of(queries: Iterable[Query]) -> Query:
    """Any of them, as flat as can be; one by itself stays as it is."""
    found = tuple(inner for query in queries for inner in (query.of if isinstance(query, Or) else (query,)))
    return found[0] if len(found) == 1 else Or(found)


def negate(query: Query) -> Query:
    """All but it; twice is once more the same."""
    return query.of if isinstance(query, Not) else Not(query)


def leaves(query: Query) -> Iterator[Query]:
    """Everything in a query that is asked for by itself, from left to right."""
    if isinstance(query, And | Or):
        for one in query.of:
            yield from leaves(one)
    elif isinstance(query, Not):
        yield from leaves(query.of)
    else:
        yield query


def split_escapes(text: str) -> Iterator[str]:
    r"""The characters of a text, a backslash together with the one after it."""
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
    """A text without quotes: whatever would mean something else has a backslash."""
    escaped = "".join(f"\\{one}" if one in _SPECIAL_CHARS or one.isspace() else one for one in text)
    if field is None and FIELD_NAME.match(escaped):
        return escaped.replace(":", "\\:", 1)
    is_sign = OPERATOR_WORD.fullmatch(text) if field is None else text.lower() in FLAGS.get(field, ())
    return f"\\{escaped}" if is_sign or escaped[:1] in _SPECIAL_STARTS else escaped


# A name of several words: in another spelling they are one.
_COMPOUND_NAME = re.compile("-{0,2}[A-Za-z][0-9A-Za-z]*(?:[_-][A-Za-z][0-9A-Za-z]*)+")


def expand(query: Query) -> Query:
    """The query with phrases of tokens in place of all text.

    `parseTimestamp` is also the words `parse timestamp` in a row, and so is `parse_timestamp`, which is also one word;
    two words side by side are also one: `parse timestamp` is found in `parseTimestamp`. What is in quotes is found as
    it stands.
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
    """The texts that an expanded query asks for; not what it asks to be without."""
    if isinstance(query, And | Or):
        for one in query.of:
            yield from positive_terms(one)
    elif isinstance(query, Phrase) or (
        isinstance(query, Regex) and (query.field is None or query.field in TEXT_FIELDS)
    ):
        yield query


def word_lookup(index: Index) -> Callable[[str], bool]:
    """A function that says whether any entry contains a word."""
    text = index.full_text
    return cache(lambda word: text.has(f'"{word}"'))


def drop_unknown_spellings(query: Query, is_known: Callable[[str], bool]) -> Query:
    """An expanded query without the spellings that no entry has, where another is left: they find nothing."""
    if isinstance(query, And):
        return all_of([drop_unknown_spellings(one, is_known) for one in query.of])
    if isinstance(query, Or):
        phrases = [one for one in query.of if isinstance(one, Phrase)]
        unknown = {
            phrase for phrase in phrases if not all(map(is_known, phrase.tokens[: -1 if phrase.prefix else None]))
        }
        left = [drop_unknown_spellings(one, is_known) for one in query.of if one not in unknown]
        return any_of(left or query.of[:1])
    return query


def _expand_adjacent(queries: Sequence[Query]) -> list[Query]:
    found: list[Query] = []
    for at, query in enumerate(queries):
        if isinstance(query, Text):
            before = _joined_spelling(queries[at - 1], query) if at else []
            after = _joined_spelling(query, queries[at + 1]) if at + 1 < len(queries) else []
            found.append(_to_phrases(query, [*_spellings(query), *before, *after]))
        else:
            found.append(expand(query))
    return found


def _joined_spelling(query: Query, other: Query) -> list[tuple[str, ...]]:
    """Two words written as one, if both are such: a single token each, in the same field."""
    first, second = _single_token(query), _single_token(other)
    if first is None or second is None or first[1] != second[1]:
        return []
    both = tuple(tokenize(normalize_text(first[0] + second[0])))
    return [both] if len(both) == 1 else []


def _single_token(query: Query) -> tuple[str, str | None] | None:
    if not isinstance(query, Text) or query.phrase or query.prefix:
        return None
    found = tokenize(normalize_text(query.text))
    return (found[0], query.field) if len(found) == 1 else None


def _spellings(query: Text) -> list[tuple[str, ...]]:
    found = [tuple(tokenize(normalize_text(query.text)))]
    if not query.phrase:
        apart = tuple(tokenize(normalize_text(split_camel_case(query.text))))
        found += [apart] if apart != found[0] else []
        found += [("".join(found[0]),)] if _COMPOUND_NAME.fullmatch(query.text) else []
    return found


def _to_phrases(query: Text, spellings: Sequence[tuple[str, ...]]) -> Query:
    column = TEXT_FIELDS.get(query.field) if query.field is not None else None
    phrases = any_of(Phrase(fromkey, column, query.prefix) for fromkey in dict.fromkeys(spellings))
    return all_of((Has("error"), phrases)) if query.field == "error" else phrases


def split_camel_case(text: str) -> str:
    """A name's parts, set apart where small letters go over into capitals.

    >>> split_camel_case("parseTimestamp HTTPServer utf8Decode E404 Word")
    'parse Timestamp HTTP Server utf8 Decode E404 Word'
    """
    return "".join(f" {one}" if _starts_part(text, at) else one for at, one in enumerate(text))


def _starts_part(text: str, at: int) -> bool:
    if at == 0 or not text[at].isupper():
        return False
    before, goes_on = text[at - 1], text[at + 1 : at + 2].islower()
    return before.islower() or (goes_on and (before.isupper() or before.isdecimal()))


_MIN_WORD = 4
_MIN_STEM = 3
_VOWELS = frozenset("aeiou")
_ENDINGS = ("", "e", "s", "es", "ed", "ing")


def word_forms(word: str) -> tuple[str, ...]:
    """Other forms of a word; none where it is no plain word. Not all of them need be words.

    >>> word_forms("crashes"), word_forms("src/app.py")
    (('crash', 'crashe', 'crashed', 'crashing', 'crashs'), ())
    """
    plain = word.lower()
    if len(plain) < _MIN_WORD or not (plain.isascii() and plain.isalpha()):
        return ()
    stem = _stem_of(plain)
    made = {stem + ending for ending in _ENDINGS if len(stem + ending) >= _MIN_WORD}
    if stem.endswith("y"):
        made |= {f"{stem[:-1]}ies", f"{stem[:-1]}ied"}
    if stem[-1] == stem[-2] not in _VOWELS:
        made |= {stem[:-1], f"{stem[:-1]}s"}
    elif stem[-1] not in _VOWELS and stem[-2] in _VOWELS:
        made |= {f"{stem}{stem[-1]}ed", f"{stem}{stem[-1]}ing"}
    return tuple(sorted(made - {plain}))


def _stem_of(word: str) -> str:
    """What is left of a word without its ending."""
    if word.endswith(("ies", "ied")) and len(word) > _MIN_STEM + 2:
        return f"{word[:-3]}y"
    for ending in ("ing", "es", "ed", "s", "e"):
        stem = word.removesuffix(ending)
        if stem != word and len(stem) >= _MIN_STEM and not word.endswith("ss"):
            return stem
    return word
