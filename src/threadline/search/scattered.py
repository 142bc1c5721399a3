"""Scattered: sessions that say what is asked for, though no one entry of them may say all of it.

A person remembers words of a title, of what was typed and of the answer; any three words stand together in some long
log. So a session is judged by where each word is said best, and by the entry that has most of them.
"""

from __future__ import annotations

import math
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from threadline.model.hit import Hit
from threadline.search.documents import COLUMNS, JOINED, Row, needs_reading
from threadline.search.expand import expanded
from threadline.search.forms import forms
from threadline.search.fts import expression
from threadline.search.nearest import EMPTY
from threadline.search.query import TEXTS, And, Cost, Is, Phrase, Query, Text, When, all_of, any_of
from threadline.search.ranking import Freshness, Narrowed

# Where a word stands, and what it counts there; the last is anywhere.
_TIERS = (("title", 2.2), ("prompt", 1.7), ("reply", 1.4), ("command path", 1.2), ("", 1.0))
_WEIGHTS = {column: weight for columns, weight in _TIERS for column in columns.split()}
_SAID = 1.3
_NEWEST = 600
"""How many entries are looked at of a word in a tier, those that were indexed last."""
_AGAIN = 0.1
_SHORT = 2_000
_SHOWN = 50
_BLOCK = 900


class Words(Struct, frozen=True):
    """The words of a query that say something, and what must hold besides."""

    texts: tuple[Text, ...]
    filters: tuple[Query, ...]
    dropped: bool

    @property
    def forms(self) -> tuple[Text, ...]:
        """The words as they may end, too."""
        return tuple(Text(form, one.field) for one in self.texts for form in _forms(one))


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
    return Words(full, filters, len(full) < len(texts))


def scattered(
    connection: sqlite3.Connection, words: Words, narrowed: Narrowed, exact: Sequence[Hit], fresh: Freshness
) -> list[Scattered]:
    """The sessions that have all of the words, or most of what they say, best first; those of exact hits among them."""
    looked = _Looking(connection, narrowed)
    for number, one in enumerate(_expressions(words.texts)):
        looked.look(number, one)
    for hit in exact:
        looked.know(hit.entry_id, _WEIGHTS.get(hit.field or "", 1.0))
    return list(_ordered(connection, looked, words, fresh))


def _expressions(texts: Sequence[Text]) -> Iterator[str]:
    whole = expanded(all_of(texts))
    parts = whole.of if isinstance(whole, And) else (whole,)
    for text, part in zip(texts, parts, strict=True):
        column = TEXTS[text.field] if text.field is not None else None
        yield expression(any_of((part, *(Phrase((one,), column) for one in _forms(text)))))


def _forms(text: Text) -> tuple[str, ...]:
    return () if text.phrase or text.prefix else forms(text.text)


class _Looking:
    """Which entries have which words, and where."""

    def __init__(self, connection: sqlite3.Connection, narrowed: Narrowed) -> None:
        self._connection = connection
        self._narrowed = narrowed
        (last,) = connection.execute("SELECT MAX(entry_id) FROM entries").fetchone()
        self._entries = max(1, last or 0)
        self.weights: dict[int, dict[int, float]] = defaultdict(dict)
        self.rarity: dict[int, float] = {}

    def look(self, number: int, match: str) -> None:
        """Find the entries that have a word."""
        found = 0
        for columns, weight in _TIERS:
            within = f"{{{columns}}} : ({match})" if columns else match
            for entry in (some := self._newest(within)):
                self.weights[entry].setdefault(number, weight)
            found = len(some)
        self.rarity[number] = math.log(1 + self._entries / found) if found else 0.0

    def know(self, entry: int, weight: float) -> None:
        """An entry has all words, whether it was looked at or not."""
        for number in self.rarity:
            self.weights[entry].setdefault(number, weight)

    def _newest(self, match: str) -> list[int]:
        condition = self._narrowed.condition
        joined = f"CROSS JOIN entries e ON e.entry_id = text.rowid {JOINED}" if condition else ""
        asked = f"SELECT text.rowid FROM text {joined} WHERE text MATCH ?{condition} ORDER BY text.rowid DESC LIMIT ?"  # noqa: S608 - our own names
        return [entry for (entry,) in self._connection.execute(asked, (match, *self._narrowed.values, _NEWEST))]


def _ordered(connection: sqlite3.Connection, looked: _Looking, words: Words, fresh: Freshness) -> Iterator[Scattered]:
    sessions: dict[object, list[Row]] = defaultdict(list)
    for row in _rows(connection, looked.weights):
        sessions[row.session or row.transcript].append(row)
    judged = (_judged(rows, looked, words, fresh) for rows in sessions.values())
    shown: set[tuple[str, str]] = set()
    for one in sorted(judged, key=lambda one: (-one.score, one.row.entry_id)):
        copy = (one.row.uuid or str(one.row.entry_id), one.row.kind)
        if copy not in shown:
            shown.add(copy)
            yield one
        if len(shown) >= _SHOWN:
            return


def _rows(connection: sqlite3.Connection, entries: Iterable[int]) -> Iterator[Row]:
    numbers = list(entries)
    for at in range(0, len(numbers), _BLOCK):
        some = ", ".join(map(str, numbers[at : at + _BLOCK]))
        asked = f"SELECT e.entry_id, 0.0, {COLUMNS} FROM entries e {JOINED} WHERE e.entry_id IN ({some})"  # noqa: S608 - numbers
        yield from map(Row._make, connection.execute(asked))


def _judged(rows: list[Row], looked: _Looking, words: Words, fresh: Freshness) -> Scattered:
    rarity = looked.rarity
    best: dict[int, float] = {}
    again: dict[int, int] = defaultdict(int)
    most, at = -1.0, rows[0]
    for row in rows:
        has = looked.weights[row.entry_id]
        for number, weight in has.items():
            best[number] = max(weight, best.get(number, 0.0))
            again[number] += weight >= _SAID
        said = sum(rarity[number] * weight for number, weight in has.items()) * _brevity(row.length)
        if said > most:
            most, at = said, row
    everywhere = sum(
        rarity[number] * (weight + _AGAIN * min(3, max(0, again[number] - 1))) for number, weight in best.items()
    )
    whole = sum(rarity.values()) or 1.0
    share = sum(rarity[number] for number in best) / whole
    score = (everywhere + most) / 2 * share**2 * fresh.of(at.timestamp)
    has = looked.weights[at.entry_id]
    return Scattered(at, score, tuple(str(one) for number, one in enumerate(words.texts) if number not in has))


def _brevity(length: int) -> float:
    """What is short is about what it says."""
    return 1 / (1 + 0.15 * math.log2(1 + length / _SHORT))
