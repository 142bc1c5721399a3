"""Encode and restore sightings: what each transcript reports about the usage of a message.

A sighting is stored as compact msgpack: ids of the usual kinds as bytes, defaults at the end left out. Rows of one
message that were read by several refreshes are merged as if they had been read at once. `sighting_rows` extracts
sightings from transcripts.
"""

from __future__ import annotations

import json
import sqlite3
from binascii import Error as NoBase64
from binascii import a2b_base64, b2a_base64
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from threadline.index.store import decode_path, decode_time, storable_text
from threadline.model.homes import NO_HOMES, Homes
from threadline.model.times import timestamp_from_mtime
from threadline.model.usage import MAX_PLACEHOLDER_OUTPUT, Origin, Sighting, UsagePass, lacks_final_usage, parse_amount
from threadline.parse import LineNumbers

_SELECT_SIGHTINGS = """
SELECT s.message_id, m.message, s.offset, s.origin_id, s.model_id, s.time, s.packed
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
"""A row of `sightings`: the offset, the ids of origin and model, the time, and the encoded sighting."""
SightingGroup = tuple[int, str, list[Sighting]]


class StoredSightings:
    """Restores sightings from the index, by message.

    `homes` are those of the archive. `types` are the types of agents whose rows do not contain it, by origin.
    `numbers` are the ids of the transcripts that occurred so far, by path.
    """

    def __init__(
        self, connection: sqlite3.Connection, homes: Homes = NO_HOMES, types: Mapping[int, str | None] | None = None
    ) -> None:
        self._connection = connection
        self._homes = homes
        self._ranks = home_ranks(connection, homes)
        self._types = types or {}
        self._lines: dict[str, LineNumbers] = {}
        self.models: dict[int | None, str | None] = {None: None}
        self._origins: dict[int, Origin] = {}
        self.numbers: dict[str, int] = {}

    def groups(self, messages: str, parameters: Iterable[object] = ()) -> Iterator[SightingGroup]:
        """The sightings of each message that a query selects, with the message's id and key."""
        for number, key, rows in self.rows(messages, parameters):
            yield number, key, self.sightings(key, rows)

    def rows(self, messages: str, parameters: Iterable[object] = ()) -> Iterator[tuple[int, str, list[StoredSighting]]]:
        """The same, as stored rows."""
        self.models |= dict(self._connection.execute("SELECT model_id, model FROM models"))
        cursor = self._connection.execute(_SELECT_SIGHTINGS.format(messages), tuple(parameters))
        # A loop, not `groupby`: nearly all messages have one row, and there are many.
        number, key = 0, ""
        rows: list[StoredSighting] = []
        for row in cursor:
            if row[0] == number:
                rows.append(row[2:])
                continue
            if rows:
                yield number, key, rows
            number, key, rows = row[0], row[1], [row[2:]]
        if rows:
            yield number, key, rows

    def sightings(self, key: str, rows: list[StoredSighting]) -> list[Sighting]:
        """The sightings of a message, from its rows."""
        sightings = [self._sighting(key, row) for row in rows]
        return merge_sightings(sightings) if len(sightings) > 1 else [sightings[0][0]]

    def origin(self, number: int) -> Origin:
        """The origin with that id."""
        return self._origins.get(number) or self._origin(number)

    def _sighting(self, key: str, row: StoredSighting) -> tuple[Sighting, bool]:
        offset, origin_id, model, time, encoded = row
        origin = self.origin(origin_id)
        packed = decode_sighting(encoded)
        sighting = restore_sighting(packed, key, self.models[model], decode_time(time) or origin.began, offset)
        sighting.origin_number, sighting.origin = origin_id, origin
        return sighting, packed.has_long_content

    def _origin(self, number: int) -> Origin:
        row = self._connection.execute(_SELECT_ORIGIN, (number,)).fetchone()
        *shared, transcript, path, project, home, began, side, mtime_ns = row
        origin = self._origins[number] = Origin(*shared)
        origin.is_agent = bool(origin.is_agent) if origin.is_agent is not None else None
        origin.forked = bool(origin.forked)
        origin.transcript, origin.project, origin.home = map(decode_path, (path, project, home))
        origin.began = began or timestamp_from_mtime(mtime_ns or 0)
        origin.side = bool(side)
        if origin.agent is not None and origin.agent_type is None:
            origin.agent_type = self._types.get(number)
        origin.home_name, origin.machine = self._homes.name_of(origin.home), self._homes.machine_of(origin.home)
        origin.rank = self._ranks.get(origin.home, 0)
        origin.lines = self._lines.get(origin.transcript)
        if origin.lines is None:
            origin.lines = self._lines[origin.transcript] = LineNumbers(origin.transcript)
        self.numbers[origin.transcript] = transcript
        return origin


def home_ranks(connection: sqlite3.Connection, homes: Homes) -> dict[str, int]:
    """The rank of each home, in the order of the last refresh."""
    row = connection.execute("SELECT value FROM meta WHERE name = 'ranks'").fetchone()
    return homes.ranks(json.loads(row[0])) if row is not None else {}


