"""What lists show about a session beside its summary: its last prompt, git branch, changed files, failures."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection

from msgspec import Struct
from msgspec.structs import replace


class SessionDetails(Struct, frozen=True):
    """Facts about a session, its agents included.

    `last_prompt` is the last text that somebody typed, and `branch` the last git branch. `files` counts changed files,
    and `failed_calls` failed calls.
    """

    last_prompt: str = ""
    branch: str = ""
    files: int = 0
    failed_calls: int = 0
    compactions: int = 0


_NO_DETAILS = SessionDetails()
_SELECT_LAST_PROMPTS = """SELECT t.session, p.text, MAX(p.transcript_id * 1000000000 + p.line) FROM transcripts t
    CROSS JOIN prompt_rows p ON p.transcript_id = t.transcript_id
    WHERE t.session IN (SELECT value FROM json_each(?)) AND t.kind = 'main'
        AND p.kind IN ('prompt', 'programmatic', 'steering', 'command')
    GROUP BY 1"""
_SELECT_BRANCHES = """SELECT t.session, o.git_branch, MAX(o.origin_id) FROM transcripts t
    CROSS JOIN origins o ON o.transcript_id = t.transcript_id
    WHERE t.session IN (SELECT value FROM json_each(?)) AND t.kind = 'main' AND o.git_branch <> '' GROUP BY 1"""
_COUNT_FILES = """SELECT t.session, COUNT(DISTINCT f.path_id) FROM transcripts t
    CROSS JOIN entries e ON e.transcript_id = t.transcript_id
    CROSS JOIN file_rows f ON f.entry_id = e.entry_id
    WHERE t.session IN (SELECT value FROM json_each(?)) AND f.how IN ('edit', 'write') GROUP BY 1"""
_COUNT_FAILED = """SELECT t.session, COUNT(*) FROM transcripts t
    CROSS JOIN entries e ON e.transcript_id = t.transcript_id
    CROSS JOIN call_rows c ON c.entry_id = e.entry_id
    WHERE t.session IN (SELECT value FROM json_each(?)) AND c.outcome = 'error' GROUP BY 1"""
_COUNT_COMPACTIONS = """SELECT t.session, COUNT(*) FROM transcripts t
    CROSS JOIN compaction_rows c ON c.transcript_id = t.transcript_id
    WHERE t.session IN (SELECT value FROM json_each(?)) AND t.kind = 'main' GROUP BY 1"""
_STATEMENTS = {
    "last_prompt": _SELECT_LAST_PROMPTS,
    "branch": _SELECT_BRANCHES,
    "files": _COUNT_FILES,
    "failed_calls": _COUNT_FAILED,
    "compactions": _COUNT_COMPACTIONS,
}


def read_session_details(connection: sqlite3.Connection, sessions: Collection[str]) -> dict[str, SessionDetails]:
    """Facts about each of these sessions, by id."""
    chosen = json.dumps(sorted(sessions))
    details: dict[str, SessionDetails] = dict.fromkeys(sessions, _NO_DETAILS)
    for name, statement in _STATEMENTS.items():
        for session, value, *_ in connection.execute(statement, (chosen,)):
            details[session] = replace(details[session], **{name: value})
    return details
