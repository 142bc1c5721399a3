"""`threadline keep verify`, `merge`, `forget` and `pack`: check, combine and compact a keep."""

from __future__ import annotations

import sys
from pathlib import Path
from time import time_ns
from typing import TYPE_CHECKING, Any

import click

from threadline.cli import EXIT_FAILED, EXIT_OK
from threadline.cli.keep.options import keep_options
from threadline.cli.options import jobs_option, output_options

if TYPE_CHECKING:
    from threadline.keep import Store, VerifyResult

_VERIFY_EPILOG = """
\b
Examples:
  threadline keep verify               every byte
  threadline keep verify --sample 20   some of it, fast
  threadline keep verify --json        for a program

\b
Exit codes: 0 all is as it was written; 1 there is no keep; 2 something is damaged, or another error.
"""


@click.command(epilog=_VERIFY_EPILOG)
@click.option("--sample", type=click.IntRange(min=1), metavar="N", help="Only N frames, chosen by chance.")
@keep_options
@output_options
def verify(*, sample: int | None, folder: Path | None, key_file: Path | None, output: str) -> int:
    """Read everything that is kept and compare it with its hashes; name the sessions that damage touches.

    Nothing in the keep is changed. What is damaged and still where Claude Code wrote it is kept again by the next
    `threadline keep`; the rest can be had from a copy: `threadline keep merge COPY`.
    """
    from threadline.cli.keep.options import deferred_progress_bar, open_keep, print_record

    store = open_keep(folder, key_file)
    from threadline.keep import Machine, machine_folder, open_damaged_packs, open_machine_cache
    from threadline.keep import verify_keep as verify_of

    memory = open_machine_cache(store, Machine("", "", machine_folder()))

    # Another sample each time: in the long run all is seen.
    with deferred_progress_bar("Verifying") as (planned, advance):
        done = verify_of(store, memory=memory, sample=sample, seed=time_ns(), planned=planned, progress=advance)
    doubts = open_damaged_packs(machine_folder(), store.about.id)
    if doubts is not None:
        doubts.judge(done.looked, done.damaged)
    touched = sorted({*_damaged_sessions(store, done), *done.sessions})
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
        _print_verification(row)
    else:
        print_record(row, output)
    return EXIT_OK if row["clean"] and not row["files"] else EXIT_FAILED


def _damaged_sessions(store: Store, done: VerifyResult) -> list[str]:
    """The sessions that damage touches; a file whose owner cannot be read any more stands for itself."""
    from threadline.keep import Catalogue, FileOwners

    if not done.touched:
        return []
    belonging = FileOwners(Catalogue(store))
    return sorted({session for one in done.touched if (session := belonging.session(one)) is not None})


def _print_verification(row: dict[str, Any]) -> None:
    from threadline.cli import output as out

    size = out.format_size(row["bytes"])
    looked = f"{out.counted(row['pieces'], 'piece')} ({size}) in {out.counted(row['packs'], 'pack')}"
    looked += f", {out.counted(row['runs'], 'manifest')}"
    if row["clean"]:
        of_it = " This was a sample." if row["sample"] else ""
        click.echo(f"All is as it was written: {looked}.{of_it}")
        return
    click.echo(f"Damaged. Looked at: {looked}.")
    for problem in row["problems"]:
        click.echo(out.wrap_text(problem, "  ", "    "))
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


_MERGE_EPILOG = """
\b
Examples:
  threadline keep merge /mnt/laptop/keep           take over what the other one has
  threadline keep merge a b --keep all             two keeps into a third
  threadline keep merge COPY                       mend what is damaged here
  threadline keep merge COPY --accept-forgotten    forget here what was forgotten there

\b
Exit codes: 0 done; 2 something was not taken over, or another error.
"""


