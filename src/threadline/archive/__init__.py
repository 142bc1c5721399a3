"""The archive: all that can be read here, through one door.

Every answer is the one that reading all transcripts gives. Where there is an index and it can be brought up to date at
little cost, it is asked instead; where not, the transcripts are read.
"""

from __future__ import annotations

from threadline.archive.indexed import LITTLE
from threadline.archive.opening import clear_kept, leaves_keep, open  # noqa: A004 - as `threadline.open`
from threadline.archive.progress import Showing
from threadline.archive.standing import Standing
from threadline.archive.whole import Archive

__all__ = ["LITTLE", "Archive", "Showing", "Standing", "clear_kept", "leaves_keep", "open"]
