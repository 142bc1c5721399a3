"""A session and the last day, as the index tells them: for a line that is written anew on every prompt."""

from __future__ import annotations

import sqlite3
from datetime import datetime

from threadline.account.rates import Rates
from threadline.index.ledger import IndexedLedger
from threadline.index.seen import SeenAgain, ranks
from threadline.index.texts import stored
from threadline.model.sighting import Sighting
from threadline.parse.tail import ends_compacted
from threadline.survey.today import Named, Recent, is_main_request

_LAST = """(SELECT DISTINCT message_id FROM (
    SELECT message_id FROM sightings WHERE transcript_id = ? ORDER BY offset DESC LIMIT 20))"""


def recent(connection: sqlite3.Connection, named: Named, rates: Rates, *, since: datetime) -> Recent:
    """What `survey.today.recent` gives; all of it, for everything has been read."""
    last = _last(connection, named) if named.main is not None else None
    return Recent(named, since, IndexedLedger(connection, rates), last)


def _last(connection: sqlite3.Connection, named: Named) -> Sighting | None:
    """The last request of the session's main agent; None where a compaction came after it."""
    path = str(named.main)
    number = connection.execute("SELECT transcript_id FROM transcripts WHERE path = ?", (stored(path),)).fetchone()
    if number is None or named.main is None or ends_compacted(named.main):
        return None
    groups = SeenAgain(connection, ranks(connection)).groups(_LAST, number)
    found = [one for _number, _key, some in groups for one in some if one.origin.transcript == path]
    return max(filter(is_main_request, found), key=lambda one: one.offsets[0], default=None)
