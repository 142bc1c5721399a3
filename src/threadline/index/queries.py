"""Small questions to the index: titles, activity counts, amounts, problems, owners of transcripts, values of fields.

Imports no module that defines entries, so that commands on a fresh index start fast.
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

# ruff: noqa: S608 - statements are built from our own names

_BATCH = 500
_SELECT_TITLES = """
SELECT r.session, r.title FROM session_rows r JOIN transcripts t USING(transcript_id)
WHERE r.title <> '' AND r.session IN ({0}) ORDER BY t.path
"""


def find_titles(connection: sqlite3.Connection, sessions: Collection[str]) -> dict[str, str]:
    """The titles of these sessions, without those that have none.

    If several transcripts belong to a session, the title of the first path counts.
    """
    ids = list(sessions)
    titles: dict[str, str] = {}
    for at in range(0, len(ids), _BATCH):
        batch = ids[at : at + _BATCH]
        for session, title in connection.execute(_SELECT_TITLES.format(", ".join("?" * len(batch))), batch):
            titles.setdefault(session, title)
    return titles


_SELECT_LAST = "SELECT MAX(last) FROM session_rows WHERE session = ?"
_SELECT_FIRST_PROMPT = """SELECT p.text FROM session_rows r JOIN prompt_rows p USING(transcript_id)
    WHERE r.session = ? AND p.kind NOT IN ('command', 'shell', 'interrupt') ORDER BY p.turn, p.line LIMIT 1"""


class SessionFacts(Struct, frozen=True):
    """When a session was last written to, and its first prompt; None if unknown."""

    last: datetime | None
    typed: str | None


def find_session_facts(connection: sqlite3.Connection, session: str) -> SessionFacts:
    """When a session was last written to, and its first prompt."""
    (last,) = connection.execute(_SELECT_LAST, (session,)).fetchone()
    prompt = connection.execute(_SELECT_FIRST_PROMPT, (session,)).fetchone()
    return SessionFacts(parse_timestamp(last), prompt[0] if prompt is not None else None)


_COUNT_SESSIONS = "SELECT COUNT(DISTINCT COALESCE(session, transcript_id)) FROM session_rows WHERE last >= ?"
_COUNT_PROMPTS = """SELECT COUNT(*) FROM session_rows s
    CROSS JOIN prompt_rows p ON p.transcript_id = s.transcript_id
    CROSS JOIN entries e ON e.transcript_id = p.transcript_id AND e.line = p.line
    WHERE s.last >= ? AND e.timestamp >= ? AND p.kind <> 'interrupt'"""
# Tool by tool, because the SQL index orders the calls of each tool by time.
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
    """How much was done: sessions that continued, prompts typed, calls made, agents started."""

    sessions: int
    prompts: int
    calls: int
    agents: int


def count_activity(connection: sqlite3.Connection, since: datetime | None = None) -> Activity:
    """How much was done since a time, or ever. A call that occurs in several transcripts counts once in each."""
    if since is None:
        return Activity(*(connection.execute(select).fetchone()[0] for select in _COUNT_EVERYTHING))
    start = since.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")
    statements: tuple[tuple[str, tuple[str | int, ...]], ...] = (
        (_COUNT_SESSIONS, (start,)),
        (_COUNT_PROMPTS, (start, start)),
        (_COUNT_CALLS, (int(since.timestamp()),)),
        (_COUNT_AGENTS, (start,)),
    )
    return Activity(*(connection.execute(select, values).fetchone()[0] for select, values in statements))


def count_calls(connection: sqlite3.Connection, sessions: Collection[str] | None = None) -> dict[str, int]:
    """The number of calls in the transcripts of each session, agents included: of these sessions, or of all."""
    if sessions is None:
        return dict(connection.execute(_COUNT_CALLS_BY_SESSION).fetchall())
    return dict(connection.execute(_COUNT_CALLS_OF_SESSIONS, (json.dumps(sorted(sessions)),)).fetchall())


def count_tools(connection: sqlite3.Connection) -> dict[str, int]:
    """The number of calls of each tool, largest first."""
    return dict(connection.execute(_COUNT_TOOLS).fetchall())


# A message may be charged in parts. A message copied from another session is included.
_SELECT_AMOUNTS = """SELECT m.message, c.amount FROM origins o
CROSS JOIN sightings s ON s.transcript_id = o.transcript_id AND s.origin_id = o.origin_id
JOIN charged c ON c.message_id = s.message_id JOIN message_ids m ON m.message_id = c.message_id
WHERE o.session = ? AND c.amount IS NOT NULL GROUP BY c.message_id, c.number"""


def message_amounts(connection: sqlite3.Connection, session: str) -> dict[str, Decimal]:
    """The amount of each message in a session's transcripts, for those whose price is known."""
    amounts: dict[str, Decimal] = {}
    for message, amount in connection.execute(_SELECT_AMOUNTS, (session,)):
        amounts[message] = EXACT.add(amounts[message], Decimal(amount)) if message in amounts else Decimal(amount)
    return amounts


_SELECT_PROBLEMS = """SELECT p.kind, p.message, p.recovered, t.path, p.line
    FROM problems p JOIN transcripts t USING(transcript_id) ORDER BY p.kind, t.path, p.line"""
