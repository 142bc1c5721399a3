"""Search the index: best hits first, with notes when they are not exactly what was asked for."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, tzinfo
from heapq import nlargest
from itertools import islice

from msgspec.structs import replace

from threadline.index import Vocabulary, extract_fields, find_titles
from threadline.model.hits import Hit, Hits
from threadline.model.homes import is_kept
from threadline.model.places import Place
from threadline.model.text import count
from threadline.model.times import parse_timestamp
from threadline.search.deleted_prompts import DeletedPrompt, find_deleted_prompts
from threadline.search.documents import DocumentReader, EntryRow, needs_reading
from threadline.search.fts import make_plan
from threadline.search.match import Document, matches
from threadline.search.parse import parse_query
from threadline.search.query import (
    Phrase,
    Query,
    Regex,
    Text,
    all_of,
    any_of,
    drop_unknown_spellings,
    expand,
    leaves,
    positive_terms,
    word_lookup,
)
from threadline.search.ranking import Ranker, Sort, best_first_key, newest_first_key, sql_condition
from threadline.search.regex import SearchTimeout, TimeBudget
from threadline.search.snippets import snippet
from threadline.search.suggest import (
    explain_filters,
    find_partial_matches,
    query_words,
    suggest_queries,
    suggest_spelling,
    without_each_filter,
)

ROWS_PER_PAGE = 300
"""How many matching entries are looked at for a page of hits, once the page is full."""
ROWS_PER_PAGE_READ = 60
"""The same, where entries have to be read to know whether they match."""
ROWS_PER_TRANSCRIPT = 20
"""How many of one transcript, where no word tells which are best."""
MAX_ROWS = 20_000
"""How many where the page is not full: one session can have thousands."""
SOON_SECONDS = 1.0
"""How many seconds entries are read for a page once something is found; it then says that this may not be all."""
MAX_SECONDS = 10.0
"""How many where nothing is found, or all is asked for; then there is no answer."""
SESSION_SHARES = (1.0, 0.35, 0.15, 0.05)
"""What a session's best hits count for it, the others nothing."""


def search(
    connection: sqlite3.Connection,
    text: str,
    *,
    limit: int | None = 20,
    every: bool = False,
    sort: Sort = "rank",
    now: datetime | None = None,
    zone: tzinfo | None = None,
    near: bool = False,
    seconds: float | None = None,
) -> Hits:
    """What a query finds: of each session its best hit, or with `every` all of them.

    Where nothing is found and `near` is asked for, the hits are those of a query that may have been meant, and `note`
    says which. Without a limit, everything that matches is found and counted; with one, as much as a good page needs.
    `seconds` is how long entries may be read where the index alone has no answer.

    Raises:
        BadQuery: the query cannot be understood, or reading takes too long.
    """
    now = now or datetime.now(UTC)
    query = parse_query(text, now=now, zone=zone)
    patience = TimeBudget(MAX_SECONDS, SOON_SECONDS) if seconds is None else TimeBudget(seconds)

    def ask(one: Query) -> Hits:
        return run_query(connection, one, limit=limit, every=every, sort=sort, now=now, patience=patience)

    try:
        found = ask(query)
    except SearchTimeout as error:
        reasons = "; ".join(explain_filters(connection, query))
        if not reasons:
            raise
        raise SearchTimeout(
            f"{error} By what the index knows, {reasons}{'' if reasons.endswith('?') else '.'}"
        ) from None
    if not near:
        return found
    is_widened = limit is not None and sort == "rank" and not every
    return _with_titles(
        connection, _with_suggestions(connection, query, found, limit if is_widened else None, ask, now)
    )


def _with_titles(connection: sqlite3.Connection, found: Hits) -> Hits:
    """The hits with what their sessions are called."""
    known = find_titles(connection, {hit.session for hit in found.hits if hit.session is not None})
    return replace(found, hits=tuple([replace(hit, title=known.get(hit.session or "")) for hit in found.hits]))


def _with_suggestions(  # noqa: PLR0917 - all that is known by now
    connection: sqlite3.Connection,
    query: Query,
    found: Hits,
    limit: int | None,
    ask: Callable[[Query], Hits],
    now: datetime,
) -> Hits:
    """What was found with what lies near, or that alone where nothing was; `limit` is that of a page by rank."""
    spelt = suggest_spelling(connection, query) if not found.hits else None
    try:
        if spelt is not None:
            found = _with_note(ask(spelt.query), spelt.note)
        if limit is not None:
            found = add_partial_matches(connection, spelt.query if spelt is not None else query, found, limit, now)
        if found.hits:
            return replace(found, near=found.near or spelt is not None)
        for other in suggest_queries(connection, query):
            nearer = ask(other.query)
            if nearer.hits:
                return replace(_with_note(nearer, other.note), near=True)
    except SearchTimeout:  # what was asked for has its answer, and it is none
        pass
    return replace(found, note=None)


