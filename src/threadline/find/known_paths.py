"""Paths known from elsewhere, to be asked which of them a folder can belong to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from threadline.find.folder_names import is_windows, stem, stems

if TYPE_CHECKING:
    from collections.abc import Iterable


class KnownPaths:
    """A set of paths that is searched by folder name; of several that fit, the first given wins."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._exact: dict[str, str] = {}
        self._folded: dict[str, str] = {}
        for path in dict.fromkeys(paths):
            for name in sorted(stems(path)):
                if is_windows(path):
                    self._folded.setdefault(name.lower(), path)
                else:
                    self._exact.setdefault(name, path)

    def of(self, folder: str) -> str | None:
        """Give the path that has this folder, or None."""
        name = stem(folder)
        return self._exact.get(name) or self._folded.get(name.lower())
