"""Suggestions when a query finds little: sessions with some of the words, other spellings, values that exist.

People remember words of a title, of what was typed and of the answer, while any three words occur together in some
long log. So a session is judged by where each word is said best, and by the entry that contains most of them.
"""

from __future__ import annotations

import math
import re
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import get_close_matches
from itertools import islice
from os.path import commonprefix
from typing import NamedTuple

from msgspec import Struct

from threadline.index import Vocabulary, normalize_text, tokenize
from threadline.model.hits import Hit
from threadline.model.text import format_time, join_some
from threadline.model.times import parse_timestamp
from threadline.search.documents import EntryRow, needs_reading
from threadline.search.fts import fts_expression
from threadline.search.match import value_matches
from threadline.search.query import (
    TEXT_FIELDS,
    And,
    Cost,
    Is,
    Or,
    Phrase,
    Query,
    Regex,
    Text,
    When,
    all_of,
    any_of,
    drop_unknown_spellings,
    expand,
    word_forms,
    word_lookup,
)
from threadline.search.ranking import Ranker

# Where a word stands, what it counts there, and how many of the entries indexed last are looked at if it is common; the
# last is anywhere: what tools print and are given, what is thought.
_RECENT_ENTRIES = 130_000
_TIERS = (
    ("title", 2.2, 2_000_000),
    ("prompt", 1.7, 2_000_000),
    ("reply", 1.4, _RECENT_ENTRIES),
    ("command path", 1.2, _RECENT_ENTRIES),
    ("", 0.6, _RECENT_ENTRIES),
)
_WEIGHTS = {column: weight for columns, weight, _far in _TIERS for column in columns.split()}
_ANYWHERE_WEIGHT = _TIERS[-1][1]
_ADJACENT_WEIGHT = 1.35
_SAID_WEIGHT = 1.3
_MAX_PER_TIER = 400
_COMMON_COUNT = 20_000
_REPEATED_KIND = "last-prompt"
_REPETITION_WEIGHT = 0.1
_MAX_REPETITIONS = 3
_LENGTH_PENALTY = 0.15
_SHORT_ENTRY_BYTES = 2_000
_BLOCK = 900


class _EntryFacts(NamedTuple):
    """What has to be known of an entry to judge its session."""

    entry_id: int
    session: str
    kind: str
    length: int
    timestamp: str | None


class QueryWords(Struct, frozen=True):
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
            Text(commonprefix([text.text.lower(), *some]), text.field, prefix=True)  # noqa: RUF071 - of letters
            for text in self.texts
            if (some := _forms_of(text))
        )


class PartialMatch(Struct, frozen=True):
    """A session by the entry of it that says most, with the words that this entry has not."""

    row: EntryRow
    score: float
    lacks: tuple[str, ...]


def query_words(query: Query) -> QueryWords | None:
    """What can be looked for in a session's entries one by one; None where all has to stand in one entry."""
    parts = query.of if isinstance(query, And) else (query,)
    texts = tuple(part for part in parts if isinstance(part, Text) and part.field != "error")
    filters = tuple(part for part in parts if part not in texts)
    if not texts or not all(isinstance(one, Is | When | Cost) and not needs_reading(one) for one in filters):
        return None
    full = tuple(text for text in texts if text.field or text.phrase or text.text.lower() not in STOP_WORDS) or texts
    typed = "" if any(text.field or text.prefix for text in texts) else " ".join(text.text for text in texts)
    return QueryWords(full, filters, tuple(tokenize(normalize_text(typed))), len(full) == len(texts))


def find_partial_matches(
    connection: sqlite3.Connection, words: QueryWords, exact: Sequence[Hit], ranking: Ranker
) -> Iterator[PartialMatch]:
    """The sessions that have all of the words, or most of what they say, best first; those of exact hits among them."""
    looked = _PartialMatcher(connection, ranking)
    for number, match in enumerate(_word_expressions(words.texts, word_lookup(connection))):
        looked.look(number, match)
    if len(words.in_a_row) > 1:
        for entry in ranking.numbers(fts_expression(Phrase(words.in_a_row)), _MAX_PER_TIER, _RECENT_ENTRIES):
            looked.know(entry, _ADJACENT_WEIGHT)
    for hit in exact:
        looked.know(hit.entry_id, _WEIGHTS.get(TEXT_FIELDS.get(hit.field or "", ""), _ANYWHERE_WEIGHT))
    shown: set[tuple[str, str]] = set()
    for score, entry in looked.judged():
        for row in ranking.rows([entry]):
            copy = (row.uuid or str(entry), row.kind)
            if copy not in shown:
                shown.add(copy)
                yield PartialMatch(row, score, tuple(map(str, looked.lacking(entry, words.texts))))


