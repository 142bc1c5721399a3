"""Tables, views and indexes of the index: the public ones people may query and the private ones a refresh needs.

Everything is derived from transcripts, so there are no migrations: another schema version is another file. A comment
behind a column says what it means; `threadline sql --schema` and docs/index.md show those comments.
"""

from __future__ import annotations

from threadline.index.insight.tables import INSIGHTS
from threadline.index.store import (
    AGENT_TYPE_SQL,
    FIELDS,
    IS_AGENT_SQL,
    ORIGIN_TYPE_SQL,
    SIDE_SQL,
    STEP_ORDER_SQL,
    TYPED_SQL,
    UUID_PATTERN_SQL,
    VERSION,
    WORKING_AGENT_SQL,
)
from threadline.index.vocabulary import VOCABULARY, TableGroup
from threadline.model.names import TOOL_RENAMES

PLACES = TableGroup(
    tables={
        "meta": """CREATE TABLE meta(
        name TEXT PRIMARY KEY, -- schema, prices, ranks, next_entry, terms_to, leaves_to, generation, unsettled, …
        value TEXT NOT NULL -- its value
    ) WITHOUT ROWID""",
        "homes": """CREATE TABLE homes(
        home_id INTEGER PRIMARY KEY, -- the home's number
        path TEXT NOT NULL UNIQUE -- its path
    )""",
        "projects": """CREATE TABLE projects(
        project_id INTEGER PRIMARY KEY, -- the project's number
        home_id INTEGER NOT NULL, -- the home it is in
        folder TEXT NOT NULL, -- the name of its folder under projects/, which does not determine the path
        path TEXT, -- its real path; NULL if unknown
        path_source TEXT NOT NULL, -- the evidence for the path
        UNIQUE(home_id, folder)
    )""",
        "transcripts": """CREATE TABLE transcripts(
        transcript_id INTEGER PRIMARY KEY, -- the transcript's number
        path TEXT NOT NULL UNIQUE, -- its path; a blob if the name is not valid text
        home_id INTEGER NOT NULL, -- its home
        project_id INTEGER NOT NULL, -- its project: the one its session was started in
        folder_id INTEGER NOT NULL, -- the project whose folder it is in
        kind TEXT NOT NULL, -- main, agent, workflow-agent, journal or other
        session TEXT, -- the session in its path
        agent TEXT, -- the agent in its path; NULL for a main transcript
        size INTEGER NOT NULL, -- its size in bytes at the last refresh
        mtime_ns INTEGER NOT NULL, -- its mtime, in nanoseconds since 1970
        ctime_ns INTEGER NOT NULL, -- when it was last changed in any way, in nanoseconds since 1970; 0 if unknown
        device INTEGER NOT NULL, -- the device it is on
        inode INTEGER NOT NULL, -- its inode
        read_to INTEGER NOT NULL, -- the offset up to which complete lines were read
        lines INTEGER NOT NULL, -- how many lines were read
        is_open INTEGER NOT NULL DEFAULT 0, -- whether the last of them is complete but has no line ending yet
        head_hash BLOB NOT NULL, -- a hash of the first bytes that were read
        tail_hash BLOB NOT NULL, -- a hash of the last bytes that were read
        checksum INTEGER NOT NULL, -- a checksum of all bytes that were read
        racy INTEGER NOT NULL, -- whether it was modified just before it was checked, so equal times prove nothing
        state BLOB NOT NULL DEFAULT x'' -- the packed state of the fold over its lines, to which new lines are added
    )""",
    },
)


ENTRIES = TableGroup(
    tables={
        "entries": """CREATE TABLE entries(
        entry_id INTEGER PRIMARY KEY, -- the entry's number; never reused
        transcript_id INTEGER NOT NULL, -- its transcript
        line INTEGER NOT NULL, -- its line number, from 1
        offset INTEGER NOT NULL, -- the offset of its bytes in the transcript
        length INTEGER NOT NULL, -- its length in bytes, including the line ending
        kind TEXT NOT NULL, -- its kind, or blank, damaged, untyped
        uuid TEXT, -- its id
        session TEXT, -- the session it names, if that differs from its transcript's; otherwise NULL
        agent TEXT, -- the agent it names, if that differs from its transcript's; otherwise NULL
        timestamp TEXT, -- when it was written
        message TEXT, -- the id of the API message it belongs to
        request TEXT, -- the id of the API request it belongs to
        stop_reason TEXT -- why the model stopped: end_turn, tool_use, max_tokens and so on; NULL while it is writing
    )""",
        "problems": """CREATE TABLE problems(
        problem_id INTEGER PRIMARY KEY, -- the problem's number
        transcript_id INTEGER NOT NULL, -- its transcript
        line INTEGER NOT NULL, -- its line number
        kind TEXT NOT NULL, -- its kind
        message TEXT NOT NULL, -- a sentence about it
        recovered INTEGER NOT NULL -- whether nothing was lost
    )""",
        "text": f"""CREATE VIRTUAL TABLE text USING fts5(
        {", ".join(FIELDS)}, content='', tokenize='unicode61 remove_diacritics 2'
    )""",
    },
    views={
        "said": """CREATE VIEW said( -- entries with transcript, session, agent, project and home
            entry_id, -- the entry's number
            transcript, -- the path of the transcript
            line, -- the line number
            offset, -- the offset of its bytes
            length, -- its length in bytes
            kind, -- its kind
            uuid, -- its id
            timestamp, -- when it was written
            message, -- the id of the API message it belongs to
            request, -- the id of the API request it belongs to
            stop_reason, -- why the model stopped
            session, -- the session of its transcript; for an agent beside the sessions, the one it names
            agent, -- the agent it names, or its transcript's
            project, -- the project's path, or its folder if the path is unknown
            home -- the home's path
        ) AS
        SELECT e.entry_id, t.path AS transcript, e.line, e.offset, e.length, e.kind, e.uuid, e.timestamp, e.message,
            e.request, e.stop_reason, COALESCE(t.session, e.session) AS session, COALESCE(e.agent, t.agent) AS agent,
            COALESCE(p.path, p.folder) AS project, h.path AS home
        FROM entries e
        JOIN transcripts t USING(transcript_id)
        JOIN projects p USING(project_id)
        JOIN homes h ON h.home_id = t.home_id""",
    },
    indexes=("CREATE INDEX entries_by_transcript ON entries(transcript_id, line)",),
    late_indexes=("CREATE INDEX problems_by_transcript ON problems(transcript_id)",),
    of_transcript=("problems", "entries"),
)


