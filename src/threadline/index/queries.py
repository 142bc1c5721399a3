"""Small questions to the index: titles, activity counts, amounts, problems, owners of transcripts.

Imports nothing that knows entries, so that commands on a fresh index start fast.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from msgspec import Struct

from threadline.index.schema import WORKING_AGENT_SQL
from threadline.index.store import decode_path, encode_path, storable_text
from threadline.model.charges import EXACT
from threadline.model.times import parse_timestamp

# ruff: noqa: S608 - statements are made of our own words

_BATCH = 500
_SELECT_TITLES = """
SELECT r.session, r.title FROM session_rows r JOIN transcripts t USING(transcript_id)
WHERE r.title <> '' AND r.session IN ({0}) ORDER BY t.path
"""


def find_titles(connection: sqlite3.Connection, sessions: Collection[str]) -> dict[str, str]:
    """The titles of these sessions, those that have one; of a session that several transcripts hold, the first's."""
    wanted = list(sessions)
    found: dict[str, str] = {}
    for at in range(0, len(wanted), _BATCH):
        some = wanted[at : at + _BATCH]
        for session, title in connection.execute(_SELECT_TITLES.format(", ".join("?" * len(some))), some):
            found.setdefault(session, title)
    return found


_SELECT_LAST = "SELECT MAX(last) FROM session_rows WHERE session = ?"
_SELECT_FIRST_PROMPT = """SELECT p.text FROM session_rows r JOIN prompt_rows p USING(transcript_id)
    WHERE r.session = ? AND p.kind NOT IN ('command', 'shell', 'interrupt') ORDER BY p.turn, p.line LIMIT 1"""


class SessionFacts(Struct, frozen=True):
    """When a session was last written to, and the first prompt; None where that is not known."""

    last: datetime | None
    typed: str | None


def find_session_facts(connection: sqlite3.Connection, session: str) -> SessionFacts:
    """What the index has of a session of that id."""
    (last,) = connection.execute(_SELECT_LAST, (session,)).fetchone()
    typed = connection.execute(_SELECT_FIRST_PROMPT, (session,)).fetchone()
    return SessionFacts(parse_timestamp(last), typed[0] if typed is not None else None)


_COUNT_SESSIONS = "SELECT COUNT(DISTINCT COALESCE(session, transcript_id)) FROM session_rows WHERE last >= ?"
_COUNT_PROMPTS = """SELECT COUNT(*) FROM session_rows s
    CROSS JOIN prompt_rows p ON p.transcript_id = s.transcript_id
    CROSS JOIN entries e ON e.transcript_id = p.transcript_id AND e.line = p.line
    WHERE s.last >= ? AND e.timestamp >= ? AND p.kind <> 'interrupt'"""
# Tool by tool, for so an index has them in the order of time.
_COUNT_CALLS = """SELECT COALESCE(SUM(
        (SELECT COUNT(*) FROM call_rows c WHERE c.tool_id = t.tool_id AND c.moment >= ?)
    ), 0) FROM tools t"""
_COUNT_ALL_AGENTS = f"""SELECT COUNT(*) FROM agent_rows a JOIN transcripts t USING(transcript_id)
    WHERE {WORKING_AGENT_SQL.format(transcript="t")}"""
_COUNT_AGENTS = f"{_COUNT_ALL_AGENTS} AND a.first >= ?"
_COUNT_EVERYTHING = (
    "SELECT COUNT(DISTINCT COALESCE(session, transcript_id)) FROM session_rows",
    "SELECT COUNT(*) FROM prompt_rows WHERE kind <> 'interrupt'",
    "SELECT COUNT(*) FROM call_rows",
    _COUNT_ALL_AGENTS,
)
_COUNT_CALLS_OF_SESSIONS = """SELECT t.session, COUNT(*) FROM transcripts t
    CROSS JOIN entries e ON e.transcript_id = t.transcript_id
    CROSS JOIN call_rows c ON c.entry_id = e.entry_id
    WHERE t.session IN (SELECT value FROM json_each(?)) GROUP BY 1"""
_COUNT_CALLS_BY_SESSION = """SELECT t.session, COUNT(*) FROM call_rows c
    CROSS JOIN entries e ON e.entry_id = c.entry_id
    CROSS JOIN transcripts t ON t.transcript_id = e.transcript_id
    WHERE t.session IS NOT NULL GROUP BY 1"""

_COUNT_TOOLS = (
    "SELECT k.tool, COUNT(*) FROM call_rows c JOIN tools k USING(tool_id) GROUP BY c.tool_id ORDER BY 2 DESC, 1"
)


class Activity(Struct, frozen=True):
    """How much was done: sessions that went on, what people typed, calls that were made, agents that began."""

    sessions: int
    prompts: int
    calls: int
    agents: int


