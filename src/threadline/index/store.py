"""Locate, open, lock and remove the SQLite file of the index, and convert values to what SQLite can store.

There is one file per set of homes, in the platform's cache folder. Many processes may read it while one writes. A new
index is built in a file beside the old one, which it then replaces.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from pathlib import Path
from sys import intern
from time import monotonic, sleep
from typing import Any, Self

from threadline import locks
from threadline.errors import IndexBusy, Unreadable
from threadline.files import blake2b, cache_folder
from threadline.model.times import parse_timestamp

_PAGE_BYTES = 8192
_CACHE_KB = 32 * 1024
_MIN_HASH_BYTES = 8 * 1024 * 1024
_MAX_HASH_BYTES = 32 * 1024 * 1024
# The words of transcripts take a seventh of their size.
_TRANSCRIPT_BYTES_PER_HALF = 14
_BUSY_TIMEOUT_MS = 5_000
_HASH_LENGTH = 12
_VERSIONED_NAME = re.compile(r"(?P<name>index-[0-9a-f]+)-v(?P<version>[0-9]{1,6})\.sqlite")
_AUTOMERGE_SEGMENTS = 4
_REPLACE_SECONDS = 0.5  # seconds
# If the schema table is damaged, SQLite quotes it in its error message, which then may not be valid UTF-8.
_SQLITE_ERRORS = (sqlite3.Error, UnicodeDecodeError)
_SCHEMA_DAMAGE_SIGNS = ("no such ", "already exists", "malformed")
_FILE_DAMAGE_SIGNS = (
    "disk i/o",
    "full",
    "unable to open",
    "readonly",
    "malformed",
    "not a database",
    "could not decode",
)
NEW_SUFFIX = ".new"
"""Appended to the file name of an index while it is being built."""


class DamagedIndex(Unreadable):
    """The index file is damaged. The message says how to rebuild it."""


# For a value that is neither a number nor text, `sqlite3` asks protocols whether it has to be adapted, which takes
# longer than to store it. These say so at once, and change no value.
sqlite3.register_adapter(type(None), dict[None, None]().get)
sqlite3.register_adapter(bytes, bytes)
sqlite3.register_adapter(bool, int)


def index_path(homes: Iterable[str | Path], cache: Path | None = None) -> Path:
    """The path of the index of these homes: one file per set of homes, in the cache folder."""
    paths = "\n".join(sorted(os.fspath(home) for home in homes))
    name = blake2b(paths.encode(errors="surrogateescape")).hexdigest()[:_HASH_LENGTH]
    return (cache or cache_folder()) / f"index-{name}-v{VERSION}.sqlite"


class ReadCursor(sqlite3.Cursor):
    """A cursor that raises threadline's errors: see `ReadConnection`."""

    def execute(self, sql: str, parameters: Any = (), /) -> Self:
        """Run a statement."""
        try:
            return super().execute(sql, parameters)
        except _SQLITE_ERRORS as error:
            raise self._translate(error) from None

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override] # a generator costs less per row than `__next__` here
        try:
            yield from iter(super().__next__, None)
        except _SQLITE_ERRORS as error:
            raise self._translate(error) from None

    def fetchone(self) -> Any:
        """The next row, or None."""
        try:
            return super().fetchone()
        except _SQLITE_ERRORS as error:
            raise self._translate(error) from None

    def fetchmany(self, size: int | None = 1) -> list[Any]:
        """The next rows."""
        try:
            return super().fetchmany(size)
        except _SQLITE_ERRORS as error:
            raise self._translate(error) from None

    def fetchall(self) -> list[Any]:
        """All remaining rows."""
        try:
            return super().fetchall()
        except _SQLITE_ERRORS as error:
            raise self._translate(error) from None

    def _translate(self, error: Exception) -> Exception:
        path = self.connection.path if isinstance(self.connection, ReadConnection) else None
        return translate_error(error, path or Path())


