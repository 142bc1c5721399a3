"""Tables of where things lie: homes, projects and transcripts."""

from __future__ import annotations

from threadline.index.tables.table import Topic

PLACES = Topic(
    tables={
        "meta": """CREATE TABLE meta(
        name TEXT PRIMARY KEY, -- schema, prices, ranks, next_entry, terms_to, generation, unsettled
        value TEXT NOT NULL -- its value
    ) WITHOUT ROWID""",
        "homes": """CREATE TABLE homes(
        home_id INTEGER PRIMARY KEY, -- the home's number
        path TEXT NOT NULL UNIQUE -- where it lies
    )""",
        "projects": """CREATE TABLE projects(
        project_id INTEGER PRIMARY KEY, -- the project's number
        home_id INTEGER NOT NULL, -- the home that its folder is in
        folder TEXT NOT NULL, -- the name under projects/, which is lossy
        path TEXT, -- the true path, where evidence of it is left
        path_source TEXT NOT NULL, -- which evidence
        UNIQUE(home_id, folder)
    )""",
        "transcripts": """CREATE TABLE transcripts(
        transcript_id INTEGER PRIMARY KEY, -- the transcript's number
        path TEXT NOT NULL UNIQUE, -- where it lies
        home_id INTEGER NOT NULL, -- its home
        project_id INTEGER NOT NULL, -- its project
        kind TEXT NOT NULL, -- main, agent, workflow-agent, journal, other
        session TEXT, -- the session that the path names
        agent TEXT, -- the agent that the path names
        size INTEGER NOT NULL, -- in bytes
        mtime_ns INTEGER NOT NULL, -- when it was written last
        device INTEGER NOT NULL, -- what the system knows the file by
        inode INTEGER NOT NULL, -- the same
        read_to INTEGER NOT NULL, -- up to where whole lines have been read
        lines INTEGER NOT NULL, -- how many those are
        is_open INTEGER NOT NULL DEFAULT 0, -- the last of them is whole, but has no end yet
        head_hash BLOB NOT NULL, -- of the first bytes that were read
        tail_hash BLOB NOT NULL, -- of the last ones
        checksum INTEGER NOT NULL, -- of them all
        racy INTEGER NOT NULL, -- equal times prove nothing: it was written to just before
        state BLOB NOT NULL DEFAULT x'' -- what its lines come to, packed, so that more of them can be added
    )""",
    },
)
