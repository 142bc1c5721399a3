"""Opening the archive that a command asks: its homes, its index, and a bar for what takes long."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threadline.archive import Archive
    from threadline.model.found import Home

_LONG = 8 * 1024 * 1024
_OFF = frozenset({"0", "off", "no", "false"})


def archive_of(
    homes: Sequence[str], jobs: int | None = None, *, found: Iterable[Home] | None = None, most: int | None = None
) -> Archive:
    """The archive of the homes that were named, or else of those that are found; or of those that were `found`.

    `most` is how many bytes may be read to bring the index up to date.

    `THREADLINE_INDEX=off` leaves the index alone: everything is then read from the transcripts.

    Raises:
        NotFound: a home that was named is not there.
    """
    from threadline.archive import LITTLE, Archive
    from threadline.find.home_places import homes as found_homes

    is_used = os.environ.get("THREADLINE_INDEX", "").strip().lower() not in _OFF
    wanted = tuple(found) if found is not None else found_homes(*homes)
    return Archive(wanted, index=is_used, jobs=jobs, showing=_shown, most=LITTLE if most is None else most)


def _shown(label: str, total: int) -> AbstractContextManager[Callable[[int], None]]:
    from contextlib import nullcontext

    from threadline.cli.reading import progress

    if label != "Indexing":
        return progress(label, total)
    # What is done in a moment, and on the way to something else, is not worth a word.
    return progress(label, total, rate=True) if total > _LONG else nullcontext(lambda _done: None)
