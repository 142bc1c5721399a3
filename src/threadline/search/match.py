"""Decide whether an entry matches a query, and cut a snippet around the matches."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from itertools import islice
from operator import eq, ge, gt, le, lt
from time import monotonic
from typing import NamedTuple
from unicodedata import normalize

from msgspec import Struct

from threadline.errors import BadQuery
from threadline.index import normalize_text, strip_escapes, tokenize
from threadline.model.hits import SNIPPET_LENGTH
from threadline.model.names import names_tool
from threadline.search.query import (
    TEXT_FIELDS,
    WEIGHTS,
    And,
    Cost,
    Has,
    Is,
    Not,
    Or,
    Phrase,
    Query,
    Regex,
    When,
    expand,
    positive_terms,
)
from threadline.search.regex import get_finder, regex_matches

_COMPARISONS = {">=": ge, "<=": le, ">": gt, "<": lt, "=": eq}


class SearchTimeout(BadQuery):
    """A query found nothing within its time budget."""


class TimeBudget:
    """How long a search may read, from its first use. After `soon` seconds, what was found by then is enough."""

    def __init__(self, seconds: float = 10, soon: float | None = None) -> None:
        self.seconds = seconds
        self.soon = seconds if soon is None else min(soon, seconds)
        self._started: float | None = None

    @property
    def is_soft_limit_reached(self) -> bool:
        """Whether what was found by now is enough."""
        return self.elapsed() > self.soon

    def elapsed(self) -> float:
        """The seconds since its first use."""
        now = monotonic()
        if self._started is None:
            self._started = now
        return now - self._started

    def check(self) -> None:
        """Raise an error if the time is over.

        Raises:
            SearchTimeout: it is.
        """
        if self.elapsed() > self.seconds:
            raise SearchTimeout(
                f"The search did not finish within {self.seconds:g} seconds. "
                "Make it more specific: add a word, or a field such as project: or since:7d."
            )


class Document(Struct, frozen=True):
    """An entry as search sees it: its text by column, and its properties.

    `agent` contains the id and the types of the subagent that wrote it; for the main agent it is empty. `cost` is that
    of the session in USD, `slug` its nickname, and `platform` the platform and OS it ran on. `stop` is why the model
    stopped. `failed` says whether it reports a failed call or request.
    """

    title: str = ""
    prompt: str = ""
    reply: str = ""
    thinking: str = ""
    command: str = ""
    path: str = ""
    input: str = ""
    result: str = ""
    injected: str = ""
    tool: tuple[str, ...] = ()
    project: str | None = None
    branch: str | None = None
    model: str | None = None
    agent: tuple[str, ...] = ()
    session: str | None = None
    kind: str | None = None
    version: str | None = None
    stop: str | None = None
    request: str | None = None
    tier: str | None = None
    slug: str | None = None
    platform: tuple[str, ...] = ()
    timestamp: datetime | None = None
    failed: bool = False
    cost: Decimal | None = None


def matches(query: Query, document: Document, budget: TimeBudget | None = None) -> bool:
    """Whether a document matches a query.

    Raises:
        SearchTimeout: the time is over.
    """
    return _DocumentMatcher(document, budget).matches(_expand_cached(query))


def value_matches(term: Is, value: str) -> bool:
    """Whether a value matches, ignoring case.

    Projects, branches, models, agents, slugs and platforms match by any part; sessions and requests by their
    beginning; versions by their first numbers (`2.1` matches 2.1.7, not 2.10); the others only as a whole. A tool that
    was renamed matches by either name. With a star, all match by their beginning.
    """
    expected, actual = term.value.casefold(), value.casefold()
    if term.prefix or term.field in {"session", "request"}:
        return actual.startswith(expected)
    if term.field in {"project", "branch", "model", "agent", "slug", "platform"}:
        return expected in actual
    if term.field == "tool":
        return names_tool((expected,), actual)
    return actual == expected or (term.field == "version" and actual.startswith(f"{expected}."))


def cost_matches(term: Cost, amount: Decimal) -> bool:
    """Whether the cost of a session matches."""
    return bool(_COMPARISONS[term.operator](amount, term.amount))


@lru_cache(maxsize=64)
def _expand_cached(query: Query) -> Query:
    return expand(query)


class _DocumentMatcher:
    """Matches queries against one document, which is tokenized only if needed."""

    def __init__(self, document: Document, budget: TimeBudget | None) -> None:
        self._document = document
        self._budget = budget
        self._tokens: dict[str, list[str]] = {}

    def matches(self, query: Query) -> bool:
        match query:
            case And(of):
                return all(map(self.matches, of))
            case Or(of):
                return any(map(self.matches, of))
            case Not(of):
                return not self.matches(of)
            case Phrase() | Regex():
                return self._matches_text(query)
        return self._matches_property(query)

    def _matches_text(self, query: Phrase | Regex) -> bool:
        if isinstance(query, Regex):
            return any(regex_matches(query, text, self._budget) for text in self._texts(query.field))
        columns = TEXT_FIELDS.values() if query.column is None else (query.column,)
        return any(_contains_phrase(query, self._tokens_of(column)) for column in columns)

    def _matches_property(self, query: Query) -> bool:
        document = self._document
        match query:
            case Is(field):
                return any(value_matches(query, value) for value in self._values(field))
            case Has(field):
                return document.failed if field == "error" else bool(self._values(field))
            case When(field, moment):
                timestamp = document.timestamp
                return timestamp is not None and (timestamp >= moment if field == "since" else timestamp <= moment)
            case Cost():
                return document.cost is not None and cost_matches(query, document.cost)
        raise TypeError(f"{type(query).__name__} cannot be matched against a document")

    def _texts(self, field: str | None) -> tuple[str, ...]:
        """The texts that a regular expression is matched against."""
        if field is not None and field not in TEXT_FIELDS:
            return self._values(field)
        columns = TEXT_FIELDS.values() if field is None else (TEXT_FIELDS[field],)
        return tuple(getattr(self._document, column) for column in columns)

    def _values(self, field: str) -> tuple[str, ...]:
        value: str | tuple[str, ...] | None = getattr(self._document, field)
        return value if isinstance(value, tuple) else (value,) if value else ()

    def _tokens_of(self, column: str) -> list[str]:
        tokens = self._tokens.get(column)
        if tokens is None:
            tokens = self._tokens[column] = tokenize(normalize_text(getattr(self._document, column)))
        return tokens


def _contains_phrase(phrase: Phrase, tokens: list[str]) -> bool:
    """Whether a text contains the tokens of a phrase in a row."""
    *first, last = phrase.tokens
    count = len(first)
    return any(
        (tokens[at].startswith(last) if phrase.prefix else tokens[at] == last) and tokens[at - count : at] == first
        for at in range(count, len(tokens))
    )


_FIELD_OF_COLUMN = {column: field for field, column in TEXT_FIELDS.items()}
_CHARS_BEFORE = 50
_MAX_SPANS = 200
_FEW = 40
_FIRST_CHARS = 100_000
_SPACE = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
_COMBINING_MARKS = "[\u0300-\u036f]*"


class Snippet(NamedTuple):
    """A part of a field's text on one line, with the start and end of each match in it.

    `field` is the field's name in the query language.
    """

    field: str | None
    text: str
    highlights: tuple[tuple[int, int], ...]


class _Span(NamedTuple):
    start: int
    end: int
    term: int


def snippet(query: Query, texts: Mapping[str, str]) -> Snippet:
    """The part of an entry's texts, given by column, that shows best why it was found."""
    terms = _query_terms(query)
    best: tuple[tuple[int, float], str, list[_Span]] | None = None
    for column in sorted(texts, key=lambda column: -WEIGHTS[column]):
        spans = list(_find_spans(terms, column, strip_escapes(texts[column])))
        rank = (len({span.term for span in spans}), WEIGHTS[column])
        if spans and (best is None or rank > best[0]):
            best = rank, column, spans
    if best is None:
        if not texts:
            return Snippet(None, "", ())
        column = max(texts, key=lambda column: WEIGHTS[column])
        return Snippet(_FIELD_OF_COLUMN[column], *_cut_around(strip_escapes(texts[column]), []))
    _rank, column, spans = best
    return Snippet(_FIELD_OF_COLUMN[column], *_cut_around(strip_escapes(texts[column]), _merge_spans(spans)))


