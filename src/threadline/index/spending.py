"""Spending: the sums of charges by quarter of an hour, kept up to date, so that no report goes through all charges."""

from __future__ import annotations

import sqlite3

from threadline.account.adding import COUNTS
from threadline.index.stamp import QUARTER

_SUMS = """
SELECT CASE typeof(time) WHEN 'integer' THEN time / {quarter} ELSE time END, origin_id, rate_id,
    {sign} SUM(part IS NULL), {sign} SUM(input), {sign} SUM(output), {sign} SUM(cache_write_5m),
    {sign} SUM(cache_write_1h), {sign} SUM(cache_read), {sign} SUM(web_searches), {sign} SUM(lower_bound),
    {sign} SUM(part IS NOT NULL)
FROM {of} CROSS JOIN charged USING(message_id) GROUP BY 1, 2, 3
"""
_ADD = f"""
INSERT INTO spent {{sums}}
ON CONFLICT DO UPDATE SET {", ".join(f"{name} = {name} + excluded.{name}" for name in COUNTS)}
"""


def take_out(connection: sqlite3.Connection, of: str) -> None:
    """Take out the charges of messages that a query (`of`) names, and subtract them."""
    if connection.execute("SELECT 1 FROM charged LIMIT 1").fetchone() is None:
        return
    connection.execute(_ADD.format(sums=_SUMS.format(quarter=QUARTER, sign="-", of=of)))
    connection.execute(f"DELETE FROM charged WHERE message_id IN {of}")  # noqa: S608 - our own names


def add_spent(connection: sqlite3.Connection) -> None:
    """Add the charges of stale messages; what comes to nothing goes."""
    connection.execute(_ADD.format(sums=_SUMS.format(quarter=QUARTER, sign="", of="stale")))
    connection.execute("DELETE FROM spent WHERE charges = 0 AND parts = 0")
