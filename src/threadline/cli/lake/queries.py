"""`threadline lake usage`, `sql`, `search` and `teams`: query a lake."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from datetime import tzinfo
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
from msgspec.structs import asdict

from threadline import lake as lakes
from threadline.account import load_rates
from threadline.cli import EXIT_NOTHING, EXIT_OK
from threadline.cli import output as out
from threadline.cli.cost.usage import ChargeFilter, split_keys
from threadline.cli.cost.usage_table import usage_page
from threadline.cli.options import (
    Seconds,
    limit_option,
    output_options,
    prices_option,
    project_option,
    since_option,
    timezone_option,
    until_option,
)
from threadline.cli.sql.answers import AnswerRows, print_answer_rows, print_answer_table, print_schema_table
from threadline.cli.sql.duckdb_query import query_parquet
from threadline.model.text import count, format_time, short_id
from threadline.model.times import TimeRange, zone_name
from threadline.render import can_show_blocks
from threadline.reports import build_usage_report, row_as_json, usage_document
from threadline.storage import Bucket

_TIMEOUT = 300.0
_MIN_WIDTH = 40
_DEFAULT_HITS = 20
_SNIPPET = 160
_USAGE_EPILOG = """
\b
Examples:
  threadline lake usage /srv/lake                        by person
  threadline lake usage /srv/lake --by team,person --since 30d
  threadline lake usage /srv/lake --by project,model --json
"""
_SQL_EPILOG = """
\b
Examples:
  threadline lake sql /srv/lake --schema
  threadline lake sql /srv/lake "SELECT tool, count(*) FROM calls GROUP BY 1"
  threadline lake sql s3://team-bucket/lake --engine sail "SELECT …"
"""
_SEARCH_EPILOG = """
\b
Examples:
  threadline lake search /srv/lake rate limit      both words, in one text
  threadline lake search /srv/lake "rate limit"    the phrase
  threadline lake search /srv/lake deploy --person alice --json
  threadline lake search /srv/lake deploy --engine chdb:/srv/search
"""
_TEAMS_EPILOG = """
\b
Examples:
  threadline lake teams /srv/lake              show them
  threadline lake teams /srv/lake teams.toml   replace them
  threadline lake teams /srv/lake --json       for a program
