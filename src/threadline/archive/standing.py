"""Standing: an archive for those who would rather have an answer at once than the very newest."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from threadline.archive.whole import Archive
from threadline.errors import Error

if TYPE_CHECKING:
    from threadline.index.fresh import Fresh


class Standing(Archive):
    """An archive that asks its index as it is where another process is writing it: to read everything takes long."""

    @cached_property
    def _fresh(self) -> Fresh | None:
        known = super()._fresh
        if known is not None or self._index is False or not self.index.exists():
            return known
        from threadline.index.fresh import Fresh
        from threadline.index.store import open_to_read

        try:
            return Fresh(open_to_read(self.index))
        except Error:
            return None

    @property
    def is_indexed(self) -> bool:
        """Whether there is an index to ask."""
        return self._fresh is not None
