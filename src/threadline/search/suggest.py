"""Suggestions for a query that finds little: sessions with some of the words, other spellings, values that exist.

People remember words of a title, a prompt and an answer, while any three words occur together in some long log. So a
session is scored by the best place of each word, and by the entry that contains most of them.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, tzinfo
from difflib import get_close_matches
from functools import cached_property
from itertools import islice
from os.path import commonprefix

from msgspec import Struct

from threadline.index import EntryFacts, EntryRow, Index, normalize_text, tokenize
from threadline.model.hits import Hit
from threadline.model.names import names_tool
from threadline.model.text import format_time, join_some
from threadline.model.times import zone_name
from threadline.search.documents import needs_reading
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
from threadline.search.ranking import RECENT_ENTRIES, Ranker, fts_expression

# Where a word occurs, how much it counts there, and how many of the entries indexed last are searched if it is common.
# The last tier is anywhere else: the input and output of tools, thinking.
_TIERS = (
    ("title", 2.2, 2_000_000),
    ("prompt", 1.7, 2_000_000),
    ("reply", 1.4, RECENT_ENTRIES),
    ("command path", 1.2, RECENT_ENTRIES),
    ("", 0.6, RECENT_ENTRIES),
)
_WEIGHTS = {column: weight for columns, weight, _depth in _TIERS for column in columns.split()}
_ANYWHERE_WEIGHT = _TIERS[-1][1]
_ADJACENT_WEIGHT = 1.35
_SAID_WEIGHT = 1.3
_MAX_PER_TIER = 400
MOST_WORDS = 2 / 3
"""The share of a query's words, weighted by how rare they are, that is most of them."""
_MIN_SHARE = 0.3
"""Sessions that contain less of the query are left out, if others contain more."""
_COMMON_COUNT = 20_000
_REPEATED_KIND = "last-prompt"
_REPETITION_WEIGHT = 0.1
_MAX_REPETITIONS = 3
_LENGTH_PENALTY = 0.15
_SHORT_ENTRY_BYTES = 2_000


class QueryWords(Struct, frozen=True):
    """The meaningful words of a query, and the filters that must hold besides."""

    texts: tuple[Text, ...]
    filters: tuple[Query, ...]
    in_a_row: tuple[str, ...]
    """All words as they were typed; empty if one is restricted to a field."""
    is_whole: bool
    """Whether no stop words were left out."""

    @property
    def beginnings(self) -> tuple[Text, ...]:
        """What all forms of each word begin with, to find them in a text."""
        return tuple(
            Text(commonprefix([text.text.lower(), *forms]), text.field, prefix=True)  # noqa: RUF071 - of letters
            for text in self.texts
            if (forms := _forms_of(text))
        )


class PartialMatch(Struct, frozen=True):
    """A session, represented by its best entry, with the words that this entry lacks.

    `share` is how much of the query the whole session contains, from 0 to 1; rare words weigh more.
    """

    row: EntryRow
    score: float
    lacks: tuple[str, ...]
    share: float


def query_words(query: Query) -> QueryWords | None:
    """The words of a query that may be in separate entries; None if everything has to be in one entry."""
    parts = query.of if isinstance(query, And) else (query,)
    texts = tuple(part for part in parts if isinstance(part, Text) and part.field != "error")
    filters = tuple(part for part in parts if part not in texts)
    if not texts or not all(isinstance(part, Is | When | Cost) and not needs_reading(part) for part in filters):
        return None
    meaningful = (
        tuple(text for text in texts if text.field or text.phrase or text.text.lower() not in STOP_WORDS) or texts
    )
    typed = "" if any(text.field or text.prefix for text in texts) else " ".join(text.text for text in texts)
    return QueryWords(meaningful, filters, tuple(tokenize(normalize_text(typed))), len(meaningful) == len(texts))


