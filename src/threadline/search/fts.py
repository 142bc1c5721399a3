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

# The characters of a literal that full text certainly contains unchanged: ASCII without the escape character, and
# Chinese.
_EXACT_CHARACTERS = re.compile("[\0-\x1a\x1c-\x7f\u4e00-\u9fff]+")
_LEADING_WORD = re.compile(r"[0-9A-Za-z]*")

MAX_WORDS = 1_000
"""How many words of the vocabulary a query may look up. If more contain a part, it does not narrow the search."""
_FEW_WORDS = 8


class SearchPlan(Struct, frozen=True):
    """How to find the hits of a query.

    Every hit matches `match`, an FTS5 expression; if it is None, full text cannot narrow the search. Of those entries,
    the hits are those that match `rest`; if it is None, all are. The leaves of `rest` are `Match` (FTS5 expressions),
    `Regex`, `Is`, `Has`, `When` and `Cost`.
    """

    match: str | None = None
    rest: Query | None = None


def make_plan(query: Query, vocabulary: Vocabulary | None = None) -> SearchPlan:
    """Plan how to find the hits of a query. Of the typed text, FTS5 gets only quoted tokens.

    With a vocabulary, the literals of regular expressions narrow the search even if they are only parts of words.

    >>> from threadline.search.parse import parse_query
    >>> make_plan(parse_query('"snake_case" -prompt:draft* tool:Bash'))
    SearchPlan(match='(("snake case") NOT {prompt}:"draft"*)', rest=Is(field='tool', value='Bash', prefix=False))
    """
    expanded = expand(query)
    parts = expanded.of if isinstance(expanded, And) else (expanded,)
    included = [part for part in parts if _is_text(part) and not isinstance(part, Not)]
    excluded = [part for part in parts if _is_text(part) and isinstance(part, Not)]
    others = [part for part in parts if not _is_text(part)]
    narrowing = _RegexNarrowing(vocabulary)
    required = [phrases for other in others if (phrases := narrowing.required(other)) is not None]
    if not included and not required:
        return SearchPlan(None, _remaining(all_of(parts)))
    match = fts_expression(all_of([*included, *required, *excluded]))
    return SearchPlan(match, _remaining(all_of(others)) if others else None)


def _is_text(query: Query) -> bool:
    """Whether full text can answer a query: FTS5 supports `a NOT b`, but no NOT by itself."""
    if isinstance(query, Not):
        return not isinstance(query.of, Not) and _is_text(query.of)
    if isinstance(query, Or):
        return all(_is_text(option) and not isinstance(option, Not) for option in query.of)
    if isinstance(query, And):
        return all(map(_is_text, query.of)) and any(not isinstance(part, Not) for part in query.of)
    return isinstance(query, Phrase)


def fts_expression(query: Query) -> str:
    """The FTS5 expression of a query of phrases. FTS5's precedence is NOT, AND, OR, each from the left."""
    if isinstance(query, Phrase):
        # A token consists of letters and digits: it cannot contain a quote.
        column = f"{{{query.column}}}:" if query.column is not None else ""
        return f'{column}"{" ".join(query.tokens)}"{"*" if query.prefix else ""}'
    if isinstance(query, Or):
        return f"({' OR '.join(map(fts_expression, query.of))})"
    if not isinstance(query, And):
        raise TypeError(f"{type(query).__name__} has no FTS5 expression")
    included = " AND ".join(fts_expression(part) for part in query.of if not isinstance(part, Not))
    excluded = [part.of for part in query.of if isinstance(part, Not)]
    return f"(({included}) NOT {fts_expression(any_of(excluded))})" if excluded else f"({included})"


def _remaining(query: Query) -> Query:
    """The query that is left to check, with its text in as few FTS5 expressions as possible."""
    if isinstance(query, Not):
        return negate(_remaining(query.of))
    if _is_text(query):
        return Match(fts_expression(query))
    if isinstance(query, And):
        return all_of(_combine_text(query.of, all_of))
    if isinstance(query, Or):
        return any_of(_combine_text(query.of, any_of))
    return query


