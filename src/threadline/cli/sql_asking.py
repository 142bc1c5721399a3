"""Asking the index in SQL: whatever is asked, nothing is changed, no other file is opened, and it ends in time."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from time import monotonic
from typing import Any

from threadline.errors import BadQuery
from threadline.index.store import open_to_read

_STEPS = 10_000
_ROWS = 500
_LONGEST = 256 * 1024 * 1024
_READS = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE})
# Full text asks for the first itself; the others tell of tables.
_PRAGMAS = frozenset({"data_version", "table_info", "table_xinfo", "table_list", "index_list", "index_info"})


class Answer:
    """The rows of a question as they come; `columns` has their names, each of them once."""

    def __init__(self, connection: sqlite3.Connection, question: str, seconds: float) -> None:
        self._connection = connection
        self._left = self._given = seconds
        self._deadline = 0.0
        self._cursor = connection.cursor()
        connection.set_progress_handler(self._is_late, _STEPS)
        with self._timed():
            self._cursor.execute(question)
        self.columns = unique([told[0] for told in self._cursor.description or ()])
        if not self.columns:
            raise BadQuery("There is no question; give a SELECT. `threadline sql --schema` shows what there is.")

    def __iter__(self) -> Iterator[Sequence[Any]]:
        while True:
            with self._timed():
                rows = self._cursor.fetchmany(_ROWS)
            if not rows:
                return
            yield from rows

    def _is_late(self) -> bool:
        return monotonic() > self._deadline

    @contextmanager
    def _timed(self) -> Iterator[None]:
        """Only the asking takes time: whoever reads the answer may take as long as they like."""
        began = monotonic()
        self._deadline = began + self._left
        try:
            yield
        except (sqlite3.Error, sqlite3.Warning) as error:
            raise BadQuery(self._sentence(error)) from None
        finally:
            self._left -= monotonic() - began

    def _sentence(self, error: Exception) -> str:
        said = str(error).rstrip(".")
        if said == "interrupted":
            return f"The question took longer than {self._given:g} s; ask for less, or give it longer with --timeout."
        if "authoriz" in said or "prohibited" in said or "may not be modified" in said:
            return f"The index is only read ({said}): give a SELECT; ATTACH, PRAGMA and changes are refused."
        if "one statement" in said:
            return "Give one statement, not several."
        if "no such table" in said or "no such column" in said:
            return f"SQL: {said}; `threadline sql --schema` shows what there is."
        return f"SQL: {said}."


@contextmanager
def asked(index: Path, question: str, seconds: float) -> Iterator[Answer]:
    """Ask the index.

    Raises:
        BadQuery: it cannot be understood, wants more than to read, or takes too long.
        Unreadable: the index is damaged or not there.
    """
    with closing(open_to_read(index)) as connection:
        connection.text_factory = lambda said: said.decode(errors="replace")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        connection.set_authorizer(_may)
        yield Answer(connection, question, seconds)


def _may(action: int, first: str | None, second: str | None, _database: str | None, _within: str | None) -> int:
    is_read = (
        action in _READS
        or (action == sqlite3.SQLITE_FUNCTION and (second or "").lower() != "load_extension")
        or (action == sqlite3.SQLITE_PRAGMA and (first or "").lower() in _PRAGMAS)
        # What a virtual table says of its columns is taken for that. SQLite itself lets nobody change its own table.
        or (action == sqlite3.SQLITE_UPDATE and first == "sqlite_master")
    )
    return sqlite3.SQLITE_OK if is_read else sqlite3.SQLITE_DENY


def unique(names: Sequence[str]) -> list[str]:
    """Each name once: a second `kind` is `kind_2`.

    >>> unique(["kind", "kind", "kind_2"])
    ['kind', 'kind_3', 'kind_2']
    """
    taken = Counter(names)
    met: set[str] = set()
    made = []
    for name in names:
        free = name if name not in met else next(f"{name}_{at}" for at in count(2) if f"{name}_{at}" not in taken)
        met.add(name)
        taken[free] += 1
        made.append(free)
    return made
