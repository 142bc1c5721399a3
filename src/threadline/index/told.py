"""Told: what a sighting tells beside its place, origin, model and time, packed small."""

from __future__ import annotations

from binascii import Error as NoBase64
from binascii import a2b_base64, b2a_base64
from functools import cache
from typing import Any

import msgspec
from msgspec import Struct

from threadline.index.texts import as_text
from threadline.model.sighting import Pass, Sighting

_CALL = "toolu_"
_CALL_LENGTH = 30
_UUID_LENGTH = 36
_Id = bytes | str


class Told(Struct, array_like=True, gc=False):
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
    passes: list[Pass] | None = None


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Told).decode
_USUAL: list[Any] = [[], False, False, False, 0, False, False, None, None, None, None, None]
_LEAST = len(Told.__struct_fields__) - len(_USUAL)


def packed(one: Sighting, *, tells: bool = False) -> bytes:
    """A sighting, packed."""
    words = one.rows.split(" ")
    first = before = int(words[0])
    rows: list[_Id | int] = [_short_uuid(words[1])]
    for at in range(2, len(words), 2):
        offset = int(words[at])
        rows += (offset - before, _short_uuid(words[at + 1]))
        before = offset
    calls: list[_Id] = []
    for call in one.calls:
        id_, _, name = call.partition(" ")
        calls += (_short_call(id_), name)
    told: list[Any] = [
        rows,
        one.offset - first,
        one.input,
        one.output,
        one.cache_write_5m,
        one.cache_write_1h,
        one.cache_read,
        calls,
        one.stopped,
        tells,
        one.partial,
        one.web_searches,
        one.repeated,
        one.timeless,
        one.speed,
        one.geo,
        one.tier,
        one.reported,
        one.passes,
    ]
    while len(told) > _LEAST and told[-1] == _USUAL[len(told) - _LEAST - 1]:
        told.pop()
    try:
        return _encode(told)
    except UnicodeEncodeError:
        return _encode(_clean(msgspec.to_builtins(told, builtin_types=(bytes,))))


def unpacked(told: bytes) -> Told:
    """What was packed."""
    return _decode(told)


def sighting(told: Told, key: str, model: str | None, time: str, offset: int) -> Sighting:
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
        _rows(told.rows, offset),
        [f"{_call(told.calls[at])} {told.calls[at + 1]}" for at in range(0, len(told.calls), 2)],
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


def _rows(some: list[Any], offset: int) -> str:
    words = [f"{offset} {_uuid(some[0])}"]
    for at in range(1, len(some), 2):
        offset += some[at]
        words.append(f"{offset} {_uuid(some[at + 1])}")
    return " ".join(words)


def _short_uuid(uuid: str) -> _Id:
    if len(uuid) == _UUID_LENGTH:
        try:
            short = bytes.fromhex(uuid.replace("-", ""))
        except ValueError:
            return uuid
        if _uuid(short) == uuid:
            return short
    return uuid


def _uuid(short: object) -> str:
    if not isinstance(short, bytes):
        return str(short)
    text = short.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _short_call(id_: str) -> _Id:
    # Ids of calls are of letters and digits alone, so that they can be taken for base64, and be a quarter shorter.
    if len(id_) == _CALL_LENGTH and id_.startswith(_CALL) and id_.isascii():
        try:
            short = a2b_base64(id_[len(_CALL) :], strict_mode=True)
        except NoBase64:
            return id_
        if _call(short) == id_:
            return short
    return id_


def _call(short: _Id) -> str:
    return _CALL + b2a_base64(short, newline=False).decode() if isinstance(short, bytes) else short


@cache
def _clean_text(text: str) -> str:
    return as_text(text) or ""


def _clean(value: Any) -> Any:
    """The same value, with text in it that can be written."""
    if isinstance(value, list | tuple):
        return [_clean(one) for one in value]
    return _clean_text(value) if isinstance(value, str) else value