# Whether a transcript `o` belongs to the session of a main transcript `t` of the same name, as `find.SessionOwners`
# decides: it is in the same folder, or in one that has no such session, and this is the first one in the home.
_BELONGS_SQL = f"""(o.transcript_id = t.transcript_id OR (o.kind <> 'main' AND (o.folder_id = t.folder_id
                OR (t.session LIKE {UUID_PATTERN_SQL}
                    AND NOT EXISTS(SELECT 1 FROM transcripts m WHERE m.session = t.session AND m.kind = 'main'
                        AND m.home_id = t.home_id AND (m.folder_id = o.folder_id OR m.path < t.path))))))"""

SESSIONS = TableGroup(
    tables={
        "session_rows": """CREATE TABLE session_rows(
        transcript_id INTEGER PRIMARY KEY, -- its main transcript
        session TEXT, -- its id
        title TEXT NOT NULL, -- its title
        title_source TEXT NOT NULL, -- the source of the title
        cwd TEXT, -- the directory it was started in, according to its entries
        first TEXT, -- the first time in its main conversation
        last TEXT, -- the last time in its main conversation
        turns INTEGER NOT NULL, -- how many turns
        model TEXT, -- the model that replied last
        entries INTEGER NOT NULL, -- entries in its main transcript
        slug TEXT, -- its nickname
        platform TEXT, -- the platform it ran on
        os_version TEXT -- the operating system it ran on
    )""",
        "prompt_rows": """CREATE TABLE prompt_rows(
        transcript_id INTEGER NOT NULL, -- the main transcript
        line INTEGER NOT NULL, -- the line number
        offset INTEGER NOT NULL, -- the offset of its entry, which may share a damaged line with others
        turn INTEGER NOT NULL, -- the turn that it begins or belongs to
        kind TEXT NOT NULL, -- prompt, command, shell, steering and so on
        text TEXT NOT NULL -- what was typed, up to 2,000 characters
    )""",
        "summary_rows": """CREATE TABLE summary_rows(
        transcript_id INTEGER NOT NULL, -- the transcript that contains the summary
        line INTEGER NOT NULL, -- the line number
        leaf TEXT NOT NULL, -- the id of the entry that it names, in whatever transcript
        text TEXT NOT NULL, -- the summary
        is_new INTEGER NOT NULL -- whether entries that were read before it have not been searched for the named one yet
    )""",
        "leaf_rows": """CREATE TABLE leaf_rows(
        leaf TEXT NOT NULL, -- the id of an entry that a summary names
        transcript_id INTEGER NOT NULL, -- the transcript that contains the entry
        entry_id INTEGER NOT NULL, -- the entry
        is_agent INTEGER NOT NULL, -- whether an agent inside a main transcript wrote it
        PRIMARY KEY(leaf, transcript_id, entry_id)
    ) WITHOUT ROWID""",
        "summary_titles": """CREATE TABLE summary_titles(
        transcript_id INTEGER PRIMARY KEY, -- a main transcript
        text TEXT NOT NULL -- the summary that titles it
    )""",
    },
    views={
        "continuations": """CREATE VIEW continuations( -- sessions that begin with the summary of another one
        session, -- the session that contains the summary
        continues, -- the session that the summary names and titles; NULL if it is missing
        summary, -- the summary
        leaf, -- the id of the entry that it names: the last one of the summarized conversation
        entry_id, -- that entry's number; NULL if it is missing
        project, -- the project of the session that contains the summary
        transcript, -- the path of the transcript that contains the summary
        line -- the line number
    ) AS SELECT t.session, COALESCE(lt.session, e.session), s.text, s.leaf, l.entry_id, COALESCE(p.path, p.folder),
            t.path, s.line
        FROM summary_rows s
        JOIN transcripts t ON t.transcript_id = s.transcript_id
        JOIN projects p ON p.project_id = t.project_id
        LEFT JOIN leaf_rows l ON l.leaf = s.leaf
        LEFT JOIN transcripts lt ON lt.transcript_id = l.transcript_id
        LEFT JOIN entries e ON e.entry_id = l.entry_id
        WHERE NOT EXISTS(SELECT 1 FROM leaf_rows o JOIN transcripts ot ON ot.transcript_id = o.transcript_id
            WHERE o.leaf = s.leaf AND ot.session = t.session)""",
        "sessions": f"""CREATE VIEW sessions( -- each session once, across all transcripts that contain it
        session, -- its id
        title, -- its title
        title_source, -- the source: custom-title, ai-title, last-prompt, summary, first-prompt, plan or none
        project, -- the directory it was started in
        home, -- the home it is in
        first, -- the first time in its main conversation
        last, -- the last time in its main conversation
        turns, -- how many turns
        agents, -- how many agents worked for it, without those that Claude Code runs itself
        model, -- the model that replied last
        entries, -- entries in its main transcript, including an unfinished last line
        size, -- the size of its main transcript in bytes
        transcript, -- the path of its main transcript
        transcript_id, -- the number of its main transcript
        slug, -- its nickname of three words (2.0.64 to 2.1.217)
        platform, -- the platform it ran on last: linux, darwin, win32 (from 2.1.280)
        os_version -- the operating system it ran on last (from 2.1.280)
    ) AS SELECT s.session, s.title, s.title_source, COALESCE(s.cwd, p.path, p.folder), h.path, s.first, s.last, s.turns,
            (SELECT COUNT(*) FROM (
                SELECT a.agent FROM transcripts o JOIN agent_rows a ON a.transcript_id = o.transcript_id
                WHERE o.session = s.session AND o.home_id = t.home_id AND {WORKING_AGENT_SQL.format(transcript="o")}
                AND {_BELONGS_SQL}
                UNION
                SELECT a.agent FROM agent_rows a JOIN transcripts o ON o.transcript_id = a.transcript_id
                WHERE a.session = s.session AND o.session IS NULL AND o.home_id = t.home_id
                AND {WORKING_AGENT_SQL.format(transcript="o")} AND {_BELONGS_SQL})),
            s.model, s.entries + (t.read_to < t.size), t.size, t.path, t.transcript_id, s.slug,
            s.platform, s.os_version
        FROM session_rows s
        JOIN transcripts t USING(transcript_id)
        JOIN projects p USING(project_id)
        JOIN homes h ON h.home_id = t.home_id""",
        "prompts": f"""CREATE VIEW prompts( -- what people typed
        text, -- what was typed, up to 2,000 characters
        kind, -- prompt, command, shell, memory, steering, programmatic or feedback
        turn, -- the turn that it begins or belongs to, from 1
        timestamp, -- when it was typed
        session, -- the session
        project, -- the project
        transcript, -- the path of the transcript
        line, -- the line number
        entry_id -- the entry's number
    ) AS SELECT r.text, r.kind, r.turn, e.timestamp, COALESCE(t.session, e.session), COALESCE(p.path, p.folder),
            t.path, r.line, e.entry_id
        FROM prompt_rows r
        JOIN transcripts t USING(transcript_id)
        JOIN projects p USING(project_id)
        LEFT JOIN entries e ON e.transcript_id = r.transcript_id AND e.line = r.line AND e.offset = r.offset
        WHERE {TYPED_SQL.format("r")}""",
    },
    indexes=("CREATE INDEX prompt_rows_by_transcript ON prompt_rows(transcript_id, line)",),
    late_indexes=(
        "CREATE INDEX session_rows_by_session ON session_rows(session)",
        "CREATE INDEX transcripts_by_session ON transcripts(session)",
        "CREATE INDEX summary_rows_by_transcript ON summary_rows(transcript_id)",
        "CREATE INDEX leaf_rows_by_transcript ON leaf_rows(transcript_id)",
    ),
    of_transcript=("session_rows", "prompt_rows", "summary_rows", "leaf_rows", "summary_titles"),
    private=("session_rows", "prompt_rows", "summary_rows", "leaf_rows", "summary_titles"),
)