def _word_expressions(texts: Sequence[Text], is_known: Callable[[str], bool]) -> Iterator[str]:
    whole = expand(all_of(texts))
    parts = whole.of if isinstance(whole, And) else (whole,)
    for text, part in zip(texts, parts, strict=True):
        column = TEXT_FIELDS[text.field] if text.field is not None else None
        yield fts_expression(
            drop_unknown_spellings(any_of((part, *(Phrase((one,), column) for one in _forms_of(text)))), is_known)
        )


def _forms_of(text: Text) -> tuple[str, ...]:
    return () if text.phrase or text.prefix else word_forms(text.text)


class _PartialMatcher:
    """Which entries have which words, where, and how rare those are."""

    def __init__(self, connection: sqlite3.Connection, ranking: Ranker) -> None:
        self._connection = connection
        self._ranking = ranking
        (last,) = connection.execute("SELECT MAX(entry_id) FROM entries").fetchone()
        self._entries = max(1, last or 0)
        self._weights: dict[int, dict[int, float]] = defaultdict(dict)
        self._rarity: dict[int, float] = {}

    def look(self, number: int, match: str) -> None:
        """Find the entries that have a word; one that is all over the place is looked for only where it counts."""
        counting = f"SELECT COUNT(*) FROM (SELECT 1 FROM text WHERE text MATCH ? LIMIT {_COMMON_COUNT})"  # noqa: S608 - a number
        (count,) = self._connection.execute(counting, (match,)).fetchone()
        self._rarity[number] = math.log(1 + self._entries / count) if count else 0.0
        for columns, weight, far in _TIERS if count < _COMMON_COUNT else _TIERS[:-1]:
            within = f"{{{columns}}} : ({match})" if columns else match
            for entry in self._ranking.numbers(within, _MAX_PER_TIER, far):
                self._weights[entry].setdefault(number, weight)

    def know(self, entry: int, weight: float) -> None:
        """An entry has all words, whether it was looked at or not."""
        has = self._weights[entry]
        has.update((number, max(weight, has.get(number, 0.0))) for number in self._rarity)

    def judged(self) -> list[tuple[float, int]]:
        """What each session is worth, and the entry that tells most of it; the best first."""
        sessions: dict[object, list[_EntryFacts]] = defaultdict(list)
        for seen in self._seen():
            sessions[seen.session].append(seen)
        return sorted(map(self._judged, sessions.values()), key=lambda one: (-one[0], one[1]))

    def lacking(self, entry: int, texts: Sequence[Text]) -> Iterator[Text]:
        """The words that an entry has not."""
        return (text for number, text in enumerate(texts) if number not in self._weights[entry])

    def _seen(self) -> Iterator[_EntryFacts]:
        numbers = list(self._weights)
        for at in range(0, len(numbers), _BLOCK):
            some = ", ".join(map(str, numbers[at : at + _BLOCK]))
            asked = (
                "SELECT e.entry_id, COALESCE(e.session, t.session, t.path), e.kind, e.length, e.timestamp"  # noqa: S608 - numbers
                f" FROM entries e JOIN transcripts t ON t.transcript_id = e.transcript_id WHERE e.entry_id IN ({some})"
            )
            yield from map(_EntryFacts._make, self._connection.execute(asked))

    def _judged(self, entries: list[_EntryFacts]) -> tuple[float, int]:
        """Half by where each word is said best, half by the entry that has most of them."""
        best: dict[int, float] = {}
        often: dict[int, int] = defaultdict(int)
        most, told, at = 0.0, -1.0, entries[0]
        for seen in entries:
            sum_of, tells = 0.0, 0.0
            for number, weight in self._said_in(seen).items():
                rarity = self._rarity[number]
                sum_of += rarity * weight
                tells += rarity * min(weight, _SAID_WEIGHT)
                best[number] = max(weight, best.get(number, 0.0))
                often[number] += weight >= _SAID_WEIGHT and seen.kind != _REPEATED_KIND
            most = max(most, sum_of * _brevity(seen.length))
            if tells > told:
                told, at = tells, seen
        again = sum(
            self._rarity[number] * min(_MAX_REPETITIONS, times - 1) for number, times in often.items() if times > 1
        )
        everywhere = sum(self._rarity[number] * weight for number, weight in best.items()) + _REPETITION_WEIGHT * again
        share = sum(self._rarity[number] for number in best) / (sum(self._rarity.values()) or 1.0)
        return (everywhere + most) / 2 * share * self._ranking.fresh.of(at.timestamp), at.entry_id

    def _said_in(self, seen: _EntryFacts) -> dict[int, float]:
        """The words of an entry with their weights. What was typed last is told once more for a title: it is none."""
        has = self._weights[seen.entry_id]
        if seen.kind != _REPEATED_KIND:
            return has
        return {number: min(weight, _WEIGHTS["prompt"]) for number, weight in has.items()}


