"""`threadline sql`: query the index in SQL, read-only."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from threadline.archive import Archive
from threadline.cli import EXIT_NOTHING, EXIT_OK
from threadline.cli import output as out
from threadline.cli.options import Number, home_option, output_options
from threadline.cli.resolve import ensure_index, open_archive
from threadline.cli.sql.answers import (
    check_targets,
    export_tables,
    export_targets,
    format_of,
    print_answer_rows,
    print_answer_table,
    print_schema_table,
    query_index,
    write_answer,
)
from threadline.errors import BadQuery
from threadline.index import schema_columns, table_descriptions, timeout_message
from threadline.model.text import count, format_size, is_utf8
from threadline.render import plain

if TYPE_CHECKING:
    from threadline.cli.sql.answers import Answer

_DEFAULT_TIMEOUT = 60.0
_EPILOG = """
\b
Examples:
  threadline sql --schema
  threadline sql "SELECT kind, COUNT(*) FROM entries GROUP BY kind"
  threadline sql "SELECT model, SUM(output) FROM charges GROUP BY 1" --csv
  threadline sql "SELECT transcript, line FROM said
                  JOIN text ON text.rowid = entry_id
                  WHERE text MATCH 'prompt: parser'" --jsonl
  threadline sql - < query.sql
  threadline sql "SELECT * FROM charges" --out charges.parquet
  threadline sql --export tables           every table as a Parquet file
  threadline sql --duckdb "SELECT model, SUM(amount) FROM charges GROUP BY 1"

\b
Exit codes: 0 rows; 1 no rows, no home or no index; 2 an error.
"""


@click.command(epilog=_EPILOG)
@click.argument("query", metavar="SELECT", required=False)
@click.option("--schema", is_flag=True, help="Show tables, views and columns.")
@click.option(
    "--out",
    "target",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the rows to FILE: .parquet, .csv, .jsonl or .json.",
)
@click.option(
    "--export",
    "folder",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Write every table and view to FOLDER, each as a Parquet file.",
)
@click.option("--force", is_flag=True, help="With --out and --export: overwrite existing files.")
@click.option("--duckdb", is_flag=True, help="Use DuckDB and its SQL dialect; amounts are decimals there.")
@click.option("--no-refresh", is_flag=True, help="Use the index as it is, without reading recent changes.")
@click.option(
    "--timeout",
    type=Number(min=0, min_open=True),
    default=_DEFAULT_TIMEOUT,
    metavar="SECONDS",
    help=f"Stop after this time. Default: {_DEFAULT_TIMEOUT:g}.",
)
@home_option
@output_options
def sql(
    query: str | None,
    *,
    schema: bool,
    target: Path | None,
    folder: Path | None,
    force: bool,
    duckdb: bool,
    no_refresh: bool,
    timeout: float,
    homes: tuple[str, ...],
    output: str,
) -> int:
    """Query the index with SQL.

    SELECT is one statement, or - for standard input. SQLite runs it, read-only. The index is refreshed first, unless
    another process is doing that. Amounts are exact decimals stored as text: in SQLite, SUM converts them to
    floating-point numbers; --duckdb sums them exactly. docs/index.md describes each table. Blobs are shown in
    hexadecimal.

    Parquet needs the extra `frames`, and --duckdb the extra `duckdb`.
    """
    _check_options(query, schema=schema, target=target, folder=folder, force=force, duckdb=duckdb)
    if schema:
        return _print_schema(output)
    if query == "-":
        query = sys.stdin.buffer.read().decode(errors="replace") if sys.stdin is not None else ""
    output_format = _output_format(target, output) if target is not None else output
    with _suggest_timeout(timeout), open_archive(homes, quiet_bytes=0, require_home=True) as archive:
        if folder is not None:
            return _export_index(archive, folder, timeout, output, force=force, refresh=not no_refresh)
        _check_encoding(query or "")
        prepared = _Query(query or "", target, output_format, timeout, force, duckdb, not no_refresh)
        return _run_query(archive, prepared)


@contextmanager
def _suggest_timeout(seconds: float) -> Iterator[None]:
    """Add to the error of a query that took too long how to allow more time."""
    try:
        yield
    except BadQuery as error:
        if str(error) == timeout_message(seconds):
            raise BadQuery(f"{error} --timeout allows more time.") from None
        raise


def _check_options(
    query: str | None, *, schema: bool, target: Path | None, folder: Path | None, force: bool, duckdb: bool
) -> None:
    if sum([query is not None, schema, folder is not None]) > 1:
        raise click.UsageError("Use only one of SELECT, --schema and --export.")
    if query is None and not schema and folder is None:
        raise click.UsageError("Write a SELECT in quotes, or --schema to see the tables.")
    if query is None and (target is not None or duckdb):
        raise click.UsageError("--out and --duckdb require a SELECT.")
    if force and target is None and folder is None:
        raise click.UsageError("--force requires --out or --export.")


def _output_format(target: Path, output: str) -> str:
    """The format that the file's suffix means; an output option may only repeat it."""
    suffix_format = format_of(target)
    if output not in {"table", suffix_format}:
        raise click.UsageError(f"{target.name!r} has another format than --{output}. Omit one of them.")
    return suffix_format


