"""What agents did, as sessions tell it and as an index does, in the same shape."""

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
from threadline.thread import state_at
from threadline.thread.calls import exit_code

Rows = dict[str, list[Any]]
_HOWS = frozenset(
    {EvidenceKind.READ, EvidenceKind.WRITE, EvidenceKind.EDIT, EvidenceKind.USER_MODIFIED, EvidenceKind.ATTACHED}
)
_STEPS = frozenset({LinkEvidence.RESULT, LinkEvidence.PROGRESS, LinkEvidence.RESULT_TEXT})
_CALLS = """SELECT t.path, e.line, k.tool, c.outcome, rt.path, r.line, c.exit_code, c.started
    FROM call_rows c JOIN tools k USING(tool_id) JOIN entries e USING(entry_id) JOIN transcripts t USING(transcript_id)
    LEFT JOIN entries r ON r.entry_id = c.result_entry_id
    LEFT JOIN transcripts rt ON rt.transcript_id = r.transcript_id"""
QUESTIONS = {
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
"""What an index tells of the work, without numbers that depend on the order of reading."""


def content(index: Path) -> Rows:
    """All that an index tells of it."""
    with closing(open_read_only(index)) as connection:
        return {name: sorted(connection.execute(asked), key=repr) for name, asked in QUESTIONS.items()}


def sessions(home: Path) -> list[Session]:
    """Every session of a home."""
    found = threadline.look(home).transcripts
    return [threadline.read(one.path, continued=False) for one in found if one.kind is TranscriptKind.MAIN]


def of_session(session: Session) -> Rows:
    """What a session tells, read from its transcripts."""
    state = state_at(session)
    return {
        "calls": sorted(map(_call, session.calls), key=repr),
        "files": sorted(
            {(file.path, str(one.how), str(one.place)) for file in state.files.values() for one in file.evidence}
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
        (file.path, one.how, str(one.place))
        for file in state.files.values()
        for one in file.evidence
        if one.how in _HOWS
    )


def _call(call: Any) -> tuple[Any, ...]:
    outcome = str(call.outcome) if call.outcome is not Outcome.PENDING else None
    answer = str(call.answer.place) if call.answer is not None else None
    return str(call.place), call.tool, outcome, answer, exit_code(call), call.started, call.agent


def _todos(state: Any) -> Iterable[tuple[Any, ...]]:
    return (
        ("todo", one.agent, at, todo.id, todo.status, todo.content, str(one.place))
        for one in state.todos
        for at, todo in enumerate(one.todos, 1)
    )


def _tasks(state: Any) -> Iterable[tuple[Any, ...]]:
    return (
        ("task", None, at, one.task.id, one.task.status, one.task.subject, str(one.place))
        for at, one in enumerate(state.tasks, 1)
    )


def indexed(connection: sqlite3.Connection, session: Session) -> Rows:
    """What an index tells of the same session's transcripts."""
    paths = tuple({str(path) for agent in (session.main, *session.agents) if (path := agent.transcript) is not None})
    marks = ", ".join("?" * len(paths))

    def asked(question: str) -> list[Any]:
        return sorted(connection.execute(question.format(marks), paths), key=repr)

    return {
        "calls": asked(
            """SELECT t.path || ':' || e.line, k.tool, c.outcome, o.path || ':' || r.line, c.exit_code, c.started,
            CASE WHEN c.agent IS NULL THEN t.agent
            WHEN EXISTS(SELECT 1 FROM agent_rows m WHERE m.transcript_id = t.transcript_id AND m.agent = '')
            THEN c.agent END
            FROM call_rows c JOIN tools k USING(tool_id) JOIN entries e USING(entry_id)
            JOIN transcripts t USING(transcript_id) LEFT JOIN entries r ON r.entry_id = c.result_entry_id
            LEFT JOIN transcripts o ON o.transcript_id = r.transcript_id WHERE t.path IN ({})"""
        ),
        "files": asked(
            "SELECT DISTINCT path, how, transcript || ':' || line FROM touched"
            " WHERE how <> 'outside' AND transcript IN ({})"
        ),
        "compactions": asked(
            "SELECT kind, trigger, tokens_before, tokens_after, agent, transcript || ':' || line FROM compactions"
            " WHERE transcript IN ({})"
        ),
        "todos": asked(
            "SELECT list, agent, position, id, status, content, transcript || ':' || line FROM todos"
            " WHERE transcript IN ({})"
        ),
        "agents": asked("SELECT agent, model, transcript FROM agents WHERE transcript IN ({})"),
        "links": asked("SELECT agent, call FROM agents WHERE call IS NOT NULL AND transcript IN ({})"),
    }