def _with_note(found: Hits, note: str) -> Hits:
    """The hits, which match something else than was asked for."""
    return replace(found, note=" ".join(filter(None, [note, found.note])))


def add_partial_matches(connection: sqlite3.Connection, query: Query, found: Hits, limit: int, now: datetime) -> Hits:
    """The hits together with sessions that have the words in several entries, or most of them, best first."""
    words = query_words(query)
    if words is None or (len(words.texts) == 1 and words.is_whole and found.hits):
        return found
    exact = {hit.session or hit.place.transcript: hit for hit in found.hits}
    asked = any_of((*words.texts, *words.beginnings))
    hits: list[Hit] = []
    ranking = Ranker(connection, sql_condition(connection, query), "rank", now, ())
    with DocumentReader(connection, all_of(words.filters)) as documents:
        for match in find_partial_matches(connection, words, [hit for hit in found.hits if not hit.gone], ranking):
            hit = exact.pop(match.row.session or match.row.transcript, None)
            if hit is None and matches(all_of(words.filters), documents.known(match.row)):
                hit = replace(_make_hit(asked, match.row, 0, documents), score=round(match.score, 6), lacks=match.lacks)
            hits += [hit] if hit is not None else []
            if len(hits) == limit:
                break
    for at, hit in enumerate(found.hits):
        if hit.gone:  # it has no entry to be judged by: it keeps its place
            hits.insert(at, hit)
    del hits[limit:]
    told = (
        found.note or "No entry has all of these words, these have some; the others may stand elsewhere in the session."
    )
    lacking = any(hit.lacks for hit in hits)
    some = "Some of these do not have all of the words in one entry."
    note = told if hits and not found.hits else " ".join(filter(None, [found.note, some if lacking else None])) or None
    return replace(found, hits=tuple(hits), note=note, near=not found.hits)


def run_query(
    connection: sqlite3.Connection,
    query: Query,
    *,
    limit: int | None = 20,
    every: bool = False,
    sort: Sort = "rank",
    now: datetime | None = None,
    patience: TimeBudget | None = None,
) -> Hits:
    """The same for a query that is understood already.

    Raises:
        TookTooLong: reading takes longer than patience has, and nothing was found by then, or there is no limit.
    """
    whole = drop_unknown_spellings(expand(query), word_lookup(connection))
    texts = list(positive_terms(whole))
    phrases = [text for text in texts if isinstance(text, Phrase)]
    ranking = Ranker(connection, sql_condition(connection, query), sort, now or datetime.now(UTC), phrases)
    planned = make_plan(whole, Vocabulary(connection))
    with DocumentReader(connection, query if planned.rest is None else planned.rest) as documents:
        found = _HitCollector(every=every, looked=ROWS_PER_PAGE if planned.rest is None else ROWS_PER_PAGE_READ)
        patience = patience or TimeBudget(MAX_SECONDS, SOON_SECONDS)
        checking = _RowChecker(query, planned.rest, documents, ranking, patience, bounded=limit is not None)
        if planned.match is None:
            found.take_from_each(((last, checking.checked(rows)) for last, rows in ranking.newest()), limit)
        elif not phrases:
            found.take(checking.checked(ranking.rest(planned.match, ())), limit)
        else:
            found.take(checking.checked(ranking.matching(planned.match, bounded=limit is not None)), limit)
            if ranking.left_out and found.groups < (limit or 0):
                # What was ranked is of too few sessions, or filters left too little of it: now everything is looked at.
                ranking.left_out = False
                found.take(checking.checked(ranking.rest(planned.match, checking.seen)), limit)
        is_ranked = sort == "rank" and bool(texts)
        most = ROWS_PER_PAGE_READ if limit is not None else None
        gone = list(islice(find_deleted_prompts(connection, query, bounded=limit is not None), most))
        for number, typed in enumerate(gone, 1):
            found.add(_deleted_prompt_row(-number, typed, ranking))
        if not phrases or gone:
            found.sort(best_first_key if is_ranked else newest_first_key)
        hits = [
            _make_hit(whole, row, more, documents)
            if row.entry_id > 0
            else _deleted_prompt_hit(whole, row, more, gone[-row.entry_id - 1])
            for row, more in found.best(limit, ranked=is_ranked)
        ]
    at_least = not found.is_whole or ranking.left_out or checking.is_cut_short
    made = Hits(
        tuple(hits),
        found.total,
        at_least=at_least,
        listed=found.groups,
        cut_short=checking.is_cut_short,
        maybe_more=not found.has_every_session or ranking.left_out or checking.is_cut_short,
    )
    return _with_titles(connection, replace(made, note=checking.told()) if made.cut_short else made)


