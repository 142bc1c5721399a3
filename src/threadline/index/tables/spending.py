"""Tables of what was spent: what transcripts tell of messages, the charges made of it, and their sums."""

from __future__ import annotations

from threadline.index.tables.table import Topic

# An integer is the usual time, in milliseconds; text is any other, as it was written.
_TIME = """CASE typeof({0}) WHEN 'integer'
            THEN strftime('%Y-%m-%dT%H:%M:%S', {0} / 1000, 'unixepoch') || printf('.%03dZ', {0} % 1000)
            ELSE {0} END"""

SPENDING = Topic(
    tables={
        "message_ids": """CREATE TABLE message_ids(
        message_id INTEGER PRIMARY KEY, -- the number of a message
        message TEXT NOT NULL UNIQUE -- the key that it is counted by: its id, or where it has none the request's
    )""",
        "models": """CREATE TABLE models(
        model_id INTEGER PRIMARY KEY, -- the model's number
        model TEXT NOT NULL UNIQUE -- as transcripts write it
    )""",
        "origins": """CREATE TABLE origins(
        origin_id INTEGER PRIMARY KEY, -- the origin's number: what a run of messages has in common
        transcript_id INTEGER NOT NULL, -- the transcript that they stand in
        session TEXT, -- their session
        agent TEXT, -- their agent; NULL for the main one
        version TEXT, -- the version of Claude Code
        git_branch TEXT, -- the branch that was checked out
        is_agent INTEGER, -- whether rows say that an agent wrote them
        forked INTEGER NOT NULL, -- whether rows say that they are copies
        skill TEXT, -- the skill that was named as the cause
        agent_type TEXT, -- as rows name it
        is_side INTEGER NOT NULL, -- whether the program spent it for itself, and no person asked for it
        began TEXT NOT NULL -- the first time that the transcript names
    )""",
        "sightings": """CREATE TABLE sightings(
        message_id INTEGER NOT NULL, -- the message
        transcript_id INTEGER NOT NULL, -- the transcript that tells of it
        offset INTEGER NOT NULL, -- where the first row that does begins
        origin_id INTEGER NOT NULL, -- who wrote it
        model_id INTEGER, -- the model, as it is written
        time NOT NULL, -- when: milliseconds since 1970, or as it is written where that is not as usual
        entries INTEGER NOT NULL, -- how many rows do
        told BLOB NOT NULL, -- what they tell, packed
        PRIMARY KEY(message_id, transcript_id, offset)
    ) WITHOUT ROWID""",
        "waiting": """CREATE TABLE waiting(
        transcript_id INTEGER NOT NULL, -- the transcript
        call TEXT NOT NULL -- for a web search, whose result has not been written yet
    )""",
        "stale": """CREATE TABLE stale(
        message_id INTEGER PRIMARY KEY, -- charges of these are to be made anew
        is_wider INTEGER NOT NULL DEFAULT 0 -- only because others are: nothing that is told of it has changed
    )""",
        "ties": """CREATE TABLE ties(
        transcript_id INTEGER NOT NULL, -- one of several transcripts that hold a message, none plainly the original
        sharers TEXT NOT NULL, -- the numbers of all of them
        is_end INTEGER NOT NULL, -- whether the offset tells how far what they share is spread
        offset INTEGER NOT NULL, -- where it stands there
        message_id INTEGER NOT NULL, -- the message
        PRIMARY KEY(transcript_id, sharers, is_end, offset, message_id)
    ) WITHOUT ROWID""",
        "owned": """CREATE TABLE owned(
        transcript_id INTEGER PRIMARY KEY, -- a transcript that shares messages as evenly as another
        began TEXT NOT NULL -- when what only it tells began; empty where there is nothing
    )""",
        "rates": """CREATE TABLE rates(
        rate_id INTEGER PRIMARY KEY, -- the number of a model with its rate
        model TEXT, -- the model, as transcripts write it
        priced_as TEXT, -- the model of the price list; NULL, as is all that follows, where no price is known
        input TEXT, -- USD for a million tokens, exact
        output TEXT, -- the same
        cache_write_5m TEXT, -- the same
        cache_write_1h TEXT, -- the same
        cache_read TEXT, -- the same
        web_search TEXT, -- USD for one search
        begins TEXT, -- the first day of these prices; NULL where it is open
        ends TEXT, -- the day after their last; NULL where it is open
        long_context INTEGER, -- the tokens above which a prompt has these prices
        multipliers TEXT, -- those that were applied, as JSON
        source TEXT -- where the prices are from
    )""",
        "shares": """CREATE TABLE shares(
        share_id INTEGER PRIMARY KEY, -- the number of some tools
        tools TEXT NOT NULL UNIQUE -- their names as JSON, one for each call of a message: they share what it costs
    )""",
        "charged": """CREATE TABLE charged(
        message_id INTEGER NOT NULL, -- the message that was charged
        number INTEGER NOT NULL, -- of the charge, among those under one id
        origin_id INTEGER NOT NULL, -- of the earliest original
        rate_id INTEGER NOT NULL, -- the model and its rate
        time NOT NULL, -- when: milliseconds since 1970, or as it is written where that is not as usual
        part TEXT, -- NULL, or which pass of another model it is
        input INTEGER NOT NULL, -- tokens that were not in the cache
        output INTEGER NOT NULL, -- tokens, thinking included
        cache_write_5m INTEGER NOT NULL, -- tokens written for five minutes
        cache_write_1h INTEGER NOT NULL, -- tokens written for an hour
        cache_read INTEGER NOT NULL, -- tokens read from the cache
        web_searches INTEGER NOT NULL, -- how many web searches
        amount TEXT, -- USD, exact; NULL where no price is known
        lower_bound INTEGER NOT NULL, -- whether the final output was never written: it is the least that was spent
        copied INTEGER NOT NULL, -- whether several transcripts hold it
        share_id INTEGER, -- the tools that the message calls; NULL where it calls none
        PRIMARY KEY(message_id, number)
    ) WITHOUT ROWID""",
        "spent": """CREATE TABLE spent(
        quarter NOT NULL, -- of an hour, counted since 1970; or the time as it is written where that is not as usual
        origin_id INTEGER NOT NULL, -- who spent it
        rate_id INTEGER NOT NULL, -- the model and its rate
        charges INTEGER NOT NULL, -- how many charges
        input INTEGER NOT NULL, -- tokens that were not in the cache
        output INTEGER NOT NULL, -- tokens, thinking included
        cache_write_5m INTEGER NOT NULL, -- tokens written for five minutes
        cache_write_1h INTEGER NOT NULL, -- tokens written for an hour
        cache_read INTEGER NOT NULL, -- tokens read from the cache
        web_searches INTEGER NOT NULL, -- how many web searches
        lower_bound INTEGER NOT NULL, -- charges whose final output was never written
        parts INTEGER NOT NULL, -- charges that are a pass of another model, and not among those above
        PRIMARY KEY(quarter, origin_id, rate_id)
    ) WITHOUT ROWID""",
    },
    views={
        "charges": f"""CREATE VIEW charges( -- what was paid for, each message once: the ledger
            message, -- the key by which the message is counted
            part, -- empty, or which pass of another model it is
            transcript_id, -- the transcript of the earliest original
            session, -- the session that spent it
            agent, -- the agent that did; NULL for the main one
            agent_type, -- what kind of agent, as its rows name it
            project, -- the project's path, or else its folder
            home, -- the home's path
            model, -- as the transcript writes it
            timestamp, -- when it was spent
            version, -- the version of Claude Code
            git_branch, -- the branch that was checked out
            skill, -- the skill that was named as the cause
            is_side, -- whether the program spent it for itself, and no person asked for it
            input, -- tokens that were not in the cache
            output, -- tokens, thinking included
            cache_write_5m, -- tokens written to the cache for five minutes
            cache_write_1h, -- tokens written to the cache for an hour
            cache_read, -- tokens read from the cache
            web_searches, -- how many web searches
            amount, -- USD, exact; NULL where no price is known
            lower_bound, -- whether the final output was never written: it is the least that was spent
            copied -- whether several transcripts hold it
        ) AS
        SELECT m.message, COALESCE(c.part, ''), o.transcript_id, o.session, o.agent, o.agent_type,
            COALESCE(p.path, p.folder), h.path, r.model, {_TIME.format("c.time")},
            o.version, o.git_branch, o.skill, o.is_side, c.input, c.output, c.cache_write_5m, c.cache_write_1h,
            c.cache_read, c.web_searches, c.amount, c.lower_bound, c.copied
        FROM charged c
        LEFT JOIN message_ids m ON m.message_id = c.message_id
        LEFT JOIN origins o ON o.origin_id = c.origin_id
        LEFT JOIN rates r ON r.rate_id = c.rate_id
        LEFT JOIN transcripts t ON t.transcript_id = o.transcript_id
        LEFT JOIN projects p ON p.project_id = t.project_id
        LEFT JOIN homes h ON h.home_id = t.home_id""",  # noqa: S608 - our own names
        "messages": f"""CREATE VIEW messages( -- API messages whose usage is told, each once
            id, -- the message's id, or where it has none the request's
            session, -- the session that it is of
            agent, -- the agent that got it; NULL for the main one
            model, -- as the transcript writes it
            timestamp, -- when it was spent
            input, -- tokens that were not in the cache
            output, -- tokens, thinking included
            cache_write, -- tokens written to the cache
            cache_read, -- tokens read from the cache
            charges, -- what was charged for it: more than one where other models took part, or an id was used again
            entries, -- how many entries tell of it
            transcripts -- how many transcripts do
        ) AS
        SELECT m.message, o.session, o.agent, r.model, {_TIME.format("c.time")}, SUM(c.input), SUM(c.output),
            SUM(c.cache_write_5m + c.cache_write_1h), SUM(c.cache_read), COUNT(*) + 0 * MIN(c.number),
            (SELECT SUM(s.entries) FROM sightings s WHERE s.message_id = c.message_id),
            (SELECT COUNT(DISTINCT s.transcript_id) FROM sightings s WHERE s.message_id = c.message_id)
        FROM charged c
        LEFT JOIN message_ids m ON m.message_id = c.message_id
        LEFT JOIN origins o ON o.origin_id = c.origin_id
        LEFT JOIN rates r ON r.rate_id = c.rate_id
        GROUP BY c.message_id""",  # noqa: S608 - our own names
    },
    indexes=(
        "CREATE INDEX origins_by_transcript ON origins(transcript_id)",
        "CREATE INDEX sightings_by_transcript ON sightings(transcript_id, origin_id, message_id)",
        "CREATE INDEX ties_by_message ON ties(message_id)",
        "CREATE INDEX charged_by_time ON charged(time, message_id, number, rate_id)",
    ),
    of_transcript=("sightings", "waiting", "owned"),
    private=("sightings", "waiting", "stale", "ties", "owned"),
)