class ReadConnection(sqlite3.Connection):
    """A read-only connection to the index at `path`.

    It raises `DamagedIndex` if the file is damaged and `IndexBusy` if it stays locked. A mistake in a statement is a
    bug, and stays an `sqlite3.Error`.
    """

    path: Path | None = None

    def cursor(self, factory: Any = ReadCursor) -> Any:
        """A cursor that raises threadline's errors."""
        return super().cursor(factory)

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        """Run a statement on a new cursor. The inherited method would not call `ReadCursor.execute`."""
        cursor: sqlite3.Cursor = self.cursor()
        return cursor.execute(sql, parameters)


def translate_error(error: Exception, path: Path) -> Exception:
    """The error to raise instead of one of SQLite's; the same one if neither the file nor its writer is to blame."""
    if isinstance(error, sqlite3.OperationalError):
        message = str(error).lower()
        if "locked" in message:
            return busy_error(path)
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_READONLY:  # a statement that writes
            return error
        return damaged_error(path, error) if any(sign in message for sign in _FILE_DAMAGE_SIGNS) else error
    is_mistake = isinstance(error, sqlite3.ProgrammingError | sqlite3.InterfaceError)
    is_damage = isinstance(error, sqlite3.DatabaseError | UnicodeDecodeError) and not is_mistake
    return damaged_error(path, error) if is_damage else error


def open_read_only(path: Path, connection_class: type[sqlite3.Connection] = ReadConnection) -> sqlite3.Connection:
    """Connect to an index read-only.

    Raises:
        Unreadable: there is no index at that path, or it is damaged.
    """
    until = monotonic() + _REPLACE_SECONDS
    while True:
        before = _inode(path)
        try:
            connection = _connect_read_only(path, connection_class)
        except _SQLITE_ERRORS as error:
            # While a rebuilt index replaces the old one, for a moment there is no file, or not all of its files.
            if (before and _inode(path) == before) or monotonic() > until or not _exists_or_is_being_replaced(path):
                message = f"The index {str(path)!r} cannot be read ({error}); run `threadline index rebuild`."
                raise DamagedIndex(message) from None
            sleep(_REPLACE_SECONDS / 50)
            continue
        if _inode(path) == before:
            return connection
        connection.close()  # replaced meanwhile: the connection could see parts of both files


def _connect_read_only(path: Path, connection_class: type[sqlite3.Connection]) -> sqlite3.Connection:
    # A server passes the connection from thread to thread, but two threads never use it at once.
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=ro",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        factory=connection_class,
    )
    cursor = connection.cursor(sqlite3.Cursor)
    try:
        cursor.execute("PRAGMA query_only = 1")
        cursor.execute(f"PRAGMA busy_timeout = {_BUSY_TIMEOUT_MS}")
        cursor.execute("SELECT value FROM meta WHERE name = 'schema'").fetchone()
    except _SQLITE_ERRORS:
        connection.close()
        raise
    if isinstance(connection, ReadConnection):
        connection.path = path
    return connection


@contextmanager
def read_transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Make several statements see the same state of the index, even if it is refreshed meanwhile."""
    if connection.in_transaction:
        yield
        return
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("COMMIT")


def _exists_or_is_being_replaced(path: Path) -> bool:
    # Checked twice: the new file may have taken the place of the old one between the first two checks.
    return path.exists() or Path(f"{path}{NEW_SUFFIX}").exists() or path.exists()


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return 0


def damaged_error(path: Path, error: Exception) -> DamagedIndex:
    """The error for a damaged index."""
    return DamagedIndex(f"The index {str(path)!r} is damaged ({error}); run `threadline index rebuild`.")


def busy_error(path: Path) -> IndexBusy:
    """The error for an index that another process is writing."""
    return IndexBusy(f"Another threadline is refreshing {str(path)!r}; wait for it, or try again.")


@contextmanager
def write_lock(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Keep other processes from writing this index, also between transactions. With `wait`, wait for them a little.

    Raises:
        IndexBusy: another process is refreshing it.
        Unreadable: its folder is not writable.
    """
    with ExitStack() as stack:
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            stack.enter_context(locks.hold_lock(Path(f"{path}.lock"), wait=wait))
        except locks.LockBusy:
            raise busy_error(path) from None
        except OSError as error:
            raise Unreadable(f"The index {str(path)!r} cannot be written: {error.strerror or error}.") from None
        yield


