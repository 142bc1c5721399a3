"""Scattered: sessions that say what is asked for, though no one entry of them may say all of it.

A person remembers words of a title, of what was typed and of the answer; any three words stand together in some long
log. So a session is judged by where each word is said best, and by the entry that has most of them.
"""

from __future__ import annotations

import math
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from os.path import commonprefix
from typing import NamedTuple

from msgspec import Struct

from threadline.index.words import searchable, tokens
from threadline.model.hit import Hit
from threadline.search.documents import Row, needs_reading
from threadline.search.expand import expanded, known_words, lean
from threadline.search.forms import forms
from threadline.search.fts import expression
from threadline.search.nearest import EMPTY
from threadline.search.query import TEXTS, And, Cost, Is, Phrase, Query, Text, When, all_of, any_of
from threadline.search.ranking import Ranking

# Where a word stands, what it counts there, and how many of the entries indexed last are looked at if it is common; the
# last is anywhere: what tools print and are given, what is thought.
_FAR = 130_000
_TIERS = (
    ("title", 2.2, 2_000_000),
    ("prompt", 1.7, 2_000_000),
    ("reply", 1.4, _FAR),
    ("command path", 1.2, _FAR),
    ("", 0.6, _FAR),
)
_WEIGHTS = {column: weight for columns, weight, _far in _TIERS for column in columns.split()}
_ANYWHERE = _TIERS[-1][1]
_IN_A_ROW = 1.35
_SAID = 1.3
_NEWEST = 400
_COMMON = 20_000
_REPEATED = "last-prompt"
_AGAIN = 0.1
_OFTEN = 3
_LONG = 0.15
_SHORT = 2_000
_BLOCK = 900


class _Seen(NamedTuple):
    """What has to be known of an entry to judge its session."""

    entry_id: int
    session: str
    kind: str
    length: int
    timestamp: str | None


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
        return tuple(
            Text(commonprefix([one.text.lower(), *some]), one.field, prefix=True)  # noqa: RUF071 - of letters
            for one in self.texts
            if (some := _forms(one))
        )


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
    for number, match in enumerate(_expressions(words.texts, known_words(connection))):
        looked.look(number, match)
    if len(words.in_a_row) > 1:
        for entry in ranking.numbers(expression(Phrase(words.in_a_row)), _NEWEST, _FAR):
            looked.know(entry, _IN_A_ROW)
    for hit in exact:
        looked.know(hit.entry_id, _WEIGHTS.get(TEXTS.get(hit.field or "", ""), _ANYWHERE))
    shown: set[tuple[str, str]] = set()
    for score, entry in looked.judged():
        for row in ranking.rows([entry]):
            copy = (row.uuid or str(entry), row.kind)
            if copy not in shown:
                shown.add(copy)
                yield Scattered(row, score, tuple(map(str, looked.lacking(entry, words.texts))))


def _expressions(texts: Sequence[Text], is_known: Callable[[str], bool]) -> Iterator[str]:
    whole = expanded(all_of(texts))
    parts = whole.of if isinstance(whole, And) else (whole,)
    for text, part in zip(texts, parts, strict=True):
        column = TEXTS[text.field] if text.field is not None else None
        yield expression(lean(any_of((part, *(Phrase((one,), column) for one in _forms(text)))), is_known))


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
        """Find the entries that have a word; one that is all over the place is looked for only where it counts."""
        counting = f"SELECT COUNT(*) FROM (SELECT 1 FROM text WHERE text MATCH ? LIMIT {_COMMON})"  # noqa: S608 - a number
        (count,) = self._connection.execute(counting, (match,)).fetchone()
        self._rarity[number] = math.log(1 + self._entries / count) if count else 0.0
        for columns, weight, far in _TIERS if count < _COMMON else _TIERS[:-1]:
            within = f"{{{columns}}} : ({match})" if columns else match
            for entry in self._ranking.numbers(within, _NEWEST, far):
                self._weights[entry].setdefault(number, weight)

    def know(self, entry: int, weight: float) -> None:
        """An entry has all words, whether it was looked at or not."""
        has = self._weights[entry]
        has.update((number, max(weight, has.get(number, 0.0))) for number in self._rarity)

    def judged(self) -> list[tuple[float, int]]:
        """What each session is worth, and the entry that tells most of it; the best first."""
        sessions: dict[object, list[_Seen]] = defaultdict(list)
        for seen in self._seen():
            sessions[seen.session].append(seen)
        return sorted(map(self._judged, sessions.values()), key=lambda one: (-one[0], one[1]))

    def lacking(self, entry: int, texts: Sequence[Text]) -> Iterator[Text]:
        """The words that an entry has not."""
        return (text for number, text in enumerate(texts) if number not in self._weights[entry])

    def _seen(self) -> Iterator[_Seen]:
        numbers = list(self._weights)
        for at in range(0, len(numbers), _BLOCK):
            some = ", ".join(map(str, numbers[at : at + _BLOCK]))
            asked = (
                "SELECT e.entry_id, COALESCE(e.session, t.session, t.path), e.kind, e.length, e.timestamp"  # noqa: S608 - numbers
                f" FROM entries e JOIN transcripts t ON t.transcript_id = e.transcript_id WHERE e.entry_id IN ({some})"
            )
            yield from map(_Seen._make, self._connection.execute(asked))

    def _judged(self, entries: list[_Seen]) -> tuple[float, int]:
        """Half by where each word is said best, half by the entry that has most of them."""
        best: dict[int, float] = {}
        often: dict[int, int] = defaultdict(int)
        most, told, at = 0.0, -1.0, entries[0]
        for seen in entries:
            sum_of, tells = 0.0, 0.0
            for number, weight in self._said_in(seen).items():
                rarity = self._rarity[number]
                sum_of += rarity * weight
                tells += rarity * min(weight, _SAID)
                best[number] = max(weight, best.get(number, 0.0))
                often[number] += weight >= _SAID and seen.kind != _REPEATED
            most = max(most, sum_of * _brevity(seen.length))
            if tells > told:
                told, at = tells, seen
        again = sum(self._rarity[number] * min(_OFTEN, times - 1) for number, times in often.items() if times > 1)
        everywhere = sum(self._rarity[number] * weight for number, weight in best.items()) + _AGAIN * again
        share = sum(self._rarity[number] for number in best) / (sum(self._rarity.values()) or 1.0)
        return (everywhere + most) / 2 * share * self._ranking.fresh.of(at.timestamp), at.entry_id

    def _said_in(self, seen: _Seen) -> dict[int, float]:
        """The words of an entry with their weights. What was typed last is told once more for a title: it is none."""
        has = self._weights[seen.entry_id]
        if seen.kind != _REPEATED:
            return has
        return {number: min(weight, _WEIGHTS["prompt"]) for number, weight in has.items()}


def _brevity(length: int) -> float:
    """What is short is about what it says."""
    return 1 / (1 + _LONG * math.log2(1 + length / _SHORT))