_COUNT_PROBLEMS = "SELECT kind, COUNT(*) FROM problems GROUP BY 1 ORDER BY 2 DESC"


class ListedProblem(Struct, frozen=True):
    """A problem found while indexing: its kind, a sentence, and where it is."""

    kind: str
    message: str
    recovered: bool
    transcript: str
    line: int


def list_problems(connection: sqlite3.Connection) -> list[ListedProblem]:
    """All problems, by kind and place."""
    return [
        ListedProblem(kind, message, bool(recovered), decode_path(path), line)
        for kind, message, recovered, path, line in connection.execute(_SELECT_PROBLEMS)
    ]


def count_problems(connection: sqlite3.Connection) -> dict[str, int]:
    """The number of problems of each kind, largest first."""
    return dict(connection.execute(_COUNT_PROBLEMS).fetchall())


_SELECT_OWNER = """SELECT
    COALESCE(t.session, (SELECT a.session FROM agent_rows a WHERE a.transcript_id = t.transcript_id)),
    t.agent FROM transcripts t WHERE t.path = ?"""
_SELECT_NAMING = """SELECT t.path FROM origins o JOIN transcripts t USING(transcript_id)
WHERE o.session = ? AND t.session IS NULL ORDER BY t.size DESC LIMIT 1"""
_SELECT_TOTAL_SIZE = "SELECT COALESCE(SUM(size), 0) FROM transcripts"


def transcript_owner(connection: sqlite3.Connection, transcript: str) -> tuple[str | None, str | None] | None:
    """The session and the agent whose transcript this is; None if it is not indexed."""
    owner: tuple[str | None, str | None] | None = connection.execute(
        _SELECT_OWNER, (encode_path(transcript),)
    ).fetchone()
    return owner


def find_transcript_naming(connection: sqlite3.Connection, session: str) -> Path | None:
    """The largest transcript whose rows name this session although its path does not."""
    row = connection.execute(_SELECT_NAMING, (storable_text(session),)).fetchone()
    return Path(decode_path(row[0])) if row is not None else None


def total_size(connection: sqlite3.Connection) -> int:
    """The size of all transcripts in bytes."""
    return int(connection.execute(_SELECT_TOTAL_SIZE).fetchone()[0])


_SELECT_TIME_RANGE = """SELECT MIN(first), MAX(last) FROM
    (SELECT first, last FROM session_rows UNION ALL SELECT first, last FROM agent_rows)"""
# The values of each field, most frequent or newest first.
_SELECT_VALUES = {
    "tool": "SELECT t.tool FROM tools t JOIN call_rows c USING(tool_id) GROUP BY t.tool_id ORDER BY COUNT(*) DESC",
    "model": "SELECT m.model FROM models m ORDER BY m.model_id DESC",
    "kind": "SELECT kind FROM entries GROUP BY kind ORDER BY COUNT(*) DESC",
    "project": "SELECT COALESCE(path, folder) FROM projects ORDER BY project_id DESC",
    "branch": "SELECT git_branch FROM origins WHERE git_branch <> '' GROUP BY git_branch ORDER BY COUNT(*) DESC",
    "version": "SELECT version FROM origins WHERE version <> '' GROUP BY version ORDER BY MAX(began) DESC",
    "agent": "SELECT type FROM agents WHERE type <> '' GROUP BY type ORDER BY COUNT(*) DESC",
}


def home_paths(connection: sqlite3.Connection) -> list[str]:
    """The paths of all homes, in the order in which they were indexed."""
    return [decode_path(path) for (path,) in connection.execute("SELECT path FROM homes ORDER BY home_id")]


def session_ids(connection: sqlite3.Connection) -> set[str]:
    """The ids of all sessions that have a transcript."""
    return {session for (session,) in connection.execute("SELECT DISTINCT session FROM transcripts") if session}


def agent_ids(connection: sqlite3.Connection) -> set[str]:
    """The ids of all agents."""
    return {agent for (agent,) in connection.execute("SELECT DISTINCT agent FROM agents")}


def field_values(connection: sqlite3.Connection, field: str) -> list[str]:
    """All values of a field of the query language, most frequent or newest first. Agents are listed by type."""
    values = connection.execute(_SELECT_VALUES[field])
    return [value.decode(errors="replace") if isinstance(value, bytes) else value for (value,) in values]


def project_names(connection: sqlite3.Connection) -> dict[int, str]:
    """The path of each project by its number; the folder's name if the path is not known."""
    rows = connection.execute("SELECT project_id, COALESCE(path, folder) FROM projects")
    return {number: decode_path(name) for number, name in rows}


def tool_names(connection: sqlite3.Connection) -> dict[int, str]:
    """The name of each tool by its number."""
    return dict(connection.execute("SELECT tool_id, tool FROM tools").fetchall())


def time_range(connection: sqlite3.Connection) -> tuple[datetime | None, datetime | None]:
    """The first and the last time in any session."""
    first, last = connection.execute(_SELECT_TIME_RANGE).fetchone()
    return parse_timestamp(first), parse_timestamp(last)
