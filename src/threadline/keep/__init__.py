"""The keep: a permanent store of the raw bytes of a home's files, since Claude Code deletes them.

A keep is a folder (`Store`) of packs with the bytes, and manifests that say what each run saw. A `Catalogue` is its
content: every `Version` of every file. `run_keep` adds what is new; `restore_files`, `verify_keep`, `merge_keeps`,
`forget_session` and `repack` do what their names say. `list_sessions`, `read_status` and `list_differences` report.
`this_machine` identifies this machine, since several may share a keep.

`kept_homes` presents what only the keep still has as Claude homes, for the archive. It and the functions of `machine`
are used by every command, so they do not load zstandard.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from threadline.lazy import export_lazily

if TYPE_CHECKING:
    from threadline.keep.cache import open_damaged_packs
    from threadline.keep.catalogue import Catalogue, ForgottenFiles, Version
    from threadline.keep.encryption import KEY_FILE_VARIABLE, PASSPHRASE_VARIABLE
    from threadline.keep.forget import accept_forgotten, forget_session, repack
    from threadline.keep.keep import KeepResult, recognise_machine, run_keep
    from threadline.keep.kept_home import clear_kept_homes, kept_homes
    from threadline.keep.machine import (
        Machine,
        existing_keep_folder,
        is_keep_enabled,
        machine_folder,
        missing_keep_folder,
        missing_keep_message,
        save_last_run,
        this_machine,
    )
    from threadline.keep.merge import MergeResult, merge_keeps
    from threadline.keep.restore import RestoreResult, restore_files
    from threadline.keep.retention import LINKED_SETTINGS, RetentionPeriod, own_homes, read_retention_period
    from threadline.keep.sessions import (
        KeptSession,
        file_owners,
        find_sessions,
        is_kept_only,
        is_session_transcript,
        list_other_files,
        list_sessions,
        read_titles,
        sort_by_last_entry,
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
    from threadline.keep.truncation import complete_session, longest_version, newest_version
    from threadline.keep.verify import VerifyResult, verify_keep

export_lazily(
    __name__,
    {
        "cache": ["open_damaged_packs"],
        "catalogue": ["Catalogue", "ForgottenFiles", "Version"],
        "encryption": ["KEY_FILE_VARIABLE", "PASSPHRASE_VARIABLE"],
        "forget": ["accept_forgotten", "forget_session", "repack"],
        "keep": ["KeepResult", "recognise_machine", "run_keep"],
        "kept_home": ["clear_kept_homes", "kept_homes"],
        "machine": [
            "Machine",
            "existing_keep_folder",
            "is_keep_enabled",
            "machine_folder",
            "missing_keep_folder",
            "missing_keep_message",
            "save_last_run",
            "this_machine",
        ],
        "merge": ["MergeResult", "merge_keeps"],
        "restore": ["RestoreResult", "restore_files"],
        "retention": ["LINKED_SETTINGS", "RetentionPeriod", "own_homes", "read_retention_period"],
        "sessions": [
            "KeptSession",
            "file_owners",
            "find_sessions",
            "is_kept_only",
            "is_session_transcript",
            "list_other_files",
            "list_sessions",
            "read_titles",
            "sort_by_last_entry",
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
        "truncation": ["complete_session", "longest_version", "newest_version"],
        "verify": ["VerifyResult", "verify_keep"],
    },
)
