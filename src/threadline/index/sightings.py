"""Read, encode and restore sightings: what each transcript reports about the usage of a message.

A sighting is stored as compact msgpack: ids of the usual kinds as bytes, defaults at the end left out. Rows of one
message that were read by several refreshes are merged as if they had been read at once.
"""

from __future__ import annotations

import json
import sqlite3
from binascii import Error as NoBase64
from binascii import a2b_base64, b2a_base64
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import groupby
from operator import itemgetter
from typing import Any

import msgspec
from msgspec import Struct

from threadline.account import timestamp_from_mtime
from threadline.index.store import decode_path, decode_time, storable_text
from threadline.model import homes as kept_homes
from threadline.model.sightings import (
    MAX_PLACEHOLDER_OUTPUT,
    Origin,
    Sighting,
    UsagePass,
    lacks_final_usage,
    parse_amount,
)
from threadline.parse import (
    LineNumbers,
)

_SELECT_SIGHTINGS = """
SELECT s.message_id, m.message, s.offset, s.origin_id, s.model_id, s.time, s.told
FROM {0} CROSS JOIN sightings s USING(message_id) JOIN message_ids m USING(message_id)
"""
STALE_MESSAGES = "(SELECT message_id FROM stale WHERE is_wider = 0)"
WIDENED_MESSAGES = "(SELECT message_id FROM stale WHERE is_wider = 1)"
_SELECT_ORIGIN = """
SELECT o.session, o.agent, o.version, o.git_branch, o.is_agent, o.forked, o.skill, o.agent_type,
    o.transcript_id, t.path, COALESCE(p.path, p.folder), h.path, o.began, o.is_side, t.mtime_ns
FROM origins o
LEFT JOIN transcripts t USING(transcript_id)
LEFT JOIN projects p USING(project_id)
LEFT JOIN homes h ON h.home_id = t.home_id
WHERE o.origin_id = ?
"""
StoredSighting = tuple[int, int, int | None, int | str, bytes]
"""A sighting as it is kept: its offset, origin, model, time, and what it tells."""
SightingGroup = tuple[int, str, list[Sighting]]


class StoredSightings:
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

    def groups(self, of: str, given: Iterable[object] = ()) -> Iterator[SightingGroup]:
        """The sightings of each message that a query (`of`) names, with its number and key."""
        for number, key, some in self.kept(of, given):
            yield number, key, self.sightings(key, some)

    def kept(self, of: str, given: Iterable[object] = ()) -> Iterator[tuple[int, str, list[StoredSighting]]]:
        """The same, as they are kept."""
        self.models |= dict(self._connection.execute("SELECT model_id, model FROM models"))
        rows = self._connection.execute(_SELECT_SIGHTINGS.format(of), tuple(given))
        for number, some in groupby(rows, key=itemgetter(0)):
            group = list(some)
            yield number, group[0][1], [row[2:] for row in group]

    def sightings(self, key: str, some: list[StoredSighting]) -> list[Sighting]:
        """The sightings of a message."""
        told = [self._sighting(key, sighting) for sighting in some]
        return merge_sightings(told) if len(told) > 1 else [told[0][0]]

    def origin(self, number: int) -> Origin:
        """The origin of a number."""
        return self._origins.get(number) or self._origin(number)

    def _sighting(self, key: str, row: StoredSighting) -> tuple[Sighting, bool]:
        offset, origin_id, model, time, told = row
        origin = self.origin(origin_id)
        again = decode_sighting(told)
        one = restore_sighting(again, key, self.models[model], decode_time(time) or origin.began, offset)
        one.origin_number, one.origin = origin_id, origin
        return one, again.tells

    def _origin(self, number: int) -> Origin:
        found = self._connection.execute(_SELECT_ORIGIN, (number,)).fetchone()
        *shared, transcript, path, project, home, began, side, mtime_ns = found
        origin = self._origins[number] = Origin(*shared)
        origin.is_agent = bool(origin.is_agent) if origin.is_agent is not None else None
        origin.forked = bool(origin.forked)
        origin.transcript, origin.project, origin.home = map(decode_path, (path, project, home))
        origin.began = began or timestamp_from_mtime(mtime_ns or 0)
        origin.side = bool(side)
        if origin.agent is not None and origin.agent_type is None:
            origin.agent_type = self._types.get(transcript)
        origin.rank = self._ranks.get(origin.home, 0)
        origin.lines = self._lines.get(origin.transcript)
        if origin.lines is None:
            origin.lines = self._lines[origin.transcript] = LineNumbers(origin.transcript)
        self.numbers[origin.transcript] = transcript
        return origin