# An integer is the usual time, in milliseconds; text is any other, as it was written.
_TIME_SQL = """CASE typeof({0}) WHEN 'integer'
            THEN strftime('%Y-%m-%dT%H:%M:%S.', {0} / 1000, 'unixepoch') || substr('00' || ({0} % 1000), -3) || 'Z'
            ELSE {0} END"""

SPENDING = TableGroup(
    tables={
        "message_ids": """CREATE TABLE message_ids(
        message_id INTEGER PRIMARY KEY, -- the message's number
        message TEXT NOT NULL UNIQUE -- the key by which it is counted: its id or, without one, the request's id
    )""",
        "models": """CREATE TABLE models(
        model_id INTEGER PRIMARY KEY, -- the model's number
        model TEXT NOT NULL UNIQUE -- the model, as in transcripts
    )""",
        "origins": """CREATE TABLE origins(
        origin_id INTEGER PRIMARY KEY, -- the origin's number
        transcript_id INTEGER NOT NULL, -- the transcript that contains the messages
        session TEXT, -- their session
        agent TEXT, -- their agent; NULL for the main agent
        version TEXT, -- the version of Claude Code
        git_branch TEXT, -- the git branch
        is_agent INTEGER, -- whether the rows say that an agent wrote them
        forked INTEGER NOT NULL, -- whether the rows say that they are copies
        skill TEXT, -- the skill recorded as the cause
        agent_type TEXT, -- the type of the agent, according to the rows
        inline TEXT, -- the agent inside a main transcript, if the rows do not name it
        is_side INTEGER NOT NULL, -- whether Claude Code spent it for itself (side agents)
        began TEXT NOT NULL -- the first time in the transcript
    )""",
        "sightings": """CREATE TABLE sightings(
        message_id INTEGER NOT NULL, -- the message
        transcript_id INTEGER NOT NULL, -- the transcript that reports it
        offset INTEGER NOT NULL, -- the offset of the first row that does
        origin_id INTEGER NOT NULL, -- who wrote it
        model_id INTEGER, -- the model, as in the transcript
        time NOT NULL, -- milliseconds since 1970; the original text if the timestamp is unusual
        entries INTEGER NOT NULL, -- how many rows report it
        packed BLOB NOT NULL, -- what they report, packed
        PRIMARY KEY(message_id, transcript_id, offset)
    ) WITHOUT ROWID""",
        "waiting": """CREATE TABLE waiting(
        transcript_id INTEGER NOT NULL, -- the transcript
        call TEXT NOT NULL -- a web search whose result is not written yet
    )""",
        "stale": """CREATE TABLE stale(
        message_id INTEGER PRIMARY KEY, -- the message whose charges have to be recomputed
        is_wider INTEGER NOT NULL DEFAULT 0 -- whether only other messages changed, and nothing about this one
    )""",
        "ties": """CREATE TABLE ties(
        transcript_id INTEGER NOT NULL, -- one of several transcripts that contain a message, none clearly the original
        sharers TEXT NOT NULL, -- the numbers of all of them
        is_end INTEGER NOT NULL, -- whether the offset counts towards the range of shared messages
        offset INTEGER NOT NULL, -- the offset of the message in this transcript
        message_id INTEGER NOT NULL, -- the message
        PRIMARY KEY(transcript_id, sharers, is_end, offset, message_id)
    ) WITHOUT ROWID""",
        "owned": """CREATE TABLE owned(
        transcript_id INTEGER PRIMARY KEY, -- a transcript whose shared messages are spread as widely as in another
        began TEXT NOT NULL -- when its own messages begin; empty if it has none
    )""",
        "rates": """CREATE TABLE rates(
        rate_id INTEGER PRIMARY KEY, -- the number of this combination of model and rate
        model TEXT, -- the model, as in transcripts
        priced_as TEXT, -- the model in the price list; NULL, like the following columns, if no price is known
        input TEXT, -- USD per million tokens, exact
        output TEXT, -- USD per million tokens, exact
        cache_write_5m TEXT, -- USD per million tokens, exact
        cache_write_1h TEXT, -- USD per million tokens, exact
        cache_read TEXT, -- USD per million tokens, exact
        web_search TEXT, -- USD per web search
        begins TEXT, -- the first day of these prices; NULL if open
        ends TEXT, -- the day after their last; NULL if open
        long_context INTEGER, -- these prices apply to prompts with more tokens than this
        multipliers TEXT, -- the multipliers that were applied, as JSON
        source TEXT -- the source of the prices
    )""",
        "shares": """CREATE TABLE shares(
        share_id INTEGER PRIMARY KEY, -- the number of this combination of tools
        tools TEXT NOT NULL UNIQUE -- tool names as JSON, one per call of a message; they share its cost
    )""",
        "charged": """CREATE TABLE charged(
        message_id INTEGER NOT NULL, -- the message
        number INTEGER NOT NULL, -- the number of the charge, among those with the same id
        origin_id INTEGER NOT NULL, -- the origin of the earliest original
        rate_id INTEGER NOT NULL, -- the model and its rate
        time NOT NULL, -- milliseconds since 1970; the original text if the timestamp is unusual
        part TEXT, -- NULL, or the pass of another model
        input INTEGER NOT NULL, -- input tokens that were not cached
        output INTEGER NOT NULL, -- output tokens, including thinking
        cache_write_5m INTEGER NOT NULL, -- tokens written to the cache for five minutes
        cache_write_1h INTEGER NOT NULL, -- tokens written to the cache for one hour
        cache_read INTEGER NOT NULL, -- tokens read from the cache
        web_searches INTEGER NOT NULL, -- how many web searches
        amount TEXT, -- USD, exact; NULL without a price
        lower_bound INTEGER NOT NULL, -- whether the final output was never written, so the charge is a lower bound
        copied INTEGER NOT NULL, -- whether several transcripts contain it
        share_id INTEGER, -- the tools that the message calls; NULL if it calls none
        tier TEXT, -- the service tier; NULL for the standard one
        PRIMARY KEY(message_id, number)
    ) WITHOUT ROWID""",
        "spent": """CREATE TABLE spent(
        quarter NOT NULL, -- quarter hours since 1970; the original text if the timestamp is unusual
        origin_id INTEGER NOT NULL, -- who spent it
        rate_id INTEGER NOT NULL, -- the model and its rate
        charges INTEGER NOT NULL, -- how many charges
        input INTEGER NOT NULL, -- input tokens that were not cached
        output INTEGER NOT NULL, -- output tokens, including thinking
        cache_write_5m INTEGER NOT NULL, -- tokens written to the cache for five minutes
        cache_write_1h INTEGER NOT NULL, -- tokens written to the cache for one hour
        cache_read INTEGER NOT NULL, -- tokens read from the cache
        web_searches INTEGER NOT NULL, -- how many web searches
        lower_bound INTEGER NOT NULL, -- charges whose final output was never written
        parts INTEGER NOT NULL, -- charges for a pass of another model, not included in charges
        PRIMARY KEY(quarter, origin_id, rate_id)
    ) WITHOUT ROWID""",
    },
    views={
        "charges": f"""CREATE VIEW charges( -- each API message that was paid for, once: the ledger
            message, -- the key by which the message is counted
            part, -- empty, or the pass of another model
            transcript_id, -- the transcript of the earliest original
            session, -- the session that spent it
            agent, -- the agent that spent it; NULL for the main agent
            agent_type, -- the type of the agent, according to its rows or as in agents; NULL for the main agent
            project, -- the project's path, or its folder if the path is unknown
            home, -- the home's path
            model, -- the model, as in the transcript
            timestamp, -- when it was spent
            version, -- the version of Claude Code
            git_branch, -- the git branch
            skill, -- the skill recorded as the cause
            is_side, -- whether Claude Code spent it for itself (side agents)
            input, -- input tokens that were not cached
            output, -- output tokens, including thinking
            cache_write_5m, -- tokens written to the cache for five minutes
            cache_write_1h, -- tokens written to the cache for one hour
            cache_read, -- tokens read from the cache
            web_searches, -- how many web searches
            amount, -- USD, exact; NULL without a price
            lower_bound, -- whether the final output was never written, so the charge is a lower bound
            copied, -- whether several transcripts contain it
            service_tier -- the service tier; standard also if it is not recorded
        ) AS
        SELECT m.message, COALESCE(c.part, ''), o.transcript_id, o.session, o.agent,
            CASE WHEN o.agent IS NULL THEN o.agent_type ELSE {ORIGIN_TYPE_SQL} END,
            COALESCE(p.path, p.folder), h.path, r.model, {_TIME_SQL.format("c.time")},
            o.version, o.git_branch, o.skill, o.is_side, c.input, c.output, c.cache_write_5m, c.cache_write_1h,
            c.cache_read, c.web_searches, c.amount, c.lower_bound, c.copied, COALESCE(c.tier, 'standard')
        FROM charged c
        LEFT JOIN message_ids m ON m.message_id = c.message_id
        LEFT JOIN origins o ON o.origin_id = c.origin_id
        LEFT JOIN rates r ON r.rate_id = c.rate_id
        LEFT JOIN transcripts t ON t.transcript_id = o.transcript_id
        LEFT JOIN projects p ON p.project_id = t.project_id
        LEFT JOIN homes h ON h.home_id = t.home_id""",
        "messages": f"""CREATE VIEW messages( -- each API message whose usage is reported
            id, -- the message's id; without one, the request's id
            session, -- the session it belongs to
            agent, -- the agent that received it; NULL for the main agent
            model, -- the model, as in the transcript
            timestamp, -- when it was spent
            input, -- input tokens that were not cached
            output, -- output tokens, including thinking
            cache_write, -- tokens written to the cache
            cache_read, -- tokens read from the cache
            charges, -- how many charges: several if other models took part, or if the id was reused
            entries, -- how many entries report it
            transcripts -- how many transcripts contain it
        ) AS
        SELECT m.message, o.session, o.agent, r.model, {_TIME_SQL.format("c.time")}, SUM(c.input), SUM(c.output),
            SUM(c.cache_write_5m + c.cache_write_1h), SUM(c.cache_read), COUNT(*) + 0 * MIN(c.number),
            (SELECT SUM(s.entries) FROM sightings s WHERE s.message_id = c.message_id),
            (SELECT COUNT(DISTINCT s.transcript_id) FROM sightings s WHERE s.message_id = c.message_id)
        FROM charged c
        LEFT JOIN message_ids m ON m.message_id = c.message_id
        LEFT JOIN origins o ON o.origin_id = c.origin_id
        LEFT JOIN rates r ON r.rate_id = c.rate_id
        GROUP BY c.message_id""",
    },
    late_indexes=(
        "CREATE INDEX origins_by_transcript ON origins(transcript_id)",
        "CREATE INDEX sightings_by_transcript ON sightings(transcript_id, origin_id, message_id)",
        "CREATE INDEX ties_by_message ON ties(message_id)",
        "CREATE INDEX charged_by_time ON charged(time, message_id, number, rate_id)",
        "CREATE INDEX copied_charges ON charged(message_id) WHERE copied",
    ),
    of_transcript=("sightings", "waiting", "owned"),
    private=("sightings", "waiting", "stale", "ties", "owned"),
)


