"""`threadline keep` without an action: one run that stores what is new."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from typing import Any

import click

from threadline.cli import EXIT_FAILED, EXIT_NOTHING, EXIT_OK
from threadline.cli import output as out
from threadline.cli.keep.group import deferred_progress_bar, keep_path
from threadline.cli.output import print_message, report_no_home
from threadline.errors import BadQuery, Unreadable
from threadline.find import homes as find_homes
from threadline.json_values import to_json_value
from threadline.keep import (
    KEY_FILE_VARIABLE,
    PASSPHRASE_VARIABLE,
    Catalogue,
    KeepResult,
    Machine,
    Store,
    is_keep,
    is_kept_only,
    list_differences,
    list_sessions,
    missing_keep_message,
    recognise_machine,
    run_keep,
    stored_size,
    this_machine,
)
from threadline.model.homes import Home
from threadline.model.places import ProblemKind
from threadline.model.text import count, format_duration, format_percent, format_size
from threadline.parallel import cpu_count
from threadline.render import plain

_MAX_PROBLEMS = 10


def run(
    folder: Path | None,
    key_file: Path | None,
    named_homes: tuple[str, ...],
    jobs: int | None,
    output: str,
    *,
    quiet: bool,
    encrypt: bool,
    begin: bool,
) -> int:
    """Keep what is new, and report it."""
    homes = find_homes(*named_homes)
    if not homes:
        report_no_home()
        return EXIT_NOTHING
    machine = this_machine()
    store = _open_or_create(folder, key_file, machine, encrypt=encrypt, begin=begin)
    catalogue = Catalogue(store, machine.folder)
    machine = _recognise_machine(catalogue, machine, homes)
    began = monotonic()
    with deferred_progress_bar("Keeping") as (planned, advance):
        result = run_keep(
            catalogue, homes, machine, jobs=jobs or max(2, cpu_count()), planned=planned, progress=advance
        )
    return _print_result(catalogue, result, machine, output, monotonic() - began, quiet=quiet)


def _recognise_machine(catalogue: Catalogue, machine: Machine, homes: Sequence[Home]) -> Machine:
    """This machine with the id that it has in the keep: with a new one, everything would be kept twice."""
    if machine.folder is None or machine.has_completed_run:
        return machine
    if catalogue.store.is_key_missing and catalogue.store.run_files():
        print_message(
            f"This machine's id in the keep is {machine.id}. If it has stored files here before, its id was lost:"
            f" `threadline keep status` with the key shows the old one."
            f" Write it into {str(machine.folder / 'machine')!r}."
        )
        return machine
    machine, message = recognise_machine(catalogue, machine, homes)
    if message is not None:
        print_message(message)
    return machine


def _open_or_create(
    folder: Path | None, key_file: Path | None, machine: Machine, *, encrypt: bool, begin: bool
) -> Store:
    """The keep, created if there is none. Adding to an encrypted keep does not need its secret key."""
    where = keep_path(folder)
    missing = missing_keep_message(machine.folder, where) if not begin and not is_keep(where) else None
    if missing is not None:
        raise Unreadable(f"{missing} If it is gone for good, use --begin to create a new one.")
    if not encrypt:
        store = Store.make(where)
        return Store.unlock(where, key_file=key_file) if store.is_encrypted and key_file is not None else store
    if key_file is None and (path := os.environ.get(KEY_FILE_VARIABLE)):
        key_file = Path(path)
    if key_file is not None:
        return Store.make_encrypted(where, key_file=key_file)
    if (where / "keep.json").exists():
        raise BadQuery(
            f"There is a keep in {str(where)!r} already. --encrypt creates a new one: name another folder with --keep."
        )
    return Store.make_encrypted(where, passphrase=_ask_passphrase())


def _ask_passphrase() -> str:
    passphrase = os.environ.get(PASSPHRASE_VARIABLE)
    if passphrase:
        return passphrase
    if not out.can_ask():
        raise BadQuery(f"A passphrase is needed. Run this in a terminal, set {PASSPHRASE_VARIABLE}, or use --key-file.")
    answer: str = click.prompt("Passphrase for the new keep", hide_input=True, confirmation_prompt=True, err=True)
    return answer


def _print_result(
    catalogue: Catalogue, result: KeepResult, machine: Machine, output: str, seconds: float, *, quiet: bool
) -> int:
    """Print what the run did, and what the keep contains now."""
    for problem in result.problems[:_MAX_PROBLEMS]:
        print_message(f"{problem.place}: {problem.message}")
    if len(result.problems) > _MAX_PROBLEMS:
        print_message(f"… and {len(result.problems) - _MAX_PROBLEMS:,} more files.")
    has_failures = any(problem.kind is ProblemKind.UNREADABLE for problem in result.problems)
    code = EXIT_FAILED if has_failures else EXIT_OK
    if quiet:
        return code
    row = _result_row(catalogue, result, machine, seconds)
    if output == "table":
        for line in _result_lines(row):
            click.echo(out.wrap_text(line))
    else:
        out.print_record(row, output)
    return code


def _result_row(catalogue: Catalogue, result: KeepResult, machine: Machine, seconds: float) -> dict[str, Any]:
    differences = list_differences(catalogue, machine.id, result.run - 1, result.run)
    counts = Counter(difference.change for difference in differences if difference.session is not None)
    sessions = list_sessions(catalogue)
    # Without the key and a cache, nobody knows what an encrypted keep contains.
    is_known = not catalogue.unread
    return {
        "keep": str(catalogue.store.folder),
        "run": result.run,
        "new": counts["new"],
        "grown": counts["grown"],
        "changed": counts["changed"],
        "gone": counts["gone"],
        "files": result.files,
        "files_new": result.new,
        "files_grown": result.grown,
        "files_changed": result.changed,
        "files_gone": result.gone,
        "read": result.read,
        "written": result.stored,
        "sessions": len(sessions) if is_known else None,
        "agents_only": sum(session.main is None for session in sessions) if is_known else None,
        "kept": sum(is_kept_only(session, machine.id) for session in sessions) if is_known else None,
        "bytes": sum(version.size for version in catalogue.newest()) if is_known else None,
        "stored": stored_size(catalogue.store.folder),
        "problems": [{"place": str(problem.place), "message": problem.message} for problem in result.problems],
        "left_out": to_json_value(result.left_out) if result.left_out else [],
        "seconds": round(seconds, 3),
    }


def _result_lines(row: dict[str, Any]) -> list[str]:
    lines = [_changes_line(row)]
    if row["left_out"]:
        reasons = Counter(file["reason"] for file in row["left_out"])
        counts = ", ".join(f"{number:,} {reason}" for reason, number in sorted(reasons.items()))
        lines.append(
            f"Not stored: {count(len(row['left_out']), 'file')} ({counts}). `threadline keep status` lists them."
        )
    folder, stored = plain(row["keep"]), format_size(row["stored"])
    if row["gone"]:
        lines.append(f"{count(row['gone'], 'session')} deleted by Claude Code since the last run, still in the keep.")
    if row["sessions"] is None:
        return [*lines, f"Stored in {folder}: {stored}, encrypted. Without the key its contents are unknown."]
    share = f", {format_percent(row['stored'] / row['bytes'])}" if row["bytes"] else ""
    agents_only = f" ({row['agents_only']:,} with only transcripts of agents)" if row["agents_only"] else ""
    sessions = f"{count(row['sessions'], 'session')}{agents_only}"
    lines.append(f"Stored in {folder}: {sessions}, {format_size(row['bytes'])} in {stored}{share}.")
    if row["kept"]:
        lines.append(f"Claude Code has deleted {row['kept']:,} of them: `threadline keep list --only`.")
    return lines


def _changes_line(row: dict[str, Any]) -> str:
    files = row["files_new"] + row["files_grown"] + row["files_changed"]
    if not files:
        return f"Nothing new. Checked {count(row['files'], 'file')} in {format_duration(row['seconds'])}."
    counts = [f"{row[change]:,} {change}" for change in ("new", "grown", "changed") if row[change]]
    sessions = f"Sessions: {', '.join(counts)}" if counts else "No new sessions"
    size = f"{format_size(row['read'])} read, {format_size(row['written'])} written"
    return f"{sessions}. {count(files, 'file')}, {size}, in {format_duration(row['seconds'])}."
