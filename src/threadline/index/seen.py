"""Seen: sightings as the index keeps them, made again with all that is known of where they stand."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter

from threadline.account.placed import time_of
from threadline.index.joining import joined
from threadline.index.stamp import written
from threadline.index.texts import as_path
from threadline.index.told import sighting, unpacked
from threadline.model import kept as kept_homes
from threadline.model.sighting import Origin, Sighting
from threadline.parse.line_numbers import LineNumbers

_SIGHTINGS = """
SELECT s.message_id, m.message, s.offset, s.origin_id, s.model_id, s.time, s.told
FROM {0} CROSS JOIN sightings s USING(message_id) JOIN message_ids m USING(message_id)
"""
STALE = "(SELECT message_id FROM stale WHERE is_wider = 0)"
WIDER = "(SELECT message_id FROM stale WHERE is_wider = 1)"
_ORIGIN = """
SELECT o.session, o.agent, o.version, o.git_branch, o.is_agent, o.forked, o.skill, o.agent_type,
    o.transcript_id, t.path, COALESCE(p.path, p.folder), h.path, o.began, o.is_side, t.mtime_ns
FROM origins o
LEFT JOIN transcripts t USING(transcript_id)
LEFT JOIN projects p USING(project_id)
LEFT JOIN homes h ON h.home_id = t.home_id
WHERE o.origin_id = ?
"""
Kept = tuple[int, int, int | None, int | str, bytes]
"""A sighting as it is kept: its offset, origin, model, time, and what it tells."""
Group = tuple[int, str, list[Sighting]]


class SeenAgain:
    """Sightings by message. `numbers` are those of the transcripts that were met; `ranks` those of the homes.

    `types` are those of agents whose rows do not say it, by the number of the transcript.
    """

    def __init__(
        self, connection: sqlite3.Connection, ranks: dict[str, int], types: Mapping[int, str | None] | None = None
    ) -> None:
        self._connection = connection
        self._ranks = ranks
        self._types = types or {}
        self._lines: dict[str, LineNumbers] = {}
        self.models: dict[int | None, str | None] = {None: None}
        self._origins: dict[int, Origin] = {}
        self.numbers: dict[str, int] = {}

    def groups(self, of: str, given: Iterable[object] = ()) -> Iterator[Group]:
        """The sightings of each message that a query (`of`) names, with its number and key."""
        for number, key, some in self.kept(of, given):
            yield number, key, self.sightings(key, some)

    def kept(self, of: str, given: Iterable[object] = ()) -> Iterator[tuple[int, str, list[Kept]]]:
        """The same, as they are kept."""
        self.models |= dict(self._connection.execute("SELECT model_id, model FROM models"))
        rows = self._connection.execute(_SIGHTINGS.format(of), tuple(given))
        for number, some in groupby(rows, key=itemgetter(0)):
            group = list(some)
            yield number, group[0][1], [row[2:] for row in group]

    def sightings(self, key: str, some: list[Kept]) -> list[Sighting]:
        """The sightings of a message."""
        told = [self._sighting(key, one) for one in some]
        return joined(told) if len(told) > 1 else [told[0][0]]

    def origin(self, number: int) -> Origin:
        """The origin of a number."""
        return self._origins.get(number) or self._origin(number)

    def _sighting(self, key: str, row: Kept) -> tuple[Sighting, bool]:
        offset, origin_id, model, time, told = row
        origin = self.origin(origin_id)
        again = unpacked(told)
        one = sighting(again, key, self.models[model], written(time) or origin.began, offset)
        one.origin_number, one.origin = origin_id, origin
        return one, again.tells

    def _origin(self, number: int) -> Origin:
        found = self._connection.execute(_ORIGIN, (number,)).fetchone()
        *shared, transcript, path, project, home, began, side, mtime_ns = found
        origin = self._origins[number] = Origin(*shared)
        origin.is_agent = bool(origin.is_agent) if origin.is_agent is not None else None
        origin.forked = bool(origin.forked)
        origin.transcript, origin.project, origin.home = map(as_path, (path, project, home))
        origin.began = began or time_of(mtime_ns or 0)
        origin.side = bool(side)
        if origin.agent is not None and origin.agent_type is None:
            origin.agent_type = self._types.get(transcript)
        origin.rank = self._ranks.get(origin.home, 0)
        origin.lines = self._lines.get(origin.transcript)
        if origin.lines is None:
            origin.lines = self._lines[origin.transcript] = LineNumbers(origin.transcript)
        self.numbers[origin.transcript] = transcript
        return origin


def ranks(connection: sqlite3.Connection) -> dict[str, int]:
    """The places of homes among those that were named."""
    told = connection.execute("SELECT value FROM meta WHERE name = 'ranks'").fetchone()
    return kept_homes.ranks(json.loads(told[0])) if told is not None else {}