# The agent whose row it is: one inside a main transcript, as long as there is a main agent beside it, or the file's.
AGENT_SQL = """CASE WHEN {row}.agent IS NULL THEN t.agent
            WHEN EXISTS(SELECT 1 FROM agent_rows m WHERE m.transcript_id = t.transcript_id AND m.agent = '')
            THEN {row}.agent END"""
# The session of a transcript; of an agent's beside the sessions, the one that its entries name.
SESSION_SQL = """COALESCE(t.session, (SELECT m.session FROM agent_rows m WHERE m.transcript_id = t.transcript_id))"""
# A copy of the call that is shown instead: the one whose message is charged there, or else the first by path.
PREFERRED_COPY_SQL = """SELECT 1 FROM call_rows d
            JOIN entries de ON de.entry_id = d.entry_id
            JOIN transcripts dt ON dt.transcript_id = de.transcript_id
            WHERE substr(d.call, -3) = substr(c.call, -3) AND d.call = c.call AND d.entry_id <> c.entry_id
            AND (NOT EXISTS(SELECT 1 FROM charges WHERE message = de.message AND transcript_id = dt.transcript_id),
                dt.path, de.line)
              < (NOT EXISTS(SELECT 1 FROM charges WHERE message = e.message AND transcript_id = t.transcript_id),
                t.path, e.line)"""
