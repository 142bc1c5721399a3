"""Scattered: sessions that say what is asked for, though no one entry of them may say all of it.

A person remembers words of a title, of what was typed and of the answer; any three words stand together in some long
log. So a session is judged by where each word is said best, and by the entry that has most of them.
"""

from __future__ import annotations

import math
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Sequence

from msgspec import Struct

from threadline.index.words import searchable, tokens
from threadline.model.hit import Hit
from threadline.search.documents import Row, needs_reading
from threadline.search.expand import expanded
from threadline.search.forms import forms
from threadline.search.fts import expression
from threadline.search.nearest import EMPTY
from threadline.search.query import TEXTS, And, Cost, Is, Phrase, Query, Text, When, all_of, any_of
from threadline.search.ranking import Ranking

# Where a word stands, what it counts there, and how many of the entries indexed last are looked at if it is common; the
# last is anywhere: what tools print and are given, what is thought.
_TIERS = (
    ("title", 2.2, 2_000_000),
    ("prompt", 1.7, 2_000_000),
    ("reply", 1.4, 130_000),
    ("command path", 1.2, 130_000),
    ("", 0.6, 130_000),
)
_WEIGHTS = {column: weight for columns, weight, _far in _TIERS for column in columns.split()}
_ANYWHERE = _TIERS[-1][1]
_IN_A_ROW = 1.35
_SAID = 1.3
_NEWEST = 600
_COUNTED = 20_000
_AGAIN = 0.1
_OFTEN = 3
_LONG = 0.15
_SHORT = 2_000
_BLOCK = 900


class Words(Struct, frozen=True):
    """The words of a query that say something, and what must hold besides."""

    texts: tuple[Text, ...]
    filters: tuple[Query, ...]
    in_a_row: tuple[str, ...]
    """All of them as they were typed; none where they are asked for in a field."""
    is_whole: bool
    """Whether no words were left out for saying nothing."""

    @property
    def beginnings(self) -> tuple[Text, ...]:
        """What all forms of each word begin with: where to look for them in a text."""
        return tuple(Text(min(some, key=len), one.field, prefix=True) for one in self.texts if (some := _forms(one)))


class Scattered(Struct, frozen=True):
    """A session by the entry of it that says most, with the words that this entry has not."""

    row: Row
    score: float
    lacks: tuple[str, ...]


def words_of(query: Query) -> Words | None:
    """What can be looked for in a session's entries one by one; None where all has to stand in one entry."""
    parts = query.of if isinstance(query, And) else (query,)
    texts = tuple(one for one in parts if isinstance(one, Text) and one.field != "error")
    filters = tuple(one for one in parts if one not in texts)
    if not texts or not all(isinstance(one, Is | When | Cost) and not needs_reading(one) for one in filters):
        return None
    full = tuple(one for one in texts if one.field or one.phrase or one.text.lower() not in EMPTY) or texts
    typed = "" if any(one.field or one.prefix for one in texts) else " ".join(one.text for one in texts)
    return Words(full, filters, tuple(tokens(searchable(typed))), len(full) == len(texts))


def scattered(
    connection: sqlite3.Connection, words: Words, exact: Sequence[Hit], ranking: Ranking
) -> Iterator[Scattered]:
    """The sessions that have all of the words, or most of what they say, best first; those of exact hits among them."""
    looked = _Looking(connection, ranking)
    for number, match in enumerate(_expressions(words.texts)):
        looked.look(number, match)
    if len(words.in_a_row) > 1:
        for entry in ranking.numbers(expression(Phrase(words.in_a_row)), _NEWEST, _TIERS[-1][2]):
            looked.know(entry, _IN_A_ROW)
    for hit in exact:
        looked.know(hit.entry_id, _WEIGHTS.get(hit.field or "", _ANYWHERE))
    sessions: dict[object, list[Row]] = defaultdict(list)
    for row in looked.rows():
        sessions[row.session or row.transcript].append(row)
    judged = (looked.judged(rows, words) for rows in sessions.values())
    shown: set[tuple[str, str]] = set()
    for one in sorted(judged, key=lambda one: (-one.score, one.row.entry_id)):
        copy = (one.row.uuid or str(one.row.entry_id), one.row.kind)
        if copy not in shown:
            shown.add(copy)
            yield one


