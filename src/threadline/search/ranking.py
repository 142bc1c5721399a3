"""Ranking: which entries may be hits, and which of them come first."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Literal

from msgspec import Struct

from threadline.index.schema import FIELDS
from threadline.model.time import parse_timestamp
from threadline.search.documents import COLUMNS, JOINED, Row
from threadline.search.match import fits
from threadline.search.query import And, Is, Query, When

Sort = Literal["rank", "time"]

WEIGHTS = {
    "title": 10.0,
    "prompt": 8.0,
    "reply": 5.0,
    "command": 4.0,
    "path": 4.0,
    "input": 2.0,
    "thinking": 2.0,
    "injected": 1.0,
    "result": 1.0,
}
"""How much a field's words count: what a person typed and what was said to them, before what tools printed."""

MOST_RANKED = 3_000
"""How many matching entries are ranked; of more than that, some of each field that counts."""
NEWEST = 600
"""How many are ranked, where there are more, of those that were indexed last: of each tier, and of all."""

# Full text's own weights hardly tell: one word of a short command would come before one of a longer prompt.
_TIERS = ((("title", "prompt"), 1.7), (("reply",), 1.3), (("command", "path"), 1.2))
_SCORE = f"bm25(text, {', '.join(str(WEIGHTS[name]) for name in FIELDS)})"
_BLOCK = 500
_WRITTEN = Row._fields.index("timestamp")
_FADES = timedelta(days=60)
_FRESH = 0.3
_MARGIN = timedelta(days=1)


class Narrowed(Struct, frozen=True):
    """What SQL can check of a query: a condition on entries that holds for every hit, and its values."""

    condition: str = ""
    values: tuple[object, ...] = ()


def narrowed(connection: sqlite3.Connection, query: Query) -> Narrowed:
    """The condition that follows from the filters that must all hold."""
    parts: list[str] = []
    values: list[object] = []
    for one in query.of if isinstance(query, And) else (query,):
        if isinstance(one, Is) and one.field == "project":
            known = connection.execute("SELECT project_id, COALESCE(path, folder) FROM projects")
            numbers = [number for number, name in known if fits(one, name)]
            parts.append(f"t.project_id IN ({', '.join('?' * len(numbers))})")
            values += numbers
        elif isinstance(one, Is) and one.field == "kind" and one.value.isascii() and not one.prefix:
            parts.append("lower(e.kind) = ?")
            values.append(one.value.lower())
        elif isinstance(one, Is) and one.field == "session" and one.value.isascii():
            parts.append("substr(lower(COALESCE(e.session, t.session)), 1, ?) = ?")
            values += len(one.value), one.value.lower()
        elif isinstance(one, When):
            _add_moment(one, parts, values)
    return Narrowed("".join(f" AND {part}" for part in parts), tuple(values))


def _add_moment(when: When, parts: list[str], values: list[object]) -> None:
    """Times are compared as they are written, as far as they are written alike, with room for any zone."""
    try:
        edge = when.moment - _MARGIN if when.field == "since" else when.moment + _MARGIN
    except OverflowError:
        return
    compared = ">=" if when.field == "since" else "<="
    parts.append(f"(e.timestamp {compared} ? OR e.timestamp NOT GLOB '[12][0-9][0-9][0-9]-[01][0-9]-*')")
    values.append(edge.strftime("%Y-%m-%dT%H:%M:%S"))