# ruff: noqa: S608 - statements are made of our own words
_TOOL_CASES_SQL = " ".join(f"WHEN {old!r} THEN {new!r}" for old, new in TOOL_RENAMES.items())
_CURRENT_TOOL_SQL = f"CASE k.tool {_TOOL_CASES_SQL} ELSE k.tool END"
ALL_CALLS_SQL = f"""SELECT c.call, k.tool, c.outcome, e.timestamp, r.timestamp, c.exit_code,
            COALESCE(t.session, e.session),
            {AGENT_SQL.format(row="c")}, c.started, COALESCE(p.path, p.folder), t.path, e.line, r.line, c.entry_id,
            c.result_entry_id, {_CURRENT_TOOL_SQL}, c.duration, s.model, s.version
        FROM call_rows c
        JOIN tools k ON k.tool_id = c.tool_id
        JOIN call_sources s ON s.source_id = c.source_id
        JOIN entries e ON e.entry_id = c.entry_id
        JOIN transcripts t ON t.transcript_id = e.transcript_id
        JOIN projects p ON p.project_id = t.project_id
        LEFT JOIN entries r ON r.entry_id = c.result_entry_id"""
"""Selects the columns of the view `calls`, including copies."""

CALLS = TableGroup(
    tables={
        "tools": """CREATE TABLE tools(
        tool_id INTEGER PRIMARY KEY, -- the tool's number
        tool TEXT NOT NULL UNIQUE -- its name
    )""",
        "call_rows": """CREATE TABLE call_rows(
        entry_id INTEGER NOT NULL, -- the last entry that contains the call
        position INTEGER NOT NULL, -- the position of the call among the blocks of the entry
        call TEXT NOT NULL, -- its id
        tool_id INTEGER NOT NULL, -- the tool
        agent TEXT, -- the agent that made it, if that is an agent inside a main transcript
        result_entry_id INTEGER, -- the entry that contains its result
        outcome TEXT, -- its outcome
        exit_code INTEGER, -- the exit code, if recorded
        moment INTEGER, -- when it was made, in seconds since 1970
        started TEXT, -- the agent that its result names
        duration INTEGER, -- milliseconds between the entries of the call and its result
        source_id INTEGER NOT NULL, -- the model and the version that made it
        PRIMARY KEY(entry_id, position)
    ) WITHOUT ROWID""",
        "call_sources": """CREATE TABLE call_sources(
        source_id INTEGER PRIMARY KEY, -- the number of this combination of model and version
        model TEXT, -- the model, as in transcripts
        version TEXT -- the version of Claude Code
    )""",
        "paths": """CREATE TABLE paths(
        path_id INTEGER PRIMARY KEY, -- the path's number
        path TEXT NOT NULL, -- the path of a file that was touched
        checksum INTEGER NOT NULL -- a checksum of the path, by which it is looked up
    )""",
        "file_rows": """CREATE TABLE file_rows(
        entry_id INTEGER NOT NULL, -- the entry of the call; without a call, the entry that reports it
        position INTEGER NOT NULL, -- the position of the call among the blocks of the entry; -1 without a call
        path_id INTEGER NOT NULL, -- the file
        how TEXT NOT NULL, -- what was done to it
        moment INTEGER, -- when it was reported, in seconds since 1970
        PRIMARY KEY(entry_id, position, path_id)
    ) WITHOUT ROWID""",
        "compaction_rows": """CREATE TABLE compaction_rows(
        transcript_id INTEGER NOT NULL, -- the transcript that contains it
        entry_id INTEGER NOT NULL, -- its entry
        kind TEXT NOT NULL, -- its kind
        trigger TEXT, -- what triggered it
        tokens_before INTEGER, -- tokens in the window before
        tokens_after INTEGER, -- tokens in the window after
        agent TEXT, -- its agent, if that is an agent inside a main transcript
        PRIMARY KEY(transcript_id, entry_id)
    ) WITHOUT ROWID""",
        "agent_rows": """CREATE TABLE agent_rows(
        transcript_id INTEGER NOT NULL, -- the transcript it is in
        agent TEXT NOT NULL, -- its id; empty for the main agent of a transcript
        session TEXT, -- the session that its first entry names
        type TEXT, -- the type that its replies name
        model TEXT, -- the model that replied most often
        entries INTEGER NOT NULL, -- how many entries
        first TEXT, -- the time of its first entry
        last TEXT, -- the time of its last entry
        side TEXT, -- the kind of side agent, according to its id or its task
        is_single_reply INTEGER NOT NULL, -- whether it consists of one reply: a warm-up, unless a call started it
        prompt BLOB, -- a hash of its task
        meta_type TEXT, -- the type that its side file names
        forked_from TEXT, -- the entry that it continues from, of a fork
        teammate TEXT, -- its name, if it is part of a team
        PRIMARY KEY(transcript_id, agent)
    ) WITHOUT ROWID""",
        "start_rows": """CREATE TABLE start_rows(
        transcript_id INTEGER NOT NULL, -- the transcript that reports it
        agent TEXT NOT NULL, -- the agent that was started
        step TEXT NOT NULL, -- what names it: meta, result, progress, result-text or notification
        call TEXT NOT NULL, -- the call that started it
        type TEXT, -- the type of agent that the call requested
        tokens INTEGER, -- the tokens that the result reports: those in the agent's window at its end
        PRIMARY KEY(transcript_id, agent, step)
    ) WITHOUT ROWID""",
        "agent_calls": """CREATE TABLE agent_calls(
        transcript_id INTEGER NOT NULL, -- the transcript that contains it
        call TEXT NOT NULL, -- a call that starts an agent
        type TEXT, -- the type of agent that it requests
        prompt BLOB, -- a hash of the task
        timestamp TEXT, -- when it was made
        uuid TEXT, -- its entry
        parent_uuid TEXT, -- the entry before
        name TEXT, -- the name of a teammate that it requests
        PRIMARY KEY(transcript_id, call)
    ) WITHOUT ROWID""",
        "open_calls": """CREATE TABLE open_calls(
        transcript_id INTEGER NOT NULL, -- the transcript of the call
        call TEXT NOT NULL, -- a call without a result in its own transcript
        PRIMARY KEY(transcript_id, call)
    ) WITHOUT ROWID""",
        "stray_results": """CREATE TABLE stray_results(
        call TEXT NOT NULL, -- a call that the transcript of the result does not contain
        transcript_id INTEGER NOT NULL, -- the transcript of the result
        entry_id INTEGER NOT NULL, -- the entry of the result
        PRIMARY KEY(call, transcript_id)
    ) WITHOUT ROWID""",
        "borrowed_results": """CREATE TABLE borrowed_results(
        entry_id INTEGER NOT NULL, -- the entry of the call
        position INTEGER NOT NULL, -- the position of the call among the blocks of the entry
        transcript_id INTEGER NOT NULL, -- another transcript of the session, which contains the result
        result_entry_id INTEGER NOT NULL, -- the entry of the result
        outcome TEXT, -- the call's outcome without that result
        PRIMARY KEY(entry_id, position)
    ) WITHOUT ROWID""",
        "todo_rows": """CREATE TABLE todo_rows(
        transcript_id INTEGER NOT NULL, -- the transcript that reports it
        list TEXT NOT NULL, -- todo or task
        agent TEXT, -- the agent that has the list, if that is an agent inside a main transcript
        position INTEGER NOT NULL, -- the position in the list, from 1
        item TEXT, -- its id
        status TEXT, -- its status
        content TEXT, -- what to do
        owner TEXT, -- the owner of a task
        blocked_by TEXT, -- the ids of the tasks that a task waits for, as JSON
        entry_id INTEGER, -- the entry that last changed it
        call TEXT -- the call that last changed it
    )""",
    },
    views={
        "calls": f"""CREATE VIEW calls( -- each call once, even if its session was copied
        call, -- its id
        tool, -- the tool
        outcome, -- ok, error, denied, interrupted or lost; NULL while it is pending
        started, -- when it was made
        ended, -- when its result was written
        exit_code, -- the exit code of a command, if recorded; usually only if it is not 0
        session, -- the session
        agent, -- the agent that made it; NULL for the main agent
        started_agent, -- the agent it started, if its result names one
        project, -- the project's path, or its folder if the path is unknown
        transcript, -- the path of the transcript
        line, -- the line number of the call
        result_line, -- the line number of its result
        entry_id, -- the entry of the call
        result_entry_id, -- the entry of its result
        current_tool, -- the tool by its current name: Read for View, Agent for Task
        duration, -- milliseconds between the entries of the call and its result
        model, -- the model that made it, as in the transcript
        version -- the version of Claude Code
    ) AS {ALL_CALLS_SQL}
        WHERE NOT EXISTS({PREFERRED_COPY_SQL})""",
        "touched": f"""CREATE VIEW touched( -- each time a file was touched
        path, -- the file
        how, -- read, write, edit, user-modified (a person changed the edit), attached, outside (by others)
        timestamp, -- when
        call, -- the call that did it; NULL for what Claude Code inserted itself
        session, -- the session
        agent, -- the agent; NULL for the main agent
        project, -- the project's path, or its folder if the path is unknown
        transcript, -- the path of the transcript that reports it
        line, -- the line number, of the call's result
        entry_id -- the entry that reports it
    ) AS SELECT p.path, f.how, e.timestamp, c.call, {SESSION_SQL}, {AGENT_SQL.format(row="c")},
            COALESCE(o.path, o.folder), t.path, e.line, e.entry_id
        FROM file_rows f
        JOIN paths p ON p.path_id = f.path_id
        LEFT JOIN call_rows c ON c.entry_id = f.entry_id AND c.position = f.position
        JOIN entries e ON e.entry_id = COALESCE(c.result_entry_id, f.entry_id)
        JOIN transcripts t ON t.transcript_id = e.transcript_id
        JOIN projects o ON o.project_id = t.project_id""",
        "files": """CREATE VIEW files( -- the files that each session touched
        path, -- the file
        session, -- the session
        project, -- the project's path, or its folder if the path is unknown
        reads, -- how often it was read or attached
        writes, -- how often it was written or edited
        first, -- when it was first touched
        last -- when it was last touched
    ) AS SELECT path, session, MIN(project), SUM(how IN ('read', 'attached')),
            SUM(how IN ('write', 'edit', 'user-modified')), MIN(timestamp), MAX(timestamp)
        FROM touched GROUP BY path, session""",
        "compactions": f"""CREATE VIEW compactions( -- where a conversation was compacted
        kind, -- boundary, summary (older versions) or micro (old results were blanked)
        trigger, -- auto or manual, if recorded
        tokens_before, -- tokens in the window before
        tokens_after, -- tokens in the window after
        timestamp, -- when
        session, -- the session
        agent, -- the agent; NULL for the main agent
        project, -- the project's path, or its folder if the path is unknown
        transcript, -- the path of the transcript
        line, -- the line number
        entry_id -- its entry
    ) AS SELECT c.kind, c.trigger, c.tokens_before, c.tokens_after, e.timestamp, {SESSION_SQL},
    {AGENT_SQL.format(row="c")},
            COALESCE(p.path, p.folder), t.path, e.line, c.entry_id
        FROM compaction_rows c
        JOIN entries e ON e.entry_id = c.entry_id
        JOIN transcripts t ON t.transcript_id = c.transcript_id
        JOIN projects p ON p.project_id = t.project_id""",
        "agents": f"""CREATE VIEW agents( -- subagents
        agent, -- its id; derived from its first entry if an agent inside a main transcript has none
        session, -- the session
        type, -- its type, from its side file, the call that started it or its replies
        call, -- the call that started it, if a result or progress names it
        model, -- the model that replied most often
        entries, -- how many entries
        first, -- the time of its first entry
        last, -- the time of its last entry
        project, -- the project's path, or its folder if the path is unknown
        transcript, -- the path of the transcript
        transcript_id, -- the transcript's number
        side -- if Claude Code runs it itself: compact, prompt-suggestion, side-question, memory or warm-up
    ) AS SELECT a.agent, COALESCE(t.session, a.session),
            {AGENT_TYPE_SQL},
            (SELECT s.call FROM start_rows s WHERE s.agent = a.agent ORDER BY {STEP_ORDER_SQL}, s.call LIMIT 1),
            a.model, a.entries, a.first, a.last, COALESCE(p.path, p.folder), t.path, t.transcript_id, {SIDE_SQL}
        FROM agent_rows a
        JOIN transcripts t ON t.transcript_id = a.transcript_id
        JOIN projects p ON p.project_id = t.project_id
        WHERE {IS_AGENT_SQL.format(transcript="t")}""",
        "todos": f"""CREATE VIEW todos( -- todo and task lists in their latest state
        session, -- the session
        list, -- todo or task
        agent, -- the agent that has the todo; NULL for the main agent, and for tasks, which belong to the session
        position, -- the position in the list, from 1
        id, -- the item's id
        status, -- pending, in_progress, completed and so on
        content, -- what to do
        owner, -- the owner of a task
        blocked_by, -- the ids of the tasks that a task waits for, as JSON
        timestamp, -- when it was last written
        transcript, -- the path of the transcript
        line -- the line number
    ) AS SELECT {SESSION_SQL}, r.list, CASE r.list WHEN 'todo' THEN {AGENT_SQL.format(row="r")} END, r.position, r.item,
            r.status, COALESCE(r.content, (SELECT o.content FROM transcripts ot JOIN todo_rows o USING(transcript_id)
                WHERE ot.session = t.session AND o.list = 'task' AND o.item = r.item AND o.content IS NOT NULL)),
            r.owner, r.blocked_by, e.timestamp, t.path, e.line
        FROM todo_rows r
        JOIN transcripts t ON t.transcript_id = r.transcript_id
        LEFT JOIN entries e ON e.entry_id = r.entry_id
        WHERE CASE r.list WHEN 'todo' THEN t.agent IS NULL OR NOT EXISTS(
                SELECT 1 FROM call_rows c
                JOIN entries ce ON ce.entry_id = c.entry_id
                JOIN transcripts ct ON ct.transcript_id = ce.transcript_id
                WHERE substr(c.call, -3) = substr(r.call, -3) AND c.call = r.call AND ct.session = t.session
                AND ct.agent IS NULL)
            ELSE NOT EXISTS(
                SELECT 1 FROM transcripts ot JOIN todo_rows o ON o.transcript_id = ot.transcript_id
                JOIN entries oe ON oe.entry_id = o.entry_id
                WHERE ot.session = t.session AND o.list = 'task' AND o.item = r.item
                AND ot.transcript_id <> t.transcript_id
                AND (oe.timestamp, ot.path) > (e.timestamp, t.path)) END""",
    },
    indexes=(
        "CREATE INDEX paths_by_checksum ON paths(checksum)",
        """CREATE TRIGGER give_back_results AFTER DELETE ON borrowed_results BEGIN
            DELETE FROM file_rows WHERE entry_id = old.entry_id AND position = old.position AND EXISTS(
                SELECT 1 FROM call_rows c WHERE c.entry_id = old.entry_id AND c.position = old.position
                AND c.result_entry_id = old.result_entry_id);
            DELETE FROM outcome_rows WHERE entry_id = old.entry_id AND position = old.position;
            DELETE FROM line_rows WHERE entry_id = old.entry_id AND position = old.position;
            DELETE FROM program_rows WHERE entry_id = old.entry_id AND position = old.position;
            DELETE FROM outcome_transcripts
                WHERE transcript_id = (SELECT e.transcript_id FROM entries e WHERE e.entry_id = old.entry_id);
            UPDATE call_rows SET (result_entry_id, outcome, exit_code, started, duration)
                = (NULL, old.outcome, NULL, NULL, NULL)
                WHERE entry_id = old.entry_id AND position = old.position AND result_entry_id = old.result_entry_id;
        END""",
    ),
    late_indexes=(
        "CREATE INDEX call_rows_by_call ON call_rows(substr(call, -3))",
        "CREATE INDEX call_rows_by_tool ON call_rows(tool_id, moment)",
        "CREATE INDEX call_rows_by_outcome ON call_rows(outcome, moment) WHERE outcome IS NOT 'ok'",
        "CREATE INDEX file_rows_by_path ON file_rows(path_id)",
        "CREATE INDEX file_rows_by_moment ON file_rows(moment)",
        "CREATE INDEX agent_rows_by_session ON agent_rows(session)",
        "CREATE INDEX start_rows_by_agent ON start_rows(agent)",
        "CREATE INDEX agent_calls_by_call ON agent_calls(call)",
        "CREATE INDEX agent_calls_by_prompt ON agent_calls(prompt)",
        "CREATE INDEX stray_results_by_transcript ON stray_results(transcript_id)",
        "CREATE INDEX borrowed_results_by_transcript ON borrowed_results(transcript_id)",
        "CREATE INDEX todo_rows_by_transcript ON todo_rows(transcript_id)",
    ),
    of_transcript=(
        *("compaction_rows", "agent_rows", "start_rows", "agent_calls", "todo_rows"),
        *("open_calls", "stray_results", "borrowed_results"),
    ),
    of_entries=("call_rows", "file_rows", "borrowed_results"),
    private=(
        *(
            "tools",
            "call_rows",
            "call_sources",
            "paths",
            "file_rows",
            "compaction_rows",
            "agent_rows",
            "start_rows",
            "agent_calls",
        ),
        "todo_rows",
        *("open_calls", "stray_results", "borrowed_results"),
    ),
)


