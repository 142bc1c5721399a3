"""Read queries of the index: titles, counts, amounts, problems, rows of entries, full text.

Imports no module that defines entries, so that commands on a fresh index start fast.

FTS5 is quick to start at a row id, and slow to stop at one. Words of deleted entries may still be in the table.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from threadline.index.store import (
    FIELDS,
    SESSION_TRANSCRIPTS_SQL,
    TYPED_SQL,
    UUID_PATTERN_SQL,
    WORKING_AGENT_SQL,
    decode_path,
    encode_path,
    storable_text,
)
from threadline.model.ledger import EXACT
from threadline.model.names import current_tool_name
from threadline.model.places import SessionId
from threadline.model.tables import Listing
from threadline.model.times import parse_timestamp
from threadline.model.titles import KnownLinks, SummaryRef

# ruff: noqa: S608 - statements are built from our own names and numbers

_SELECT_TITLES = """
SELECT r.session, r.title FROM session_rows r JOIN transcripts t USING(transcript_id)
WHERE r.title <> '' AND r.session IN (SELECT value FROM json_each(?)) ORDER BY t.path
"""


def find_titles(connection: sqlite3.Connection, sessions: Collection[str]) -> dict[str, str]:
    """The titles of these sessions, without those that have none.

    If several transcripts belong to a session, the title of the first path counts.
    """
    titles: dict[str, str] = {}
    for session, title in connection.execute(_SELECT_TITLES, (json.dumps(list(sessions)),)):
        titles.setdefault(session, title)
    return titles


_SELECT_LAST = "SELECT MAX(last) FROM session_rows WHERE session = ?"
_SELECT_FIRST_PROMPT = """SELECT p.text FROM session_rows r JOIN prompt_rows p USING(transcript_id)
    WHERE r.session = ? AND p.kind NOT IN ('command', 'shell', 'interrupt') ORDER BY p.turn, p.line LIMIT 1"""


class SessionFacts(Struct, frozen=True):
    """When a session was last written to, and its first prompt; None if unknown."""

    last: datetime | None
    first_prompt: str | None


def find_session_facts(connection: sqlite3.Connection, session: str) -> SessionFacts:
    """When a session was last written to, and its first prompt."""
    stored = (storable_text(session),)
    (last,) = connection.execute(_SELECT_LAST, stored).fetchone()
    prompt = connection.execute(_SELECT_FIRST_PROMPT, stored).fetchone()
    return SessionFacts(parse_timestamp(last), prompt[0] if prompt is not None else None)


# A UUID is the same session in every transcript; any other name is a session of its own in each project.
_COUNT_ALL_SESSIONS = f"""SELECT COUNT(DISTINCT CASE WHEN session LIKE {UUID_PATTERN_SQL} THEN session
        ELSE transcript_id END) FROM session_rows"""
_COUNT_SESSIONS = f"{_COUNT_ALL_SESSIONS} WHERE last >= ?"
_COUNT_PROMPTS = f"""SELECT COUNT(*) FROM session_rows s
    CROSS JOIN prompt_rows p ON p.transcript_id = s.transcript_id
    CROSS JOIN entries e ON e.transcript_id = p.transcript_id AND e.line = p.line AND e.offset = p.offset
    WHERE s.last >= ? AND e.timestamp >= ? AND {TYPED_SQL.format("p")}"""
# Tool by tool, because the SQL index orders the calls of each tool by time.
_COUNT_CALLS = """SELECT COUNT(DISTINCT c.call) FROM tools t
    CROSS JOIN call_rows c ON c.tool_id = t.tool_id AND c.moment >= ?"""
# Two transcripts of the same agent, as in a copy, are one agent.
_COUNT_AGENTS_WHERE = f"""SELECT COUNT(*) FROM (SELECT DISTINCT a.agent, COALESCE(t.session, a.session), t.project_id
    FROM agent_rows a JOIN transcripts t USING(transcript_id)
    WHERE {WORKING_AGENT_SQL.format(transcript="t")}{{0}})"""
_COUNT_ALL_AGENTS = _COUNT_AGENTS_WHERE.format("")
_COUNT_AGENTS = _COUNT_AGENTS_WHERE.format(" AND a.first >= ?")
_COUNT_EVERYTHING = (
    _COUNT_ALL_SESSIONS,
    f"SELECT COUNT(*) FROM prompt_rows p WHERE {TYPED_SQL.format('p')}",
    "SELECT COUNT(DISTINCT call) FROM call_rows",
    _COUNT_ALL_AGENTS,
)
_COUNT_CALLS_OF_SESSIONS = f"""SELECT t.session, COUNT(*) FROM {SESSION_TRANSCRIPTS_SQL} t
    CROSS JOIN entries e ON e.transcript_id = t.transcript_id
    CROSS JOIN call_rows c ON c.entry_id = e.entry_id GROUP BY 1"""
_COUNT_CALLS_BY_SESSION = """SELECT COALESCE(t.session, a.session), SUM(calls) FROM
    (SELECT e.transcript_id, COUNT(*) AS calls FROM call_rows c CROSS JOIN entries e ON e.entry_id = c.entry_id
        GROUP BY 1) n
    CROSS JOIN transcripts t ON t.transcript_id = n.transcript_id
    LEFT JOIN agent_rows a ON a.transcript_id = t.transcript_id AND a.agent = t.agent
    WHERE COALESCE(t.session, a.session) IS NOT NULL GROUP BY 1"""

_COUNT_TOOLS = """SELECT k.tool, COUNT(DISTINCT c.call) FROM call_rows c JOIN tools k USING(tool_id)
    GROUP BY c.tool_id ORDER BY 2 DESC, 1"""


class Activity(Struct, frozen=True):
    """How much was done: sessions that continued, prompts typed, calls made, agents started."""

    sessions: int
    prompts: int
    calls: int
    agents: int


def count_activity(connection: sqlite3.Connection, since: datetime | None = None) -> Activity:
    """How much was done since a time, or ever. A call that occurs in several transcripts counts once."""
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
    """The number of calls of each tool by its current name, largest first."""
    counts: Counter[str] = Counter()
    for tool, number in connection.execute(_COUNT_TOOLS):
        counts[current_tool_name(tool)] += number
    return dict(counts.most_common())


# A message may be charged in parts. A message copied from another session is included.
_SELECT_AMOUNTS = """SELECT m.message, c.amount FROM origins o
CROSS JOIN sightings s ON s.transcript_id = o.transcript_id AND s.origin_id = o.origin_id
JOIN charged c ON c.message_id = s.message_id JOIN message_ids m ON m.message_id = c.message_id
WHERE o.session = ? AND c.amount IS NOT NULL GROUP BY c.message_id, c.number"""


def message_amounts(connection: sqlite3.Connection, session: str) -> dict[str, Decimal]:
    """The amount of each message in a session's transcripts, for those whose price is known."""
    amounts: dict[str, Decimal] = {}
    for message, amount in connection.execute(_SELECT_AMOUNTS, (storable_text(session),)):
        amounts[message] = EXACT.add(amounts[message], Decimal(amount)) if message in amounts else Decimal(amount)
    return amounts


