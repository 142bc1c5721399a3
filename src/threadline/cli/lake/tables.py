"""`threadline lake build`, `forget` and `clickhouse`: change the tables of a lake, or load them elsewhere."""

from __future__ import annotations

from datetime import tzinfo
from pathlib import Path
from time import monotonic

import click
from msgspec.structs import asdict

from threadline import lake as lakes
from threadline.archive import ProgressBar
from threadline.cli import EXIT_OK
from threadline.cli import output as out
from threadline.cli.options import jobs_option, output_options, timezone_option
from threadline.errors import BadQuery, NotFound
from threadline.model.text import count, format_duration, format_size
from threadline.model.times import TimeRange
from threadline.storage import Bucket

_BUILD_EPILOG = """
\b
Examples:
  threadline lake build /srv/lake
  threadline lake build s3://team-bucket/lake --engine sail
  threadline lake build s3://team-bucket/lake --engine sc://spark:15002
  threadline lake build /srv/lake --rebuild          after an update
"""
_FORGET_EPILOG = """
\b
Examples:
  threadline lake forget /srv/lake --session 5e551011
  threadline lake forget /srv/lake --person alice --yes
  threadline lake forget /srv/lake --before 365d
"""
_CLICKHOUSE_EPILOG = """
\b
Examples:
  threadline lake clickhouse /srv/lake --load /srv/search
  threadline lake search /srv/lake deploy --engine chdb:/srv/search
  threadline lake clickhouse s3://team-bucket/lake --ddl
  threadline lake clickhouse s3://team-bucket/lake --sql | clickhouse-client
"""


@click.command(epilog=_BUILD_EPILOG)
@click.argument("uri")
@click.option(
    "--engine",
    default="local",
    metavar="ENGINE",
    help="local, sail, or sc://HOST:PORT for Spark Connect. Default: local.",
)
@click.option("--rebuild", is_flag=True, help="Build everything again, for example after an update of threadline.")
@click.option("--compact", is_flag=True, help="Also merge the small files of all days, not only of days that changed.")
@click.option(
    "--catalog", metavar="NAME", help="Also register the tables in this catalogue of ~/.pyiceberg.yaml (REST, Glue, …)."
)
@jobs_option
@output_options
def build(
    uri: str, *, engine: str, rebuild: bool, compact: bool, catalog: str | None, jobs: int | None, output: str
) -> int:
    """Build tables from what machines have pushed since the last build.

    Sessions that changed are read again and their rows replaced, in one commit for all tables. A build that is
    interrupted changes nothing; run it again. Workers of a Spark cluster need threadline with the extra `lake`.
    """
    bucket = Bucket(uri)
    start = monotonic()
    with ProgressBar(out.archive_progress, "Building") as bar:
        result = lakes.build_lake(
            bucket,
            engine=engine,
            jobs=jobs,
            rebuild=rebuild,
            compact=compact,
            planned=bar.begin,
            progress=bar.advance,
        )
    seconds = monotonic() - start
    registered = []
    commit = lakes.read_commit(bucket)
    if catalog is not None and commit is not None:
        registered = lakes.register_tables(commit, catalog)
    if output != "table":
        out.print_record({**asdict(result), "registered": registered, "seconds": round(seconds, 3)}, output)
        return EXIT_OK
    merged = f"Small files were merged into {count(result.merged, 'file')}." if result.merged else ""
    if not result.sessions:
        click.echo("Nothing has been pushed since the last build.")
        if merged:
            click.echo(merged)
        return EXIT_OK
    parts = [
        f"{count(result.sessions, 'session')} built ({format_size(result.bytes)})",
        f"{count(result.rows, 'row')} in {count(result.files, 'file')}",
        count(result.charges, "charge"),
    ]
    parts += [f"{count(result.orphans, 'orphaned file')} removed"] if result.orphans else []
    click.echo(out.wrap_text(f"{'; '.join(parts)}. Commit {result.commit}, {format_duration(seconds)}."))
    if merged:
        click.echo(merged)
    return EXIT_OK


@click.command(epilog=_FORGET_EPILOG)
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
    bucket = Bucket(uri)
    lakes.read_lake(bucket)
    moment = TimeRange.parse(before, None, tz=zone).since if before is not None else None
    try:
        sources = lakes.select_sources(bucket, sessions=sessions, person=person, before=moment)
    except NotFound as error:
        if sessions:
            raise
        return out.report_nothing(str(error))
    if not yes:
        question = f"Forget {count(len(sources), 'session')} in {bucket.name}? This cannot be undone."
        if not out.can_ask():
            raise BadQuery(f"{question} Use --yes to confirm.")
        if not click.confirm(question, err=True):
            return out.report_nothing("Nothing was forgotten.")
    result = lakes.forget_sources(bucket, sources)
    if output != "table":
        out.print_record(asdict(result), output)
        return EXIT_OK
    summary = (
        f"{count(result.sources, 'session')} forgotten: {count(result.objects, 'object')} and"
        f" {count(result.files, 'table file')} deleted. Searched {count(result.checked_objects, 'object')}"
        f" ({format_size(result.checked_bytes)}): nothing is left."
    )
    click.echo(out.wrap_text(summary))
    return EXIT_OK


@click.command(epilog=_CLICKHOUSE_EPILOG)
@click.argument("uri")
@click.option(
    "--load",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Load the tables into chDB, ClickHouse in this process, in FOLDER. Later loads add only what changed.",
)
@click.option("--ddl", is_flag=True, help="Print the statements that create the tables.")
@click.option("--sql", "as_script", is_flag=True, help="Print the statements that create and fill the tables.")
@output_options
def clickhouse(uri: str, *, folder: Path | None, ddl: bool, as_script: bool, output: str) -> int:
    """Load a lake into ClickHouse, whose text index searches terabytes at once.

    --load needs no server, but the extra `clickhouse`. For a server (26.2 or newer), pipe --sql to its client. The
    server reads the files itself, so it needs access to the bucket; a folder must be below its `user_files`.
    """
    if (folder is not None) + ddl + as_script != 1:
        raise BadQuery("Use --load FOLDER, --ddl or --sql.")
    bucket = Bucket(uri)
    if folder is None:
        for statement in lakes.load_script(bucket) if as_script else lakes.clickhouse_ddl():
            click.echo(f"{statement};")
        return EXIT_OK
    with lakes.ChdbStore(folder) as store, ProgressBar(out.archive_progress, "Loading") as bar:
        result = store.load(bucket, planned=bar.begin, progress=bar.advance)
    if output != "table":
        out.print_record(asdict(result), output)
        return EXIT_OK
    parts = [f"{count(result.added, 'file')} loaded", f"{count(result.removed, 'file')} removed"]
    click.echo(f"{', '.join(parts)}; {count(result.rows, 'row')} in {folder}.")
    return EXIT_OK
