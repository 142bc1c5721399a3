"""The tables of the causes of costs and of avoidable costs, by session.

They are filled when somebody asks, session by session, and not by a refresh. A refresh deletes the rows of a session
if one of its transcripts is gone or was rewritten. If a transcript grew, the rows stay until somebody asks again.
"""

from __future__ import annotations

from threadline.index.vocabulary import TableGroup

INSIGHTS = TableGroup(
    tables={
        "insights": """CREATE TABLE insights(
        insight_id INTEGER PRIMARY KEY, -- the number of a session whose costs were attributed
        transcript_id INTEGER NOT NULL, -- its main transcript
        session TEXT, -- its id
        unpriced INTEGER NOT NULL, -- how many requests have no known price
        measured INTEGER NOT NULL, -- tokens by which its windows grew, as far as that is measured
        missed REAL NOT NULL -- by how many tokens the estimates miss that
    )""",
        "insight_transcripts": """CREATE TABLE insight_transcripts(
        transcript_id INTEGER PRIMARY KEY, -- a transcript of the session
        insight_id INTEGER NOT NULL, -- the session
        state TEXT NOT NULL -- the transcript's size and content, and its charges, when the costs were attributed
    )""",
        "cause_rows": """CREATE TABLE cause_rows(
        insight_id INTEGER NOT NULL, -- the session
        number INTEGER NOT NULL, -- the rank of the cause, by amount, from 0
        kind TEXT NOT NULL, -- what it is
        label TEXT NOT NULL, -- what it is, in words
        transcript_id INTEGER, -- the transcript that contains it
        line INTEGER, -- its line number
        offset INTEGER, -- the offset of the line
        length INTEGER, -- the length of the line in bytes
        tokens INTEGER NOT NULL, -- its size when it was added
        requests INTEGER NOT NULL, -- how many requests carried it
        write TEXT NOT NULL, -- USD for sending it, exact
        read TEXT NOT NULL, -- USD for carrying it from the cache, exact
        output TEXT NOT NULL, -- USD for generating it, exact
        amount TEXT NOT NULL, -- the sum of the three
        estimated INTEGER NOT NULL, -- whether its size is an estimate
        agent TEXT, -- the agent whose context it is in
        turn INTEGER, -- its turn
        name TEXT, -- the tool, or the kind of an injected text
        file TEXT, -- the file
        server TEXT, -- the MCP server
        call TEXT, -- the id of the call
        PRIMARY KEY(insight_id, number)
    ) WITHOUT ROWID""",
        "cause_sums": """CREATE TABLE cause_sums(
        key TEXT NOT NULL, -- what the causes of a session are grouped by
        insight_id INTEGER NOT NULL, -- the session
        value TEXT NOT NULL, -- the value of the key
        causes INTEGER NOT NULL, -- how many causes
        tokens INTEGER NOT NULL, -- the sum of their sizes
        requests INTEGER NOT NULL, -- the largest number of requests that carried one of them
        write TEXT NOT NULL, -- USD for sending them, exact
        read TEXT NOT NULL, -- USD for carrying them from the cache, exact
        output TEXT NOT NULL, -- USD for generating them, exact
        estimated INTEGER NOT NULL, -- whether one of the sizes is an estimate
        PRIMARY KEY(key, insight_id, value)
    ) WITHOUT ROWID""",
        "waste_rows": """CREATE TABLE waste_rows(
        insight_id INTEGER NOT NULL, -- the session
        number INTEGER NOT NULL, -- the rank of the finding, by amount, from 0
        detector TEXT NOT NULL, -- the rule that found it
        label TEXT NOT NULL, -- what happened
        evidence TEXT NOT NULL, -- how that is known
        advice TEXT NOT NULL, -- what to do
        places TEXT NOT NULL, -- transcript_id, line, offset and length of each place, as JSON
        tokens INTEGER NOT NULL, -- tokens that it added
        amount TEXT NOT NULL, -- USD, exact
        estimated INTEGER NOT NULL, -- whether it depends on an estimated size
        agent TEXT, -- the agent; NULL for the main agent
        turn INTEGER, -- its turn
        cause TEXT, -- why the cache was lost; NULL for other waste
        PRIMARY KEY(insight_id, number)
    ) WITHOUT ROWID""",
    },
    views={
        "causes": """CREATE VIEW causes( -- what the cost of each session was caused by; they sum to its charges
            session, -- the session
            project, -- the project's path, or its folder if the path is unknown
            kind, -- system, prompt, reply, thinking, call, result, injected, image, summary, unseen and so on
            label, -- what it is, in words
            transcript, -- the path of the transcript that contains it; NULL for what is in none
            line, -- the line number
            tokens, -- its size when it was added
            requests, -- how many requests carried it
            write, -- USD for sending it, and for sending it again after cache breaks, exact
            read, -- USD for carrying it from the cache, exact
            output, -- USD for generating it, exact
            amount, -- the sum of the three
            estimated, -- whether its size is an estimate
            agent, -- the agent whose context it is in; NULL for the main agent
            turn, -- its turn; for an agent's, the turn in which the agent was started
            name, -- the tool of a call or result, or the kind of an injected text
            file, -- the file that a call or an attachment names
            server, -- the MCP server of the tool
            call -- the id of the call
        ) AS
        SELECT i.session, COALESCE(p.path, p.folder), c.kind, c.label, w.path, c.line, c.tokens, c.requests, c.write,
            c.read, c.output, c.amount, c.estimated, c.agent, c.turn, c.name, c.file, c.server, c.call
        FROM cause_rows c
        JOIN insights i ON i.insight_id = c.insight_id
        JOIN transcripts t ON t.transcript_id = i.transcript_id
        JOIN projects p ON p.project_id = t.project_id
        LEFT JOIN transcripts w ON w.transcript_id = c.transcript_id""",
        "waste": """CREATE VIEW waste( -- avoidable costs of each session; findings may overlap
            session, -- the session
            project, -- the project's path, or its folder if the path is unknown
            detector, -- the rule that found it
            label, -- what happened
            evidence, -- how that is known
            advice, -- what to do
            transcript, -- the path of the transcript of the first place
            line, -- its line number
            places, -- how many places show it
            tokens, -- tokens that it added
            amount, -- USD, exact
            estimated, -- whether it depends on an estimated size
            agent, -- the agent; NULL for the main agent
            turn -- its turn
        ) AS
        SELECT i.session, COALESCE(p.path, p.folder), f.detector, f.label, f.evidence, f.advice, w.path,
            json_extract(f.places, '$[0][1]'), json_array_length(f.places), f.tokens, f.amount, f.estimated, f.agent,
            f.turn
        FROM waste_rows f
        JOIN insights i ON i.insight_id = f.insight_id
        JOIN transcripts t ON t.transcript_id = i.transcript_id
        JOIN projects p ON p.project_id = t.project_id
        LEFT JOIN transcripts w ON w.transcript_id = json_extract(f.places, '$[0][0]')""",
    },
    indexes=(
        "CREATE INDEX insight_transcripts_by_insight ON insight_transcripts(insight_id)",
        "CREATE INDEX cause_sums_by_insight ON cause_sums(insight_id)",
        """CREATE TRIGGER forget_insights AFTER DELETE ON insight_transcripts BEGIN
            DELETE FROM cause_rows WHERE insight_id = old.insight_id;
            DELETE FROM cause_sums WHERE insight_id = old.insight_id;
            DELETE FROM waste_rows WHERE insight_id = old.insight_id;
            DELETE FROM insights WHERE insight_id = old.insight_id;
            DELETE FROM insight_transcripts WHERE insight_id = old.insight_id;
        END""",
    ),
    of_transcript=("insight_transcripts",),
    private=("insights", "insight_transcripts", "cause_rows", "cause_sums", "waste_rows"),
)