_SELECT_SUMMARIES = """SELECT s.leaf, s.text, t.path, s.line, t.session
    FROM summary_rows s JOIN transcripts t USING(transcript_id) ORDER BY t.path, s.line"""
_SELECT_OWNERS = """SELECT DISTINCT l.leaf, COALESCE(t.session, e.session)
    FROM leaf_rows l
    JOIN transcripts t ON t.transcript_id = l.transcript_id
    JOIN entries e ON e.entry_id = l.entry_id
    WHERE COALESCE(t.session, e.session) IS NOT NULL ORDER BY 1, 2"""


def read_links(connection: sqlite3.Connection) -> KnownLinks:
    """All summaries, and the sessions that contain the entries they name. The line is used in place of the offset."""
    summaries = tuple(
        SummaryRef(leaf, text, decode_path(path), line, SessionId(session) if session is not None else None)
        for leaf, text, path, line, session in connection.execute(_SELECT_SUMMARIES)
    )
    owners: dict[str, tuple[SessionId, ...]] = {}
    for leaf, session in connection.execute(_SELECT_OWNERS):
        owners[leaf] = (*owners.get(leaf, ()), SessionId(session))
    return KnownLinks(summaries, owners)


_SELECT_SHARING = """SELECT DISTINCT o.path FROM transcripts t
CROSS JOIN sightings s ON s.transcript_id = t.transcript_id
CROSS JOIN sightings u ON u.message_id = s.message_id AND u.transcript_id <> s.transcript_id
CROSS JOIN transcripts o ON o.transcript_id = u.transcript_id WHERE t.path IN ({0})"""


