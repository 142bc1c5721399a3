"""Turn the bytes of sessions into rows of the silver tables. A pure function: the same bytes give the same rows.

The files of a session are written to a temporary home and read like any other, so a lake has exactly the rows that a
laptop has. Rows of several sessions are collected before they become Arrow tables: for each table of each session,
that would take longer than to read it. This runs in worker processes and on the executors of a cluster.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import date
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from threadline.find import look
from threadline.index import HomeRows, RowReader, open_row_reader
from threadline.lake.bronze import FileVersion, Source
from threadline.lake.columns import Columns, Origins, first_day
from threadline.lake.tables import CALLS, INDEX_TABLES, SESSIONS, SIGHTINGS, TEXTS, column_names, stable_number
from threadline.lake.titles import OwnTitle, encode_summaries, encode_title
from threadline.model.homes import Found, Home
from threadline.model.text import replace_surrogates
from threadline.model.times import parse_timestamp, timestamp_from_mtime
from threadline.model.usage import TranscriptSightings

_DAYS = column_names(SIGHTINGS).index("days")


@contextmanager
def open_row_builder() -> Iterator[RowBuilder]:
    """A builder of rows, with a temporary folder for the files of one source at a time."""
    with open_row_reader() as reader, TemporaryDirectory(prefix="threadline-lake-") as folder:
        yield RowBuilder(reader, Path(folder))


class RowBuilder:
    """Collects the rows of sources, and turns them into Arrow tables. Use `open_row_builder`."""

    def __init__(self, reader: RowReader, folder: Path) -> None:
        self._reader = reader
        self._folder = folder
        self._count = 0
        self._start()

    def _start(self) -> None:
        self.size = 0
        """How many bytes were read for the rows that are collected."""
        self._origins = Origins()
        self._columns = {name: Columns(name, self._origins) for name in (*INDEX_TABLES, TEXTS, SIGHTINGS)}
        self._sightings: list[tuple[int, list[tuple[Any, ...]], set[date]]] = []

    def add(self, source: Source, files: Iterable[tuple[FileVersion, bytes]]) -> None:
        """Add the rows of a source."""
        self._count += 1
        home = Home(self._folder / str(self._count), "path")
        paths: dict[str, FileVersion] = {}
        folders: set[str] = set()
        try:
            for file, data in files:
                path = str(file.path_below(home.path))
                folder = os.path.dirname(path)  # noqa: PTH120 - for thousands, as below
                if folder not in folders:
                    os.makedirs(folder, exist_ok=True)  # noqa: PTH103
                    folders.add(folder)
                Path(path).write_bytes(data)
                paths[path] = file
                os.utime(path, ns=(file.mtime_ns, file.mtime_ns))
            found = look(home, side_files=False)
            rows = self._reader.read(found, INDEX_TABLES)
        finally:
            for name in paths:
                os.unlink(name)  # noqa: PTH108
        self.size += source.size
        self._add_rows(_SourceRows(source, paths, found, rows))

    def _add_rows(self, source: _SourceRows) -> None:
        number = self._origins.add(source.source, source.first_day)
        for name, rows in source.index_tables():
            self._columns[name].extend(number, rows)
        self._columns[TEXTS].extend(number, source.texts())
        sightings, days = source.sightings()
        self._sightings.append((number, sightings, days))

    def take_tables(self) -> dict[str, Any]:
        """The rows that were collected as Arrow tables, by the name of the silver table. Then, collect others."""
        tables, days = {}, dict[int, set[date]]()
        for name, columns in self._columns.items():
            if name != SIGHTINGS:
                tables[name] = columns.to_arrow()
                for number, day in columns.days(tables[name]):
                    days.setdefault(number, set()).add(day)
        sightings = self._columns[SIGHTINGS]
        for number, rows, days_of_usage in self._sightings:
            all_days = sorted(days_of_usage | days.get(number, set()))
            sightings.extend(number, zip(*((*row[:_DAYS], all_days, *row[_DAYS:]) for row in rows), strict=True))
        tables[SIGHTINGS] = sightings.to_arrow()
        self._start()
        return tables


class _SourceRows:
    """The rows of a source with stable numbers and original paths, column by column."""

    def __init__(self, source: Source, files: dict[str, FileVersion], found: Found, rows: HomeRows) -> None:
        self.source = source
        self._files = files
        self._rows = rows
        self._file_of = {read.number: files[str(read.transcript.path)] for read in rows.transcripts}
        self._transcripts = {number: self._transcript_number(file) for number, file in self._file_of.items()}
        self._projects = {
            project.name: self._project_of_folder(project.folder) or project.name for project in found.projects
        }
        names = column_names("entries")
        columns = list(zip(*rows.tables["entries"], strict=True)) or [()] * len(names)
        self._entries = dict(zip(names, columns, strict=False))
        self._entry_numbers = {
            number: stable_number(self._transcripts.get(transcript), offset)
            for number, transcript, offset in zip(
                *(self._entries[name] for name in ("entry_id", "transcript_id", "offset")), strict=True
            )
        }
        self._calls: dict[int, set[str]] = {}
        self.first_day = first_day(self._entries["timestamp"])

    def _transcript_number(self, file: FileVersion) -> int:
        return stable_number(self.source.machine, file.home, file.path)

    def _project_of_folder(self, folder: str) -> str | None:
        start = f"projects/{folder}/"
        return next((file.project for file in self.source.files if file.path.startswith(start)), None)

    def index_tables(self) -> Iterator[tuple[str, Iterable[Iterable[Any]]]]:
        """The columns of the tables that the index has, too."""
        convert: dict[str, Callable[[Any], Any]] = {
            "entry_id": self._entry_numbers.get,
            "result_entry_id": self._entry_numbers.get,
            "transcript_id": self._transcripts.get,
            "problem_id": lambda number: stable_number(self.source.id, number),
            "transcript": cache(self._original_path),
            "home": lambda home: self.source.files[0].home if home is not None else None,
            "project": lambda project: self._projects.get(project, project),
        }
        self._add_messages()
        for name in INDEX_TABLES:
            rows = self._rows.tables[name]
            columns: Iterable[Iterable[Any]] = zip(*rows, strict=True)
            yield (
                name,
                [
                    map(convert[column], values) if column in convert else values
                    for column, values in zip(column_names(name), columns, strict=False)
                ],
            )

    def _add_messages(self) -> None:
        """Add the transcript and the message to each call, and collect the calls of each transcript."""
        entries = self._entries
        messages = dict(
            zip(entries["entry_id"], zip(entries["transcript_id"], entries["message"], strict=True), strict=True)
        )
        names = column_names(CALLS)
        entry, call = names.index("entry_id"), names.index("call")
        calls = self._rows.tables[CALLS]
        for at, row in enumerate(calls):
            transcript, message = messages[row[entry]]
            self._calls.setdefault(transcript, set()).add(row[call])
            calls[at] = (*row, transcript, message)

    def _original_path(self, path: str | bytes | None) -> str | None:
        if path is None:
            return None
        file = self._files.get(os.fsdecode(path))
        return f"{file.home}/{file.path}" if file is not None else ""

    def texts(self) -> Iterable[Iterable[Any]]:
        """The columns of `texts`."""
        if not self._rows.texts:
            return ()
        entries = self._entries
        numbers, fields, values = zip(*self._rows.texts, strict=True)
        at = {number: row for row, number in enumerate(entries["entry_id"])}
        rows = [at[number] for number in numbers]
        transcripts, lines, times = (entries[name] for name in ("transcript_id", "line", "timestamp"))
        uuids, sessions = entries["uuid"], entries["session"]
        files = self._file_of
        names = {number: f"{file.home}/{file.path}" for number, file in files.items()}
        of_rows = [transcripts[row] for row in rows]
        return (
            map(self._entry_numbers.__getitem__, numbers),
            map(names.__getitem__, of_rows),
            map(lines.__getitem__, rows),
            (files[number].session for number in of_rows),
            (files[number].project for number in of_rows),
            map(times.__getitem__, rows),
            fields,
            values,
            map(uuids.__getitem__, rows),
            (int(sessions[row] is not None) for row in rows),
        )

    def sightings(self) -> tuple[list[tuple[Any, ...]], set[date]]:
        """The rows of `sightings` without `days`, and the days of the usage."""
        rows, times = [], set[str]()
        titles = self._titles()
        for plain in self._rows.transcripts:
            transcript, read, file = plain.transcript, plain.sightings, self._file_of[plain.number]
            path = f"{file.home}/{file.path}"
            for sighting in read.sightings:
                # A message without any id is counted by its place, whose path here is a temporary one.
                sighting.key = sighting.key.replace(str(transcript.path), path)
            read.began = read.began or timestamp_from_mtime(file.mtime_ns)
            times |= {sighting.time for sighting in read.sightings}
            times.add(read.began)
            calls = self._calls.get(plain.number, set())
            title = titles.get(plain.number)
            rows.append(
                (
                    self._transcript_number(file),
                    path,
                    file.home,
                    self.source.label,
                    file.project,
                    file.session,
                    transcript.agent,
                    file.mtime_ns,
                    sorted({sighting.key for sighting in read.sightings} | calls),
                    encode_title(OwnTitle(*title, plain.agent_lines)) if title is not None else None,
                    encode_summaries(plain.summaries),
                    _encode_sightings(read),
                )
            )
        days = {moment.date() for moment in map(parse_timestamp, times) if moment is not None}
        return rows, days | {self.first_day}

    def _titles(self) -> dict[int, tuple[str, str]]:
        """The titles of sessions by their own files, and their sources, by the number of the main transcript."""
        names = column_names(SESSIONS)
        number, title, source = (names.index(name) for name in ("transcript_id", "title", "title_source"))
        return {row[number]: (row[title], row[source]) for row in self._rows.tables[SESSIONS]}


def _encode_sightings(read: TranscriptSightings) -> bytes:
    try:
        return msgspec.msgpack.encode(read)
    except UnicodeEncodeError:  # half of a surrogate pair
        return msgspec.msgpack.encode(replace_surrogates(msgspec.to_builtins(read)))