def home_ranks(connection: sqlite3.Connection) -> dict[str, int]:
    """The places of homes among those that were named."""
    told = connection.execute("SELECT value FROM meta WHERE name = 'ranks'").fetchone()
    return kept_homes.rank_homes(json.loads(told[0])) if told is not None else {}


_MAX_ROWS_CHARS = 8 * 1024  # characters: beyond that, a gathering begins another sighting, too


def merge_sightings(told: Iterable[tuple[Sighting, bool]]) -> list[Sighting]:
    """The sightings of one key, in file order; with each, whether a row says more than a few tokens are."""
    made: dict[tuple[object, ...], tuple[Sighting, bool]] = {}
    full: list[Sighting] = []
    for one, tells in told:
        origin = one.origin
        group = (origin.transcript, origin.session, origin.agent, one.sent, one.is_repeat)
        known = made.get(group)
        if known is None or len(known[0].rows) > _MAX_ROWS_CHARS:
            if known is not None:
                full.append(known[0])
            made[group] = one, tells
        else:
            made[group] = known[0], known[1] or tells
            _merge_into(known[0], one, tells=known[1] or tells)
    return [*full, *(one for one, _tells in made.values())]


def _merge_into(known: Sighting, more: Sighting, *, tells: bool) -> None:
    """Rows that came later: what tells more counts, and of what tells as much, the last."""
    known.rows += f" {more.rows}"
    known.calls += (call for call in more.calls if call.startswith(" ") or call not in known.calls)
    known.web_searches = max(known.web_searches, more.web_searches)
    if more.reported is not None:
        known.reported = max(known.reported, more.reported, key=parse_amount)
    if (more.output, more.tie_break_key) >= (known.output, known.tie_break_key):
        known.output, known.stopped, known.offset = more.output, more.stopped, more.offset
        known.model, known.passes = more.model, more.passes
        known.cache_write_5m, known.cache_write_1h = more.cache_write_5m, more.cache_write_1h
        known.speed, known.geo, known.tier = more.speed, more.geo, more.tier
    is_early = not known.stopped and lacks_final_usage(known.origin.version)
    known.partial = is_early or (tells and known.output <= MAX_PLACEHOLDER_OUTPUT)


_CALL_PREFIX = "toolu_"
_CALL_LENGTH = 30
_UUID_LENGTH = 36
_Id = bytes | str


class PackedSighting(Struct, array_like=True, gc=False):
    """What a sighting tells. `rows` are the uuid of the first row, and a distance and uuid of each that follows.

    `calls` are an id and a tool by turns. Ids of the usual kinds are bytes, and others text. `best` is how far behind
    the first row the one stands whose counts these are. `tells` says that a row has more to say than a few tokens are.
    What comes last is seldom there: what is as usual at the end is left out.
    """

    rows: list[Any]
    best: int
    input: int
    output: int
    cache_write_5m: int
    cache_write_1h: int
    cache_read: int
    calls: list[Any] = []
    stopped: bool = False
    tells: bool = False
    partial: bool = False
    web_searches: int = 0
    repeated: bool = False
    timeless: bool = False
    speed: str | None = None
    geo: str | None = None
    tier: str | None = None
    reported: str | None = None
    passes: list[UsagePass] | None = None


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(PackedSighting).decode
# Of the fields after `stopped`, as nearly all sightings have them.
_USUAL_VALUES: tuple[Any, ...] = (False, False, 0, False, False, None, None, None, None, None)


