"""Run a user's SELECT on the index: read-only, no other files, with a time limit.

SQLite looks at the clock between the steps of a statement, and a single step may take hours: `instr` of two large
values. `run_in_process` ends such a statement as well.
"""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

from threadline.errors import BadQuery, Error, Unreadable
from threadline.index.columns import schema_columns
from threadline.index.schema import PRIVATE, TABLES, VIEWS
from threadline.index.store import open_read_only

_PROGRESS_STEPS = 10_000
_GRACE_SECONDS = 1.0
_CHILD_HEAP = 512 * 1024 * 1024
_FETCH_ROWS = 500
# A longer value is more than redaction has to see of what is quoted.
_LONG_VALUE_FACTOR = 4
# A chunk of rows ends with the row that exceeds this.
_CHUNK_BYTES = 8 * 1024 * 1024
_MAX_VALUE_BYTES = 64 * 1024 * 1024
_SIZED_TYPES = frozenset({str, bytes})
_READ_ACTIONS = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE})
# FTS5 itself needs the first; the others describe tables.
_ALLOWED_PRAGMAS = frozenset({"data_version", "table_info", "table_xinfo", "table_list", "index_list", "index_info"})
# The first loads code; the second takes any eight bytes as its address, if the system's SQLite allows it.
_UNSAFE_FUNCTIONS = frozenset({"load_extension", "fts3_tokenizer"})
_REFUSAL_SIGNS = ("authoriz", "prohibited", "may not be modified", "within a transaction")
_NAME_IN_ERROR = re.compile(
    r'near "([^"]+)"|unrecognized token: "(.+)"|no such (?:column|table|function): (\S+)', re.DOTALL
)


class QueryResult:
    """The rows of a SELECT, fetched as they are read. `columns` has their names, each unique."""

    def __init__(self, connection: sqlite3.Connection, question: str, seconds: float) -> None:
        self._connection = connection
        self._question = question
        self._left = self._seconds = seconds
        self._deadline = 0.0
        self._cursor = connection.cursor()
        connection.set_progress_handler(self._is_late, _PROGRESS_STEPS)
        with self._timed():
            self._cursor.execute(question)
        self.columns = unique_names([column[0] for column in self._cursor.description or ()])
        if not self.columns:
            raise BadQuery(f"There is no statement. Write a SELECT. {_list_tables()}")

    def __iter__(self) -> Iterator[Sequence[Any]]:
        for chunk in self.chunks(_FETCH_ROWS):
            yield from chunk

    def chunks(self, max_rows: int) -> Iterator[list[Sequence[Any]]]:
        """The rows in lists of at most `max_rows`; fewer if they are long."""
        while rows := self._chunk(max_rows):
            yield rows

    def _chunk(self, max_rows: int) -> list[Sequence[Any]]:
        rows: list[Sequence[Any]] = []
        size = 0
        with self._timed():
            for row in self._cursor:
                rows.append(row)
                size += sum([len(cell) for cell in row if type(cell) in _SIZED_TYPES])
                if len(rows) == max_rows or size > _CHUNK_BYTES:
                    break
        return rows

    def _is_late(self) -> bool:
        return monotonic() > self._deadline

    @contextmanager
    def _timed(self) -> Iterator[None]:
        """Count only the time SQLite takes, not the time the caller takes to process the rows."""
        start = monotonic()
        self._deadline = start + self._left
        try:
            yield
        except MemoryError:
            raise BadQuery("The query needs more memory than allowed. Select less.") from None
        except (sqlite3.Error, sqlite3.Warning) as error:
            if str(error) == "interrupted" and not self._is_late():
                # Ctrl-C came while SQLite was calling `_is_late`, which it took for a yes.
                raise KeyboardInterrupt from None
            raise BadQuery(self._sentence(error)) from None
        finally:
            self._left -= monotonic() - start

    def _sentence(self, error: Exception) -> str:
        message = str(error).rstrip(".")
        if message == "interrupted":
            return timeout_message(self._seconds)
        if any(sign in message for sign in _REFUSAL_SIGNS):
            return f"The index is read-only ({message}). Only SELECT statements are allowed."
        if "too big" in message:
            return f"SQL: a value of the query is larger than {_MAX_VALUE_BYTES // 2**20} MB. Select less of it."
        if "one statement" in message:
            return "Write one statement, not several."
        name = _NAME_IN_ERROR.search(message)
        at = error_position(self._question, next(filter(None, name.groups()))) if name is not None else ""
        hint = _list_tables() if "no such table" in message else ""
        hint = _list_columns(self._question) if "no such column" in message else hint
        if "JSON path" in message:
            message = message.replace("''", "'")  # SQLite doubles the quotes in the path that it names
        return f"SQL{at}: {message}. {hint}".rstrip()


