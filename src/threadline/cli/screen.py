"""Terminal output: pager, colours, page width, progress bars, and what to say if there is nothing to show."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import Any

import click

from threadline.cli import EXIT_NOTHING

_WIDTH_WHEN_PIPED = 100
CommandFunction = Callable[..., Any]


def use_colour(*, wanted: bool = True) -> bool:
    """Whether to use colours on standard output."""
    from threadline.render import should_use_colour

    return wanted and should_use_colour(os.environ, terminal=sys.stdout.isatty())


def page_width() -> int:
    """How wide a page is: as the terminal, or where there is none as COLUMNS says, or as reads well."""
    from threadline.cli import output as out

    return max(40, out.terminal_width(piped=_WIDTH_WHEN_PIPED))


def report_nothing(sentence: str) -> int:
    """Say on standard error why there is no answer, and what may be asked instead; give the exit code for it."""
    from threadline.cli import output as out

    click.echo(f"threadline: {out.plain(sentence)}", err=True)
    return EXIT_NOTHING


def pager_option(function: CommandFunction) -> CommandFunction:
    """`--no-pager`: given on as `pager`."""
    return click.option(
        "--no-pager",
        "pager",
        is_flag=True,
        flag_value=False,
        default=True,
        help="Print on a terminal without a pager; else $PAGER shows it, or less, or more.",
    )(function)


def print_lines(lines: Iterable[str], *, coloured: bool, pager: bool = True, begin: int = 0) -> None:
    """Print lines as they come: a session may have a million. On a terminal, through a pager.

    One that knows how to shows what stands at line `begin` first.
    """
    command = pager_command() if pager and sys.stdout.isatty() else []
    if command:
        # The line above it tells that there is more.
        command += [f"+{begin - 1}"] if begin > 1 and Path(command[0]).stem in {"less", "more"} else []
        _run_pager(lines, command)
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


def _run_pager(lines: Iterable[str], command: list[str]) -> None:
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


@contextmanager
def progress_bar(label: str, total: int, *, rate: bool = False) -> Iterator[Callable[[int], None]]:
    """A progress bar of bytes on a terminal's standard error, with time left, and the rate; nothing elsewhere."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb" or not total:
        yield lambda _done: None
        return
    shown = _TransferRate() if rate else None
    with click.progressbar(length=total, label=label, file=sys.stderr, show_pos=False, item_show_func=shown) as bar:
        yield bar.update if shown is None else lambda done: bar.update(done, shown.more(done))
    sys.stderr.write("\x1b[1A\x1b[2K")  # the bar has done its work: the line is for the answer
    sys.stderr.flush()  # before the answer, or its last line would be taken away


class _TransferRate:
    """How many bytes a second since it was made, in words."""

    def __init__(self) -> None:
        self._began = monotonic()
        self._done = 0

    def more(self, done: int) -> int:
        """So many bytes more; how many there are by now."""
        self._done += done
        return self._done

    def __call__(self, done: int | None) -> str | None:
        from threadline.cli.output import format_size

        return f"{format_size(int(done / max(monotonic() - self._began, 0.001)))}/s" if done else None


def report_no_home() -> None:
    """What to do where there is nothing to read."""
    click.echo(
        "threadline: No Claude home was found. Name one with --home DIR or CLAUDE_CONFIG_DIR,"
        " or make one to look at: threadline demo demo-home",
        err=True,
    )
