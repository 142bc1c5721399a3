"""Read outcomes, tool calls and the costs of results from the index.

A call that a fork or a resumed session repeats counts once: see `_drop_copied_calls`.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import tzinfo
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from threadline.index.listings import CallFilter, select_transcripts
from threadline.index.schema import AGENT_SQL, EDIT_JOINS_SQL, OUTCOME_JOINS_SQL, PREFERRED_COPY_SQL, SESSION_SQL
from threadline.index.store import decode_path
from threadline.insight import ChangedLines, LineChange, OutcomeFacts, ResultCost, ToolCall, add_costs, time_key
from threadline.model.insight.outcomes import OutcomeKind, OutcomeRow
from threadline.model.ledger import NONE
from threadline.model.names import current_tool_name, mcp_server, names_tool
from threadline.model.places import Place
from threadline.model.times import parse_timestamp

if TYPE_CHECKING:
    from threadline.index.insight.outcomes import TranscriptOutcomes
    from threadline.model.insight.outcomes import SessionOutcome

# ruff: noqa: S608 - statements are built from our own names and numbers

_IS_COPY = f"""SELECT 1 FROM call_rows c JOIN entries e ON e.entry_id = c.entry_id
    JOIN transcripts t ON t.transcript_id = e.transcript_id
    WHERE c.entry_id = ? AND c.position = ? AND EXISTS({PREFERRED_COPY_SQL})"""
_SELECT_REPEATED = "SELECT call FROM call_rows WHERE call IS NOT NULL GROUP BY call HAVING COUNT(*) > 1"
_SHARED_COLUMNS = f"""COALESCE(r.timestamp, e.timestamp), {SESSION_SQL}, COALESCE(p.path, p.folder),
    {AGENT_SQL.format(row="c")}, s.model, x.path, COALESCE(r.line, e.line), COALESCE(r.offset, e.offset),
    COALESCE(r.length, e.length), c.call"""
_SELECT_OUTCOMES = f"""SELECT c.call, o.entry_id, o.position, o.kind, o.action, o.label, o.ref, o.branch, o.files,
    o.added, o.removed, o.passed, o.failed, o.skipped, o.is_ok, o.evidence, c.exit_code, {_SHARED_COLUMNS}
    {OUTCOME_JOINS_SQL}"""
_SELECT_CHANGES = f"""SELECT c.call, c.entry_id, c.position, n.path, l.added, l.removed, l.added_sums, l.removed_sums,
    l.is_whole, {_SHARED_COLUMNS}
    {EDIT_JOINS_SQL}"""
_SELECT_UNSTORED = """SELECT t.transcript_id, t.path, t.size FROM transcripts t
    WHERE t.transcript_id NOT IN (SELECT transcript_id FROM outcome_transcripts)"""
_CALL_COLUMNS = "c.call, c.entry_id, c.position, c.outcome, c.exit_code, c.duration, c.moment, c.tool_id, c.source_id"
_IN_TRANSCRIPTS = """ CROSS JOIN entries e ON e.entry_id = c.entry_id
    CROSS JOIN transcripts t ON t.transcript_id = e.transcript_id"""
_SELECT_PROGRAMS = "SELECT r.entry_id, r.position, p.program FROM program_rows r JOIN programs p USING(program_id)"
_SELECT_COSTS = """SELECT call, tokens, CAST(amount AS REAL), estimated FROM cause_rows
    WHERE kind = 'result' AND call IS NOT NULL AND insight_id IN (SELECT value FROM json_each(?))"""
_NO_VALUE = (NONE,)
_Row = tuple[Any, ...]


class UnstoredTranscript(Struct, frozen=True):
    """A transcript whose outcomes are not stored: its number, its path and its size in bytes."""

    number: int
    path: Path
    size: int


def list_unstored(connection: sqlite3.Connection, selection: CallFilter) -> list[UnstoredTranscript]:
    """The transcripts of a filter whose outcomes are not stored. Ignores its time range."""
    query = _SELECT_UNSTORED
    if selection.has_scope:
        query += f" AND {select_transcripts(connection, selection.session, selection.project).condition}"
    return [
        UnstoredTranscript(number, Path(decode_path(path)), size)
        for number, path, size in connection.execute(query).fetchall()
    ]


def find_outcomes(connection: sqlite3.Connection, selection: CallFilter) -> OutcomeFacts:
    """What the sessions of a filter produced. Ignores its time range: later edits decide what survives."""
    condition = ""
    if selection.has_scope:
        condition = select_transcripts(connection, selection.session, selection.project).condition
    return OutcomeFacts(
        list(_outcomes(connection, f" WHERE {condition}" if condition else "", has_scope=selection.has_scope)),
        list(_changes(connection, f" WHERE {condition}" if condition else "", has_scope=selection.has_scope)),
    )


def _outcomes(connection: sqlite3.Connection, condition: str, *, has_scope: bool) -> Iterator[SessionOutcome]:
    rows = connection.execute(_SELECT_OUTCOMES + condition).fetchall()
    for row in _drop_copied_calls(connection, rows, has_scope=has_scope):
        *values, is_ok, evidence, exit_code = row[3:17]
        fields = (*values, None if is_ok is None else bool(is_ok), evidence)
        outcome_row = OutcomeRow(**dict(zip(OutcomeRow.__struct_fields__, fields, strict=True)))
        yield outcome_row.outcome(
            **_shared_fields(row[17:]),
            exit_code=exit_code if outcome_row.kind == OutcomeKind.TEST else None,
        )


def _changes(connection: sqlite3.Connection, condition: str, *, has_scope: bool) -> Iterator[LineChange]:
    rows = connection.execute(_SELECT_CHANGES + condition).fetchall()
    for row in _drop_copied_calls(connection, rows, has_scope=has_scope):
        _, _, _, name, added, removed, added_sums, removed_sums, is_whole, *shared = row
        lines = ChangedLines(added, removed, added_sums, removed_sums, bool(is_whole))
        yield LineChange(path=name, lines=lines, **_shared_fields(shared))


def _shared_fields(values: Sequence[Any]) -> dict[str, Any]:
    """The fields that outcomes and changes have in common, from `_SHARED_COLUMNS`."""
    timestamp, session, project, agent, model, path, line, offset, length, call = values
    return {
        "timestamp": parse_timestamp(timestamp),
        "session": session,
        "project": decode_path(project),
        "agent": agent,
        "model": model,
        "place": Place(decode_path(path), line, offset, length),
        "call": call,
    }


def read_tool_calls(
    connection: sqlite3.Connection,
    selection: CallFilter,
    by: str,
    zone: tzinfo,
    tools: Sequence[str] = (),
    *,
    unstored: Iterable[TranscriptOutcomes] = (),
) -> Iterator[ToolCall]:
    """The calls of a filter, each once, with the groups they belong to."""
    numbers = {
        number: name
        for number, name in connection.execute("SELECT tool_id, tool FROM tools")
        if not tools or names_tool(tools, name)
    }
    rows = _select_calls(connection, selection, by, numbers if tools else None)
    key = _key_function(connection, by, zone, numbers) if by != "command" else _program_function(connection, unstored)
    return ((key(row), row[0], *row[3:6]) for row in rows)


def _select_calls(
    connection: sqlite3.Connection, selection: CallFilter, by: str, tools: Collection[int] | None
) -> Iterable[_Row]:
    conditions = selection.time_conditions("c.moment")
    query = f"SELECT {_CALL_COLUMNS} FROM call_rows c"
    if selection.has_scope or by == "project":
        query = f"SELECT {_CALL_COLUMNS}, t.project_id FROM call_rows c{_IN_TRANSCRIPTS}"
    if selection.has_scope:
        conditions.append(select_transcripts(connection, selection.session, selection.project).condition)
    if tools is not None:
        conditions.append(f"c.tool_id IN ({', '.join(map(str, tools))})")
    if conditions:
        query += f" WHERE {' AND '.join(conditions)}"
    rows = connection.execute(query).fetchall()
    return _drop_copied_calls(connection, rows, has_scope=selection.has_scope)


def _key_function(
    connection: sqlite3.Connection, by: str, zone: tzinfo, tools: dict[int, str]
) -> Callable[[_Row], Iterable[str]]:
    """A function that returns the groups of a call."""
    if by in ("day", "week"):
        name_time = time_key(by, zone)
        return lambda row: (name_time(row[6]),)
    if by == "project":
        projects = {
            number: (decode_path(name),)
            for number, name in connection.execute("SELECT project_id, COALESCE(path, folder) FROM projects")
        }
        return lambda row: projects.get(row[9], _NO_VALUE)
    if by in ("model", "version"):
        sources = {
            number: (name or NONE,) for number, name in connection.execute(f"SELECT source_id, {by} FROM call_sources")
        }
        return lambda row: sources.get(row[8], _NO_VALUE)
    name = current_tool_name if by == "tool" else lambda tool: mcp_server(tool) or NONE
    names = {number: (name(tool),) for number, tool in tools.items()}
    return lambda row: names.get(row[7], ())


def _program_function(
    connection: sqlite3.Connection, unstored: Iterable[TranscriptOutcomes]
) -> Callable[[_Row], Iterable[str]]:
    """A function that returns the programs of a call."""
    programs: dict[tuple[int, int], dict[str, None]] = {}
    rows = (row for transcript in unstored for row in transcript.programs)
    for entry, position, program in chain(connection.execute(_SELECT_PROGRAMS).fetchall(), rows):
        programs.setdefault((entry, position), {})[program] = None
    return lambda row: programs.get((row[1], row[2]), ())


def read_result_costs(connection: sqlite3.Connection, insights: Iterable[int]) -> dict[str, ResultCost]:
    """The size and the cost of each call's result, of sessions whose costs are stored."""
    rows = connection.execute(_SELECT_COSTS, (json.dumps(list(insights)),)).fetchall()
    costs: dict[str, ResultCost] = {}
    for call, tokens, amount, estimated in rows:
        cost = ResultCost(tokens, amount, bool(estimated))
        before = costs.get(call)  # a result of several parts
        costs[call] = cost if before is None else add_costs(before, cost)
    return costs


def _drop_copied_calls(connection: sqlite3.Connection, rows: Sequence[_Row], *, has_scope: bool) -> list[_Row]:
    """Return the rows of calls without copies. A row starts with the call's id, its entry and its position there.

    The id is None for what was not a call. Only calls that occur twice are compared, which is faster. With
    `has_scope`, the rows are not those of all transcripts: the copy that counts may be outside of them.
    """
    if has_scope:
        repeated = {call for (call,) in connection.execute(_SELECT_REPEATED).fetchall()}
    else:
        repeated = _repeated_calls(rows)
    return [row for row in rows if row[0] not in repeated or connection.execute(_IS_COPY, row[1:3]).fetchone() is None]


def _repeated_calls(rows: Sequence[_Row]) -> set[str]:
    """The calls that occur in several places."""
    counts = Counter(row[0] for row in rows)
    places: dict[str, set[_Row]] = {}
    for row in rows:
        if counts[row[0]] > 1 and row[0] is not None:
            places.setdefault(row[0], set()).add(row[1:3])
    return {call for call, same in places.items() if len(same) > 1}
