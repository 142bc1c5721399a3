"""`threadline keep verify`, `merge`, `accept-forgotten`, `forget` and `pack`: check, combine and compact a keep."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from time import time_ns
from typing import TYPE_CHECKING, Any

import click

from threadline import archive as archives
from threadline.archive import purge_caches
from threadline.cli import EXIT_FAILED, EXIT_OK
from threadline.cli import output as out
from threadline.cli.keep.group import (
    deferred_progress_bar,
    keep_options,
    keep_path,
    open_catalogue,
    open_keep,
    pending_message,
)
from threadline.cli.options import WholeNumber, complete_with, jobs_option, output_options
from threadline.cli.output import print_message, report_nothing
from threadline.errors import BadQuery, NotFound
from threadline.json_values import to_json_value
from threadline.keep import (
    Catalogue,
    ForgottenFiles,
    MergeResult,
    Store,
    VerifyResult,
    accept_forgotten,
    file_owners,
    find_sessions,
    forget_session,
    is_keep,
    list_other_files,
    list_sessions,
    machine_folder,
    merge_keeps,
    open_damaged_packs,
    repack,
    sort_by_last_entry,
    this_machine,
    verify_keep,
)
from threadline.model.text import count, format_size, format_time, short_id
from threadline.render import one_line, plain

if TYPE_CHECKING:
    from threadline.keep import Machine, Version
    from threadline.reports import TypedPrompt

_MAX_LEFT, _MAX_PROMPT = 10, 100
_VERIFY_EPILOG = """
\b
Examples:
  threadline keep verify               check every byte
  threadline keep verify --sample 20   check some of it, fast
  threadline keep verify --json        for a program

\b
Exit codes: 0 intact; 1 no keep found; 2 damage found, or another error.
"""


@click.command(epilog=_VERIFY_EPILOG)
@click.option("--sample", type=WholeNumber(1), metavar="N", help="Check only N random frames.")
@keep_options
@output_options
def verify(*, sample: int | None, folder: Path | None, key_file: Path | None, output: str) -> int:
    """Compare everything in the keep with its hashes, and list the sessions that damage affects.

    Nothing is changed. The next `threadline keep` stores damaged files again if Claude Code still has them;
    `threadline keep merge COPY` restores the rest from a copy of the keep.
    """
    store = open_keep(folder, key_file)
    catalogue = Catalogue(store, machine_folder(), trust_cache=False)
    # Another sample each time, so that in the long run everything is checked.
    with deferred_progress_bar("Verifying") as (planned, advance):
        result = verify_keep(catalogue, sample=sample, seed=time_ns(), planned=planned, progress=advance)
    damaged_packs = open_damaged_packs(machine_folder(), store.info.id)
    if damaged_packs is not None:
        damaged_packs.update(result.checked_packs, result.damaged_packs)
    row = {
        "path": str(store.folder),
        "packs": result.packs,
        "pieces": result.pieces,
        "bytes": result.bytes,
        "runs": result.runs,
        "sample": sample,
        "clean": not result.problems,
        "problems": [*result.problems],
        "sessions": sorted({*_affected_sessions(catalogue, result), *result.sessions}),
        "missing": result.missing_manifests,
        "files": sorted({f"{version.home}/{version.path}" for version in result.affected}),
    }
    if output == "table":
        _print_verification(row)
    else:
        out.print_record(row, output)
    return EXIT_OK if row["clean"] and not row["files"] else EXIT_FAILED


def _affected_sessions(catalogue: Catalogue, result: VerifyResult) -> set[str]:
    """The sessions that damage affects. Files whose owner cannot be read any more are listed by themselves."""
    owners = file_owners(catalogue)
    return {session for version in result.affected if (session := owners.session(version)) is not None}


def _print_verification(row: dict[str, Any]) -> None:
    pieces, packs = count(row["pieces"], "piece"), count(row["packs"], "pack")
    checked = f"{pieces} ({format_size(row['bytes'])}) in {packs}, {count(row['runs'], 'manifest')}"
    if row["clean"]:
        click.echo(f"Everything is intact: {checked}.{' This was a sample.' if row['sample'] else ''}")
        return
    click.echo(f"Damaged. Checked: {checked}.")
    for problem in row["problems"]:
        click.echo(out.wrap_text(problem, "  ", "    "))
    if row["sessions"]:
        click.echo(f"{count(len(row['sessions']), 'session')} cannot be restored completely:")
        for session in row["sessions"]:
            click.echo(f"  {plain(session)}")
    if row["files"]:
        click.echo(f"{count(len(row['files']), 'file')} affected (--json lists them). All others can be restored.")
    elif row["missing"]:
        click.echo(
            "Files that only a missing manifest lists are not shown. An earlier version may be restored instead."
        )
    else:
        click.echo("No file uses the damaged parts: everything can be restored.")
    if row["files"]:
        click.echo("The next `threadline keep` stores them again if Claude Code still has them.")
    click.echo("To repair the keep from a copy: threadline keep merge COPY")


_MERGE_EPILOG = """
\b
Examples:
  threadline keep merge /mnt/laptop/keep          import from another keep
  threadline keep merge a b --keep all            two keeps into a third
  threadline keep merge COPY                      repair from a copy
  threadline keep merge COPY --accept-forgotten   forget what it forgot
  threadline keep accept-forgotten                the same, later

