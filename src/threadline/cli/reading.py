"""Finding what to read, and showing how far the reading has come."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import click

from threadline.errors import BadQuery
from threadline.model.found import Found


def found_homes(named: Sequence[str]) -> list[Found]:
    """All that lies in the homes that were named, or else in those that are found."""
    from threadline.find import homes, look

    return [look(home) for home in homes(*named)]


def found_at(path: str) -> Found:
    """All that lies at a path. An empty one is a shell's variable that is not set, never the current folder."""
    from threadline.find import at

    if not path:
        raise BadQuery("The path is empty; name a transcript, a folder or a home.")
    return at(path)


@contextmanager
def progress(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """A progress bar of bytes on a terminal's standard error; nothing elsewhere."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb" or not total:
        yield lambda _done: None
        return
    with click.progressbar(length=total, label=label, file=sys.stderr, show_pos=False) as bar:
        yield bar.update
    sys.stderr.write("\x1b[1A\x1b[2K")  # the bar has done its work: the line is for the answer


def say_no_home() -> None:
    """What to do where there is nothing to read."""
    click.echo(
        "threadline: No Claude home was found. Name one with --home DIR or CLAUDE_CONFIG_DIR,"
        " or make one to look at: threadline demo demo-home",
        err=True,
    )
