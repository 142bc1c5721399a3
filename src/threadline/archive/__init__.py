"""The archive: all that can be read here, through one door.

Every answer is the one that reading all transcripts gives. Where there is an index and it can be brought up to date at
little cost, it is asked instead; where not, the transcripts are read.
"""

from __future__ import annotations

from threadline.archive.archive import AUTO_REFRESH_BYTES, Archive, ProgressDisplay, StaleTolerantArchive
from threadline.archive.factory import clear_kept_homes, ignores_keep, open  # noqa: A004 - as `threadline.open`

__all__ = [
    "AUTO_REFRESH_BYTES",
    "Archive",
    "ProgressDisplay",
    "StaleTolerantArchive",
    "clear_kept_homes",
    "ignores_keep",
    "open",
]
