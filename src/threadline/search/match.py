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
    """An entry as search sees it: its text by column, and what is known of it.

    `agent` has the names of the subagent that wrote it, its id and its type; the main agent has none. `cost` is the
    session's, in USD. An entry is `failed` where it tells of a call or a request that did.
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
    """Whether the document is what the query asks for.

    Raises:
        TookTooLong: a regular expression took longer than `budget` has.
    """
    return _DocumentMatcher(document, budget).holds(_expand_cached(query))


def value_matches(asked: Is, value: str) -> bool:
    """Whether a value is what is asked for. Case does not count.

    Of a project, a branch, a model and an agent any part will do; a session is known by its beginning, a version by
    its first numbers (`2.1` is 2.1.7 and not 2.10); tools and kinds have to be the same. A star: each by its beginning.
    """
    wanted, there = asked.value.casefold(), value.casefold()
    if asked.prefix or asked.field == "session":
        return there.startswith(wanted)
    if asked.field in {"project", "branch", "model", "agent"}:
        return wanted in there
    return there == wanted or (asked.field == "version" and there.startswith(f"{wanted}."))


def cost_matches(asked: Cost, amount: Decimal) -> bool:
    """Whether what a session cost is what is asked for."""
    return bool(_COMPARISONS[asked.operator](amount, asked.amount))


@lru_cache(maxsize=64)
def _expand_cached(query: Query) -> Query:
    return expand(query)


class _DocumentMatcher:
    """One document, its tokens made when they are asked for."""

    def __init__(self, document: Document, budget: TimeBudget | None) -> None:
        self._document = document
        self._budget = budget
        self._tokens: dict[str, list[str]] = {}

    def holds(self, query: Query) -> bool:
        match query:
            case And(of):
                return all(map(self.holds, of))
            case Or(of):
                return any(map(self.holds, of))
            case Not(of):
                return not self.holds(of)
            case Phrase() | Regex():
                return self._says(query)
        return self._is(query)

    def _says(self, query: Phrase | Regex) -> bool:
        if isinstance(query, Regex):
            return any(regex_matches(query, text, self._budget) for text in self._read(query.field))
        columns = TEXT_FIELDS.values() if query.column is None else (query.column,)
        return any(_contains_phrase(query, self._tokens_of(column)) for column in columns)

    def _is(self, query: Query) -> bool:
        document = self._document
        match query:
            case Is(field):
                return any(value_matches(query, value) for value in self._values(field))
            case Has(field):
                return document.failed if field == "error" else bool(self._values(field))
            case When(field, moment):
                written = document.timestamp
                return written is not None and (written >= moment if field == "since" else written <= moment)
            case Cost():
                return document.cost is not None and cost_matches(query, document.cost)
        raise TypeError(f"{type(query).__name__} is not asked of a document")

    def _read(self, field: str | None) -> tuple[str, ...]:
        """What a regular expression is looked for in."""
        if field is not None and field not in TEXT_FIELDS:
            return self._values(field)
        columns = TEXT_FIELDS.values() if field is None else (TEXT_FIELDS[field],)
        return tuple(getattr(self._document, column) for column in columns)

    def _values(self, field: str) -> tuple[str, ...]:
        value: str | tuple[str, ...] | None = getattr(self._document, field)
        return value if isinstance(value, tuple) else (value,) if value else ()

    def _tokens_of(self, column: str) -> list[str]:
        known = self._tokens.get(column)
        if known is None:
            known = self._tokens[column] = tokenize(normalize_text(getattr(self._document, column)))
        return known


def _contains_phrase(phrase: Phrase, there: list[str]) -> bool:
    """Whether the tokens of a phrase stand in a row."""
    *whole, last = phrase.tokens
    before = len(whole)
    return any(
        (there[at].startswith(last) if phrase.prefix else there[at] == last) and there[at - before : at] == whole
        for at in range(before, len(there))
    )
