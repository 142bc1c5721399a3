"""Sighted: what the lines of a transcript tell of messages, read by workers and written by one."""

from __future__ import annotations

import os
import sqlite3

from msgspec import Struct

from threadline.index.stamp import stamp
from threadline.index.texts import as_text
from threadline.index.told import packed
from threadline.model.found import Transcript
from threadline.model.side_agent import kind_by_id
from threadline.model.sighting import Origin, Seen
from threadline.parse.gathering import Gathering
from threadline.parse.lines_with import first_lines, lines_with
from threadline.parse.sightings import NEEDLE
from threadline.parse.usage_rows import first_time

STALE_OF = "INSERT OR IGNORE INTO stale(message_id) SELECT message_id FROM sightings WHERE transcript_id = ?"
"""What a transcript told of is to be charged anew."""

# Where no line says a time, that of the file is taken, and the file has changed.
_TIMELESS = f"{STALE_OF} AND EXISTS(SELECT 1 FROM origins WHERE transcript_id = ? AND began = '')"  # noqa: S608 - our own names

_BEGAN_ELSE = "SELECT 1 FROM origins WHERE transcript_id = ? AND began <> ?"
_Shared = tuple[str | None, str | None, str | None, str | None, bool | None, bool, str | None, str | None]
_Sighting = tuple[str, int, int, str | None, int | str, int, bytes]
_ID_OF = "(SELECT message_id FROM message_ids WHERE message = ?)"
_ORIGIN = "session, agent, version, git_branch, is_agent, forked, skill, agent_type"
_ORIGINS = f"SELECT origin_id, began, {_ORIGIN} FROM origins o WHERE transcript_id = ?1"  # noqa: S608 - our own names
_IS_USED = "EXISTS(SELECT 1 FROM sightings s WHERE s.transcript_id = ?1 AND s.origin_id = o.origin_id)"


class Sighted(Struct, gc=False):
    """What the lines that were read tell of messages.

    `sightings` are key, offset, number of the origin, model, time, rows and what they tell. `waiting` are calls for web
    searches without a result so far; `is_all` says that this is of the whole transcript, and not from `offset` on.
    `first` is the time that the first lines name, if they do: of damaged ones, the lines that follow may be the first.
    """

    sightings: list[_Sighting] = []
    origins: list[_Shared] = []
    began: str = ""
    waiting: list[str] = []
    is_all: bool = False
    offset: int = 0
    first: str = ""

    def write(self, connection: sqlite3.Connection, number: int) -> None:
        """Write it down for the transcript of that number, and that its messages are to be charged anew."""
        if self.is_all:
            connection.execute(STALE_OF, (number,))
            connection.execute("DELETE FROM sightings WHERE transcript_id = ?", (number,))
            connection.execute("DELETE FROM owned WHERE transcript_id = ?", (number,))
        else:
            connection.execute(f"{STALE_OF} AND offset >= ?", (number, self.offset))
            connection.execute("DELETE FROM sightings WHERE transcript_id = ? AND offset >= ?", (number, self.offset))
        connection.execute(_TIMELESS, (number, number))
        if self.first and connection.execute(_BEGAN_ELSE, (number, self.first)).fetchone() is not None:
            connection.execute(STALE_OF, (number,))
            connection.execute("DELETE FROM owned WHERE transcript_id = ?", (number,))
            connection.execute("UPDATE origins SET began = ? WHERE transcript_id = ?", (self.first, number))
        execute = connection.executemany
        if self.sightings:
            origins = self._origins(connection, number)
            models = _models(connection, {one[3] for one in self.sightings})
            keys = [(one[0],) for one in self.sightings]
            execute("INSERT OR IGNORE INTO message_ids(message) VALUES(?)", keys)
            execute(f"INSERT OR IGNORE INTO stale(message_id) VALUES({_ID_OF})", keys)
            execute(
                f"INSERT INTO sightings VALUES({_ID_OF}, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (key, number, offset, origins[origin], models[model], time, rows, told)
                    for key, offset, origin, model, time, rows, told in self.sightings
                ],
            )
        connection.execute("DELETE FROM waiting WHERE transcript_id = ?", (number,))
        execute("INSERT INTO waiting VALUES(?, ?)", [(number, call) for call in self.waiting])

    def _origins(self, connection: sqlite3.Connection, number: int) -> list[int]:
        """The numbers of the origins; those that the transcript has already are the same."""
        began = self.began
        # One that is not used waits to be taken out: it tells when other lines began, which stood there before.
        asked = f"{_ORIGINS} AND {_IS_USED}"
        if self.is_all:
            connection.execute("UPDATE origins SET began = ? WHERE transcript_id = ?", (began, number))
            asked = _ORIGINS
        known: dict[tuple[object, ...], int] = {}
        for origin, begins, *shared in connection.execute(asked, (number,)):
            known[tuple(shared)] = origin
            began = begins
        made: list[int] = []
        for one in self.origins:
            if one not in known:
                agent = one[1]
                side = agent is not None and kind_by_id(agent) is not None
                cursor = connection.execute(
                    f"INSERT INTO origins(transcript_id, {_ORIGIN}, is_side, began)"
                    " VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (number, *one, side, began),
                )
                known[one] = cursor.lastrowid or 0
            made.append(known[one])
        return made