@contextmanager
def open_locked(path: Path) -> Iterator[sqlite3.Connection]:
    """Open the index for writing, if the write lock is already held.

    Raises:
        Unreadable: it is damaged, or its folder is not writable.
    """
    with _open_writable(path) as connection:
        yield connection


@contextmanager
def open_for_writing(path: Path, *, wait: bool = True) -> Iterator[sqlite3.Connection]:
    """Open the index for writing, creating it if needed. Only one process at a time can; with `wait`, wait a little.

    Raises:
        IndexBusy: another process is refreshing it.
        Unreadable: it is damaged, or its folder is not writable.
    """
    with write_lock(path, wait=wait), _open_writable(path) as connection:
        yield connection


@contextmanager
def open_new(path: Path) -> Iterator[sqlite3.Connection]:
    """Create an empty index at a path that nobody reads yet. An existing file is removed.

    It is written without a journal, so that everything is written once: nothing can be rolled back, and a crash leaves
    a useless file.

    Raises:
        Unreadable: its folder is not writable.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        remove_index(path)
    except OSError as error:
        raise Unreadable(f"The index {str(path)!r} cannot be written: {error}.") from None
    try:
        with _open_writable(path, is_new=True) as connection:
            yield connection
            # Words were written in a few long runs. Later refreshes add little, which automerge joins to them.
            connection.execute("INSERT INTO text(text, rank) VALUES('automerge', ?)", (_AUTOMERGE_SEGMENTS,))
            connection.execute("PRAGMA journal_mode = WAL")
    except BaseException:
        with suppress(OSError):  # half an index is useless, and may be what fills the disk
            remove_index(path)
        raise


@contextmanager
def open_in_memory() -> Iterator[sqlite3.Connection]:
    """An empty index that only this connection has."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        with closing(sqlite3.connect(":memory:")) as empty:
            empty.deserialize(_empty_index())
            empty.backup(connection)  # what was deserialized may not exceed a gigabyte
        connection.execute("PRAGMA journal_mode = OFF")
        yield connection


@cache
def _empty_index() -> bytes:
    """The file of an empty index. Creating its tables takes longer than reading a short session."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        _prepare(connection, is_new=True)
        create_late_indexes(connection)
        return connection.serialize()


def remove_index(path: Path) -> None:
    """Remove an index and its journal files: a log left behind would be replayed into the next index."""
    for beside in ("", "-wal", "-shm", "-journal"):
        Path(f"{path}{beside}").unlink(missing_ok=True)


def remove_older_versions(path: Path) -> None:
    """Remove indexes of the same homes with an older schema version, which nothing uses any more."""
    current = _VERSIONED_NAME.fullmatch(path.name)
    if current is None:
        return
    for other in path.parent.iterdir():
        older = _VERSIONED_NAME.match(other.name)
        if older is not None and older["name"] == current["name"] and int(older["version"]) < int(current["version"]):
            with suppress(OSError):  # it may belong to another user
                other.unlink()


KNOWN_COLUMNS = "path, device, inode, size, mtime_ns, read_to, head_hash, tail_hash, checksum, racy, ctime_ns"
"""The columns of a transcript's fingerprint, in the order of `TranscriptFingerprint`."""


def list_indexes(folder: Path) -> list[Path]:
    """The paths of all indexes in a folder, of any homes and version, including those of which only a part is left."""
    try:
        names = {match[0] for path in folder.iterdir() if (match := _VERSIONED_NAME.match(path.name)) is not None}
    except OSError:
        return []
    return [folder / name for name in sorted(names)]


def is_older_version(path: Path) -> bool:
    """Whether an index has an older schema version than this threadline writes."""
    match = _VERSIONED_NAME.fullmatch(path.name)
    return match is not None and int(match["version"]) < VERSION


