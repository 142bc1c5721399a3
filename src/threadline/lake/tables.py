"""Silver: the tables of a lake. Their columns are those of the index, plus where each row comes from.

`entries`, `calls`, `sessions` and so on have the documented columns of the index (`threadline sql --schema`), so the
same SQL runs on a laptop and on a lake. `texts` has the text of entries, for search. `sightings` has the usage of each
transcript, packed; `charges` is computed from it, across all machines.

Numbers of entries and transcripts are hashes, so that they are unique across machines and stay the same when a session
is built again. All tables are partitioned by `day`, which is never NULL.
"""

from __future__ import annotations

from functools import cache
from hashlib import blake2b
from typing import Any

from threadline.index import ColumnKind, declared_kind, schema_columns
from threadline.model.tables import DECIMAL_DIGITS, DECIMAL_PLACES, import_library

INDEX_TABLES = ("entries", "calls", "sessions", "agents", "prompts", "files", "compactions", "problems")
"""Tables that are copied from the index of a session."""
CHARGES, TEXTS, SIGHTINGS = "charges", "texts", "sightings"
TABLES = (*INDEX_TABLES, CHARGES, TEXTS, SIGHTINGS)
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

# Columns of views whose type SQLite does not know. All others of them are text.
_INTEGER_COLUMNS = frozenset({"agents", "entries", "reads", "writes"})
_ORIGIN_COLUMNS = (
    ("person", "string", "who pushed it"),
    ("machine", "string", "the id of the machine that pushed it"),
    ("source", "string", "the session's files on that machine; rows of a source are replaced together"),
    ("parser_version", "string", "the version of threadline that made the row"),
    ("batch", "int64", "the number of the machine's batch that the row was made from"),
    ("day", "date32", "the partition: the day of the row in UTC, else of its session's first entry, else 1970-01-01"),
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
        ("keys", "keys", "the keys of the messages that it reports"),
        ("packed", "binary", "their usage, packed as msgpack"),
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
    own = _OWN_COLUMNS.get(table) or tuple(
        (row["column"], _type_of(row["column"], row["type"]), row["comment"])
        for row in schema_columns()
        if row["table"] == table
    )
    return (*own, *_ORIGIN_COLUMNS)


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
    }
    return pa.schema([pa.field(name, types[kind]) for name, kind, _ in table_columns(table)])


def stable_number(*parts: object) -> int:
    """A number of 63 bits that depends on these values only, instead of a number that an index counted."""
    digest = blake2b("\0".join(map(str, parts)).encode(errors="surrogateescape"), digest_size=8).digest()
    return int.from_bytes(digest) >> 1
