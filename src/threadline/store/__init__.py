"""A session store for `claude-agent-sdk`, which every command can read as a home.

    from claude_agent_sdk import ClaudeAgentOptions, query
    from threadline.store import SessionStore

    options = ClaudeAgentOptions(session_store=SessionStore("sessions"))

The SDK copies each entry to the store while a session runs, and resumes sessions from it on any machine.

`SessionStore` stores transcripts in a folder as Claude Code does, below `projects/`, or in a SQLite file. Both are
homes: `threadline --home sessions …` and `threadline --home sessions.db …`. `StoredTranscript` and `read_transcripts`
are for `find`, which copies the transcripts of a SQLite file into the cache folder. `encode_entry` writes a line of a
transcript.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from threadline.lazy import export_lazily

if TYPE_CHECKING:
    from threadline.store.database import StoredTranscript, has_sqlite_header, read_transcripts
    from threadline.store.keys import SessionKey, StoredSession, StoredSummary, encode_entry
    from threadline.store.session_store import SessionStore

export_lazily(
    __name__,
    {
        "database": ["StoredTranscript", "has_sqlite_header", "read_transcripts"],
        "keys": ["SessionKey", "StoredSummary", "StoredSession", "encode_entry"],
        "session_store": ["SessionStore"],
    },
)
