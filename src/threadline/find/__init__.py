"""Where things lie: homes, and in each home its projects, transcripts and side files.

`homes` says which homes there are, `look` lists one of them. Nothing is written, nothing is opened but
the head of a transcript per project and the files that name project paths, and no secret is opened ever.
"""

from __future__ import annotations

from threadline.find.at import at, by_id
from threadline.find.folder_name import folder_matches, folder_name
from threadline.find.homes import homes
from threadline.find.look import look
from threadline.find.session_files import main_transcripts_beside, session_transcripts, transcript_at

__all__ = [
    "at",
    "by_id",
    "folder_matches",
    "folder_name",
    "homes",
    "look",
    "main_transcripts_beside",
    "session_transcripts",
    "transcript_at",
]
