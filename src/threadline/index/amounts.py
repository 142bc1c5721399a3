"""Amounts: what each message of a session cost."""

from __future__ import annotations

import sqlite3
from decimal import Decimal

from threadline.model.rate import EXACT

# A message may be charged in parts, and one that was copied here is another session's: it is told what it cost all the
# same.
_AMOUNTS = """SELECT m.message, c.amount FROM origins o
CROSS JOIN sightings s ON s.transcript_id = o.transcript_id AND s.origin_id = o.origin_id
JOIN charged c ON c.message_id = s.message_id JOIN message_ids m ON m.message_id = c.message_id
WHERE o.session = ? AND c.amount IS NOT NULL GROUP BY c.message_id, c.number"""


def amounts(connection: sqlite3.Connection, session: str) -> dict[str, Decimal]:
    """What each message in a session's transcripts cost, as far as a price is known."""
    found: dict[str, Decimal] = {}
    for message, amount in connection.execute(_AMOUNTS, (session,)):
        found[message] = EXACT.add(found[message], Decimal(amount)) if message in found else Decimal(amount)
    return found
