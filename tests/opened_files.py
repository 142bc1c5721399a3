"""Record which files are opened, by any means."""

from __future__ import annotations

import os
import sys


class OpenedFiles:
    """Records which files below `folder` are opened or listed while it is set. Use the one in `conftest.py`."""

    def __init__(self) -> None:
        self.folder = ""
        self.paths: list[str] = []
        sys.addaudithook(self._record)  # for good: Python cannot remove it

    def _record(self, event: str, arguments: tuple[object, ...]) -> None:
        if (
            self.folder
            and event in {"open", "os.scandir", "os.listdir"}
            and isinstance(arguments[0], str | os.PathLike)
        ):
            folder, self.folder = self.folder, ""
            path = os.path.realpath(os.fspath(arguments[0]))
            if path.startswith(folder + os.sep):
                self.paths.append(path)
            self.folder = folder