@contextmanager
def _open_writable(path: Path, *, is_new: bool = False) -> Iterator[sqlite3.Connection]:
    try:
        connection = sqlite3.connect(path, isolation_level=None, timeout=_BUSY_TIMEOUT_MS / 1000)
    except sqlite3.Error as error:
        raise Unreadable(f"The index {str(path)!r} cannot be written: {error}.") from None
    try:
        _make_private(path)
        _prepare(connection, is_new=is_new)
        yield connection
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            raise busy_error(path) from None
        if any(sign in str(error) for sign in _SCHEMA_DAMAGE_SIGNS):
            raise damaged_error(path, error) from None
        raise Unreadable(f"The index {str(path)!r} cannot be written: {error}.") from None
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise damaged_error(path, error) from None
    finally:
        connection.close()


def _make_private(path: Path) -> None:
    """Make the file readable by its owner only: it contains the text of transcripts."""
    try:
        path.chmod(0o600)
    except OSError as error:
        raise Unreadable(f"The index {str(path)!r} cannot be written: {error.strerror or error}.") from None


def _prepare(connection: sqlite3.Connection, *, is_new: bool) -> None:
    connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
    connection.execute(f"PRAGMA journal_mode = {'OFF' if is_new else 'WAL'}")
    # After a crash, lost rows are indexed again; WAL keeps the file itself consistent.
    connection.execute(f"PRAGMA synchronous = {'OFF' if is_new else 'NORMAL'}")
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KB}")
    connection.execute("BEGIN IMMEDIATE")
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone() is None:
        from threadline.index.schema import INDEXES, TABLES, VIEWS  # noqa: PLC0415 - seldom needed, and slow to load

        for statement in (*TABLES.values(), *VIEWS.values(), *INDEXES):
            connection.execute(statement)
        if not is_new:
            create_late_indexes(connection)
        _set_hash_size(connection, _MAX_HASH_BYTES)
        if is_new:
            connection.execute("INSERT INTO text(text, rank) VALUES('automerge', 0)")
        connection.execute(
            "INSERT INTO meta VALUES('schema', ?), ('next_entry', '1'), ('generation', '')", (str(VERSION),)
        )
    connection.execute("COMMIT")


def create_late_indexes(connection: sqlite3.Connection) -> None:
    """Create the indexes that a new file does not have until the rows of all transcripts are written."""
    from threadline.index.schema import LATE_INDEXES  # noqa: PLC0415 - as above

    for statement in LATE_INDEXES:
        connection.execute(statement)


