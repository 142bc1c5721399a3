"""Read calls and the costs of their results from the index, to add them up by tool, program, model and more."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import tzinfo
from itertools import chain
from typing import TYPE_CHECKING, Any

from threadline.index.insight.call_copies import drop_copied_calls
from threadline.index.listings import CallFilter, select_transcripts
from threadline.index.store import decode_path
from threadline.insight import ResultCost, ToolCall, add_costs, time_key
from threadline.model.ledger import NONE
from threadline.model.text import current_tool_name, mcp_server, names_tool

if TYPE_CHECKING:
    from threadline.index.insight.outcomes import TranscriptOutcomes

# ruff: noqa: S608 - statements are built from our own names and numbers

_COLUMNS = "c.call, c.entry_id, c.position, c.outcome, c.exit_code, c.duration, c.moment, c.tool_id, c.source_id"
_IN_TRANSCRIPTS = """ CROSS JOIN entries e ON e.entry_id = c.entry_id
    CROSS JOIN transcripts t ON t.transcript_id = e.transcript_id"""
_SELECT_PROGRAMS = "SELECT r.entry_id, r.position, p.program FROM program_rows r JOIN programs p USING(program_id)"
_SELECT_COSTS = """SELECT call, tokens, CAST(amount AS REAL), estimated FROM cause_rows
    WHERE kind = 'result' AND call IS NOT NULL AND insight_id IN (SELECT value FROM json_each(?))"""
_NO_VALUE = (NONE,)
_Row = tuple[Any, ...]


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
    query = f"SELECT {_COLUMNS} FROM call_rows c"
    if selection.has_scope or by == "project":
        query = f"SELECT {_COLUMNS}, t.project_id FROM call_rows c{_IN_TRANSCRIPTS}"
    if selection.has_scope:
        conditions.append(select_transcripts(connection, selection.session, selection.project).condition)
    if tools is not None:
        conditions.append(f"c.tool_id IN ({', '.join(map(str, tools))})")
    if conditions:
        query += f" WHERE {' AND '.join(conditions)}"
    rows = connection.execute(query).fetchall()
    return drop_copied_calls(connection, rows, has_scope=selection.has_scope)


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