def find_partial_matches(
    index: Index, words: QueryWords, exact: Sequence[Hit], ranker: Ranker
) -> Iterator[PartialMatch]:
    """The sessions that contain all or most of the words, best first; those of exact hits are among them.

    If no session contains most of them, those that contain any.
    """
    matcher = _PartialMatcher(index, ranker)
    for number, match in enumerate(_word_expressions(words.texts, word_lookup(index))):
        matcher.add_word(number, match)
    if len(words.in_a_row) > 1:
        for entry_id in ranker.ids(fts_expression(Phrase(words.in_a_row)), _MAX_PER_TIER, RECENT_ENTRIES):
            matcher.add_full_match(entry_id, _ADJACENT_WEIGHT)
    for hit in exact:
        weight = _WEIGHTS.get(TEXT_FIELDS.get(hit.field or "", ""), _ANYWHERE_WEIGHT)
        matcher.add_full_match(hit.entry_id, weight)
    shown: set[tuple[str, str]] = set()
    sessions = matcher.scored_sessions()
    min_share = _MIN_SHARE if any(share >= _MIN_SHARE for _score, _entry_id, share in sessions) else 0.0
    for score, entry_id, share in sessions:
        if share < min_share:
            continue
        for row in ranker.rows([entry_id]):
            copy = (row.uuid or str(entry_id), row.kind)
            if copy not in shown:
                shown.add(copy)
                yield PartialMatch(row, score, tuple(map(str, matcher.missing_words(entry_id, words.texts))), share)


def _word_expressions(texts: Sequence[Text], is_known: Callable[[str], bool]) -> Iterator[str]:
    expanded = expand(all_of(texts))
    parts = expanded.of if isinstance(expanded, And) else (expanded,)
    for text, part in zip(texts, parts, strict=True):
        column = TEXT_FIELDS[text.field] if text.field is not None else None
        forms = (Phrase((form,), column) for form in _forms_of(text))
        yield fts_expression(drop_unknown_spellings(any_of((part, *forms)), is_known))


def _forms_of(text: Text) -> tuple[str, ...]:
    return () if text.phrase or text.prefix else word_forms(text.text)


