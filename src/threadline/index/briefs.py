"""Briefs: every session in a line, as the index has it: what lists are filtered, ordered and cut by."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime

from msgspec import Struct

from threadline.index.texts import as_path
from threadline.model.kept import is_kept
from threadline.model.side_agent import side_kind
from threadline.model.time import parse_timestamp

_ASKED = """SELECT s.session, s.title, COALESCE(s.cwd, p.path, p.folder), s.first, s.last, s.turns, s.model, s.entries,
        t.size, t.path, t.mtime_ns
    FROM session_rows s JOIN transcripts t USING(transcript_id) JOIN projects p USING(project_id)"""
# Of agents beside the sessions, as older versions kept them, only their entries tell whose they are.
_AGENTS = """SELECT DISTINCT COALESCE(t.session, a.session), a.agent
    FROM agent_rows a JOIN transcripts t USING(transcript_id)
    WHERE a.agent <> '' AND (t.kind <> 'main'
        OR EXISTS(SELECT 1 FROM agent_rows m WHERE m.transcript_id = t.transcript_id AND m.agent = ''))"""
_NEVER = datetime.min.replace(tzinfo=UTC)


class Brief(Struct, frozen=True):
    """A session in a line. `name` is what addresses call it: its id, or else its file's name.

    One that is `kept` is only in the keep.
    """

    id: str | None
    title: str
    project: str
    first: datetime | None
    last: datetime | None
    turns: int
    agents: int
    model: str | None
    entries: int
    size: int
    path: str
    kept: bool = False

    @property
    def name(self) -> str:
        """Its id, or where no path tells one the name of its file."""
        return self.id or self.path.replace("\\", "/").rpartition("/")[2].removesuffix(".jsonl")


def briefs(connection: sqlite3.Connection) -> tuple[Brief, ...]:
    """Every session, the newest first: those that `sessions` of the archive lists, in the same order."""
    agents = Counter(session for session, agent in connection.execute(_AGENTS) if side_kind(agent, None) is None)
    found = [
        Brief(
            id=session,
            title=title,
            project=as_path(project),
            first=parse_timestamp(first),
            last=parse_timestamp(last) or _written(mtime),
            turns=turns,
            agents=agents[session] if session is not None else 0,
            model=model,
            entries=entries,
            size=size,
            path=as_path(path),
            kept=is_kept(as_path(path)),
        )
        for session, title, project, first, last, turns, model, entries, size, path, mtime in connection.execute(_ASKED)
    ]
    return tuple(sorted(found, key=lambda one: (one.last or _NEVER, one.path), reverse=True))


def _written(mtime_ns: int) -> datetime | None:
    with suppress(OverflowError, ValueError, OSError):
        return datetime.fromtimestamp(mtime_ns / 1e9, UTC)
    return None
