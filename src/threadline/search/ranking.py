"""Find the entries that may match a query with an FTS5 expression, and sort them, best first.

BM25 has to visit every entry that contains a word, so it takes longer the more common a word is. Therefore BM25 scores
only the rare words. Common words say little: they count by the field they occur in and by how short the entry is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from heapq import nlargest
from itertools import chain, islice
from typing import Literal

from msgspec import Struct

from threadline.index import EntryFilter, EntryRow, Index, SessionLabels, Vocabulary, normalize_text, tokenize
from threadline.model.times import parse_timestamp
from threadline.search.match import Document, cost_matches, value_matches
from threadline.search.query import (
    TEXT_FIELDS,
    WEIGHTS,
    And,
    Cost,
    Has,
    Is,
    Match,
    Not,
    Or,
    Phrase,
    Query,
    Regex,
    When,
    all_of,
    any_of,
    expand,
    negate,
)
from threadline.search.regex import Requirement, required_text

# The characters of a literal that full text certainly contains unchanged: ASCII without the escape character, and
# Chinese.
_EXACT_CHARACTERS = "[\0-\x1a\x1c-\x7f\u4e00-\u9fff]+"  # compiled when needed: that takes half a millisecond
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

    >>> from threadline.search.query import parse_query
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
    """Whether full text can answer a query: FTS5 supports `a NOT b`, but not a NOT without a left side."""
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
        self._vocabulary = vocabulary
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
                for literal in re.findall(_EXACT_CHARACTERS, requirement)
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
    present = [query for query in queries if query is not None]
    return all_of(present) if present else None


def _any_known(queries: Sequence[Query | None]) -> Query | None:
    present = [query for query in queries if query is not None]
    return any_of(present) if present and len(present) == len(queries) else None


Sort = Literal["rank", "time"]

MAX_DATED = 100_000
"""How many matching entries are considered to find the newest ones."""
MAX_RANKED = 2_000
"""How many matching entries are ranked. If more match, some of each important field are."""
NEWEST_RANKED = 600
"""If more match than can be ranked, how many of those indexed last are: of each tier, and of all."""

RECENT_ENTRIES = 130_000
"""How many entries, those indexed last, are searched for a common word in a tier."""
MAX_RARE_ENTRIES = 5_000
"""How many entries may contain a word for BM25 to score it."""

# BM25's field weights have little effect: a word in a short command would beat the same word in a longer prompt.
# Therefore each tier of fields has a factor and a weight.
_TIERS = ((("title", "prompt"), 1.7, 8.0), (("reply",), 1.3, 5.0), (("command", "path"), 1.2, 4.0))
_USUAL_LENGTH = 3_000
_FEW_PROMPTS = 60
_DEEP_ENTRIES = 400_000
_ASSUMED_MATCHES = 20
_BLOCK = 300
_TITLE_KINDS = frozenset({"ai-title", "custom-title", "summary"})
_TITLE_FACTOR = 1.25
_RECENCY_HALF_LIFE = timedelta(days=60)
_RECENCY_WEIGHT = 0.3
_FEW_SESSIONS = 500
_AGENT_TERMS = (Has("agent"), Not(Has("agent")))


def entry_filter(index: Index, query: Query) -> EntryFilter:
    """The part of a query that SQL can check, from the filters that must all hold. Every hit passes it."""
    terms = query.of if isinstance(query, And) else (query,)
    filters = [term for term in terms if isinstance(term, Is)]
    times = [term for term in terms if isinstance(term, When)]
    sessions = [
        [session for session, amount in index.session_costs().items() if cost_matches(term, amount)]
        for term in terms
        if isinstance(term, Cost)
    ]
    sessions += [
        [session for session, labels in index.session_labels().items() if _is_labelled(term, labels)]
        for term in filters
        if term.field in {"slug", "platform"}
    ]
    return EntryFilter(
        project_ids=tuple(_matching_ids(term, index.project_names()) for term in filters if term.field == "project"),
        with_tools=tuple(_matching_ids(term, index.tool_names()) for term in filters if term.field == "tool"),
        kinds=tuple(
            term.value for term in filters if term.field == "kind" and term.value.isascii() and not term.prefix
        ),
        session_prefixes=tuple(term.value for term in filters if term.field == "session" and term.value.isascii()),
        stop_reasons=tuple(
            term.value for term in filters if term.field == "stop" and term.value.isascii() and not term.prefix
        ),
        is_agent=next((term == Has("agent") for term in terms if term in _AGENT_TERMS), None),
        request_prefixes=tuple(term.value for term in filters if term.field == "request" and term.value.isascii()),
        sessions=tuple(ids for ids in sessions if len(ids) <= _FEW_SESSIONS),
        since=tuple(term.moment for term in times if term.field == "since"),
        until=tuple(term.moment for term in times if term.field == "until"),
    )


def _is_labelled(term: Is, labels: SessionLabels) -> bool:
    values = (labels.slug,) if term.field == "slug" else labels.platforms
    return any(value_matches(term, value) for value in values if value)


def _matching_ids(term: Is, names: dict[int, str]) -> list[int]:
    return [number for number, name in names.items() if value_matches(term, name)]


class Ranker:
    """Finds entries by full text and sorts them, best first or newest first.

    `has_left_out` says, after `matching`, whether more entries match than were returned.
    """

    def __init__(
        self, index: Index, selection: EntryFilter, sort: Sort, now: datetime, phrases: Iterable[Phrase]
    ) -> None:
        self._entries = index.entries
        self._text = index.full_text
        self._selection = selection
        self.is_by_rank = sort == "rank"
        self.recency = RecencyBoost(now)
        self._phrases = tuple(dict.fromkeys(phrases))
        self._last = self._entries.last_id()
        self.has_left_out = False

    def matching(self, match: str, *, bounded: bool) -> Iterator[EntryRow]:
        """The entries that match an expression, in order.

        If `bounded`, a common word takes little longer than a rare one, and some entries may be left out.
        """
        if not self.is_by_rank:
            ids = self._newest_ids(match, bounded=bounded)
            rows = [row for at in range(0, len(ids), _BLOCK) for row in self.rows(ids[at : at + _BLOCK])]
            yield from sorted(rows, key=newest_first_key)
            return
        ids = self.ids(match, MAX_RANKED + 1 if bounded else None)
        self.has_left_out = bounded and len(ids) > MAX_RANKED
        tiers = self._tiers(match) if ids else []
        if self.has_left_out:
            ids = list(dict.fromkeys([*chain(*tiers), *ids[:NEWEST_RANKED]]))
        yield from self._best_first(ids, tiers)

    def _newest_ids(self, match: str, *, bounded: bool) -> list[int]:
        """The ids of matching entries, newest first; if very many match, of those that were indexed last."""
        dated = self._text.dated_ids(match, self._selection, MAX_DATED + 1 if bounded else None)
        self.has_left_out = bounded and len(dated) > MAX_RANKED
        return [entry_id for _timestamp, entry_id in (nlargest(MAX_RANKED, dated) if self.has_left_out else dated)]

    def remaining(self, match: str, without: Collection[int]) -> Iterator[EntryRow]:
        """The matching entries other than these, those indexed last first."""
        ids = (entry_id for entry_id in self._text.ids(match, self._selection) if entry_id not in without)
        while block := list(islice(ids, _BLOCK)):
            yield from self.rows(block)

    def _tiers(self, match: str) -> list[list[int]]:
        """The ids of entries that match in each tier, those indexed last first.

        For common words only, just the entries indexed last are searched. Prompts are searched further back if few
        match, because there are few of them.
        """
        tiers = []
        is_quick = not self.has_left_out and self._is_quick(match)
        for tier, (fields, _factor, _weight) in enumerate(_TIERS):
            within = _in_fields(fields, match)
            ids = self.ids(within) if is_quick else self.ids(within, NEWEST_RANKED, RECENT_ENTRIES)
            if tier == 0 and not is_quick and len(ids) < _FEW_PROMPTS:
                ids = self._text.ids_after(self._last - _DEEP_ENTRIES, within, self._selection)
            tiers.append(ids)
        return tiers

    def _is_quick(self, match: str) -> bool:
        """Whether full text answers quickly: if all words have to match, one rare word is enough."""
        if self._last <= RECENT_ENTRIES:
            return True
        return bool(self._rare) and (" OR " not in match or len(self._rare) == len(self._phrases))

    def _best_first(self, ids: list[int], tiers: Sequence[Iterable[int]]) -> Iterator[EntryRow]:
        tier_of: dict[int, int] = {}
        for tier, members in enumerate(tiers):
            for entry_id in members:
                tier_of.setdefault(entry_id, tier)
        scores = self._scores(ids)
        common = max(len(self._phrases) - len(self._rare), 0 if self._rare else 1)

        def score(entry_id: int, length: float = 1.0) -> float:
            tier = tier_of.get(entry_id, -1)
            factor, weight = _TIERS[tier][1:] if tier >= 0 else (1.0, 1.0)
            return (scores.get(entry_id, 0.0) + common * _common_word_score(weight, length)) * factor

        order = sorted(ids, key=lambda entry_id: (-score(entry_id), -entry_id))
        # One block at a time: entries after the first few hundred are rarely asked for.
        for at in range(0, len(order), _BLOCK):
            rows = [
                row._replace(score=score(row.entry_id, row.length / _USUAL_LENGTH) * self._boost(row))
                for row in self.rows(order[at : at + _BLOCK])
            ]
            yield from sorted(rows, key=best_first_key)

    def _boost(self, row: EntryRow) -> float:
        return self.recency.of(row.timestamp) * (_TITLE_FACTOR if row.kind in _TITLE_KINDS else 1.0)

    def _scores(self, ids: Collection[int]) -> dict[int, float]:
        """BM25 scores of entries for the rare words."""
        if not self._rare or not ids:
            return {}
        return self._text.scores(fts_expression(any_of(self._rare)), ids, WEIGHTS)

    @cached_property
    def _rare(self) -> list[Phrase]:
        """The phrases that few entries contain. A phrase is at least as rare as its rarest word."""
        tokens = {token for phrase in self._phrases for token in phrase.tokens}
        rare = {token for token in tokens if not self._text.has_more_than(f'"{token}"', MAX_RARE_ENTRIES)}
        return [phrase for phrase in self._phrases if not phrase.prefix and not rare.isdisjoint(phrase.tokens)]

    def ids(self, match: str, limit: int | None = None, depth: int | None = None) -> list[int]:
        """The ids of at most `limit` matching entries, those indexed last first, among the `depth` indexed last."""
        if depth is None or depth >= self._last:
            return list(self._text.ids(match, self._selection, limit))
        return self._text.ids_after(self._last - depth, match, self._selection)[:limit]

    def rows(self, ids: Iterable[int]) -> list[EntryRow]:
        """The rows of entries. Full text may still contain entries that were deleted: those are left out."""
        return self._entries.rows(ids)

    def score_document(self, row: EntryRow, document: Document) -> float:
        """The score of an entry that was found by reading it: by its fields, its length and its age."""
        tiers = (tier for tier in _TIERS if any(getattr(document, field) for field in tier[0]))
        _fields, factor, weight = next(tiers, ((), 1.0, 1.0))
        return _common_word_score(weight, row.length / _USUAL_LENGTH) * factor * self.recency.of(row.timestamp)

    def score_deleted_prompt(self, row: EntryRow) -> float:
        """The score of a prompt that is not in full text, as if few other entries contained its rare words."""
        common = max(1, len(self._phrases)) - len(self._rare)
        _fields, factor, weight = _TIERS[0]
        words = common + len(self._rare) * math.log(1 + self._last / _ASSUMED_MATCHES)
        return words * _common_word_score(weight, row.length / _USUAL_LENGTH) * factor * self._boost(row)

    def newest(self) -> Iterator[tuple[float, Iterator[EntryRow]]]:
        """The entries of each transcript, last line first, with the last time of its session; newest session first."""
        dated = [
            (_seconds(end.last) if end.last is not None else end.mtime_ns / 1e9, end.transcript_id)
            for end in self._entries.transcript_ends()
        ]
        for last, transcript_id in sorted(dated, key=lambda pair: (-pair[0], pair[1])):
            yield last, self._entries.from_end(transcript_id, self._selection)


def _common_word_score(weight: float, length: float) -> float:
    """The BM25 score of a common word that occurs once in a field of that weight; `length` is relative to the usual."""
    return weight * 2.2 / (weight + 1.2 * (0.25 + 0.75 * length))


def _in_fields(fields: Iterable[str], match: str) -> str:
    """The expression, restricted to these fields. What it excludes is excluded from all fields."""
    return f"{{{' '.join(fields)}}} : ({match})" + (f" AND ({match})" if " NOT " in match else "")


class RecencyBoost:
    """The factor for the age of an entry. It is computed once per day, which most entries share."""

    def __init__(self, now: datetime) -> None:
        self._now = now
        self._by_day: dict[str, float] = {}

    def of(self, timestamp: str | None) -> float:
        """The factor of a score: 1 for an old entry, or one without a time."""
        day = (timestamp or "")[:10]
        factor = self._by_day.get(day)
        if factor is None:
            moment = parse_timestamp(timestamp)
            age = max(timedelta(0), self._now - moment) if moment is not None else None
            factor = self._by_day[day] = 1 + (
                _RECENCY_WEIGHT * 0.5 ** (age / _RECENCY_HALF_LIFE) if age is not None else 0
            )
        return factor


def newest_first_key(row: EntryRow) -> tuple[float, int]:
    """The sort key for newest first; entries without a time come last."""
    return -_seconds(row.timestamp), row.entry_id


def _seconds(timestamp: str | None) -> float:
    moment = parse_timestamp(timestamp)
    return moment.timestamp() if moment is not None else 0.0


def best_first_key(row: EntryRow) -> tuple[float, int]:
    """The sort key for best first."""
    return (-row.score, row.entry_id)
