"""Touches: each time that a file was read or written, as the index tells it."""

from __future__ import annotations

import os
import sqlite3
from datetime import datetime

from msgspec import Struct

from threadline.model.ids import AgentId, CallId, SessionId
from threadline.model.place import Place
from threadline.model.time import parse_timestamp

_ASKED = """SELECT how, timestamp, call, session, agent, project, transcript, line FROM touched WHERE path = ?
    ORDER BY timestamp DESC, transcript, line DESC LIMIT ?"""


class Touch(Struct, frozen=True):
    """A file was touched: how, when, by which call of whom, and where that is told."""

    how: str
    timestamp: datetime | None
    call: CallId | None
    session: SessionId | None
    agent: AgentId | None
    project: str
    place: Place


def touches(connection: sqlite3.Connection, path: str, limit: int) -> list[Touch]:
    """Each time that a file was touched, the last first; no more than so many."""
    return [
        Touch(how, parse_timestamp(when), call, session, agent, os.fsdecode(project), Place(os.fsdecode(told), line))
        for how, when, call, session, agent, project, told, line in connection.execute(_ASKED, (path, limit))
    ]