def _brevity(length: int) -> float:
    """What is short is about what it says."""
    return 1 / (1 + _LENGTH_PENALTY * math.log2(1 + length / _SHORT_ENTRY_BYTES))


_MIN_WORD = 4
_MAX_CANDIDATES = 30_000
_MIN_WORD_SIMILARITY = 0.75
_MAX_LENGTH_DIFFERENCE = 2
_CLOSEST_WORDS = 5
_LONG_WORD = 10
# Words that say nothing of what is looked for: questions are full of them.
STOP_WORDS = frozenset(
    """a about all also am an and any are as at be because been but by came can come comes could did do does doing for
    from get got had has have how i if in into is it its just me my no not of on or our out should so some than that the
    their them then there these they this those to too up us very was we were what when where which while who why will
    with would you your""".split()  # noqa: SIM905 - easier to read
)


class Suggestion(Struct, frozen=True):
    """Another query, and a sentence that says how it differs."""

    query: Query
    note: str


def suggest_spelling(connection: sqlite3.Connection, query: Query) -> Suggestion | None:
    """The query with words as they are spelt in some entry; None where each is in one, or nothing is like it."""
    told: list[str] = []
    spelt = _respell(connection, query, told)
    return Suggestion(spelt, _to_sentence("; ".join(told))) if told else None


def _respell(connection: sqlite3.Connection, query: Query, told: list[str]) -> Query:
    if isinstance(query, And | Or):
        together = all_of if isinstance(query, And) else any_of
        return together([_respell(connection, one, told) for one in query.of])
    near = _respell_text(connection, query) if isinstance(query, Text) else None
    if near is not None:
        told.append(f"no entry has {str(query)!r}, did you mean {str(near)!r}?")
    return near or query


def suggest_queries(connection: sqlite3.Connection, query: Query) -> Iterator[Suggestion]:
    """What may have been meant, the nearest first."""
    spelt = suggest_spelling(connection, query)
    if spelt is not None:
        yield spelt
    told, nearer = (spelt.note, spelt.query) if spelt is not None else ("", query)
    parts = nearer.of if isinstance(nearer, And) else (nearer,)
    words = [part for part in parts if isinstance(part, Text)]
    others = [part for part in parts if not isinstance(part, Text)]
    full = [word for word in words if word.text.lower() not in STOP_WORDS] or words
    if len(full) < len(words):
        yield Suggestion(all_of([*full, *others]), _to_sentence(f"{told} these have the words that matter".strip()))
    if len(full) > 1:
        yield Suggestion(
            all_of([any_of(full), *others]), _to_sentence("no entry has all of these words, these have some")
        )


def without_each_filter(query: Query) -> Iterator[tuple[Query, Query]]:
    """Each filter of a query, with the query without it."""
    parts = query.of if isinstance(query, And) else ()
    for at, part in enumerate(parts):
        if not isinstance(part, Text) and not (
            isinstance(part, Regex) and (part.field is None or part.field in TEXT_FIELDS)
        ):
            yield part, all_of([*parts[:at], *parts[at + 1 :]])


def _to_sentence(told: str) -> str:
    return told[:1].upper() + told[1:] + ("" if told.endswith("?") else ".")


def _respell_text(connection: sqlite3.Connection, text: Text) -> Text | None:
    """The word as it is spelt in some entry, where no entry has it as it was typed; a name, part by part."""
    made = tokenize(normalize_text(text.text))
    if text.phrase or text.prefix:
        return None
    spelt = text.text
    for word in made:
        near = _closest_word(connection, word)
        if near is not None:
            spelt = near if len(made) == 1 else re.sub(re.escape(word), near, spelt, count=1, flags=re.IGNORECASE)
    return Text(spelt, text.field) if spelt != text.text else None


def _closest_word(connection: sqlite3.Connection, word: str) -> str | None:
    """The word that is most like one that no entry has."""
    if len(word) < _MIN_WORD or not word.isascii():
        return None
    if connection.execute("SELECT 1 FROM text WHERE text MATCH ? LIMIT 1", (f'"{word}"',)).fetchone() is not None:
        return None
    near = get_close_matches(word, _candidate_words(connection, word), n=_CLOSEST_WORDS, cutoff=_MIN_WORD_SIMILARITY)
    most = 1 if len(word) < _LONG_WORD else 2
    return next((one for one in near if one not in STOP_WORDS and _edit_distance(word, one) <= most), None)


def _edit_distance(typed: str, meant: str) -> int:
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


def _candidate_words(connection: sqlite3.Connection, word: str) -> list[str]:
    """The words of the index that begin as a word does, in either order of its first letters, and are as long.

    Most words of an index are numbers and ids; a word of letters alone is not meant to be one of them.
    """
    vocabulary = Vocabulary(connection)
    starts = sorted({word[:2], word[1::-1], word[0] + word[2]})
    alike = (
        term
        for start in starts
        for term in vocabulary.beginning(start)
        if abs(len(term) - len(word)) <= _MAX_LENGTH_DIFFERENCE and (term.isalpha() or not word.isalpha())
    )
    return list(islice(dict.fromkeys(alike), _MAX_CANDIDATES))


