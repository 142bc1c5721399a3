"""Showing many lines to a person: through a pager on a terminal, as they are elsewhere."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator

import click

from threadline.cli import NOTHING

_PIPED = 100
_FEW = 8


def colour(*, wanted: bool = True) -> bool:
    """Whether to use colours on standard output."""
    from threadline.render.style import colour_wanted

    return wanted and colour_wanted(os.environ, terminal=sys.stdout.isatty())


def width() -> int:
    """How wide a page is: as the terminal, or as reads well where there is none."""
    from threadline.cli import output as out

    return max(40, out.terminal_width()) if sys.stdout.isatty() else _PIPED


def nothing(sentence: str) -> int:
    """Say on standard error why there is no answer, and what may be asked instead; give the exit code for it."""
    from threadline.cli import output as out

    click.echo(f"threadline: {out.plain(sentence)}", err=True)
    return NOTHING


def some(words: Iterable[str]) -> str:
    """A few words of many: `Bash, Read and 3 more`."""
    listed = list(words)
    more = f" and {len(listed) - _FEW} more" if len(listed) > _FEW else ""
    return ", ".join(listed[:_FEW]) + more


def show_lines(lines: Iterable[str], *, coloured: bool) -> None:
    """Print lines as they come: a session may have a million."""
    if not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
        for line in lines:
            click.echo(line, color=coloured)
        return
    # What git does, too: colours pass, long lines are cut, and what fits on the screen stays there.
    os.environ.setdefault("LESS", "FRX")
    click.echo_via_pager(_ended(lines), color=coloured)


def _ended(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield line + "\n"
