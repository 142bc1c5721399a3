"""The schema of the index: what people may query, and what only the refresh needs.

Everything here is derived from transcripts, so there are no migrations: another version is another file.
"""

from __future__ import annotations

VERSION = 1
"""Of the schema. An index of another version is not opened; it is made anew beside it."""

FIELDS = ("title", "prompt", "reply", "thinking", "command", "path", "input", "result", "injected")
"""What full text has of an entry, each with a weight of its own."""

TABLES = {
    "meta": """CREATE TABLE meta(
        name TEXT PRIMARY KEY, -- schema, threadline, prices, next_entry
        value TEXT NOT NULL
    ) WITHOUT ROWID""",
    "homes": """CREATE TABLE homes(
        home_id INTEGER PRIMARY KEY,
        path TEXT NOT NULL UNIQUE
    )""",
    "projects": """CREATE TABLE projects(
        project_id INTEGER PRIMARY KEY,
        home_id INTEGER NOT NULL,
        folder TEXT NOT NULL, -- the name under projects/, which is lossy
        path TEXT, -- the true path, where evidence of it is left
        path_source TEXT NOT NULL, -- which evidence
        UNIQUE(home_id, folder)
    )""",
    "transcripts": """CREATE TABLE transcripts(
        transcript_id INTEGER PRIMARY KEY,
        path TEXT NOT NULL UNIQUE,
        home_id INTEGER NOT NULL,
        project_id INTEGER NOT NULL,
        kind TEXT NOT NULL, -- main, agent, workflow-agent, journal, other
        session TEXT, -- the session that the path names
        agent TEXT, -- the agent that the path names
        size INTEGER NOT NULL,
        mtime_ns INTEGER NOT NULL,
        device INTEGER NOT NULL,
        inode INTEGER NOT NULL,
        read_to INTEGER NOT NULL, -- up to where whole lines have been read
        lines INTEGER NOT NULL, -- how many those are
        head_hash BLOB NOT NULL, -- of the first bytes that were read
        tail_hash BLOB NOT NULL, -- of the last ones
        checksum INTEGER NOT NULL, -- of them all
        racy INTEGER NOT NULL -- equal times prove nothing: it was written to just before
    )""",
    "entries": """CREATE TABLE entries(
        entry_id INTEGER PRIMARY KEY,
        transcript_id INTEGER NOT NULL,
        line INTEGER NOT NULL,
        offset INTEGER NOT NULL, -- the content is read from the transcript, and not stored twice
        length INTEGER NOT NULL,
        kind TEXT NOT NULL,
        uuid TEXT,
        session TEXT, -- that the entry names, where it is another than its transcript's
        agent TEXT, -- the same
        timestamp TEXT, -- as it is written: ISO 8601 in UTC
        message TEXT -- the id of the API message that it is a part of
    )""",
    "problems": """CREATE TABLE problems(
        problem_id INTEGER PRIMARY KEY,
        transcript_id INTEGER NOT NULL,
        line INTEGER NOT NULL,
        kind TEXT NOT NULL,
        message TEXT NOT NULL,
        recovered INTEGER NOT NULL
    )""",
    "sightings": """CREATE TABLE sightings(
        transcript_id INTEGER NOT NULL,
        message TEXT NOT NULL, -- the key that it is counted by
        told BLOB NOT NULL -- what the transcript tells of it, packed
    )""",
    "waiting": """CREATE TABLE waiting(
        transcript_id INTEGER NOT NULL,
        call TEXT NOT NULL -- for a web search, whose result has not been written yet
    )""",
    "stale": """CREATE TABLE stale(
        message TEXT PRIMARY KEY -- charges of these are to be made anew
    ) WITHOUT ROWID""",
    "charges": """CREATE TABLE charges(
        charge_id INTEGER PRIMARY KEY,
        message TEXT NOT NULL,
        part TEXT NOT NULL, -- empty, or which pass of another model it is
        transcript_id INTEGER NOT NULL, -- of the earliest original
        session TEXT,
        agent TEXT,
        project TEXT NOT NULL,
        home TEXT NOT NULL,
        model TEXT,
        timestamp TEXT NOT NULL,
        version TEXT,
        git_branch TEXT,
        skill TEXT,
        is_side INTEGER NOT NULL, -- what the program spent for itself
        input INTEGER NOT NULL,
        output INTEGER NOT NULL,
        cache_write_5m INTEGER NOT NULL,
        cache_write_1h INTEGER NOT NULL,
        cache_read INTEGER NOT NULL,
        web_searches INTEGER NOT NULL,
        amount TEXT, -- USD, exact; NULL where no price is known
        lower_bound INTEGER NOT NULL, -- the final output was never written
        copied INTEGER NOT NULL -- several transcripts hold it
    )""",
    "text": f"""CREATE VIRTUAL TABLE text USING fts5(
        {", ".join(FIELDS)}, content='', tokenize='unicode61 remove_diacritics 2'
    )""",
}
"""Each table, and how it is made. The rowid of `text` is the entry's."""

VIEWS = {
    "said": """CREATE VIEW said AS
        SELECT e.entry_id, t.path AS transcript, e.line, e.offset, e.length, e.kind, e.uuid, e.timestamp, e.message,
            COALESCE(e.session, t.session) AS session, COALESCE(e.agent, t.agent) AS agent,
            COALESCE(p.path, p.folder) AS project, h.path AS home
        FROM entries e
        JOIN transcripts t USING(transcript_id)
        JOIN projects p USING(project_id)
        JOIN homes h ON h.home_id = t.home_id""",
}
"""Each view, and how it is made: entries with all that is known of them."""

INDEXES = (
    "CREATE INDEX entries_by_transcript ON entries(transcript_id, line)",
    "CREATE INDEX problems_by_transcript ON problems(transcript_id)",
    "CREATE INDEX sightings_by_message ON sightings(message, transcript_id)",
    "CREATE INDEX sightings_by_transcript ON sightings(transcript_id, message)",
    "CREATE INDEX charges_by_message ON charges(message)",
)
