"""Summaries of sessions and statistics of transcripts, from files or from the index.

`list_sessions` returns a `SessionSummary` per session and `build_overview` an `Overview` of all homes. Both take a
`TranscriptSource`: `FileSource` reads the transcripts, the index answers from its tables, and the results are equal.
What a session's agents, start, end, title and entries are is decided here, once.

`SummaryFold` and `StatsFold` compute summary and statistics entry by entry, so that the index can store their state and
continue. `read_session_titles` reads titles only. `find_running_sessions` uses the registry of live processes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from threadline.lazy import export_lazily

if TYPE_CHECKING:
    from threadline.summary.fold import SummaryFold, SummaryRow, fold_entries, read_session_titles, summarize_transcript
    from threadline.summary.overview import Overview, build_overview
    from threadline.summary.sessions import (
        AgentHead,
        SessionFilter,
        SessionList,
        SessionSummary,
        find_running_sessions,
        list_sessions,
        read_agent_head,
        read_last_timestamp,
    )
    from threadline.summary.transcripts import (
        StatsFold,
        SummaryState,
        TranscriptStats,
        TranscriptSummary,
        count_started_agents,
        read_stats,
        summary_from_state,
        title_from_state,
    )

export_lazily(
    __name__,
    {
        "fold": ["SummaryFold", "SummaryRow", "fold_entries", "read_session_titles", "summarize_transcript"],
        "overview": ["Overview", "build_overview"],
        "sessions": [
            "AgentHead",
            "SessionFilter",
            "SessionList",
            "SessionSummary",
            "find_running_sessions",
            "list_sessions",
            "read_agent_head",
            "read_last_timestamp",
        ],
        "transcripts": [
            "StatsFold",
            "SummaryState",
            "TranscriptStats",
            "TranscriptSummary",
            "count_started_agents",
            "read_stats",
            "summary_from_state",
            "title_from_state",
        ],
    },
)