class _RowChecker:
    """Looks at rows for what full text cannot answer."""

    def __init__(
        self,
        query: Query,
        rest: Query | None,
        documents: DocumentReader,
        ranking: Ranker,
        patience: TimeBudget,
        *,
        bounded: bool,
    ) -> None:
        self._reads = rest is not None and needs_reading(rest)
        self._asked = query if self._reads else rest
        self._documents = documents
        self._ranking = ranking
        self._patience = patience
        self._bounded = bounded
        self._has_some = False
        self.is_cut_short = False
        self._seconds = 0.0
        self.seen: set[int] = set()

    def told(self) -> str:
        """That reading was cut short, and what to do."""
        read = count(len(self.seen), "entry was", "entries were")
        return (
            f"This may not be all: {read} read in {self._seconds:.1f} s. Add a word, or a field such as project:"
            " or since:7d, or give it longer with --timeout."
        )

    def checked(self, rows: Iterable[EntryRow]) -> Iterator[EntryRow]:
        """The rows that the query asks for: by what they say, or where it is enough, by what the index knows of them.

        Those that no words have put in order get their score now.
        """
        for row in rows:
            if self._asked is None:
                self.seen.add(row.entry_id)
                yield row
                continue
            if self._is_enough():
                self._seconds = self._seconds or self._patience.taken()
                self.is_cut_short = True
                return
            self.seen.add(row.entry_id)
            document = self._documents.document(row)
            if document is not None and self._matches(self._asked, document):
                self._has_some = True
                is_scored = bool(row.score) or not self._ranking.is_by_rank
                yield row if is_scored else row._replace(score=self._ranking.score_document(row, document))

    def _is_enough(self) -> bool:
        """Whether there is something to show, and reading has taken long.

        Raises:
            TookTooLong: there is nothing to show, and it has taken too long.
        """
        if not self._reads:
            return False
        if self._bounded and self._has_some:
            return self._patience.is_soft_limit_reached
        self._patience.check()
        return False

    def _matches(self, asked: Query, document: Document) -> bool:
        try:
            return matches(asked, document, self._patience)
        except SearchTimeout:
            if not self._bounded or not self._has_some:
                raise
            return False  # it is enough


class _HitCollector:
    """The rows that match, one of each that is there several times, by session."""

    def __init__(self, *, every: bool, looked: int) -> None:
        self._every = every
        self._looked = looked
        self._rows: list[EntryRow] = []
        self._copies: dict[tuple[str, str], int] = {}
        self._sessions: set[object] = set()
        self.is_whole = True
        self.has_every_session = True
        """Whether no session is left that nobody looked at."""

    def take(self, rows: Iterable[EntryRow], limit: int | None) -> None:
        """As many rows as a page needs, or all."""
        self.is_whole = self.has_every_session = True
        for at, row in enumerate(rows, 1):
            self.add(row)
            if limit is not None and at >= (self._looked if self.groups >= limit else MAX_ROWS):
                self.is_whole = self.has_every_session = False
                return

    def take_from_each(self, parts: Iterable[tuple[float, Iterable[EntryRow]]], limit: int | None) -> None:
        """As many rows of each transcript as a page needs, or all. Each comes with the last time of its session.

        The newest come first, so that a page is full when no other transcript can have anything newer than it shows.
        """
        newest: dict[object, float] = {}
        for last, rows in parts:
            if limit is not None and self._is_full(newest, limit, last):
                self.is_whole = self.has_every_session = False
                return
            for at, row in enumerate(rows, 1):
                self.add(row)
                group = self._group(row)
                newest[group] = max(newest.get(group, 0.0), -newest_first_key(row)[0])
                if limit is not None and at >= (limit if self._every else ROWS_PER_TRANSCRIPT):
                    self.is_whole = False
                    break

    def _is_full(self, newest: dict[object, float], limit: int, last: float) -> bool:
        return self.groups >= limit and nlargest(limit, newest.values())[-1] >= last

    def sort(self, key: Callable[[EntryRow], tuple[float, int]]) -> None:
        """Put the rows in order."""
        self._rows.sort(key=key)

    @property
    def groups(self) -> int:
        """How many hits there are to show."""
        return len(self._sessions)

    @property
    def total(self) -> int:
        """How many entries match, copies counted once."""
        return len(self._rows)

    def add(self, row: EntryRow) -> None:
        """One more row; a copy of one that is there gives way to its original, or takes its place."""
        if row.uuid is not None:
            at = self._copies.setdefault((row.uuid, row.kind), len(self._rows))
            if at < len(self._rows):
                known = self._rows[at]
                if _original_first_key(row) < _original_first_key(known):
                    self._rows[at] = row._replace(score=max(row.score, known.score))
                return
        self._rows.append(row)
        self._sessions.add(self._group(row))

    def _group(self, row: EntryRow) -> object:
        return row.entry_id if self._every else (row.session or row.transcript)

    def best(self, limit: int | None, *, ranked: bool) -> list[tuple[EntryRow, int]]:
        """The first row of each session, and how many others it has; by rank, those count a little for it."""
        groups: dict[object, list[EntryRow]] = {}
        for row in self._rows:
            groups.setdefault(self._group(row), []).append(row)
        listed = list(groups.values())
        if ranked:
            listed.sort(key=_session_score, reverse=True)
        return [(rows[0], len(rows) - 1) for rows in listed[:limit]]