class _PartialMatcher:
    """Which entries contain which words, in which field, and how rare the words are."""

    def __init__(self, index: Index, ranker: Ranker) -> None:
        self._entries = index.entries
        self._text = index.full_text
        self._ranker = ranker
        self._total = max(1, self._entries.last_id())
        self._weights: dict[int, dict[int, float]] = defaultdict(dict)
        self._rarity: dict[int, float] = {}

    def add_word(self, number: int, match: str) -> None:
        """Find the entries that contain a word. A very common word is searched only in the fields that count."""
        count = self._text.count(match, _COMMON_COUNT)
        self._rarity[number] = math.log(1 + self._total / count) if count else 0.0
        for columns, weight, depth in _TIERS if count < _COMMON_COUNT else _TIERS[:-1]:
            within = f"{{{columns}}} : ({match})" if columns else match
            for entry_id in self._ranker.ids(within, _MAX_PER_TIER, depth):
                self._weights[entry_id].setdefault(number, weight)

    def add_full_match(self, entry_id: int, weight: float) -> None:
        """Record that an entry contains all words."""
        weights = self._weights[entry_id]
        weights.update((number, max(weight, weights.get(number, 0.0))) for number in self._rarity)

    def scored_sessions(self) -> list[tuple[float, int, float]]:
        """The score of each session, its best entry and the share of the words it contains, best first."""
        sessions: dict[object, list[EntryFacts]] = defaultdict(list)
        for facts in self._entries.facts(self._weights.keys()):
            sessions[facts.session].append(facts)
        return sorted(map(self._score_session, sessions.values()), key=lambda pair: (-pair[0], pair[1]))

    def missing_words(self, entry_id: int, texts: Sequence[Text]) -> Iterator[Text]:
        """The words that an entry does not contain."""
        return (text for number, text in enumerate(texts) if number not in self._weights[entry_id])

    def _score_session(self, entries: list[EntryFacts]) -> tuple[float, int, float]:
        """The score of a session, its best entry, and the share of the words that it contains.

        The score depends half on the best place of each word, half on the entry that contains most words.
        """
        best_weights: dict[int, float] = {}
        occurrences: dict[int, int] = defaultdict(int)
        best_sum, most_words, best_entry = 0.0, -1.0, entries[0]
        for facts in entries:
            weight_sum, words = 0.0, 0.0
            for number, weight in self._word_weights(facts).items():
                rarity = self._rarity[number]
                weight_sum += rarity * weight
                words += rarity * min(weight, _SAID_WEIGHT)
                best_weights[number] = max(weight, best_weights.get(number, 0.0))
                occurrences[number] += weight >= _SAID_WEIGHT and facts.kind != _REPEATED_KIND
            best_sum = max(best_sum, weight_sum * _brevity(facts.length))
            if words > most_words:
                most_words, best_entry = words, facts
        repetition = sum(
            self._rarity[number] * min(_MAX_REPETITIONS, times - 1)
            for number, times in occurrences.items()
            if times > 1
        )
        spread = sum(self._rarity[number] * weight for number, weight in best_weights.items())
        spread += _REPETITION_WEIGHT * repetition
        share = sum(self._rarity[number] for number in best_weights) / (sum(self._rarity.values()) or 1.0)
        recency = self._ranker.recency.of(best_entry.timestamp)
        return (spread + best_sum) / 2 * share * recency, best_entry.entry_id, share * self._known_share

    @cached_property
    def _known_share(self) -> float:
        """The share of the words that any entry contains. The others weigh as much as the rarest possible word."""
        known = sum(self._rarity.values())
        unknown = math.log(1 + self._total) * sum(not rarity for rarity in self._rarity.values())
        return known / ((known + unknown) or 1.0)

    def _word_weights(self, facts: EntryFacts) -> dict[int, float]:
        """The weights of the words in an entry. The title field of a `last-prompt` is ignored: it repeats a prompt."""
        weights = self._weights[facts.entry_id]
        if facts.kind != _REPEATED_KIND:
            return weights
        return {number: min(weight, _WEIGHTS["prompt"]) for number, weight in weights.items()}


def _brevity(length: int) -> float:
    """A factor that favours short entries: they are about what they say."""
    return 1 / (1 + _LENGTH_PENALTY * math.log2(1 + length / _SHORT_ENTRY_BYTES))


_MIN_WORD = 4
_MAX_CANDIDATES = 30_000
_MIN_WORD_SIMILARITY = 0.75
_MAX_LENGTH_DIFFERENCE = 2
_CLOSEST_WORDS = 5
_LONG_WORD = 10
# Words that say nothing about the subject of a question.
STOP_WORDS = frozenset(
    """a about all also am an and any are as at be because been but by came can come comes could did do does doing for
    from get got had has have how i if in into is it its just me my no not of on or our out should so some than that the
    their them then there these they this those to too up us very was we were what when where which while who why will
    with would you your""".split()  # noqa: SIM905 - easier to read
)


class Suggestion(Struct, frozen=True):
    """A similar query, and a sentence that says how it differs."""

    query: Query
    note: str


def suggest_spelling(index: Index, query: Query) -> Suggestion | None:
    """The query with misspelled words corrected; None if every word occurs somewhere, or no word is similar."""
    notes: list[str] = []
    respelled = _respell(index, query, notes)
    return Suggestion(respelled, " ".join(notes)) if notes else None


def _respell(index: Index, query: Query, notes: list[str]) -> Query:
    if isinstance(query, And | Or):
        combine = all_of if isinstance(query, And) else any_of
        return combine([_respell(index, term, notes) for term in query.of])
    respelled = _respell_text(index, query) if isinstance(query, Text) else None
    if respelled is not None:
        notes.append(f"No entry contains '{query}'; did you mean '{respelled}'?")
    return respelled or query


