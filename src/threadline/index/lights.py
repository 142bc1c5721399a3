"""Lights: what the index knows of each transcript as a whole, as if it had just been read."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import takewhile
from typing import NamedTuple

from threadline.errors import Error
from threadline.index.state import State, unpacked_state
from threadline.index.texts import stored
from threadline.model.entries import Entry
from threadline.model.found import Transcript
from threadline.model.time import parse_timestamp
from threadline.parse import entries
from threadline.parse.head_reader import head_of
from threadline.survey.glance import Glance
from threadline.survey.light import Light, Lighting, light
from threadline.survey.overview import glance
from threadline.survey.sessions import last_time


class _Row(NamedTuple):
    state: bytes
    read_to: int
    size: int
    lines: int


class Lights:
    """Answers from the index; of a last line that was not finished when it was read, from the transcript."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def last(self, transcript: Transcript) -> datetime:
        """The last time that a transcript tells; when it was written where it tells none."""
        row = self._row(transcript)
        if row is None or row.read_to < row.size:
            return last_time(transcript)
        told = parse_timestamp(unpacked_state(row.state).glance.last)
        return told if told is not None else last_time(transcript)

    def lights(self, transcripts: Iterable[Transcript]) -> Iterator[tuple[Transcript, Light]]:
        """What a light pass over each main transcript tells."""
        for transcript in transcripts:
            yield transcript, self._light(transcript)

    def _light(self, transcript: Transcript) -> Light:
        row = self._row(transcript)
        state = unpacked_state(row.state).light if row is not None else None
        if row is None or state is None:
            return light(transcript)
        lighting = Lighting(state)
        if row.read_to < row.size:
            try:
                for entry in _rest(transcript, row):
                    lighting.add(entry)
            except Error as error:
                return Light(problem=str(error), spoken=1)
        return lighting.light() if lighting.is_sure or row.read_to >= row.size else light(transcript)

    def glances(self, transcripts: Iterable[Transcript]) -> Iterator[tuple[Transcript, Glance]]:
        """What a glance at each transcript tells."""
        for transcript in transcripts:
            row = self._row(transcript)
            yield transcript, glance(transcript) if row is None else _glance(transcript, row)

    def _row(self, transcript: Transcript) -> _Row | None:
        """What the index has of a transcript; None where it has nothing that could be relied on."""
        asked = "SELECT state, read_to, size, lines FROM transcripts WHERE path = ?"
        found = self._connection.execute(asked, (stored(str(transcript.path)),)).fetchone()
        row = _Row(*found) if found is not None else None
        # One that has bytes and no line was never read: the machine refused, or its first line has no end.
        return None if row is None or (row.size and not row.lines) else row


def _glance(transcript: Transcript, row: _Row) -> Glance:
    state: State = unpacked_state(row.state)
    try:
        for entry in _rest(transcript, row) if row.read_to < row.size else ():
            state.glance.add(head_of(entry))
    except Error:
        return glance(transcript)  # which says what the machine refuses
    return state.glance.glance(transcript.kind)


def _rest(transcript: Transcript, row: _Row) -> Iterator[Entry]:
    """What stands in a last line that was not finished."""
    left = entries(transcript.path, offset=row.read_to, line=row.lines + 1)
    return takewhile(lambda entry: entry.line.offset < row.size, left)