def count_activity(connection: sqlite3.Connection, since: datetime | None = None) -> Activity:
    """How much was done since a moment, or ever; a call that several transcripts hold counts in each of them."""
    if since is None:
        return Activity(*(connection.execute(asked).fetchone()[0] for asked in _COUNT_EVERYTHING))
    began = since.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")
    asked: tuple[tuple[str, tuple[str | int, ...]], ...] = (
        (_COUNT_SESSIONS, (began,)),
        (_COUNT_PROMPTS, (began, began)),
        (_COUNT_CALLS, (int(since.timestamp()),)),
        (_COUNT_AGENTS, (began,)),
    )
    return Activity(*(connection.execute(question, values).fetchone()[0] for question, values in asked))


def count_calls(connection: sqlite3.Connection, sessions: Collection[str] | None = None) -> dict[str, int]:
    """How many calls the transcripts of each session hold, its agents' included: of some sessions, or of all."""
    if sessions is None:
        return dict(connection.execute(_COUNT_CALLS_BY_SESSION).fetchall())
    return dict(connection.execute(_COUNT_CALLS_OF_SESSIONS, (json.dumps(sorted(sessions)),)).fetchall())


def count_tools(connection: sqlite3.Connection) -> dict[str, int]:
    """How often each tool was called, most often first."""
    return dict(connection.execute(_COUNT_TOOLS).fetchall())


# A message may be charged in parts, and one that was copied here is another session's: it is told what it cost all the
# same.
_SELECT_AMOUNTS = """SELECT m.message, c.amount FROM origins o
CROSS JOIN sightings s ON s.transcript_id = o.transcript_id AND s.origin_id = o.origin_id
JOIN charged c ON c.message_id = s.message_id JOIN message_ids m ON m.message_id = c.message_id
WHERE o.session = ? AND c.amount IS NOT NULL GROUP BY c.message_id, c.number"""


def message_amounts(connection: sqlite3.Connection, session: str) -> dict[str, Decimal]:
    """What each message in a session's transcripts cost, as far as a price is known."""
    found: dict[str, Decimal] = {}
    for message, amount in connection.execute(_SELECT_AMOUNTS, (session,)):
        found[message] = EXACT.add(found[message], Decimal(amount)) if message in found else Decimal(amount)
    return found


_SELECT_PROBLEMS = """SELECT p.kind, p.message, p.recovered, t.path, p.line
    FROM problems p JOIN transcripts t USING(transcript_id) ORDER BY p.kind, t.path, p.line"""
_COUNT_PROBLEMS = "SELECT kind, COUNT(*) FROM problems GROUP BY 1 ORDER BY 2 DESC"


class ListedProblem(Struct, frozen=True):
    """A problem that the index knows: its kind, a sentence, and where."""

    kind: str
    message: str
    recovered: bool
    transcript: str
    line: int


def list_problems(connection: sqlite3.Connection) -> list[ListedProblem]:
    """All of them, by kind and place."""
    return [
        ListedProblem(kind, message, bool(recovered), decode_path(path), line)
        for kind, message, recovered, path, line in connection.execute(_SELECT_PROBLEMS)
    ]


def count_problems(connection: sqlite3.Connection) -> dict[str, int]:
    """How many there are of each kind, most first."""
    return dict(connection.execute(_COUNT_PROBLEMS).fetchall())


_SELECT_OWNER = """SELECT
    COALESCE(t.session, (SELECT a.session FROM agent_rows a WHERE a.transcript_id = t.transcript_id)),
    t.agent FROM transcripts t WHERE t.path = ?"""
_SELECT_NAMING = """SELECT t.path FROM origins o JOIN transcripts t USING(transcript_id)
WHERE o.session = ? AND t.session IS NULL ORDER BY t.size DESC LIMIT 1"""
_SELECT_TOTAL_SIZE = "SELECT COALESCE(SUM(size), 0) FROM transcripts"


def transcript_owner(connection: sqlite3.Connection, transcript: str) -> tuple[str | None, str | None] | None:
    """The session and the agent whose transcript this is; None where it is not known."""
    found: tuple[str | None, str | None] | None = connection.execute(
        _SELECT_OWNER, (encode_path(transcript),)
    ).fetchone()
    return found


def find_transcript_naming(connection: sqlite3.Connection, session: str) -> Path | None:
    """The largest transcript whose rows name that session though its path does not."""
    row = connection.execute(_SELECT_NAMING, (storable_text(session),)).fetchone()
    return Path(decode_path(row[0])) if row is not None else None


def total_size(connection: sqlite3.Connection) -> int:
    """How many bytes all transcripts have."""
    return int(connection.execute(_SELECT_TOTAL_SIZE).fetchone()[0])
