"""Activity: how many sessions, prompts, calls and agents there were since a moment, and the calls of each session."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection
from datetime import UTC, datetime

from msgspec import Struct

_SESSIONS = "SELECT COUNT(DISTINCT COALESCE(session, transcript_id)) FROM session_rows WHERE last >= ?"
_PROMPTS = """SELECT COUNT(*) FROM session_rows s
    CROSS JOIN prompt_rows p ON p.transcript_id = s.transcript_id
    CROSS JOIN entries e ON e.transcript_id = p.transcript_id AND e.line = p.line
    WHERE s.last >= ? AND e.timestamp >= ? AND p.kind <> 'interrupt'"""
# Tool by tool, for so an index has them in the order of time.
_CALLS = """SELECT COALESCE(SUM((SELECT COUNT(*) FROM call_rows c WHERE c.tool_id = t.tool_id AND c.moment >= ?)), 0)
    FROM tools t"""
_AGENTS = "SELECT COUNT(*) FROM agent_rows WHERE agent <> '' AND first >= ?"
_OF_ALL = (
    "SELECT COUNT(DISTINCT COALESCE(session, transcript_id)) FROM session_rows",
    "SELECT COUNT(*) FROM prompt_rows WHERE kind <> 'interrupt'",
    "SELECT COUNT(*) FROM call_rows",
    "SELECT COUNT(*) FROM agent_rows WHERE agent <> ''",
)
_OF_SOME = """SELECT t.session, COUNT(*) FROM transcripts t
    CROSS JOIN entries e ON e.transcript_id = t.transcript_id
    CROSS JOIN call_rows c ON c.entry_id = e.entry_id
    WHERE t.session IN (SELECT value FROM json_each(?)) GROUP BY 1"""
_OF_EACH = """SELECT t.session, COUNT(*) FROM call_rows c
    CROSS JOIN entries e ON e.entry_id = c.entry_id
    CROSS JOIN transcripts t ON t.transcript_id = e.transcript_id
    WHERE t.session IS NOT NULL GROUP BY 1"""

_TOOLS = "SELECT k.tool, COUNT(*) FROM call_rows c JOIN tools k USING(tool_id) GROUP BY c.tool_id ORDER BY 2 DESC, 1"


class Activity(Struct, frozen=True):
    """How much was done: sessions that went on, what people typed, calls that were made, agents that began."""

    sessions: int
    prompts: int
    calls: int
    agents: int


def activity(connection: sqlite3.Connection, since: datetime | None = None) -> Activity:
    """How much was done since a moment, or ever; a call that several transcripts hold counts in each of them."""
    if since is None:
        return Activity(*(connection.execute(asked).fetchone()[0] for asked in _OF_ALL))
    began = since.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")
    asked: tuple[tuple[str, tuple[str | int, ...]], ...] = (
        (_SESSIONS, (began,)),
        (_PROMPTS, (began, began)),
        (_CALLS, (int(since.timestamp()),)),
        (_AGENTS, (began,)),
    )
    return Activity(*(connection.execute(question, values).fetchone()[0] for question, values in asked))


def call_counts(connection: sqlite3.Connection, sessions: Collection[str] | None = None) -> dict[str, int]:
    """How many calls the transcripts of each session hold, its agents' included: of some sessions, or of all."""
    if sessions is None:
        return dict(connection.execute(_OF_EACH).fetchall())
    return dict(connection.execute(_OF_SOME, (json.dumps(sorted(sessions)),)).fetchall())


def tool_counts(connection: sqlite3.Connection) -> dict[str, int]:
    """How often each tool was called, most often first."""
    return dict(connection.execute(_TOOLS).fetchall())
