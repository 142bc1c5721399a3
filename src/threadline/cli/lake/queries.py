"""`threadline lake usage`, `sql`, `search` and `teams`: ask a lake."""

from __future__ import annotations

import os
import re
import sys
from datetime import tzinfo
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from threadline import lake as lakes
from threadline.account import load_rates
from threadline.cli import EXIT_NOTHING, EXIT_OK
from threadline.cli import output as out
from threadline.cli.options import (
    limit_option,
    output_options,
    prices_option,
    project_option,
    since_option,
    timezone_option,
    until_option,
)
from threadline.cli.sql.answers import json_cell, print_answer_rows, print_answer_table
from threadline.cli.sql.duckdb_query import query_parquet
from threadline.cli.usage import usage_page
from threadline.model.text import count
from threadline.model.times import TimeRange
from threadline.render import can_show_blocks, one_line
from threadline.reports import build_usage_report, row_as_json, usage_document

_TIMEOUT = 300.0
_MIN_WIDTH = 40
_DEFAULT_HITS = 20
_SNIPPET = 160


@click.command()
@click.argument("uri")
@click.option(
    "--by",
    "by",
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
@limit_option("Show at most N groups. Default: all.")
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

    Every message is counted once, on whichever machines it is. The figures equal those of `threadline usage` on one
    machine with all homes. --json has the same format.
    """
    keys = [key.strip().lower().replace("_", "-") for keys in by for key in keys.split(",") if key.strip()]
    keys = list(dict.fromkeys(keys)) or ["person"]
    lakes.check_keys(keys)
    time = TimeRange.parse(since, until, tz=zone)
    answer = lakes.read_usage(lakes.Bucket(uri), load_rates(*price_files) if price_files else None)
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
    return EXIT_OK if report.total.charges else out.report_nothing("No charge matches.")


@click.command()
@click.argument("uri")
@click.argument("query", required=False, metavar="[SELECT]")
@click.option("--schema", is_flag=True, help="Show the tables and columns.")
@click.option("--timeout", type=float, default=_TIMEOUT, show_default=True, metavar="SECONDS", help="Stop after this.")
@output_options
def sql(uri: str, query: str | None, *, schema: bool, timeout: float, output: str) -> int:
    """Query the tables of a lake with SQL, in DuckDB on this machine.

    The tables have the columns of `threadline sql --schema`, plus who pushed each row. Of a bucket, the tables that the
    query names are downloaded first.
    """
    if schema or query is None:
        return _print_schema(output)
    bucket = lakes.Bucket(uri)
    words = set(re.findall(r"\w+", query.lower()))
    with TemporaryDirectory(prefix="threadline-") as folder:
        files = lakes.table_files(bucket, [name for name in lakes.TABLES if name in words], Path(folder))
        with query_parquet(files, query, timeout) as answer:
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
    table = ""
    for row in rows:
        if row["table"] != table:
            table = row["table"]
            click.echo(out.format_heading(table))
        click.echo(f"  {row['column']:<16}{row['type']:<10}{row['comment']}")
    return EXIT_OK


@click.command()
@click.argument("uri")
@click.argument("words", nargs=-1, required=True)
@click.option("--person", metavar="NAME", help="Only what this person pushed.")
@project_option()
@limit_option(f"Show at most N hits. Default: {_DEFAULT_HITS}.")
@output_options
def search(
    uri: str, words: tuple[str, ...], *, person: str | None, project: str | None, limit: int | None, output: str
) -> int:
    """Search the text of all sessions, newest first. Each text has to contain all words."""
    query, values = lakes.search_query(words, person=person, project=project, limit=limit or _DEFAULT_HITS)
    with TemporaryDirectory(prefix="threadline-") as folder:
        files = lakes.table_files(lakes.Bucket(uri), ["texts"], Path(folder))
        with query_parquet(files, query, _TIMEOUT, values) as answer:
            rows = [dict(zip(answer.columns, map(json_cell, row), strict=True)) for row in answer]
    for row in rows:
        row["text"] = _snippet(str(row["text"]), words[0])
    return out.print_listing(
        rows,
        output,
        row=dict,
        table=lambda hits: out.format_table(
            ["time", "person", "session", "field", "text"],
            [
                [str(hit["timestamp"] or "")[:16], hit["person"], hit["session"][:8], hit["field"], hit["text"]]
                for hit in hits
            ],
        ),
        nothing=lambda: "No text contains all of these words.",
        limit=limit or _DEFAULT_HITS,
    )


def _snippet(text: str, word: str) -> str:
    start = max(0, text.lower().find(word.lower()) - _SNIPPET // 3)
    return one_line(text[start : start + _SNIPPET], _SNIPPET)


@click.command()
@click.argument("uri")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def teams(uri: str, file: Path) -> int:
    """Set which team each person is in, from a TOML file: [teams], then lines such as search = ["alice", "bob"]."""
    stored = lakes.write_teams(lakes.Bucket(uri), file.read_bytes())
    click.echo(f"{count(len(stored), 'person', 'people')} in {count(len(set(stored.values())), 'team')}.")
    return EXIT_OK
