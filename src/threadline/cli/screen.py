"""Terminal output: width, colours, pager, progress bars, listings, and messages on standard error."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

import click

from threadline.cli import EXIT_NOTHING, EXIT_OK
from threadline.cli import output as out
from threadline.model.text import count
from threadline.render import plain, should_use_colour

_Item = TypeVar("_Item")
_WIDTH_WHEN_PIPED = 100
QUIET_BYTES = 8 * 1024 * 1024
"""Indexing or unpacking fewer bytes than this shows no progress bar: it takes a moment only."""


def use_colour(*, enabled: bool = True) -> bool:
    """Whether to use colours on standard output."""
    return enabled and should_use_colour(os.environ, terminal=sys.stdout.isatty())


def page_width() -> int:
    """The width of text: the terminal's, or COLUMNS, or one that reads well."""
    return max(40, out.terminal_width(piped=_WIDTH_WHEN_PIPED))


def print_listing(
    items: Sequence[_Item],
    output: str,
    *,
    row: Callable[[_Item], Mapping[str, Any]],
    table: Callable[[Sequence[_Item]], str],
    nothing: Callable[[], str],
    limit: int | None = None,
    order: str = "newest",
) -> int:
    """Print a list as a table or as rows; return the exit code.

    Args:
        items: What to list.
        output: `table`, `json`, `jsonl` or `csv`.
        row: Converts an item to a row for programs.
        table: Formats all items as a table for people.
        nothing: Explains why the list is empty. Called only if it is.
        limit: The limit in effect. If the table reaches it, a note says how to see more.
        order: Which items a limit keeps: `newest`.
    """
    if output != "table":
        out.print_rows(map(row, items), output)
    elif items:
        click.echo(table(items))
        if len(items) == limit:
            click.echo(f"\nShowing the {order} {limit:,}. Use --limit N for more.")
    return EXIT_OK if items else report_nothing(nothing())


def print_message(text: str) -> None:
    """Print a message on standard error, safe for a terminal."""
    click.echo(f"threadline: {plain(text)}", err=True)


def report_nothing(text: str) -> int:
    """Explain on standard error why there is no result; return the exit code for that."""
    print_message(text)
    return EXIT_NOTHING


def no_match_message(
    noun: str, total: int, options: Mapping[str, object], hint: str = "", *, plural: str | None = None
) -> str:
    """Say that no item matches these options. Those that are None or False are not in use; `""` is an argument.

    >>> no_match_message("session", 77, {"project": "x", "since": None}, "Projects: a, b.")
    "None of 77 sessions matches --project 'x'. Projects: a, b."
    """
    used = [_format_option(name, value) for name, value in options.items() if value not in (None, False)]
    items = f"None of {count(total, noun, plural)} matches" if total != 1 else f"The only {noun} does not match"
    return f"{items} {' and '.join(used) or 'the filter'}. {hint}".rstrip()


def _format_option(name: str, value: object) -> str:
    option = f"--{name}" if name else ""
    return f"{option} {value!r}".lstrip() if isinstance(value, str) else option


def report_no_home() -> None:
    """Say that there is no Claude home, and what to do about it."""
    print_message(NO_HOME)


NO_HOME = "No Claude home found. Use --home DIR or CLAUDE_CONFIG_DIR, or create an example: threadline demo demo-home"


def print_lines(lines: Iterable[str], *, colour: bool, pager: bool = True, first_line: int = 0) -> None:
    """Print lines one by one, since a session may have a million. On a terminal, use a pager.

    `less` and `more` start at `first_line`.
    """
    command = pager_command() if pager and sys.stdout.isatty() else []
    if command:
        # One line earlier, so that the reader sees that there is text above.
        command += [f"+{first_line - 1}"] if first_line > 1 and Path(command[0]).stem in {"less", "more"} else []
        _run_pager(lines, command)
        return
    for line in lines:
        click.echo(line, color=colour)


def pager_command() -> list[str]:
    """The pager to use: $PAGER, or else less or more. Empty if PAGER is empty or `cat`, or TERM is dumb.

    PAGER is split into words without a shell: `;`, `$( )` and the like have no effect.
    """
    import shutil  # noqa: PLC0415 - slow to import, and only a terminal needs it

    configured = os.environ.get("PAGER")
    if os.environ.get("TERM") == "dumb" or configured == "":
        return []
    try:
        words = shlex.split(configured, posix=os.name != "nt") if configured is not None else []
    except ValueError:
        words = []
    for candidate in ([words] if words else []) + [["less"], ["more"]]:
        path = shutil.which(candidate[0])
        if path is not None:
            return [] if Path(path).stem == "cat" else [path, *candidate[1:]]
    return []


def _run_pager(lines: Iterable[str], command: list[str]) -> None:
    import subprocess  # noqa: PLC0415 - slow to import, and only a terminal needs it

    # As git does: pass colours through, and leave what fits on the screen there.
    environment = {"LESS": "FRX", "LV": "-c", **os.environ}
    try:
        pager = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)  # noqa: S603 - the user's own
    except OSError:
        for line in lines:
            click.echo(line)
        return
    if pager.stdin is not None:
        with suppress(OSError, KeyboardInterrupt):  # the reader has quit the pager
            for line in lines:
                pager.stdin.write(f"{line}\n".encode(errors="backslashreplace"))
        with suppress(OSError):
            pager.stdin.close()
    while True:
        try:
            pager.wait()
            break
        except KeyboardInterrupt:  # meant for the pager, which goes on
            continue


@contextmanager
def progress_bar(label: str, total: int, *, rate: bool = False) -> Iterator[Callable[[int], None]]:
    """Show progress in bytes on a terminal's standard error, with the time left and optionally the rate.

    The function it provides takes the number of bytes done since the last call. Without a terminal, nothing is shown.
    """
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb" or not total:
        yield lambda _done: None
        return
    transfer = _TransferRate() if rate else None
    with click.progressbar(length=total, label=label, file=sys.stderr, show_pos=False, item_show_func=transfer) as bar:
        yield bar.update if transfer is None else lambda done: bar.update(done, transfer.add(done))
    sys.stderr.write("\x1b[1A\x1b[2K")  # remove the finished bar
    sys.stderr.flush()  # before the result, or its last line would be removed


def archive_progress(
    label: str, total: int, *, quiet_bytes: int = QUIET_BYTES
) -> AbstractContextManager[Callable[[int], None]]:
    """The progress bar that an archive asks for; none for `quiet_bytes` or less of indexing or unpacking."""
    if label in {"Indexing", "Unpacking"} and total <= quiet_bytes:
        return nullcontext(lambda _done: None)
    return progress_bar(label, total, rate=label in {"Indexing", "Unpacking", "Scanning"})


class _TransferRate:
    """Bytes per second since it was created, as text."""

    def __init__(self) -> None:
        self._start = monotonic()
        self._done = 0

    def add(self, done: int) -> int:
        """Add bytes; return the total."""
        self._done += done
        return self._done

    def __call__(self, done: int | None) -> str | None:
        return f"{out.format_size(int(done / max(monotonic() - self._start, 0.001)))}/s" if done else None
