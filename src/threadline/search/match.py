"""Decide whether an entry matches a query by reading it: the reference that full-text search has to agree with."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from operator import eq, ge, gt, le, lt

from msgspec import Struct

from threadline.index import normalize_text, tokenize
from threadline.search.query import TEXT_FIELDS, And, Cost, Has, Is, Not, Or, Phrase, Query, Regex, When, expand
from threadline.search.regex import TimeBudget, regex_matches

_COMPARISONS = {">=": ge, "<=": le, ">": gt, "<": lt, "=": eq}


class Document(Struct, frozen=True):
    """An entry as search sees it: its text by column, and its properties.

    `agent` contains the id and the types of the subagent that wrote it; for the main agent it is empty. `cost` is that
    of the session in USD. `failed` says whether it reports a failed call or request.
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

    Projects, branches, models and agents match by any part; sessions by their beginning; versions by their first
    numbers (`2.1` matches 2.1.7, not 2.10); tools and kinds only as a whole. With a star, all match by their beginning.
    """
    expected, actual = term.value.casefold(), value.casefold()
    if term.prefix or term.field == "session":
        return actual.startswith(expected)
    if term.field in {"project", "branch", "model", "agent"}:
        return expected in actual
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