# A commit, push, pull request or test run with its call. What a copy of a session repeats is listed once.
_OUTCOME_COLUMNS_SQL = f"""COALESCE(r.timestamp, e.timestamp), {SESSION_SQL}, {AGENT_SQL.format(row="c")},
            COALESCE(p.path, p.folder), s.model, c.call, x.path, COALESCE(r.line, e.line),
            COALESCE(r.entry_id, e.entry_id), o.evidence"""
OUTCOME_JOINS_SQL = """FROM outcome_rows o
        LEFT JOIN call_rows c ON c.entry_id = o.entry_id AND c.position = o.position
        LEFT JOIN call_sources s ON s.source_id = c.source_id
        JOIN entries e ON e.entry_id = o.entry_id
        JOIN transcripts t ON t.transcript_id = e.transcript_id
        JOIN projects p ON p.project_id = t.project_id
        LEFT JOIN entries r ON r.entry_id = c.result_entry_id
        JOIN transcripts x ON x.transcript_id = COALESCE(r.transcript_id, e.transcript_id)"""
EDIT_JOINS_SQL = """FROM line_rows l
        JOIN call_rows c ON c.entry_id = l.entry_id AND c.position = l.position
        JOIN file_rows f ON f.entry_id = l.entry_id AND f.position = l.position
        JOIN paths n ON n.path_id = f.path_id
        LEFT JOIN call_sources s ON s.source_id = c.source_id
        JOIN entries e ON e.entry_id = l.entry_id
        JOIN transcripts t ON t.transcript_id = e.transcript_id
        JOIN projects p ON p.project_id = t.project_id
        JOIN entries r ON r.entry_id = c.result_entry_id
        JOIN transcripts x ON x.transcript_id = r.transcript_id"""