def _expressions(texts: Sequence[Text]) -> Iterator[str]:
    whole = expanded(all_of(texts))
    parts = whole.of if isinstance(whole, And) else (whole,)
    for text, part in zip(texts, parts, strict=True):
        column = TEXTS[text.field] if text.field is not None else None
        yield expression(any_of((part, *(Phrase((one,), column) for one in _forms(text)))))


def _forms(text: Text) -> tuple[str, ...]:
    return () if text.phrase or text.prefix else forms(text.text)


class _Looking:
    """Which entries have which words, where, and how rare those are."""

    def __init__(self, connection: sqlite3.Connection, ranking: Ranking) -> None:
        self._connection = connection
        self._ranking = ranking
        (last,) = connection.execute("SELECT MAX(entry_id) FROM entries").fetchone()
        self._entries = max(1, last or 0)
        self._weights: dict[int, dict[int, float]] = defaultdict(dict)
        self._rarity: dict[int, float] = {}

    def look(self, number: int, match: str) -> None:
        """Find the entries that have a word."""
        for columns, weight, far in _TIERS:
            within = f"{{{columns}}} : ({match})" if columns else match
            for entry in self._ranking.numbers(within, _NEWEST, far):
                self._weights[entry].setdefault(number, weight)
        counting = f"SELECT COUNT(*) FROM (SELECT 1 FROM text WHERE text MATCH ? LIMIT {_COUNTED})"  # noqa: S608 - a number
        (count,) = self._connection.execute(counting, (match,)).fetchone()
        self._rarity[number] = math.log(1 + self._entries / count) if count else 0.0

    def know(self, entry: int, weight: float) -> None:
        """An entry has all words, whether it was looked at or not."""
        has = self._weights[entry]
        has.update((number, max(weight, has.get(number, 0.0))) for number in self._rarity)

    def rows(self) -> Iterator[Row]:
        """The entries that have any of the words."""
        numbers = list(self._weights)
        for at in range(0, len(numbers), _BLOCK):
            yield from self._ranking.rows(numbers[at : at + _BLOCK])

    def judged(self, rows: list[Row], words: Words) -> Scattered:
        """What a session is worth: half by where each word is said best, half by the entry that has most of them."""
        best: dict[int, float] = defaultdict(float)
        often: dict[int, int] = defaultdict(int)
        most, told, at = 0.0, -1.0, rows[0]
        for row in rows:
            has = self._said_in(row)
            for number, weight in has.items():
                best[number] = max(weight, best[number])
                often[number] += weight >= _SAID and row.kind != "last-prompt"
            most = max(most, self._sum(has) * _brevity(row.length))
            tells = self._sum({number: min(weight, _SAID) for number, weight in has.items()})
            if tells > told:
                told, at = tells, row
        again = {number: _AGAIN * min(_OFTEN, max(0, times - 1)) for number, times in often.items()}
        share = self._sum(dict.fromkeys(best, 1.0)) / (sum(self._rarity.values()) or 1.0)
        score = (self._sum(best) + self._sum(again) + most) / 2 * share * self._ranking.fresh.of(at.timestamp)
        has = self._weights[at.entry_id]
        return Scattered(at, score, tuple(str(one) for number, one in enumerate(words.texts) if number not in has))

    def _said_in(self, row: Row) -> dict[int, float]:
        """The words of an entry with their weights. What was typed last is told once more for a title: it is none."""
        has = self._weights[row.entry_id]
        if row.kind != "last-prompt":
            return has
        return {number: min(weight, _WEIGHTS["prompt"]) for number, weight in has.items()}

    def _sum(self, weights: dict[int, float]) -> float:
        return sum(self._rarity[number] * weight for number, weight in weights.items())


def _brevity(length: int) -> float:
    """What is short is about what it says."""
    return 1 / (1 + _LONG * math.log2(1 + length / _SHORT))
