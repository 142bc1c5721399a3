"""Turn the bytes of a session into rows of the silver tables. A pure function: the same bytes give the same rows.

The files are written to a temporary home and read like any other, so a lake has exactly the rows that a laptop has.
This runs in worker processes and on the executors of a cluster.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from threadline import __version__
from threadline.account import with_origin
from threadline.errors import Error
from threadline.find import look
from threadline.index import Index, extract_fields, read_tables
from threadline.lake.bronze import FileVersion, Source
from threadline.lake.tables import (
    DAY_COLUMNS,
    INDEX_TABLES,
    NO_DAY,
    SIGHTINGS,
    TEXTS,
    arrow_schema,
    column_names,
    stable_number,
    table_columns,
)
from threadline.model.homes import Found, Home, Transcript
from threadline.model.tables import import_library
from threadline.model.text import replace_surrogates
from threadline.model.times import parse_timestamp, timestamp_from_mtime
from threadline.model.usage import TranscriptSightings, decode_sightings
from threadline.parse import LineNumbers, entries, read_sightings
from threadline.reports import AgentTypes


def session_tables(source: Source, files: Iterable[tuple[FileVersion, bytes]]) -> dict[str, Any]:
    """The rows of a source as Arrow tables, by the name of the silver table."""
    with TemporaryDirectory(prefix="threadline-lake-") as folder:
        reader = _SourceReader(source, Path(folder))
        reader.write_files(files)
        return reader.tables()


class _SourceReader:
    """Reads the files of a source in a temporary home."""

    def __init__(self, source: Source, folder: Path) -> None:
        self._source = source
        self._folder = folder
        self._home = Home(folder / "home", "path")
        self._files: dict[str, FileVersion] = {}

    def write_files(self, files: Iterable[tuple[FileVersion, bytes]]) -> None:
        """Write the files where Claude Code would have."""
        for file, data in files:
            path = self._home.path.joinpath(*file.path.split("/"))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            os.utime(path, ns=(file.mtime_ns, file.mtime_ns))
            self._files[str(path)] = file

    def tables(self) -> dict[str, Any]:
        """All tables of the source."""
        found = look(self._home)
        index = self._folder / "index.sqlite"
        Index.refresh(index, [self._home], jobs=1)
        self._projects = {
            project.name: self._project_of_folder(project.folder) or project.name for project in found.projects
        }
        raw = read_tables(index, [*INDEX_TABLES, "transcripts"])
        transcripts = {row[0]: os.fsdecode(row[1]) for row in raw.pop("transcripts")}
        self._transcript_numbers = {
            number: stable_number(self._source.machine, self._files[path].home, self._files[path].path)
            for number, path in transcripts.items()
            if path in self._files
        }
        at = column_names("entries").index
        number, transcript, offset = at("entry_id"), at("transcript_id"), at("offset")
        self._entry_numbers = {
            row[number]: stable_number(self._transcript_numbers.get(row[transcript]), row[offset])
            for row in raw["entries"]
        }
        times = filter(None, (row[at("timestamp")] for row in raw["entries"]))
        days = sorted(moment.date() for moment in map(parse_timestamp, times) if moment is not None)
        self._first_day = days[0] if days else date.fromisoformat(NO_DAY)
        tables = {name: self._index_table(name, rows) for name, rows in raw.items()}
        tables[TEXTS] = self._arrow(TEXTS, list(self._texts(found)))
        tables[SIGHTINGS] = self._arrow(SIGHTINGS, list(self._sightings(found)))
        return tables

    def _project_of_folder(self, folder: str) -> str | None:
        start = f"projects/{folder}/"
        return next((file.project for file in self._source.files if file.path.startswith(start)), None)

    def _index_table(self, name: str, rows: Iterable[Sequence[Any]]) -> Any:
        """A table of the index, with stable numbers and the original paths."""
        convert: dict[str, Callable[[Any], Any]] = {
            "entry_id": self._entry_numbers.get,
            "result_entry_id": self._entry_numbers.get,
            "transcript_id": self._transcript_numbers.get,
            "problem_id": lambda number: stable_number(self._source.id, number),
            "transcript": self._original_path,
            "home": lambda _home: self._source.files[0].home,
            "project": lambda project: self._projects.get(project, project),
        }
        names = [column for column, _, _ in table_columns(name)]
        converters = [(at, convert[column]) for at, column in enumerate(names) if column in convert]
        converted = []
        for row in rows:
            cells = list(row)
            for at, converter in converters:
                cells[at] = converter(cells[at]) if cells[at] is not None else None
            converted.append(tuple(cells))
        return self._arrow(name, converted)

    def _original_path(self, path: str | bytes) -> str:
        file = self._files.get(os.fsdecode(path))
        return f"{file.home}/{file.path}" if file is not None else ""

    def _texts(self, found: Found) -> Iterator[tuple[Any, ...]]:
        for transcript in found.transcripts:
            path = str(transcript.path)
            file = self._files[path]
            transcript_number = stable_number(self._source.machine, file.home, file.path)
            with suppress(Error):  # the problem is in the table of problems
                for entry in entries(transcript.path):
                    fields: dict[str, str] = {}
                    with suppress(RecursionError):
                        fields = extract_fields(entry)
                    if not fields:
                        continue
                    number = stable_number(transcript_number, entry.line.offset)
                    place = (number, self._original_path(path), entry.line.number, file.session, file.project)
                    for field, text in fields.items():
                        yield (*place, entry.timestamp, field, text)

    def _sightings(self, found: Found) -> Iterator[tuple[Any, ...]]:
        types = AgentTypes([found])
        for transcript in found.transcripts:
            file = self._files[str(transcript.path)]
            packed = pack_sightings(transcript, file, types)
            yield (
                stable_number(self._source.machine, file.home, file.path),
                f"{file.home}/{file.path}",
                file.home,
                self._source.label,
                file.project,
                file.session,
                transcript.agent,
                file.mtime_ns,
                sorted({sighting.key for sighting in packed.sightings}),
                msgspec.msgpack.encode(packed),
            )

    def _arrow(self, name: str, rows: Sequence[tuple[Any, ...]]) -> Any:
        """Arrow columns of these rows, with where they come from."""
        source = self._source
        day_column = DAY_COLUMNS.get(name)
        columns = table_columns(name)
        day_at = [column for column, _, _ in columns].index(day_column) if day_column is not None else None
        origin = (source.person, source.machine, source.id, __version__, source.batch)
        complete = [(*row, *origin, self._day(row[day_at] if day_at is not None else None)) for row in rows]
        return arrow_table(name, complete)

    def _day(self, time: Any) -> date:
        moment = time if isinstance(time, datetime) or time is None else parse_timestamp(time)
        return moment.date() if moment is not None else self._first_day


def pack_sightings(transcript: Transcript, file: FileVersion, types: AgentTypes) -> TranscriptSightings:
    """The sightings of a transcript, with the types of agents that only the session's other files tell."""
    read = read_sightings(transcript)
    packed = decode_sightings(msgspec.msgpack.encode(read))
    packed.began = packed.began or timestamp_from_mtime(file.mtime_ns)
    placed = with_origin(read, transcript, file.project, LineNumbers(os.fspath(transcript.path)))
    numbers: dict[tuple[int, str], int] = {}
    for sighting, copy in zip(placed, packed.sightings, strict=True):
        origin = packed.origins[copy.origin_number]
        if origin.agent is None or origin.agent_type is not None:
            continue
        type_ = types.read(sighting.origin, sighting.uuids)
        if type_ is not None:
            key = (copy.origin_number, type_)
            if key not in numbers:
                numbers[key] = len(packed.origins)
                packed.origins.append(msgspec.structs.replace(origin, agent_type=type_))
            copy.origin_number = numbers[key]
    return packed


