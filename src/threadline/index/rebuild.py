"""Rebuild: the index made from nothing beside the old one, which it then takes the place of, damaged or not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from threadline.errors import Unreadable
from threadline.index.refresh import Refreshed, refresh
from threadline.index.store import alone
from threadline.model.found import Home

_BESIDE = ("", "-wal", "-shm")


def rebuild(
    index: Path,
    homes: Sequence[Home],
    *,
    jobs: int | None = None,
    progress: Callable[[int], None] | None = None,
    planned: Callable[[int], None] | None = None,
) -> Refreshed:
    """Make the index anew; until it is whole, the old one answers. The arguments are those of `refresh`.

    Raises:
        IndexBusy: another process is refreshing it.
        Unreadable: its folder may not be written.
    """
    new = index.with_name(f"{index.name}.new")
    with alone(index):
        try:
            _remove(new)  # what a rebuild that was killed has left
            done = refresh(new, homes, jobs=jobs, progress=progress, planned=planned)
            # The old file goes first: a log that outlives its index is thrown away, but one that finds another in its
            # place would be played back into it.
            _remove(index)
            new.replace(index)
            Path(f"{new}.lock").unlink(missing_ok=True)
        except OSError as error:
            raise Unreadable(f"The index {str(index)!r} cannot be written: {error}.") from None
        return done


def _remove(index: Path) -> None:
    for beside in _BESIDE:
        Path(f"{index}{beside}").unlink(missing_ok=True)
