"""`threadline demo`: write a made-up Claude home to try things on."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from threadline.cli import EXIT_OK
from threadline.cli.options import output_options

if TYPE_CHECKING:
    from threadline.demo import Written

_EPILOG = """
\b
Examples:
  threadline demo demo-home              a small home, a few megabytes
  threadline --home demo-home            look at it
  threadline demo big --megabytes 1239   as big as a real one, to measure with
"""


@click.command(epilog=_EPILOG)
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--seed", default=0, show_default=True, help="The same seed and size give the same bytes.")
@click.option(
    "--megabytes",
    default=2.0,
    show_default=True,
    type=click.FloatRange(min=0, max=1_000_000, min_open=True),
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
    from threadline.cli.screen import progress_bar
    from threadline.demo import write

    if math.isnan(megabytes):  # which is in every range
        raise click.UsageError("--megabytes must be a number, such as 2 or 1239.")
    with progress_bar("Writing", int(megabytes * 1_000_000)) as advance:
        done = 0

        def tell(written: int, _total: int) -> None:
            nonlocal done
            advance(written - done)
            done = written

        made = write(directory, seed=seed, megabytes=megabytes, transcripts=transcripts, progress=tell)
    row = _summary_row(directory, made)
    if output == "table":
        counts = f"{out.counted(row['transcripts'], 'transcript')} ({row['agents']:,} of agents)"
        where = f"in {out.counted(row['projects'], 'project')}, {out.format_size(row['bytes'])}"
        click.echo(f"Wrote a made-up home to {out.plain(str(directory))}: {counts} {where}.")
        click.echo(f"Look at it: threadline --home {out.plain(quote(str(directory)))}")
    elif output == "json":
        out.print_json(row)
    else:
        out.print_rows([row], output)
    return EXIT_OK


def _summary_row(directory: Path, made: Written) -> dict[str, Any]:
    """What was written, counted as the other commands count: a workflow's journal is a transcript as well."""
    from threadline.cli import output as out
    from threadline.cli.resolve import find_at_path
    from threadline.model.homes import TranscriptKind

    found = find_at_path(str(directory)).transcripts
    journals = [one.path.read_bytes() for one in found if one.kind is TranscriptKind.JOURNAL]
    return {
        "directory": out.to_json_value(directory),
        "transcripts": len(found),
        "agents": made.agents,
        "lines": made.lines + sum(journal.count(b"\n") for journal in journals),
        "bytes": sum(one.size for one in found),
        "projects": made.projects,
    }
