"""The keep: raw bytes stored for good, since Claude Code deletes its files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from threadline.lazy import lazy_exports

if TYPE_CHECKING:
    from threadline.keep.catalogue import Catalogue, Version
    from threadline.keep.encryption import PASSPHRASE_VARIABLE
    from threadline.keep.forget import forget_session, repack
    from threadline.keep.keep import KeepResult, open_machine_cache, recognise_machine, run_keep
    from threadline.keep.kept_home import clear_kept_homes, kept_homes
    from threadline.keep.machine import (
        Machine,
        existing_keep_folder,
        has_completed_run,
        is_keep_enabled,
        machine_folder,
        missing_keep_folder,
        missing_keep_message,
        read_last_run,
        this_machine,
    )
    from threadline.keep.merge import merge_keeps
    from threadline.keep.repair import open_damaged_packs
    from threadline.keep.restore import restore_files
    from threadline.keep.retention import RetentionPeriod, own_homes, read_retention_period
    from threadline.keep.sessions import (
        FileOwners,
        KeptSession,
        find_sessions,
        is_kept_only,
        is_session_transcript,
        list_other_files,
        list_sessions,
    )
    from threadline.keep.status import (
        AtRisk,
        Difference,
        RunSummary,
        Status,
        list_differences,
        list_forgotten_in_homes,
        list_runs,
        read_status,
        select_runs,
        status_without_keep,
        stored_size,
    )
    from threadline.keep.store import Store, default_folder, is_keep
    from threadline.keep.titles import read_titles
    from threadline.keep.truncation import complete_session, longest_version, newest_version
    from threadline.keep.verify import VerifyResult, verify_keep

__getattr__ = lazy_exports(
    __name__,
    {
        "catalogue": ["Catalogue", "Version"],
        "encryption": ["PASSPHRASE_VARIABLE"],
        "forget": ["forget_session", "repack"],
        "keep": ["KeepResult", "open_machine_cache", "recognise_machine", "run_keep"],
        "kept_home": ["clear_kept_homes", "kept_homes"],
        "machine": [
            "Machine",
            "existing_keep_folder",
            "has_completed_run",
            "is_keep_enabled",
            "machine_folder",
            "missing_keep_folder",
            "missing_keep_message",
            "read_last_run",
            "this_machine",
        ],
        "merge": ["merge_keeps"],
        "repair": ["open_damaged_packs"],
        "restore": ["restore_files"],
        "retention": ["RetentionPeriod", "own_homes", "read_retention_period"],
        "sessions": [
            "FileOwners",
            "KeptSession",
            "find_sessions",
            "is_kept_only",
            "is_session_transcript",
            "list_other_files",
            "list_sessions",
        ],
        "status": [
            "AtRisk",
            "Difference",
            "RunSummary",
            "Status",
            "list_differences",
            "list_forgotten_in_homes",
            "list_runs",
            "read_status",
            "select_runs",
            "status_without_keep",
            "stored_size",
        ],
        "store": ["Store", "default_folder", "is_keep"],
        "titles": ["read_titles"],
        "truncation": ["complete_session", "longest_version", "newest_version"],
        "verify": ["VerifyResult", "verify_keep"],
    },
)
