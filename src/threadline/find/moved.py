"""Transcripts that are gone, looked for among the files that are new: by inode, and by content."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from threadline.find.seen import fingerprint, goes_on
from threadline.model.change import Known


class Gone:
    """What is gone, each to be found again once at most. What had no line cannot be recognised, and need not be."""

    def __init__(self, known: Iterable[Known]) -> None:
        self._by_inode: dict[tuple[int, int], Known] = {}
        self._by_ends: dict[tuple[int, int, bytes, bytes], list[Known]] = {}
        self._read_to: dict[int, set[int]] = {}
        self._found: set[str] = set()
        for one in known:
            if one.read_to == 0:
                continue
            if one.inode:  # a directory of Windows does not tell inodes
                self._by_inode[one.device, one.inode] = one
            self._by_ends.setdefault((one.size, one.read_to, one.head_hash, one.tail_hash), []).append(one)
            self._read_to.setdefault(one.size, set()).add(one.read_to)

    def found_at(self, path: str, status: os.stat_result) -> Known | None:
        """What lies there now, of all that is gone."""
        try:
            for one in self._candidates(path, status):
                # An inode is given to the next file once its own is deleted: it is the bytes that tell.
                if one.path not in self._found and goes_on(path, status, one):
                    self._found.add(one.path)
                    return one
        except OSError:
            return None  # whoever reads it will tell why
        return None

    def _candidates(self, path: str, status: os.stat_result) -> Iterator[Known]:
        same_file = self._by_inode.get((status.st_dev, status.st_ino))
        if same_file is not None:
            yield same_file
        size = status.st_size
        for read_to in self._read_to.get(size, ()):
            alike = self._by_ends.get((size, read_to, *fingerprint(path, read_to)), [])
            while alike and alike[-1].path in self._found:  # a thousand copies are not gone through for each of them
                alike.pop()
            yield from reversed(alike)
