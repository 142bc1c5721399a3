"""Translate a query into an FTS5 expression and the conditions that are left to check."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct

from threadline.index import Vocabulary, normalize_text, tokenize
from threadline.search.query import (
    TEXT_FIELDS,
    And,
    Match,
    Not,
    Or,
    Phrase,
    Query,
    Regex,
    all_of,
    any_of,
    expand,
    negate,
)
from threadline.search.regex import Requirement, required_text

# Of what an expression spells out, the characters that full text surely has as they are: ASCII without the one that
# begins what a terminal hides, and Chinese.
_EXACT_CHARACTERS = re.compile("[\0-\x1a\x1c-\x7f\u4e00-\u9fff]+")
_LEADING_WORD = re.compile(r"[0-9A-Za-z]*")

MAX_WORDS = 1_000
"""How many words of the vocabulary a query may ask full text for; where more have a part, it narrows nothing."""
_FEW_WORDS = 8


class SearchPlan(Struct, frozen=True):
    """How to find what a query asks for.

    Every hit matches `match`, an expression of FTS5; where it is None, full text cannot narrow the search. Of those,
    every entry for which `rest` holds is a hit; where that is None, all are. The leaves of `rest` are `Match` (whose
    expressions are to be asked of full text), `Regex`, `Is`, `Has`, `When` and `Cost`.
    """

    match: str | None = None
    rest: Query | None = None


def make_plan(query: Query, vocabulary: Vocabulary | None = None) -> SearchPlan:
    """How to find what a query asks for. FTS5 sees nothing that was typed but tokens in quotes.

    With a vocabulary, what regular expressions spell out narrows the search even where it is no whole word.

    >>> from threadline.search.parse import parse_query
    >>> make_plan(parse_query('"snake_case" -prompt:draft* tool:Bash'))
    SearchPlan(match='(("snake case") NOT {prompt}:"draft"*)', rest=Is(field='tool', value='Bash', prefix=False))
    """
    whole = expand(query)
    parts = whole.of if isinstance(whole, And) else (whole,)
    wanted = [part for part in parts if _is_text(part) and not isinstance(part, Not)]
    unwanted = [part for part in parts if _is_text(part) and isinstance(part, Not)]
    others = [part for part in parts if not _is_text(part)]
    narrowing = _RegexNarrowing(vocabulary)
    narrowed = [found for other in others if (found := narrowing.needed(other)) is not None]
    if not wanted and not narrowed:
        return SearchPlan(None, _remaining(all_of(parts)))
    match = fts_expression(all_of([*wanted, *narrowed, *unwanted]))
    return SearchPlan(match, _remaining(all_of(others)) if others else None)


def _is_text(query: Query) -> bool:
    """Whether full text can answer it: FTS5 knows `a NOT b`, and no NOT that stands alone."""
    if isinstance(query, Not):
        return not isinstance(query.of, Not) and _is_text(query.of)
    if isinstance(query, Or):
        return all(_is_text(one) and not isinstance(one, Not) for one in query.of)
    if isinstance(query, And):
        return all(map(_is_text, query.of)) and any(not isinstance(one, Not) for one in query.of)
    return isinstance(query, Phrase)


def fts_expression(query: Query) -> str:
    """What FTS5 is given: precedence is NOT, AND, OR, each from the left."""
    if isinstance(query, Phrase):
        # A token is letters and digits: no quote can stand in it.
        column = f"{{{query.column}}}:" if query.column is not None else ""
        return f'{column}"{" ".join(query.tokens)}"{"*" if query.prefix else ""}'
    if isinstance(query, Or):
        return f"({' OR '.join(map(fts_expression, query.of))})"
    if not isinstance(query, And):
        raise TypeError(f"{type(query).__name__} is not asked of full text")
    wanted = " AND ".join(fts_expression(one) for one in query.of if not isinstance(one, Not))
    unwanted = [one.of for one in query.of if isinstance(one, Not)]
    return f"(({wanted}) NOT {fts_expression(any_of(unwanted))})" if unwanted else f"({wanted})"


def _remaining(query: Query) -> Query:
    """What is left to be checked, text in as few expressions as can be."""
    if isinstance(query, Not):
        return negate(_remaining(query.of))
    if _is_text(query):
        return Match(fts_expression(query))
    if isinstance(query, And):
        return all_of(_combine_text(query.of, all_of))
    if isinstance(query, Or):
        return any_of(_combine_text(query.of, any_of))
    return query


def _combine_text(queries: Iterable[Query], together: Callable[[Iterable[Query]], Query]) -> Iterator[Query]:
    texts: list[Query] = []
    for query in queries:
        if _is_text(query) and not isinstance(query, Not):
            texts.append(query)
        else:
            yield _remaining(query)
    if texts:
        yield Match(fts_expression(together(texts)))


class _RegexNarrowing:
    """What full text must have for a query to hold, as phrases.

    Words that are known by their middle come from the vocabulary, as long as there are few enough of them.
    """

    def __init__(self, vocabulary: Vocabulary | None) -> None:
        self._vocabulary = vocabulary if vocabulary is not None and vocabulary.is_whole else None
        self._left = MAX_WORDS

    def needed(self, query: Query) -> Query | None:
        """What must be there; None where nothing is known."""
        if isinstance(query, Regex):
            if query.field is not None and query.field not in TEXT_FIELDS:
                return None
            return self._all(required_text(query), TEXT_FIELDS[query.field] if query.field is not None else None)
        if isinstance(query, Phrase):
            return query
        if isinstance(query, And):
            return _all_known([self.needed(one) for one in query.of])
        if isinstance(query, Or):
            return _any_known([self.needed(one) for one in query.of])
        return None

    def _all(self, needed: Iterable[Requirement], column: str | None) -> Query | None:
        return _all_known([self._one(requirement, column) for requirement in needed])

    def _one(self, need: Requirement, column: str | None) -> Query | None:
        if isinstance(need, tuple):
            return _any_known([self._all(one, column) for one in need])
        return _all_known(
            [query for sure in _EXACT_CHARACTERS.findall(need) for query in self._spelt_out(sure, column)]
        )

    def _spelt_out(self, sure: str, column: str | None) -> Iterator[Query | None]:
        """Whole words, the beginning of one that may go on, and words with an end or a middle that is there."""
        cut = _LEADING_WORD.match(sure)
        begun = cut[0] if cut is not None else ""  # of a word that may begin before it
        bounded = sure[len(begun) :]
        found = tuple(tokenize(normalize_text(bounded)))
        is_begun = bool(bounded) and bounded[-1].isascii() and bounded[-1].isalnum()
        words = self._words(begun.lower(), ends=bool(bounded)) if begun else None
        if words is not None and found:
            yield self._in_a_row(words, found, column, prefix=is_begun)
        elif words is not None:
            yield any_of(Phrase((word,), column) for word in words)
        elif found:
            yield Phrase(found, column, prefix=is_begun)

    def _in_a_row(self, words: list[str], found: tuple[str, ...], column: str | None, *, prefix: bool) -> Query:
        """Any of the words, and what was found right after it."""
        if not prefix or len(words) <= _FEW_WORDS:
            return any_of(Phrase((word, *found), column, prefix) for word in words)
        # Full text gathers the words that begin so for each phrase again: they are spelt out, if they are few.
        begun = set(self._vocabulary.beginning(found[-1])) if self._vocabulary is not None else set()
        if len(words) * len(begun) <= MAX_WORDS:
            rows = [(word, *found[:-1], last) for word in words for last in sorted(begun) or found[-1:]]
            return any_of(Phrase(row, column) for row in rows)
        either = any_of(Phrase((word, *found[:-1]), column) for word in words)
        return all_of([either, Phrase(found, column, prefix=True)])

    def _words(self, part: str, *, ends: bool) -> list[str] | None:
        words = self._vocabulary.containing(part, self._left, ends=ends) if self._vocabulary is not None else None
        if words is None:
            return None
        self._left -= len(words)
        # Where no word has the part, none is the part: that finds nothing, as it should.
        return words or [part]


def _all_known(parts: Sequence[Query | None]) -> Query | None:
    known = [query for query in parts if query is not None]
    return all_of(known) if known else None


def _any_known(sides: Sequence[Query | None]) -> Query | None:
    known = [query for query in sides if query is not None]
    return any_of(known) if known and len(known) == len(sides) else None
