"""Query to plan: an expression for full text, and what is left to be checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from threadline.index.words import searchable, tokens
from threadline.search.expand import expanded
from threadline.search.query import TEXTS, And, Match, Not, Or, Phrase, Query, Regex, all_of, any_of, negated
from threadline.search.regex import literals

# Of what an expression spells out, the characters that full text surely has as they are: ASCII without the one that
# begins what a terminal hides, and Chinese.
_SURE = re.compile("[\0-\x1a\x1c-\x7f\u4e00-\u9fff]+")
_CUT_OFF = re.compile(r"[0-9A-Za-z]*")


class Plan(Struct, frozen=True):
    """How to find what a query asks for.

    Every hit matches `match`, an expression of FTS5; where it is None, full text cannot narrow the search. Of those,
    every entry for which `rest` holds is a hit; where that is None, all are. The leaves of `rest` are `Match` (whose
    expressions are to be asked of full text), `Regex`, `Is`, `Has`, `When` and `Cost`.
    """

    match: str | None = None
    rest: Query | None = None


def plan(query: Query) -> Plan:
    """How to find what a query asks for. FTS5 sees nothing that was typed but tokens in quotes.

    >>> from threadline.search.parse_query import parse_query
    >>> plan(parse_query("snake_case -prompt:draft* tool:Bash"))
    Plan(match='(("snake case") NOT {prompt}:"draft"*)', rest=Is(field='tool', value='Bash', prefix=False))
    """
    whole = expanded(query)
    parts = whole.of if isinstance(whole, And) else (whole,)
    wanted = [one for one in parts if _is_text(one) and not isinstance(one, Not)]
    unwanted = [one for one in parts if _is_text(one) and isinstance(one, Not)]
    others = [one for one in parts if not _is_text(one)]
    narrowed = [found for one in others if (found := _needed(one)) is not None]
    if not wanted and not narrowed:
        return Plan(None, _left(all_of(parts)))
    match = _expression(all_of([*wanted, *narrowed, *unwanted]))
    return Plan(match, _left(all_of(others)) if others else None)


def _is_text(query: Query) -> bool:
    """Whether full text can answer it: FTS5 knows `a NOT b`, and no NOT that stands alone."""
    if isinstance(query, Not):
        return not isinstance(query.of, Not) and _is_text(query.of)
    if isinstance(query, Or):
        return all(_is_text(one) and not isinstance(one, Not) for one in query.of)
    if isinstance(query, And):
        return all(map(_is_text, query.of)) and any(not isinstance(one, Not) for one in query.of)
    return isinstance(query, Phrase)


def _expression(query: Query) -> str:
    """What FTS5 is given: precedence is NOT, AND, OR, each from the left."""
    if isinstance(query, Phrase):
        # A token is letters and digits: no quote can stand in it.
        column = f"{{{query.column}}}:" if query.column is not None else ""
        return f'{column}"{" ".join(query.tokens)}"{"*" if query.prefix else ""}'
    if isinstance(query, Or):
        return f"({' OR '.join(map(_expression, query.of))})"
    if not isinstance(query, And):
        raise TypeError(f"{type(query).__name__} is not asked of full text")
    wanted = " AND ".join(_expression(one) for one in query.of if not isinstance(one, Not))
    unwanted = [one.of for one in query.of if isinstance(one, Not)]
    return f"(({wanted}) NOT {_expression(any_of(unwanted))})" if unwanted else f"({wanted})"


def _left(query: Query) -> Query:
    """What is left to be checked, text in as few expressions as can be."""
    if isinstance(query, Not):
        return negated(_left(query.of))
    if _is_text(query):
        return Match(_expression(query))
    if isinstance(query, And):
        return all_of(_gathered(query.of, all_of))
    if isinstance(query, Or):
        return any_of(_gathered(query.of, any_of))
    return query


def _gathered(queries: Iterable[Query], together: Callable[[Iterable[Query]], Query]) -> Iterator[Query]:
    texts: list[Query] = []
    for one in queries:
        if _is_text(one) and not isinstance(one, Not):
            texts.append(one)
        else:
            yield _left(one)
    if texts:
        yield Match(_expression(together(texts)))


def _needed(query: Query) -> Query | None:
    """What full text must have for the query to hold, as phrases; None where nothing is known."""
    if isinstance(query, Regex):
        phrases = list(_spelt_out(query))
        return all_of(phrases) if phrases else None
    if isinstance(query, Phrase):
        return query
    if isinstance(query, And):
        parts = [found for one in query.of if (found := _needed(one)) is not None]
        return all_of(parts) if parts else None
    if isinstance(query, Or):
        sides = [_needed(one) for one in query.of]
        known = [one for one in sides if one is not None]
        return any_of(known) if len(known) == len(sides) else None
    return None


def _spelt_out(regex: Regex) -> Iterator[Phrase]:
    """The words that any match has: whole ones, and the beginning of one that may go on."""
    if regex.field is not None and regex.field not in TEXTS:
        return
    column = TEXTS[regex.field] if regex.field is not None else None
    for run in literals(regex):
        for sure in _SURE.findall(run):
            cut = _CUT_OFF.match(sure)
            bounded = sure[cut.end() :] if cut is not None else sure  # a token that may begin before it
            found = tokens(searchable(bounded))
            if found:
                yield Phrase(tuple(found), column, prefix=bool(re.fullmatch("[0-9A-Za-z]", bounded[-1])))