def arrow_table(name: str, rows: Sequence[tuple[Any, ...]]) -> Any:
    """Rows as an Arrow table with the types of a silver table."""
    pa = import_library("pyarrow", "lake")
    schema = arrow_schema(name)
    kinds = [kind for _, kind, _ in table_columns(name)]
    values = list(zip(*rows, strict=True)) if rows else [()] * len(kinds)
    return pa.Table.from_arrays(
        [
            pa.array([_CONVERTERS[kind](cell) for cell in column], type=field.type)
            for kind, column, field in zip(kinds, values, schema, strict=True)
        ],
        schema=schema,
    )


def _to_text(value: Any) -> Any:
    if value is None or (type(value) is str and value.isascii()):
        return value
    return replace_surrogates(
        value if isinstance(value, str) else os.fsdecode(value) if isinstance(value, bytes) else str(value)
    )


def _to_time(value: Any) -> Any:
    return value if value is None or isinstance(value, datetime) else parse_timestamp(value)


_CONVERTERS: Mapping[str, Any] = {
    "string": _to_text,
    "timestamp": _to_time,
    "amount": lambda value: None if value is None else Decimal(value),
    "int64": lambda value: value if isinstance(value, int) else None,
    "float64": lambda value: value,
    "binary": lambda value: value,
    "date32": lambda value: value,
    "keys": lambda values: [_to_text(value) for value in values],
}
