"""Run SQL queries in DuckDB over the tables that the query names, exported as Parquet files.

DuckDB's own SQLite reader is not used because it has to be downloaded. Queries cannot read any other file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from concurrent.futures import TimeoutError as Late
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

from threadline.cli.sql.answers import CHUNK_ROWS, exportable_tables, write_tables
from threadline.errors import BadQuery, Missing, Unreadable
from threadline.index import error_position, timeout_message, unique_names
from threadline.model.tables import import_library

if TYPE_CHECKING:
    from threadline.archive import Archive

_FETCH_ROWS = 500
_INTERRUPT_SECONDS = 0.05
_MEMORY, _DISK = "512MB", "8GB"
_MAX_ADDRESS_SPACE = 2 * 1024**3
_ERROR_TOKEN = re.compile(r'at or near "(.+?)"|column "(.+?)" not|with name "?(.+?)"? does not exist')
_SCHEMA_COMMAND = "threadline sql --schema"
_SOURCE = "index"
_Value = TypeVar("_Value")


class DuckdbAnswer:
    """The rows of a query as they come. Names in `columns` are unique.

    Messages call the data `source`, and name `schema_command`, which shows the tables.
    """

    def __init__(
        self,
        connection: Any,
        query: str,
        seconds: float,
        worker: Executor,
        *,
        schema_command: str,
        source: str,
    ) -> None:
        self._source = source
        self._schema_command = schema_command
        self._connection = connection
        self._query = query
        self._left = self._timeout = seconds
        self._worker = worker
        self._error = import_library("duckdb", "duckdb").Error
        self._check()
        self._relation = self._run(lambda: connection.sql(query))
        self.columns = unique_names(self._relation.columns)

    def __iter__(self) -> Iterator[Sequence[Any]]:
        self._run(lambda: self._connection.execute(self._query))
        while rows := self._run(lambda: self._connection.fetchmany(_FETCH_ROWS)):
            yield from rows

    def write_parquet(self, path: Path) -> int:
        """Write all rows to a Parquet file, with DuckDB's own types; return how many.

        Raises:
            BadQuery: Parquet does not support the type of a column.
        """
        arrow = import_library("pyarrow", "frames")
        parquet = import_library("pyarrow.parquet", "frames")
        reader = self._run(lambda: self._relation.to_arrow_reader(CHUNK_ROWS))
        rows = 0
        try:
            with parquet.ParquetWriter(
                path, _rename_columns(reader.schema, self.columns), compression="zstd"
            ) as writer:
                while batch := self._run(lambda: next(reader, None)):
                    writer.write_batch(batch.rename_columns(self.columns))
                    rows += batch.num_rows
        except arrow.ArrowNotImplementedError as error:
            raise BadQuery(f"Parquet does not support this result ({error}). Cast the column to VARCHAR.") from None
        return rows

    def _check(self) -> None:
        from duckdb import StatementType  # noqa: PLC0415 - an optional library

        statements = self._run(lambda: self._connection.extract_statements(self._query))
        if not statements:
            raise BadQuery(f"The query is empty. Write a SELECT; `{self._schema_command}` shows the tables.")
        if len(statements) > 1:
            raise BadQuery("Write one statement, not several.")
        if statements[0].type not in {StatementType.SELECT, StatementType.EXPLAIN}:
            kind = statements[0].type.name
            raise BadQuery(f"The {self._source} is read-only ({kind}). Only SELECT statements are allowed.")

    def _run(self, call: Callable[[], _Value]) -> _Value:
        """Run a call on a worker: DuckDB blocks everything until it is done, even Ctrl-C."""
        start = monotonic()
        future = self._worker.submit(call)
        try:
            return future.result(max(self._left, 0))
        except Late:
            self._stop(future)
            raise BadQuery(timeout_message(self._timeout)) from None
        except KeyboardInterrupt:
            self._stop(future)
            raise
        except MemoryError:
            raise BadQuery("The query needs too much memory. Select less.") from None
        except (self._error, OSError) as error:  # Arrow turns the first into the second
            raise BadQuery(self._format_error(str(error))) from None
        finally:
            self._left -= monotonic() - start

    def _stop(self, future: Future[Any]) -> None:
        # An interrupt is lost if the query has not started yet, and the query would run for ever.
        while not future.cancel() and not future.done():
            self._connection.interrupt()
            wait([future], _INTERRUPT_SECONDS)

    def _format_error(self, error: str) -> str:
        kind, _, message = error.partition("\n")[0].partition(": ")
        message = message.rstrip(".!")
        if kind.startswith("Out of Memory"):
            return f"The query needs too much memory ({message}). Select less."
        if kind.startswith("Permission"):
            return f"Only the {self._source} can be read, not other files ({message})."
        token = _ERROR_TOKEN.search(message)
        at = error_position(self._query, next(filter(None, token.groups()))) if token is not None else ""
        hint = f" `{self._schema_command}` shows the tables." if kind in {"Catalog Error", "Binder Error"} else ""
        return f"DuckDB{at}: {message}.{hint}"


def _rename_columns(schema: Any, names: Sequence[str]) -> Any:
    arrow = import_library("pyarrow", "frames")
    return arrow.schema([field.with_name(name) for field, name in zip(schema, names, strict=True)])


@contextmanager
def query_duckdb(archive: Archive, query: str, seconds: float) -> Iterator[DuckdbAnswer]:
    """Run a query in DuckDB, over the tables and views of the index that it names.

    Raises:
        BadQuery: the query is invalid, not read-only, or takes too long or too much memory.
        Missing: DuckDB or pyarrow is not installed.
        Unreadable: the index is damaged or missing.
    """
    import_library("duckdb", "duckdb")
    words = set(re.findall(r"\w+", query.lower()))
    with TemporaryDirectory(prefix="threadline-") as folder:
        names = [name for name in exportable_tables() if name in words]
        for _ in write_tables(archive, Path(folder), names, seconds):
            pass
        files = {name: [Path(folder) / f"{name}.parquet"] for name in names}
        with query_parquet(files, query, seconds) as answer:
            yield answer


@contextmanager
def query_parquet(
    files: Mapping[str, Sequence[Path]],
    query: str,
    seconds: float,
    *,
    schema_command: str = _SCHEMA_COMMAND,
    source: str = _SOURCE,
) -> Iterator[DuckdbAnswer]:
    """Run a query in DuckDB, over tables in Parquet files.

    Messages call the data `source`, and name `schema_command`, which shows the tables.

    Raises:
        BadQuery: the query is invalid, not read-only, or takes too long or too much memory.
        Missing: DuckDB is not installed.
        Unreadable: a file is missing or damaged.
    """
    with (
        TemporaryDirectory(prefix="threadline-") as spilled,
        closing(_open_connection(files, Path(spilled))) as connection,
        _limit_memory(),
        ThreadPoolExecutor(1) as worker,
    ):
        try:
            yield DuckdbAnswer(connection, query, seconds, worker, schema_command=schema_command, source=source)
        finally:
            # Otherwise it would wait for rows that nobody reads.
            connection.interrupt()


def _open_connection(files: Mapping[str, Sequence[Path]], spilled: Path) -> Any:
    """An in-memory DuckDB that can read these tables and no other file."""
    duckdb = import_library("duckdb", "duckdb")
    folders = sorted({str(path.parent).replace("'", "''") for paths in files.values() for path in paths})
    allowed = ", ".join(f"'{folder}'" for folder in folders)
    try:
        connection = duckdb.connect(":memory:", config=_settings(spilled))
        for name, paths in files.items():
            try:
                connection.read_parquet([str(path) for path in paths], hive_partitioning=False).create_view(name)
            except duckdb.Error as error:
                reason = str(error).partition("\n")[0].rstrip(".")
                raise Unreadable(
                    f"The table {name!r} cannot be read: {reason}. Try again, or build it again."
                ) from None
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET enable_progress_bar = false")  # it would go to standard output, between the rows
        connection.execute(f"SET allowed_directories = [{allowed}]")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
    except duckdb.Error as error:
        message = str(error).partition("\n")[0].rstrip(".")
        raise Missing(
            f"duckdb {duckdb.__version__} does not work: {message}."
            " Install another version: pip install 'threadline[duckdb]'"
        ) from None
    return connection


def _settings(spilled: Path) -> dict[str, str]:
    return {
        "memory_limit": _MEMORY,
        "temp_directory": str(spilled),
        "max_temp_directory_size": _DISK,
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "allow_persistent_secrets": "false",
        # Otherwise a missing table would be looked up among this program's variables.
        "python_enable_replacements": "false",
    }


@contextmanager
def _limit_memory() -> Iterator[None]:
    """Limit the address space if the system can: DuckDB's own limit does not count every value."""
    try:
        import resource  # noqa: PLC0415 - Windows has none

        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except (ImportError, OSError):
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = used + _MAX_ADDRESS_SPACE
    if soft != resource.RLIM_INFINITY and soft < most:
        yield
        return
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