def _list_tables() -> str:
    return f"Tables: {', '.join(name for name in sorted(TABLES | VIEWS) if name not in PRIVATE)}."


def _list_columns(question: str) -> str:
    """A sentence for each table that a statement names: its columns."""
    words = set(re.findall(r"\w+", question.lower()))
    columns: dict[str, list[str]] = {}
    for row in schema_columns():
        columns.setdefault(row["table"], []).append(row["column"])
    named = [f"Columns of {name}: {', '.join(columns[name])}." for name in columns if name in words]
    return " ".join(named) or _list_tables()


@contextmanager
def open_for_sql(index: Path, heap: int | None = None) -> Iterator[sqlite3.Connection]:
    """A connection for a user's statements: see `Index.sql`.

    Raises:
        Unreadable: there is no index, or it is damaged.
    """
    with closing(open_read_only(index, sqlite3.Connection)) as connection:
        connection.text_factory = lambda raw: raw.decode(errors="replace")
        if heap is not None:
            connection.execute(f"PRAGMA hard_heap_limit = {heap}")
        connection.execute("BEGIN")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        with closing(_add_checked_format(connection)):
            connection.set_authorizer(_authorize)
            yield connection


class IsolatedResult(NamedTuple):
    """The first rows of a SELECT as objects, and whether there are more. `has_cut` says that a long value was cut."""

    rows: list[dict[str, Any]]
    has_more: bool
    has_cut: bool


