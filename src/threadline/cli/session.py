"""A session as people name it on the command line: a path, the start of its id, or `last`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from threadline.errors import NotFound

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
    from threadline.cli.reading import found_homes
    from threadline.find import by_id
    from threadline.survey.sessions import Wanted, sessions

    place = Path(os.path.expanduser(session))  # noqa: PTH111 - Path.expanduser raises where there is no such user
    if place.suffix == ".jsonl" or place.is_file():
        return place
    found = found_homes(homes)
    if session != "last":
        return by_id(session, found).path
    newest = sessions(found, Wanted(limit=1)).sessions
    if not newest:
        raise NotFound("There is no session yet; name a home with --home, or a transcript.")
    return newest[0].path