def _models(connection: sqlite3.Connection, names: set[str | None]) -> dict[str | None, int | None]:
    wanted = [(name,) for name in names if name is not None]
    connection.executemany("INSERT OR IGNORE INTO models(model) VALUES(?)", wanted)
    found: dict[str | None, int | None] = {None: None}
    for name in wanted:
        ((found[name[0]],),) = connection.execute("SELECT model_id FROM models WHERE model = ?", name)
    return found


def sighted(transcript: Transcript, offset: int, read_to: int, waiting: tuple[str, ...]) -> Sighted:
    """What the lines between two offsets tell of messages, each packed.

    `waiting` are calls for web searches before them, whose results may come now.
    """
    gathering = Gathering(transcript)
    before, is_all = list(waiting), not offset
    is_named = _gather(gathering, offset, read_to, waiting)
    # The call tells what its result adds to, and a row that says no time has that of the one before: both were read
    # before, and are read again.
    if is_named or (offset and any(one.timeless for one in gathering.sightings)):
        gathering = Gathering(transcript)
        _gather(gathering, 0, read_to, ())
        before, is_all = [], True
    first = list(first_lines(transcript.path))
    seen = gathering.seen(first)
    last = _last(transcript, read_to).seen(first) if read_to < _size(transcript) else Seen()
    return Sighted(
        [
            (
                as_text(one.key) or "",
                int(one.rows.partition(" ")[0]),
                number,
                as_text(one.model),
                stamp(as_text(one.time) or ""),
                one.rows.count(" ") // 2 + 1,
                packed(one, tells=gathering.tells(one)),
            )
            for one, number in [
                *((one, one.origin_number) for one in seen.sightings),
                *((one, one.origin_number + len(seen.origins)) for one in last.sightings),
            ]
        ],
        [_shared(one) for one in (*seen.origins, *last.origins)],
        as_text(seen.began or last.began) or "",
        before + [as_text(call) or "" for call in gathering.waiting],
        is_all,
        offset,
        as_text(first_time(first)) or "",
    )


def _size(transcript: Transcript) -> int:
    try:
        return os.stat(transcript.path).st_size  # noqa: PTH116 - for thousands
    except OSError:
        return 0


def _last(transcript: Transcript, read_to: int) -> Gathering:
    """What a last line tells that has no end yet: it counts if it is whole, and is read again when there is more."""
    gathering = Gathering(transcript)
    for found in lines_with(transcript.path, NEEDLE, offset=read_to):
        gathering.add(found)
    return gathering


def _shared(one: Origin) -> _Shared:
    return (
        as_text(one.session),
        as_text(one.agent),
        as_text(one.version),
        as_text(one.git_branch),
        one.is_agent,
        one.forked,
        as_text(one.skill),
        as_text(one.agent_type),
    )


def _gather(gathering: Gathering, offset: int, read_to: int, waiting: tuple[str, ...]) -> bool:
    """Go through the lines; whether they name a call that was waiting for its result."""
    wanted = [call.encode() for call in waiting]
    is_named = False
    for found in lines_with(gathering.transcript.path, NEEDLE, offset=offset):
        kept = sum(one < read_to for one in found.offsets)  # it may have grown since
        found.offsets, found.lines = found.offsets[:kept], found.lines[:kept]
        found.block = found.block[: max(0, read_to - found.begins)]
        gathering.add(found)
        is_named = is_named or any(call in found.block for call in wanted)
    return is_named