def prepare_to_index(connection: sqlite3.Connection, size: int) -> None:
    """Prepare a new index for transcripts of that many bytes.

    Half of their words are written while workers still read; the other half has to wait for the last transcript.
    """
    _set_hash_size(connection, min(max(size // _TRANSCRIPT_BYTES_PER_HALF, _MIN_HASH_BYTES), _MAX_HASH_BYTES))


def _set_hash_size(connection: sqlite3.Connection, size: int) -> None:
    """Set how many bytes of words full-text search collects in memory before it writes them in a run.

    Many short runs would be merged again and again.
    """
    connection.execute("INSERT INTO text(text, rank) VALUES('hashsize', ?)", (size,))


VERSION = 35
"""The schema version, part of the file name. An index of another version is ignored, and a new one is built."""

FIELDS = ("title", "prompt", "reply", "thinking", "command", "path", "input", "result", "injected")
"""What full text has of an entry, each with a weight of its own."""

UUID_PATTERN_SQL = "'________-____-____-____-____________'"
"""What an id that is a UUID is LIKE."""

# Whether a row of prompt_rows was typed: its kind is not one of `model.session.UNTYPED_ACTS`.
TYPED_SQL = "{0}.kind NOT IN ('interrupt', 'plan')"

# Whether a row of agent_rows is an agent beside a main one: the main agent has no name, and in a transcript without a
# main agent, all rows are marked as an agent's.
IS_AGENT_SQL = """a.agent <> '' AND ({transcript}.kind <> 'main'
            OR EXISTS(SELECT 1 FROM agent_rows m WHERE m.transcript_id = a.transcript_id AND m.agent = ''))"""
# The kind of side agent; NULL for an agent that works for the model. As `threadline.thread.agents` decides.
SIDE_SQL = """CASE WHEN a.side IS NULL AND a.is_single_reply AND NOT EXISTS(
            SELECT 1 FROM start_rows b WHERE b.agent = a.agent) THEN 'warm-up' ELSE a.side END"""
WORKING_AGENT_SQL = f"{IS_AGENT_SQL} AND {SIDE_SQL} IS NULL"
# ruff: noqa: S608 - statements are made of our own words
# The transcripts of sessions, by a JSON list of their ids, with those of agents that older versions stored beside the
# sessions: only the entries of these name the session.
SESSION_TRANSCRIPTS_SQL = """(SELECT transcript_id, session FROM transcripts
            WHERE session IN (SELECT value FROM json_each(?1))
        UNION ALL SELECT t.transcript_id, a.session FROM agent_rows a JOIN transcripts t USING(transcript_id)
            WHERE a.session IN (SELECT value FROM json_each(?1)) AND t.session IS NULL AND a.agent = t.agent)"""
STEP_ORDER_SQL = """CASE s.step WHEN 'meta' THEN 0 WHEN 'result' THEN 1 WHEN 'progress' THEN 2
            WHEN 'result-text' THEN 3 ELSE 4 END"""
# The type that the call which started an agent requests.
_STARTED_TYPE_SQL = f"""(SELECT COALESCE(s.type, (SELECT c.type FROM agent_calls c WHERE c.call = s.call))
            FROM start_rows s WHERE s.agent = {{agent}} ORDER BY {STEP_ORDER_SQL}, s.call LIMIT 1)"""
# The type of an agent `a` in a transcript `t`, from the same sources as `threadline.thread.agents`: its side file, the
# call that started it (by name, by the fork point, by the prompt, by the team) or its own replies.
_MATCHED_TYPE_SQL = """(SELECT c.type FROM agent_calls c JOIN transcripts ct ON ct.transcript_id = c.transcript_id
                WHERE {0} AND ct.session = COALESCE(t.session, a.session)
                AND ct.home_id = t.home_id AND a.side IS NULL {1} LIMIT 1)"""
AGENT_TYPE_SQL = f"""COALESCE(a.meta_type, {_STARTED_TYPE_SQL.format(agent="a.agent")},
            {_MATCHED_TYPE_SQL.format("a.forked_from IN (c.uuid, c.parent_uuid)", "ORDER BY c.timestamp")},
            {_MATCHED_TYPE_SQL.format("c.prompt = a.prompt", "AND c.timestamp <= a.first ORDER BY c.timestamp DESC")},
            {_MATCHED_TYPE_SQL.format("c.prompt = a.prompt", "ORDER BY c.timestamp")},
            {_MATCHED_TYPE_SQL.format("c.name = a.teammate", "ORDER BY c.timestamp")}, a.type)"""
# The type of the agent that an origin `o` is about. What a parent repeats of an agent may be all that is left of it.
ORIGIN_TYPE_SQL = f"""COALESCE(o.agent_type,
            (SELECT {AGENT_TYPE_SQL} FROM agent_rows a JOIN transcripts t ON t.transcript_id = a.transcript_id
                WHERE a.transcript_id = o.transcript_id AND a.agent = COALESCE(o.inline, o.agent)
                AND {IS_AGENT_SQL.format(transcript="t")}),
            {_STARTED_TYPE_SQL.format(agent="o.agent")})"""

_INT64_LIMIT = 1 << 63


def read_generation(connection: sqlite3.Connection) -> str:
    """A token that identifies the state of the index. Each transaction of a refresh sets a new one."""
    row = connection.execute("SELECT value FROM meta WHERE name = 'generation'").fetchone()
    return str(row[0]) if row is not None else ""


def change_generation(connection: sqlite3.Connection) -> None:
    """Set a new token."""
    connection.execute("UPDATE meta SET value = ? WHERE name = 'generation'", (os.urandom(8).hex(),))


def storable_text(value: Any) -> str | None:
    """Return text that SQLite accepts: half of a surrogate pair, which JSON may contain, becomes U+FFFD."""
    if not isinstance(value, str) or value.isascii():
        return value if isinstance(value, str) else None
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


def storable_int(value: Any) -> int | None:
    """An integer, or None if it is larger than SQLite can store: JSON may contain any."""
    return value if isinstance(value, int) and -_INT64_LIMIT < value < _INT64_LIMIT else None


def name_ids(connection: sqlite3.Connection, table: str, column: str, names: Iterable[str]) -> dict[str, int]:
    """The ids of names in a table that numbers them; names that are new are added.

    Each with a statement of its own: SQLite can roll back a statement that inserts several rows in part, and to be
    able to, full-text search writes out all it holds in memory before each of them.
    """
    ids: dict[str, int] = {}
    for name in dict.fromkeys(names):
        row = connection.execute(f"SELECT rowid FROM {table} WHERE {column} = ?", (name,)).fetchone()
        if row is None:
            insert = connection.execute(f"INSERT INTO {table}({column}) VALUES(?)", (name,))
            ids[name] = insert.lastrowid or 0
        else:
            ids[name] = row[0]
    return ids


def decode_path(stored: str | bytes | None) -> str:
    """A path as it is on disk, from the form the index stores."""
    if stored.__class__ is str:  # as nearly always
        return intern(stored)
    return intern(os.fsdecode(stored)) if stored is not None else ""


def encode_path(path: str) -> str | bytes:
    """A path in the form the index stores: text, or bytes if it is not valid UTF-8."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return os.fsencode(path)
    return path


QUARTER_MS = 900_000
"""Milliseconds in a quarter of an hour."""
_HOUR_MS = 3_600_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_USUAL_TIME_LENGTH = len("2025-07-01T10:43:45.885Z")
_match_minute = re.compile(r"\d{4}-\d\d-\d\dT\d\d:[0-5]\d:", re.ASCII).fullmatch
_A_YEAR = timedelta(days=366)
# A time zone could move the last days of the calendar out of datetime's range: such times are stored as text.
_LATEST = datetime.max.replace(tzinfo=UTC) - _A_YEAR


@lru_cache(maxsize=1024)  # several tables store the time of the same entry
def encode_time(time: str) -> int | str:
    """A timestamp as the index stores it: milliseconds since 1970 if it has the usual form, else its text.

    >>> encode_time("2025-07-01T10:43:45.885Z"), encode_time("2025-07-01T12:43+02:00")
    (1751366625885, '2025-07-01T12:43+02:00')
    """
    if len(time) == _USUAL_TIME_LENGTH and time[19] == "." and time[23] == "Z" and time.isascii():
        digits = time[17:19] + time[20:23]
        if digits.isdigit() and digits < "6" and (minute := _minute_start_ms(time[:17])) is not None:
            return minute + int(digits)
    return time


def decode_time(stored: int | str) -> str:
    """The timestamp's text, from the form the index stores.

    >>> decode_time(1751366625885)
    '2025-07-01T10:43:45.885Z'
    """
    if isinstance(stored, str):
        return stored
    hour, rest = divmod(stored, _HOUR_MS)
    return f"{_hour_text(hour)}:{rest // 60_000:02}:{rest // 1_000 % 60:02}.{rest % 1_000:03}Z"


def epoch_milliseconds(moment: datetime, *, up: bool = False) -> int:
    """Milliseconds since 1970, rounded down, or up."""
    elapsed = moment - _EPOCH
    return -(-elapsed // timedelta(milliseconds=1)) if up else elapsed // timedelta(milliseconds=1)


@lru_cache(maxsize=4096)
def _minute_start_ms(minute: str) -> int | None:
    """The milliseconds since 1970 at the beginning of a minute, such as `2025-07-01T10:43:`."""
    moment = parse_timestamp(f"{minute}00Z") if _match_minute(minute) else None
    return epoch_milliseconds(moment) if moment is not None and _EPOCH <= moment <= _LATEST else None


@lru_cache(maxsize=4096)
def _hour_text(hour: int) -> str:
    return f"{_EPOCH + timedelta(hours=hour):%Y-%m-%dT%H}"
