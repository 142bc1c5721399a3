"""Where things lie: homes, and in each home its projects, transcripts and side files.

`homes` says which homes there are, `look` lists one of them. Nothing is written, nothing is opened but
the head of a transcript per project and the files that name project paths, and no secret is opened ever.

Names are loaded when they are first used: whoever asks a fresh index looks at little.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from threadline.lazy import lazy_exports

if TYPE_CHECKING:
    from threadline.find.changes import StatKey, detect_changes, make_fingerprint
    from threadline.find.home_dirs import homes
    from threadline.find.layout import (
        HOME_MARKERS,
        PROJECTS,
        TRANSCRIPT_SUFFIX,
        folder_matches,
        folder_name,
        is_non_transcript_path,
        is_secret_path,
        is_transcript_name,
        make_transcript,
        parse_agent_id,
        parse_session_id,
        parse_transcript_name,
        session_in_path,
        side_file_kind,
    )
    from threadline.find.listing import (
        count_side_files,
        drop_shared_transcripts,
        list_live_session_files,
        look,
        look_with_known_transcripts,
        look_with_names,
    )
    from threadline.find.lookup import (
        add_session_transcripts,
        find_by_id,
        look_at_path,
        other_main_transcripts,
        session_transcripts,
        transcript_at,
    )
    from threadline.find.recent import (
        OutOfTime,
        find_main_transcript,
        other_sessions_since,
        recent_transcripts,
        session_transcripts_since,
    )
    from threadline.find.safe_read import decode_or_none, read_whole
    from threadline.find.walk import real_projects_dir, stat_transcripts

__getattr__ = lazy_exports(
    __name__,
    {
        "changes": ["StatKey", "detect_changes", "make_fingerprint"],
        "home_dirs": ["homes"],
        "layout": [
            "HOME_MARKERS",
            "PROJECTS",
            "TRANSCRIPT_SUFFIX",
            "folder_matches",
            "folder_name",
            "is_non_transcript_path",
            "is_secret_path",
            "is_transcript_name",
            "make_transcript",
            "parse_agent_id",
            "parse_session_id",
            "parse_transcript_name",
            "session_in_path",
            "side_file_kind",
        ],
        "listing": [
            "count_side_files",
            "drop_shared_transcripts",
            "list_live_session_files",
            "look",
            "look_with_known_transcripts",
            "look_with_names",
        ],
        "lookup": [
            "add_session_transcripts",
            "find_by_id",
            "look_at_path",
            "other_main_transcripts",
            "session_transcripts",
            "transcript_at",
        ],
        "recent": [
            "OutOfTime",
            "find_main_transcript",
            "other_sessions_since",
            "recent_transcripts",
            "session_transcripts_since",
        ],
        "safe_read": ["decode_or_none", "read_whole"],
        "walk": ["real_projects_dir", "stat_transcripts"],
    },
)
