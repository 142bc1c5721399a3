"""Training: a dictionary of the user's own lines, so that the little a day brings is small on disk."""

from __future__ import annotations

import zstandard

from threadline.errors import Unreadable
from threadline.keep.store import GOING, Store

_SIZE = 48 * 1024
_LEAST, _MOST = 256 * 1024, 5 * 1024 * 1024
"""From how many bytes of lines on a dictionary can be learned, and how many are listened to."""
_LONGEST = 4 * 1024
_HEAD = 128 * 1024
"""How much of what is read at a time is listened to once there would be enough: all files are to have a say."""
_EVERY = 7
"""One line in so many is listened to: neighbours are alike."""


class Teaching:
    """The dictionary of a keep: the one that it has, or one that is learned from what is read, once."""

    def __init__(self, store: Store, writer: str) -> None:
        self._store = store
        self._writer = writer
        self._lines: list[bytes | bytearray | memoryview[int]] = []
        self._heard = 0
        files = [path for path in store.dictionary_files() if not path.name.endswith(GOING)]
        self._done = bool(files)
        self.dictionary: bytes | None = None
        if files and not store.is_locked:
            try:
                self.dictionary = store.read(files[0])
            except Unreadable:
                self.dictionary = None  # frames do without; `verify` tells of it

    def hear(self, data: bytes) -> None:
        """Listen to what is read, until that is enough."""
        if self._done or self._heard >= _MOST:
            return
        lines = [
            line[:_LONGEST]
            for line in (data if self._heard < _LEAST else data[:_HEAD]).split(b"\n")[1:-1:_EVERY]
            if line
        ]
        self._lines += lines
        self._heard += sum(map(len, lines))

    def learned(self) -> bytes | None:
        """The dictionary, put into the keep where it is new; None where there was too little to learn from.

        Raises:
            Unreadable: the keep cannot be written.
        """
        if not self._done and self._heard >= _LEAST:
            self._done = True
            try:
                self.dictionary = zstandard.train_dictionary(_SIZE, self._lines).as_bytes()
            except zstandard.ZstdError:
                return None
            self._store.put_dictionary(self._writer, self.dictionary)
        self._lines = []
        return self.dictionary

    def hold(self) -> None:
        """Make sure that the dictionary that was used is there: another machine may have taken it away meanwhile."""
        if self.dictionary is not None and not self._store.dictionary_files():
            self._store.put_dictionary(self._writer, self.dictionary)