_OUTCOME_NAMES_SQL = """timestamp, -- when its result was written
        session, -- the session
        agent, -- the agent; NULL for the main agent
        project, -- the project's path, or its folder if the path is unknown
        model, -- the model that made the call
        call, -- the call; NULL for what Claude Code recorded without one
        transcript, -- the path of the transcript
        line, -- the line number of the result
        entry_id, -- the entry of the result
        evidence -- how it is known"""


def _outcome_view(name: str, comment: str, columns: str, kind: str, values: str) -> str:
    """The view of one kind of outcome: columns of its own, then those that all have."""
    return f"""CREATE VIEW {name}( -- {comment}
        {columns}
        {_OUTCOME_NAMES_SQL}
    ) AS SELECT {values}, {_OUTCOME_COLUMNS_SQL}
        {OUTCOME_JOINS_SQL} WHERE o.kind = '{kind}' AND o.action <> 'autosquashed'
            AND (c.call IS NULL OR NOT EXISTS({PREFERRED_COPY_SQL}))"""


OUTCOMES = TableGroup(
    tables={
        "outcome_transcripts": """CREATE TABLE outcome_transcripts(
        transcript_id INTEGER PRIMARY KEY -- a transcript whose outcomes are stored as they are now
    )""",
        "outcome_rows": """CREATE TABLE outcome_rows(
        entry_id INTEGER NOT NULL, -- the entry of the call; without a call, the entry that records it
        position INTEGER NOT NULL, -- the position of the call among the blocks of the entry; -1 without a call
        number INTEGER NOT NULL, -- the number among the outcomes of the call
        kind TEXT NOT NULL, -- commit, pull-request, push or test
        action TEXT NOT NULL, -- what was done, or the test runner
        label TEXT NOT NULL, -- the subject, the remote or the command
        ref TEXT, -- the id of a commit, or the address of a pull request
        branch TEXT, -- the branch
        evidence TEXT NOT NULL, -- how it is known
        files INTEGER, -- files that a commit changed, as git printed
        added INTEGER, -- lines that a commit added, as git printed
        removed INTEGER, -- lines that a commit removed, as git printed
        passed INTEGER, -- tests that passed
        failed INTEGER, -- tests that failed
        skipped INTEGER, -- tests that were skipped
        is_ok INTEGER, -- whether a test run succeeded; NULL if that is not known
        PRIMARY KEY(entry_id, position, number)
    ) WITHOUT ROWID""",
        "line_rows": """CREATE TABLE line_rows(
        entry_id INTEGER NOT NULL, -- the entry of the call that edited a file
        position INTEGER NOT NULL, -- the position of the call among the blocks of the entry
        added INTEGER NOT NULL, -- how many lines it added
        removed INTEGER NOT NULL, -- how many lines it removed
        added_sums BLOB NOT NULL, -- a checksum of each added line
        removed_sums BLOB NOT NULL, -- a checksum of each removed line
        is_whole INTEGER NOT NULL, -- whether the added lines are the whole file
        PRIMARY KEY(entry_id, position)
    ) WITHOUT ROWID""",
        "programs": """CREATE TABLE programs(
        program_id INTEGER PRIMARY KEY, -- the program's number
        program TEXT NOT NULL UNIQUE -- its name, without folder
    )""",
        "program_rows": """CREATE TABLE program_rows(
        entry_id INTEGER NOT NULL, -- the entry of a call that ran a shell command
        position INTEGER NOT NULL, -- the position of the call among the blocks of the entry
        program_id INTEGER NOT NULL, -- a program that the command runs
        PRIMARY KEY(entry_id, position, program_id)
    ) WITHOUT ROWID""",
    },
    views={
        "commits": _outcome_view(
            "commits",
            "commits that sessions made",
            """sha, -- the id as git printed it; NULL if it did not
        subject, -- the first line of the message
        branch, -- the branch
        action, -- committed, amended, merged, rebased, cherry-picked, reverted or applied
        files, -- how many files it changed, as git printed
        added, -- how many lines it added, as git printed
        removed, -- how many lines it removed, as git printed""",
            "commit",
            "o.ref, o.label, o.branch, o.action, o.files, o.added, o.removed",
        ),
        "pull_requests": _outcome_view(
            "pull_requests",
            "pull and merge requests that sessions worked on, once for each action",
            """url, -- its address, or #12 if only the number is known
        action, -- created, merged, linked (Claude Code recorded it), commented and so on""",
            "pull-request",
            "o.ref, o.action",
        ),
        "pushes": _outcome_view(
            "pushes",
            "branches and tags that sessions pushed",
            """remote, -- the address of the repository
        branch, -- the branch or tag
        sha, -- the id of the pushed commit, as git printed it
        action, -- pushed, forced, new branch or new tag""",
            "push",
            "o.label, o.branch, o.ref, o.action",
        ),
        "test_runs": _outcome_view(
            "test_runs",
            "test runs and their results",
            """runner, -- the test runner, or the script that ran the tests
        command, -- the command
        passed, -- how many tests passed; NULL if the report was not recognised
        failed, -- how many tests failed
        skipped, -- how many tests were skipped
        is_ok, -- whether the run succeeded; NULL if that is not known
        exit_code, -- the exit code of the command, if recorded""",
            "test",
            "o.action, o.label, o.passed, o.failed, o.skipped, o.is_ok, c.exit_code",
        ),
        "edits": f"""CREATE VIEW edits( -- edits of files with the lines they added and removed
        path, -- the file
        how, -- write, edit or user-modified (a person changed the edit)
        added, -- how many lines it added
        removed, -- how many lines it removed
        timestamp, -- when its result was written
        session, -- the session
        agent, -- the agent; NULL for the main agent
        project, -- the project's path, or its folder if the path is unknown
        model, -- the model that made the call
        call, -- the call
        transcript, -- the path of the transcript
        line, -- the line number of the result
        entry_id -- the entry of the result
    ) AS SELECT n.path, f.how, l.added, l.removed, r.timestamp, {SESSION_SQL}, {AGENT_SQL.format(row="c")},
            COALESCE(p.path, p.folder), s.model, c.call, x.path, r.line, r.entry_id
        {EDIT_JOINS_SQL}
        WHERE NOT EXISTS({PREFERRED_COPY_SQL})""",
    },
    of_transcript=("outcome_transcripts",),
    of_entries=("outcome_rows", "line_rows", "program_rows"),
    private=("outcome_transcripts", "outcome_rows", "line_rows", "programs", "program_rows"),
)


