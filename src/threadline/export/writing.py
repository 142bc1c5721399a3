"""Writing what is given out: whole or not at all, over nothing that is there, and never into a Claude home."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from threadline.errors import BadQuery


def refuse_places(places: Iterable[Path], homes: Iterable[Path], *, force: bool) -> None:
    """Refuse places that may not be written to, before any work is done.

    Raises:
        BadQuery: one lies in a Claude home, or is there already.
    """
    roots = [Path(os.path.realpath(home)) for home in homes]
    for place in places:
        real = Path(os.path.realpath(place))
        if any(real == root or root in real.parents for root in roots):
            raise BadQuery(
                f"{str(place)!r} lies in a Claude home, which threadline never writes to; name another place."
            )
        if place.is_dir() and any(place.iterdir()) and not force:
            raise BadQuery(f"The folder {str(place)!r} is not empty; name another one, or write into it with --force.")
        if os.path.lexists(place) and not place.is_dir() and not force:
            raise BadQuery(
                f"{str(place)!r} is there already; name another place with --out, or replace it with --force."
            )


def write(staged: Path, place: Path) -> None:
    """Let a finished file stand at its place, in one step.

    Raises:
        BadQuery: there is a folder of that name.
    """
    if place.is_dir():
        raise BadQuery(f"{str(place)!r} is a folder; name a file.")
    place.parent.mkdir(parents=True, exist_ok=True)
    beside = place.with_name(f".{place.name[:200]}.{os.getpid()}.tmp")
    try:
        # Not its mode: a file to share has the one that new files have.
        shutil.copyfile(staged, beside)
        beside.replace(place)
    finally:
        with suppress(FileNotFoundError):
            beside.unlink()
