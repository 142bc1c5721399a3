"""`threadline keep merge`: what other keeps have, taken over."""

from __future__ import annotations

from pathlib import Path

import click

from threadline.cli import FAILED, FOUND
from threadline.cli.keep_options import keep_options
from threadline.cli.options import output_options

_EPILOG = """
\b
Examples:
  threadline keep merge /mnt/laptop/keep           take over what the other one has
  threadline keep merge a b --keep all             two keeps into a third
  threadline keep merge COPY                       mend what is damaged here
  threadline keep merge COPY --accept-forgotten    forget here what was forgotten there

\b
Exit codes: 0 done; 2 something was not taken over, or another error.
"""


@click.command(epilog=_EPILOG)
@click.argument("others", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="OTHER...")
@click.option(
    "--accept-forgotten", "forgets", is_flag=True, help="Forget here, too, what was forgotten in another keep."
)
@click.option(
    "--even-damaged", is_flag=True, help="List runs of another keep, too, some of whose bytes are lost there."
)
@click.option(
    "--other-key-file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The key of the others, where they are encrypted with another one.",
)
@keep_options
@output_options
def merge(
    others: tuple[Path, ...],
    *,
    forgets: bool,
    even_damaged: bool,
    other_key_file: Path | None,
    folder: Path | None,
    key_file: Path | None,
    output: str,
) -> int:
    """Take over what other keeps have: of another machine, or a copy of this one.

    Every byte is compared with its hash before it is taken; the others are not changed. Doing it again changes nothing,
    and the order does not matter. Machines keep their names: see `keep list --machine`.
    """
    from threadline.cli import output as out
    from threadline.cli.keep_options import bar, opened, place, print_one

    where = place(folder)
    from threadline.errors import NotFound
    from threadline.keep.machine import this_machine
    from threadline.keep.merging import merge as merged
    from threadline.keep.store import Store, is_keep

    missing = [other for other in others if not is_keep(other)]
    if missing:
        raise NotFound(f"There is no keep in {str(missing[0])!r}, so there is nothing to take over.")
    sources = [opened(other, other_key_file or key_file) for other in others]
    if not is_keep(where):
        Store.make(where)
    store = opened(where, key_file)
    with bar("Merging") as (planned, advance):
        done = merged(
            store,
            this_machine(),
            sources,
            forgets=forgets,
            even_damaged=even_damaged,
            planned=planned,
            progress=advance,
        )
    if not store.is_sealed and any(one.is_sealed for one in sources) and (done.packs or done.runs):
        click.echo("threadline: What is encrypted there lies here in clear: this keep is not encrypted.", err=True)
    for sentence in done.refused:
        click.echo(f"threadline: {out.plain(sentence)}", err=True)
    if output != "table":
        print_one(out.to_plain(done), output)
    elif done.packs or done.runs:
        what = f"{out.counted(done.runs, 'run')} and {out.counted(done.packs, 'pack')} ({out.size(done.bytes)})"
        click.echo(f"Took over {what} into {out.plain(str(store.folder))}.")
    elif not done.refused and not done.mended:
        click.echo("Nothing is new: this keep has all that they have.")
    if done.mended and output == "table":
        click.echo(f"Made good: {out.counted(done.mended, 'file')} of this keep, damaged or not there.")
    if done.forgotten and output == "table":
        told = ", ".join(one[:8] for one in done.forgotten[:8])
        click.echo(f"Forgotten there: {out.counted(len(done.forgotten), 'session')} ({out.plain(told)}).")
    return FAILED if done.refused else FOUND
