"""Notice homes that have disappeared, for example with the disk they are on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from threadline.find import PROJECTS
from threadline.model.homes import KEEP_SOURCE

if TYPE_CHECKING:
    from threadline.model.homes import Home


class HomePresence:
    """Remembers which homes exist, to tell later which are missing."""

    def __init__(self, homes: Sequence[Home]) -> None:
        living = [home.path for home in homes if home.source != KEEP_SOURCE]
        # The mount point of a missing disk may still exist, empty: so `projects` has to exist if it did before.
        self._folders = {path: projects if (projects := path / PROJECTS).is_dir() else path for path in living}

    def missing(self) -> tuple[Path, ...]:
        """The homes that do not exist now."""
        return tuple(home for home, folder in self._folders.items() if not folder.is_dir())

    def are_all(self, homes: Sequence[Path]) -> bool:
        """Whether these are all homes there were."""
        return len(homes) == len(self._folders)
