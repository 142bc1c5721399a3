"""Spare: an index in a private temporary folder, for when the one in the cache is of no use; made for one server."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import TYPE_CHECKING

from threadline.archive import Archive
from threadline.errors import Error, Unreadable

if TYPE_CHECKING:
    from threadline.archive import Showing
    from threadline.model.found import Home


class Spare:
    """Where it lies, once it was made."""

    def __init__(self) -> None:
        self._folder: Path | None = None

    def made(self, homes: Sequence[Home], *, jobs: int | None, showing: Showing | None) -> Path:
        """Read everything, and give where the index of it lies.

        Raises:
            Unreadable: it cannot be written there either.
        """
        try:
            self._folder = Path(mkdtemp(prefix="threadline-"))  # for its owner alone, whatever the mask is
        except OSError as error:
            raise Unreadable(f"No temporary folder can be made ({error.strerror or error}).") from None
        place = self._folder / "index.sqlite"
        try:
            with Archive(homes, index=place, jobs=jobs, showing=showing) as archive:
                archive.prepare()
        except Error:
            self.remove()
            raise
        return place

    def remove(self) -> None:
        """Leave nothing behind."""
        if self._folder is not None:
            with suppress(OSError):
                rmtree(self._folder)
            self._folder = None
