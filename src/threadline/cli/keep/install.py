"""`threadline keep install` and `uninstall`: run `keep` from a hook and a timer."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from threadline.cli import EXIT_FAILED, EXIT_NOTHING, EXIT_OK
from threadline.cli.keep.options import keep_options, kept_homes_option
from threadline.cli.options import output_options

if TYPE_CHECKING:
    from threadline.keep import Write
    from threadline.model.homes import Home

_INSTALL_EPILOG = """
\b
Examples:
  threadline keep install                     what would be written
  threadline keep install --yes               write it
  threadline keep install --timer none --yes  only the hook
  threadline keep uninstall --yes             undo it

\b
Exit codes: 0 done, or shown; 1 there is no home; 2 an error, or a file that was left alone.
"""
_UNINSTALL_EPILOG = """
\b
Examples:
  threadline keep uninstall                what would be undone
  threadline keep uninstall --yes          undo it
  threadline keep uninstall --home DIR     of another home

\b
Exit codes: 0 done, or shown; 1 nothing is installed; 2 an error, or a file that was left alone.
"""


@click.command(epilog=_INSTALL_EPILOG)
@click.option("--yes", is_flag=True, help="Write it; without this, it is only shown.")
@click.option(
    "--timer",
    type=click.Choice(["auto", "systemd", "cron", "none"]),
    default="auto",
    show_default=True,
    help="A timer beside the hook: of systemd, where that runs, or a line for your crontab, which you put there.",
)
@keep_options
@kept_homes_option
@output_options
def install(
    *, yes: bool, timer: str, folder: Path | None, key_file: Path | None, homes: tuple[str, ...], output: str
) -> int:
    """Show, or with --yes write, what keeps by itself: a hook for Claude Code, and a timer for each hour.

    The hook goes into the home's settings.json; every other byte of that stays, and a copy of it as it was is put
    beside it. Nothing is started: Claude Code reads its settings when it starts, systemd its units at your next login.
    """
    from threadline.cli.keep.options import keep_path
    from threadline.cli.screen import report_no_home

    del key_file
    where = keep_path(folder)
    from threadline.keep import cron_line, find_living_homes, installing, units_folder

    found = find_living_homes(homes)
    if not found:
        report_no_home()
        return EXIT_NOTHING
    command = _keep_command(found, where if _is_keep_named(folder) else None)
    chosen = _choose_timer(timer)
    writes = installing([home.path for home in found], command, units_folder() if chosen == "systemd" else None)
    after = []
    if chosen == "systemd" and any(write.path.suffix == ".timer" for write in writes):
        after.append(
            "To begin before your next login: systemctl --user daemon-reload && "
            "systemctl --user start threadline-keep.timer"
        )
    if chosen == "cron":
        after.append(f"Put this line into your crontab (crontab -e): {cron_line(command)}")
    return _show_or_apply(writes, yes=yes, output=output, nothing="It is installed already.", after=after, code=EXIT_OK)


@click.command(epilog=_UNINSTALL_EPILOG)
@click.option("--yes", is_flag=True, help="Do it; without this, it is only shown.")
@keep_options
@kept_homes_option
@output_options
def uninstall(*, yes: bool, folder: Path | None, key_file: Path | None, homes: tuple[str, ...], output: str) -> int:
    """Show, or with --yes undo, what `keep install` wrote. What is kept stays.

    Settings that nobody changed since are byte for byte as they were; of others, only the hook is taken out.
    """
    del folder, key_file
    from threadline.keep import find_living_homes, uninstalling, units_folder

    writes = uninstalling([home.path for home in find_living_homes(homes)], units_folder())
    after = []
    if any(write.path.suffix == ".timer" for write in writes):
        after.append("To end it before your next login: systemctl --user stop threadline-keep.timer")
    said = "Nothing is installed here. A line in your crontab, if you put one there, is yours to take out."
    return _show_or_apply(writes, yes=yes, output=output, nothing=said, after=after, code=EXIT_NOTHING)


def _show_or_apply(
    writes: Sequence[Write], *, yes: bool, output: str, nothing: str, after: Sequence[str], code: int
) -> int:
    """Show what is to be written, or write it."""
    from threadline.cli import output as out
    from threadline.keep import apply

    if yes:
        apply(writes)
    wrong = [write.wrong for write in writes if write.wrong is not None]
    if output != "table":
        out.print_rows([_change_row(write, done=yes) for write in writes], output)
    else:
        for line in _change_lines(writes, yes=yes) or ([nothing] if not wrong else []):
            click.echo(out.plain(line))
        for line in after:
            click.echo(out.plain(line))
        if not yes and any(write.wrong is None for write in writes):
            click.echo("Nothing was written; --yes does it.")
    for sentence in wrong:
        click.echo(f"threadline: {out.plain(sentence)}", err=True)
    return EXIT_FAILED if wrong else EXIT_OK if writes else code


def _change_row(write: Write, *, done: bool) -> dict[str, Any]:
    return {
        "path": str(write.path),
        "change": _change_verb(write),
        "done": done and write.wrong is None,
        "added": _added_lines(write),
        "problem": write.wrong,
    }


def _change_verb(write: Write) -> str:
    if write.wrong is not None:
        return "none"
    if write.link is not None:
        return "link" if write.link else "remove"
    if write.after is None:
        return "remove"
    return "change" if write.before is not None else "write"


def _added_lines(write: Write) -> list[str]:
    """The text that comes, in lines: what was there may hold what is not to be shown."""
    if write.after is None or write.path.name.endswith(".before-threadline-keep"):
        return []
    before = write.before or b""
    start = len(os.path.commonprefix([before, write.after]))  # noqa: RUF071 - bytes of texts, not paths
    end = len(os.path.commonprefix([before[start:][::-1], write.after[start:][::-1]]))  # noqa: RUF071 - the same
    return write.after[start : len(write.after) - end].decode(errors="replace").strip("\r\n").splitlines()


def _change_lines(writes: Sequence[Write], *, yes: bool) -> list[str]:
    lines = []
    words = {"link": "link", "remove": "remove", "change": "change", "write": "write"}
    done = {"link": "Linked", "remove": "Removed", "change": "Changed", "write": "Wrote"}
    for write in writes:
        verb = _change_verb(write)
        if verb == "none":
            continue
        lines.append(f"{done[verb]} {write.path}" if yes else f"Would {words[verb]} {write.path}")
        if not yes:
            lines += [f"    {line}" for line in _added_lines(write)]
    return lines


def _is_keep_named(folder: Path | None) -> bool:
    """Whether the keep is not where it would be without being told: a timer knows no variables of a shell."""
    return folder is not None or any(os.environ.get(name) for name in ("THREADLINE_KEEP", "XDG_DATA_HOME"))


def _keep_command(homes: Sequence[Home], keep: Path | None) -> list[str]:
    own = Path(sys.argv[0])
    if own.stem == "threadline" and own.is_file():
        words = [str(own.absolute())]
    else:
        there = shutil.which("threadline")
        words = [there] if there is not None else [sys.executable, "-m", "threadline"]
    words += ["keep", "--quiet"]
    if keep is not None:
        words += ["--keep", str(keep)]
    usual = {"default", "xdg", "desktop"}
    for home in homes if any(one.source not in usual for one in homes) else ():
        words += ["--home", str(home.path)]
    return words


def _choose_timer(wanted: str) -> str:
    if wanted != "auto":
        return wanted
    if os.name == "nt":
        return "none"
    return "systemd" if Path("/run/systemd/system").is_dir() else "cron"
