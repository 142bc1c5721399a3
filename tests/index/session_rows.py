"""The calls, files, compactions, todos and agents of sessions, from transcripts and from an index, as equal rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import threadline
from threadline.index import open_read_only
from threadline.load import Session
from threadline.model.calls import Outcome
from threadline.model.homes import TranscriptKind
from threadline.model.session import LinkEvidence
from threadline.model.state import EvidenceKind
from threadline.thread import exit_code, state_at

Rows = dict[str, list[Any]]
_HOWS = frozenset(
    {EvidenceKind.READ, EvidenceKind.WRITE, EvidenceKind.EDIT, EvidenceKind.USER_MODIFIED, EvidenceKind.ATTACHED}
)
_STEPS = frozenset({LinkEvidence.RESULT, LinkEvidence.PROGRESS, LinkEvidence.RESULT_TEXT})
_CALLS = """SELECT t.path, e.line, k.tool, c.outcome, rt.path, r.line, c.exit_code, c.started
    FROM call_rows c JOIN tools k USING(tool_id) JOIN entries e USING(entry_id) JOIN transcripts t USING(transcript_id)
    LEFT JOIN entries r ON r.entry_id = c.result_entry_id
    LEFT JOIN transcripts rt ON rt.transcript_id = r.transcript_id"""
QUERIES = {
    "calls": "SELECT call, tool, outcome, started, ended, exit_code, session, agent, started_agent, project,"
    " transcript, line, result_line FROM calls",
    "all calls": _CALLS,
    "touched": "SELECT path, how, timestamp, call, session, agent, transcript, line FROM touched",
    "files": "SELECT * FROM files",
    "compactions": "SELECT kind, trigger, tokens_before, tokens_after, session, agent, transcript, line"
    " FROM compactions",
    "agents": "SELECT agent, session, type, call, model, entries, first, last, transcript FROM agents",
    "todos": "SELECT session, list, agent, position, id, status, content, owner, blocked_by, transcript, line"
    " FROM todos",
}
"""Queries of an index, without ids that depend on the order of reading."""


def content(index: Path) -> Rows:
    """The results of all queries of an index."""
    with closing(open_read_only(index)) as connection:
        return {name: sorted(connection.execute(query), key=repr) for name, query in QUERIES.items()}


def sessions(home: Path) -> list[Session]:
    """Every session of a home."""
    transcripts = threadline.look(home).transcripts
    return [
        threadline.read(transcript.path, continued=False)
        for transcript in transcripts
        if transcript.kind is TranscriptKind.MAIN
    ]


def rows_from_transcripts(session: Session) -> Rows:
    """The rows of a session, read from its transcripts."""
    state = state_at(session)
    return {
        "calls": sorted(map(_call, session.calls), key=repr),
        "files": sorted(
            {
                (file.path, str(evidence.how), str(evidence.place))
                for file in state.files.values()
                for evidence in file.evidence
            }
            & {(path, str(how), place) for path, how, place in _touches(state)},
            key=repr,
        ),
        "compactions": _ordered(
            (
                str(compaction.kind),
                compaction.trigger,
                compaction.tokens_before,
                compaction.tokens_after,
                agent.id,
                str(compaction.place),
            )
            for agent in (session.main, *session.agents)
            for compaction in agent.compactions
        ),
        "todos": sorted([*_todos(state), *_tasks(state)], key=repr),
        "agents": _ordered((str(agent.id), agent.model, str(agent.transcript)) for agent in session.agents),
        "links": sorted((str(agent.id), str(agent.link.call)) for agent in session.agents if agent.link.step in _STEPS),
    }


def _ordered(rows: Iterable[Any]) -> list[Any]:
    return sorted(rows, key=repr)


def _touches(state: Any) -> Iterable[tuple[str, EvidenceKind, str]]:
    return (
        (file.path, evidence.how, str(evidence.place))
        for file in state.files.values()
        for evidence in file.evidence
        if evidence.how in _HOWS
    )


def _call(call: Any) -> tuple[Any, ...]:
    outcome = str(call.outcome) if call.outcome is not Outcome.PENDING else None
    answer = str(call.answer.place) if call.answer is not None else None
    return str(call.place), call.tool, outcome, answer, exit_code(call), call.started, call.agent


def _todos(state: Any) -> Iterable[tuple[Any, ...]]:
    return (
        ("todo", todo_list.agent, position, todo.id, todo.status, todo.content, str(todo_list.place))
        for todo_list in state.todos
        for position, todo in enumerate(todo_list.todos, 1)
    )


def _tasks(state: Any) -> Iterable[tuple[Any, ...]]:
    return (
        ("task", None, position, task.task.id, task.task.status, task.task.subject, str(task.place))
        for position, task in enumerate(state.tasks, 1)
    )


def rows_from_index(connection: sqlite3.Connection, session: Session) -> Rows:
    """The rows of the same session's transcripts in an index."""
    paths = tuple({str(path) for agent in (session.main, *session.agents) if (path := agent.transcript) is not None})
    placeholders = ", ".join("?" * len(paths))

    def query(sql: str) -> list[Any]:
        return sorted(connection.execute(sql.format(placeholders), paths), key=repr)

    return {
        "calls": query(
            """SELECT t.path || ':' || e.line, k.tool, c.outcome, o.path || ':' || r.line, c.exit_code, c.started,
            CASE WHEN c.agent IS NULL THEN t.agent
            WHEN EXISTS(SELECT 1 FROM agent_rows m WHERE m.transcript_id = t.transcript_id AND m.agent = '')
            THEN c.agent END
            FROM call_rows c JOIN tools k USING(tool_id) JOIN entries e USING(entry_id)
            JOIN transcripts t USING(transcript_id) LEFT JOIN entries r ON r.entry_id = c.result_entry_id
            LEFT JOIN transcripts o ON o.transcript_id = r.transcript_id WHERE t.path IN ({})"""
        ),
        "files": query(
            "SELECT DISTINCT path, how, transcript || ':' || line FROM touched"
            " WHERE how <> 'outside' AND transcript IN ({})"
        ),
        "compactions": query(
            "SELECT kind, trigger, tokens_before, tokens_after, agent, transcript || ':' || line FROM compactions"
            " WHERE transcript IN ({})"
        ),
        "todos": query(
            "SELECT list, agent, position, id, status, content, transcript || ':' || line FROM todos"
            " WHERE transcript IN ({})"
        ),
        "agents": query("SELECT agent, model, transcript FROM agents WHERE transcript IN ({})"),
        "links": query("SELECT agent, call FROM agents WHERE call IS NOT NULL AND transcript IN ({})"),
    }