def transcripts_sharing(connection: sqlite3.Connection, transcripts: Collection[str]) -> list[str]:
    """The paths of other transcripts that contain messages of these, or of those that do, and so on."""
    known = set(transcripts)
    added = known
    while added:
        paths = [encode_path(path) for path in added]
        rows = connection.execute(_SELECT_SHARING.format(", ".join("?" * len(paths))), paths)
        added = {decode_path(path) for (path,) in rows} - known
        known |= added
    return sorted(known.difference(transcripts))


_SELECT_PROBLEMS = """SELECT p.kind, p.message, p.recovered, t.path, p.line,
        COALESCE(t.session, (SELECT a.session FROM agent_rows a WHERE a.transcript_id = t.transcript_id)),
        COALESCE(o.path, o.folder)
    FROM problems p JOIN transcripts t USING(transcript_id) JOIN projects o USING(project_id)
    ORDER BY p.kind, t.path, p.line"""
_COUNT_PROBLEMS = "SELECT kind, COUNT(*) FROM problems GROUP BY 1 ORDER BY 2 DESC"


class ListedProblem(Struct, frozen=True):
    """A problem found while indexing: its kind, a sentence, and where it is."""

    kind: str
    message: str
    recovered: bool
    transcript: str
    line: int
    session: str | None = None
    project: str = ""


class ProblemList(Listing[ListedProblem]):
    """Problems, by kind and place."""

    row_type = ListedProblem
    noun = "problem"


def list_problems(connection: sqlite3.Connection) -> ProblemList:
    """All problems, by kind and place."""
    return ProblemList(
        ListedProblem(kind, message, bool(recovered), decode_path(path), line, session, decode_path(project))
        for kind, message, recovered, path, line, session, project in connection.execute(_SELECT_PROBLEMS)
    )


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
    "stop": "SELECT stop_reason FROM entries WHERE stop_reason <> '' GROUP BY stop_reason ORDER BY COUNT(*) DESC",
    "tier": "SELECT service_tier FROM charges GROUP BY service_tier ORDER BY COUNT(*) DESC",
    "slug": "SELECT slug FROM session_rows WHERE slug <> '' GROUP BY slug ORDER BY MAX(last) DESC",
    "platform": "SELECT platform FROM session_rows WHERE platform <> '' GROUP BY platform ORDER BY COUNT(*) DESC",
    "agent": "SELECT type FROM agents WHERE type <> '' GROUP BY type ORDER BY COUNT(*) DESC",
}


class SessionLabels(NamedTuple):
    """The nickname of a session, and the platform and OS it ran on."""

    slug: str | None = None
    platforms: tuple[str, ...] = ()


NO_LABELS = SessionLabels()
_SELECT_LABELS = """SELECT session, slug, platform, os_version FROM session_rows
    WHERE session IS NOT NULL AND COALESCE(slug, platform, os_version) IS NOT NULL"""


def session_labels(connection: sqlite3.Connection) -> dict[str | None, SessionLabels]:
    """The labels of the sessions that have any."""
    return {
        session: SessionLabels(slug, tuple(filter(None, platforms)))
        for session, slug, *platforms in connection.execute(_SELECT_LABELS)
    }


def has_request(connection: sqlite3.Connection, prefix: str) -> bool:
    """Whether any entry belongs to a request whose id starts with a text, ignoring case."""
    select = "SELECT 1 FROM entries WHERE substr(lower(request), 1, ?) = ? LIMIT 1"
    return connection.execute(select, (len(prefix), prefix.lower())).fetchone() is not None


def paths_of_slug(connection: sqlite3.Connection, slug: str) -> list[str]:
    """The main transcripts of sessions with this slug."""
    select = "SELECT t.path FROM session_rows s JOIN transcripts t USING(transcript_id) WHERE s.slug = ?"
    return [decode_path(path) for (path,) in connection.execute(select, (storable_text(slug),))]


def messages_of_request(connection: sqlite3.Connection, prefix: str) -> list[str]:
    """The messages of requests whose id starts with a text. A message without an id has the request's."""
    select = "SELECT DISTINCT COALESCE(message, request) FROM entries WHERE request >= ? AND request < ? ORDER BY 1"
    start = storable_text(prefix) or ""
    return [message for (message,) in connection.execute(select, (start, f"{start}{chr(sys.maxunicode)}"))]


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


