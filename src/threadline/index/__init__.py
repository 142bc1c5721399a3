"""The index: a SQLite file with rows and full text derived from the transcripts, which can be deleted and rebuilt.

`Index` is the interface. `Index.open_fresh` opens the index of some homes, after indexing what changed since the last
time; `Index.open` opens it as it is. Every question is a method: sessions, calls, files, totals, entries, full text,
the user's own SQL. No other package holds a connection or contains SQL.

A refresh works transcript by transcript: `plan` decides what to read, `rows` turns entries into rows, `refresh` writes
them, and `charges` prices what was used. `schema` documents the tables. Times and paths are stored in a compact form;
`store` converts them. `insight` has the tables that are filled on request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from threadline.lazy import export_lazily

if TYPE_CHECKING:
    from threadline.index.activity import TranscriptActivity
    from threadline.index.columns import (
        TIME_COLUMNS,
        ColumnKind,
        declared_kind,
        schema_columns,
        table_descriptions,
    )
    from threadline.index.home_rows import HomeRows, RowReader, open_row_reader
    from threadline.index.index import Index, IndexStatus
    from threadline.index.insight.outcomes import TranscriptOutcomes
    from threadline.index.insight.queries import UnstoredTranscript
    from threadline.index.insight.stored_insights import NewInsight, StoredSession
    from threadline.index.listings import AgentList, CallFilter, CallList, EditKey, FileTouch, ListedAgent
    from threadline.index.purge import remove_stale_indexes
    from threadline.index.queries import (
        NO_LABELS,
        Activity,
        EntryFacts,
        EntryFilter,
        EntryRow,
        ListedProblem,
        ProblemList,
        SessionFacts,
        SessionLabels,
    )
    from threadline.index.refresh import RefreshResult, rebuild_index, refresh_index
    from threadline.index.rows.calls import read_call_input
    from threadline.index.schema import PRIVATE, TABLES, VIEWS
    from threadline.index.sql import IsolatedResult, QueryResult, error_position, timeout_message, unique_names
    from threadline.index.store import FIELDS, DamagedIndex, index_path, list_indexes, open_read_only
    from threadline.index.summaries import SessionBrief
    from threadline.index.text import extract_fields
    from threadline.index.vocabulary import Vocabulary, normalize_text, strip_escapes, tokenize

export_lazily(
    __name__,
    {
        "activity": ["TranscriptActivity"],
        "rows.calls": ["read_call_input"],
        "columns": [
            "ColumnKind",
            "TIME_COLUMNS",
            "declared_kind",
            "schema_columns",
            "table_descriptions",
        ],
        "home_rows": ["HomeRows", "RowReader", "open_row_reader"],
        "index": ["Index", "IndexStatus"],
        "insight.stored_insights": ["NewInsight", "StoredSession"],
        "insight.queries": ["UnstoredTranscript"],
        "insight.outcomes": ["TranscriptOutcomes"],
        "listings": ["AgentList", "CallFilter", "CallList", "EditKey", "FileTouch", "ListedAgent"],
        "purge": ["remove_stale_indexes"],
        "queries": [
            "Activity",
            "EntryFacts",
            "EntryFilter",
            "EntryRow",
            "ListedProblem",
            "NO_LABELS",
            "ProblemList",
            "SessionFacts",
            "SessionLabels",
        ],
        "refresh": ["RefreshResult", "rebuild_index", "refresh_index"],
        "schema": ["PRIVATE", "TABLES", "VIEWS"],
        "sql": ["IsolatedResult", "QueryResult", "error_position", "timeout_message", "unique_names"],
        "store": ["DamagedIndex", "FIELDS", "index_path", "list_indexes", "open_read_only"],
        "summaries": ["SessionBrief"],
        "text": ["extract_fields"],
        "vocabulary": ["Vocabulary", "normalize_text", "strip_escapes", "tokenize"],
    },
)