def suggest_queries(index: Index, query: Query) -> Iterator[Suggestion]:
    """Similar queries, the most similar first."""
    respelled = suggest_spelling(index, query)
    if respelled is not None:
        yield respelled
    note, query = (respelled.note, respelled.query) if respelled is not None else ("", query)
    parts = query.of if isinstance(query, And) else (query,)
    words = [part for part in parts if isinstance(part, Text)]
    others = [part for part in parts if not isinstance(part, Text)]
    meaningful = [word for word in words if word.text.lower() not in STOP_WORDS] or words
    if len(meaningful) < len(words):
        yield Suggestion(all_of([*meaningful, *others]), f"{note} These contain the words that matter.".strip())
    if len(meaningful) > 1:
        yield Suggestion(
            all_of([any_of(meaningful), *others]),
            f"{note} No entry contains all of these words; these contain some.".strip(),
        )


def without_each_filter(query: Query) -> Iterator[tuple[Query, Query]]:
    """Each filter of a query, with the query without it."""
    parts = query.of if isinstance(query, And) else ()
    for at, part in enumerate(parts):
        if not isinstance(part, Text) and not (
            isinstance(part, Regex) and (part.field is None or part.field in TEXT_FIELDS)
        ):
            yield part, all_of([*parts[:at], *parts[at + 1 :]])


def _respell_text(index: Index, text: Text) -> Text | None:
    """The word as some entry spells it, if no entry contains it as typed. Names are corrected part by part."""
    tokens = tokenize(normalize_text(text.text))
    if text.phrase or text.prefix:
        return None
    spelling = text.text
    for token in tokens:
        closest = _closest_word(index, token)
        if closest is not None:
            spelling = (
                closest
                if len(tokens) == 1
                else re.sub(re.escape(token), closest, spelling, count=1, flags=re.IGNORECASE)
            )
    return Text(spelling, text.field) if spelling != text.text else None


def _closest_word(index: Index, word: str) -> str | None:
    """The word in the index that is most similar to one that no entry contains."""
    if len(word) < _MIN_WORD or not word.isascii() or index.full_text.has(f'"{word}"'):
        return None
    similar = get_close_matches(word, _candidate_words(index, word), n=_CLOSEST_WORDS, cutoff=_MIN_WORD_SIMILARITY)
    max_distance = 1 if len(word) < _LONG_WORD else 2
    return next(
        (
            candidate
            for candidate in similar
            if candidate not in STOP_WORDS and _edit_distance(word, candidate) <= max_distance
        ),
        None,
    )


def _edit_distance(typed: str, meant: str) -> int:
    """The Damerau-Levenshtein distance: letters that are wrong, missing, added, or swapped with the next."""
    before, last = [0] * (len(meant) + 1), list(range(len(meant) + 1))
    for i, letter in enumerate(typed, 1):
        row = [i]
        for j, other in enumerate(meant, 1):
            row.append(min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (letter != other)))
            if i > 1 and j > 1 and letter == meant[j - 2] and typed[i - 2] == other:
                row[j] = min(row[j], before[j - 2] + 1)
        before, last = last, row
    return last[-1]


def _candidate_words(index: Index, word: str) -> list[str]:
    """The words of the index with the same first letters, in either order, and a similar length.

    Most words of an index are numbers and ids. A word of letters is not compared with those.
    """
    starts = sorted({word[:2], word[1::-1], word[0] + word[2]})
    similar = (
        term
        for start in starts
        for term in index.vocabulary.beginning(start)
        if abs(len(term) - len(word)) <= _MAX_LENGTH_DIFFERENCE and (term.isalpha() or not word.isalpha())
    )
    return list(islice(dict.fromkeys(similar), _MAX_CANDIDATES))


_MIN_VALUE_SIMILARITY = 0.6
_FIELD_PLURALS = {
    "tool": "tools",
    "model": "models",
    "kind": "kinds",
    "project": "projects",
    "branch": "branches",
    "version": "versions",
    "agent": "agent types",
    "stop": "stop reasons",
    "tier": "service tiers",
    "slug": "slugs",
    "platform": "platforms",
}


