"""The registry of running sessions: one file a process, in a folder of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from threadline.find.side_files import kind_of
from threadline.model.found import Home, SideFile, SideFileKind

_FOLDER = "sessions"


def live_sessions(home: Home) -> Iterator[SideFile]:
    """The files of a home that name its running sessions; those that `look` lists as such."""
    try:
        with os.scandir(os.path.join(os.path.realpath(home.path), _FOLDER)) as entries:  # noqa: PTH118 - paths are text
            found = sorted((one for one in entries if one.is_file(follow_symlinks=False)), key=lambda one: one.name)
            for entry in found:
                if kind_of((_FOLDER, entry.name)) is SideFileKind.LIVE_SESSION:
                    size = entry.stat(follow_symlinks=False).st_size
                    yield SideFile(Path(entry.path), home, SideFileKind.LIVE_SESSION, size)
    except OSError:
        return
