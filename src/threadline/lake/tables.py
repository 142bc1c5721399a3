"""Silver: the tables of a lake. Their columns are those of the index, plus where each row comes from.

`entries`, `calls`, `sessions` and so on have the documented columns of the index (`threadline sql --schema`), so the
same SQL runs on a laptop and on a lake. `texts` has the text of entries, for search. `sightings` has the usage of each
transcript, packed; `charges` is computed from it, across all machines. `calls` has each call once, as on one machine:
of the copies that forks, resumed sessions and other machines have, the others are in `call_copies`.

Numbers of entries and transcripts are hashes, so that they are unique across machines and stay the same when a session
is built again. All tables are partitioned by `day`, which is never NULL.

Rows are in Parquet files. A file has the rows of one day. Within it, rows are sorted by project and session. Names
follow from what a file contains, so a task that runs twice writes the same files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from functools import cache
from hashlib import blake2b
from io import BytesIO
from typing import Any

from msgspec import Struct

from threadline.index import ColumnKind, declared_kind, schema_columns
from threadline.model.tables import DECIMAL_DIGITS, DECIMAL_PLACES, import_library
from threadline.storage import Bucket

INDEX_TABLES = ("entries", "calls", "sessions", "agents", "prompts", "files", "compactions", "problems")
"""Tables that are copied from the index of a session."""
SESSIONS, CALLS, CHARGES, CALL_COPIES = "sessions", "calls", "charges", "call_copies"
TEXTS, SIGHTINGS = "texts", "sightings"
TABLES = (*INDEX_TABLES, CHARGES, CALL_COPIES, TEXTS, SIGHTINGS)
SILVER = "silver"
_ROW_GROUP_ROWS = 64 * 1024
# Below these, dictionaries and zstd take longer than they save.
_MIN_DICTIONARY_ROWS = 4096
_MIN_ZSTD_BYTES = 64 * 1024
# Values that hardly repeat: a dictionary of them takes time and saves nothing.
_DISTINCT_COLUMNS = frozenset(
    (
        *("entry_id", "result_entry_id", "offset", "length", "uuid", "call", "text"),
        *("keys.list.element", "title", "summaries", "packed"),
    )
)
NO_DAY = "1970-01-01"
"""The day of rows of a session without any time."""
DAY_COLUMNS = {
    "entries": "timestamp",
    "calls": "started",
    "sessions": "first",
    "agents": "first",
    "prompts": "timestamp",
    "files": "first",
    "compactions": "timestamp",
    "charges": "timestamp",
    "texts": "timestamp",
}
"""The column whose day a row belongs to. Otherwise, and if it is NULL, it is the first day of the session."""

STATISTICS_COLUMNS = frozenset({*DAY_COLUMNS.values(), "day", "project", "session", "person", "source"})
"""Columns by whose smallest and largest values queries skip files. Those of others would help few queries."""

# Columns of views whose type SQLite does not know. All others of them are text.
_INTEGER_COLUMNS = frozenset({"agents", "entries", "reads", "writes"})
ORIGIN_COLUMNS = (
    ("person", "string", "who pushed it"),
    ("machine", "string", "the id of the machine that pushed it"),
    ("source", "string", "the session's files on that machine; rows of a source are replaced together"),
    ("parser_version", "string", "the version of threadline that made the row"),
    ("batch", "int64", "the number of the machine's batch that the row was made from"),
    ("day", "date32", "the partition: the day of the row in UTC, else of its session's first entry, else 1970-01-01"),
)
_CALL_COLUMNS = (
    ("transcript_id", "int64", "the number of the transcript"),
    ("message", "string", "the id of the API message that made it"),
)
_OWN_COLUMNS = {
    TEXTS: (
        ("entry_id", "int64", "the entry"),
        ("transcript", "string", "the path of the transcript"),
        ("line", "int64", "the line number"),
        ("session", "string", "the session"),
        ("project", "string", "the project"),
        ("timestamp", "timestamp", "when it was written"),
        ("field", "string", "title, prompt, reply, thinking, command, path, input, result or injected"),
        ("text", "string", "the text"),
        ("uuid", "string", "the id of the entry, which its copies share"),
        ("is_copy", "int64", "whether the entry names another session: it was copied"),
    ),
    SIGHTINGS: (
        ("transcript_id", "int64", "the transcript's number"),
        ("transcript", "string", "its path"),
        ("home", "string", "its home"),
        ("label", "string", "the name of the machine"),
        ("project", "string", "its project"),
        ("session", "string", "its session"),
        ("agent", "string", "the agent in its path; NULL for a main transcript"),
        ("mtime_ns", "int64", "its mtime, in nanoseconds since 1970"),
        ("keys", "keys", "the keys of the messages that it reports, and the ids of its calls"),
        ("days", "days", "the days on which its source has rows, in any table"),
        ("title", "binary", "the title of the session by its own files, packed; NULL for an agent's transcript"),
        ("summaries", "binary", "the summaries in it, which may title other sessions, packed; NULL if there are none"),
        ("packed", "binary", "the usage that it reports, packed as msgpack"),
    ),
}
_KIND_TYPES = {
    ColumnKind.INTEGER: "int64",
    ColumnKind.REAL: "float64",
    ColumnKind.AMOUNT: "amount",
    ColumnKind.TIME: "timestamp",
    ColumnKind.TEXT: "string",
    ColumnKind.BLOB: "binary",
}


@cache
def table_columns(table: str) -> tuple[tuple[str, str, str], ...]:
    """The columns of a table: the name, the type and the comment of each."""
    if table == CALL_COPIES:
        return table_columns(CALLS)
    own = _OWN_COLUMNS.get(table) or tuple(
        (row["column"], _type_of(row["column"], row["type"]), row["comment"])
        for row in schema_columns()
        if row["table"] == table
    )
    return (*own, *(_CALL_COLUMNS if table == CALLS else ()), *ORIGIN_COLUMNS)


def column_names(table: str) -> list[str]:
    """The names of a table's columns."""
    return [name for name, _, _ in table_columns(table)]


