"""List commits, pushes, pull requests, test runs and edits from the index, each once."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from threadline.index.insight.call_copies import drop_copied_calls
from threadline.index.listings import CallFilter, select_transcripts
from threadline.index.schema import AGENT_SQL, EDIT_JOINS_SQL, OUTCOME_JOINS_SQL, SESSION_SQL
from threadline.index.store import decode_path
from threadline.insight import ChangedLines, LineChange, OutcomeFacts
from threadline.model.insight.outcomes import OutcomeKind, OutcomeRow
from threadline.model.places import Place
from threadline.model.times import parse_timestamp

if TYPE_CHECKING:
    from threadline.model.insight.outcomes import Outcome


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


def _outcomes(connection: sqlite3.Connection, condition: str, *, has_scope: bool) -> Iterator[Outcome]:
    rows = connection.execute(_SELECT_OUTCOMES + condition).fetchall()
    for row in drop_copied_calls(connection, rows, has_scope=has_scope):
        *values, is_ok, evidence, exit_code = row[3:17]
        timestamp, session, project, agent, model, path, line, offset, length, call = row[17:]
        fields = (*values, None if is_ok is None else bool(is_ok), evidence)
        outcome_row = OutcomeRow(**dict(zip(OutcomeRow.__struct_fields__, fields, strict=True)))
        yield outcome_row.outcome(
            timestamp=parse_timestamp(timestamp),
            session=session,
            project=decode_path(project),
            agent=agent,
            model=model,
            place=Place(decode_path(path), line, offset, length),
            call=call,
            exit_code=exit_code if outcome_row.kind == OutcomeKind.TEST else None,
        )


def _changes(connection: sqlite3.Connection, condition: str, *, has_scope: bool) -> Iterator[LineChange]:
    rows = connection.execute(_SELECT_CHANGES + condition).fetchall()
    for row in drop_copied_calls(connection, rows, has_scope=has_scope):
        _, _, _, name, added, removed, added_sums, removed_sums, is_whole, *shared = row
        timestamp, session, project, agent, model, path, line, offset, length, call = shared
        yield LineChange(
            path=name,
            lines=ChangedLines(added, removed, added_sums, removed_sums, bool(is_whole)),
            timestamp=parse_timestamp(timestamp),
            session=session,
            project=decode_path(project),
            agent=agent,
            model=model,
            place=Place(decode_path(path), line, offset, length),
            call=call,
        )
