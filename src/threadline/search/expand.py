"""Words to phrases of tokens: how a name is found however it is written, the same for full text and for a scan."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from functools import cache

from threadline.index.words import searchable, tokens
from threadline.search.query import (
    TEXTS,
    And,
    Has,
    Not,
    Or,
    Phrase,
    Query,
    Regex,
    Text,
    all_of,
    any_of,
    negated,
)

# A name of several words: in another spelling they are one.
_NAME = re.compile("-{0,2}[A-Za-z][0-9A-Za-z]*(?:[_-][A-Za-z][0-9A-Za-z]*)+")


def expanded(query: Query) -> Query:
    """The query with phrases of tokens in place of all text.

    `parseTimestamp` is also the words `parse timestamp` in a row, and so is `parse_timestamp`, which is also one word;
    two words side by side are also one: `parse timestamp` is found in `parseTimestamp`. What is in quotes is found as
    it stands.
    """
    if isinstance(query, And):
        return all_of(_side_by_side(query.of))
    if isinstance(query, Or):
        return any_of(map(expanded, query.of))
    if isinstance(query, Not):
        return negated(expanded(query.of))
    if isinstance(query, Text):
        return _found(query, _spellings(query))
    if isinstance(query, Regex) and query.field == "error":
        return all_of((Has("error"), Regex(query.pattern, exact_case=query.exact_case)))
    return query


def wanted(query: Query) -> Iterator[Phrase | Regex]:
    """The texts that an expanded query asks for; not what it asks to be without."""
    if isinstance(query, And | Or):
        for one in query.of:
            yield from wanted(one)
    elif isinstance(query, Phrase) or (isinstance(query, Regex) and (query.field is None or query.field in TEXTS)):
        yield query


def known_words(connection: sqlite3.Connection) -> Callable[[str], bool]:
    """What says of a word whether any entry has it."""
    asked = "SELECT 1 FROM text WHERE text MATCH ? LIMIT 1"
    return cache(lambda word: connection.execute(asked, (f'"{word}"',)).fetchone() is not None)


def lean(query: Query, is_known: Callable[[str], bool]) -> Query:
    """An expanded query without the spellings that no entry has, where another is left: they find nothing."""
    if isinstance(query, And):
        return all_of([lean(one, is_known) for one in query.of])
    if isinstance(query, Or):
        phrases = [one for one in query.of if isinstance(one, Phrase)]
        unknown = {one for one in phrases if not all(map(is_known, one.tokens[: -1 if one.prefix else None]))}
        left = [lean(one, is_known) for one in query.of if one not in unknown]
        return any_of(left or query.of[:1])
    return query


def _side_by_side(queries: Sequence[Query]) -> list[Query]:
    found: list[Query] = []
    for at, one in enumerate(queries):
        if isinstance(one, Text):
            before = _joined(queries[at - 1], one) if at else []
            after = _joined(one, queries[at + 1]) if at + 1 < len(queries) else []
            found.append(_found(one, [*_spellings(one), *before, *after]))
        else:
            found.append(expanded(one))
    return found


def _joined(one: Query, other: Query) -> list[tuple[str, ...]]:
    """Two words written as one, if both are such: a single token each, in the same field."""
    first, second = _single(one), _single(other)
    if first is None or second is None or first[1] != second[1]:
        return []
    both = tuple(tokens(searchable(first[0] + second[0])))
    return [both] if len(both) == 1 else []


def _single(query: Query) -> tuple[str, str | None] | None:
    if not isinstance(query, Text) or query.phrase or query.prefix:
        return None
    found = tokens(searchable(query.text))
    return (found[0], query.field) if len(found) == 1 else None


def _spellings(query: Text) -> list[tuple[str, ...]]:
    found = [tuple(tokens(searchable(query.text)))]
    if not query.phrase:
        apart = tuple(tokens(searchable(humps(query.text))))
        found += [apart] if apart != found[0] else []
        found += [("".join(found[0]),)] if _NAME.fullmatch(query.text) else []
    return found


def _found(query: Text, spellings: Sequence[tuple[str, ...]]) -> Query:
    column = TEXTS.get(query.field) if query.field is not None else None
    phrases = any_of(Phrase(one, column, query.prefix) for one in dict.fromkeys(spellings))
    return all_of((Has("error"), phrases)) if query.field == "error" else phrases


def humps(text: str) -> str:
    """A name's parts, set apart where small letters go over into capitals.

    >>> humps("parseTimestamp HTTPServer utf8Decode E404 Word")
    'parse Timestamp HTTP Server utf8 Decode E404 Word'
    """
    return "".join(f" {one}" if _begins_hump(text, at) else one for at, one in enumerate(text))


def _begins_hump(text: str, at: int) -> bool:
    if at == 0 or not text[at].isupper():
        return False
    before, goes_on = text[at - 1], text[at + 1 : at + 2].islower()
    return before.islower() or (goes_on and (before.isupper() or before.isdecimal()))