__all__ = ["FIELDS", "INDEXES", "LATE_INDEXES", "OF_ENTRIES", "OF_TRANSCRIPT", "PRIVATE", "TABLES", "VERSION", "VIEWS"]

_GROUPS = (PLACES, ENTRIES, SPENDING, SESSIONS, CALLS, OUTCOMES, INSIGHTS, VOCABULARY)

TABLES = {name: statement for group in _GROUPS for name, statement in group.tables.items()}
"""The statement that creates each table. The rowid of `text` is the number of the entry."""

VIEWS = {name: statement for group in _GROUPS for name, statement in group.views.items()}
"""The statement that creates each view. Views have the names of the glossary."""

INDEXES = tuple(statement for group in _GROUPS for statement in group.indexes)
LATE_INDEXES = tuple(statement for group in _GROUPS for statement in group.late_indexes)
"""The indexes that a new file gets when the rows of all transcripts are written."""

OF_TRANSCRIPT = tuple(name for group in _GROUPS for name in group.of_transcript)
"""The tables whose rows belong to a transcript, by `transcript_id`."""

OF_ENTRIES = tuple(name for group in _GROUPS for name in group.of_entries)
"""The tables whose rows belong to an entry, by `entry_id`."""

PRIVATE = frozenset(name for group in _GROUPS for name in group.private)
"""The tables that only the refresh needs."""
