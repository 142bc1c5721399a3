"""Tables of what agents did: calls, files touched, todos, compactions, and the agents themselves."""

from __future__ import annotations

from threadline.index.tables.table import Topic

# The agent whose row it is: one inside a main transcript, as long as there is a main agent beside it, or the file's.
AGENT = """CASE WHEN {row}.agent IS NULL THEN t.agent
            WHEN EXISTS(SELECT 1 FROM agent_rows m WHERE m.transcript_id = t.transcript_id AND m.agent = '')
            THEN {row}.agent END"""
# The session of a transcript; of an agent's beside the sessions, the one that its entries name.
SESSION = """COALESCE(t.session, (SELECT m.session FROM agent_rows m WHERE m.transcript_id = t.transcript_id))"""
# A copy of the call that is shown instead: the one whose message is charged there, or else the first by path.
ORIGINAL = """SELECT 1 FROM call_rows d
            JOIN entries de ON de.entry_id = d.entry_id
            JOIN transcripts dt ON dt.transcript_id = de.transcript_id
            WHERE substr(d.call, -3) = substr(c.call, -3) AND d.call = c.call AND d.entry_id <> c.entry_id
            AND (NOT EXISTS(SELECT 1 FROM charges WHERE message = de.message AND transcript_id = dt.transcript_id),
                dt.path, de.line)
              < (NOT EXISTS(SELECT 1 FROM charges WHERE message = e.message AND transcript_id = t.transcript_id),
                t.path, e.line)"""
# ruff: noqa: S608 - statements are made of our own words
_STEPS = "CASE s.step WHEN 'meta' THEN 0 WHEN 'result' THEN 1 WHEN 'progress' THEN 2 ELSE 3 END"

