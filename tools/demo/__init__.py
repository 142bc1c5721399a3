"""Generate Claude homes of any size, for tests, benchmarks and a first look.

All content is invented, and the same seed and size always give the same bytes. The structure is that of real homes:
sizes of transcripts and lines, versions from 0.2.126 on, agents, branches, compactions, copies, side files, and a
transcript that was truncated by a crash.
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
    """The size of a generated home."""

    transcripts: int
    """Including those of agents, without the journals of workflows."""
    agents: int
    """The number of transcripts that belong to agents."""
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
) -> HomeSize:
    """Write a home into an empty or new directory.

    Args:
        directory: Must be empty or not exist.
        seed: The same seed, size and last day give the same bytes on every machine.
        megabytes: Total size of the transcripts, in millions of bytes. Large homes match it to a few percent; small
            ones are larger, because the sessions that every home has take about 2.
        transcripts: Number of transcripts. Default: as many as real homes of that size have.
        until: The day of the newest session.
        progress: Called after each session with the bytes written and the total.

    Raises:
        BadQuery: The directory is not empty, or the size is not positive.
        Unreadable: The directory cannot be written.
    """
    from tools.demo.home import HomeGenerator  # noqa: PLC0415 - importing the package stays cheap

    if not megabytes > 0 or (transcripts is not None and transcripts < 1):
        raise BadQuery("A demo home needs a size above zero: give megabytes, and at least one transcript.")
    try:
        if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
            raise BadQuery(f"{directory} is not empty. Name a new directory, so that no home is written over.")
        directory.mkdir(parents=True, exist_ok=True)
        generator = HomeGenerator(
            directory, seed=seed, size=round(megabytes * _MEGABYTE), count=transcripts, until=until
        )
        results = generator.write(progress)
    except OSError as error:
        raise Unreadable(f"Cannot write a demo home in {directory}: {error.strerror or error}.") from error
    return HomeSize(
        transcripts=len(results) + sum(result.agents for result in results),
        agents=sum(result.agents for result in results),
        lines=sum(result.lines for result in results),
        bytes=sum(result.size for result in results),
        projects=len({result.plan.project.folder for result in results}),
    )