def _session_score(rows: list[EntryRow]) -> float:
    """What a session is about, it says more than once; what was typed last is written down twice."""
    said = [row for at, row in enumerate(rows) if at == 0 or row.kind != "last-prompt"]
    return sum(row.score * share for row, share in zip(said, SESSION_SHARES, strict=False))


def _original_first_key(row: EntryRow) -> tuple[bool, int]:
    return not row.is_own, row.entry_id


def _make_hit(query: Query, row: EntryRow, more: int, documents: DocumentReader) -> Hit:
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
        more,
        kept=is_kept(row.transcript),
    )


def _deleted_prompt_row(number: int, typed: DeletedPrompt, ranking: Ranker) -> EntryRow:
    """A prompt that is gone, among the rows of entries that are there."""
    prompt, place = typed.prompt, typed.place
    row = EntryRow(
        number,
        0.0,
        0,
        place.transcript,
        place.line,
        place.offset,
        place.length,
        "user",
        None,
        prompt.timestamp.isoformat() if prompt.timestamp is not None else None,
        prompt.session_id or f"{place.transcript}:{place.offset}",
        None,
        prompt.project or "",
        is_own=True,
    )
    return row._replace(score=ranking.score_deleted_prompt(row)) if ranking.is_by_rank else row


def _deleted_prompt_hit(query: Query, row: EntryRow, more: int, typed: DeletedPrompt) -> Hit:
    shown = snippet(query, {"prompt": typed.document.prompt})
    return Hit(
        typed.place,
        0,
        typed.prompt.session_id,
        None,
        row.project,
        row.kind,
        typed.prompt.timestamp,
        round(row.score, 6),
        shown.field,
        shown.text,
        shown.highlights,
        None,
        more,
        gone=True,
    )


_MAX_REASONS = 3
_EXPLAIN_SECONDS = 2.0


def explain_no_hits(
    connection: sqlite3.Connection, text: str, *, zone: tzinfo | None = None, now: datetime | None = None
) -> str:
    """Sentences for a person whose query has no hits: which filter nothing fits, what it would be without each.

    Raises:
        BadQuery: the query cannot be understood.
    """
    patience = TimeBudget(_EXPLAIN_SECONDS)
    query = parse_query(text, now=now, zone=zone)
    (entries,) = connection.execute("SELECT COUNT(*) FROM entries").fetchone()
    told = f"Nothing in {count(entries, 'entry', 'entries')} matches {text!r}"
    reasons = "; ".join(explain_filters(connection, query))
    if reasons:
        told = f"{told}: {reasons}"
    would = list(islice(_counts_without_filters(connection, query, patience), _MAX_REASONS))
    if would:
        would[0] = f" W{would[0][1:]}" if told.endswith("?") else f"; {would[0]}"
        return f"{told}{'; '.join(would)}."
    if reasons:
        return told if told.endswith("?") else f"{told}."
    for other in suggest_queries(connection, query):
        found = _try_query(connection, other.query, patience)
        if found is not None and found.total:
            return f"{told}. {other.note}"
    if any(isinstance(leaf, Text | Regex) for leaf in leaves(query)):
        return f"{told}; try fewer words, or the beginning of one with a star: wor*."
    return f"{told}."


def _try_query(connection: sqlite3.Connection, query: Query, patience: TimeBudget) -> Hits | None:
    """What a query finds; None where that takes too long to be worth a word."""
    try:
        return run_query(connection, query, limit=1, patience=patience)
    except SearchTimeout:
        return None


def _counts_without_filters(connection: sqlite3.Connection, query: Query, patience: TimeBudget) -> Iterator[str]:
    """How much there is without one of the filters, for each where there is something."""
    for dropped, left in without_each_filter(query):
        found = _try_query(connection, left, patience)
        if found is not None and found.total:
            more = "at least " if found.at_least else ""
            yield f"without {dropped}, {more}{count(found.total, 'entry does', 'entries do')}"