_ENTRIES_BATCH = 900
_CONVERSATION = "e.kind IN ('user', 'assistant')"
_ZONE_MARGIN = timedelta(days=1)
ENTRY_JOINS = "JOIN transcripts t ON t.transcript_id = e.transcript_id JOIN projects p ON p.project_id = t.project_id"
"""Joins an entry `e` with its transcript `t` and project `p`, as an `EntryFilter` needs them."""
_SELECT_ROWS = f"""SELECT e.entry_id, e.transcript_id, t.path, e.line, e.offset, e.length, e.kind, e.uuid, e.timestamp,
    COALESCE(t.session, e.session), COALESCE(e.agent, t.agent), COALESCE(p.path, p.folder), e.session IS NULL, 0.0,
    e.request, e.stop_reason
    FROM entries e {ENTRY_JOINS}"""
_SELECT_FACTS = """SELECT e.entry_id, COALESCE(t.session, e.session, t.path), e.kind, e.length, e.timestamp
    FROM entries e JOIN transcripts t ON t.transcript_id = e.transcript_id WHERE e.entry_id IN ({0})"""
_SELECT_LAST_TIMES = """SELECT t.transcript_id,
    COALESCE(r.last, (SELECT MAX(o.last) FROM session_rows o WHERE o.session = t.session)), t.mtime_ns
    FROM transcripts t LEFT JOIN session_rows r USING(transcript_id)"""
_WITH_TOOLS = """t.transcript_id IN (SELECT DISTINCT u.transcript_id FROM call_rows k
    CROSS JOIN entries u ON u.entry_id = k.entry_id WHERE k.tool_id IN ({0}))"""


class EntryRow(NamedTuple):
    """What the index knows about an entry. `is_own`: the entry names the session of its own transcript."""

    entry_id: int
    transcript_id: int
    transcript: str
    line: int
    offset: int
    length: int
    kind: str
    uuid: str | None
    timestamp: str | None
    session: str | None
    agent: str | None
    project: str
    is_own: bool
    score: float = 0.0
    request: str | None = None
    stop_reason: str | None = None


class EntryFacts(NamedTuple):
    """The few columns of an entry that are needed to judge its session."""

    entry_id: int
    session: str
    kind: str
    length: int
    timestamp: str | None


class TranscriptEnd(NamedTuple):
    """When a transcript was last written to: the last timestamp of its session, if known, and its mtime."""

    transcript_id: int
    last: str | None
    mtime_ns: int


class EntryFilter(Struct, frozen=True):
    """A condition that SQL can check; each of the parts that are given has to hold.

    It may let more entries through than were asked for, never fewer. `with_tools` accepts all entries of transcripts
    that call one of these tools, since a result is not stored with its tool. Times are compared as text, with a margin
    for any time zone; entries with an unusual timestamp pass.
    """

    project_ids: tuple[Collection[int], ...] = ()
    with_tools: tuple[Collection[int], ...] = ()
    kinds: tuple[str, ...] = ()
    session_prefixes: tuple[str, ...] = ()
    stop_reasons: tuple[str, ...] = ()
    request_prefixes: tuple[str, ...] = ()
    is_agent: bool | None = None
    sessions: tuple[Collection[str | None], ...] = ()
    since: tuple[datetime, ...] = ()
    until: tuple[datetime, ...] = ()

    def to_sql(self) -> tuple[str, tuple[object, ...]]:
        """The condition on an entry `e` joined by `ENTRY_JOINS`, beginning with AND, and its values."""
        parts = [f"t.project_id IN ({', '.join(map(str, ids))})" for ids in self.project_ids]
        parts += [_WITH_TOOLS.format(", ".join(map(str, ids))) for ids in self.with_tools]
        if self.is_agent is not None:
            parts.append(f"COALESCE(e.agent, t.agent, '') {'<>' if self.is_agent else '='} ''")
        values: list[object] = []
        for kind in self.kinds:
            parts.append("lower(e.kind) = ?")
            values.append(kind.lower())
        for prefix in self.session_prefixes:
            parts.append("substr(lower(COALESCE(t.session, e.session)), 1, ?) = ?")
            values += len(prefix), prefix.lower()
        for reason in self.stop_reasons:
            parts.append("lower(e.stop_reason) = ?")
            values.append(reason.lower())
        for prefix in self.request_prefixes:
            parts.append("substr(lower(e.request), 1, ?) = ?")
            values += len(prefix), prefix.lower()
        for sessions in self.sessions:
            parts.append(f"COALESCE(t.session, e.session) IN ({', '.join('?' * len(sessions))})")
            values += sessions
        for moment in self.since:
            parts.append(_time_condition(">="))
            values.append(_time_text(moment, -_ZONE_MARGIN))
        for moment in self.until:
            parts.append(_time_condition("<="))
            values.append(_time_text(moment, _ZONE_MARGIN))
        return "".join(f" AND {part}" for part in parts), tuple(values)


