"""A made-up Claude home, as big as wanted: for a first look, for tests, for measuring.

Everything in it is invented, and no two runs with the same seed and size differ. Its shape is that of real
homes: sizes of transcripts and lines, versions from 0.2.126 on, agents, branches, compactions, copies, side
files, and one transcript that a crash has torn.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import msgspec

from threadline.errors import BadQuery, Unreadable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["Written", "write"]

_UNTIL = date(2026, 11, 14)
_MEGABYTE = 1_000_000


class Written(msgspec.Struct, frozen=True):
    """What was written."""

    transcripts: int
    """All of them, those of agents included, without the journals of workflows."""
    agents: int
    """How many of the transcripts are agents'."""
    lines: int
    bytes: int
    projects: int


def write(
    directory: Path,
    *,
    seed: int = 0,
    megabytes: float = 2,
    transcripts: int | None = None,
    until: date = _UNTIL,
    progress: Callable[[int, int], None] | None = None,
) -> Written:
    """Write a home into an empty or new directory.

    Args:
        directory: Where; must not hold anything yet.
        seed: The same seed, size and last day give the same bytes on every machine.
        megabytes: How much the transcripts are to hold, in millions of bytes. Big homes hit it to a few
            percent, small ones come out bigger: what every home must show takes about 2.
        transcripts: How many transcripts; by default as many as real homes of that size have.
        until: The day of the newest session.
        progress: Called after each session with bytes written and bytes to write.

    Raises:
        BadQuery: The directory holds something, or the size makes no sense.
        Unreadable: The directory cannot be written.
    """
    from tools.demo.home import HomeGenerator  # noqa: PLC0415 - the command line imports this module just to name it

    if not megabytes > 0 or (transcripts is not None and transcripts < 1):
        raise BadQuery("A demo home needs a size above zero: give megabytes, and at least one transcript.")
    try:
        if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
            raise BadQuery(f"{directory} is not empty. Name a new directory, so that no home is written over.")
        directory.mkdir(parents=True, exist_ok=True)
        maker = HomeGenerator(directory, seed=seed, size=round(megabytes * _MEGABYTE), count=transcripts, until=until)
        told = maker.write(progress)
    except OSError as error:
        raise Unreadable(f"Cannot write a demo home in {directory}: {error.strerror or error}.") from error
    return Written(
        transcripts=len(told) + sum(one.agents for one in told),
        agents=sum(one.agents for one in told),
        lines=sum(one.lines for one in told),
        bytes=sum(one.size for one in told),
        projects=len({one.plan.project.folder for one in told}),
    )
