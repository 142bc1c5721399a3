"""`threadline keep pack`: many small packs into few large ones."""

from __future__ import annotations

from pathlib import Path

import click

from threadline.cli import FAILED, FOUND
from threadline.cli.keep_options import keep_options
from threadline.cli.options import jobs_option, output_options

_EPILOG = """
\b
Examples:
  threadline keep pack           after some hundred runs: smaller, and faster to read
  threadline keep pack --json    for a program
  threadline keep verify         see that all is there

\b
Exit codes: 0 done; 1 there is no keep; 2 an error, or something damaged that was left as it is.
"""


@click.command(epilog=_EPILOG)
@keep_options
@jobs_option
@output_options
def pack(*, folder: Path | None, key_file: Path | None, jobs: int | None, output: str) -> int:
    """Write what many runs added in small packs into large ones. What is kept stays the same.

    Old packs are taken away when the new ones are safely on the disk, and only if these take less room.
    """
    from threadline.cli import output as out
    from threadline.cli.keep_options import bar, opened, print_one

    store = opened(folder, key_file)
    from threadline.keep.machine import this_machine
    from threadline.keep.repacking import repack

    with bar("Packing") as (planned, advance):
        done = repack(store, this_machine(), jobs=jobs or 2, planned=planned, progress=advance)
    for sentence in done.problems:
        click.echo(f"threadline: {out.plain(sentence)}", err=True)
    if output != "table":
        print_one(out.to_plain(done), output)
    elif done.before:
        packs = f"{out.counted(done.before, 'pack')} ({out.size(done.bytes_before)})"
        click.echo(f"{packs} became {done.after:,} ({out.size(done.bytes_after)}).")
    else:
        click.echo("There is nothing to pack: it would take no less room.")
    return FAILED if done.problems else FOUND
