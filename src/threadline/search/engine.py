"""Run a query: best hits first, with a note if they are not exactly what was asked for."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from heapq import nlargest
from itertools import islice
from typing import NamedTuple

from msgspec.structs import replace

from threadline.index import EntryRow, Index, extract_fields
from threadline.model.hits import Hit, Hits
from threadline.model.places import Place
from threadline.model.text import count, format_duration
from threadline.model.times import parse_timestamp, resolve_zone
from threadline.search.documents import DeletedPrompt, DocumentReader, find_deleted_prompts, needs_reading
from threadline.search.match import Document, SearchTimeout, TimeBudget, matches, snippet
from threadline.search.query import (
    Phrase,
    Query,
    Text,
    all_of,
    any_of,
    drop_unknown_spellings,
    expand,
    leaves,
    parse_query,
    parse_typed_query,
    positive_terms,
    word_lookup,
)
from threadline.search.ranking import Ranker, Sort, best_first_key, entry_filter, make_plan, newest_first_key
from threadline.search.suggest import (
    MOST_WORDS,
    explain_filters,
    find_partial_matches,
    join_clauses,
    query_words,
    suggest_queries,
    suggest_spelling,
    without_each_filter,
)

ROWS_PER_PAGE = 300
"""How many matching entries are examined for a page of hits, once the page is full."""
ROWS_PER_PAGE_READ = 60
"""The same, if entries have to be read to decide whether they match."""
ROWS_PER_TRANSCRIPT = 20
"""How many entries of one transcript are examined, if no word says which are best."""
MAX_ROWS = 20_000
"""How many are examined while the page is not full: one session can have thousands."""
SOON_SECONDS = 2.0
"""How long entries are read for a page once something is found. A note then says that there may be more."""
MAX_SECONDS = 10.0
"""How long entries are read if nothing is found, or if everything is asked for. After that, the search fails."""
SESSION_SHARES = (1.0, 0.35, 0.15, 0.05)
"""How much the best hits of a session add to its score. Further hits add nothing."""


_PARTIAL_NOTE = (
    "No single entry contains all of these words. These contain some; the rest may be elsewhere in the session."
)
_SOME_PARTIAL_NOTE = "Some results match only part of your search."


def search(
    index: Index,
    text: str,
    *,
    limit: int | None = 20,
    every: bool = False,
    sort: Sort = "rank",
    now: datetime | None = None,
    zone: tzinfo | None = None,
    near: bool = False,
    seconds: float | None = None,
    filters: Sequence[Query] = (),
) -> Hits:
    """The hits of a query: the best one of each session, or with `every` all of them.

    `filters` have to match as well; with them, the text may be empty.

    If nothing is found and `near` is set, the hits are those of a similar query, and `note` says which. Without a
    limit, all matches are found and counted; with one, as many as a good page needs. `seconds` limits how long entries
    are read if the index alone cannot answer.

    Raises:
        BadQuery: the query is invalid, or reading takes too long.
    """
    now = now or datetime.now(UTC)
    query = all_of((*((parse_query(text, now=now, zone=zone),) if text.strip() or not filters else ()), *filters))
    budget = TimeBudget(MAX_SECONDS, SOON_SECONDS) if seconds is None else TimeBudget(seconds)

    def run(query: Query) -> Hits:
        return run_query(index, query, limit=limit, every=every, sort=sort, now=now, budget=budget)

    try:
        hits = run(query)
    except SearchTimeout as error:
        reasons = join_clauses(explain_filters(index, query, resolve_zone(zone)))
        if not reasons:
            raise
        raise SearchTimeout(
            f"{error} According to the index, {reasons}{'' if reasons.endswith('?') else '.'}"
        ) from None
    if not near:
        return hits
    # A list without a limit is that of the exact matches, if there are any.
    max_partial = limit if limit is not None or hits.hits else sys.maxsize
    is_widened = sort == "rank" and not every
    return _with_titles(index, _with_suggestions(index, query, hits, max_partial if is_widened else None, run, now))


def _with_titles(index: Index, hits: Hits) -> Hits:
    """The hits with the titles of their sessions.

    A file with nothing but summaries is not a session: there, a summary is the title, as `show` prints it.
    """
    titles = index.titles({hit.session for hit in hits.hits if hit.session is not None})
    titled = (
        replace(hit, title=titles.get(hit.session or "") or (hit.snippet if hit.kind == "summary" else None))
        for hit in hits.hits
    )
    return replace(hits, hits=tuple(titled))


def _with_suggestions(  # noqa: PLR0917 - the state of the search so far
    index: Index,
    query: Query,
    hits: Hits,
    limit: int | None,
    run: Callable[[Query], Hits],
    now: datetime,
) -> Hits:
    """The hits with partial matches, or the hits of a similar query if there are none.

    `limit` is that of a list by rank; without one, no partial matches are added.
    """
    respelled = suggest_spelling(index, query) if not hits.hits else None
    try:
        if respelled is not None:
            hits = _with_note(run(respelled.query), respelled.note)
        if limit is not None:
            hits = add_partial_matches(index, respelled.query if respelled is not None else query, hits, limit, now)
        if hits.hits:
            is_as_typed = respelled is None
            return replace(hits, near=hits.near or not is_as_typed, has_most_words=hits.has_most_words and is_as_typed)
        for suggestion in suggest_queries(index, query):
            similar = run(suggestion.query)
            if similar.hits:
                return replace(_with_note(similar, suggestion.note), near=True)
    except SearchTimeout:  # the query itself has an answer: nothing
        pass
    return replace(hits, note=None)


def _with_note(hits: Hits, note: str) -> Hits:
    return replace(hits, note=" ".join(filter(None, [note, hits.note])))


def add_partial_matches(index: Index, query: Query, exact: Hits, limit: int, now: datetime) -> Hits:
    """The hits together with sessions that have the words in several entries, or most of the words, best first."""
    if exact.hits and isinstance(query, Text):
        return exact
    words = query_words(query)
    if words is None or (len(words.texts) == 1 and words.is_whole and exact.hits):
        return exact
    by_session = {hit.session or hit.place.transcript: hit for hit in exact.hits}
    any_word = any_of((*words.texts, *words.beginnings))
    hits: list[Hit] = []
    injected: set[str] = set()
    has_most_words = False
    ranker = Ranker(index, entry_filter(index, query), "rank", now, ())
    with DocumentReader(index, all_of(words.filters)) as documents:
        for match in find_partial_matches(index, words, [hit for hit in exact.hits if not hit.gone], ranker):
            hit = by_session.pop(match.row.session or match.row.transcript, None)
            if hit is None and matches(all_of(words.filters), documents.indexed_document(match.row)):
                hit = replace(
                    _make_hit(index, any_word, match.row, _NO_FURTHER, documents),
                    score=round(match.score, 6),
                    lacks=match.lacks,
                )
            if hit is None or (hit.field == "injected" and hit.snippet in injected):
                continue  # Claude Code adds the same text to many sessions
            injected |= {hit.snippet} if hit.field == "injected" else set()
            has_most_words = has_most_words or match.share >= MOST_WORDS
            hits.append(hit)
            if len(hits) == limit:
                break
    for at, hit in enumerate(exact.hits):
        if hit.gone:  # it has no entry to be scored by: it keeps its place
            hits.insert(at, hit)
    del hits[limit:]
    if hits and not exact.hits:
        note: str | None = exact.note or _PARTIAL_NOTE
    else:
        is_partial = any(hit.lacks for hit in hits)
        note = " ".join(filter(None, [exact.note, _SOME_PARTIAL_NOTE if is_partial else None])) or None
    return replace(exact, hits=tuple(hits), note=note, near=not exact.hits, has_most_words=has_most_words)


def run_query(
    index: Index,
    query: Query,
    *,
    limit: int | None = 20,
    every: bool = False,
    sort: Sort = "rank",
    now: datetime | None = None,
    budget: TimeBudget | None = None,
) -> Hits:
    """The hits of a parsed query: see `search`.

    Raises:
        SearchTimeout: the time was over before anything was found, or there is no limit.
    """
    expanded = drop_unknown_spellings(expand(query), word_lookup(index))
    terms = list(positive_terms(expanded))
    phrases = [term for term in terms if isinstance(term, Phrase)]
    ranker = Ranker(index, entry_filter(index, query), sort, now or datetime.now(UTC), phrases)
    plan = make_plan(expanded, index.vocabulary)
    with DocumentReader(index, query if plan.rest is None else plan.rest) as documents:
        collector = _HitCollector(every=every, page_rows=ROWS_PER_PAGE if plan.rest is None else ROWS_PER_PAGE_READ)
        budget = budget or TimeBudget(MAX_SECONDS, SOON_SECONDS)
        checker = _RowChecker(query, plan.rest, documents, ranker, budget, bounded=limit is not None)
        if plan.match is None:
            collector.take_from_each(((last, checker.matching(rows)) for last, rows in ranker.newest()), limit)
        elif not phrases:
            collector.take(checker.matching(ranker.remaining(plan.match, ())), limit)
        else:
            collector.take(checker.matching(ranker.matching(plan.match, bounded=limit is not None)), limit)
            if ranker.has_left_out and collector.groups < (limit or 0):
                # The ranked entries are of too few sessions, or filters left too few of them: examine all others.
                ranker.has_left_out = False
                collector.take(checker.matching(ranker.remaining(plan.match, checker.examined)), limit)
        is_ranked = sort == "rank" and bool(terms)
        max_deleted = ROWS_PER_PAGE_READ if limit is not None else None
        deleted = list(islice(find_deleted_prompts(index, query, bounded=limit is not None), max_deleted))
        for number, prompt in enumerate(deleted, 1):
            collector.add(_deleted_prompt_row(-number, prompt, ranker))
        if not phrases or deleted:
            collector.sort(best_first_key if is_ranked else newest_first_key)
        is_incomplete = ranker.has_left_out or checker.is_cut_short
        hits = [
            _make_hit(index, expanded, row, more, documents)
            if row.entry_id > 0
            else _deleted_prompt_hit(expanded, row, more, deleted[-row.entry_id - 1])
            for row, more in collector.best(limit, ranked=is_ranked, is_incomplete=is_incomplete)
        ]
    result = Hits(
        tuple(hits),
        collector.total,
        at_least=not collector.is_complete or is_incomplete,
        listed=collector.groups,
        cut_short=checker.is_cut_short,
        maybe_more=not collector.has_every_session or is_incomplete,
    )
    return _with_titles(index, replace(result, note=checker.note()) if result.cut_short else result)


class _RowChecker:
    """Checks rows for the part of a query that full text cannot answer."""

    def __init__(
        self,
        query: Query,
        rest: Query | None,
        documents: DocumentReader,
        ranker: Ranker,
        budget: TimeBudget,
        *,
        bounded: bool,
    ) -> None:
        self._reads = rest is not None and needs_reading(rest)
        self._query = query if self._reads else rest
        self._documents = documents
        self._ranker = ranker
        self._budget = budget
        self._bounded = bounded
        self._has_match = False
        self.is_cut_short = False
        self._seconds = 0.0
        self.examined: set[int] = set()

    def note(self) -> str:
        """The note for a search that was cut short."""
        read = count(len(self.examined), "entry was", "entries were")
        return (
            f"Results may be incomplete: {read} read in {format_duration(self._seconds)}."
            " Add a word, or a field such as project: or since:7d."
        )

    def matching(self, rows: Iterable[EntryRow]) -> Iterator[EntryRow]:
        """The rows that match. Rows that full text did not rank get a score."""
        for row in rows:
            if self._query is None:
                self.examined.add(row.entry_id)
                yield row
                continue
            if self._is_enough():
                self._seconds = self._seconds or self._budget.elapsed()
                self.is_cut_short = True
                return
            self.examined.add(row.entry_id)
            document = self._documents.document(row)
            if document is not None and self._matches(self._query, document):
                self._has_match = True
                is_scored = bool(row.score) or not self._ranker.is_by_rank
                yield row if is_scored else row._replace(score=self._ranker.score_document(row, document))

    def _is_enough(self) -> bool:
        """Whether there is something to show, and reading has taken long.

        Raises:
            SearchTimeout: there is nothing to show, and reading has taken too long.
        """
        if not self._reads:
            return False
        if self._bounded and self._has_match:
            return self._budget.is_soft_limit_reached
        self._budget.check()
        return False

    def _matches(self, query: Query, document: Document) -> bool:
        try:
            return matches(query, document, self._budget)
        except SearchTimeout:
            if not self._bounded or not self._has_match:
                raise
            return False


class _FurtherRows(NamedTuple):
    """How many more entries of a session match, or at least that many."""

    number: int
    at_least: bool


_NO_FURTHER = _FurtherRows(0, at_least=False)


class _HitCollector:
    """The rows that match, without copies, grouped by session."""

    def __init__(self, *, every: bool, page_rows: int) -> None:
        self._every = every
        self._page_rows = page_rows
        self._rows: list[EntryRow] = []
        self._copies: dict[tuple[str, str], int] = {}
        self._rows_per_group: Counter[object] = Counter()
        self._partly_taken: set[object] = set()
        self.is_complete = True
        """Whether all matching rows were taken."""
        self.has_every_session = True
        """Whether at least one matching row of every session was taken."""

    def take(self, rows: Iterable[EntryRow], limit: int | None) -> None:
        """Take as many rows as a page needs, or all."""
        self.is_complete = self.has_every_session = True
        for number, row in enumerate(rows, 1):
            self.add(row)
            if limit is not None and number >= (self._page_rows if self.groups >= limit else MAX_ROWS):
                self.is_complete = self.has_every_session = False
                return

    def take_from_each(self, transcripts: Iterable[tuple[float, Iterable[EntryRow]]], limit: int | None) -> None:
        """Take as many rows of each transcript as a page needs, or all.

        Each transcript comes with the last time of its session, the newest first. The page is full when no other
        transcript can contain anything newer than what it shows.
        """
        newest: dict[object, float] = {}
        for last, rows in transcripts:
            if limit is not None and self._is_full(newest, limit, last):
                self.is_complete = self.has_every_session = False
                return
            for number, row in enumerate(rows, 1):
                self.add(row)
                group = self._group(row)
                newest[group] = max(newest.get(group, 0.0), -newest_first_key(row)[0])
                if limit is not None and number >= (limit if self._every else ROWS_PER_TRANSCRIPT):
                    self.is_complete = False
                    self._partly_taken |= set() if self._every else {group}
                    break

    def _is_full(self, newest: dict[object, float], limit: int, last: float) -> bool:
        if limit == 0 or self.groups < limit:
            return limit == 0
        times = (time for group, time in newest.items() if group in self._rows_per_group)
        return nlargest(limit, times)[-1] >= last

    def sort(self, key: Callable[[EntryRow], tuple[float, int]]) -> None:
        """Sort the rows."""
        self._rows.sort(key=key)

    @property
    def groups(self) -> int:
        """How many hits there are to show."""
        return len(self._rows_per_group)

    @property
    def total(self) -> int:
        """How many entries match; copies count once."""
        return len(self._rows)

    def add(self, row: EntryRow) -> None:
        """Add a row. Of an original and its copies, only the original stays."""
        if row.uuid is not None:
            at = self._copies.setdefault((row.uuid, row.kind), len(self._rows))
            if at < len(self._rows):
                other = self._rows[at]
                if _original_first_key(row) < _original_first_key(other):
                    self._rows[at] = row._replace(score=max(row.score, other.score))
                    self._rows_per_group[self._group(row)] += 1
                    self._rows_per_group[self._group(other)] -= 1
                    if not self._rows_per_group[self._group(other)]:
                        del self._rows_per_group[self._group(other)]
                return
        self._rows.append(row)
        self._rows_per_group[self._group(row)] += 1

    def _group(self, row: EntryRow) -> object:
        return row.entry_id if self._every else (row.session or row.transcript)

    def best(self, limit: int | None, *, ranked: bool, is_incomplete: bool) -> list[tuple[EntryRow, _FurtherRows]]:
        """The first row of each session, and how many more it has. By rank, those add a little to its score.

        `is_incomplete` says that some matching rows were never offered.
        """
        groups: dict[object, list[EntryRow]] = {}
        for row in self._rows:
            groups.setdefault(self._group(row), []).append(row)
        sessions = list(groups.values())
        if ranked:
            sessions.sort(key=_session_score, reverse=True)
        is_minimum = not self._every and (is_incomplete or not self.has_every_session)
        return [
            (rows[0], _FurtherRows(len(rows) - 1, is_minimum or self._group(rows[0]) in self._partly_taken))
            for rows in sessions[:limit]
        ]


def _session_score(rows: list[EntryRow]) -> float:
    """The score of a session, which mentions its subject more than once. `last-prompt` entries only repeat a prompt."""
    counted = [row for at, row in enumerate(rows) if at == 0 or row.kind != "last-prompt"]
    return sum(row.score * share for row, share in zip(counted, SESSION_SHARES, strict=False))


def _original_first_key(row: EntryRow) -> tuple[bool, int]:
    return not row.is_own, row.entry_id


def _make_hit(index: Index, query: Query, row: EntryRow, more: _FurtherRows, documents: DocumentReader) -> Hit:
    entry = documents.entry(row)
    shown = snippet(query, extract_fields(entry) if entry is not None else {})
    return Hit(
        Place(row.transcript, row.line, row.offset, row.length),
        row.entry_id,
        row.session,
        row.agent,
        row.project,
        row.kind,
        parse_timestamp(row.timestamp),
        round(row.score, 6),
        shown.field,
        shown.text,
        shown.highlights,
        None,
        more.number,
        kept=index.is_kept(row.transcript),
        at_least=more.at_least,
    )


def _deleted_prompt_row(entry_id: int, deleted: DeletedPrompt, ranker: Ranker) -> EntryRow:
    """A prompt whose transcript was deleted, as a row among those of entries."""
    prompt, place = deleted.prompt, deleted.place
    row = EntryRow(
        entry_id=entry_id,
        transcript_id=0,
        transcript=place.transcript,
        line=place.line,
        offset=place.offset,
        length=place.length,
        kind="user",
        uuid=None,
        timestamp=prompt.timestamp.isoformat() if prompt.timestamp is not None else None,
        session=prompt.session_id or f"{place.transcript}:{place.offset}",
        agent=None,
        project=prompt.project or "",
        is_own=True,
    )
    return row._replace(score=ranker.score_deleted_prompt(row)) if ranker.is_by_rank else row


def _deleted_prompt_hit(query: Query, row: EntryRow, more: _FurtherRows, deleted: DeletedPrompt) -> Hit:
    shown = snippet(query, {"prompt": deleted.document.prompt})
    return Hit(
        deleted.place,
        0,
        deleted.prompt.session_id,
        None,
        row.project,
        row.kind,
        deleted.prompt.timestamp,
        round(row.score, 6),
        shown.field,
        shown.text,
        shown.highlights,
        None,
        more.number,
        gone=True,
        at_least=more.at_least,
    )


_MAX_REASONS = 3
_EXPLAIN_SECONDS = 4.0
_TRY_SECONDS = 1.5


def explain_no_hits(index: Index, text: str, *, zone: tzinfo | None = None, now: datetime | None = None) -> str:
    """Why a query has no hits, as sentences: which filter matches nothing, how many entries match without each filter.

    Raises:
        BadQuery: the query is invalid.
    """
    total_budget = TimeBudget(_EXPLAIN_SECONDS)
    query, typed = parse_typed_query(text, now=now, zone=zone)
    message = f"Nothing in {count(index.entries.count(), 'entry', 'entries')} matches '{text}'"
    reasons = join_clauses(explain_filters(index, query, resolve_zone(zone)))
    if reasons:
        message = f"{message}: {reasons}"
    counts = list(islice(_counts_without_filters(index, query, typed, total_budget), _MAX_REASONS))
    if counts:
        return f"{join_clauses((message, *counts))}."
    if reasons:
        return message if message.endswith("?") else f"{message}."
    for suggestion in suggest_queries(index, query):
        hits = _try_query(index, suggestion.query, total_budget)
        if hits is not None and hits.total:
            return f"{message}. {suggestion.note}"
    words = [leaf.text for leaf in leaves(query) if isinstance(leaf, Text)]
    if any(word.lower() != word.upper() for word in words):  # it has letters of a script that separates words
        return f"{message}. Try fewer words, or the beginning of a word with a star: wor*."
    return f"{message}."


def _try_query(index: Index, query: Query, total_budget: TimeBudget) -> Hits | None:
    """The hits of a query; None if that takes too long. One slow query does not use up the time of the others."""
    if total_budget.is_soft_limit_reached:
        return None
    try:
        return run_query(index, query, limit=1, budget=TimeBudget(_TRY_SECONDS))
    except SearchTimeout:
        return None


def _counts_without_filters(
    index: Index, query: Query, typed: Mapping[Query, str], total_budget: TimeBudget
) -> Iterator[str]:
    """For each filter, how many entries match without it, if any do."""
    for dropped, rest in without_each_filter(query):
        hits = _try_query(index, rest, total_budget)
        if hits is not None and hits.total:
            more = "at least " if hits.at_least else ""
            yield f"without {typed.get(dropped, dropped)}, {more}{count(hits.total, 'entry does', 'entries do')}"
