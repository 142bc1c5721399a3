"""Load a lake into ClickHouse, for interactive search at scale; chDB is ClickHouse in this process.

Each row keeps the data file that it comes from, and the table `loaded` lists the files that are complete. So loading
again adds the new files, removes the rows of files that the lake no longer has, and repeats what was interrupted.
The same statements run on a ClickHouse server (26.2 or newer, for the text index).
"""

# ruff: noqa: S608 - statements are built from our own names; values are quoted

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import msgspec
from msgspec import Struct

from threadline.errors import BadQuery, Unreadable
from threadline.files import escape_path
from threadline.lake.iceberg import Catalogue, reports_storage_errors
from threadline.lake.queries import TextSearch, require_commit, select_texts
from threadline.lake.tables import SIGHTINGS, TABLES, TEXTS, table_columns
from threadline.model.tables import DECIMAL_PLACES, import_library
from threadline.model.text import is_utf8
from threadline.storage import Bucket

CHDB = "chdb:"
"""What the name of an engine starts with if it is the folder of a `ChdbStore`."""
DATABASE = "threadline"
CLICKHOUSE_TABLES = tuple(table for table in TABLES if table != SIGHTINGS)
"""The tables that are loaded: all but the one that only builds need."""
_TYPES = {
    "int64": "Nullable(Int64)",
    "float64": "Nullable(Float64)",
    "string": "Nullable(String)",
    "binary": "Nullable(String)",
    "timestamp": "Nullable(DateTime64(6, 'UTC'))",
    "amount": f"Nullable(Decimal(38, {DECIMAL_PLACES}))",
    "date32": "Date32",
}
_FEW_VALUES = frozenset({"person", "machine", "parser_version", "project", "model", "tool", "field", "kind", "version"})
_ORDER = ("project", "session", "transcript", "transcript_id", "line")
_MAX_TOKENS = 64
"""How many tokens ClickHouse looks up at once."""
_MAX_ERROR = 300


class LoadResult(Struct, frozen=True):
    """What a load did: the files that were added and removed, and the rows that the tables have now."""

    added: int
    removed: int
    rows: int


def clickhouse_ddl() -> Iterator[str]:
    """The statements that create the database and its tables."""
    yield f"CREATE DATABASE IF NOT EXISTS {DATABASE}"
    yield (
        f"CREATE TABLE IF NOT EXISTS {DATABASE}.loaded (name LowCardinality(String), file String)"
        " ENGINE = MergeTree ORDER BY (name, file)"
    )
    yield from map(_create_table, CLICKHOUSE_TABLES)


def _create_table(table: str) -> str:
    columns = table_columns(table)
    lines = [f"`{name}` {_column_type(name, kind)} COMMENT {quote(comment)}" for name, kind, comment in columns]
    lines.append("`file` LowCardinality(String) COMMENT 'the data file of the lake that has the row'")
    if table == TEXTS:
        lines.append("INDEX words text TYPE text(tokenizer = splitByNonAlpha, preprocessor = lowerUTF8(text))")
    names = {name for name, _, _ in columns}
    order = ", ".join(f"`{name}`" for name in _ORDER if name in names) or "`source`"
    body = ",\n    ".join(lines)
    return (
        f"CREATE TABLE IF NOT EXISTS {DATABASE}.{table} (\n    {body}\n)\nENGINE = MergeTree"
        f" PARTITION BY toYYYYMM(day) ORDER BY ({order}) SETTINGS allow_nullable_key = 1"
    )


def _column_type(name: str, kind: str) -> str:
    return "LowCardinality(Nullable(String))" if name in _FEW_VALUES and kind == "string" else _TYPES[kind]


def quote(text: str) -> str:
    r"""A text as a literal of ClickHouse.

    >>> print(quote("it's a \\"))
    'it\'s a \\'
    """
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def load_script(bucket: Bucket) -> Iterator[str]:
    """The statements that create the tables on a server and fill them from a lake; what they had is replaced.

    The server reads the files itself, so it needs access to the bucket, or to the folder below its `user_files`.

    Raises:
        NotFound: nothing was built yet.
    """
    files = _table_files(bucket)
    yield from clickhouse_ddl()
    for table in (*CLICKHOUSE_TABLES, "loaded"):
        yield f"TRUNCATE TABLE {DATABASE}.{table}"
    for table in CLICKHOUSE_TABLES:
        for path in files[table]:
            location = f"file({quote(str(bucket.folder / path))}, Parquet)"
            if not bucket.is_local:
                location = f"s3({quote(_object_url(bucket, path))}, Parquet)"
            yield from _insert(table, path, location)


@reports_storage_errors
def _table_files(bucket: Bucket) -> dict[str, list[str]]:
    """The paths of the files of each table."""
    catalogue = Catalogue(bucket, require_commit(bucket))
    return {table: catalogue.data_paths(table) for table in CLICKHOUSE_TABLES}


def _object_url(bucket: Bucket, path: str) -> str:
    """The URL of an object for ClickHouse, which does not know `AWS_ENDPOINT_URL`."""
    location = bucket.location(path)
    return f"{bucket.endpoint.rstrip('/')}/{location.removeprefix('s3://')}" if bucket.endpoint else location


def _insert(table: str, path: str, location: str) -> Iterator[str]:
    names = ", ".join(f"`{name}`" for name, _, _ in table_columns(table))
    yield f"INSERT INTO {DATABASE}.{table} ({names}, `file`) SELECT {names}, {quote(path)} FROM {location}"
    yield f"INSERT INTO {DATABASE}.loaded VALUES ({quote(table)}, {quote(path)})"


