"""Finding what to read, and showing how far the reading has come."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import click

from threadline.errors import BadQuery, NotFound
from threadline.model.found import Found


def found_homes(named: Sequence[str], *, side_files: bool = True) -> list[Found]:
    """All that lies in the homes that were named, or else in those that are found; see `look` for `side_files`."""
    from threadline.find import homes, look

    return [look(home, side_files=side_files) for home in homes(*named)]


def found_at(path: str) -> Found:
    """All that lies at a path. An empty one is a shell's variable that is not set, never the current folder."""
    from threadline.find import at

    if not path:
        raise BadQuery("The path is empty; name a transcript, a folder or a home.")
    return at(path)


def found_by_name(name: str, homes: Sequence[str]) -> tuple[Found, bool]:
    """All that lies at a path, or else the transcript whose session's or agent's id starts so; and whether it is so."""
    from threadline.find import by_id

    try:
        return found_at(name), False
    except NotFound:
        transcript = by_id(name, _one_by_one(homes))
        return Found(transcript.home, (), (transcript,), (), ()), True


def _one_by_one(homes: Sequence[str]) -> Iterator[Found]:
    """The homes, looked at only when it has come to that."""
    yield from found_homes(homes)


@contextmanager
def progress(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """A progress bar of bytes on a terminal's standard error; nothing elsewhere."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb" or not total:
        yield lambda _done: None
        return
    with click.progressbar(length=total, label=label, file=sys.stderr, show_pos=False) as bar:
        yield bar.update
    sys.stderr.write("\x1b[1A\x1b[2K")  # the bar has done its work: the line is for the answer
    sys.stderr.flush()  # before the answer, or its last line would be taken away


def say_no_home() -> None:
    """What to do where there is nothing to read."""
    click.echo(
        "threadline: No Claude home was found. Name one with --home DIR or CLAUDE_CONFIG_DIR,"
        " or make one to look at: threadline demo demo-home",
        err=True,
    )
