"""What a query without hits may have meant: other spellings, some of its words, fewer of its filters."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from difflib import get_close_matches
from itertools import islice

from msgspec import Struct

from threadline.index.vocabulary import Vocabulary
from threadline.index.words import searchable, tokens
from threadline.search.query import TEXTS, And, Or, Query, Regex, Text, all_of, any_of

_SHORT = 4
_MOST_TERMS = 30_000
_LIKE = 0.75
_LONGER = 2
_FEW = 5
_LONG = 10
# Words that say nothing of what is looked for: questions are full of them.
EMPTY = frozenset(
    """a about all also am an and any are as at be because been but by came can come comes could did do does doing for
    from get got had has have how i if in into is it its just me my no not of on or our out should so some than that the
    their them then there these they this those to too up us very was we were what when where which while who why will
    with would you your""".split()  # noqa: SIM905 - easier to read
)


class Instead(Struct, frozen=True):
    """Another query, and a sentence that says how it differs."""

    query: Query
    note: str


def respelt(connection: sqlite3.Connection, query: Query) -> Instead | None:
    """The query with words as they are spelt in some entry; None where each is in one, or nothing is like it."""
    told: list[str] = []
    spelt = _spelt(connection, query, told)
    return Instead(spelt, _sentence("; ".join(told))) if told else None


def _spelt(connection: sqlite3.Connection, query: Query, told: list[str]) -> Query:
    if isinstance(query, And | Or):
        together = all_of if isinstance(query, And) else any_of
        return together([_spelt(connection, one, told) for one in query.of])
    near = _respelt(connection, query) if isinstance(query, Text) else None
    if near is not None:
        told.append(f"no entry has {str(query)!r}, did you mean {str(near)!r}?")
    return near or query


def instead(connection: sqlite3.Connection, query: Query) -> Iterator[Instead]:
    """What may have been meant, the nearest first."""
    spelt = respelt(connection, query)
    if spelt is not None:
        yield spelt
    told, nearer = (spelt.note, spelt.query) if spelt is not None else ("", query)
    parts = nearer.of if isinstance(nearer, And) else (nearer,)
    words = [one for one in parts if isinstance(one, Text)]
    others = [one for one in parts if not isinstance(one, Text)]
    full = [one for one in words if one.text.lower() not in EMPTY] or words
    if len(full) < len(words):
        yield Instead(all_of([*full, *others]), _sentence(f"{told} these have the words that matter".strip()))
    if len(full) > 1:
        yield Instead(all_of([any_of(full), *others]), _sentence("no entry has all of these words, these have some"))


def fewer(query: Query) -> Iterator[tuple[Query, Query]]:
    """Each filter of a query, with the query without it."""
    parts = query.of if isinstance(query, And) else ()
    for at, one in enumerate(parts):
        if not isinstance(one, Text) and not (isinstance(one, Regex) and (one.field is None or one.field in TEXTS)):
            yield one, all_of([*parts[:at], *parts[at + 1 :]])


def _sentence(told: str) -> str:
    return told[:1].upper() + told[1:] + ("" if told.endswith("?") else ".")


def _respelt(connection: sqlite3.Connection, text: Text) -> Text | None:
    """The word as it is spelt in some entry, where no entry has it as it was typed; a name, part by part."""
    made = tokens(searchable(text.text))
    if text.phrase or text.prefix:
        return None
    spelt = text.text
    for word in made:
        near = _nearest(connection, word)
        if near is not None:
            spelt = near if len(made) == 1 else re.sub(re.escape(word), near, spelt, count=1, flags=re.IGNORECASE)
    return Text(spelt, text.field) if spelt != text.text else None


def _nearest(connection: sqlite3.Connection, word: str) -> str | None:
    """The word that is most like one that no entry has."""
    if len(word) < _SHORT or not word.isascii():
        return None
    if connection.execute("SELECT 1 FROM text WHERE text MATCH ? LIMIT 1", (f'"{word}"',)).fetchone() is not None:
        return None
    near = get_close_matches(word, _terms(connection, word), n=_FEW, cutoff=_LIKE)
    most = 1 if len(word) < _LONG else 2
    return next((one for one in near if one not in EMPTY and _slips(word, one) <= most), None)


def _slips(typed: str, meant: str) -> int:
    """How many letters are wrong, missing, too many or swapped with the next."""
    before, last = [0] * (len(meant) + 1), list(range(len(meant) + 1))
    for at, one in enumerate(typed, 1):
        row = [at]
        for to, other in enumerate(meant, 1):
            row.append(min(last[to] + 1, row[to - 1] + 1, last[to - 1] + (one != other)))
            if at > 1 and to > 1 and one == meant[to - 2] and typed[at - 2] == other:
                row[to] = min(row[to], before[to - 2] + 1)
        before, last = last, row
    return last[-1]


def _terms(connection: sqlite3.Connection, word: str) -> list[str]:
    """The words of the index that begin as a word does, in either order of its first letters, and are as long.

    Most words of an index are numbers and ids; a word of letters alone is not meant to be one of them.
    """
    vocabulary = Vocabulary(connection)
    starts = sorted({word[:2], word[1::-1], word[0] + word[2]})
    alike = (
        term
        for start in starts
        for term in vocabulary.beginning(start)
        if abs(len(term) - len(word)) <= _LONGER and (term.isalpha() or not word.isalpha())
    )
    return list(islice(dict.fromkeys(alike), _MOST_TERMS))
