"""Find what Claude Code has written: homes, and in each home its projects, transcripts and side files.

`homes()` returns the homes on this machine and `look(home)` lists one. `look_at_path` and `find_by_id` find what a
user names, `session_transcripts` the files that belong to one session. `detect_changes` compares homes with
fingerprints from an earlier read, and `HomeWatcher` reports changes as they happen. `layout` has the rules for names.

A home may be in a zip or tar archive (`packed_homes`), an S3 bucket (`bucket_homes`) or a session store in a SQLite
file (`database_homes`), from which it is copied into the cache folder (`home_copies`). Nothing else is written. Nothing
is opened except the beginning of a few transcripts per project and the files that name project paths. Secrets are never
opened.

Names are imported on first use, because a query of a fresh index needs few of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from threadline.lazy import export_lazily

if TYPE_CHECKING:
    from threadline.find.changes import StatKey, detect_changes
    from threadline.find.fingerprint import (
        change_time_ns,
        has_known_prefix,
        make_fingerprint,
        modified_time_ns,
        path_change_time_ns,
    )
    from threadline.find.home_dirs import homes
    from threadline.find.layout import (
        HOME_MARKERS,
        PROJECTS,
        TRANSCRIPT_SUFFIX,
        folder_matches,
        folder_name,
        home_of_path,
        home_of_transcript,
        is_transcript_name,
        is_transcript_path,
        parse_agent_id,
        parse_session_id,
        parse_transcript_name,
        session_id_from_name,
        session_in_path,
        session_of_path,
        side_file_kind,
        transcript_stem,
    )
    from threadline.find.listing import (
        DirectoryWalk,
        OutOfTime,
        SideFileCounts,
        count_side_files,
        drop_shared_transcripts,
        is_regular_file,
        list_live_session_files,
        list_project_folders,
        look,
        look_with_known_transcripts,
        look_with_names,
        stat_transcripts,
    )
    from threadline.find.lookup import find_by_id, find_by_slug, look_at_path
    from threadline.find.project_paths import decode_or_none
    from threadline.find.session_files import (
        SessionOwners,
        TranscriptProjects,
        find_main_transcript,
        home_folder,
        note_session_links,
        other_folders,
        recent_transcripts,
        session_task_files,
        session_todo_files,
        session_transcripts,
        sibling_transcripts,
        transcript_at,
    )
    from threadline.find.watch import HomeWatcher

export_lazily(
    __name__,
    {
        "changes": ["StatKey", "detect_changes"],
        "fingerprint": [
            "change_time_ns",
            "has_known_prefix",
            "make_fingerprint",
            "modified_time_ns",
            "path_change_time_ns",
        ],
        "home_dirs": ["homes"],
        "layout": [
            "HOME_MARKERS",
            "PROJECTS",
            "TRANSCRIPT_SUFFIX",
            "folder_matches",
            "folder_name",
            "home_of_path",
            "home_of_transcript",
            "is_transcript_name",
            "is_transcript_path",
            "parse_agent_id",
            "parse_session_id",
            "parse_transcript_name",
            "session_id_from_name",
            "session_in_path",
            "session_of_path",
            "side_file_kind",
            "transcript_stem",
        ],
        "listing": [
            "DirectoryWalk",
            "OutOfTime",
            "SideFileCounts",
            "count_side_files",
            "drop_shared_transcripts",
            "is_regular_file",
            "list_live_session_files",
            "list_project_folders",
            "look",
            "look_with_known_transcripts",
            "look_with_names",
            "stat_transcripts",
        ],
        "lookup": ["find_by_id", "find_by_slug", "look_at_path"],
        "project_paths": ["decode_or_none"],
        "session_files": [
            "SessionOwners",
            "TranscriptProjects",
            "find_main_transcript",
            "home_folder",
            "note_session_links",
            "other_folders",
            "recent_transcripts",
            "session_task_files",
            "session_todo_files",
            "session_transcripts",
            "sibling_transcripts",
            "transcript_at",
        ],
        "watch": ["HomeWatcher"],
    },
)