CALLS = Topic(
    tables={
        "tools": """CREATE TABLE tools(
        tool_id INTEGER PRIMARY KEY, -- the tool's number
        tool TEXT NOT NULL UNIQUE -- its name
    )""",
        "call_rows": """CREATE TABLE call_rows(
        entry_id INTEGER NOT NULL, -- the last entry that holds its use
        position INTEGER NOT NULL, -- of the use among the blocks of the entry
        call TEXT NOT NULL, -- its id
        tool_id INTEGER NOT NULL, -- the tool
        agent TEXT, -- who made it, where that is an agent inside a main transcript
        result_entry_id INTEGER, -- the entry that holds its result
        outcome TEXT, -- how it ended
        exit_code INTEGER, -- that is told
        moment INTEGER, -- when it was made, in seconds since 1970
        started TEXT, -- the agent that its result names
        PRIMARY KEY(entry_id, position)
    ) WITHOUT ROWID""",
        "paths": """CREATE TABLE paths(
        path_id INTEGER PRIMARY KEY, -- the path's number
        path TEXT NOT NULL, -- of a file that was touched
        checksum INTEGER NOT NULL -- of the path: it is found by that
    )""",
        "file_rows": """CREATE TABLE file_rows(
        entry_id INTEGER NOT NULL, -- the entry of the call's use, or the one that tells it where no call did it
        position INTEGER NOT NULL, -- of the use among the blocks of the entry; -1 where no call did it
        path_id INTEGER NOT NULL, -- the file
        how TEXT NOT NULL, -- what was done to it
        moment INTEGER, -- when that is told, in seconds since 1970
        PRIMARY KEY(entry_id, position, path_id)
    ) WITHOUT ROWID""",
        "compaction_rows": """CREATE TABLE compaction_rows(
        transcript_id INTEGER NOT NULL, -- the transcript that holds it
        entry_id INTEGER NOT NULL, -- its entry
        kind TEXT NOT NULL, -- its kind
        trigger TEXT, -- what set it off
        tokens_before INTEGER, -- in the window
        tokens_after INTEGER, -- the same
        agent TEXT, -- whose it is, where that is an agent inside a main transcript
        PRIMARY KEY(transcript_id, entry_id)
    ) WITHOUT ROWID""",
        "agent_rows": """CREATE TABLE agent_rows(
        transcript_id INTEGER NOT NULL, -- the transcript that it is in
        agent TEXT NOT NULL, -- its id; empty for the main agent of a transcript
        session TEXT, -- that its first entry names
        type TEXT, -- that its replies are put down to
        model TEXT, -- the one that answered most often
        entries INTEGER NOT NULL, -- how many
        first TEXT, -- the first time that they tell
        last TEXT, -- the last one
        PRIMARY KEY(transcript_id, agent)
    ) WITHOUT ROWID""",
        "start_rows": """CREATE TABLE start_rows(
        transcript_id INTEGER NOT NULL, -- the transcript that tells it
        agent TEXT NOT NULL, -- the agent that was started
        step TEXT NOT NULL, -- what names it: meta, result, progress or result-text
        call TEXT NOT NULL, -- the call that started it
        type TEXT, -- the type of agent that the call asked for
        PRIMARY KEY(transcript_id, agent, step)
    ) WITHOUT ROWID""",
        "todo_rows": """CREATE TABLE todo_rows(
        transcript_id INTEGER NOT NULL, -- the transcript that tells it
        list TEXT NOT NULL, -- todo or task
        agent TEXT, -- whose list it is, where that is an agent inside a main transcript
        position INTEGER NOT NULL, -- in the list, from 1
        item TEXT, -- its id
        status TEXT, -- how it stands
        content TEXT, -- what is to be done
        owner TEXT, -- of a task
        blocked_by TEXT, -- of a task: ids of others, as JSON
        entry_id INTEGER, -- where it was told last
        call TEXT -- the call that told it
    )""",
    },
    views={
        "calls": f"""CREATE VIEW calls( -- each call once, whatever copies of its session there are
        call, -- its id
        tool, -- the tool
        outcome, -- ok, error, denied, interrupted or lost; NULL while it is pending
        started, -- when it was made
        ended, -- when its result was written
        exit_code, -- of a command, where it is told: as a rule only one that is not 0
        session, -- the session
        agent, -- the agent that made it; NULL for the main one
        started_agent, -- the agent that it started, where its result names one
        project, -- the project's path, or else its folder
        transcript, -- where it stands
        line, -- the line of its use
        result_line, -- the line of its result
        entry_id, -- the entry of its use
        result_entry_id -- the entry of its result
    ) AS SELECT c.call, k.tool, c.outcome, e.timestamp, r.timestamp, c.exit_code, COALESCE(e.session, t.session),
            {AGENT.format(row="c")}, c.started, COALESCE(p.path, p.folder), t.path, e.line, r.line, c.entry_id,
            c.result_entry_id
        FROM call_rows c
        JOIN tools k ON k.tool_id = c.tool_id
        JOIN entries e ON e.entry_id = c.entry_id
        JOIN transcripts t ON t.transcript_id = e.transcript_id
        JOIN projects p ON p.project_id = t.project_id
        LEFT JOIN entries r ON r.entry_id = c.result_entry_id
        WHERE NOT EXISTS({ORIGINAL})""",
        "touched": f"""CREATE VIEW touched( -- each time that a file was touched
        path, -- the file
        how, -- read, write, edit, user-modified (a person changed the edit), attached, outside (changed by others)
        timestamp, -- when
        call, -- the call that did it; NULL for what the program put in
        session, -- the session
        agent, -- the agent; NULL for the main one
        project, -- the project's path, or else its folder
        transcript, -- where it is told
        line, -- the line there: of the call's result
        entry_id -- that entry
    ) AS SELECT p.path, f.how, e.timestamp, c.call, {SESSION}, {AGENT.format(row="c")},
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
        project, -- the project's path, or else its folder
        reads, -- how often it was read, or put before the model
        writes, -- how often it was written or edited
        first, -- when it was touched first
        last -- when it was touched last
    ) AS SELECT path, session, MIN(project), SUM(how IN ('read', 'attached')),
            SUM(how IN ('write', 'edit', 'user-modified')), MIN(timestamp), MAX(timestamp)
        FROM touched GROUP BY path, session""",
        "compactions": f"""CREATE VIEW compactions( -- where a conversation was made smaller
        kind, -- boundary, summary (older versions) or micro (old results were blanked)
        trigger, -- auto or manual, where it is told
        tokens_before, -- in the window
        tokens_after, -- the same
        timestamp, -- when
        session, -- the session
        agent, -- the agent; NULL for the main one
        project, -- the project's path, or else its folder
        transcript, -- where it stands
        line, -- the line there
        entry_id -- its entry
    ) AS SELECT c.kind, c.trigger, c.tokens_before, c.tokens_after, e.timestamp, {SESSION}, {AGENT.format(row="c")},
            COALESCE(p.path, p.folder), t.path, e.line, c.entry_id
        FROM compaction_rows c
        JOIN entries e ON e.entry_id = c.entry_id
        JOIN transcripts t ON t.transcript_id = c.transcript_id
        JOIN projects p ON p.project_id = t.project_id""",
        "agents": f"""CREATE VIEW agents( -- the agents beside the main ones
        agent, -- its id; of one inside a main transcript that has none, made from its first entry's
        session, -- the session
        type, -- its type, as the call that started it asks for, or as its replies are put down to
        call, -- the call that started it, where a result or progress names it
        model, -- the one that answered most often
        entries, -- how many
        first, -- the first time that they tell
        last, -- the last one
        project, -- the project's path, or else its folder
        transcript, -- where it lies
        transcript_id -- the transcript's number
    ) AS SELECT a.agent, COALESCE(t.session, a.session),
            COALESCE((SELECT s.type FROM start_rows s WHERE s.agent = a.agent AND s.type IS NOT NULL
                ORDER BY {_STEPS}, s.call LIMIT 1), a.type),
            (SELECT s.call FROM start_rows s WHERE s.agent = a.agent ORDER BY {_STEPS}, s.call LIMIT 1),
            a.model, a.entries, a.first, a.last, COALESCE(p.path, p.folder), t.path, t.transcript_id
        FROM agent_rows a
        JOIN transcripts t ON t.transcript_id = a.transcript_id
        JOIN projects p ON p.project_id = t.project_id
        WHERE a.agent <> '' AND (t.kind <> 'main'
            OR EXISTS(SELECT 1 FROM agent_rows m WHERE m.transcript_id = t.transcript_id AND m.agent = ''))""",
        "todos": f"""CREATE VIEW todos( -- todo and task lists, as they stood last
        session, -- the session
        list, -- todo or task
        agent, -- whose todos they are; NULL for the main agent, and for tasks, which are the session's
        position, -- in the list, from 1
        id, -- the item's id
        status, -- pending, in_progress, completed and so on
        content, -- what is to be done
        owner, -- of a task
        blocked_by, -- of a task: ids of others, as JSON
        timestamp, -- when it was told last
        transcript, -- where
        line -- the line there
    ) AS SELECT {SESSION}, r.list, CASE r.list WHEN 'todo' THEN {AGENT.format(row="r")} END, r.position, r.item,
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
        "CREATE INDEX call_rows_by_call ON call_rows(substr(call, -3))",
        "CREATE INDEX call_rows_by_tool ON call_rows(tool_id, moment)",
        "CREATE INDEX call_rows_by_outcome ON call_rows(outcome, moment) WHERE outcome IS NOT 'ok'",
        "CREATE INDEX paths_by_checksum ON paths(checksum)",
        "CREATE INDEX file_rows_by_path ON file_rows(path_id)",
        "CREATE INDEX file_rows_by_moment ON file_rows(moment)",
        "CREATE INDEX start_rows_by_agent ON start_rows(agent)",
        "CREATE INDEX todo_rows_by_transcript ON todo_rows(transcript_id)",
    ),
    of_transcript=("compaction_rows", "agent_rows", "start_rows", "todo_rows"),
    of_entries=("call_rows", "file_rows"),
    private=(
        *("tools", "call_rows", "paths", "file_rows", "compaction_rows", "agent_rows", "start_rows", "todo_rows"),
    ),
)