def _time_condition(operator: str) -> str:
    return f"(e.timestamp {operator} ? OR e.timestamp NOT GLOB '[12][0-9][0-9][0-9]-[01][0-9]-*')"


def _time_text(moment: datetime, margin: timedelta) -> str:
    try:
        return (moment + margin).replace(tzinfo=None).isoformat(timespec="seconds")  # `%Y` omits zeros
    except OverflowError:  # at the ends of the calendar: no margin is needed where nothing can lie beyond
        return "" if margin < timedelta(0) else "~"


class EntryTable:
    """The entries of an index."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def count(self) -> int:
        """How many entries there are."""
        return int(self._connection.execute("SELECT COUNT(*) FROM entries").fetchone()[0])

    def last_id(self) -> int:
        """The largest entry id, 0 if there are none. Entries indexed later have larger ids."""
        return int(self._connection.execute("SELECT MAX(entry_id) FROM entries").fetchone()[0] or 0)

    def rows(self, entry_ids: Iterable[int]) -> list[EntryRow]:
        """The rows of these entries, those indexed last first. Ids of deleted entries are left out."""
        id_list = ", ".join(map(str, entry_ids))
        return list(self._select(f"WHERE e.entry_id IN ({id_list}) ORDER BY e.entry_id DESC"))

    def all_rows(self) -> Iterator[EntryRow]:
        """The rows of all entries."""
        return self._select("")

    def facts(self, entry_ids: Collection[int]) -> Iterator[EntryFacts]:
        """The facts of these entries, in any order. Ids of deleted entries are left out."""
        numbers = list(entry_ids)
        for at in range(0, len(numbers), _ENTRIES_BATCH):
            id_list = ", ".join(map(str, numbers[at : at + _ENTRIES_BATCH]))
            yield from map(EntryFacts._make, self._connection.execute(_SELECT_FACTS.format(id_list)))

    def replies_before(self, row: EntryRow, max_lines: int) -> Iterator[EntryRow]:
        """The assistant entries in the lines before an entry, nearest first."""
        return self._select(
            "WHERE e.transcript_id = ? AND e.line < ? AND e.line >= ? AND e.kind = 'assistant' ORDER BY e.line DESC",
            (row.transcript_id, row.line, row.line - max_lines),
        )

    def tools_answered_by(self, row: EntryRow, max_lines: int) -> list[str]:
        """The tools of calls in the lines before an entry whose results it contains."""
        select = """SELECT t.tool FROM entries e JOIN call_rows c ON c.entry_id = e.entry_id
            JOIN tools t ON t.tool_id = c.tool_id
            WHERE e.transcript_id = ? AND e.line < ? AND e.line >= ? AND c.result_entry_id = ?"""
        values = (row.transcript_id, row.line, row.line - max_lines, row.entry_id)
        return [tool for (tool,) in self._connection.execute(select, values)]

    def conversation_around(self, entry_id: int, line: int, count: int) -> tuple[list[EntryRow], list[EntryRow]]:
        """Up to `count` user and assistant entries before a line of an entry's transcript, and after it."""
        sides = []
        for operator, order in (("<", "DESC"), (">", "ASC")):
            rows = self._select(
                f"WHERE e.transcript_id = (SELECT transcript_id FROM entries WHERE entry_id = ?) AND {_CONVERSATION}"
                f" AND e.line {operator} ? ORDER BY e.line {order} LIMIT ?",
                (entry_id, line, count),
            )
            sides.append(list(rows))
        before, after = sides
        return before[::-1], after

    def transcript_ends(self) -> list[TranscriptEnd]:
        """When each transcript was last written to."""
        return [TranscriptEnd(*row) for row in self._connection.execute(_SELECT_LAST_TIMES)]

    def from_end(self, transcript_id: int, selection: EntryFilter) -> Iterator[EntryRow]:
        """The entries of a transcript that pass a filter, last line first."""
        condition, values = selection.to_sql()
        order = "ORDER BY e.line DESC, e.entry_id DESC"
        return self._select(f"WHERE e.transcript_id = ?{condition} {order}", (transcript_id, *values))

    def agent_types(self, transcript_id: int, agent: str) -> list[str]:
        """The types an agent of a transcript was started with."""
        select = "SELECT type FROM agents WHERE transcript_id = ? AND agent = ? AND type IS NOT NULL"
        return [name for (name,) in self._connection.execute(select, (transcript_id, agent))]

    def _select(self, rest: str, values: tuple[object, ...] = ()) -> Iterator[EntryRow]:
        return map(_to_row, self._connection.execute(f"{_SELECT_ROWS} {rest}", values))


