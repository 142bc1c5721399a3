"""`threadline lake clickhouse`: load a lake into ClickHouse."""

from __future__ import annotations

from pathlib import Path

import click
from msgspec.structs import asdict

from threadline import lake as lakes
from threadline.archive import ProgressBar
from threadline.cli import EXIT_OK
from threadline.cli import output as out
from threadline.cli.options import output_options
from threadline.errors import BadQuery
from threadline.model.text import count
from threadline.storage import Bucket

_EPILOG = """
\b
Examples:
  threadline lake clickhouse /srv/lake --load /srv/search
  threadline lake search /srv/lake deploy --engine chdb:/srv/search
  threadline lake clickhouse s3://team-bucket/lake --ddl
  threadline lake clickhouse s3://team-bucket/lake --sql | clickhouse-client
"""


@click.command(epilog=_EPILOG)
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
