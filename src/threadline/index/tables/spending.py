"""Tables of what was spent: what transcripts tell of messages, and the charges made of it."""

from __future__ import annotations

from threadline.index.tables.table import Topic

SPENDING = Topic(
    tables={
        "sightings": """CREATE TABLE sightings(
        transcript_id INTEGER NOT NULL, -- the transcript that tells of the message
        message TEXT NOT NULL, -- the key that it is counted by
        told BLOB NOT NULL -- what the transcript tells of it, packed
    )""",
        "waiting": """CREATE TABLE waiting(
        transcript_id INTEGER NOT NULL, -- the transcript
        call TEXT NOT NULL -- for a web search, whose result has not been written yet
    )""",
        "stale": """CREATE TABLE stale(
        message TEXT PRIMARY KEY -- charges of these are to be made anew
    ) WITHOUT ROWID""",
        "charges": """CREATE TABLE charges(
        charge_id INTEGER PRIMARY KEY, -- the charge's number
        message TEXT NOT NULL, -- the message that was charged
        part TEXT NOT NULL, -- empty, or which pass of another model it is
        transcript_id INTEGER NOT NULL, -- of the earliest original
        session TEXT, -- the session that spent it
        agent TEXT, -- the agent that did; NULL for the main one
        project TEXT NOT NULL, -- the project that it was spent on
        home TEXT NOT NULL, -- the home that its transcript is in
        model TEXT, -- as the transcript writes it
        timestamp TEXT NOT NULL, -- when
        version TEXT, -- of Claude Code
        git_branch TEXT, -- the branch that was checked out
        skill TEXT, -- that was named as the cause
        is_side INTEGER NOT NULL, -- what the program spent for itself
        input INTEGER NOT NULL, -- tokens that were not in the cache
        output INTEGER NOT NULL, -- tokens, thinking included
        cache_write_5m INTEGER NOT NULL, -- tokens written for five minutes
        cache_write_1h INTEGER NOT NULL, -- tokens written for an hour
        cache_read INTEGER NOT NULL, -- tokens
        web_searches INTEGER NOT NULL, -- how many
        amount TEXT, -- USD, exact; NULL where no price is known
        lower_bound INTEGER NOT NULL, -- the final output was never written
        copied INTEGER NOT NULL -- several transcripts hold it
    )""",
    },
    indexes=(
        "CREATE INDEX sightings_by_message ON sightings(message, transcript_id)",
        "CREATE INDEX sightings_by_transcript ON sightings(transcript_id, message)",
        "CREATE INDEX charges_by_message ON charges(message)",
    ),
    of_transcript=("sightings", "waiting"),
    private=("sightings", "waiting", "stale"),
)
