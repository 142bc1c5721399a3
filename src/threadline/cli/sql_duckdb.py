"""Run SQL queries in DuckDB over the tables that the query names, exported as Parquet files.

DuckDB's own SQLite reader is an extension that is downloaded, so that it is not used. No other file can be read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as Late
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

from threadline.cli.sql_answers import CHUNK_ROWS, exportable_tables, import_library, write_tables
from threadline.errors import BadQuery, Missing
from threadline.index import error_position, timeout_message, unique_names

if TYPE_CHECKING:
    from threadline.archive import Archive

_FETCH_ROWS = 500
_MEMORY, _DISK = "512MB", "8GB"
_MAX_ADDRESS_SPACE = 2 * 1024**3
_ERROR_LINE = re.compile(r"^LINE (\d+):", re.MULTILINE)
_ERROR_TOKEN = re.compile(r'at or near "(.+?)"|column "(.+?)" not|with name "?(.+?)"? does not exist')
_Value = TypeVar("_Value")


class DuckdbAnswer:
    """The rows of a question as they come; `columns` has their names, each of them once."""

    def __init__(self, connection: Any, question: str, seconds: float, worker: Executor) -> None:
        self._connection = connection
        self._question = question
        self._left = self._given = seconds
        self._worker = worker
        self._wrong = import_library("duckdb", "duckdb").Error
        self._check()
        self._bound = self._waited(lambda: connection.sql(question))
        self.columns = unique_names(self._bound.columns)

    def __iter__(self) -> Iterator[Sequence[Any]]:
        self._waited(lambda: self._connection.execute(self._question))
        while rows := self._waited(lambda: self._connection.fetchmany(_FETCH_ROWS)):
            yield from rows

    def write_parquet(self, path: Path) -> int:
        """All rows into a Parquet file, with DuckDB's own types; how many there were.

        Raises:
            BadQuery: a column is of a type that Parquet has not.
        """
        arrow = import_library("pyarrow", "frames")
        parquet = import_library("pyarrow.parquet", "frames")
        reader = self._waited(lambda: self._bound.to_arrow_reader(CHUNK_ROWS))
        rows = 0
        try:
            with parquet.ParquetWriter(
                path, _rename_columns(reader.schema, self.columns), compression="zstd"
            ) as writer:
                while batch := self._waited(lambda: next(reader, None)):
                    writer.write_batch(batch.rename_columns(self.columns))
                    rows += batch.num_rows
        except arrow.ArrowNotImplementedError as error:
            raise BadQuery(f"Parquet cannot hold this answer ({error}); cast the column to VARCHAR.") from None
        return rows

    def _check(self) -> None:
        from duckdb import StatementType

        statements = self._waited(lambda: self._connection.extract_statements(self._question))
        if not statements:
            raise BadQuery("There is no question; give a SELECT. `threadline sql --schema` shows what there is.")
        if len(statements) > 1:
            raise BadQuery("Give one statement, not several.")
        if statements[0].type not in {StatementType.SELECT, StatementType.EXPLAIN}:
            raise BadQuery(f"The index is only read ({statements[0].type.name}): give a SELECT.")

    def _waited(self, call: Callable[[], _Value]) -> _Value:
        """What the call gives, on a worker: DuckDB lets nothing in before it is done, not even Ctrl-C."""
        began = monotonic()
        future = self._worker.submit(call)
        try:
            return future.result(max(self._left, 0))
        except Late:
            self._stop(future)
            raise BadQuery(timeout_message(self._given)) from None
        except KeyboardInterrupt:
            self._stop(future)
            raise
        except MemoryError:
            raise BadQuery("The question needs more memory than it may have; ask for less at once.") from None
        except (self._wrong, OSError) as error:  # the second is what Arrow makes of the first
            raise BadQuery(self._sentence(str(error))) from None
        finally:
            self._left -= monotonic() - began

    def _stop(self, future: Future[Any]) -> None:
        self._connection.interrupt()
        future.exception()

    def _sentence(self, said: str) -> str:
        kind, _, told = said.partition("\n")[0].partition(": ")
        told = told.rstrip(".!")
        if kind.startswith("Out of Memory"):
            return f"The question needs more memory than it may have ({told}); ask for less at once."
        if kind.startswith("Permission"):
            return f"The index is only read ({told}): other files are refused."
        named = _ERROR_TOKEN.search(told)
        at = error_position(self._question, next(filter(None, named.groups()))) if named is not None else ""
        hint = "; `threadline sql --schema` shows what there is" if kind in {"Catalog Error", "Binder Error"} else ""
        return f"DuckDB{at}: {told}{hint}."


def _rename_columns(schema: Any, names: Sequence[str]) -> Any:
    arrow = import_library("pyarrow", "frames")
    return arrow.schema([field.with_name(name) for field, name in zip(schema, names, strict=True)])


@contextmanager
def query_duckdb(archive: Archive, question: str, seconds: float) -> Iterator[DuckdbAnswer]:
    """Ask in DuckDB, over the tables and views of the index that the question names.

    Raises:
        BadQuery: it cannot be understood, wants more than to read, or takes too long or too much.
        Missing: DuckDB or pyarrow is not installed.
        Unreadable: the index is damaged or not there.
    """
    import_library("duckdb", "duckdb")
    words = set(re.findall(r"\w+", question.lower()))
    with TemporaryDirectory(prefix="threadline-") as folder:
        tables, spilled = Path(folder) / "tables", Path(folder) / "spilled"
        for made in (tables, spilled):
            made.mkdir()
        named = [name for name in exportable_tables() if name in words]
        for _ in write_tables(archive, tables, named, seconds):
            pass
        with (
            closing(_open_connection(tables, named, spilled)) as connection,
            _limit_memory(),
            ThreadPoolExecutor(1) as worker,
        ):
            try:
                yield DuckdbAnswer(connection, question, seconds, worker)
            finally:
                # Rows that nobody has asked for would be waited for.
                connection.interrupt()


def _open_connection(tables: Path, named: Sequence[str], spilled: Path) -> Any:
    """A DuckDB in memory that can read these tables, and no other file."""
    duckdb = import_library("duckdb", "duckdb")
    allowed = str(tables).replace("'", "''")
    try:
        connection = duckdb.connect(":memory:", config=_settings(spilled))
        for name in named:
            connection.read_parquet(str(tables / f"{name}.parquet")).create_view(name)
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(f"SET allowed_directories = ['{allowed}']")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
    except duckdb.Error as error:
        said = str(error).partition("\n")[0].rstrip(".")
        told = f"This duckdb ({duckdb.__version__}) cannot be asked: {said}"
        raise Missing(f"{told}; install another with `pip install 'threadline[duckdb]'`.") from None
    return connection


def _settings(spilled: Path) -> dict[str, str]:
    return {
        "memory_limit": _MEMORY,
        "temp_directory": str(spilled),
        "max_temp_directory_size": _DISK,
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "allow_persistent_secrets": "false",
        # Else a table that is not there would be looked for among the variables of this program.
        "python_enable_replacements": "false",
    }


@contextmanager
def _limit_memory() -> Iterator[None]:
    """No more memory than this, where the system can see to it: DuckDB's own limit does not count every value."""
    try:
        import resource

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
