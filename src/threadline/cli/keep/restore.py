"""`threadline keep restore`: put sessions back so that they can be resumed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from typing import Any

import click

from threadline import keep
from threadline.cli import EXIT_FAILED, EXIT_OK
from threadline.cli import output as out
from threadline.cli.keep.group import FolderPath, find_machine, keep_options, machine_option, open_catalogue
from threadline.cli.options import complete_with, output_options
from threadline.cli.output import print_message, progress_bar
from threadline.errors import BadQuery, NotFound
from threadline.files import data_folder
from threadline.keep import Catalogue, KeptSession, RestoreResult, Version
from threadline.model.text import count, format_size, short_id
from threadline.render import plain

_MAX_MESSAGES = 10
_EPILOG = """
\b
Examples:
  threadline keep restore 55604662                   to its former home
  threadline keep restore 55604662 --to ~/old-home   into another home
  threadline keep restore last --at 3 --to old       as it was after run 3
  threadline keep restore --all --to ~/.claude-new   everything

\b
Exit codes: 0 restored; 1 no keep found; 2 a file not restored, or an error.
"""


@click.command(epilog=_EPILOG)
@click.argument("sessions", nargs=-1, metavar="[SESSION]...", shell_complete=complete_with("sessions"))
@click.option(
    "--to",
    type=FolderPath(),
    metavar="DIR",
    help="The Claude home to restore into. Default: the one they came from.",
)
@click.option("--force", is_flag=True, help="Replace existing files that have other content.")
@click.option("--all", "everything", is_flag=True, help="Restore all sessions, and files that belong to none.")
@click.option(
    "--at", type=click.IntRange(min=1), metavar="RUN", help="The state after this run (see `keep diff --runs`)."
)
@click.option(
    "--touch", is_flag=True, help="Set mtimes to now, so that Claude Code does not delete the files immediately."
)
@click.option("--home", metavar="DIR", help="Only files of this home, if several have the session.")
@machine_option
@keep_options
@output_options
def restore(
    sessions: tuple[str, ...],
    *,
    to: Path | None,
    force: bool,
    everything: bool,
    at: int | None,
    touch: bool,
    home: str | None,
    machine: str | None,
    folder: Path | None,
    key_file: Path | None,
    output: str,
) -> int:
    """Restore sessions byte for byte, with their agents, tool results, file history, todos, tasks and plans.

    SESSION is the start of an id, or `last`. Existing files with other content stay, unless you use --force. Nothing
    is written outside the home. A truncated transcript is restored with what it lost; --at restores it as it was
    stored.
    """
    if sessions and everything:
        raise BadQuery("Name sessions or use --all, not both.")
    if not sessions and not everything:
        raise BadQuery("Name a session (`threadline keep list` lists them), or use --all.")
    catalogue, here = open_catalogue(folder, key_file)
    machine_id = find_machine(catalogue, machine, here) if machine is not None else None
    _check_run(catalogue, machine_id, at)
    _check_outside_keep(catalogue.store.folder, to)
    query = _RestoreQuery(catalogue, machine_id, _real_path(home), at)
    selected = query.sessions(sessions, here.id)
    files = query.files(selected, everything=everything)
    if to is None:
        foreign = next(
            (file for of_home in files.values() for file in of_home.values() if file.machine != here.id), None
        )
        if foreign is not None:
            raise BadQuery(
                f"This was stored by another machine, {foreign.label}, from {foreign.home!r}."
                " Name a home here with --to."
            )
        _check_own_homes(files, home)
    targets, left_out = _group_by_target(files, to)
    results = _restore_files(catalogue, targets, force=force, touch=touch)
    restored = [version for versions in targets.values() for version in versions]
    row = {
        "sessions": [session.id for session in selected],
        "homes": sorted(results),
        "files": sum(len(result.files) for result in results.values()),
        "same": sum(len(result.same) for result in results.values()),
        "refused": [message for result in results.values() for message in result.refused] + left_out,
        "torn": sorted(version.path for version in restored if version.torn),
        "notes": [*query.notes, *(_truncation_notes(catalogue, restored) if at is None else ())],
    }
    if output == "table":
        _print_result(row, selected, _session_directory(catalogue, selected), touch=touch, moved=to is not None)
    else:
        out.print_record(row, output)
    return EXIT_FAILED if row["refused"] else EXIT_OK


class _RestoreQuery:
    """Selects the files to restore: of a machine, a home, a run. `notes` explain choices that were made."""

    def __init__(self, catalogue: Catalogue, machine: str | None, home: str | None, at: int | None) -> None:
        self._catalogue = catalogue
        self._machine = machine
        self._home = home
        self._at = at
        self.notes: list[str] = []

    def sessions(self, names: Sequence[str], here: str) -> list[KeptSession]:
        """The named sessions, or all; reassembled if they were truncated, unless a run is given.

        If several machines have a session, this machine's is taken; of several homes, the longest transcript.
        """
        candidates = [
            session
            for session in keep.list_sessions(self._catalogue, machine=self._machine, at=self._at)
            if self._has_home(session.home)
        ]
        if not candidates and self._home is not None:
            raise NotFound(
                f"No session of the home {self._home!r} is in the keep. `threadline keep list --json` lists homes."
            )
        if "last" in names:
            candidates = keep.sort_by_last_entry(self._catalogue, candidates)
        groups = (
            [keep.find_sessions(candidates, name) for name in names] if names else [[session] for session in candidates]
        )
        selected = {}
        for group in groups:
            own = [session for session in group if session.machine == here] or group
            complete = [keep.complete_session(self._catalogue, session) for session in own] if self._at is None else own
            longest = max(complete, key=lambda session: session.main.size if session.main is not None else 0)
            selected[longest.machine, longest.home, longest.id] = longest
            others = [session.home for session in complete if session is not longest]
            if others:
                self.notes.append(
                    f"{short_id(longest.id)} was stored from {len(complete)} homes. This is the longest, from"
                    f" {longest.home}; --home DIR selects another: {', '.join(others[:3])}."
                )
        return [*selected.values()]

    def files(self, sessions: Sequence[KeptSession], *, everything: bool) -> dict[str, dict[str, Version]]:
        """The files to restore, by home and path. If several machines have a file, the latest is taken."""
        files: dict[str, dict[str, Version]] = {}

        def add(versions: Iterable[Version]) -> None:
            for version in versions:
                of_home = files.setdefault(version.home, {})
                other = of_home.get(version.path)
                if other is None or other.mtime_ns < version.mtime_ns:
                    of_home[version.path] = version

        for session in sessions:
            add(session.files_to_restore())
        others = [
            file
            for file in keep.list_other_files(self._catalogue, machine=self._machine, at=self._at)
            if self._has_home(file.home)
        ]
        if everything:
            add(others)
            return files
        owners = keep.file_owners(self._catalogue)
        for session in sessions:
            add(owners.referenced_files(session.id, session.files, others))
        return files

    def _has_home(self, home: str) -> bool:
        return self._home is None or home == self._home


def _check_run(catalogue: Catalogue, machine: str | None, at: int | None) -> None:
    """Make sure that a run exists.

    Raises:
        BadQuery: it does not.
    """
    runs = [
        manifest.run.number for manifest in catalogue.manifests if machine is None or manifest.run.machine == machine
    ]
    if at is not None and runs and at > max(runs):
        raise BadQuery(f"There is no run {at}. The last is {max(runs)}; `threadline keep diff --runs` lists them.")


def _check_outside_keep(folder: Path, to: Path | None) -> None:
    """Make sure that nothing is restored into the keep itself.

    Raises:
        BadQuery: it would be.
    """
    if to is not None:
        inside = os.path.realpath(os.path.expanduser(to))  # noqa: PTH111 - that of Path raises
        if f"{inside}{os.sep}".startswith(f"{os.path.realpath(folder)}{os.sep}"):
            raise BadQuery(f"{str(to)!r} is inside the keep. Name another folder with --to.")


def _check_own_homes(files: Iterable[str], named: str | None) -> None:
    """Make sure that homes are the user's: a merged keep may claim that this machine's home is anywhere.

    Raises:
        BadQuery: one is unknown.
    """
    own = keep.own_homes([named] if named is not None else ()) | {data_folder()}
    unknown = sorted(set(files) - own)
    if unknown:
        raise BadQuery(
            f"According to the keep, this came from {unknown[0]!r}, which is not one of your homes. If it is, name it"
            " with --home; otherwise name a target with --to."
        )


def _real_path(home: str | None) -> str | None:
    """The real path of a home, as the keep records it."""
    return os.path.realpath(os.path.expanduser(home)) if home is not None else None  # noqa: PTH111 - that of Path raises


def _truncation_notes(catalogue: Catalogue, versions: Iterable[Version]) -> Iterator[str]:
    """Explain which version of a transcript was restored if a later one is shorter."""
    for version in versions:
        if not keep.is_session_transcript(version.path):
            continue
        newest, longest = keep.newest_version(catalogue, version), keep.longest_version(catalogue, version)
        if version.spans:
            runs = " or ".join(map(str, sorted({span.version.run for span in version.spans})))
            yield (
                f"{version.path} was truncated and then continued. The lost lines were restored where they were."
                f" --at {runs} restores it as it was stored."
            )
        elif newest.size < version.size:
            size = format_size(newest.size)
            yield f"{version.path} was truncated to {size} later. Restored as of run {version.run}."
        elif longest.size > version.size:
            size = format_size(longest.size)
            yield f"{version.path} was longer before it was rewritten. --at {longest.run} restores {size}."


def _restore_files(
    catalogue: Catalogue, targets: dict[str, list[Version]], *, force: bool, touch: bool
) -> dict[str, RestoreResult]:
    """Restore files; return the result for each home."""
    results: dict[str, RestoreResult] = {}
    total = sum(version.size for versions in targets.values() for version in versions)
    with progress_bar("Restoring", total, rate=True) as advance:
        for home, versions in targets.items():
            result = keep.restore_files(catalogue, versions, Path(home), force=force, progress=advance)
            results[home] = result
            if touch:
                now = time.time_ns()
                for path in (*result.files, *result.same):
                    os.utime(path, ns=(now, now))
    return results


def _group_by_target(
    files: dict[str, dict[str, Version]], to: Path | None
) -> tuple[dict[str, list[Version]], list[str]]:
    """The files by target home; and if several homes are restored into one, messages about files in conflict."""
    if to is None:
        return {home: [*versions.values()] for home, versions in files.items()}, []

    def rank(version: Version) -> tuple[int, int]:
        return (version.size if keep.is_session_transcript(version.path) else 0, version.mtime_ns)

    merged: dict[str, Version] = {}
    conflicts: list[str] = []
    for versions in files.values():
        for path, version in versions.items():
            other = merged.get(path)
            winner, loser = (version, other) if other is None or rank(other) < rank(version) else (other, version)
            merged[path] = winner
            if loser is not None and list(winner.pieces) != list(loser.pieces):
                conflicts.append(
                    f"{path} of {loser.home} was not restored: {winner.home} has another file with this path."
                    " Restore it with --home into another folder."
                )
    # Not the real path: a symlink may be named on purpose.
    return {os.path.abspath(os.path.expanduser(to)): [*merged.values()]}, conflicts  # noqa: PTH100, PTH111 - those of Path raise


def _session_directory(catalogue: Catalogue, sessions: Sequence[KeptSession]) -> str:
    """The directory in which a single session was started."""
    titles = keep.read_titles(catalogue, sessions) if len(sessions) == 1 else {}
    return next((title.project for title in titles.values()), "")


def _print_result(
    row: dict[str, Any], sessions: Sequence[KeptSession], directory: str, *, touch: bool, moved: bool
) -> None:
    homes = ", ".join(plain(home) for home in row["homes"])
    click.echo(f"Restored {count(row['files'], 'file')} of {count(len(sessions), 'session')} into {homes}.")
    if row["same"]:
        click.echo(f"{count(row['same'], 'file')} already existed with the same content.")
    for note in row["notes"][:_MAX_MESSAGES]:
        click.echo(out.wrap_text(plain(note)))
    for path in row["torn"]:
        print_message(f"{path} changed while it was stored, and may mix two states.")
    for message in row["refused"][:_MAX_MESSAGES]:
        print_message(message)
    if len(row["refused"]) > _MAX_MESSAGES:
        print_message(f"… and {len(row['refused']) - _MAX_MESSAGES:,} more were not restored.")
    if len(sessions) == 1 and sessions[0].main is not None and not row["refused"]:
        prefix = f"cd {quote(directory)} && " if directory else ""
        default = os.path.join(os.path.expanduser("~"), ".claude")  # noqa: PTH111, PTH118 - those of Path raise
        prefix += f"CLAUDE_CONFIG_DIR={quote(row['homes'][0])} " if row["homes"][0] != default else ""
        click.echo(f"Resume it with: {plain(prefix)}claude -r {plain(sessions[0].id)}")
    if not touch and (row["files"] or not row["refused"]):
        for home in row["homes"]:
            _warn_of_deletion(home, [session for session in sessions if moved or session.home == home])


def _warn_of_deletion(home: str, sessions: Sequence[KeptSession]) -> None:
    """Warn that Claude Code will delete old sessions again."""
    now = datetime.now(UTC)
    period = keep.read_retention_period(Path(home))
    mains = [session.main for session in sessions if session.main is not None]
    old = [main for main in mains if (end := period.ends(main.mtime_ns)) is not None and end <= now]
    if old:
        which = "It is" if len(sessions) == 1 else "1 of them is" if len(old) == 1 else f"{len(old):,} of them are"
        it = "it" if len(old) == 1 else "them"
        click.echo(
            out.wrap_text(
                f"{which} older than {count(period.days, 'day')}, so Claude Code deletes {it} again soon after it"
                f" starts. Resume {it} now, raise cleanupPeriodDays in {home}/settings.json first, or restore with"
                " --touch."
            )
        )