@lru_cache(maxsize=16)
def _query_terms(query: Query) -> tuple[Phrase | Regex, ...]:
    return tuple(positive_terms(expand(query)))


def _find_spans(terms: Iterable[Phrase | Regex], column: str, text: str) -> Iterator[_Span]:
    lowered: str | None = text.lower()
    if lowered is not None and len(lowered) != len(text):  # the lower case of a few letters is longer
        lowered = None
    rare: list[_Span] = []
    frequent: list[tuple[int, str, re.Pattern[str]]] = []
    for number, term in enumerate(terms):
        if isinstance(term, Regex):
            is_searched = term.field is None or TEXT_FIELDS[term.field] == column
            span = get_finder(term).first(text) if is_searched else None
            spans = [_Span(*span, number)] if span is not None else []
            rare += spans
            yield from spans
        elif term.column in (None, column):
            searched, pattern = _choose_pattern(text, lowered, term)
            if pattern is None:
                continue
            # What matters is usually near the beginning. The rest is searched only if nothing is found there.
            end = _FIRST_CHARS if len(text) > _FIRST_CHARS and pattern.search(searched, 0, _FIRST_CHARS) else len(text)
            spans = [_Span(*match.span(), number) for match in islice(pattern.finditer(searched, 0, end), _MAX_SPANS)]
            if len(spans) == _MAX_SPANS:
                frequent.append((number, searched, pattern))
            else:
                rare += spans
            yield from spans
    # A frequent word is worth showing next to a rare one.
    for number, searched, pattern in frequent:
        for near in rare[:_FEW]:
            for match in pattern.finditer(searched, max(0, near.start - _CHARS_BEFORE), near.end + SNIPPET_LENGTH):
                yield _Span(*match.span(), number)