def _to_row(values: tuple[Any, ...]) -> EntryRow:
    row = EntryRow._make(values)
    if row.transcript.__class__ is str and row.project.__class__ is str:
        return row
    return row._replace(transcript=os.fsdecode(row.transcript), project=os.fsdecode(row.project))


_NO_FILTER = EntryFilter()
_JOIN_ENTRIES = f"CROSS JOIN entries e ON e.entry_id = text.rowid {ENTRY_JOINS}"


class FullText:
    """The full-text table of an index: which entries match an FTS5 expression."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def has(self, match: str) -> bool:
        """Whether any entry matches."""
        return self.has_more_than(match, 0)

    def has_more_than(self, match: str, count: int) -> bool:
        """Whether more than `count` entries match."""
        select = f"SELECT 1 FROM text WHERE text MATCH ? LIMIT 1 OFFSET {count}"
        return self._connection.execute(select, (match,)).fetchone() is not None

    def count(self, match: str, limit: int) -> int:
        """The number of entries that match, counted up to `limit`."""
        select = f"SELECT COUNT(*) FROM (SELECT 1 FROM text WHERE text MATCH ? LIMIT {limit})"
        return int(self._connection.execute(select, (match,)).fetchone()[0])

    def ids(self, match: str, selection: EntryFilter = _NO_FILTER, limit: int | None = None) -> Iterator[int]:
        """The ids of matching entries, those indexed last first."""
        select, values = _select_ids(match, selection)
        rows = self._connection.execute(
            f"{select} ORDER BY text.rowid DESC" + (f" LIMIT {limit}" if limit is not None else ""), values
        )
        return (entry_id for (entry_id,) in rows)

    def ids_after(self, entry_id: int, match: str, selection: EntryFilter = _NO_FILTER) -> list[int]:
        """The ids of matching entries that are larger than `entry_id`, those indexed last first."""
        select, values = _select_ids(match, selection)
        rows = self._connection.execute(f"{select} AND text.rowid > ? ORDER BY text.rowid", (*values, entry_id))
        return [entry_id for (entry_id,) in rows][::-1]

    def dated_ids(self, match: str, selection: EntryFilter, limit: int | None) -> list[tuple[str, int]]:
        """The timestamps and ids of matching entries, those indexed last first."""
        condition, values = selection.to_sql()
        rows = self._connection.execute(
            f"SELECT e.timestamp, e.entry_id FROM text {_JOIN_ENTRIES} WHERE text MATCH ?{condition}"
            " ORDER BY text.rowid DESC" + (f" LIMIT {limit}" if limit is not None else ""),
            (match, *values),
        )
        return [(timestamp or "", entry_id) for timestamp, entry_id in rows]

    def scores(self, match: str, entry_ids: Collection[int], weights: Mapping[str, float]) -> dict[int, float]:
        """The BM25 scores of those of these entries that match; larger is better. `weights` has one for each field."""
        ids = set(entry_ids)
        weight_list = ", ".join(str(weights[field]) for field in FIELDS)
        rows = self._connection.execute(
            f"SELECT rowid, bm25(text, {weight_list}) FROM text WHERE text MATCH ? AND rowid >= ? AND rowid <= ?",
            (match, min(ids), max(ids)),
        )
        return {entry_id: -score for entry_id, score in rows if entry_id in ids}


def _select_ids(match: str, selection: EntryFilter) -> tuple[str, tuple[object, ...]]:
    condition, values = selection.to_sql()
    joins = f"{_JOIN_ENTRIES} " if condition else ""
    return f"SELECT text.rowid FROM text {joins}WHERE text MATCH ?{condition}", (match, *values)
