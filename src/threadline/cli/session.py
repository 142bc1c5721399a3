"""A session as people name it on the command line: a path, the start of its id, or `last`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threadline.load import Session


def named(session: str, homes: Sequence[str] = ()) -> Session:
    """Read the session that was named.

    Raises:
        NotFound: there is none of that name.
        Ambiguous: there are several; the text lists them.
    """
    from threadline.load import read

    return read(path_of(session, homes))


def path_of(session: str, homes: Sequence[str] = ()) -> Path:
    """The main transcript of the session that was named; `last` is the one that `threadline list` shows first."""
    from threadline.cli.opening import archive_of

    place = Path(os.path.expanduser(session))  # noqa: PTH111 - Path.expanduser raises where there is no such user
    if place.suffix == ".jsonl" or place.is_file():
        return place
    with archive_of(homes) as archive:
        return archive.path(session)
