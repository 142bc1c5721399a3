"""Lights: what the index knows of each transcript as a whole, as if it had just been read."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import cached_property
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec import Raw, Struct

from threadline.errors import Error
from threadline.model.found import Transcript
from threadline.model.ids import SessionId
from threadline.model.side_agent import WARM_UP
from threadline.model.time import parse_timestamp
from threadline.survey.glance import Glance, Glancing
from threadline.survey.light_state import Light, LightState, light_of
from threadline.survey.overview import glance
from threadline.survey.sessions import Inside, inside, last_time

if TYPE_CHECKING:
    from threadline.model.entries import Entry

_FIRST = """
SELECT t.path, e.kind, e.session, e.offset, e.length FROM transcripts t
JOIN entries e ON e.transcript_id = t.transcript_id AND e.line = 1 WHERE t.session IS NULL AND t.agent IS NOT NULL
"""
# What bytes hold that may say so: the words, or a character that is written by its number.
_WARMS_UP = (WARM_UP.encode(), b"\\u")
_TELLS_A_TIME = (b"timestamp", b"\\u")


class _Row(NamedTuple):
    state: bytes
    read_to: int
    size: int
    lines: int


class _Kept(Struct, array_like=True):
    """As much of `threadline.index.state.State` as is asked here: the rest takes long to load, and to unpack."""

    glance: Glancing
    light: LightState | None = None


class _Span(Struct, array_like=True):
    """As much of a glance as tells when a transcript ends."""

    kinds: Raw = Raw()
    versions: Raw = Raw()
    sessions: Raw = Raw()
    first: str | None = None
    last: str | None = None


class _Dated(Struct, array_like=True):
    glance: _Span


_kept = msgspec.msgpack.Decoder(_Kept).decode
_dated = msgspec.msgpack.Decoder(_Dated).decode


class Lights:
    """Answers from the index; of a last line that was not finished when it was read, from the transcript."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def last(self, transcript: Transcript) -> datetime:
        """The last time that a transcript tells; when it was written where it tells none."""
        row = self._row(transcript)
        if row is None or not row.state or _may_tell_a_time(transcript, row):
            return last_time(transcript)
        told = parse_timestamp(_dated(row.state).glance.last)
        return told if told is not None else last_time(transcript)

    def lights(self, transcripts: Iterable[Transcript]) -> Iterator[tuple[Transcript, Light]]:
        """What a light pass over each main transcript tells."""
        for transcript in transcripts:
            yield transcript, self._light(transcript)

    def inside(self, transcript: Transcript) -> Inside:
        """The session that an agent's transcript names inside; its first words only where they may be a warm-up's."""
        told = self._first.get(str(transcript.path))
        if told is None:
            return inside(transcript)
        kind, session, offset, length = told
        try:
            said = _bytes(transcript, offset, length) if kind == "user" else b""
        except OSError:
            return inside(transcript)
        return inside(transcript) if any(mark in said for mark in _WARMS_UP) else (SessionId(session), None)

    def glances(self, transcripts: Iterable[Transcript]) -> Iterator[tuple[Transcript, Glance]]:
        """What a glance at each transcript tells."""
        for transcript in transcripts:
            row = self._row(transcript)
            yield transcript, glance(transcript) if row is None else _glance(transcript, row)

    def _light(self, transcript: Transcript) -> Light:
        row = self._row(transcript)
        state = _kept(row.state).light if row is not None and row.state else None
        if row is not None and state is not None and row.read_to >= row.size:
            return light_of(state)
        return _read_on(transcript, row, state)

    def _row(self, transcript: Transcript) -> _Row | None:
        """What the index has of a transcript; None where it has nothing that could be relied on."""
        told = self._rows.get(str(transcript.path))
        row = _Row(*told) if told is not None else None
        # One that has bytes and no line was never read: the machine refused, or its first line has no end.
        return None if row is None or (row.size and not row.lines) else row

    @cached_property
    def _rows(self) -> dict[str, tuple[bytes, int, int, int]]:
        asked = self._connection.execute("SELECT path, state, read_to, size, lines FROM transcripts")
        return {row[0] if row[0].__class__ is str else os.fsdecode(row[0]): row[1:] for row in asked}

    @cached_property
    def _first(self) -> dict[str, tuple[str, str, int, int]]:
        """The first entries of agents whose paths name no session, where they name one."""
        found: dict[str, tuple[str, str, int, int]] = {}
        doubled: set[str] = set()
        for path, kind, session, offset, length in self._connection.execute(_FIRST):
            text = os.fsdecode(path)
            # Half of a character is kept as a question mark; and of two entries in a line, either may be the first.
            if session is None or "?" in session or text in found:
                doubled.add(text)
            else:
                found[text] = (kind, session, offset, length)
        return {path: told for path, told in found.items() if path not in doubled}


def _may_tell_a_time(transcript: Transcript, row: _Row) -> bool:
    """Whether a last line that was not finished may tell one that the index does not know."""
    if row.read_to >= row.size:
        return False
    try:
        left = _bytes(transcript, row.read_to, row.size - row.read_to)
    except OSError:
        return True
    return any(mark in left for mark in _TELLS_A_TIME)


def _bytes(transcript: Transcript, offset: int, length: int) -> bytes:
    with transcript.path.open("rb", buffering=0) as file:
        file.seek(offset)
        return file.read(length)


def _read_on(transcript: Transcript, row: _Row | None, state: LightState | None) -> Light:
    """What the index knows, and a last line that was not finished; or all of the transcript."""
    from threadline.survey.light import Lighting, light

    if row is None or state is None:
        return light(transcript)
    lighting = Lighting(state)
    try:
        for entry in _rest(transcript, row):
            lighting.add(entry)
    except Error as error:
        return Light(problem=str(error), spoken=1)
    return lighting.light() if lighting.is_sure else light(transcript)


def _glance(transcript: Transcript, row: _Row) -> Glance:
    told = _kept(row.state).glance if row.state else Glancing()
    if row.read_to < row.size:
        from threadline.parse.head_reader import head_of

        try:
            for entry in _rest(transcript, row):
                told.add(head_of(entry), entry.line.number)
        except Error:
            return glance(transcript)  # which says what the machine refuses
    return told.glance(transcript.kind)


def _rest(transcript: Transcript, row: _Row) -> Iterator[Entry]:
    """What stands in a last line that was not finished."""
    from threadline.parse import entries

    left = entries(transcript.path, offset=row.read_to, line=row.lines + 1)
    return takewhile(lambda entry: entry.line.offset < row.size, left)
