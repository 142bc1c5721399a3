"""Showing how far reading has come, and what to do where there is nothing to read."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

import click


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
