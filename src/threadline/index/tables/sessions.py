"""Tables of sessions: what each is called and how long it is, and what people typed in it."""

from __future__ import annotations

from threadline.index.tables.table import Topic

SESSIONS = Topic(
    tables={
        "session_rows": """CREATE TABLE session_rows(
        transcript_id INTEGER PRIMARY KEY, -- its main transcript
        session TEXT, -- its id
        title TEXT NOT NULL, -- what it is called
        title_source TEXT NOT NULL, -- where that comes from
        cwd TEXT, -- the directory that it was started in, as its entries say
        first TEXT, -- the first time that its main conversation tells
        last TEXT, -- the last one
        turns INTEGER NOT NULL, -- how many
        model TEXT, -- the one that replied last
        entries INTEGER NOT NULL -- in its main transcript
    )""",
        "prompt_rows": """CREATE TABLE prompt_rows(
        transcript_id INTEGER NOT NULL, -- the main transcript
        line INTEGER NOT NULL, -- where it stands
        turn INTEGER NOT NULL, -- the turn that it begins, or joins
        kind TEXT NOT NULL, -- prompt, command, shell, steering and so on
        text TEXT NOT NULL -- what was typed, its first 2,000 characters
    )""",
    },
    views={
        "sessions": """CREATE VIEW sessions( -- the sessions, each once, over all transcripts that hold it
        session, -- its id
        title, -- what it is called
        title_source, -- where that comes from: custom-title, ai-title, last-prompt, summary, first-prompt, plan or none
        project, -- the directory that it was started in
        home, -- the home that it is in
        first, -- the first time that its main conversation tells
        last, -- the last one
        turns, -- how many
        agents, -- how many have a transcript of their own that its path names as this session's
        model, -- the one that replied last
        entries, -- in its main transcript
        size, -- of its main transcript, in bytes
        transcript, -- where that lies
        transcript_id -- its number
    ) AS SELECT s.session, s.title, s.title_source, COALESCE(s.cwd, p.path, p.folder), h.path, s.first, s.last, s.turns,
            (SELECT COUNT(DISTINCT a.agent) FROM transcripts a
             WHERE a.session = s.session AND a.home_id = t.home_id AND a.agent IS NOT NULL),
            s.model, s.entries, t.size, t.path, t.transcript_id
        FROM session_rows s
        JOIN transcripts t USING(transcript_id)
        JOIN projects p USING(project_id)
        JOIN homes h ON h.home_id = t.home_id""",
        "prompts": """CREATE VIEW prompts( -- what people typed
        text, -- what was typed, its first 2,000 characters
        kind, -- prompt, command, shell, memory, interrupt, steering, programmatic, feedback or plan
        turn, -- the turn that it begins, or joins; counted from 1
        timestamp, -- when
        session, -- the session
        project, -- the project
        transcript, -- where it stands
        line, -- the line there
        entry_id -- the entry's number
    ) AS SELECT r.text, r.kind, r.turn, e.timestamp, COALESCE(e.session, t.session), COALESCE(p.path, p.folder),
            t.path, r.line, e.entry_id
        FROM prompt_rows r
        JOIN transcripts t USING(transcript_id)
        JOIN projects p USING(project_id)
        LEFT JOIN entries e ON e.transcript_id = r.transcript_id AND e.line = r.line""",
    },
    indexes=(
        "CREATE INDEX prompt_rows_by_transcript ON prompt_rows(transcript_id, line)",
        "CREATE INDEX session_rows_by_session ON session_rows(session)",
        "CREATE INDEX transcripts_by_session ON transcripts(session)",
    ),
    of_transcript=("session_rows", "prompt_rows"),
    private=("session_rows", "prompt_rows"),
)