class _Query(NamedTuple):
    """A query, and where and how to write its result."""

    text: str
    target: Path | None
    output_format: str
    seconds: float
    force: bool
    duckdb: bool
    refresh: bool


def _run_query(archive: Archive, query: _Query) -> int:
    if query.target is not None:
        check_targets([query.target], archive.homes, force=query.force)
    if not ensure_index(archive, refresh=query.refresh):
        return EXIT_NOTHING
    if query.refresh:
        archive.fill_tables(query.text)
    with _query_engine(duckdb=query.duckdb)(archive, query.text, query.seconds) as answer:
        if query.target is not None:
            rows = write_answer(answer, query.target, query.output_format, force=query.force)
            click.echo(f"Wrote {count(rows, 'row')} to {plain(str(query.target))}.")
        elif query.output_format == "table":
            rows = print_answer_table(answer)
        else:
            rows = print_answer_rows(answer, query.output_format)
    return EXIT_OK if rows else EXIT_NOTHING


def _query_engine(*, duckdb: bool) -> Callable[[Archive, str, float], AbstractContextManager[Answer]]:
    if duckdb:
        from threadline.cli.sql.duckdb_query import query_duckdb  # noqa: PLC0415 - only `--duckdb` needs it

        return query_duckdb
    return query_index


def _export_index(archive: Archive, folder: Path, timeout: float, output: str, *, force: bool, refresh: bool) -> int:
    check_targets(export_targets(folder), archive.homes, force=force)
    if not ensure_index(archive, refresh=refresh):
        return EXIT_NOTHING
    if refresh:
        archive.store_insights()
    rows = export_tables(archive, folder, timeout, force=force)
    if output == "table":
        cells = [[row["table"], f"{row['rows']:,}", format_size(row["bytes"]), row["path"]] for row in rows]
        click.echo(out.format_table(["table", "rows", "size", "file"], cells, right=(1, 2), ends=True))
    else:
        out.print_rows(rows, output)
    return EXIT_OK


def _check_encoding(query: str) -> None:
    if not is_utf8(query):
        raise BadQuery("The query is not valid UTF-8.")
    if "\0" in query:
        raise BadQuery("The query contains a null byte.")


def _print_schema(output: str) -> int:
    rows = sorted(schema_columns(), key=lambda row: row["kind"] != "view")  # views are for queries
    if output != "table":
        out.print_rows(rows, output)
        return EXIT_OK
    descriptions = table_descriptions()
    titles = {
        row["table"]: f"({row['kind']})" + (f": {descriptions[row['table']]}" if row["table"] in descriptions else "")
        for row in rows
    }
    print_schema_table(rows, titles)
    return EXIT_OK
