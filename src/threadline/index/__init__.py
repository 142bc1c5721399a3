"""The index of an archive: what its entries say, made findable, and nothing that the transcripts do not say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from threadline.lazy import lazy_exports

if TYPE_CHECKING:
    from threadline.index.calls import read_call_input
    from threadline.index.charges import recent_usage
    from threadline.index.freshness import (
        FreshIndex,
        IndexStatus,
        index_status,
        indexed_homes,
        open_fresh,
        problems_by_home,
        read_generation,
    )
    from threadline.index.ledger import IndexedLedger
    from threadline.index.listings import CallFilter, FileTouch, list_calls, list_files, list_touches
    from threadline.index.queries import (
        Activity,
        ListedProblem,
        SessionFacts,
        count_activity,
        count_calls,
        count_problems,
        count_tools,
        find_session_facts,
        find_titles,
        find_transcript_naming,
        list_problems,
        message_amounts,
        total_size,
        transcript_owner,
    )
    from threadline.index.refresh import RefreshResult, rebuild_index, refresh_index
    from threadline.index.schema import FIELDS, PRIVATE, TABLES, VIEWS
    from threadline.index.sql import QueryResult, error_position, open_for_sql, timeout_message, unique_names
    from threadline.index.store import cache_folder, index_path, open_read_only
    from threadline.index.summaries import IndexedSummaries, SessionBrief, list_sessions
    from threadline.index.text import extract_fields
    from threadline.index.vocabulary import Vocabulary, normalize_text, strip_escapes, tokenize

__getattr__ = lazy_exports(
    __name__,
    {
        "calls": ["read_call_input"],
        "charges": ["recent_usage"],
        "freshness": [
            "FreshIndex",
            "IndexStatus",
            "index_status",
            "indexed_homes",
            "open_fresh",
            "problems_by_home",
            "read_generation",
        ],
        "ledger": ["IndexedLedger"],
        "listings": ["CallFilter", "FileTouch", "list_calls", "list_files", "list_touches"],
        "queries": [
            "Activity",
            "ListedProblem",
            "SessionFacts",
            "count_activity",
            "count_calls",
            "count_problems",
            "count_tools",
            "find_session_facts",
            "find_titles",
            "find_transcript_naming",
            "list_problems",
            "message_amounts",
            "total_size",
            "transcript_owner",
        ],
        "refresh": ["RefreshResult", "rebuild_index", "refresh_index"],
        "schema": ["FIELDS", "PRIVATE", "TABLES", "VIEWS"],
        "sql": ["QueryResult", "error_position", "open_for_sql", "timeout_message", "unique_names"],
        "store": ["cache_folder", "index_path", "open_read_only"],
        "summaries": ["IndexedSummaries", "SessionBrief", "list_sessions"],
        "text": ["extract_fields"],
        "vocabulary": ["Vocabulary", "normalize_text", "strip_escapes", "tokenize"],
    },
)