_MIN_VALUE_SIMILARITY = 0.6
_SELECT_TIME_RANGE = """SELECT MIN(first), MAX(last) FROM
    (SELECT first, last FROM session_rows UNION ALL SELECT first, last FROM agent_rows)"""
# Of each field, what its values are called, and where they are; those that are most frequent come first.
_SELECT_VALUES = {
    "tool": (
        "tools",
        "SELECT t.tool FROM tools t JOIN call_rows c USING(tool_id) GROUP BY t.tool_id ORDER BY COUNT(*) DESC",
    ),
    "model": ("models", "SELECT m.model FROM models m ORDER BY m.model_id DESC"),
    "kind": ("kinds", "SELECT kind FROM entries GROUP BY kind ORDER BY COUNT(*) DESC"),
    "project": ("projects", "SELECT COALESCE(path, folder) FROM projects ORDER BY project_id DESC"),
    "branch": (
        "branches",
        "SELECT git_branch FROM origins WHERE git_branch <> '' GROUP BY git_branch ORDER BY COUNT(*) DESC",
    ),
    "version": (
        "versions",
        "SELECT version FROM origins WHERE version <> '' GROUP BY version ORDER BY MAX(began) DESC",
    ),
    "agent": ("types of agents", "SELECT type FROM agents WHERE type <> '' GROUP BY type ORDER BY COUNT(*) DESC"),
}


def explain_filters(connection: sqlite3.Connection, query: Query) -> Iterator[str]:
    """Sentences about the filters of a query that no entry can fit, whatever else is asked for."""
    parts = query.of if isinstance(query, And) else (query,)
    for part in parts:
        if isinstance(part, Is):
            told = _explain_value(connection, part)
            if told is not None:
                yield told
    yield from _explain_times(connection, [part for part in parts if isinstance(part, When)])


def explain_unused_tool(connection: sqlite3.Connection, tools: Iterable[str]) -> str | None:
    """A sentence about the first of some tools that no session called; None where each was called."""
    called = field_values(connection, "tool")
    return next((_closest_value("tool", tool, called) for tool in tools if tool not in called), None)


def field_values(connection: sqlite3.Connection, field: str) -> list[str]:
    """The values that a field has anywhere, as far as the index knows them."""
    found = connection.execute(_SELECT_VALUES[field][1])
    return [value.decode(errors="replace") if isinstance(value, bytes) else value for (value,) in found]


def _explain_value(connection: sqlite3.Connection, asked: Is) -> str | None:
    if asked.field == "session":
        told = connection.execute("SELECT DISTINCT session FROM transcripts WHERE session IS NOT NULL")
        if any(value_matches(asked, one) for (one,) in told):
            return None
        return f"no session's id begins with {asked.value!r}; `threadline list` has them"
    there = field_values(connection, asked.field)
    if asked.field == "agent":
        named = connection.execute("SELECT DISTINCT agent FROM agents")
        if any(value_matches(asked, one) for (one,) in named):
            return None
    return (
        _closest_value(asked.field, asked.value, there) if not any(value_matches(asked, one) for one in there) else None
    )


def _closest_value(field: str, value: str, there: Sequence[str]) -> str:
    """What is most like it, by all of the name or by its end; or else what there is."""
    alike: dict[str, str] = {}
    for one in there:
        alike.setdefault(one.casefold(), one)
        end = one.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
        alike.setdefault(end.casefold(), end)
    near = get_close_matches(value.casefold(), alike, 1, _MIN_VALUE_SIMILARITY)
    what = f"no {field} is {value!r}"
    if near:
        return f"{what}; did you mean {alike[near[0]]}?"
    called = _SELECT_VALUES[field][0]
    return f"{what}; {called} are {join_some(there)}" if there else f"{what}: there are no {called}"


def _explain_times(connection: sqlite3.Connection, asked: Sequence[When]) -> Iterator[str]:
    since = max((when.moment for when in asked if when.field == "since"), default=None)
    until = min((when.moment for when in asked if when.field == "until"), default=None)
    if since is not None and until is not None and since > until:
        yield "since: is later than until:, and nothing lies between them"
        return
    told = connection.execute(_SELECT_TIME_RANGE).fetchone()
    oldest, newest = map(parse_timestamp, told)
    if since is not None and newest is not None and newest < since:
        yield f"the newest entry is of {format_time(newest)} (UTC)"
    if until is not None and oldest is not None and oldest > until:
        yield f"the oldest entry is of {format_time(oldest)} (UTC)"
