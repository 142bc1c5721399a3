"""The last evidence of a project's path: a directory on this machine that would have that folder name."""

from __future__ import annotations

import os
import re
import unicodedata

from threadline.find.folder_names import LONGEST, dashed

_MOST_LISTINGS = 1000
_DRIVE = re.compile("[A-Za-z]--")


class Disk:
    """The file system, walked only along directories whose names can be part of the folder's name."""

    def __init__(self) -> None:
        self._children: dict[str, list[tuple[str, str]]] = {}

    def find(self, folder: str) -> str | None:
        """Give the one directory that has this folder name.

        None when there is none, and also when there are several: then the disk says nothing. A name that
        was cut at 200 characters fits a directory and everything below it, so it is not looked for.
        """
        top = _top(folder)
        if top is None or len(folder) > LONGEST:
            return None
        wanted = _cased(folder)
        found: list[str] = []
        waiting = [(top, _comparable(top))]
        for _ in range(_MOST_LISTINGS):
            if not waiting or len(found) > 1:
                break
            directory, before = waiting.pop()
            for child, name in self._listed(directory):
                if before + name == wanted:
                    found.append(child)
                elif wanted.startswith(f"{before}{name}-"):
                    waiting.append((child, f"{before}{name}-"))
        return found[0] if len(found) == 1 and not waiting else None

    def _listed(self, directory: str) -> list[tuple[str, str]]:
        if directory not in self._children:
            try:
                with os.scandir(directory) as entries:
                    # A project's path is resolved before it is named, so no link is part of one.
                    children = [(e.path, _comparable(e.name)) for e in entries if e.is_dir(follow_symlinks=False)]
            except OSError:
                children = []  # what may not be listed is no evidence
            self._children[directory] = sorted(children)
        return self._children[directory]


def _top(folder: str) -> str | None:
    if os.name == "nt":
        return f"{folder[0]}:\\" if _DRIVE.match(folder) else None
    return "/" if folder.startswith("-") else None


def _comparable(name: str) -> str:
    return _cased(dashed(unicodedata.normalize("NFC", name)))


def _cased(name: str) -> str:
    return name.lower() if os.name == "nt" else name
