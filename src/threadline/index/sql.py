"""Run a user's SELECT on the index: read-only, no other files, with a time limit."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from time import monotonic
from typing import Any

from threadline.errors import BadQuery
from threadline.index.store import open_read_only

_PROGRESS_STEPS = 10_000
_FETCH_ROWS = 500
# A chunk of rows is not longer than this by much: it ends with the cell that makes it so.
_CHUNK_BYTES = 8 * 1024 * 1024
_MAX_VALUE_BYTES = 64 * 1024 * 1024
_SIZED_TYPES = frozenset({str, bytes})
_READ_ACTIONS = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE})
# Full text asks for the first itself; the others tell of tables.
_ALLOWED_PRAGMAS = frozenset({"data_version", "table_info", "table_xinfo", "table_list", "index_list", "index_info"})
# The one loads code, the other takes any eight bytes for the address of some, where a system's SQLite lets it.
_UNSAFE_FUNCTIONS = frozenset({"load_extension", "fts3_tokenizer"})
_REFUSAL_SIGNS = ("authoriz", "prohibited", "may not be modified", "within a transaction")
_NAME_IN_ERROR = re.compile(
    r'near "([^"]+)"|unrecognized token: "(.+)"|no such (?:column|table|function): (\S+)', re.DOTALL
)


class QueryResult:
    """The rows of a question as they come; `columns` has their names, each of them once."""

    def __init__(self, connection: sqlite3.Connection, question: str, seconds: float) -> None:
        self._connection = connection
        self._question = question
        self._left = self._given = seconds
        self._deadline = 0.0
        self._cursor = connection.cursor()
        connection.set_progress_handler(self._is_late, _PROGRESS_STEPS)
        with self._timed():
            self._cursor.execute(question)
        self.columns = unique_names([told[0] for told in self._cursor.description or ()])
        if not self.columns:
            raise BadQuery("There is no question; give a SELECT. `threadline sql --schema` shows what there is.")

    def __iter__(self) -> Iterator[Sequence[Any]]:
        for chunk in self.chunks(_FETCH_ROWS):
            yield from chunk

    def chunks(self, most: int) -> Iterator[list[Sequence[Any]]]:
        """The rows, so many at once, or fewer where they are long."""
        while rows := self._chunk(most):
            yield rows

    def _chunk(self, most: int) -> list[Sequence[Any]]:
        rows: list[Sequence[Any]] = []
        held = 0
        with self._timed():
            for row in self._cursor:
                rows.append(row)
                held += sum([len(cell) for cell in row if type(cell) in _SIZED_TYPES])
                if len(rows) == most or held > _CHUNK_BYTES:
                    break
        return rows

    def _is_late(self) -> bool:
        return monotonic() > self._deadline

    @contextmanager
    def _timed(self) -> Iterator[None]:
        """Only the asking takes time: whoever reads the answer may take as long as they like."""
        began = monotonic()
        self._deadline = began + self._left
        try:
            yield
        except MemoryError:
            raise BadQuery("The question needs more memory than it may have; ask for less at once.") from None
        except (sqlite3.Error, sqlite3.Warning) as error:
            if str(error) == "interrupted" and not self._is_late():
                # SQLite was looking whether it is late when Ctrl-C came, and took that for a yes.
                raise KeyboardInterrupt from None
            raise BadQuery(self._sentence(error)) from None
        finally:
            self._left -= monotonic() - began

    def _sentence(self, error: Exception) -> str:
        said = str(error).rstrip(".")
        if said == "interrupted":
            return timeout_message(self._given)
        if any(word in said for word in _REFUSAL_SIGNS):
            return f"The index is only read ({said}): give a SELECT; ATTACH, PRAGMA and changes are refused."
        if "one statement" in said:
            return "Give one statement, not several."
        named = _NAME_IN_ERROR.search(said)
        at = error_position(self._question, next(filter(None, named.groups()))) if named is not None else ""
        if "no such table" in said or "no such column" in said:
            return f"SQL{at}: {said}; `threadline sql --schema` shows what there is."
        return f"SQL{at}: {said}."


@contextmanager
def open_for_sql(index: Path, heap: int | None = None) -> Iterator[sqlite3.Connection]:
    """The index for any number of questions, as it is at this moment, and for reading alone.

    `heap` is how many bytes SQLite may hold, for this and whatever else asks it in this process from now on.

    Raises:
        Unreadable: it is damaged or not there.
    """
    with closing(open_read_only(index, sqlite3.Connection)) as connection:
        connection.text_factory = lambda said: said.decode(errors="replace")
        if heap is not None:
            connection.execute(f"PRAGMA hard_heap_limit = {heap}")
        connection.execute("BEGIN")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        connection.set_authorizer(_authorize)
        yield connection


def _authorize(action: int, first: str | None, second: str | None, _database: str | None, _within: str | None) -> int:
    is_read = (
        action in _READ_ACTIONS
        or (action == sqlite3.SQLITE_FUNCTION and (second or "").lower() not in _UNSAFE_FUNCTIONS)
        or (action == sqlite3.SQLITE_PRAGMA and (first or "").lower() in _ALLOWED_PRAGMAS)
        # What a virtual table says of its columns is taken for that. SQLite itself lets nobody change its own table.
        or (action == sqlite3.SQLITE_UPDATE and first == "sqlite_master")
    )
    return sqlite3.SQLITE_OK if is_read else sqlite3.SQLITE_DENY


def timeout_message(seconds: float) -> str:
    """That it took too long, and what to do."""
    return f"The question took longer than {seconds:g} s; ask for less, or give it longer with --timeout."


def error_position(question: str, word: str) -> str:
    """Where the word is, if it is in one place only: SQLite tells which word, and not where.

    >>> error_position("SELECT a, b", "b"), error_position("SELECT a, a", "a")
    (', column 11', '')
    """
    is_name = word.isidentifier()
    pattern = rf"\b{re.escape(word)}\b" if is_name else re.escape(word)
    found = [one.start() for one in re.finditer(pattern, question)]
    if len(found) != 1:
        return ""
    before = question[: found[0]]
    column = len(before) - before.rfind("\n")
    return f", line {before.count(chr(10)) + 1}, column {column}" if "\n" in question.strip() else f", column {column}"


def unique_names(names: Sequence[str]) -> list[str]:
    """Each name once: a second `kind` is `kind_2`.

    >>> unique_names(["kind", "kind", "kind_2"])
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
