"""Generate a Claude home of any size, for the demo, for tests and for benchmarks.

All of its content is invented. The same seed and size always give the same bytes. It resembles real homes
in the sizes of transcripts and lines, versions (from 0.2.126 on), agents, branches, compactions, copies and side files.
One transcript ends with a line that a crash has cut off.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import msgspec

from threadline.errors import BadQuery, Unreadable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["HomeSize", "write"]

_UNTIL = date(2026, 11, 14)
_MEGABYTE = 1_000_000


class HomeSize(msgspec.Struct, frozen=True):
    """The size of the home that was written."""

    transcripts: int
    """Including those of agents, without the journals of workflows."""
    agents: int
    """The number of transcripts of agents."""
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
    story: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> HomeSize:
    """Write a home into an empty or new directory.

    Args:
        directory: Must be empty or not exist yet.
        seed: The same seed, size and last day give the same bytes on every machine.
        megabytes: The size of the transcripts, in millions of bytes. Large homes match it within a few percent.
            Small ones are larger, since the sessions that every home has take about 2.
        transcripts: The number of transcripts; by default that of real homes of this size.
        until: The day of the newest session.
        story: Whether to add the session that is written by hand (`tools.demo.story`), on 14 November 2026.
        progress: Called after each session with bytes written and bytes to write.

    Raises:
        BadQuery: The directory is not empty, or the size is not positive.
        Unreadable: The directory cannot be written.
    """
    from tools.demo.home import HomeGenerator  # noqa: PLC0415 - the command line imports this module just to name it

    if not megabytes > 0 or (transcripts is not None and transcripts < 1):
        raise BadQuery("A demo home needs a size above zero: give megabytes, and at least one transcript.")
    try:
        if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
            raise BadQuery(f"{directory} is not empty. Name a new directory, so that no home is written over.")
        directory.mkdir(parents=True, exist_ok=True)
        generator = HomeGenerator(
            directory, seed=seed, size=round(megabytes * _MEGABYTE), count=transcripts, until=until, story=story
        )
        sessions = generator.write(progress)
    except OSError as error:
        raise Unreadable(f"Cannot write a demo home in {directory}: {error.strerror or error}.") from error
    return HomeSize(
        transcripts=len(sessions) + sum(session.agents for session in sessions),
        agents=sum(session.agents for session in sessions),
        lines=sum(session.lines for session in sessions),
        bytes=sum(session.size for session in sessions),
        projects=len({session.plan.project.folder for session in sessions}),
    )
