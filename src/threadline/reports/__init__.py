"""Reports over whole homes.

`read_ledger` reads homes into a ledger, and `build_usage_report` groups it for `usage`; `ccusage_report` has the JSON
format of ccusage. `reconcile` compares Claude Code's own totals with the ledger. `build_receipt` explains charges line
by line; `query_message`, `query_day` and others select them. `read_recent_usage` serves the status line.

`examine_homes` reports problems and unknown data, `find_failures` failed calls and requests, `scan_files` secrets,
`PromptHistory` typed prompts. Reports return values and records; how they look is decided in `render` and `cli`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from threadline.lazy import export_lazily

if TYPE_CHECKING:
    from threadline.reports.ccusage import ccusage_blocks, ccusage_report
    from threadline.reports.doctor import Examination, UnlistedCount, count_unlisted, examine_homes
    from threadline.reports.failures import (
        FAILURES,
        Failure,
        FailureFilter,
        FailureList,
        find_failures,
        session_failures,
    )
    from threadline.reports.history import PromptFilter, PromptHistory, TypedPrompt
    from threadline.reports.ledger import build_ledger, read_ledger
    from threadline.reports.prompts import PromptList, SessionPrompt, find_prompts
    from threadline.reports.receipts import (
        ReceiptQuery,
        build_receipt,
        find_messages_of_request,
        match_message_ids,
        query_day,
        query_line,
        query_message,
        query_transcript,
        sort_by_amount,
    )
    from threadline.reports.reconciliation import reconcile, reconciliation_record, reported_session_record
    from threadline.reports.secrets import Exposure, ScanResult, SecretFilter, files_to_scan, scan_files
    from threadline.reports.session_keys import thread_key, turn_key
    from threadline.reports.statusline import (
        RecentUsage,
        SessionRef,
        homes_including,
        is_main_request,
        read_recent_usage,
        resolve_session,
    )
    from threadline.reports.usage import (
        UsageReport,
        add_session_key,
        agents_only_note,
        build_usage_report,
        find_deleted_days,
        is_day_within,
        price_digests,
        row_as_json,
        sessions_without_main,
        usage_document,
        usage_notes,
    )

export_lazily(
    __name__,
    {
        "ccusage": ["ccusage_blocks", "ccusage_report"],
        "doctor": ["Examination", "UnlistedCount", "count_unlisted", "examine_homes"],
        "failures": ["FAILURES", "Failure", "FailureFilter", "FailureList", "find_failures", "session_failures"],
        "history": ["PromptFilter", "PromptHistory", "TypedPrompt"],
        "ledger": ["build_ledger", "read_ledger"],
        "prompts": ["PromptList", "SessionPrompt", "find_prompts"],
        "receipts": [
            "ReceiptQuery",
            "build_receipt",
            "find_messages_of_request",
            "match_message_ids",
            "query_day",
            "query_line",
            "query_message",
            "query_transcript",
            "sort_by_amount",
        ],
        "reconciliation": ["reconcile", "reconciliation_record", "reported_session_record"],
        "secrets": ["Exposure", "ScanResult", "SecretFilter", "files_to_scan", "scan_files"],
        "session_keys": ["thread_key", "turn_key"],
        "statusline": [
            "RecentUsage",
            "SessionRef",
            "homes_including",
            "is_main_request",
            "read_recent_usage",
            "resolve_session",
        ],
        "usage": [
            "UsageReport",
            "add_session_key",
            "agents_only_note",
            "build_usage_report",
            "find_deleted_days",
            "is_day_within",
            "price_digests",
            "row_as_json",
            "sessions_without_main",
            "usage_document",
            "usage_notes",
        ],
    },
)