def explain_filters(index: Index, query: Query, zone: tzinfo = UTC) -> Iterator[str]:
    """Sentences about the filters of a query that no entry can match."""
    parts = query.of if isinstance(query, And) else (query,)
    for part in parts:
        if isinstance(part, Is):
            sentence = _explain_value(index, part)
            if sentence is not None:
                yield sentence
    yield from _explain_separate_entries(parts)
    yield from _explain_times(index, [part for part in parts if isinstance(part, When)], zone)


# Fields that hardly any entry has together: those of replies, and those of results of calls.
_REPLY_FIELDS = ("model", "tier", "thinking", "command", "input")
_RESULT_FIELDS = ("error", "result")


def _explain_separate_entries(parts: Sequence[Query]) -> Iterator[str]:
    """A sentence about two fields that are never in the same entry."""
    fields = [getattr(part, "field", None) for part in parts]
    of_reply = next((field for field in _REPLY_FIELDS if field in fields), None)
    of_result = next((field for field in _RESULT_FIELDS if field in fields), None)
    if of_reply is not None and of_result is not None:
        yield f"{of_reply}: is in replies and {of_result}: in results, which are different entries; remove one of them"


def join_clauses(clauses: Iterable[str]) -> str:
    """Join clauses with semicolons. After a question, a new sentence begins.

    >>> join_clauses(["no tool matches 'Bsh'; did you mean Bash?", "since: is later than until:"])
    "no tool matches 'Bsh'; did you mean Bash? Since: is later than until:"
    """
    text = ""
    for clause in clauses:
        text += f" {clause[:1].upper()}{clause[1:]}" if text.endswith("?") else f"; {clause}" if text else clause
    return text


def explain_unused_tool(index: Index, tools: Iterable[str], *, exact_tools: bool = False) -> str | None:
    """A sentence about the first of these tools that no session called, with a suggestion; None if all were."""
    called = index.field_values("tool")
    unused = (tool for tool in tools if not any(names_tool((tool,), name, exact=exact_tools) for name in called))
    return next((_closest_value("tool", tool, called) for tool in unused), None)


def _explain_value(index: Index, term: Is) -> str | None:
    if term.field == "session":
        if any(value_matches(term, session) for session in index.session_ids()):
            return None
        return f"no session id begins with {term.value!r}; `threadline list` shows them"
    if term.field == "request":
        return None if index.has_request(term.value) else f"no request id begins with {term.value!r}"
    values = index.field_values(term.field)
    if term.field == "agent" and any(value_matches(term, agent) for agent in index.agent_ids()):
        return None
    if any(value_matches(term, value) for value in values):
        return None
    return _closest_value(term.field, term.value, values)


def _closest_value(field: str, value: str, values: Sequence[str]) -> str:
    """A sentence with the most similar value, by its whole name or the end of a path; or else with all values."""
    names: dict[str, str] = {}
    for name in values:
        names.setdefault(name.casefold(), name)
        end = name.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
        names.setdefault(end.casefold(), end)
    similar = get_close_matches(value.casefold(), names, 1, _MIN_VALUE_SIMILARITY)
    sentence = f"no {field} matches {value!r}"
    if similar:
        return f"{sentence}; did you mean {names[similar[0]]}?"
    plural = _FIELD_PLURALS[field]
    return f"{sentence}; {plural} are {join_some(values)}" if values else f"{sentence}: there are no {plural}"


def _explain_times(index: Index, terms: Sequence[When], zone: tzinfo) -> Iterator[str]:
    since = max((term.moment for term in terms if term.field == "since"), default=None)
    until = min((term.moment for term in terms if term.field == "until"), default=None)
    if since is not None and until is not None and since > until:
        yield "since: is later than until:"
        return
    oldest, newest = index.time_range()
    if since is not None and newest is not None and newest < since:
        yield f"the newest entry is from {format_time(newest, zone)} ({zone_name(zone)})"
    if until is not None and oldest is not None and oldest > until:
        yield f"the oldest entry is from {format_time(oldest, zone)} ({zone_name(zone)})"
