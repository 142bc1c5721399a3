"""Lost homes: those that were found once and are not there any more."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from threadline.find.side_files import PROJECTS
from threadline.model.kept import KEEP

if TYPE_CHECKING:
    from threadline.model.found import Home


class Places:
    """The homes as they were found, by what has to be there for them to be."""

    def __init__(self, homes: Sequence[Home]) -> None:
        living = [home.path for home in homes if home.source != KEEP]
        # A folder whose disk is gone may still be there, empty.
        self._places = {path: inner if (inner := path / PROJECTS).is_dir() else path for path in living}

    def lost(self) -> tuple[Path, ...]:
        """The homes that are not there now."""
        return tuple(home for home, place in self._places.items() if not place.is_dir())

    def are_all(self, homes: Sequence[Path]) -> bool:
        """Whether these are all there were."""
        return len(homes) == len(self._places)
