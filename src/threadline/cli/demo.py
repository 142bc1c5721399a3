"""`threadline demo`: make a home to try things on."""

from __future__ import annotations

from pathlib import Path

import click

from threadline.cli import FOUND
from threadline.cli.options import output_options

_EPILOG = """
\b
Examples:
  threadline demo demo-home                   a small home, a few megabytes
  threadline --home demo-home                 look at it
  threadline demo big --megabytes 1239        as big as a real one, for measuring
"""


@click.command(epilog=_EPILOG)
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--seed", default=0, show_default=True, help="The same seed and size give the same bytes.")
@click.option(
    "--megabytes",
    default=2.0,
    show_default=True,
    type=click.FloatRange(min=0, min_open=True),
    help="How much to write.",
)
@click.option("--transcripts", type=click.IntRange(min=1), help="How many transcripts; by default as real homes have.")
@output_options
def demo(directory: Path, *, seed: int, megabytes: float, transcripts: int | None, output: str) -> int:
    """Write a made-up Claude home into DIRECTORY, which must be new or empty.

    Everything in it is invented; its sizes, versions, agents, branches and damage are like those of real homes.
    """
    from shlex import quote

    from threadline.cli import output as out
    from threadline.cli.reading import progress
    from threadline.demo import write

    with progress("Writing", int(megabytes * 1_000_000)) as advance:
        done = 0

        def tell(written: int, _total: int) -> None:
            nonlocal done
            advance(written - done)
            done = written

        made = write(directory, seed=seed, megabytes=megabytes, transcripts=transcripts, progress=tell)
    if output == "table":
        click.echo(
            f"Wrote a made-up home to {out.plain(str(directory))}: {made.transcripts:,} transcripts"
            f" ({made.agents:,} of agents) in {made.projects} projects, {out.size(made.bytes)}.\n"
            f"Look at it: threadline --home {out.plain(quote(str(directory)))}"
        )
    elif output == "json":
        out.print_json(made)
    else:
        out.print_rows([out.to_plain(made)], output)
    return FOUND
