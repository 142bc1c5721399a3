"""Finding what to read, and showing how far the reading has come."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic

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
def progress(label: str, total: int, *, rate: bool = False) -> Iterator[Callable[[int], None]]:
    """A progress bar of bytes on a terminal's standard error, with time left, and the rate; nothing elsewhere."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb" or not total:
        yield lambda _done: None
        return
    shown = _Rate() if rate else None
    with click.progressbar(length=total, label=label, file=sys.stderr, show_pos=False, item_show_func=shown) as bar:
        yield bar.update if shown is None else lambda done: bar.update(done, shown.more(done))
    sys.stderr.write("\x1b[1A\x1b[2K")  # the bar has done its work: the line is for the answer
    sys.stderr.flush()  # before the answer, or its last line would be taken away


class _Rate:
    """How many bytes a second since it was made, in words."""

    def __init__(self) -> None:
        self._began = monotonic()
        self._done = 0

    def more(self, done: int) -> int:
        """So many bytes more; how many there are by now."""
        self._done += done
        return self._done

    def __call__(self, done: int | None) -> str | None:
        from threadline.cli.output import size

        return f"{size(int(done / max(monotonic() - self._began, 0.001)))}/s" if done else None


def say_no_home() -> None:
    """What to do where there is nothing to read."""
    click.echo(
        "threadline: No Claude home was found. Name one with --home DIR or CLAUDE_CONFIG_DIR,"
        " or make one to look at: threadline demo demo-home",
        err=True,
    )
