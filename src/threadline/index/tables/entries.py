"""Tables of what stands in transcripts: entries, their words, and problems."""

from __future__ import annotations

from threadline.index.tables.table import Topic

FIELDS = ("title", "prompt", "reply", "thinking", "command", "path", "input", "result", "injected")
"""What full text has of an entry, each with a weight of its own."""

ENTRIES = Topic(
    tables={
        "entries": """CREATE TABLE entries(
        entry_id INTEGER PRIMARY KEY, -- the entry's number
        transcript_id INTEGER NOT NULL, -- its transcript
        line INTEGER NOT NULL, -- counted from 1
        offset INTEGER NOT NULL, -- the content is read from the transcript, and not stored twice
        length INTEGER NOT NULL, -- in bytes
        kind TEXT NOT NULL, -- its kind
        uuid TEXT, -- its own id
        session TEXT, -- that the entry names, where it is another than its transcript's
        agent TEXT, -- the same
        timestamp TEXT, -- as it is written: ISO 8601 in UTC
        message TEXT -- the id of the API message that it is a part of
    )""",
        "problems": """CREATE TABLE problems(
        problem_id INTEGER PRIMARY KEY, -- the problem's number
        transcript_id INTEGER NOT NULL, -- where it is
        line INTEGER NOT NULL, -- the line
        kind TEXT NOT NULL, -- its kind
        message TEXT NOT NULL, -- what is wrong, in a sentence
        recovered INTEGER NOT NULL -- whether all that was written could be read in spite of it
    )""",
        "text": f"""CREATE VIRTUAL TABLE text USING fts5(
        {", ".join(FIELDS)}, content='', tokenize='unicode61 remove_diacritics 2'
    )""",
    },
    views={
        "said": """CREATE VIEW said( -- entries with all that is known of them
            entry_id, -- the entry's number
            transcript, -- the transcript's path
            line, -- the number of its line
            offset, -- where its bytes begin
            length, -- how many bytes it has
            kind, -- its kind
            uuid, -- its id
            timestamp, -- when it was written
            message, -- the id of the API message that it is a part of
            session, -- its session: the one that it names, or else its transcript's
            agent, -- its agent, the same
            project, -- the project's path, or else its folder
            home -- the home's path
        ) AS
        SELECT e.entry_id, t.path AS transcript, e.line, e.offset, e.length, e.kind, e.uuid, e.timestamp, e.message,
            COALESCE(e.session, t.session) AS session, COALESCE(e.agent, t.agent) AS agent,
            COALESCE(p.path, p.folder) AS project, h.path AS home
        FROM entries e
        JOIN transcripts t USING(transcript_id)
        JOIN projects p USING(project_id)
        JOIN homes h ON h.home_id = t.home_id""",
    },
    indexes=(
        "CREATE INDEX entries_by_transcript ON entries(transcript_id, line)",
        "CREATE INDEX problems_by_transcript ON problems(transcript_id)",
    ),
    of_transcript=("problems", "entries"),
)
