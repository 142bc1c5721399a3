"""Why a query found nothing, and what would have been found."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import datetime, tzinfo
from itertools import islice

from threadline.model.hit import Hits
from threadline.render.figures import count
from threadline.search.missed import missed
from threadline.search.nearest import fewer, instead
from threadline.search.parse_query import parse_query
from threadline.search.query import Query, Regex, Text, leaves
from threadline.search.regex import Patience, TookTooLong
from threadline.search.searching import searched

_FEW = 3
_SECONDS = 2.0


def why(connection: sqlite3.Connection, text: str, *, zone: tzinfo | None = None, now: datetime | None = None) -> str:
    """Sentences for a person whose query has no hits: which filter nothing fits, what it would be without each.

    Raises:
        BadQuery: the query cannot be understood.
    """
    patience = Patience(_SECONDS)
    query = parse_query(text, now=now, zone=zone)
    (entries,) = connection.execute("SELECT COUNT(*) FROM entries").fetchone()
    told = f"Nothing in {count(entries, 'entry', 'entries')} matches {text!r}"
    reasons = "; ".join(missed(connection, query))
    if reasons:
        told = f"{told}: {reasons}"
    would = list(islice(_without(connection, query, patience), _FEW))
    if would:
        would[0] = f" W{would[0][1:]}" if told.endswith("?") else f"; {would[0]}"
        return f"{told}{'; '.join(would)}."
    if reasons:
        return told if told.endswith("?") else f"{told}."
    for other in instead(connection, query):
        found = _asked(connection, other.query, patience)
        if found is not None and found.total:
            return f"{told}. {other.note}"
    if any(isinstance(one, Text | Regex) for one in leaves(query)):
        return f"{told}; try fewer words, or the beginning of one with a star: wor*."
    return f"{told}."


def _asked(connection: sqlite3.Connection, query: Query, patience: Patience) -> Hits | None:
    """What a query finds; None where that takes too long to be worth a word."""
    try:
        return searched(connection, query, limit=1, patience=patience)
    except TookTooLong:
        return None


def _without(connection: sqlite3.Connection, query: Query, patience: Patience) -> Iterator[str]:
    """How much there is without one of the filters, for each where there is something."""
    for dropped, left in fewer(query):
        found = _asked(connection, left, patience)
        if found is not None and found.total:
            more = "at least " if found.at_least else ""
            yield f"without {dropped}, {more}{count(found.total, 'entry does', 'entries do')}"