def _choose_pattern(text: str, lowered: str | None, phrase: Phrase) -> tuple[str, re.Pattern[str] | None]:
    """The text to search for a phrase, and the pattern: plain letters, or if that finds nothing, with accents."""
    is_plain = all(map(str.isascii, phrase.tokens))
    if lowered is not None and is_plain and all(token in lowered for token in phrase.tokens):
        pattern = _plain_pattern(phrase)
        if text.isascii() or pattern.search(lowered):
            return lowered, pattern
    return text, None if text.isascii() else _pattern(phrase)


@lru_cache(maxsize=64)
def _plain_pattern(phrase: Phrase) -> re.Pattern[str]:
    """The pattern of a phrase for lower-case plain text. It begins with a literal, which is found quickly."""
    first, *others = map(re.escape, phrase.tokens)
    pattern = rf"{first}(?<![^\W_]{first})" + "".join(rf"[\W_]+{other}" for other in others)
    return re.compile(pattern + (r"[^\W_]*" if phrase.prefix else r"(?![^\W_])"))


@lru_cache(maxsize=64)
def _pattern(phrase: Phrase) -> re.Pattern[str]:
    """The pattern of a phrase with any accents, and any signs between its tokens: close enough for a snippet."""
    body = ""
    for at, token in enumerate(phrase.tokens):
        if at:
            body += r"[\W_]+" if token.isascii() and phrase.tokens[at - 1].isascii() else r"[\W_]*"
        body += "".join(map(_letter_pattern, token))
    before = r"(?<![^\W_])" if _is_spaced(phrase.tokens[0][:1]) else ""
    after = r"(?![^\W_])" if _is_spaced(phrase.tokens[-1][-1:]) and not phrase.prefix else ""
    bounded = f"{before}{body}{after}" if not phrase.prefix else rf"{before}{body}[^\W_]*"
    # Next to a script without spaces, a word has no boundary that a pattern could recognize.
    return re.compile(f"{bounded}|{body}" if not phrase.prefix and _is_mixed(phrase) else bounded, re.IGNORECASE)


def _is_mixed(phrase: Phrase) -> bool:
    return len({_is_spaced(token[:1]) for token in phrase.tokens}) > 1


def _is_spaced(character: str) -> bool:
    return character < "\u0e00"


def _letter_pattern(character: str) -> str:
    forms = _accented_letters().get(character)
    return f"[{character}{forms}]{_COMBINING_MARKS}" if forms else re.escape(character)


@lru_cache(maxsize=1)
def _accented_letters() -> dict[str, str]:
    """The accented letters that each plain letter matches."""
    accented: dict[str, str] = {}
    for code in range(0xC0, 0x250):
        base = normalize("NFD", chr(code))[0].lower()
        if base.isascii() and base.isalpha():
            accented[base] = accented.get(base, "") + chr(code)
    return {letter: accented.get(letter, "") + letter.upper() for letter in "abcdefghijklmnopqrstuvwxyz"}


def _merge_spans(spans: list[_Span]) -> list[_Span]:
    """The spans from the place with the most terms on, in order; overlapping ones are merged."""
    spans = sorted(set(spans))
    best = max(
        (
            (len({span.term for span in spans[at : at + _FEW] if span.end - first.start <= SNIPPET_LENGTH}), -at)
            for at, first in enumerate(spans)
        ),
        default=(0, 0),
    )
    merged: list[_Span] = []
    for span in spans[-best[1] :]:
        if merged and span.start < merged[-1].end:
            merged[-1] = _Span(merged[-1].start, max(merged[-1].end, span.end), merged[-1].term)
        else:
            merged.append(span)
    return merged


def _cut_around(text: str, spans: list[_Span]) -> tuple[str, tuple[tuple[int, int], ...]]:
    """The text around the first span, on one line."""
    start = _word_edge(text, spans[0].start - _CHARS_BEFORE, spans[0].start) if spans else 0
    end = min(len(text), start + SNIPPET_LENGTH)
    shown = "…" if start else ""
    highlights: list[tuple[int, int]] = []
    at = start
    for span in spans:
        if span.start >= end:
            break
        shown = _append_flat(shown, text[at : span.start])
        first = len(shown)
        shown = _append_flat(shown, text[span.start : min(span.end, end)])
        if len(shown) > first:
            highlights.append((first, len(shown)))
        at = min(span.end, end)
    shown = _append_flat(shown, text[at:end])
    return (f"{shown}…" if end < len(text) else shown.rstrip()), tuple(highlights)


def _word_edge(text: str, start: int, before: int) -> int:
    """Where to begin: after the next space, if there is one before the match."""
    if start <= 0:
        return 0
    space = _SPACE.search(text, start, before)
    return space.end() if space is not None and space.end() <= before else start


def _append_flat(shown: str, more: str) -> str:
    flat = _SPACE.sub(" ", more)
    return shown + (flat.lstrip() if not shown or shown.endswith(" ") else flat)
