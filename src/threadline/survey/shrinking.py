"""Shrinking: whether main transcripts that are looked at were cut, replaced or deleted, which no follower tells."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING

from threadline.find.side_files import PROJECTS
from threadline.find.transcripts import session_id

if TYPE_CHECKING:
    from threadline.model.found import Home

_SEARCH = 1.0
"""Seconds between two searches for a transcript that is not where it was."""
_State = dict[str, tuple[int, int]]


class Shrinking:
    """Remembers how large the transcripts are that somebody looks at."""

    def __init__(self, homes: Sequence[Home]) -> None:
        self._tops = [os.path.join(home.path, PROJECTS) for home in homes]  # noqa: PTH118 - paths are text here
        self._known: dict[str, _State | None] = {}
        self._next_search = 0.0

    def look(self, sessions: Collection[str]) -> list[str]:
        """Of these sessions, those that have lost something since the last look, or are back again."""
        now = monotonic()
        may_search = now >= self._next_search
        if may_search:
            self._next_search = now + _SEARCH
        self._known = {session: self._known.get(session) for session in sessions}
        return [session for session in sessions if self._has_shrunk(session, may_search=may_search)]

    def _has_shrunk(self, session: str, *, may_search: bool) -> bool:
        before = self._known[session]
        now = _states(before or ())
        if not now and may_search:
            now = _states(self._places(session))
        self._known[session] = now
        if not before:  # looked at for the first time, or gone when it was
            return before is not None and bool(now)
        return any(_is_less(state, now.get(path)) for path, state in before.items())

    def _places(self, session: str) -> Iterator[str]:
        """Where a transcript of that name may lie."""
        if session_id(session) != session:  # it comes from an address, and must not lead anywhere else
            return
        for top in self._tops:
            with suppress(OSError), os.scandir(top) as folders:
                yield from [os.path.join(folder.path, f"{session}.jsonl") for folder in folders]  # noqa: PTH118 - text


def _states(paths: Iterable[str]) -> _State:
    found: _State = {}
    for path in paths:
        with suppress(OSError, ValueError):
            status = os.stat(path)  # noqa: PTH116 - a path is text here
            found[path] = status.st_ino, status.st_size
    return found


def _is_less(before: tuple[int, int], now: tuple[int, int] | None) -> bool:
    return now is None or now[0] != before[0] or now[1] < before[1]
