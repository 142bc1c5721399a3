"""`threadline sql`: ask the index in SQL, read only."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from threadline.cli import FOUND, NOTHING
from threadline.cli.options import home_option, output_options

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from threadline.cli.sql_asking import Answer
    from threadline.model.found import Home

_CELL = 200
_SECONDS = 60.0
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

\b
Exit codes: 0 rows; 1 no rows, no home or no index; 2 an error.
"""


@click.command(epilog=_EPILOG)
@click.argument("question", metavar="SELECT", required=False)
@click.option("--schema", is_flag=True, help="Show the tables, views and columns, and ask nothing.")
@click.option("--no-refresh", is_flag=True, help="Ask the index as it is, and do not read what changed since.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=_SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="Give up after so long.",
)
@home_option
@output_options
def sql(
    question: str | None, *, schema: bool, no_refresh: bool, timeout: float, homes: tuple[str, ...], output: str
) -> int:
    """Ask the index in SQL; SQLite answers, and nothing can be changed.

    SELECT is one statement, or - for standard input. The index is brought up to date before, unless another threadline
    is just doing that. Amounts are exact decimals, kept as text: SUM makes them floating-point numbers. docs/index.md
    tells of each table; blobs are shown in hexadecimal.
    """
    from threadline.cli.reading import say_no_home
    from threadline.cli.refreshing import index_of
    from threadline.cli.sql_asking import asked
    from threadline.find import homes as found_homes

    if schema:
        if question is not None:
            raise click.UsageError("Give either a SELECT or --schema.")
        return _print_schema(output)
    if question is None:
        raise click.UsageError("Give a SELECT in quotation marks, or --schema to see what there is.")
    if question == "-":
        question = sys.stdin.buffer.read().decode(errors="replace") if sys.stdin is not None else ""
    found = found_homes(*homes)
    if not found:
        say_no_home()
        return NOTHING
    _check_text(question)
    if not _is_there(found, fresh=not no_refresh):
        return NOTHING
    with asked(index_of(found), question, timeout) as answer:
        rows = _print_table(answer) if output == "table" else _print_rows(answer, output)
    return FOUND if rows else NOTHING


def _check_text(question: str) -> None:
    from threadline.errors import BadQuery

    try:
        question.encode()
    except UnicodeEncodeError:
        raise BadQuery("The question is not in UTF-8.") from None
    if "\0" in question:
        raise BadQuery("The question holds a zero byte.")


def _is_there(homes: Sequence[Home], *, fresh: bool) -> bool:
    """Whether there is an index to ask; it is refreshed if that is wanted and nobody else is at it."""
    from threadline.cli import output as out
    from threadline.cli.refreshing import index_of, shown
    from threadline.cli.screen import nothing
    from threadline.errors import IndexBusy
    from threadline.index.refresh import refresh

    path = index_of(homes)
    if fresh:
        try:
            shown(refresh, homes)
        except IndexBusy as error:
            if not path.exists():
                raise
            click.echo(f"threadline: {out.plain(str(error))} This answer is of the index as it is.", err=True)
    elif not path.exists():
        nothing(f"There is no index at {str(path)!r} yet; `threadline index refresh` makes it.")
        return False
    return True


def _print_schema(output: str) -> int:
    from threadline.cli import output as out
    from threadline.cli.sql_schema import columns

    rows = columns()
    if output != "table":
        out.print_rows(rows, output)
        return FOUND
    shown = ""
    for row in rows:
        if row["table"] != shown:
            shown = row["table"]
            click.echo(f"{out.heading(shown)}  ({row['kind']})")
        click.echo(f"  {row['column']:<16}{row['type'] or '':<9}{row['comment'] or ''}".rstrip())
    return FOUND


def _print_table(answer: Answer) -> int:
    from threadline.cli import output as out

    rows = list(answer)
    if not rows:
        click.echo("threadline: No rows.", err=True)
        return 0
    numbers = [at for at in range(len(answer.columns)) if all(_is_number(row[at]) for row in rows)]
    cells = [[_shown(value) for value in row] for row in rows]
    click.echo(out.table([out.plain(name) for name in answer.columns], cells, right=numbers, shrink=_wide(cells)))
    return len(rows)


def _wide(cells: Sequence[Sequence[str]]) -> Sequence[int]:
    return range(len(cells[0]) - 1)


def _is_number(value: Any) -> bool:
    return value is None or isinstance(value, int | float)


def _shown(value: Any) -> str:
    from threadline.cli import output as out

    if value is None:
        return ""
    return out.one_line(str(_plain(value)), _CELL)


def _plain(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else value


def _print_rows(answer: Answer, output: str) -> int:
    from threadline.cli import output as out

    def rows() -> Iterator[dict[str, Any]]:
        for row in answer:
            yield dict(zip(answer.columns, map(_plain, row), strict=True))

    made: Iterable[dict[str, Any]] = rows()
    return out.print_rows(made, output)
