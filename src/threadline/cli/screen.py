"""Showing many lines to a person: through a pager on a terminal, as they are elsewhere."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from threadline.cli import NOTHING

_PIPED = 100
Decorated = Callable[..., Any]


def colour(*, wanted: bool = True) -> bool:
    """Whether to use colours on standard output."""
    from threadline.render.style import colour_wanted

    return wanted and colour_wanted(os.environ, terminal=sys.stdout.isatty())


def width() -> int:
    """How wide a page is: as the terminal, or where there is none as COLUMNS says, or as reads well."""
    from threadline.cli import output as out

    return max(40, out.terminal_width(piped=_PIPED))


def nothing(sentence: str) -> int:
    """Say on standard error why there is no answer, and what may be asked instead; give the exit code for it."""
    from threadline.cli import output as out

    click.echo(f"threadline: {out.plain(sentence)}", err=True)
    return NOTHING


def pager_option(function: Decorated) -> Decorated:
    """`--no-pager`: given on as `pager`."""
    return click.option(
        "--no-pager",
        "pager",
        is_flag=True,
        flag_value=False,
        default=True,
        help="Print on a terminal without a pager; else $PAGER shows it, or less, or more.",
    )(function)


def show_lines(lines: Iterable[str], *, coloured: bool, pager: bool = True, begin: int = 0) -> None:
    """Print lines as they come: a session may have a million. On a terminal, through a pager.

    One that knows how to shows what stands at line `begin` first.
    """
    command = pager_command() if pager and sys.stdout.isatty() else []
    if command:
        # The line above it tells that there is more.
        command += [f"+{begin - 1}"] if begin > 1 and Path(command[0]).stem in {"less", "more"} else []
        _page(lines, command)
        return
    for line in lines:
        click.echo(line, color=coloured)


def pager_command() -> list[str]:
    """The pager that the person set, or one that is there; none where that is `cat`, or the terminal is dumb.

    What PAGER says is words, and no shell reads them: `;`, `$( )` and the like mean nothing.
    """
    import shlex
    import shutil

    said = os.environ.get("PAGER")
    if os.environ.get("TERM") == "dumb" or said == "":
        return []
    try:
        words = shlex.split(said, posix=os.name != "nt") if said is not None else []
    except ValueError:
        words = []
    for choice in ([words] if words else []) + [["less"], ["more"]]:
        found = shutil.which(choice[0])
        if found is not None:
            return [] if Path(found).stem == "cat" else [found, *choice[1:]]
    return []


def _page(lines: Iterable[str], command: list[str]) -> None:
    import subprocess

    # What git does, too: colours pass, and what fits on the screen stays there.
    environment = {"LESS": "FRX", "LV": "-c", **os.environ}
    try:
        pager = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)  # noqa: S603 - the person's own
    except OSError:
        for line in lines:
            click.echo(line)
        return
    if pager.stdin is not None:
        with suppress(OSError, KeyboardInterrupt):  # whoever was reading has seen enough
            for line in lines:
                pager.stdin.write(f"{line}\n".encode(errors="backslashreplace"))
        with suppress(OSError):
            pager.stdin.close()
    while True:
        try:
            pager.wait()
            break
        except KeyboardInterrupt:  # it is the pager's, which goes on
            continue
