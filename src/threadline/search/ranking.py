"""Find the entries that may match a query, and put the best first.

BM25 has to count every entry that contains a word, which takes the longer the more there are. So BM25 judges the rare
words; common words say little and count by the field they occur in and by how short the entry is.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from heapq import nlargest
from itertools import chain
from typing import Literal

from msgspec import Struct

from threadline.index import FIELDS
from threadline.model.times import parse_timestamp
from threadline.search.documents import ENTRY_COLUMNS, ENTRY_JOINS, EntryRow, session_costs
from threadline.search.fts import fts_expression
from threadline.search.match import Document, cost_matches, value_matches
from threadline.search.query import And, Cost, Is, Phrase, Query, When, any_of

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

MAX_DATED = 100_000
"""How many matching entries are looked at for those that were written last."""
MAX_RANKED = 2_000
"""How many matching entries are ranked; of more than that, some of each field that counts."""
NEWEST_RANKED = 600
"""How many are ranked, where there are more, of those that were indexed last: of each tier, and of all."""

RECENT_ENTRIES = 130_000
"""How many entries, those indexed last, are asked for a common word in a tier."""
MAX_RARE_ENTRIES = 5_000
"""How many entries may have a word that BM25 is to judge."""

# Full text's own weights hardly tell: one word of a short command would come before one of a longer prompt. Each tier
# has a factor and a weight.
_TIERS = ((("title", "prompt"), 1.7, 8.0), (("reply",), 1.3, 5.0), (("command", "path"), 1.2, 4.0))
_USUAL_LENGTH = 3_000
_FEW_PROMPTS = 60
_DEEP_ENTRIES = 400_000
_ASSUMED_MATCHES = 20
_BM25_SQL = f"bm25(text, {', '.join(str(WEIGHTS[name]) for name in FIELDS)})"
_BLOCK = 300
_TITLE_KINDS = frozenset({"ai-title", "custom-title", "summary"})
_TITLE_FACTOR = 1.25
_RECENCY_HALF_LIFE = timedelta(days=60)
_RECENCY_WEIGHT = 0.3
_ZONE_MARGIN = timedelta(days=1)
_FEW_SESSIONS = 500
_WITH_TOOL_SQL = """t.transcript_id IN (SELECT DISTINCT u.transcript_id FROM call_rows k
    CROSS JOIN entries u ON u.entry_id = k.entry_id WHERE k.tool_id IN ({0}))"""
_SELECT_LAST = """SELECT t.transcript_id,
    COALESCE(r.last, (SELECT MAX(o.last) FROM session_rows o WHERE o.session = t.session)), t.mtime_ns
    FROM transcripts t LEFT JOIN session_rows r USING(transcript_id)"""


class SqlCondition(Struct, frozen=True):
    """What SQL can check of a query: a condition on entries that holds for every hit, and its values."""

    condition: str = ""
    values: tuple[object, ...] = ()


def sql_condition(connection: sqlite3.Connection, query: Query) -> SqlCondition:
    """The condition that follows from the filters that must all hold."""
    parts: list[str] = []
    values: list[object] = []
    for one in query.of if isinstance(query, And) else (query,):
        if isinstance(one, Is) and one.field == "project":
            known = connection.execute("SELECT project_id, COALESCE(path, folder) FROM projects")
            numbers = [number for number, name in known if value_matches(one, name)]
            parts.append(f"t.project_id IN ({', '.join('?' * len(numbers))})")
            values += numbers
        elif isinstance(one, Is) and one.field == "kind" and one.value.isascii() and not one.prefix:
            parts.append("lower(e.kind) = ?")
            values.append(one.value.lower())
        elif isinstance(one, Is) and one.field == "session" and one.value.isascii():
            parts.append("substr(lower(COALESCE(e.session, t.session)), 1, ?) = ?")
            values += len(one.value), one.value.lower()
        elif isinstance(one, Is) and one.field == "tool":
            tools = [
                number
                for number, name in connection.execute("SELECT tool_id, tool FROM tools")
                if value_matches(one, name)
            ]
            # All entries of transcripts that have a call of it: results are found by where their calls stand.
            parts.append(_WITH_TOOL_SQL.format(", ".join("?" * len(tools))))
            values += tools
        elif isinstance(one, Cost):
            fitting = [session for session, amount in session_costs(connection).items() if cost_matches(one, amount)]
            if len(fitting) <= _FEW_SESSIONS:
                parts.append(f"COALESCE(e.session, t.session) IN ({', '.join('?' * len(fitting))})")
                values += fitting
        elif isinstance(one, When):
            _add_time_condition(one, parts, values)
    return SqlCondition("".join(f" AND {part}" for part in parts), tuple(values))


def _add_time_condition(when: When, parts: list[str], values: list[object]) -> None:
    """Times are compared as they are written, as far as they are written alike, with room for any zone."""
    try:
        edge = when.moment - _ZONE_MARGIN if when.field == "since" else when.moment + _ZONE_MARGIN
    except OverflowError:
        return
    compared = ">=" if when.field == "since" else "<="
    parts.append(f"(e.timestamp {compared} ? OR e.timestamp NOT GLOB '[12][0-9][0-9][0-9]-[01][0-9]-*')")
    values.append(edge.strftime("%Y-%m-%dT%H:%M:%S"))


class Ranker:
    """Asks full text, and puts what it has in order.

    BM25 has to count every entry that has a word, which takes the longer the more there are. So it judges the words
    that are rare; those that are common say little, and count by the field that they stand in and by how short it is.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        narrowed: SqlCondition,
        sort: Sort,
        now: datetime,
        phrases: Iterable[Phrase],
    ) -> None:
        self._connection = connection
        self._narrowed = narrowed
        self.is_by_rank = sort == "rank"
        self.fresh = RecencyBoost(now)
        self._phrases = tuple(dict.fromkeys(phrases))
        (last,) = connection.execute("SELECT MAX(entry_id) FROM entries").fetchone()
        self._last = int(last or 0)
        self.left_out = False

    def matching(self, match: str, *, bounded: bool) -> Iterator[EntryRow]:
        """What matches an expression, best first; where it is bounded, a common word costs little more than a rare one.

        `left_out` says afterwards whether there is more that matches.
        """
        if not self.is_by_rank:
            numbers = self._newest_of(match, bounded=bounded)
            rows = [row for at in range(0, len(numbers), _BLOCK) for row in self.rows(numbers[at : at + _BLOCK])]
            yield from sorted(rows, key=newest_first_key)
            return
        numbers = self.numbers(match, MAX_RANKED + 1 if bounded else None)
        self.left_out = bounded and len(numbers) > MAX_RANKED
        tiers = self._tiers(match) if numbers else []
        if self.left_out:
            numbers = list(dict.fromkeys([*chain(*tiers), *numbers[:NEWEST_RANKED]]))
        yield from self._best_first(numbers, tiers)

    def _newest_of(self, match: str, *, bounded: bool) -> list[int]:
        """The numbers of entries that match, of those that were written last; of very many, those indexed last."""
        asked = (
            f"SELECT e.entry_id, e.timestamp FROM text CROSS JOIN entries e ON e.entry_id = text.rowid {ENTRY_JOINS}"  # noqa: S608 - our own names
            f" WHERE text MATCH ?{self._narrowed.condition} ORDER BY text.rowid DESC"
            + (f" LIMIT {MAX_DATED + 1}" if bounded else "")
        )
        dated = [(written or "", number) for number, written in self._connection.execute(asked, self._given(match))]
        self.left_out = bounded and len(dated) > MAX_RANKED
        return [number for _written, number in (nlargest(MAX_RANKED, dated) if self.left_out else dated)]

    def rest(self, match: str, without: Collection[int]) -> Iterator[EntryRow]:
        """What else matches, the newest first."""
        order = " ORDER BY text.rowid DESC"
        asked = self._connection.execute(self._asking("text.rowid") + order, self._given(match))
        while some := asked.fetchmany(_BLOCK):
            yield from self.rows([number for (number,) in some if number not in without])

    def _tiers(self, match: str) -> list[list[int]]:
        """The numbers of entries that match in each tier, the newest first.

        Where only common words are asked for, this is looked up among what was indexed last; what a person typed is
        looked for further back, if there is little of it.
        """
        tiers = []
        is_quick = not self.left_out and self._is_quick(match)
        for tier, (fields, _factor, _weight) in enumerate(_TIERS):
            within = _in_fields(fields, match)
            some = self.numbers(within) if is_quick else self.numbers(within, NEWEST_RANKED, RECENT_ENTRIES)
            if tier == 0 and not is_quick and len(some) < _FEW_PROMPTS:
                some = self._from(self._last - _DEEP_ENTRIES, within)
            tiers.append(some)
        return tiers

    def _is_quick(self, match: str) -> bool:
        """Whether full text is soon through: one rare word is enough where all have to be there."""
        if self._last <= RECENT_ENTRIES:
            return True
        return bool(self._rare) and (" OR " not in match or len(self._rare) == len(self._phrases))

    def _best_first(self, numbers: list[int], tiers: Sequence[Iterable[int]]) -> Iterator[EntryRow]:
        placed: dict[int, int] = {}
        for tier, some in enumerate(tiers):
            for number in some:
                placed.setdefault(number, tier)
        scores = self._scores(numbers)
        common = max(len(self._phrases) - len(self._rare), 0 if self._rare else 1)

        def score(number: int, length: float = 1.0) -> float:
            tier = placed.get(number, -1)
            factor, weight = _TIERS[tier][1:] if tier >= 0 else (1.0, 1.0)
            return (scores.get(number, 0.0) + common * _common_word_score(weight, length)) * factor

        order = sorted(numbers, key=lambda number: (-score(number), -number))
        # A block at a time: what is behind the first few hundred is hardly ever asked for.
        for at in range(0, len(order), _BLOCK):
            rows = [
                row._replace(score=score(row.entry_id, row.length / _USUAL_LENGTH) * self._worth(row))
                for row in self.rows(order[at : at + _BLOCK])
            ]
            yield from sorted(rows, key=best_first_key)

    def _worth(self, row: EntryRow) -> float:
        return self.fresh.of(row.timestamp) * (_TITLE_FACTOR if row.kind in _TITLE_KINDS else 1.0)

    def _scores(self, numbers: Collection[int]) -> dict[int, float]:
        """What BM25 thinks of entries by the words that are rare."""
        if not self._rare or not numbers:
            return {}
        asked = f"SELECT rowid, {_BM25_SQL} FROM text WHERE text MATCH ? AND rowid >= ? AND rowid <= ?"  # noqa: S608 - numbers
        wanted = set(numbers)
        found = self._connection.execute(asked, (fts_expression(any_of(self._rare)), min(wanted), max(wanted)))
        return {number: -score for number, score in found if number in wanted}

    @cached_property
    def _rare(self) -> list[Phrase]:
        """The phrases that few entries have: a row of words is as rare as the rarest of them, at least."""
        probe = f"SELECT 1 FROM text WHERE text MATCH ? LIMIT 1 OFFSET {MAX_RARE_ENTRIES}"  # noqa: S608 - a number
        tokens = {token for phrase in self._phrases for token in phrase.tokens}
        rare = {token for token in tokens if self._connection.execute(probe, (f'"{token}"',)).fetchone() is None}
        return [phrase for phrase in self._phrases if not phrase.prefix and not rare.isdisjoint(phrase.tokens)]

    def numbers(self, match: str, most: int | None = None, far: int | None = None) -> list[int]:
        """The numbers of entries that match, those indexed last first: so many, out of so many that were indexed last.

        Full text is quick to begin at some row, and slow to end at one.
        """
        if far is None or far >= self._last:
            limit = f" LIMIT {most}" if most is not None else ""
            asked = f"{self._asking('text.rowid')} ORDER BY text.rowid DESC{limit}"
            return [number for (number,) in self._connection.execute(asked, self._given(match))]
        return self._from(self._last - far, match)[:most]

    def _from(self, begin: int, match: str) -> list[int]:
        asked = f"{self._asking('text.rowid')} AND text.rowid > ? ORDER BY text.rowid"
        return [number for (number,) in self._connection.execute(asked, (*self._given(match), begin))][::-1]

    def _asking(self, wanted: str) -> str:
        joined = f"CROSS JOIN entries e ON e.entry_id = text.rowid {ENTRY_JOINS}" if self._narrowed.condition else ""
        return f"SELECT {wanted} FROM text {joined} WHERE text MATCH ?{self._narrowed.condition}"  # noqa: S608 - our own names

    def _given(self, match: str) -> tuple[object, ...]:
        return (match, *self._narrowed.values)

    def rows(self, numbers: Iterable[int]) -> list[EntryRow]:
        """The rows of entries; full text may still have words of some that are gone."""
        listed = ", ".join(map(str, numbers))
        asked = f"SELECT e.entry_id, 0.0, {ENTRY_COLUMNS} FROM entries e {ENTRY_JOINS} WHERE e.entry_id IN ({listed})"  # noqa: S608 - numbers
        return [EntryRow._make(row) for row in self._connection.execute(f"{asked} ORDER BY e.entry_id DESC")]

    def score_document(self, row: EntryRow, document: Document) -> float:
        """What an entry is worth that was found by reading it: by the fields that it has, its length and its age."""
        tiers = (tier for tier in _TIERS if any(getattr(document, field) for field in tier[0]))
        _fields, factor, weight = next(tiers, ((), 1.0, 1.0))
        return _common_word_score(weight, row.length / _USUAL_LENGTH) * factor * self.fresh.of(row.timestamp)

    def score_deleted_prompt(self, row: EntryRow) -> float:
        """What a prompt is worth that is not in full text: as if few others had its rare words."""
        common = max(1, len(self._phrases)) - len(self._rare)
        _fields, factor, weight = _TIERS[0]
        words = common + len(self._rare) * math.log(1 + self._last / _ASSUMED_MATCHES)
        return words * _common_word_score(weight, row.length / _USUAL_LENGTH) * factor * self._worth(row)

    def newest(self) -> Iterator[tuple[float, Iterator[EntryRow]]]:
        """The entries of each transcript from its end, and the last time that its session tells, the newest first."""
        dated = [
            (_seconds(last) if last is not None else mtime_ns / 1e9, number)
            for number, last, mtime_ns in self._connection.execute(_SELECT_LAST)
        ]
        for last, number in sorted(dated, key=lambda one: (-one[0], one[1])):
            yield last, self._from_its_end(number)

    def _from_its_end(self, number: int) -> Iterator[EntryRow]:
        asked = f"SELECT e.entry_id, 0.0, {ENTRY_COLUMNS} FROM entries e {ENTRY_JOINS} WHERE e.transcript_id = ?"  # noqa: S608 - our own names
        order = f"{self._narrowed.condition} ORDER BY e.line DESC, e.entry_id DESC"
        yield from map(EntryRow._make, self._connection.execute(asked + order, (number, *self._narrowed.values)))


def _common_word_score(weight: float, length: float) -> float:
    """What BM25 gives to a common word that an entry has once, in a field of that weight; lengths are relative."""
    return weight * 2.2 / (weight + 1.2 * (0.25 + 0.75 * length))


def _in_fields(fields: Iterable[str], match: str) -> str:
    """The expression, all of it in these fields; what must not be there must not be in any field."""
    return f"{{{' '.join(fields)}}} : ({match})" + (f" AND ({match})" if " NOT " in match else "")


class RecencyBoost:
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
            known = self._known[day] = 1 + (
                _RECENCY_WEIGHT * 0.5 ** (age / _RECENCY_HALF_LIFE) if age is not None else 0
            )
        return known


def newest_first_key(row: EntryRow) -> tuple[float, int]:
    """What to sort rows by, for those written last to come first; what has no time comes last."""
    return -_seconds(row.timestamp), row.entry_id


def _seconds(written: str | None) -> float:
    moment = parse_timestamp(written)
    return moment.timestamp() if moment is not None else 0.0


def best_first_key(row: EntryRow) -> tuple[float, int]:
    """What to sort rows by, for the best to come first."""
    return (-row.score, row.entry_id)
