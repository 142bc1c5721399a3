"""The archive: all that can be read in some homes, through one door."""

from __future__ import annotations

from threadline.archive.counted import Counted
from threadline.archive.searched import Searched
from threadline.archive.surveyed import Surveyed


class Archive(Surveyed, Searched, Counted):
    """All that can be read in some homes. Close it when done, or use it in a `with` statement.

    The index is brought up to date where that takes reading no more than `most` bytes; where it takes more, the
    transcripts are read. `search` and `sql` make it whatever it takes. What only a keep still has is read from homes
    that `kept_homes` made; `keep_problems` says what of it could not be. With `apart`, it is left out on purpose: then
    the index is another one.
    """