class ChdbStore:
    """The tables of a lake in chDB, in a folder. Close it when done, or use it in a `with` statement."""

    def __init__(self, folder: Path) -> None:
        session = import_library("chdb.session", "clickhouse")
        if not is_utf8(str(folder)):
            raise BadQuery(f"'{escape_path(folder)}' is not valid UTF-8. Use a folder whose name is.")
        try:
            self._session = session.Session(str(folder))
        except RuntimeError as error:
            raise Unreadable(f"chDB cannot use the folder {str(folder)!r}: {_first_line(error)}.") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._session.close()

    def load(
        self,
        bucket: Bucket,
        *,
        planned: Callable[[int], None] = lambda _files: None,
        progress: Callable[[int], None] = lambda _files: None,
    ) -> LoadResult:
        """Load what is new in a lake, and remove what it no longer has.

        `planned` is called with the number of files to load, and `progress` with 1 for each.

        Raises:
            NotFound: nothing was built yet.
            Unreadable: the storage refuses.
        """
        for statement in clickhouse_ddl():
            self._run(statement)
        files = {table: set(paths) for table, paths in _table_files(bucket).items()}
        removed = sum(self._remove_stale(table, files[table]) for table in CLICKHOUSE_TABLES)
        new = [(table, path) for table in files for path in sorted(files[table] - self._loaded_files(table))]
        planned(len(new))
        with TemporaryDirectory(prefix="threadline-") as folder:
            for table, path in new:
                source = bucket.folder / path if bucket.is_local else Path(folder) / "rows.parquet"
                if not bucket.is_local:
                    source.write_bytes(bucket.get(path))
                for statement in _insert(table, path, f"file({quote(str(source))}, Parquet)"):
                    self._run(statement)
                progress(1)
        rows = sum(int(self.query(f"SELECT count() AS n FROM {DATABASE}.{table}")[0]["n"]) for table in files)
        return LoadResult(len(new), removed, rows)

    def search(self, search: TextSearch) -> list[dict[str, Any]]:
        """The texts of a search, newest first: the rows that DuckDB finds, with the text index."""
        rows = self.query(search_statement(search))
        for row in rows:
            text = row["timestamp"]
            row["timestamp"] = datetime.fromisoformat(text).replace(tzinfo=UTC) if text is not None else None
        return rows

    def query(self, statement: str) -> list[dict[str, Any]]:
        """The rows of a SELECT.

        Raises:
            BadQuery: the tables were not loaded yet, or the statement is invalid.
        """
        settings = "SETTINGS output_format_json_quote_64bit_integers = 0, output_format_json_quote_decimals = 1"
        data = bytes(self._run(f"{statement} {settings}", "JSONEachRow").bytes())
        return [msgspec.json.decode(line) for line in data.splitlines()]

    def _loaded_files(self, table: str) -> set[str]:
        rows = self.query(f"SELECT file FROM {DATABASE}.loaded WHERE name = {quote(table)}")
        return {row["file"] for row in rows}

    def _remove_stale(self, table: str, current: set[str]) -> int:
        """Remove the rows of files that the lake no longer has, and of those that were not loaded completely."""
        loaded = self._loaded_files(table)
        stored = {row["file"] for row in self.query(f"SELECT DISTINCT file FROM {DATABASE}.{table}")}
        stale = (stored | loaded) - (loaded & current)
        if stale:
            condition = f"file IN ({', '.join(map(quote, sorted(stale)))})"
            for name in (table, "loaded"):
                self._run(f"ALTER TABLE {DATABASE}.{name} DELETE WHERE {condition} SETTINGS mutations_sync = 2")
        return len(stale)

    def _run(self, statement: str, output: str = "CSV") -> Any:
        try:
            return self._session.query(statement, output)
        except RuntimeError as error:
            message = _first_line(error)
            if "UNKNOWN_TABLE" in str(error) or "UNKNOWN_DATABASE" in str(error):
                raise BadQuery("Nothing was loaded yet. Run: threadline lake clickhouse URI --load FOLDER") from None
            raise Unreadable(f"ClickHouse: {message}.") from None


def search_statement(search: TextSearch) -> str:
    """The SELECT that finds the texts of a search in ClickHouse. The text index finds the tokens."""
    conditions = [f"positionUTF8(lowerUTF8(text), {quote(phrase)}) > 0" for phrase in search.phrases]
    tokens = search.tokens
    for at in range(0, len(tokens), _MAX_TOKENS):
        conditions.insert(0, f"hasAllTokens(text, [{', '.join(map(quote, tokens[at : at + _MAX_TOKENS]))}])")
    if search.people is not None:
        conditions.append(f"person IN ({', '.join(map(quote, search.people)) or 'NULL'})")
    if search.project is not None:
        conditions.append(f"positionUTF8(lowerUTF8(project), {quote(search.project.lower())}) > 0")
    for sign, moment in ((">=", search.since), ("<=", search.until)):
        if moment is not None:
            text = moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
            conditions.append(f"timestamp {sign} toDateTime64({quote(text)}, 6, 'UTC')")
    return f"{select_texts(f'{DATABASE}.{TEXTS}', ' AND '.join(conditions) or '1')} LIMIT {search.limit}"


def _first_line(error: Exception) -> str:
    return re.sub(r"\s+", " ", str(error)).partition(" (version")[0][:_MAX_ERROR].rstrip(".")
