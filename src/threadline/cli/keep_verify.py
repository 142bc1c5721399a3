"""`threadline keep verify`: every byte of a keep against its hash."""

from __future__ import annotations

from pathlib import Path
from time import time_ns
from typing import TYPE_CHECKING, Any

import click

from threadline.cli import FAILED, FOUND
from threadline.cli.keep_options import keep_options
from threadline.cli.options import output_options

if TYPE_CHECKING:
    from threadline.keep.store import Store
    from threadline.keep.verifying import Verified

_EPILOG = """
\b
Examples:
  threadline keep verify               every byte
  threadline keep verify --sample 20   some of it, fast
  threadline keep verify --json        for a program

\b
Exit codes: 0 all is as it was written; 1 there is no keep; 2 something is damaged, or another error.
"""


@click.command(epilog=_EPILOG)
@click.option("--sample", type=click.IntRange(min=1), metavar="N", help="Only N frames, chosen by chance.")
@keep_options
@output_options
def verify(*, sample: int | None, folder: Path | None, key_file: Path | None, output: str) -> int:
    """Read everything that is kept and compare it with its hashes; name the sessions that damage touches.

    Nothing in the keep is changed. What is damaged and still where Claude Code wrote it is kept again by the next
    `threadline keep`; the rest can be had from a copy: `threadline keep merge COPY`.
    """
    from threadline.cli.keep_options import bar, opened, print_one

    store = opened(folder, key_file)
    from threadline.keep.doubting import doubts_in
    from threadline.keep.keeping import memory_of
    from threadline.keep.machine import Machine, machine_folder
    from threadline.keep.verifying import verify as verify_of

    memory = memory_of(store, Machine("", "", machine_folder()))

    # Another sample each time: in the long run all is seen.
    with bar("Verifying") as (planned, advance):
        done = verify_of(store, memory=memory, sample=sample, seed=time_ns(), planned=planned, progress=advance)
    doubts = doubts_in(machine_folder(), store.about.id)
    if doubts is not None:
        doubts.judge(done.looked, done.damaged)
    touched = sorted({*_touched(store, done), *done.sessions})
    row = {
        "path": str(store.folder),
        "packs": done.packs,
        "pieces": done.pieces,
        "bytes": done.bytes,
        "runs": done.runs,
        "sample": sample,
        "clean": not done.problems,
        "problems": [*done.problems],
        "sessions": [*touched],
        "missing": done.missing,
        "files": sorted({f"{one.home}/{one.path}" for one in done.touched}),
    }
    if output == "table":
        _print(row)
    else:
        print_one(row, output)
    return FOUND if row["clean"] and not row["files"] else FAILED


def _touched(store: Store, done: Verified) -> list[str]:
    """The sessions that damage touches; a file whose owner cannot be read any more stands for itself."""
    from threadline.keep.belonging import Belonging
    from threadline.keep.catalogue import Catalogue

    if not done.touched:
        return []
    belonging = Belonging(Catalogue(store))
    return sorted({session for one in done.touched if (session := belonging.session(one)) is not None})


def _print(row: dict[str, Any]) -> None:
    from threadline.cli import output as out

    looked = f"{out.counted(row['pieces'], 'piece')} ({out.size(row['bytes'])}) in {out.counted(row['packs'], 'pack')}"
    looked += f", {out.counted(row['runs'], 'manifest')}"
    if row["clean"]:
        of_it = " This was a sample." if row["sample"] else ""
        click.echo(f"All is as it was written: {looked}.{of_it}")
        return
    click.echo(f"Damaged. Looked at: {looked}.")
    for problem in row["problems"]:
        click.echo(out.wrapped(problem, "  ", "    "))
    if row["sessions"]:
        click.echo(f"Sessions that cannot be given back whole: {out.counted(len(row['sessions']), 'session')}.")
        for session in row["sessions"]:
            click.echo(f"  {out.plain(session)}")
    if row["files"]:
        click.echo(f"Their files, and others: {len(row['files']):,}; --json lists them. All others can be restored.")
    elif row["missing"]:
        click.echo("What only a missing manifest told of is not listed: an earlier version may stand in its place.")
    else:
        click.echo("No file needs what is damaged: everything can be restored.")
    if row["files"]:
        click.echo("The next `threadline keep` keeps again what is still where Claude Code wrote it.")
    click.echo("A copy of the keep can mend it: threadline keep merge COPY")
