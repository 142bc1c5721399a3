"""`threadline keep install` and `uninstall`: have it done by itself."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from threadline.cli import FAILED, FOUND, NOTHING
from threadline.cli.keep_options import keep_options, living_option
from threadline.cli.options import output_options

if TYPE_CHECKING:
    from threadline.keep.install import Write
    from threadline.model.found import Home

_INSTALL = """
\b
Examples:
  threadline keep install                     what would be written
  threadline keep install --yes               write it
  threadline keep install --timer none --yes  only the hook
  threadline keep uninstall --yes             undo it

\b
Exit codes: 0 done, or shown; 1 there is no home; 2 an error, or a file that was left alone.
"""
_UNINSTALL = """
\b
Examples:
  threadline keep uninstall                what would be undone
  threadline keep uninstall --yes          undo it
  threadline keep uninstall --home DIR     of another home

\b
Exit codes: 0 done, or shown; 1 nothing is installed; 2 an error, or a file that was left alone.
"""


@click.command(epilog=_INSTALL)
@click.option("--yes", is_flag=True, help="Write it; without this, it is only shown.")
@click.option(
    "--timer",
    type=click.Choice(["auto", "systemd", "cron", "none"]),
    default="auto",
    show_default=True,
    help="A timer beside the hook: of systemd, where that runs, or a line for your crontab, which you put there.",
)
@keep_options
@living_option
@output_options
def install(
    *, yes: bool, timer: str, folder: Path | None, key_file: Path | None, homes: tuple[str, ...], output: str
) -> int:
    """Show, or with --yes write, what keeps by itself: a hook for Claude Code, and a timer for each hour.

    The hook goes into the home's settings.json; every other byte of that stays, and a copy of it as it was is put
    beside it. Nothing is started: Claude Code reads its settings when it starts, systemd its units at your next login.
    """
    from threadline.cli.keep_options import place
    from threadline.cli.reading import say_no_home

    del key_file
    where = place(folder)
    from threadline.keep.install import cron_line, installing, units_folder
    from threadline.keep.living import living

    found = living(homes)
    if not found:
        say_no_home()
        return NOTHING
    command = _command(found, where if _is_said(folder) else None)
    chosen = _timer(timer)
    writes = installing([home.path for home in found], command, units_folder() if chosen == "systemd" else None)
    after = []
    if chosen == "systemd" and any(one.path.suffix == ".timer" for one in writes):
        after.append(
            "To begin before your next login: systemctl --user daemon-reload && "
            "systemctl --user start threadline-keep.timer"
        )
    if chosen == "cron":
        after.append(f"Put this line into your crontab (crontab -e): {cron_line(command)}")
    return _do(writes, yes=yes, output=output, nothing="It is installed already.", after=after, code=FOUND)


@click.command(epilog=_UNINSTALL)
@click.option("--yes", is_flag=True, help="Do it; without this, it is only shown.")
@keep_options
@living_option
@output_options
def uninstall(*, yes: bool, folder: Path | None, key_file: Path | None, homes: tuple[str, ...], output: str) -> int:
    """Show, or with --yes undo, what `keep install` wrote. What is kept stays.

    Settings that nobody changed since are byte for byte as they were; of others, only the hook is taken out.
    """
    del folder, key_file
    from threadline.keep.install import uninstalling, units_folder
    from threadline.keep.living import living

    writes = uninstalling([home.path for home in living(homes)], units_folder())
    after = []
    if any(one.path.suffix == ".timer" for one in writes):
        after.append("To end it before your next login: systemctl --user stop threadline-keep.timer")
    said = "Nothing is installed here. A line in your crontab, if you put one there, is yours to take out."
    return _do(writes, yes=yes, output=output, nothing=said, after=after, code=NOTHING)


def _do(writes: Sequence[Write], *, yes: bool, output: str, nothing: str, after: Sequence[str], code: int) -> int:
    """Show what is to be written, or write it."""
    from threadline.cli import output as out
    from threadline.keep.install import apply

    if yes:
        apply(writes)
    wrong = [one.wrong for one in writes if one.wrong is not None]
    if output != "table":
        out.print_rows([_row(one, done=yes) for one in writes], output)
    else:
        for line in _lines(writes, yes=yes) or ([nothing] if not wrong else []):
            click.echo(out.plain(line))
        for line in after:
            click.echo(out.plain(line))
        if not yes and any(one.wrong is None for one in writes):
            click.echo("Nothing was written; --yes does it.")
    for sentence in wrong:
        click.echo(f"threadline: {out.plain(sentence)}", err=True)
    return FAILED if wrong else FOUND if writes else code


def _row(one: Write, *, done: bool) -> dict[str, Any]:
    return {
        "path": str(one.path),
        "change": _verb(one),
        "done": done and one.wrong is None,
        "added": _added(one),
        "problem": one.wrong,
    }


def _verb(one: Write) -> str:
    if one.wrong is not None:
        return "none"
    if one.link is not None:
        return "link" if one.link else "remove"
    if one.after is None:
        return "remove"
    return "change" if one.before is not None else "write"


def _added(one: Write) -> list[str]:
    """The text that comes, in lines: what was there may hold what is not to be shown."""
    if one.after is None or one.path.name.endswith(".before-threadline-keep"):
        return []
    before = one.before or b""
    start = len(os.path.commonprefix([before, one.after]))  # noqa: RUF071 - bytes of texts, not paths
    end = len(os.path.commonprefix([before[start:][::-1], one.after[start:][::-1]]))  # noqa: RUF071 - the same
    return one.after[start : len(one.after) - end].decode(errors="replace").strip("\r\n").splitlines()


def _lines(writes: Sequence[Write], *, yes: bool) -> list[str]:
    lines = []
    words = {"link": "link", "remove": "remove", "change": "change", "write": "write"}
    done = {"link": "Linked", "remove": "Removed", "change": "Changed", "write": "Wrote"}
    for one in writes:
        verb = _verb(one)
        if verb == "none":
            continue
        lines.append(f"{done[verb]} {one.path}" if yes else f"Would {words[verb]} {one.path}")
        if not yes:
            lines += [f"    {line}" for line in _added(one)]
    return lines


def _is_said(folder: Path | None) -> bool:
    """Whether the keep is not where it would be without being told: a timer knows no variables of a shell."""
    return folder is not None or any(os.environ.get(name) for name in ("THREADLINE_KEEP", "XDG_DATA_HOME"))


def _command(homes: Sequence[Home], keep: Path | None) -> list[str]:
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


def _timer(wanted: str) -> str:
    if wanted != "auto":
        return wanted
    if os.name == "nt":
        return "none"
    return "systemd" if Path("/run/systemd/system").is_dir() else "cron"
