"""Fresh: an index that tells what the transcripts tell now, if it can be had at little cost."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from threadline.account.shipped_prices import shipped_digest
from threadline.errors import IndexBusy, Unreadable
from threadline.find.changes import changes
from threadline.find.listing import stats
from threadline.index.known import Remembered, Told, generation
from threadline.index.store import damaged, open_to_read
from threadline.model.change import Changes
from threadline.model.found import Home
from threadline.model.problem import Problem


class Fresh(Struct, frozen=True):
    """An index to ask, and what could not be looked at when it was compared with the homes."""

    connection: sqlite3.Connection
    problems: tuple[Problem, ...] = ()


def fresh(
    index: Path,
    homes: Sequence[Home],
    *,
    most: int | None = None,
    jobs: int | None = None,
    progress: Callable[[int], None] | None = None,
    planned: Callable[[int], None] | None = None,
) -> Fresh | None:
    """The index of these homes, up to date; None where that takes reading more than `most` bytes, or another is at it.

    Nothing is written where nothing changed. Without `most`, it is made whatever it takes.

    Raises:
        IndexBusy: another process is refreshing it, and there is no bound.
        Unreadable: it is damaged or may not be written, and there is no bound.
    """
    try:
        if index.exists():
            return _compared(index, homes, most, jobs, progress, planned)
        if most is None or sum(status.st_size for home in homes for _path, status in stats(home)) <= most:
            _refresh(index, homes, jobs=jobs, progress=progress, planned=planned)
            return _compared(index, homes, most, jobs, progress, planned)
    except (IndexBusy, Unreadable):
        if most is None:
            raise
    return None


def _compared(  # noqa: PLR0917 - as they were given
    index: Path,
    homes: Sequence[Home],
    most: int | None,
    jobs: int | None,
    progress: Callable[[int], None] | None,
    planned: Callable[[int], None] | None,
) -> Fresh | None:
    connection = open_to_read(index)
    try:
        connection.execute("BEGIN")  # what is asked here is of one state, whoever writes meanwhile
        told = changes(Remembered(connection), homes)
        if _is_current(connection, told):
            connection.execute("COMMIT")
            return Fresh(connection, told.problems)
        if most is not None and _bytes(told) > most:
            connection.close()
            return None
        now = Told(told, generation(connection))
    except sqlite3.Error as error:
        connection.close()
        raise damaged(index, error) from None
    except BaseException:
        connection.close()
        raise
    connection.close()
    _refresh(index, homes, jobs=jobs, progress=progress, planned=planned, told=now)
    return Fresh(open_to_read(index), told.problems)


def _refresh(
    index: Path,
    homes: Sequence[Home],
    *,
    jobs: int | None,
    progress: Callable[[int], None] | None,
    planned: Callable[[int], None] | None,
    told: Told | None = None,
) -> None:
    # What reads transcripts takes longer to load than an index that is fresh to ask.
    from threadline.index.refresh import refresh  # noqa: PLC0415

    refresh(index, homes, jobs=jobs, progress=progress, planned=planned, told=told)


def _is_current(connection: sqlite3.Connection, told: Changes) -> bool:
    """Whether nothing is left to be done, of this refresh or of one that was killed."""
    if told.changed or told.renewed:
        return False
    if connection.execute("SELECT 1 FROM stale LIMIT 1").fetchone() is not None:
        return False
    noted = dict(connection.execute("SELECT name, value FROM meta"))
    is_finished = "unsettled" not in noted and noted.get("terms_to") == noted.get("next_entry", "")
    return is_finished and noted.get("prices") == shipped_digest()


def _bytes(told: Changes) -> int:
    return sum(one.looked.size - one.read_from for one in told.changed if one.looked is not None)