def _combine_text(queries: Iterable[Query], combine: Callable[[Iterable[Query]], Query]) -> Iterator[Query]:
    texts: list[Query] = []
    for query in queries:
        if _is_text(query) and not isinstance(query, Not):
            texts.append(query)
        else:
            yield _remaining(query)
    if texts:
        yield Match(fts_expression(combine(texts)))


class _RegexNarrowing:
    """The phrases that full text must contain for a query to match.

    For a part of a word, the words that contain it come from the vocabulary, as long as there are few enough of them.
    """

    def __init__(self, vocabulary: Vocabulary | None) -> None:
        self._vocabulary = vocabulary if vocabulary is not None and vocabulary.is_whole else None
        self._left = MAX_WORDS

    def required(self, query: Query) -> Query | None:
        """The phrases that every match contains; None if unknown."""
        if isinstance(query, Regex):
            if query.field is not None and query.field not in TEXT_FIELDS:
                return None
            return self._all(required_text(query), TEXT_FIELDS[query.field] if query.field is not None else None)
        if isinstance(query, Phrase):
            return query
        if isinstance(query, And):
            return _all_known([self.required(part) for part in query.of])
        if isinstance(query, Or):
            return _any_known([self.required(option) for option in query.of])
        return None

    def _all(self, requirements: Iterable[Requirement], column: str | None) -> Query | None:
        return _all_known([self._phrases(requirement, column) for requirement in requirements])

    def _phrases(self, requirement: Requirement, column: str | None) -> Query | None:
        if isinstance(requirement, tuple):
            return _any_known([self._all(option, column) for option in requirement])
        return _all_known(
            [
                query
                for literal in _EXACT_CHARACTERS.findall(requirement)
                for query in self._literal_phrases(literal, column)
            ]
        )

    def _literal_phrases(self, literal: str, column: str | None) -> Iterator[Query | None]:
        """The whole words of a literal, the beginning of its last word, and words that end with its first."""
        leading = _LEADING_WORD.match(literal)
        word_end = leading[0] if leading is not None else ""  # of a word that may begin before the literal
        rest = literal[len(word_end) :]
        tokens = tuple(tokenize(normalize_text(rest)))
        is_prefix = bool(rest) and rest[-1].isascii() and rest[-1].isalnum()
        words = self._words(word_end.lower(), ends=bool(rest)) if word_end else None
        if words is not None and tokens:
            yield self._in_a_row(words, tokens, column, prefix=is_prefix)
        elif words is not None:
            yield any_of(Phrase((word,), column) for word in words)
        elif tokens:
            yield Phrase(tokens, column, prefix=is_prefix)

    def _in_a_row(self, words: list[str], tokens: tuple[str, ...], column: str | None, *, prefix: bool) -> Query:
        """One of the words, followed by the tokens."""
        if not prefix or len(words) <= _FEW_WORDS:
            return any_of(Phrase((word, *tokens), column, prefix) for word in words)
        # FTS5 looks up the words of a prefix again for each phrase. If they are few, they are listed instead.
        last_words = set(self._vocabulary.beginning(tokens[-1])) if self._vocabulary is not None else set()
        if len(words) * len(last_words) <= MAX_WORDS:
            rows = [(word, *tokens[:-1], last) for word in words for last in sorted(last_words) or tokens[-1:]]
            return any_of(Phrase(row, column) for row in rows)
        either = any_of(Phrase((word, *tokens[:-1]), column) for word in words)
        return all_of([either, Phrase(tokens, column, prefix=True)])

    def _words(self, part: str, *, ends: bool) -> list[str] | None:
        words = self._vocabulary.containing(part, self._left, ends=ends) if self._vocabulary is not None else None
        if words is None:
            return None
        self._left -= len(words)
        # If no word contains the part, the part itself is looked up: that finds nothing, as it should.
        return words or [part]


def _all_known(queries: Sequence[Query | None]) -> Query | None:
    known = [query for query in queries if query is not None]
    return all_of(known) if known else None


def _any_known(queries: Sequence[Query | None]) -> Query | None:
    known = [query for query in queries if query is not None]
    return any_of(known) if known and len(known) == len(queries) else None
