"""`threadline keep diff`: what runs found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from threadline.cli import FOUND, NOTHING
from threadline.cli.keep_options import keep_options, machine_option
from threadline.cli.options import output_options

if TYPE_CHECKING:
    from threadline.keep.difference import Difference, RunTold

_EPILOG = """
\b
Examples:
  threadline keep diff            what the last run found
  threadline keep diff 3          what changed since run 3
  threadline keep diff 3 7        from run 3 to run 7
  threadline keep diff 0          all, since before the first run
  threadline keep diff --runs     which runs there were

\b
Exit codes: 0 found; 1 there is no difference; 2 an error.
"""


@click.command(epilog=_EPILOG)
@click.argument("runs", nargs=-1, type=click.IntRange(min=0), metavar="[RUN [RUN]]")
@click.option("--runs", "listed", is_flag=True, help="List the runs instead.")
@machine_option
@keep_options
@output_options
def diff(
    runs: tuple[int, ...],
    *,
    listed: bool,
    machine: str | None,
    folder: Path | None,
    key_file: Path | None,
    output: str,
) -> int:
    """Show what became of sessions between runs: new, grown, changed, gone at the source.

    RUN is a number; 0 is before the first. Only runs that found something have one. Files that belong to no session
    stand for themselves.
    """
    from threadline.cli import output as out
    from threadline.cli.keep_options import catalogue_of, machine_named
    from threadline.errors import BadQuery
    from threadline.keep.difference import between, differences
    from threadline.keep.difference import runs as runs_of

    if len(runs) > 2:  # noqa: PLR2004 - from one to the other
        raise BadQuery("Name two runs at most: from which, and to which.")
    catalogue, here = catalogue_of(folder, key_file)
    whose = machine_named(catalogue, machine, here)
    if listed:
        every = runs_of(catalogue, whose)
        if output != "table":
            out.print_rows(map(out.to_plain, every), output)
        elif every:
            click.echo(_runs(every))
        return FOUND if every else NOTHING
    after, until = between(catalogue, whose, runs)
    found = differences(catalogue, whose, after, until)
    if output != "table":
        out.print_rows(map(out.to_plain, found), output)
    else:
        for line in _page(found, after, until):
            click.echo(line)
    return FOUND if found else NOTHING


def _runs(every: Sequence[RunTold]) -> str:
    from threadline.cli import output as out

    rows = [
        (
            f"{one.number:,}",
            one.began.replace("T", " ").removesuffix("Z"),
            f"{one.files:,}",
            out.size(one.bytes),
            one.label,
        )
        for one in every
    ]
    return out.table(("RUN", "BEGAN", "FILES SEEN", "SIZE", "MACHINE"), rows, right=(0, 2, 3))


def _page(found: Sequence[Difference], after: int, until: int) -> Iterator[str]:
    from collections import Counter

    from threadline.cli import output as out

    counts = Counter(one.change for one in found if one.session is not None)
    told = ", ".join(f"{number:,} {change}" for change, number in counts.items()) or "none"
    since = f"since run {after}" if after else "since before the first run"
    yield out.heading(f"Run {until}, {since}. Sessions: {told}.")
    if found:
        rows = [
            (one.change, one.session[:8] if one.session else "", f"{one.files:,}", _added(one), one.path)
            for one in found
        ]
        yield out.table(("CHANGE", "SESSION", "FILES", "ADDED", "PATH"), rows, right=(2, 3), ends=True)


def _added(one: Difference) -> str:
    from threadline.cli import output as out

    return out.size(one.bytes) if one.change != "gone" else ""