@click.command(epilog=_MERGE_EPILOG)
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
    from threadline.cli.keep.options import deferred_progress_bar, keep_path, open_keep, print_record

    where = keep_path(folder)
    from threadline.errors import NotFound
    from threadline.keep import Store, is_keep, this_machine
    from threadline.keep import merge_keeps as merged

    missing = [other for other in others if not is_keep(other)]
    if missing:
        raise NotFound(f"There is no keep in {str(missing[0])!r}, so there is nothing to take over.")
    sources = [open_keep(other, other_key_file or key_file) for other in others]
    if not is_keep(where):
        Store.make(where)
    store = open_keep(where, key_file)
    with deferred_progress_bar("Merging") as (planned, advance):
        done = merged(
            store,
            this_machine(),
            sources,
            forgets=forgets,
            even_damaged=even_damaged,
            planned=planned,
            progress=advance,
        )
    if not store.is_encrypted and any(source.is_encrypted for source in sources) and (done.packs or done.runs):
        click.echo("threadline: What is encrypted there lies here in clear: this keep is not encrypted.", err=True)
    for sentence in done.refused:
        click.echo(f"threadline: {out.plain(sentence)}", err=True)
    if output != "table":
        print_record(out.to_json_value(done), output)
    elif done.packs or done.runs:
        what = f"{out.counted(done.runs, 'run')} and {out.counted(done.packs, 'pack')} ({out.format_size(done.bytes)})"
        click.echo(f"Took over {what} into {out.plain(str(store.folder))}.")
    elif not done.refused and not done.mended:
        click.echo("Nothing is new: this keep has all that they have.")
    if done.mended and output == "table":
        click.echo(f"Made good: {out.counted(done.mended, 'file')} of this keep, damaged or not there.")
    if done.forgotten and output == "table":
        told = ", ".join(one[:8] for one in done.forgotten[:8])
        click.echo(f"Forgotten there: {out.counted(len(done.forgotten), 'session')} ({out.plain(told)}).")
    return EXIT_FAILED if done.refused else EXIT_OK


_FORGET_EPILOG = """
\b
Examples:
  threadline keep forget 55604662 --reason "a customer's data"
  threadline keep forget 55604662 --reason "a mistake" --yes    without asking
  threadline keep list                                          which there are

\b
Exit codes: 0 forgotten; 1 not, since you said no; 2 an error.
"""


@click.command(epilog=_FORGET_EPILOG)
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
    from threadline.archive import clear_kept_homes
    from threadline.cli import output as out
    from threadline.cli.keep.options import open_catalogue, print_record
    from threadline.errors import BadQuery
    from threadline.keep import FileOwners, find_sessions, list_other_files, list_sessions
    from threadline.keep import forget_session as forgotten

    if not reason.strip():
        raise BadQuery("Give a reason; it is all that will be left of the session.")
    catalogue, machine = open_catalogue(folder, key_file)
    fit = find_sessions(list_sessions(catalogue), session)
    rest = list_other_files(catalogue)
    belonging = FileOwners(catalogue)
    files = [file for kept in fit for file in (*kept.files, *belonging.along(kept.id, kept.files, rest))]
    size = out.format_size(sum(file.size for file in files))
    if not yes and not _confirm(f"Forget {fit[0].id} for good: {out.counted(len(files), 'file')}, {size}?"):
        from threadline.cli.screen import report_nothing

        return report_nothing("Nothing was forgotten; --yes does it without asking.")
    done = forgotten(catalogue.store, machine, fit[0].id, files, reason.strip())
    clear_kept_homes(catalogue.store.folder)
    for sentence in done.problems:
        click.echo(f"threadline: {out.plain(sentence)}", err=True)
    if output == "table":
        what = f"{out.counted(done.files, 'file')} in {out.counted(done.versions, 'version')}"
        click.echo(
            f"Forgot {out.plain(done.session)}: {what}; the keep is {out.format_size(max(0, done.bytes))} smaller."
        )
    else:
        print_record(out.to_json_value(done), output)
    return EXIT_FAILED if done.problems else EXIT_OK


def _confirm(question: str) -> bool:
    if sys.stdin is None or not sys.stdin.isatty():
        return False
    return click.confirm(question, err=True)


_PACK_EPILOG = """
\b
Examples:
  threadline keep pack           after some hundred runs: smaller, and faster to read
  threadline keep pack --json    for a program
  threadline keep verify         see that all is there

\b
Exit codes: 0 done; 1 there is no keep; 2 an error, or something damaged that was left as it is.
"""


@click.command(epilog=_PACK_EPILOG)
@keep_options
@jobs_option
@output_options
def pack(*, folder: Path | None, key_file: Path | None, jobs: int | None, output: str) -> int:
    """Write what many runs added in small packs into large ones. What is kept stays the same.

    Old packs are taken away when the new ones are safely on the disk, and only if these take less room.
    """
    from threadline.cli import output as out
    from threadline.cli.keep.options import deferred_progress_bar, open_keep, print_record

    store = open_keep(folder, key_file)
    from threadline.keep import repack, this_machine

    with deferred_progress_bar("Packing") as (planned, advance):
        done = repack(store, this_machine(), jobs=jobs or 2, planned=planned, progress=advance)
    for sentence in done.problems:
        click.echo(f"threadline: {out.plain(sentence)}", err=True)
    if output != "table":
        print_record(out.to_json_value(done), output)
    elif done.before:
        packs = f"{out.counted(done.before, 'pack')} ({out.format_size(done.bytes_before)})"
        click.echo(f"{packs} became {done.after:,} ({out.format_size(done.bytes_after)}).")
    else:
        click.echo("There is nothing to pack: it would take no less room.")
    return EXIT_FAILED if done.problems else EXIT_OK
