"""The spread of what transcripts share, as the index keeps it: which of them is the original."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping

from threadline.account.placed import time_of
from threadline.account.rule import Spread, best, tied, transcripts
from threadline.index.stamp import written
from threadline.model.sighting import Sighting

_ENDS = "SELECT MIN(offset), MAX(offset) FROM ties WHERE transcript_id = ? AND sharers = ? AND is_end = 1"
_OWN = """
SELECT s.time, o.began, t.mtime_ns FROM sightings s JOIN origins o USING(origin_id)
JOIN transcripts t ON t.transcript_id = s.transcript_id
WHERE s.transcript_id = ?1
AND NOT EXISTS(SELECT 1 FROM sightings x WHERE x.message_id = s.message_id AND x.transcript_id <> ?1)
"""
Tie = tuple[int, str, bool, int]
Ends = tuple[int, int]


class KeptSpread(Spread):
    """What `ties` and `owned` tell; `numbers` are those of transcripts by their paths.

    One that writes keeps down what it had to look up, so that a later refresh can tell whether that has changed.
    """

    def __init__(self, connection: sqlite3.Connection, numbers: Mapping[str, int], *, writes: bool = False) -> None:
        self._connection = connection
        self._numbers = numbers
        self._writes = writes
        self._ends: dict[tuple[frozenset[str], str], Ends] = {}
        self._own: dict[str, str] = {}

    def ends(self, shared: frozenset[str], transcript: str) -> Ends:
        """The first and last offset of what exactly these transcripts share, in one of them."""
        key = shared, transcript
        if key not in self._ends:
            self._ends[key] = ends(self._connection, self._numbers[transcript], sharers(shared, self._numbers))
        return self._ends[key]

    def own(self, transcript: str) -> str:
        """When what only this transcript tells began; empty where there is nothing."""
        if transcript not in self._own:
            self._own[transcript] = self._owned(self._numbers[transcript])
        return self._own[transcript]

    def _owned(self, number: int) -> str:
        known = self._connection.execute("SELECT began FROM owned WHERE transcript_id = ?", (number,)).fetchone()
        if known is not None:
            return str(known[0])
        began = own(self._connection, number)
        if self._writes:
            self._connection.execute("INSERT INTO owned VALUES(?, ?)", (number, began))
        return began


def own(connection: sqlite3.Connection, number: int) -> str:
    """When what only a transcript tells began; empty where there is nothing."""
    told = connection.execute(_OWN, (number,))
    return min((written(time) or began or time_of(mtime_ns) for time, began, mtime_ns in told), default="")


def ends(connection: sqlite3.Connection, number: int, shared: str) -> Ends:
    """The first and last offset in a transcript of what some transcripts share."""
    first, last = connection.execute(_ENDS, (number, shared)).fetchone()
    return (first, last) if first is not None else (0, 0)


def sharers(shared: Iterable[str], numbers: Mapping[str, int]) -> str:
    """Transcripts by their numbers."""
    return " ".join(map(str, sorted(numbers[path] for path in shared)))


def ties(parts: Iterable[list[Sighting]], numbers: Mapping[str, int]) -> Iterator[Tie]:
    """The rows of `ties` for the calls of a message: whatever `Spread.first` is going to ask for."""
    for part in parts:
        found = tied(part)
        yield from _tie(found, numbers, is_end=True)
        among = tied(best(part))
        if transcripts(among) != transcripts(found):
            yield from _tie(among, numbers, is_end=False)


def _tie(found: list[Sighting], numbers: Mapping[str, int], *, is_end: bool) -> Iterator[Tie]:
    shared = transcripts(found)
    if len(shared) > 1:
        names = sharers(shared, numbers)
        for one in found:
            yield numbers[one.origin.transcript], names, is_end, one.offsets[0]
