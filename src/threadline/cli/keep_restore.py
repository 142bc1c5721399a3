"""`threadline keep restore`: sessions put back, so that they can be resumed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from threadline.cli import FAILED, FOUND
from threadline.cli.keep_options import keep_options, machine_option
from threadline.cli.options import output_options

if TYPE_CHECKING:
    from threadline.keep.catalogue import Catalogue, Version
    from threadline.keep.sessions import KeptSession

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
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="A Claude home to put them into; by default the one they came from.",
)
@click.option("--force", is_flag=True, help="Put the kept file in place of one that is there with other bytes.")
@click.option("--all", "everything", is_flag=True, help="All sessions, and the files that belong to none.")
@click.option("--at", type=click.IntRange(min=1), metavar="RUN", help="As it was after this run: `keep diff --runs`.")
@click.option(
    "--touch", is_flag=True, help="Give files today's time, so that Claude Code does not delete them at once."
)
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
    machine: str | None,
    folder: Path | None,
    key_file: Path | None,
    output: str,
) -> int:
    """Put sessions back, byte for byte, with their agents, results, file histories, lists, tasks and plans.

    SESSION is the start of an id, or `last`. What is there with the same bytes is left alone, what is there with others
    stays unless --force is given, and nothing is written outside of the home.
    """
    from threadline.cli.keep_options import catalogue_of, machine_named, print_one
    from threadline.errors import BadQuery

    if bool(sessions) == everything:
        raise BadQuery("Name sessions (`threadline keep list` has them), or give --all.")
    catalogue, here = catalogue_of(folder, key_file)
    whose = machine_named(catalogue, machine, here) if machine is not None else None
    chosen = _chosen(catalogue, sessions, whose, here.id, at)
    files = _files(catalogue, chosen, whose, at, everything=everything)
    strange = next((one for of_home in files.values() for one in of_home.values() if one.machine != here.id), None)
    if to is None and strange is not None:
        raise BadQuery(f"{strange.label} kept that, from its {strange.home!r}; say with --to where to put it here.")
    rows = _put(catalogue, files, to, force=force, touch=touch)
    row = {
        "sessions": [one.id for one in chosen],
        "homes": sorted(rows),
        "files": sum(len(one.files) for one in rows.values()),
        "same": sum(len(one.same) for one in rows.values()),
        "refused": [sentence for one in rows.values() for sentence in one.refused],
        "torn": sorted(one.path for of_home in files.values() for one in of_home.values() if one.torn),
    }
    if output == "table":
        _print(row, chosen, _told(catalogue, chosen), touch=touch)
    else:
        print_one(row, output)
    return FAILED if row["refused"] else FOUND


def _chosen(
    catalogue: Catalogue, names: Sequence[str], whose: str | None, here: str, at: int | None
) -> list[KeptSession]:
    """The sessions that were named, each once, or all. Where several machines have one, this machine's comes first."""
    from threadline.keep.sessions import named, sessions

    found = sessions(catalogue, machine=whose, at=at)
    if not names:
        return found
    best = {}
    for name in names:
        fit = named(found, name)
        one = next((one for one in fit if one.machine == here), fit[0])
        best[one.id] = one
    return [*best.values()]


def _files(
    catalogue: Catalogue, chosen: Sequence[KeptSession], whose: str | None, at: int | None, *, everything: bool
) -> dict[str, dict[str, Version]]:
    """By home, the files to be put back, by their paths: of one that several machines have, the one written last."""
    from threadline.keep.belonging import Belonging
    from threadline.keep.sessions import others

    found: dict[str, dict[str, Version]] = {}

    def take(versions: Iterable[Version]) -> None:
        for one in versions:
            of_home = found.setdefault(one.home, {})
            before = of_home.get(one.path)
            if before is None or before.mtime_ns < one.mtime_ns:
                of_home[one.path] = one

    for session in chosen:
        take(session.to_restore())
    if everything:
        take(others(catalogue, machine=whose, at=at))
        return found
    belonging = Belonging(catalogue)
    rest = others(catalogue, machine=whose, at=at)
    for session in chosen:
        take(belonging.along(session.id, session.files, rest))
    return found


def _put(
    catalogue: Catalogue, files: dict[str, dict[str, Version]], to: Path | None, *, force: bool, touch: bool
) -> dict[str, Any]:
    """Put files into their homes, or all into one; what came of it, by home."""
    from threadline.cli.reading import progress
    from threadline.keep.restoring import restore as restored

    rows: dict[str, Any] = {}
    total = sum(one.size for of_home in files.values() for one in of_home.values())
    with progress("Restoring", total, rate=True) as advance:
        for home, versions in _by_target(files, to).items():
            done = restored(catalogue, versions, Path(home), force=force, progress=advance)
            rows[home] = done
            if touch:
                now = time.time_ns()
                for path in done.files:
                    os.utime(path, ns=(now, now))
    return rows


def _by_target(files: dict[str, dict[str, Version]], to: Path | None) -> dict[str, list[Version]]:
    if to is None:
        return {home: [*versions.values()] for home, versions in files.items()}
    merged: dict[str, Version] = {}
    for versions in files.values():
        for path, one in versions.items():
            if path not in merged or merged[path].mtime_ns < one.mtime_ns:
                merged[path] = one
    # Not its real path: whoever names a link means where it leads.
    return {os.path.abspath(os.path.expanduser(to)): [*merged.values()]}  # noqa: PTH100, PTH111 - those of Path raise


def _told(catalogue: Catalogue, chosen: Sequence[KeptSession]) -> str:
    """The directory that the one session that was named began in."""
    from threadline.keep.titling import told

    said = told(catalogue, chosen) if len(chosen) == 1 else {}
    return next((one.project for one in said.values()), "")


def _print(row: dict[str, Any], chosen: Sequence[KeptSession], directory: str, *, touch: bool) -> None:
    from shlex import quote

    from threadline.cli import output as out

    homes = ", ".join(out.plain(home) for home in row["homes"])
    click.echo(f"Put back {out.counted(row['files'], 'file')} of {out.counted(len(chosen), 'session')} into {homes}.")
    if row["same"]:
        click.echo(f"{out.counted(row['same'], 'file')} {'was' if row['same'] == 1 else 'were'} there already.")
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
    if not touch:
        _warn(row["homes"], chosen)


def _warn(homes: Sequence[str], chosen: Sequence[KeptSession]) -> None:
    """Say that Claude Code will delete again what it has deleted before."""
    from datetime import UTC, datetime

    from threadline.cli import output as out
    from threadline.keep.living import period

    now = datetime.now(UTC)
    for home in homes:
        lasts = period(Path(home))
        mains = [one.main for one in chosen if one.main is not None]
        old = [one for one in mains if (ends := lasts.ends(one.mtime_ns)) is not None and ends <= now]
        if old:
            which = "It is" if len(chosen) == 1 else f"{len(old):,} of them are"
            click.echo(
                out.wrapped(
                    f"{which} older than the {lasts.days} days after which Claude Code deletes, soon after it starts,"
                    f" what nobody went on with: do so at once, raise cleanupPeriodDays in {home}/settings.json before,"
                    " or restore with --touch."
                )
            )
            return