def _type_of(column: str, declared: str | None) -> str:
    kind = declared_kind(column, declared)
    if kind is ColumnKind.NOTHING:
        return "int64" if column in _INTEGER_COLUMNS else "string"
    return _KIND_TYPES[kind]


@cache
def arrow_schema(table: str) -> Any:
    """The `pyarrow.Schema` of a table."""
    pa = import_library("pyarrow", "lake")
    types = {
        "int64": pa.int64(),
        "float64": pa.float64(),
        "string": pa.string(),
        "binary": pa.binary(),
        "date32": pa.date32(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "amount": pa.decimal128(DECIMAL_DIGITS, DECIMAL_PLACES),
        "keys": pa.list_(pa.string()),
        "days": pa.list_(pa.date32()),
    }
    return pa.schema([pa.field(name, types[kind]) for name, kind, _ in table_columns(table)])


def stable_number(*parts: object) -> int:
    """A number of 63 bits that depends on these values only, instead of a number that an index counted."""
    digest = blake2b("\0".join(map(str, parts)).encode(errors="surrogateescape"), digest_size=8).digest()
    return int.from_bytes(digest) >> 1


class NewFile(Struct, frozen=True):
    """A file that was written: its table, its path in the lake, its day, and how many rows it has."""

    table: str
    path: str
    day: date
    rows: int


class Removal(Struct, frozen=True):
    """Rows to remove: those with one of these values in a column. They are in the partitions of these days."""

    column: str
    values: Sequence[Any]
    days: Sequence[date]


def write_rows(bucket: Bucket, table: str, id_: str, rows: Any) -> list[NewFile]:
    """Write the rows of each day to a file whose name has an id."""

    def write(rows_of_day: tuple[date, Any]) -> NewFile:
        day, part = rows_of_day
        path = f"{SILVER}/{table}/data/day={day}/{id_}.parquet"
        bucket.put(path, encode_rows(table, part))
        return NewFile(table, path, day, part.num_rows)

    return list(bucket.map(write, split_by_day(rows)))


def encode_rows(table: str, rows: Any) -> bytes:
    """Rows as the bytes of a Parquet file."""
    parquet = import_library("pyarrow.parquet", "lake")
    names = [f"{field.name}.list.element" if field.type.num_fields else field.name for field in arrow_schema(table)]
    buffer = BytesIO()
    parquet.write_table(
        rows,
        buffer,
        compression="zstd" if rows.nbytes >= _MIN_ZSTD_BYTES else "snappy",
        row_group_size=_ROW_GROUP_ROWS,
        use_dictionary=[
            name for name in names if rows.num_rows >= _MIN_DICTIONARY_ROWS and name not in _DISTINCT_COLUMNS
        ],
        store_schema=False,
        write_statistics=[name for name in names if name in STATISTICS_COLUMNS],
    )
    return buffer.getvalue()


def split_by_day(rows: Any) -> Iterator[tuple[date, Any]]:
    """The rows of each day of an Arrow table, in their order."""
    compute = import_library("pyarrow.compute", "lake")
    days = rows.column("day")
    if compute.count_distinct(days).as_py() > 1:
        rows = rows.combine_chunks().take(compute.sort_indices(days))  # a stable sort
    start = 0
    for count in compute.value_counts(rows.column("day")).to_pylist():
        yield count["values"], rows.slice(start, count["counts"])
        start += count["counts"]


def sort_rows(rows: Any) -> Any:
    """Rows of several files, sorted by project and session as far as their table has those."""
    keys = [(name, "ascending") for name in ("project", "session") if name in rows.schema.names]
    return rows.combine_chunks().sort_by(keys) if keys and rows.num_rows else rows
