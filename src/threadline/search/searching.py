"""Searching: what a query finds in the index, best first, and what it would have found."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, tzinfo
from heapq import nlargest
from itertools import islice

from msgspec.structs import replace

from threadline.index.fields import fields
from threadline.index.titles import titles
from threadline.index.vocabulary import Vocabulary
from threadline.model.hit import Hit, Hits
from threadline.model.kept import is_kept
from threadline.model.place import Place
from threadline.model.time import parse_timestamp
from threadline.render.figures import count
from threadline.search.documents import Documents, Row, needs_reading
from threadline.search.expand import expanded, known_words, lean, wanted
from threadline.search.fts import plan
from threadline.search.match import Document, matches
from threadline.search.missed import missed
from threadline.search.nearest import instead, respelt
from threadline.search.parse_query import parse_query
from threadline.search.query import Phrase, Query, all_of, any_of
from threadline.search.ranking import Ranking, Sort, best_first, narrowed, newest_first
from threadline.search.regex import Patience, TookTooLong
from threadline.search.scattered import scattered, words_of
from threadline.search.snippets import snippet
from threadline.search.typed import Typed, gone_prompts

LOOKED_AT = 300
"""How many matching entries are looked at for a page of hits, once the page is full."""
READ_AT = 60
"""The same, where entries have to be read to know whether they match."""
ENOUGH = 20
"""How many of one transcript, where no word tells which are best."""
LONGER = 20_000
"""How many where the page is not full: one session can have thousands."""
SOON = 1.0
"""How many seconds entries are read for a page once something is found; it then says that this may not be all."""
PATIENT = 10.0
"""How many where nothing is found, or all is asked for; then there is no answer."""
SHARES = (1.0, 0.35, 0.15, 0.05)
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
    patience = Patience(PATIENT, SOON) if seconds is None else Patience(seconds)

    def ask(one: Query) -> Hits:
        return searched(connection, one, limit=limit, every=every, sort=sort, now=now, patience=patience)

    try:
        found = ask(query)
    except TookTooLong as error:
        reasons = "; ".join(missed(connection, query))
        if not reasons:
            raise
        raise TookTooLong(f"{error} By what the index knows, {reasons}{'' if reasons.endswith('?') else '.'}") from None
    if not near:
        return found
    is_widened = limit is not None and sort == "rank" and not every
    return _titled(connection, _nearest(connection, query, found, limit if is_widened else None, ask, now))


def _titled(connection: sqlite3.Connection, found: Hits) -> Hits:
    """The hits with what their sessions are called."""
    known = titles(connection, {hit.session for hit in found.hits if hit.session is not None})
    return replace(found, hits=tuple([replace(hit, title=known.get(hit.session or "")) for hit in found.hits]))


def _nearest(  # noqa: PLR0917 - all that is known by now
    connection: sqlite3.Connection,
    query: Query,
    found: Hits,
    limit: int | None,
    ask: Callable[[Query], Hits],
    now: datetime,
) -> Hits:
    """What was found with what lies near, or that alone where nothing was; `limit` is that of a page by rank."""
    spelt = respelt(connection, query) if not found.hits else None
    try:
        if spelt is not None:
            found = _noted(ask(spelt.query), spelt.note)
        if limit is not None:
            found = widened(connection, spelt.query if spelt is not None else query, found, limit, now)
        if found.hits:
            return replace(found, near=found.near or spelt is not None)
        for other in instead(connection, query):
            nearer = ask(other.query)
            if nearer.hits:
                return replace(_noted(nearer, other.note), near=True)
    except TookTooLong:  # what was asked for has its answer, and it is none
        pass
    return replace(found, note=None)


def _noted(found: Hits, note: str) -> Hits:
    """The hits, which match something else than was asked for."""
    return replace(found, note=" ".join(filter(None, [note, found.note])))


def widened(connection: sqlite3.Connection, query: Query, found: Hits, limit: int, now: datetime) -> Hits:
    """The hits together with sessions that have the words in several entries, or most of them, best first."""
    words = words_of(query)
    if words is None or (len(words.texts) == 1 and words.is_whole and found.hits):
        return found
    exact = {hit.session or hit.place.transcript: hit for hit in found.hits}
    asked = any_of((*words.texts, *words.beginnings))
    hits: list[Hit] = []
    ranking = Ranking(connection, narrowed(connection, query), "rank", now, ())
    with Documents(connection, all_of(words.filters)) as documents:
        for one in scattered(connection, words, [hit for hit in found.hits if not hit.gone], ranking):
            hit = exact.pop(one.row.session or one.row.transcript, None)
            if hit is None and matches(all_of(words.filters), documents.known(one.row)):
                hit = replace(_hit(asked, one.row, 0, documents), score=round(one.score, 6), lacks=one.lacks)
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


def searched(
    connection: sqlite3.Connection,
    query: Query,
    *,
    limit: int | None = 20,
    every: bool = False,
    sort: Sort = "rank",
    now: datetime | None = None,
    patience: Patience | None = None,
) -> Hits:
    """The same for a query that is understood already.

    Raises:
        TookTooLong: reading takes longer than patience has, and nothing was found by then, or there is no limit.
    """
    whole = lean(expanded(query), known_words(connection))
    texts = list(wanted(whole))
    phrases = [one for one in texts if isinstance(one, Phrase)]
    ranking = Ranking(connection, narrowed(connection, query), sort, now or datetime.now(UTC), phrases)
    planned = plan(whole, Vocabulary(connection))
    with Documents(connection, query if planned.rest is None else planned.rest) as documents:
        found = _Found(every=every, looked=LOOKED_AT if planned.rest is None else READ_AT)
        patience = patience or Patience(PATIENT, SOON)
        checking = _Checking(query, planned.rest, documents, ranking, patience, bounded=limit is not None)
        if planned.match is None:
            found.take_each(((last, checking.checked(rows)) for last, rows in ranking.newest()), limit)
        elif not phrases:
            found.take(checking.checked(ranking.rest(planned.match, ())), limit)
        else:
            found.take(checking.checked(ranking.matching(planned.match, bounded=limit is not None)), limit)
            if ranking.left_out and found.groups < (limit or 0):
                # What was ranked is of too few sessions, or filters left too little of it: now everything is looked at.
                ranking.left_out = False
                found.take(checking.checked(ranking.rest(planned.match, checking.seen)), limit)
        is_ranked = sort == "rank" and bool(texts)
        most = READ_AT if limit is not None else None
        gone = list(islice(gone_prompts(connection, query, bounded=limit is not None), most))
        for number, typed in enumerate(gone, 1):
            found.add(_row(-number, typed, ranking))
        if not phrases or gone:
            found.sort(best_first if is_ranked else newest_first)
        hits = [
            _hit(whole, row, more, documents) if row.entry_id > 0 else _gone(whole, row, more, gone[-row.entry_id - 1])
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
    return _titled(connection, replace(made, note=checking.told()) if made.cut_short else made)


class _Checking:
    """Looks at rows for what full text cannot answer."""

    def __init__(
        self,
        query: Query,
        rest: Query | None,
        documents: Documents,
        ranking: Ranking,
        patience: Patience,
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

    def checked(self, rows: Iterable[Row]) -> Iterator[Row]:
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
                yield row if is_scored else row._replace(score=self._ranking.of_document(row, document))

    def _is_enough(self) -> bool:
        """Whether there is something to show, and reading has taken long.

        Raises:
            TookTooLong: there is nothing to show, and it has taken too long.
        """
        if not self._reads:
            return False
        if self._bounded and self._has_some:
            return self._patience.is_soon_over
        self._patience.check()
        return False

    def _matches(self, asked: Query, document: Document) -> bool:
        try:
            return matches(asked, document, self._patience)
        except TookTooLong:
            if not self._bounded or not self._has_some:
                raise
            return False  # it is enough


class _Found:
    """The rows that match, one of each that is there several times, by session."""

    def __init__(self, *, every: bool, looked: int) -> None:
        self._every = every
        self._looked = looked
        self._rows: list[Row] = []
        self._copies: dict[tuple[str, str], int] = {}
        self._sessions: set[object] = set()
        self.is_whole = True
        self.has_every_session = True
        """Whether no session is left that nobody looked at."""

    def take(self, rows: Iterable[Row], limit: int | None) -> None:
        """As many rows as a page needs, or all."""
        self.is_whole = self.has_every_session = True
        for at, row in enumerate(rows, 1):
            self.add(row)
            if limit is not None and at >= (self._looked if self.groups >= limit else LONGER):
                self.is_whole = self.has_every_session = False
                return

    def take_each(self, parts: Iterable[tuple[float, Iterable[Row]]], limit: int | None) -> None:
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
                newest[group] = max(newest.get(group, 0.0), -newest_first(row)[0])
                if limit is not None and at >= (limit if self._every else ENOUGH):
                    self.is_whole = False
                    break

    def _is_full(self, newest: dict[object, float], limit: int, last: float) -> bool:
        return self.groups >= limit and nlargest(limit, newest.values())[-1] >= last

    def sort(self, key: Callable[[Row], tuple[float, int]]) -> None:
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

    def add(self, row: Row) -> None:
        """One more row; a copy of one that is there gives way to its original, or takes its place."""
        if row.uuid is not None:
            at = self._copies.setdefault((row.uuid, row.kind), len(self._rows))
            if at < len(self._rows):
                known = self._rows[at]
                if _original_first(row) < _original_first(known):
                    self._rows[at] = row._replace(score=max(row.score, known.score))
                return
        self._rows.append(row)
        self._sessions.add(self._group(row))

    def _group(self, row: Row) -> object:
        return row.entry_id if self._every else (row.session or row.transcript)

    def best(self, limit: int | None, *, ranked: bool) -> list[tuple[Row, int]]:
        """The first row of each session, and how many others it has; by rank, those count a little for it."""
        groups: dict[object, list[Row]] = {}
        for row in self._rows:
            groups.setdefault(self._group(row), []).append(row)
        listed = list(groups.values())
        if ranked:
            listed.sort(key=_weight, reverse=True)
        return [(rows[0], len(rows) - 1) for rows in listed[:limit]]


def _weight(rows: list[Row]) -> float:
    """What a session is about, it says more than once; what was typed last is written down twice."""
    said = [row for at, row in enumerate(rows) if at == 0 or row.kind != "last-prompt"]
    return sum(row.score * share for row, share in zip(said, SHARES, strict=False))


def _original_first(row: Row) -> tuple[bool, int]:
    return not row.is_own, row.entry_id


def _hit(query: Query, row: Row, more: int, documents: Documents) -> Hit:
    entry = documents.entry(row)
    shown = snippet(query, fields(entry) if entry is not None else {})
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


def _row(number: int, typed: Typed, ranking: Ranking) -> Row:
    """A prompt that is gone, among the rows of entries that are there."""
    prompt, place = typed.prompt, typed.place
    row = Row(
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
    return row._replace(score=ranking.of_typed(row)) if ranking.is_by_rank else row


def _gone(query: Query, row: Row, more: int, typed: Typed) -> Hit:
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
