"""`threadline sql`: query the index in SQL, read-only."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from threadline.cli import EXIT_NOTHING, EXIT_OK
from threadline.cli.options import home_option, output_options

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from threadline.archive import Archive
    from threadline.cli.sql_answers import Answer

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
  threadline sql - < question.sql
  threadline sql "SELECT * FROM charges" --out charges.parquet
  threadline sql --export tables           all of them, a Parquet file each
  threadline sql --duckdb "SELECT model, SUM(amount) FROM charges GROUP BY ALL"

\b
Exit codes: 0 rows; 1 no rows, no home or no index; 2 an error.
"""


@click.command(epilog=_EPILOG)
@click.argument("question", metavar="SELECT", required=False)
@click.option("--schema", is_flag=True, help="Show the tables, views and columns, and ask nothing.")
@click.option(
    "--out",
    "target",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the rows there: .parquet, .csv, .jsonl or .json.",
)
@click.option(
    "--export",
    "folder",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Write every table and view there, a Parquet file each, and ask nothing.",
)
@click.option("--force", is_flag=True, help="With --out and --export: also where there is such a file already.")
@click.option("--duckdb", is_flag=True, help="Let DuckDB answer, in its SQL; amounts are decimals there.")
@click.option("--no-refresh", is_flag=True, help="Ask the index as it is, and do not read what changed since.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=_DEFAULT_TIMEOUT,
    show_default=True,
    metavar="SECONDS",
    help="Give up after so long.",
)
@home_option
@output_options
def sql(
    question: str | None,
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
    """Ask the index in SQL; SQLite answers, and nothing can be changed.

    SELECT is one statement, or - for standard input. The index is brought up to date before, unless another threadline
    is just doing that. Amounts are exact decimals, kept as text: SUM makes them floating-point numbers, and sums them
    exactly with --duckdb. docs/index.md tells of each table; blobs are shown in hexadecimal.

    Parquet needs the extra `frames`, and --duckdb the extra `duckdb`.
    """
    from threadline.cli.resolve import open_archive
    from threadline.cli.screen import report_no_home

    _check_options(question, schema=schema, target=target, folder=folder, force=force, duckdb=duckdb)
    if schema:
        return _print_schema(output)
    if question == "-":
        question = sys.stdin.buffer.read().decode(errors="replace") if sys.stdin is not None else ""
    with open_archive(homes, quiet=0) as archive:
        form = _output_format(target, output) if target is not None else output
        if not archive.homes:
            report_no_home()
            return EXIT_NOTHING
        if folder is not None:
            return _export_index(archive, folder, timeout, output, force=force, fresh=not no_refresh)
        _check_encoding(question or "")
        wanted = _Query(question or "", target, form, timeout, force=force, duckdb=duckdb, fresh=not no_refresh)
        return _run_query(archive, wanted)


def _check_options(
    question: str | None, *, schema: bool, target: Path | None, folder: Path | None, force: bool, duckdb: bool
) -> None:
    if sum([question is not None, schema, folder is not None]) > 1:
        raise click.UsageError("Give one of a SELECT, --schema and --export.")
    if question is None and not schema and folder is None:
        raise click.UsageError("Give a SELECT in quotation marks, or --schema to see what there is.")
    if question is None and (target is not None or duckdb):
        raise click.UsageError("--out and --duckdb go with a SELECT.")
    if force and target is None and folder is None:
        raise click.UsageError("--force goes with --out or --export.")


def _output_format(target: Path, output: str) -> str:
    """What the file's name says; an option may say the same, or that CSV shall be exact."""
    from threadline.cli.sql_answers import format_of

    form = format_of(target)
    if output == "table":
        return form
    if output.removesuffix("-exact") != form:
        raise click.UsageError(f"{target.name!r} says another format than --{output}; give one of them.")
    return output


class _Query(NamedTuple):
    """A question, and where and how its answer is to be written."""

    question: str
    target: Path | None
    form: str
    seconds: float
    force: bool
    duckdb: bool
    fresh: bool


def _run_query(archive: Archive, wanted: _Query) -> int:
    from threadline.cli.resolve import ensure_index
    from threadline.cli.sql_answers import print_answer_rows, print_answer_table

    if wanted.target is not None:
        from threadline.cli.sql_answers import check_targets

        check_targets([wanted.target], archive.homes, force=wanted.force)
    if not ensure_index(archive, fresh=wanted.fresh):
        return EXIT_NOTHING
    with _query_engine(duckdb=wanted.duckdb)(archive, wanted.question, wanted.seconds) as answer:
        if wanted.target is not None:
            return _write_file(answer, wanted.target, wanted.form, force=wanted.force)
        rows = print_answer_table(answer) if wanted.form == "table" else print_answer_rows(answer, wanted.form)
    return EXIT_OK if rows else EXIT_NOTHING


def _query_engine(*, duckdb: bool) -> Callable[[Archive, str, float], AbstractContextManager[Answer]]:
    if duckdb:
        from threadline.cli.sql_duckdb import query_duckdb as asked_in_duckdb

        return asked_in_duckdb
    from threadline.cli.sql_answers import query_index

    return query_index


def _write_file(answer: Answer, target: Path, form: str, *, force: bool) -> int:
    from threadline.cli import output as out
    from threadline.cli.sql_answers import write_answer

    rows = write_answer(answer, target, form, force=force)
    click.echo(f"Wrote {out.counted(rows, 'row')} to {out.plain(str(target))}.")
    return EXIT_OK if rows else EXIT_NOTHING


def _export_index(archive: Archive, folder: Path, timeout: float, output: str, *, force: bool, fresh: bool) -> int:
    from threadline.cli import output as out
    from threadline.cli.resolve import ensure_index
    from threadline.cli.sql_answers import check_targets, export_tables, export_targets

    check_targets(export_targets(folder), archive.homes, force=force)
    if not ensure_index(archive, fresh=fresh):
        return EXIT_NOTHING
    rows = export_tables(archive, folder, timeout, force=force)
    if output == "table":
        cells = [[row["table"], f"{row['rows']:,}", out.format_size(row["bytes"]), row["path"]] for row in rows]
        click.echo(out.format_table(["table", "rows", "size", "file"], cells, right=(1, 2), ends=True))
    else:
        out.print_rows(rows, output)
    return EXIT_OK


def _check_encoding(question: str) -> None:
    from threadline.errors import BadQuery

    try:
        question.encode()
    except UnicodeEncodeError:
        raise BadQuery("The question is not in UTF-8.") from None
    if "\0" in question:
        raise BadQuery("The question holds a zero byte.")


def _print_schema(output: str) -> int:
    from threadline.cli import output as out
    from threadline.cli.sql_answers import schema_columns, table_descriptions

    rows = schema_columns()
    if output != "table":
        out.print_rows(rows, output)
        return EXIT_OK
    shown, held = "", table_descriptions()
    for row in rows:
        if row["table"] != shown:
            shown = row["table"]
            told = f": {held[shown]}" if shown in held else ""
            click.echo(f"{out.format_heading(shown)}  ({row['kind']}){told}")
        click.echo(f"  {row['column']:<16}{row['type'] or '':<9}{row['comment'] or ''}".rstrip())
    return EXIT_OK
