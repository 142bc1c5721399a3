"""`threadline keep forget`: a session taken out of the keep, the only way that anything leaves."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from threadline.cli import FAILED, FOUND
from threadline.cli.keep_options import keep_options
from threadline.cli.options import output_options

_EPILOG = """
\b
Examples:
  threadline keep forget 55604662 --reason "a customer's data"
  threadline keep forget 55604662 --reason "a mistake" --yes    without asking
  threadline keep list                                          which there are

\b
Exit codes: 0 forgotten; 1 not, since you said no; 2 an error.
"""


@click.command(epilog=_EPILOG)
@click.argument("session")
@click.option("--reason", required=True, metavar="TEXT", help="Why; it is written down, and stays.")
@click.option("--yes", is_flag=True, help="Do it without asking.")
@keep_options
@output_options
def forget(session: str, *, reason: str, yes: bool, folder: Path | None, key_file: Path | None, output: str) -> int:
    """Take a session out of the keep for good: every version of all of its files.

    That it was kept, its paths and the reason stay; its bytes do not, unless another session has the same.
    It will not be kept again, nor come back by a merge. Copies of the keep still have it: merge into them with
    --accept-forgotten. What Claude Code itself has is not touched.
    """
    from threadline.archive import clear_kept
    from threadline.cli import output as out
    from threadline.cli.keep_options import catalogue_of, print_one
    from threadline.errors import BadQuery
    from threadline.keep.belonging import Belonging
    from threadline.keep.forgetting import forget as forgotten
    from threadline.keep.sessions import named, others, sessions

    if not reason.strip():
        raise BadQuery("Give a reason; it is all that will be left of the session.")
    catalogue, machine = catalogue_of(folder, key_file)
    fit = named(sessions(catalogue), session)
    rest = others(catalogue)
    belonging = Belonging(catalogue)
    files = [one for kept in fit for one in (*kept.files, *belonging.along(kept.id, kept.files, rest))]
    size = out.size(sum(one.size for one in files))
    if not yes and not _agreed(f"Forget {fit[0].id} for good: {out.counted(len(files), 'file')}, {size}?"):
        from threadline.cli.screen import nothing

        return nothing("Nothing was forgotten; --yes does it without asking.")
    done = forgotten(catalogue.store, machine, fit[0].id, files, reason.strip())
    clear_kept(catalogue.store.folder)
    for sentence in done.problems:
        click.echo(f"threadline: {out.plain(sentence)}", err=True)
    if output == "table":
        what = f"{out.counted(done.files, 'file')} in {out.counted(done.versions, 'version')}"
        click.echo(f"Forgot {out.plain(done.session)}: {what}; the keep is {out.size(max(0, done.bytes))} smaller.")
    else:
        print_one(out.to_plain(done), output)
    return FAILED if done.problems else FOUND


def _agreed(question: str) -> bool:
    if sys.stdin is None or not sys.stdin.isatty():
        return False
    return click.confirm(question, err=True)