def run_in_process(index: Path, question: str, seconds: float, max_bytes: int) -> IsolatedResult:
    """Run a SELECT in another process, which is killed if it takes longer than `seconds`.

    Rows are read until their JSON has more than `max_bytes`. A value that is much longer than that is cut.

    Raises:
        BadQuery: the statement is wrong, or took too long.
        Unreadable: there is no index, or it is damaged.
    """
    # -P: modules of the current directory are not imported, which may be anybody's.
    command = [sys.executable, "-P", "-c", "from threadline.index.sql import answer_parent; answer_parent()"]
    request = json.dumps([str(index), question, seconds, max_bytes])
    try:
        process = subprocess.run(  # noqa: S603 - our own function
            command, input=request.encode(), capture_output=True, timeout=seconds + _GRACE_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise BadQuery(timeout_message(seconds)) from None
    lines = process.stdout.splitlines()
    if process.returncode or not lines:
        raise BadQuery("The query ended without a result. It may need more memory than there is. Select less.")
    status = json.loads(lines[-1])
    if "error" in status:
        raise (Unreadable if status["unreadable"] else BadQuery)(status["error"])
    return IsolatedResult([json.loads(line) for line in lines[:-1]], status["more"], status["cut"])


def answer_parent() -> None:
    """What the other process does: read a request from standard input, write rows and a last line about them."""
    index, question, seconds, max_bytes = json.loads(sys.stdin.buffer.read())
    max_length = _LONG_VALUE_FACTOR * max_bytes
    has_cut = False
    write = sys.stdout.buffer.write
    try:
        with open_for_sql(Path(index), _CHILD_HEAP) as connection:
            result = QueryResult(connection, question, seconds)
            for row in result:
                short = [_cut_value(value, max_length) for value in row]
                has_cut = has_cut or any(cut is not value for cut, value in zip(short, row, strict=True))
                values = dict(zip(result.columns, short, strict=True))
                line = json.dumps(values, default=str, ensure_ascii=False).encode(errors="replace")
                write(line + b"\n")
                max_bytes -= len(line)
                if max_bytes < 0:
                    break
        status: dict[str, Any] = {"more": max_bytes < 0, "cut": has_cut}
    except Error as error:
        status = {"error": str(error), "unreadable": isinstance(error, Unreadable)}
    write(json.dumps(status).encode())


def _cut_value(value: Any, max_length: int) -> Any:
    """The value itself, or the start of a text or blob that is longer."""
    if type(value) not in _SIZED_TYPES or len(value) <= max_length:
        return value
    start = value[:max_length]
    return f"{start}…"


def _add_checked_format(connection: sqlite3.Connection) -> sqlite3.Connection:
    """Make `printf` and `format` raise an error if their result is too big, like other functions; return what they use.

    SQLite's own return NULL then, which looks like an answer.
    """
    formatter = sqlite3.connect(":memory:", check_same_thread=False)
    formatter.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)

    def format_values(*values: Any) -> Any:
        marks = "".join(", ?" for _ in values[1:])
        (text,) = formatter.execute(f"SELECT printf(?{marks})", values or (None,)).fetchone()
        if text is None and values and values[0] is not None:
            # Some versions return NULL for an empty text, too.
            (prefixed,) = formatter.execute(f"SELECT printf('x' || ?{marks})", values).fetchone()
            if prefixed is None:
                raise OverflowError  # which SQLite reports as `string or blob too big`
        return text

    for name in ("printf", "format"):
        connection.create_function(name, -1, format_values, deterministic=True)
    return formatter


def _authorize(action: int, first: str | None, second: str | None, _database: str | None, _within: str | None) -> int:
    is_read = (
        action in _READ_ACTIONS
        or (action == sqlite3.SQLITE_FUNCTION and (second or "").lower() not in _UNSAFE_FUNCTIONS)
        or (action == sqlite3.SQLITE_PRAGMA and (first or "").lower() in _ALLOWED_PRAGMAS)
        # FTS5 declares its columns this way. SQLite itself lets nobody change its schema table.
        or (action == sqlite3.SQLITE_UPDATE and first == "sqlite_master")
    )
    return sqlite3.SQLITE_OK if is_read else sqlite3.SQLITE_DENY


def timeout_message(seconds: float) -> str:
    """The message for a query that took too long. Who can allow more time says how, such as `threadline sql`."""
    return f"The query took longer than {seconds:g}s. Select less: add conditions, or a LIMIT."


def error_position(question: str, word: str) -> str:
    """Where a word is in a statement, if it occurs only once: SQLite's errors name the word, but not its position.

    >>> error_position("SELECT a, b", "b"), error_position("SELECT a, a", "a")
    (', column 11', '')
    """
    is_name = word.isidentifier()
    pattern = rf"\b{re.escape(word)}\b" if is_name else re.escape(word)
    positions = [match.start() for match in re.finditer(pattern, question)]
    if len(positions) != 1:
        return ""
    before = question[: positions[0]]
    column = len(before) - before.rfind("\n")
    return f", line {before.count(chr(10)) + 1}, column {column}" if "\n" in question.strip() else f", column {column}"


def unique_names(names: Sequence[str]) -> list[str]:
    """Make names unique: a second `kind` becomes `kind_2`.

    >>> unique_names(["kind", "kind", "kind_2"])
    ['kind', 'kind_3', 'kind_2']
    """
    taken = Counter(names)
    used: set[str] = set()
    unique = []
    for name in names:
        free = name if name not in used else next(f"{name}_{at}" for at in count(2) if f"{name}_{at}" not in taken)
        used.add(name)
        taken[free] += 1
        unique.append(free)
    return unique
