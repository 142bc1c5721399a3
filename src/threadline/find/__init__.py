"""Where things lie: homes, and in each home its projects, transcripts and side files.

`homes` says which homes there are, `look` lists one of them. Nothing is written, nothing is opened but
the head of a transcript per project and the files that name project paths, and no secret is opened ever.

Names are loaded when they are first used: whoever asks a fresh index looks at little.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from threadline.find.at_path import at, by_id
    from threadline.find.folder_names import folder_matches, folder_name
    from threadline.find.home_places import homes
    from threadline.find.looking import look
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

_HOMES_OF_NAMES = {
    "at": "at_path",
    "by_id": "at_path",
    "folder_matches": "folder_names",
    "folder_name": "folder_names",
    "homes": "home_places",
    "look": "looking",
    "main_transcripts_beside": "session_files",
    "session_transcripts": "session_files",
    "transcript_at": "session_files",
}


def __getattr__(name: str) -> Any:
    module = _HOMES_OF_NAMES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value