\b
Exit codes: 0 done; 2 something was not imported, or another error.
"""


@click.command(epilog=_MERGE_EPILOG)
@click.argument("others", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="OTHER...")
@click.option("--accept-forgotten", "forgets", is_flag=True, help="Forget here what was forgotten in the other keep.")
@click.option("--even-damaged", is_flag=True, help="Import runs even if some of their bytes are lost.")
@click.option(
    "--other-key-file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The key of the other keeps, if it is a different one.",
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
    """Import everything from other keeps: those of other machines, or copies of this one.

    Every byte is compared with its hash first. The other keeps are not changed. Merging again changes nothing, and the
    order does not matter. Each machine keeps its name: see `keep list --machine`. What another keep has forgotten stays
    here, and is still stored, until you accept it.
    """
    where = keep_path(folder)
    missing = [other for other in others if not is_keep(other)]
    if missing:
        raise NotFound(f"There is no keep in {str(missing[0])!r}.")
    sources = [open_keep(other, other_key_file or key_file) for other in others]
    if not is_keep(where):
        Store.make(where)
    store = open_keep(where, key_file)
    machine = this_machine()
    catalogue = Catalogue(store, machine.folder, trust_cache=False)
    with deferred_progress_bar("Merging") as (planned, advance):
        result = merge_keeps(
            catalogue,
            machine,
            sources,
            forgets=forgets,
            even_damaged=even_damaged,
            planned=planned,
            progress=advance,
        )
    if not store.is_encrypted and any(source.is_encrypted for source in sources) and (result.packs or result.runs):
        print_message("The other keep is encrypted and this one is not: the imported files are not encrypted here.")
    problems = [*result.refused, *(purge_caches(store.folder) if result.forgotten else ())]
    for problem in problems:
        print_message(problem)
    code = EXIT_FAILED if problems else EXIT_OK
    if output != "table":
        out.print_record(to_json_value(result), output)
        return code
    _print_merged(result, store)
    return code


def _print_merged(result: MergeResult, store: Store) -> None:
    if result.packs or result.runs:
        runs, packs = count(result.runs, "run"), count(result.packs, "pack")
        click.echo(f"Imported {runs} and {packs} ({format_size(result.bytes)}) into {plain(str(store.folder))}.")
    elif not result.refused and not result.mended:
        click.echo("Nothing new: this keep already has everything.")
    if result.mended:
        click.echo(f"Repaired {count(result.mended, 'file')} of this keep.")
    if result.forgotten:
        ids = ", ".join(map(short_id, result.forgotten[:8]))
        click.echo(f"Forgotten in the other keep: {count(len(result.forgotten), 'session')} ({plain(ids)}).")
    if result.pending:
        click.echo(pending_message(result.pending))


_ACCEPT_EPILOG = """
\b
Examples:
  threadline keep accept-forgotten --list        what was forgotten elsewhere
  threadline keep accept-forgotten               forget all of it here, too
  threadline keep accept-forgotten 55604662      only this session
  threadline keep accept-forgotten --yes         without asking

