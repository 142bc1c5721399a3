"""`threadline lake build` and `forget`: change the tables of a lake."""

from __future__ import annotations

import sys
from datetime import tzinfo
from time import monotonic

import click
from msgspec.structs import asdict

from threadline import __version__
from threadline import lake as lakes
from threadline.cli import EXIT_OK
from threadline.cli import output as out
from threadline.cli.options import jobs_option, output_options, timezone_option
from threadline.errors import BadQuery
from threadline.model.text import count, format_size
from threadline.model.times import TimeRange


@click.command()
@click.argument("uri")
@click.option(
    "--engine",
    default="local",
    metavar="ENGINE",
    help="local, sail, or sc://HOST:PORT for Spark Connect. Default: local.",
)
@click.option("--rebuild", is_flag=True, help="Build everything again, for example after an update of threadline.")
@click.option(
    "--catalog", metavar="NAME", help="Also register the tables in this catalogue of ~/.pyiceberg.yaml (REST, Glue, …)."
)
@jobs_option
@output_options
def build(uri: str, *, engine: str, rebuild: bool, catalog: str | None, jobs: int | None, output: str) -> int:
    """Build tables from what machines have pushed since the last build.

    Sessions that changed are read again and their rows replaced, in one commit for all tables. A build that is
    interrupted changes nothing; run it again. Workers of a Spark cluster need threadline with the extra `lake`.
    """
    bucket = lakes.Bucket(uri)
    start = monotonic()
    before = lakes.read_commit(bucket)
    result = lakes.build_lake(bucket, engine=engine, jobs=jobs, rebuild=rebuild)
    seconds = monotonic() - start
    registered = []
    commit = lakes.read_commit(bucket)
    if catalog is not None and commit is not None:
        registered = lakes.register_tables(commit, catalog)
    if before is not None and before.parser_version != __version__ and not rebuild:
        out.print_message(
            f"Earlier rows were built by threadline {before.parser_version}; this is {__version__}. To rebuild"
            f" them, run: threadline lake build {bucket.uri} --rebuild"
        )
    if output != "table":
        out.print_record({**asdict(result), "registered": registered, "seconds": round(seconds, 3)}, output)
        return EXIT_OK
    if not result.sessions:
        click.echo("Nothing has been pushed since the last build.")
        return EXIT_OK
    parts = [
        f"{count(result.sessions, 'session')} built ({format_size(result.bytes)})",
        f"{count(result.rows, 'row')} in {count(result.files, 'file')}",
        count(result.charges, "charge"),
    ]
    parts += [f"{count(result.orphans, 'orphaned file')} removed"] if result.orphans else []
    click.echo(f"{'; '.join(parts)}. Commit {result.commit}, {seconds:.1f} s.")
    return EXIT_OK


@click.command()
@click.argument("uri")
@click.option("--session", "sessions", multiple=True, metavar="ID", help="Forget this session. Repeatable.")
@click.option("--person", metavar="NAME", help="Forget what this person pushed.")
@click.option("--before", metavar="WHEN", help="Forget sessions that ended before WHEN: 2026-11-03, 90d.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@timezone_option
@output_options
def forget(
    uri: str,
    *,
    sessions: tuple[str, ...],
    person: str | None,
    before: str | None,
    yes: bool,
    zone: tzinfo,
    output: str,
) -> int:
    """Erase sessions from a lake: rows, bytes, earlier states of the tables, and orphaned files.

    Then every object of the lake is searched for them. Forgotten sessions are not pushed again. If a session that stays
    has copies of their entries, as a fork does, nothing is forgotten; name it as well. The originals on people's
    machines are not touched.
    """
    bucket = lakes.Bucket(uri)
    moment = TimeRange.parse(before, None, tz=zone).since if before is not None else None
    sources = lakes.select_sources(bucket, sessions=sessions, person=person, before=moment)
    if not yes:
        question = f"Forget {count(len(sources), 'session')} in {bucket.uri}? This cannot be undone."
        if not sys.stdin.isatty():
            raise BadQuery(f"{question} Use --yes to confirm.")
        click.confirm(question, abort=True, err=True)
    result = lakes.forget_sources(bucket, sources)
    if output != "table":
        out.print_record(asdict(result), output)
        return EXIT_OK
    click.echo(
        f"{count(result.sources, 'session')} forgotten: {count(result.objects, 'object')} and"
        f" {count(result.files, 'table file')} deleted. Searched {count(result.checked_objects, 'object')}"
        f" ({format_size(result.checked_bytes)}): nothing is left."
    )
    return EXIT_OK
