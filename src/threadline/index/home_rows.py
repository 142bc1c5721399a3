"""The rows of homes without an index on disk: for a lake, whose tables have the same columns.

They are what an index of one home contains. Every transcript is read once, for rows, texts and usage; nothing is
prepared for full-text search, and nothing is charged. One empty index in memory serves many homes, one after the
other: to open it takes longer than to read a short session.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from msgspec import Struct

from threadline.index.plan import PlaceIds, ReadStep
from threadline.index.refresh import IndexWriter, last_timestamp
from threadline.index.rows.sighting_rows import PlainSightings, insert_origin
from threadline.index.rows.state import ReadRequest, TextRow, TranscriptRows, read_rows
from threadline.index.schema import ALL_CALLS_SQL, TABLES
from threadline.index.store import FIELDS, ORIGIN_TYPE_SQL, open_in_memory, storable_text
from threadline.model.homes import Found, Transcript, TranscriptStat
from threadline.model.usage import Origin, TranscriptSightings
from threadline.parallel import relaxed_gc

# ruff: noqa: S608 - statements are made of our own words

_SELECT_TYPES = f"""SELECT o.origin_id, {ORIGIN_TYPE_SQL} FROM origins o
WHERE o.agent IS NOT NULL AND o.agent_type IS NULL"""
_SELECT_SUMMARIES = "SELECT transcript_id, leaf, line, text FROM summary_rows ORDER BY line"
_UPDATE_SIZES = "UPDATE transcripts SET (size, read_to, lines) = (?, ?, ?) WHERE transcript_id = ?"
_CALLS = "calls"
# No text is written for full-text search, and its table has no rows to delete.
_WRITTEN_TABLES = tuple(name for name in TABLES if name != "text")


class PlainTranscript(Struct):
    """What other transcripts depend on: the usage in a transcript and the sessions that it titles.

    `number` is its `transcript_id`. The sightings have the types of agents that only the session's other files tell.
    `summaries` are the named entries, lines and texts of its summaries. `agent_lines` are the lines of agents inside a
    main transcript: a summary that names one of them titles nothing.
    """

    number: int
    transcript: Transcript
    sightings: TranscriptSightings
    agent_lines: list[int]
    summaries: list[tuple[str, int, str]] = []


class HomeRows(Struct, frozen=True):
    """The rows of a home.

    `tables` has the rows of tables and views, with the columns that `schema_columns` lists; `calls` includes copies.
    `texts` are the ids of entries, fields and texts.
    """

    tables: dict[str, list[Sequence[Any]]]
    texts: list[tuple[int, str, str]]
    transcripts: list[PlainTranscript]


class _RowWriter(IndexWriter):
    """Collects texts and usage instead of writing them."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__(connection)
        self.texts: list[tuple[int, str, str]] = []
        self._transcripts: dict[int, PlainTranscript] = {}
        self._origins: dict[int, Origin] = {}

    def add(self, step: ReadStep, rows: TranscriptRows) -> None:
        """Write the rows of a transcript, and collect its usage."""
        super().add(step, rows)
        number, plain = step.transcript_id, rows.plain or PlainSightings(TranscriptSightings(), [])
        began = storable_text(plain.read.began) or ""
        ids = [insert_origin(self.connection, number, key, began) for key in plain.keys]
        self._origins.update(zip(ids, plain.read.origins, strict=True))
        self._transcripts[number] = PlainTranscript(number, step.transcript, plain.read, rows.agent_lines)

    def commit(self) -> None:
        """Do nothing: nobody else sees this index."""

    def transcripts(self) -> list[PlainTranscript]:
        """All transcripts, with the types of agents and with summaries."""
        for id_, type_ in self.connection.execute(_SELECT_TYPES):
            self._origins[id_].agent_type = type_
        for number, *summary in self.connection.execute(_SELECT_SUMMARIES):
            self._transcripts[number].summaries.append(tuple(summary))
        return list(self._transcripts.values())

    def _add_texts(self, first: int, texts: Sequence[TextRow]) -> None:
        self.texts += (
            (first + at, field, text)
            for at, fields in texts
            for field in FIELDS
            if isinstance(text := fields.get(field), str)
        )

    def _store_progress(self, step: ReadStep, rows: TranscriptRows) -> None:
        """Store what views need. Nothing is read again, so no fingerprint is needed."""
        values = (step.stat.size, rows.read_to, rows.lines, step.transcript_id)
        self.connection.execute(_UPDATE_SIZES, values)


class RowReader:
    """Reads the rows of homes, one after the other. Use `open_row_reader`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._meta = connection.execute("SELECT * FROM meta").fetchall()

    @relaxed_gc()
    def read(self, found: Found, names: Iterable[str]) -> HomeRows:
        """Read the rows that an index of a home would have in these tables and views."""
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        places = PlaceIds(connection, [found])
        writer = _RowWriter(connection)
        for transcript in sorted(found.transcripts, key=_reading_order):
            path = str(transcript.path)
            stat = TranscriptStat(path, 0, 0, transcript.size, transcript.mtime_ns, racy=False)
            step = ReadStep(transcript, stat, places.new(transcript, path), is_new=True)
            writer.add(step, read_rows(ReadRequest(transcript, is_plain=True)))
        writer.link_rows()
        tables = {
            name: connection.execute(ALL_CALLS_SQL if name == _CALLS else f'SELECT * FROM "{name}"').fetchall()
            for name in names
        }
        transcripts = writer.transcripts()
        self._clear()
        return HomeRows(tables, writer.texts, transcripts)

    def _clear(self) -> None:
        """Delete all rows, for the next home."""
        for name in _WRITTEN_TABLES:
            self._connection.execute(f'DELETE FROM "{name}"')
        self._connection.executemany("INSERT INTO meta VALUES(?, ?)", self._meta)
        self._connection.execute("COMMIT")


def _reading_order(transcript: Transcript) -> str:
    return last_timestamp(str(transcript.path), transcript.size, transcript.mtime_ns)


@contextmanager
def open_row_reader() -> Iterator[RowReader]:
    """A reader with an empty index in memory."""
    with open_in_memory() as connection:
        yield RowReader(connection)