\b
Exit codes: 0 done; 1 nothing is pending, or you said no; 2 an error.
"""


@click.command("accept-forgotten", epilog=_ACCEPT_EPILOG)
@click.argument("sessions", nargs=-1, metavar="[SESSION]...")
@click.option("--list", "only_list", is_flag=True, help="Only list what is pending.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@keep_options
@output_options
def accept(
    sessions: tuple[str, ...],
    *,
    only_list: bool,
    yes: bool,
    folder: Path | None,
    key_file: Path | None,
    output: str,
) -> int:
    """Forget here what keeps that were merged have forgotten: all of it, or these sessions.

    Until then it stays in this keep, and is still stored. Afterwards it is deleted here and not stored again, as if you
    had used `keep forget`. SESSION may be a prefix.
    """
    catalogue, machine = open_catalogue(folder, key_file, trust_cache=False)
    rows = [row for row in catalogue.pending if not sessions or any(row.session.startswith(id_) for id_ in sessions)]
    if not rows:
        if output != "table":
            out.print_rows((), output)
        return report_nothing("Nothing is pending: no merged keep has forgotten anything else.")
    kept = [sum(map(ForgottenFiles([row]).has, (version.path for version in catalogue.newest()))) for row in rows]
    records = [{**to_json_value(row), "files": number} for row, number in zip(rows, kept, strict=True)]
    if only_list and output != "table":
        out.print_rows(records, output)
        return EXIT_OK
    if output == "table":
        for row, number in zip(rows, kept, strict=True):
            click.echo(
                f"{plain(row.session or '-')}  {count(number, 'file')} in this keep  {one_line(row.reason, 200)}"
            )
    if only_list:
        return EXIT_OK
    if not yes and not _confirm(f"Delete {count(sum(kept), 'file')} of {count(len(rows), 'session')} permanently?"):
        return report_nothing("Nothing was deleted. Use --yes to delete without asking.")
    result = accept_forgotten(catalogue, machine, rows)
    problems = [*result.problems, *purge_caches(catalogue.store.folder)]
    for problem in problems:
        print_message(problem)
    if output == "table":
        click.echo(f"Forgotten: {count(len(rows), 'session')}, {count(sum(kept), 'file')}.")
    else:
        out.print_rows(records, output)
    return EXIT_FAILED if problems else EXIT_OK


_FORGET_EPILOG = """
\b
Examples:
  threadline keep forget 55604662 --reason "a customer's data"
  threadline keep forget 55604662 --reason "a mistake" --yes
  threadline keep list                                  sessions in the keep

