"""`threadline keep path`: where the keep is."""

from __future__ import annotations

from pathlib import Path

import click

from threadline.cli import FOUND
from threadline.cli.keep_options import keep_options
from threadline.cli.options import output_options

_EPILOG = """
\b
Examples:
  threadline keep path                        where it is
  rsync -a "$(threadline keep path)" backup/  copy it: no file in it ever changes
  zstd -dc "$(threadline keep path)"/packs/*.zst | grep -c user
"""


@click.command(epilog=_EPILOG)
@keep_options
@output_options
def path(*, folder: Path | None, key_file: Path | None, output: str) -> int:
    """Print where the keep is, or would be."""
    from threadline.cli import output as out
    from threadline.cli.keep_options import place, print_one

    del key_file
    where = str(place(folder))
    if output == "table":
        click.echo(out.plain(where))
    else:
        print_one({"path": where}, output)
    return FOUND