def encode_sighting(sighting: Sighting, *, tells: bool = False) -> bytes:
    """A sighting, packed."""
    words = sighting.rows.split(" ")
    first = before = int(words[0])
    rows: list[_Id | int] = [_pack_uuid(words[1])]
    for at in range(2, len(words), 2):
        offset = int(words[at])
        rows += (offset - before, _pack_uuid(words[at + 1]))
        before = offset
    calls: list[_Id] = []
    for call in sighting.calls:
        id_, _, name = call.partition(" ")
        calls += (_pack_call(id_), name)
    values: list[Any] = [
        rows,
        sighting.offset - first,
        sighting.input,
        sighting.output,
        sighting.cache_write_5m,
        sighting.cache_write_1h,
        sighting.cache_read,
    ]
    rare = (
        tells,
        sighting.partial,
        sighting.web_searches,
        sighting.is_repeat,
        sighting.timeless,
        sighting.speed,
        sighting.geo,
        sighting.tier,
        sighting.reported,
        sighting.passes,
    )
    if rare != _USUAL_VALUES:
        values += (calls, sighting.stopped, *rare)
        while values[-1] == _USUAL_VALUES[len(values) - len(PackedSighting.__struct_fields__) - 1]:
            values.pop()
    elif sighting.stopped:
        values += (calls, True)
    elif calls:
        values.append(calls)
    try:
        return _encode(values)
    except UnicodeEncodeError:
        return _encode(_replace_surrogates(msgspec.to_builtins(values, builtin_types=(bytes,))))


def decode_sighting(told: bytes) -> PackedSighting:
    """What was packed."""
    return _decode(told)


def restore_sighting(told: PackedSighting, key: str, model: str | None, time: str, offset: int) -> Sighting:
    """The sighting again; its origin is left to whoever knows it."""
    # In the order of the fields: naming them would take as long as all the rest.
    return Sighting(
        key,
        0,
        model,
        time,
        offset + told.best,
        told.input,
        told.output,
        told.cache_write_5m + told.cache_write_1h,
        told.cache_write_5m,
        told.cache_write_1h,
        told.cache_read,
        told.stopped,
        _expand_rows(told.rows, offset),
        [f"{_expand_call(told.calls[at])} {told.calls[at + 1]}" for at in range(0, len(told.calls), 2)],
        told.partial,
        told.web_searches,
        told.speed,
        told.geo,
        told.tier,
        told.repeated,
        told.reported,
        told.passes,
        told.timeless,
    )


def _expand_rows(some: list[Any], offset: int) -> str:
    words = [f"{offset} {_expand_uuid(some[0])}"]
    for at in range(1, len(some), 2):
        offset += some[at]
        words.append(f"{offset} {_expand_uuid(some[at + 1])}")
    return " ".join(words)


def _pack_uuid(uuid: str) -> _Id:
    if len(uuid) == _UUID_LENGTH and uuid[8] == uuid[13] == uuid[18] == uuid[23] == "-":
        digits = uuid.replace("-", "")
        try:
            short = bytes.fromhex(digits)
        except ValueError:
            return uuid
        if short.hex() == digits:
            return short
    return uuid


def _expand_uuid(short: object) -> str:
    if not isinstance(short, bytes):
        return str(short)
    text = short.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _pack_call(id_: str) -> _Id:
    # Ids of calls are of letters and digits alone, so that they can be taken for base64, and be a quarter shorter.
    if len(id_) == _CALL_LENGTH and id_.startswith(_CALL_PREFIX) and id_.isascii():
        try:
            short = a2b_base64(id_[len(_CALL_PREFIX) :], strict_mode=True)
        except NoBase64:
            return id_
        if _expand_call(short) == id_:
            return short
    return id_


def _expand_call(short: _Id) -> str:
    return _CALL_PREFIX + b2a_base64(short, newline=False).decode() if isinstance(short, bytes) else short


@cache
def _clean_text(text: str) -> str:
    return storable_text(text) or ""


def _replace_surrogates(value: Any) -> Any:
    """The same value, with text in it that can be written."""
    if isinstance(value, list | tuple):
        return [_replace_surrogates(one) for one in value]
    return _clean_text(value) if isinstance(value, str) else value