\b
Exit codes: 0 forgotten; 1 you said no; 2 an error.
"""


@click.command(epilog=_FORGET_EPILOG)
@click.argument("session", shell_complete=complete_with("sessions"))
@click.option("--reason", required=True, metavar="TEXT", help="Why. The reason is recorded permanently.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@keep_options
@output_options
def forget(session: str, *, reason: str, yes: bool, folder: Path | None, key_file: Path | None, output: str) -> int:
    """Delete a session from the keep permanently: every version of all of its files.

    The keep still records that it was stored, its paths and the reason. Its bytes are deleted, except those that
    another session shares. It will not be stored again, and a merge does not bring it back. Copies of the keep still
    have it: merge this keep into them with --accept-forgotten. Claude Code's own files are not changed: those that
    still exist are listed, with the prompts of the session in its history.
    """
    if not reason.strip():
        raise BadQuery("The reason is empty. It is all that will be left of the session.")
    catalogue, machine = open_catalogue(folder, key_file, trust_cache=False)
    candidates = list_sessions(catalogue)
    matches = find_sessions(sort_by_last_entry(catalogue, candidates) if session == "last" else candidates, session)
    others = list_other_files(catalogue)
    owners = file_owners(catalogue)
    files = [
        file for match in matches for file in (*match.files, *owners.referenced_files(match.id, match.files, others))
    ]
    size = format_size(sum(file.size for file in files))
    question = f"Delete {matches[0].id} permanently: {count(len(files), 'file')}, {size}?"
    if not yes and not _confirm(question):
        return report_nothing("Nothing was deleted. Use --yes to delete without asking.")
    result = forget_session(catalogue, machine, matches[0].id, files, reason.strip())
    problems = [*result.problems, *purge_caches(catalogue.store.folder)]
    for problem in problems:
        print_message(problem)
    left = _files_of_claude_code(files, machine)
    prompts = _history_of_session(result.session, {file.home for file in files if file.machine == machine.id})
    if output == "table":
        removed = f"{count(result.files, 'file')}, {count(result.versions, 'version')}"
        freed = format_size(max(0, result.bytes))
        click.echo(f"Deleted {plain(result.session)}: {removed}. The keep is {freed} smaller.")
        _print_left(left, prompts)
    else:
        history = [{"timestamp": prompt.timestamp, "text": prompt.text, "home": prompt.home} for prompt in prompts]
        record = {**to_json_value(result), "problems": problems, "left": left, "history": to_json_value(history)}
        out.print_record(record, output)
    return EXIT_FAILED if problems else EXIT_OK


def _files_of_claude_code(files: Sequence[Version], machine: Machine) -> list[str]:
    """The paths of files that are still in a home on this machine."""
    paths = {os.path.join(file.home, file.path) for file in files if file.machine == machine.id}  # noqa: PTH118 - text
    return sorted(path for path in paths if os.path.lexists(path))


def _history_of_session(session: str | None, homes: Iterable[str]) -> list[TypedPrompt]:
    """The prompts of a session in the histories of homes, which Claude Code keeps apart from transcripts."""
    existing = [home for home in homes if os.path.isdir(home)]  # noqa: PTH112 - Path.is_dir raises
    if session is None or not existing:
        return []
    with archives.open(existing, index=False, keep=False) as archive:
        return [prompt for prompt in archive.history() if prompt.session == session]


def _print_left(paths: Sequence[str], prompts: Sequence[TypedPrompt]) -> None:
    """Say what Claude Code itself still has of a forgotten session."""
    if paths:
        click.echo(
            f"Claude Code still has {count(len(paths), 'file')} of the session, which you may want to delete, too:"
        )
        for path in paths[:_MAX_LEFT]:
            click.echo(f"  {plain(path)}")
        if len(paths) > _MAX_LEFT:
            click.echo(f"  and {len(paths) - _MAX_LEFT:,} more: see --json")
    if prompts:
        click.echo(f"Its history.jsonl still has {count(len(prompts), 'prompt')} of the session:")
        for prompt in prompts[:_MAX_LEFT]:
            click.echo(f"  {format_time(prompt.timestamp)}  {one_line(prompt.text, _MAX_PROMPT)}")
        if len(prompts) > _MAX_LEFT:
            click.echo(f"  and {len(prompts) - _MAX_LEFT:,} more: see --json")


def _confirm(question: str) -> bool:
    return out.can_ask() and click.confirm(question, err=True)


_PACK_EPILOG = """
\b
Examples:
  threadline keep pack           after some hundred runs: smaller and faster
  threadline keep pack --json    for a program
  threadline keep verify         check the result

\b
Exit codes: 0 done; 1 no keep found; 2 a pack is damaged, or another error.
"""


@click.command(epilog=_PACK_EPILOG)
@keep_options
@jobs_option
@output_options
def pack(*, folder: Path | None, key_file: Path | None, jobs: int | None, output: str) -> int:
    """Combine the small packs of many runs into large ones. The content stays the same.

    Old packs are deleted after the new ones are on disk, and only if those are smaller.
    """
    store = open_keep(folder, key_file)
    machine = this_machine()
    catalogue = Catalogue(store, machine.folder, trust_cache=False)
    with deferred_progress_bar("Packing") as (planned, advance):
        result = repack(catalogue, machine, jobs=jobs or 2, planned=planned, progress=advance)
    for problem in result.problems:
        print_message(problem)
    if output != "table":
        out.print_record(to_json_value(result), output)
    elif result.before:
        before = f"{count(result.before, 'pack')} ({format_size(result.bytes_before)})"
        click.echo(f"{before} became {result.after:,} ({format_size(result.bytes_after)}).")
    else:
        click.echo("Nothing to pack: the result would not be smaller.")
    return EXIT_FAILED if result.problems else EXIT_OK
