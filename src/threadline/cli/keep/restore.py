"""`threadline keep restore`: put sessions back so that they can be resumed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from threadline.cli import EXIT_FAILED, EXIT_OK
from threadline.cli.keep.options import FolderPath, keep_options, machine_option
from threadline.cli.options import output_options

if TYPE_CHECKING:
    from threadline.keep import Catalogue, KeptSession, Version

_EPILOG = """
\b
Examples:
  threadline keep restore 55604662                   where it was
  threadline keep restore 55604662 --to ~/old-home   into another home
  threadline keep restore last --at 3 --to old       as it was after run 3
  threadline keep restore --all --to ~/.claude-new   everything

\b
Exit codes: 0 all is there now; 1 there is no keep; 2 something was not put back, or another error.
"""


@click.command(epilog=_EPILOG)
@click.argument("sessions", nargs=-1, metavar="[SESSION]...")
@click.option(
    "--to",
    type=FolderPath(),
    metavar="DIR",
    help="A Claude home to put them into; by default the one they came from.",
)
@click.option("--force", is_flag=True, help="Put the kept file in place of one that is there with other bytes.")
@click.option("--all", "everything", is_flag=True, help="All sessions, and the files that belong to none.")
@click.option("--at", type=click.IntRange(min=1), metavar="RUN", help="As it was after this run: `keep diff --runs`.")
@click.option(
    "--touch", is_flag=True, help="Give files today's time, so that Claude Code does not delete them at once."
)
@click.option("--home", metavar="DIR", help="Only what was kept of this home, where several have the session.")
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
    """Put sessions back, byte for byte, with their agents, results, file histories, lists, tasks and plans.

    SESSION is the start of an id, or `last`. What is there with the same bytes is left alone, what is there with others
    stays unless --force is given, and nothing is written outside of the home. A transcript that something cut off comes
    back as it stood before; --at gives it as it was.
    """
    from threadline.cli.keep.options import find_machine, open_catalogue, print_record
    from threadline.errors import BadQuery

    if sessions and everything:
        raise BadQuery("Name sessions, or give --all, which is every one of them, and not both.")
    if not sessions and not everything:
        raise BadQuery("Name sessions (`threadline keep list` has them), or give --all.")
    catalogue, here = open_catalogue(folder, key_file)
    whose = find_machine(catalogue, machine, here) if machine is not None else None
    _check_run(catalogue, whose, at)
    _check_outside_keep(catalogue.store.folder, to)
    asked = _RestoreQuery(catalogue, whose, _real_path(home), at)
    chosen = asked.sessions(sessions, here.id)
    files = asked.files(chosen, everything=everything)
    strange = next((one for of_home in files.values() for one in of_home.values() if one.machine != here.id), None)
    if to is None and strange is not None:
        raise BadQuery(f"{strange.label} kept that, from its {strange.home!r}; say with --to where to put it here.")
    if to is None:
        _check_own_homes(files, home)
    targets, left = _group_by_target(files, to)
    rows = _restore_files(catalogue, targets, force=force, touch=touch)
    put = [version for versions in targets.values() for version in versions]
    row = {
        "sessions": [kept_session.id for kept_session in chosen],
        "homes": sorted(rows),
        "files": sum(len(one.files) for one in rows.values()),
        "same": sum(len(one.same) for one in rows.values()),
        "refused": [sentence for one in rows.values() for sentence in one.refused] + left,
        "torn": sorted(one.path for one in put if one.torn),
        "notes": [*asked.notes, *(_truncation_notes(catalogue, put) if at is None else ())],
    }
    if output == "table":
        _print_result(row, chosen, _session_directory(catalogue, chosen), touch=touch, moved=to is not None)
    else:
        print_record(row, output)
    return EXIT_FAILED if row["refused"] else EXIT_OK


class _RestoreQuery:
    """What of the keep is asked for: a machine's, a home's, as of a run; `notes` say what was chosen among several."""

    def __init__(self, catalogue: Catalogue, machine: str | None, home: str | None, at: int | None) -> None:
        self._catalogue = catalogue
        self._machine = machine
        self._home = home
        self._at = at
        self.notes: list[str] = []

    def sessions(self, names: Sequence[str], here: str) -> list[KeptSession]:
        """The sessions that were named, each once, or all; whole, unless they are asked for as of a run.

        Where several machines have one, it is this machine's; of several homes, that with the longest transcript.
        """
        from threadline.errors import NotFound
        from threadline.keep import complete_session, find_sessions, list_sessions

        found = [
            session
            for session in list_sessions(self._catalogue, machine=self._machine, at=self._at)
            if self._is_of(session.home)
        ]
        if not found and self._home is not None:
            raise NotFound(f"No session is kept of the home {self._home!r}; `threadline keep list --json` names homes.")
        fits = [find_sessions(found, name) for name in names] if names else [[one] for one in found]
        best = {}
        for fit in fits:
            own = [one for one in fit if one.machine == here] or fit
            whole = [complete_session(self._catalogue, one) for one in own] if self._at is None else own
            one = max(whole, key=lambda one: one.main.size if one.main is not None else 0)
            best[one.machine, one.home, one.id] = one
            others = [other.home for other in whole if other is not one]
            if others:
                self.notes.append(
                    f"{one.id[:8]} was kept of {len(whole)} homes; this is the longest, of {one.home}. --home DIR names"
                    f" another: {', '.join(others[:3])}."
                )
        return [*best.values()]

    def files(self, chosen: Sequence[KeptSession], *, everything: bool) -> dict[str, dict[str, Version]]:
        """By home, the files to put back, by their paths: of one that several machines have, the one written last."""
        from threadline.keep import FileOwners, list_other_files

        found: dict[str, dict[str, Version]] = {}

        def take(versions: Iterable[Version]) -> None:
            for version in versions:
                of_home = found.setdefault(version.home, {})
                before = of_home.get(version.path)
                if before is None or before.mtime_ns < version.mtime_ns:
                    of_home[version.path] = version

        for session in chosen:
            take(session.files_to_restore())
        rest = [
            file
            for file in list_other_files(self._catalogue, machine=self._machine, at=self._at)
            if self._is_of(file.home)
        ]
        if everything:
            take(rest)
            return found
        belonging = FileOwners(self._catalogue)
        for session in chosen:
            take(belonging.along(session.id, session.files, rest))
        return found

    def _is_of(self, home: str) -> bool:
        return self._home is None or home == self._home


def _check_run(catalogue: Catalogue, machine: str | None, at: int | None) -> None:
    """See that there was such a run.

    Raises:
        BadQuery: there was none.
    """
    from threadline.errors import BadQuery

    runs = [
        manifest.run.number for manifest in catalogue.manifests if machine is None or manifest.run.machine == machine
    ]
    if at is not None and runs and at > max(runs):
        raise BadQuery(f"There is no run {at}: the last is {max(runs)}; `threadline keep diff --runs` lists them.")


def _check_outside_keep(keep: Path, to: Path | None) -> None:
    """See that nothing is put into the keep itself, where no file but its own belongs.

    Raises:
        BadQuery: it would be.
    """
    from threadline.errors import BadQuery

    if to is not None:
        inside = os.path.realpath(os.path.expanduser(to))  # noqa: PTH111 - that of Path raises
        if f"{inside}{os.sep}".startswith(f"{os.path.realpath(keep)}{os.sep}"):
            raise BadQuery(f"{str(to)!r} is the keep itself, or in it; name another folder with --to.")


def _check_own_homes(files: Iterable[str], named: str | None) -> None:
    """See that homes are the user's: a keep that was merged may say that this machine's home is anywhere.

    Raises:
        BadQuery: one is not known.
    """
    from threadline.errors import BadQuery
    from threadline.keep import own_homes

    strange = sorted(set(files) - own_homes([named] if named is not None else ()))
    if strange:
        raise BadQuery(
            f"The keep says that it came from {strange[0]!r}, which is no home that is found here; if it is yours, name"
            " it with --home, or say with --to where to put it."
        )


def _real_path(home: str | None) -> str | None:
    """A home as the keep names it; that of another machine is named as it is there."""
    return os.path.realpath(os.path.expanduser(home)) if home is not None else None  # noqa: PTH111 - that of Path raises


def _truncation_notes(catalogue: Catalogue, put: Iterable[Version]) -> Iterator[str]:
    """What a reader should know of transcripts that have become shorter."""
    from threadline.cli import output as out
    from threadline.keep import is_session_transcript, longest_version, newest_version

    for version in put:
        if not is_session_transcript(version.path):
            continue
        last, longest = newest_version(catalogue, version), longest_version(catalogue, version)
        if version.spans:
            runs = sorted({span.version.run for span in version.spans})
            yield (
                f"{version.path} was cut off and gone on with: what it lost is put back where it stood, each line once."
                f" --at {' or '.join(map(str, runs))} gives it as it was."
            )
        elif last.size < version.size:
            size = out.format_size(last.size)
            yield f"{version.path} was cut off to {size} later; it is given as of run {version.run}."
        elif longest.size > version.size:
            size = out.format_size(longest.size)
            yield f"{version.path} was longer before it was rewritten: --at {longest.run} gives {size}."


def _restore_files(
    catalogue: Catalogue, targets: dict[str, list[Version]], *, force: bool, touch: bool
) -> dict[str, Any]:
    """Put files into their homes, or all into one; what came of it, by home."""
    from threadline.cli.screen import progress_bar
    from threadline.keep import restore_files as restored

    rows: dict[str, Any] = {}
    total = sum(version.size for versions in targets.values() for version in versions)
    with progress_bar("Restoring", total, rate=True) as advance:
        for home, versions in targets.items():
            done = restored(catalogue, versions, Path(home), force=force, progress=advance)
            rows[home] = done
            if touch:
                now = time.time_ns()
                for path in (*done.files, *done.same):
                    os.utime(path, ns=(now, now))
    return rows


def _group_by_target(
    files: dict[str, dict[str, Version]], to: Path | None
) -> tuple[dict[str, list[Version]], list[str]]:
    """The files by the home they are put into; and, where several homes go into one, what has no place there."""
    from threadline.keep import is_session_transcript

    if to is None:
        return {home: [*versions.values()] for home, versions in files.items()}, []

    def worth(version: Version) -> tuple[int, int]:
        return (version.size if is_session_transcript(version.path) else 0, version.mtime_ns)

    merged: dict[str, Version] = {}
    left: list[str] = []
    for versions in files.values():
        for path, one in versions.items():
            other = merged.get(path)
            first, second = (one, other) if other is None or worth(other) < worth(one) else (other, one)
            merged[path] = first
            if second is not None and list(first.pieces) != list(second.pieces):
                left.append(
                    f"{path} of {second.home} is not put back, for {first.home} has another one there; restore it with"
                    " --home into another place."
                )
    # Not its real path: whoever names a link means where it leads.
    return {os.path.abspath(os.path.expanduser(to)): [*merged.values()]}, left  # noqa: PTH100, PTH111 - those of Path raise


def _session_directory(catalogue: Catalogue, chosen: Sequence[KeptSession]) -> str:
    """The directory that the one session that was named began in."""
    from threadline.keep import read_titles

    said = read_titles(catalogue, chosen) if len(chosen) == 1 else {}
    return next((one.project for one in said.values()), "")


def _print_result(
    row: dict[str, Any], chosen: Sequence[KeptSession], directory: str, *, touch: bool, moved: bool
) -> None:
    from shlex import quote

    from threadline.cli import output as out

    homes = ", ".join(out.plain(home) for home in row["homes"])
    click.echo(f"Put back {out.counted(row['files'], 'file')} of {out.counted(len(chosen), 'session')} into {homes}.")
    if row["same"]:
        click.echo(f"{out.counted(row['same'], 'file')} {'was' if row['same'] == 1 else 'were'} there already.")
    for sentence in row["notes"][:10]:
        click.echo(out.wrap_text(out.plain(sentence)))
    for path in row["torn"]:
        click.echo(f"threadline: {out.plain(path)} changed while it was kept, and may be a mix.", err=True)
    for sentence in row["refused"][:10]:
        click.echo(f"threadline: {out.plain(sentence)}", err=True)
    if len(row["refused"]) > 10:  # noqa: PLR2004 - as above
        click.echo(f"threadline: … and {len(row['refused']) - 10:,} more were not put back.", err=True)
    if len(chosen) == 1 and chosen[0].main is not None and not row["refused"]:
        where = f"cd {quote(directory)} && " if directory else ""
        usual = os.path.join(os.path.expanduser("~"), ".claude")  # noqa: PTH111, PTH118 - those of Path raise
        where += f"CLAUDE_CONFIG_DIR={quote(row['homes'][0])} " if row["homes"][0] != usual else ""
        click.echo(f"Go on with it: {out.plain(where)}claude -r {out.plain(chosen[0].id)}")
    if not touch and (row["files"] or not row["refused"]):
        for home in row["homes"]:
            _warn_of_deletion(home, [kept_session for kept_session in chosen if moved or kept_session.home == home])


def _warn_of_deletion(home: str, chosen: Sequence[KeptSession]) -> None:
    """Say that Claude Code will delete again what it has deleted before."""
    from datetime import UTC, datetime

    from threadline.cli import output as out
    from threadline.keep import read_retention_period

    now = datetime.now(UTC)
    lasts = read_retention_period(Path(home))
    mains = [kept_session.main for kept_session in chosen if kept_session.main is not None]
    old = [main for main in mains if (ends := lasts.ends(main.mtime_ns)) is not None and ends <= now]
    if old:
        which = "It is" if len(chosen) == 1 else "1 of them is" if len(old) == 1 else f"{len(old):,} of them are"
        click.echo(
            out.wrap_text(
                f"{which} older than the {lasts.days} days after which Claude Code deletes, soon after it starts,"
                f" what nobody went on with: do so at once, raise cleanupPeriodDays in {home}/settings.json before,"
                " or restore with --touch."
            )
        )