_MAX_ROWS_CHARS = 8 * 1024  # beyond that, `SightingCollector` begins another sighting, too


def merge_sightings(sightings: Iterable[tuple[Sighting, bool]]) -> list[Sighting]:
    """Merge the sightings of one key, in file order, as if their rows had been read at once.

    With each comes whether a row of it has more content than a placeholder's output can be.
    """
    merged: dict[tuple[object, ...], tuple[Sighting, bool]] = {}
    full: list[Sighting] = []
    for sighting, has_long_content in sightings:
        origin = sighting.origin
        group = (origin.transcript, origin.session, origin.agent, sighting.sent, sighting.is_repeat)
        earlier = merged.get(group)
        if earlier is None or len(earlier[0].rows) > _MAX_ROWS_CHARS:
            if earlier is not None:
                full.append(earlier[0])
            merged[group] = sighting, has_long_content
        else:
            is_long = earlier[1] or has_long_content
            merged[group] = earlier[0], is_long
            _merge_into(earlier[0], sighting, has_long_content=is_long)
    return [*full, *(sighting for sighting, _ in merged.values())]


def _merge_into(sighting: Sighting, later: Sighting, *, has_long_content: bool) -> None:
    """Add the rows of a later sighting. The greater counts win, and of equal ones the later."""
    sighting.rows += f" {later.rows}"
    sighting.calls += (call for call in later.calls if call.startswith(" ") or call not in sighting.calls)
    sighting.web_searches = max(sighting.web_searches, later.web_searches)
    if later.reported is not None:
        sighting.reported = max(sighting.reported, later.reported, key=parse_amount)
    if (later.output, later.tie_break_key) >= (sighting.output, sighting.tie_break_key):
        sighting.output, sighting.stopped, sighting.offset = later.output, later.stopped, later.offset
        sighting.model, sighting.passes = later.model, later.passes
        sighting.cache_write_5m, sighting.cache_write_1h = later.cache_write_5m, later.cache_write_1h
        sighting.speed, sighting.geo, sighting.tier = later.speed, later.geo, later.tier
    is_early = not sighting.stopped and lacks_final_usage(sighting.origin.version)
    sighting.partial = is_early or (has_long_content and sighting.output <= MAX_PLACEHOLDER_OUTPUT)


_CALL_PREFIX = "toolu_"
_CALL_LENGTH = 30
_UUID_LENGTH = 36
_Id = bytes | str


class PackedSighting(Struct, array_like=True, gc=False):
    """The stored form of a sighting.

    `rows` are the uuid of the first row, then for each further row its distance from the one before and its uuid.
    `calls` are ids and tools in turn. Ids of the usual kinds are bytes, others text. `best` is the distance from the
    first row to the one whose counts these are. `has_long_content` says that a row has more content than a
    placeholder's output can be. Usual values at the end are left out: the last fields seldom have others.
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
    has_long_content: bool = False
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


def encode_sighting(sighting: Sighting, *, has_long_content: bool = False) -> bytes:
    """Encode a sighting for `sightings.packed`."""
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
        has_long_content,
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
        return _encode(replace_surrogates(msgspec.to_builtins(values, builtin_types=(bytes,))))


def decode_sighting(encoded: bytes) -> PackedSighting:
    """Decode what `encode_sighting` gave."""
    return _decode(encoded)


def restore_sighting(packed: PackedSighting, key: str, model: str | None, time: str, offset: int) -> Sighting:
    """Restore a sighting, without its origin."""
    # Positional arguments: keywords would take as long as everything else.
    return Sighting(
        key,
        0,
        model,
        time,
        offset + packed.best,
        packed.input,
        packed.output,
        packed.cache_write_5m + packed.cache_write_1h,
        packed.cache_write_5m,
        packed.cache_write_1h,
        packed.cache_read,
        packed.stopped,
        _expand_rows(packed.rows, offset),
        [f"{_expand_call(packed.calls[at])} {packed.calls[at + 1]}" for at in range(0, len(packed.calls), 2)],
        packed.partial,
        packed.web_searches,
        packed.speed,
        packed.geo,
        packed.tier,
        packed.repeated,
        packed.reported,
        packed.passes,
        packed.timeless,
    )


def _expand_rows(rows: list[Any], offset: int) -> str:
    words = [f"{offset} {_expand_uuid(rows[0])}"]
    for at in range(1, len(rows), 2):
        offset += rows[at]
        words.append(f"{offset} {_expand_uuid(rows[at + 1])}")
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
    # Ids of calls contain only letters and digits. Decoded as if they were base64, they are a quarter shorter.
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


def replace_surrogates(value: object) -> object:
    """The same value, with text that can be encoded: JSON may contain half of a surrogate pair."""
    if isinstance(value, list | tuple):
        return [replace_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {replace_surrogates(name): replace_surrogates(item) for name, item in value.items()}
    return storable_text(value) if isinstance(value, str) else value
