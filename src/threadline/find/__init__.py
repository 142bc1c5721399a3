"""Where things lie: homes, and in each home its projects, transcripts and side files.

`homes` says which homes there are, `look` lists one of them. Nothing is written, nothing is opened but
the head of a transcript per project and the files that name project paths, and no secret is opened ever.

Names are loaded when they are first used: whoever asks a fresh index looks at little.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from threadline.find.home_dirs import homes
    from threadline.find.layout import folder_matches, folder_name
    from threadline.find.listing import look
    from threadline.find.lookup import (
        find_by_id,
        look_at_path,
        other_main_transcripts,
        session_transcripts,
        transcript_at,
    )

__all__ = [
    "find_by_id",
    "folder_matches",
    "folder_name",
    "homes",
    "look",
    "look_at_path",
    "other_main_transcripts",
    "session_transcripts",
    "transcript_at",
]

_HOMES_OF_NAMES = {
    "find_by_id": "lookup",
    "folder_matches": "layout",
    "folder_name": "layout",
    "homes": "home_dirs",
    "look": "listing",
    "look_at_path": "lookup",
    "other_main_transcripts": "lookup",
    "session_transcripts": "lookup",
    "transcript_at": "lookup",
}


def __getattr__(name: str) -> Any:
    module = _HOMES_OF_NAMES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value