class Ranking:
    """Asks full text, and puts what it has in order."""

    def __init__(self, connection: sqlite3.Connection, narrowed: Narrowed, sort: Sort, now: datetime) -> None:
        self._connection = connection
        self._narrowed = narrowed
        self._sort = sort
        self._fresh = Freshness(now)
        self.left_out = False

    def matching(self, match: str, *, bounded: bool) -> Iterator[Row]:
        """What matches an expression, best first; where it is bounded, a common word costs no more than a rare one.

        `left_out` says afterwards whether there is more that matches.
        """
        if self._sort == "time":
            yield from sorted(self._all(match), key=newest_first)
            return
        scores = sorted(self._scores(match, bounded=bounded).items(), key=lambda one: (one[1], one[0]))
        # A block at a time: what is behind the first few hundred is hardly ever asked for.
        for at in range(0, len(scores), _BLOCK):
            yield from self._ordered(self._rows(dict(scores[at : at + _BLOCK])))

    def _scores(self, match: str, *, bounded: bool) -> dict[int, float]:
        """The numbers of entries that match, with what full text thinks of each, the least being the best."""
        if not bounded or not self._are_many(match):
            scores = dict(self._numbers(match))
            placed: set[int] = set()
            for fields, factor in _TIERS:
                asked = self._connection.execute(self._asking("text.rowid"), self._given(_within(fields, match)))
                within = {number for (number,) in asked if number in scores} - placed
                scores.update((number, scores[number] * factor) for number in within)
                placed |= within
            return scores
        self.left_out = True
        scores = dict(self._numbers(match, NEWEST))
        for fields, factor in reversed(_TIERS):
            scores.update((number, score * factor) for number, score in self._numbers(_within(fields, match), NEWEST))
        return scores

    def _are_many(self, match: str) -> bool:
        found = self._connection.execute(f"{self._asking('1')} LIMIT 1 OFFSET {MOST_RANKED}", self._given(match))
        return found.fetchone() is not None

    def _numbers(self, match: str, last: int | None = None) -> sqlite3.Cursor:
        order = f" ORDER BY text.rowid DESC LIMIT {last}" if last is not None else ""
        return self._connection.execute(self._asking(f"text.rowid, {_SCORE}") + order, self._given(match))

    def _asking(self, wanted: str) -> str:
        joined = f"CROSS JOIN entries e ON e.entry_id = text.rowid {JOINED}" if self._narrowed.condition else ""
        return f"SELECT {wanted} FROM text {joined} WHERE text MATCH ?{self._narrowed.condition}"  # noqa: S608 - our own names

    def _given(self, match: str) -> tuple[object, ...]:
        return (match, *self._narrowed.values)

    def _all(self, match: str) -> Iterator[Row]:
        # Full text may still have rows of entries that are gone: only those that are there count.
        asked = (
            f"SELECT e.entry_id, 0.0, {COLUMNS} FROM text CROSS JOIN entries e ON e.entry_id = text.rowid {JOINED}"  # noqa: S608 - our own names
            f" WHERE text MATCH ?{self._narrowed.condition}"
        )
        return map(Row._make, self._connection.execute(asked, self._given(match)))

    def _rows(self, scores: dict[int, float]) -> list[Row]:
        numbers = ", ".join(map(str, scores))
        asked = f"SELECT e.entry_id, 0.0, {COLUMNS} FROM entries e {JOINED} WHERE e.entry_id IN ({numbers})"  # noqa: S608 - numbers
        fresh = self._fresh
        return [
            Row(row[0], -scores[row[0]] * fresh.of(row[_WRITTEN]), *row[2:]) for row in self._connection.execute(asked)
        ]

    def _ordered(self, rows: list[Row]) -> list[Row]:
        return sorted(rows, key=lambda row: (-row.score, row.entry_id))

    def newest(self) -> Iterator[Row]:
        """All entries, those of the transcripts that were written last first, each from its end."""
        condition, values = self._narrowed.condition, self._narrowed.values
        order = self._connection.execute("SELECT transcript_id FROM transcripts ORDER BY mtime_ns DESC, transcript_id")
        for (number,) in order.fetchall():
            asked = f"SELECT e.entry_id, 0.0, {COLUMNS} FROM entries e {JOINED} WHERE e.transcript_id = ?{condition}"  # noqa: S608 - our own names
            found = self._connection.execute(f"{asked} ORDER BY e.line DESC, e.entry_id DESC", (number, *values))
            yield from map(Row._make, found.fetchall())


def _within(fields: Iterable[str], match: str) -> str:
    """The expression, all of it in these fields; what must not be there must not be in any field."""
    return f"{{{' '.join(fields)}}} : ({match})" + (f" AND ({match})" if " NOT " in match else "")


class Freshness:
    """How much it counts that something is new; most entries of a day share it."""

    def __init__(self, now: datetime) -> None:
        self._now = now
        self._known: dict[str, float] = {}

    def of(self, timestamp: str | None) -> float:
        """What a score is multiplied by: 1 for what is old, or has no time."""
        day = (timestamp or "")[:10]
        known = self._known.get(day)
        if known is None:
            written = parse_timestamp(timestamp)
            age = max(timedelta(0), self._now - written) if written is not None else None
            known = self._known[day] = 1 + (_FRESH * 0.5 ** (age / _FADES) if age is not None else 0)
        return known


def newest_first(row: Row) -> tuple[float, int]:
    """What to sort rows by, for those written last to come first; what has no time comes last."""
    written = parse_timestamp(row.timestamp)
    return (-written.timestamp() if written is not None else 0.0, row.entry_id)