"""


@click.command(epilog=_USAGE_EPILOG)
@click.argument("uri")
@click.option(
    "--by",
    multiple=True,
    metavar="KEY[,KEY…]",
    help="Group by these keys, nested: person, team, or a key of `threadline usage`. Default: person.",
)
@since_option()
@until_option()
@project_option()
@click.option("--model", metavar="TEXT", help="Only models whose id contains TEXT.")
@timezone_option
@prices_option
@limit_option("Show at most N groups of the first key. Default: all.")
@output_options
def usage(
    uri: str,
    *,
    by: tuple[str, ...],
    since: str | None,
    until: str | None,
    project: str | None,
    model: str | None,
    zone: tzinfo,
    price_files: tuple[str, ...],
    limit: int | None,
    output: str,
) -> int:
    """Report tokens and cost of all machines.

    Every message is counted once, however many machines have it. The figures equal those of `threadline usage` on one
    machine with all homes. --json has the same format.
    """
    keys = split_keys(by) or ["person"]
    lakes.check_keys(keys)
    time = TimeRange.parse(since, until, tz=zone)
    answer = lakes.read_usage(Bucket(uri), load_rates(*price_files) if price_files else None)
    criteria = ChargeFilter(project, model, time=time)
    ledger = out.keep_alive(answer.ledger.where(since=time.since, until=time.until, project=project, model=model))
    report = build_usage_report(ledger, keys, zone, extra=answer.keys, limit=limit, since=time.since, until=time.until)
    if output == "json":
        out.print_json(usage_document(report))
    elif output != "table":
        out.print_rows(map(row_as_json, report.rows), output)
    elif report.total.charges:
        colour = out.use_colour()
        lines = usage_page(
            report,
            width=max(_MIN_WIDTH, out.terminal_width()),
            colour=colour,
            ascii_only=not can_show_blocks(os.environ, sys.stdout.encoding),
        )
        out.print_lines(lines, colour=colour)
    if report.total.charges:
        return EXIT_OK
    return out.report_nothing(criteria.explain_nothing(answer.ledger, None, zone))


@click.command(epilog=_SQL_EPILOG)
@click.argument("uri")
@click.argument("query", required=False, metavar="[SELECT]")
@click.option("--schema", is_flag=True, help="Show the tables and columns.")
@click.option(
    "--engine",
    default="local",
    metavar="ENGINE",
    help="local (DuckDB), or Spark SQL on sail or sc://HOST:PORT. Default: local.",
)
@click.option(
    "--timeout",
    type=Seconds(),
    default=_TIMEOUT,
    metavar="SECONDS",
    help=f"Stop after this time. Default: {_TIMEOUT:g}.",
)
@output_options
def sql(uri: str, query: str | None, *, schema: bool, engine: str, timeout: float, output: str) -> int:
    """Query the tables of a lake with SQL, in DuckDB on this machine.

    The tables have the columns of `threadline sql --schema`, plus who pushed each row. If the lake is in a bucket,
    the tables that the query names are downloaded first. With --engine, Spark or Sail reads them instead, and the query
    is Spark SQL.
    """
    if schema or query is None:
        return _print_schema(output)
    lakes.check_encoding(query)
    bucket = Bucket(uri)
    if engine != "local":
        columns, values = lakes.query_on_engine(bucket, query, engine)
        return _print_rows(_EngineAnswer(columns, values), output)
    words = set(re.findall(r"\w+", query.lower()))
    with TemporaryDirectory(prefix="threadline-") as folder:
        files = lakes.table_files(bucket, [name for name in lakes.TABLES if name in words], Path(folder))
        schema_command = f"threadline lake sql {uri} --schema"
        with query_parquet(files, query, timeout, schema_command=schema_command, source="lake") as answer:
            return _print_rows(answer, output)


class _EngineAnswer:
    """The rows of a query that an engine has answered."""

    def __init__(self, columns: list[str], rows: list[tuple[Any, ...]]) -> None:
        self.columns = columns
        self._rows = rows

    def __iter__(self) -> Iterator[Sequence[Any]]:
        return iter(self._rows)


def _print_rows(answer: AnswerRows, output: str) -> int:
    rows = print_answer_table(answer) if output == "table" else print_answer_rows(answer, output)
    return EXIT_OK if rows else EXIT_NOTHING


def _print_schema(output: str) -> int:
    rows = [
        {"table": table, "column": name, "type": kind, "comment": comment}
        for table in lakes.TABLES
        for name, kind, comment in lakes.table_columns(table)
    ]
    if output != "table":
        out.print_rows(rows, output)
        return EXIT_OK
    print_schema_table(rows, {})
    return EXIT_OK


@click.command(epilog=_SEARCH_EPILOG)
@click.argument("uri")
@click.argument("words", nargs=-1, required=True)
@click.option("--person", metavar="NAME", help="Only what this person pushed.")
@project_option()
@since_option()
@until_option()
@timezone_option
@click.option(
    "--engine",
    default="local",
    metavar="ENGINE",
    help="local (DuckDB), sail, sc://HOST:PORT, or chdb:FOLDER as `lake clickhouse --load` filled it. Default: local.",
)
@limit_option(f"Show at most N hits. Default: {_DEFAULT_HITS}.")
@output_options
def search(
    uri: str,
    words: tuple[str, ...],
    *,
    person: str | None,
    project: str | None,
    since: str | None,
    until: str | None,
    zone: tzinfo,
    engine: str,
    limit: int | None,
    output: str,
) -> int:
    """Search the text of all sessions, newest first.

    A text must contain all words, as whole words in any case. A phrase in quotes must occur as it is.
    """
    time = TimeRange.parse(since, until, tz=zone)
    people = (person,) if person is not None else None
    search = lakes.TextSearch(words, people, project, time.since, time.until, limit or _DEFAULT_HITS)
    bucket = Bucket(uri)
    hits = lakes.search_lake(bucket, search, engine)
    rows = [{**asdict(hit), "text": search.snippet(hit.text, _SNIPPET)[0]} for hit in hits]
    for row in rows:
        del row["title"]  # only the page needs it
    return out.print_listing(
        rows,
        output,
        row=dict,
        table=lambda hits: out.format_table(
            [f"time ({zone_name(zone)})", "person", "session", "field", "text"],
            [
                [
                    format_time(hit["timestamp"], zone),
                    hit["person"],
                    short_id(hit["session"]),
                    hit["field"],
                    hit["text"],
                ]
                for hit in hits
            ],
        ),
        nothing=lambda: _explain_no_hits(bucket),
        limit=limit or _DEFAULT_HITS,
    )


def _explain_no_hits(bucket: Bucket) -> str:
    if lakes.read_lake(bucket).policy is lakes.Policy.METRICS:
        return "This lake has the policy metrics: it contains no text."
    return "No text contains all of these words."


@click.command(epilog=_TEAMS_EPILOG)
@click.argument("uri")
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@output_options
def teams(uri: str, file: Path | None, *, output: str) -> int:
    """Show which team each person is in, or set it from a TOML file.

    The file has [teams], then lines such as search = ["alice", "bob"].
    """
    bucket = Bucket(uri)
    lakes.read_lake(bucket)
    stored = lakes.read_teams(bucket) if file is None else lakes.write_teams(bucket, file.read_bytes())
    rows = [{"team": team, "person": person} for person, team in sorted(stored.items(), key=lambda pair: pair[::-1])]
    if file is not None and output == "table":
        click.echo(f"{count(len(stored), 'person', 'people')} in {count(len(set(stored.values())), 'team')}.")
        return EXIT_OK
    return out.print_listing(
        rows,
        output,
        row=dict,
        table=lambda members: out.format_table(
            ["team", "person"], [[member["team"], member["person"]] for member in members]
        ),
        nothing=lambda: f"This lake has no teams. Run: threadline lake teams {bucket.name} teams.toml",
    )
