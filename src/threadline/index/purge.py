"""Remove every trace of deleted entries from the file of the index.

A refresh deletes the rows of transcripts that are gone, and of those that it reads again from their start. Four things
then remain of them, and a purge removes those:

- Their words in the full-text table, which has no copy of the text. The table itself lists the words of an entry: one
  pass over all of it, at a hundred times the speed of indexing.
- Their words in the vocabulary, and names that nothing refers to any more.
- Bytes in unused parts of the file: only writing the file again (`VACUUM`) removes all of them, because SQLite also
  leaves copies of rows where it moved them from.
- Bytes in the write-ahead log.

A row of the table `meta` says that there is something to remove. It is written in the transaction that deletes rows,
and says which step is next, so a purge that was killed continues with the next refresh. A refresh that deletes nothing
pays nothing.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from time import process_time, time

from threadline import locks
from threadline.errors import Error
from threadline.find import change_time_ns, has_known_prefix, modified_time_ns
from threadline.index.store import (
    FIELDS,
    KNOWN_COLUMNS,
    NEW_SUFFIX,
    change_generation,
    decode_path,
    is_older_version,
    list_indexes,
    open_read_only,
    remove_index,
)
from threadline.index.vocabulary import rebuild_vocabulary, tokenize
from threadline.model.homes import TranscriptFingerprint

_WORDS_STEP, _FILE_STEP, _LOG_STEP = "words", "file", "log"
MAX_BYTES_AT_ONCE = 256 * 1024 * 1024
"""A larger index is not purged in passing, by a command that only wants an answer: that would take long."""
_MERGE_PAGES = 2_000
_BUSY_MS = 300
# A purge that takes long (in CPU seconds) is not repeated at once if an answer is waiting: it may take this
# share of the time.
_LONG_SECONDS = 3.0
_TIME_SHARE = 0.05
_DELETE_WORDS = (
    f"INSERT INTO text(text, rowid, {', '.join(FIELDS)}) VALUES('delete', ?, {', '.join('?' * len(FIELDS))})"
)
_UNUSED_NAMES = {
    "paths": "path_id NOT IN (SELECT path_id FROM file_rows)",
    "tools": "tool_id NOT IN (SELECT tool_id FROM call_rows)",
    "call_sources": "source_id NOT IN (SELECT source_id FROM call_rows)",
    "programs": "program_id NOT IN (SELECT program_id FROM program_rows)",
    "models": "model_id NOT IN (SELECT model_id FROM sightings WHERE model_id IS NOT NULL)",
    "shares": "share_id NOT IN (SELECT share_id FROM charged WHERE share_id IS NOT NULL)",
    "rates": "rate_id NOT IN (SELECT rate_id FROM charged) AND rate_id NOT IN (SELECT rate_id FROM spent)",
}


class _UnstableWords(Exception):
    """A word that SQLite would not find again, such as one that was cut off inside a character."""


def mark_unpurged(connection: sqlite3.Connection) -> None:
    """Note that rows were deleted, in the transaction that deletes them."""
    _set_step(connection, _WORDS_STEP)


def is_purge_due(connection: sqlite3.Connection, meta: Mapping[str, str], *, in_passing: bool) -> bool:
    """Whether something has to be removed now. `in_passing`: somebody waits for an answer, not for the purge."""
    if "unpurged" not in meta:
        return False
    if not in_passing or meta["unpurged"] == _LOG_STEP:
        return True
    seconds, _, ended = meta.get("purged", "0 0").partition(" ")
    is_recent = 0 <= time() - float(ended) < float(seconds) / _TIME_SHARE
    return not is_recent and _file_bytes(connection) <= MAX_BYTES_AT_ONCE


def purge(connection: sqlite3.Connection, *, in_passing: bool = False) -> bool:
    """Remove what is left of deleted entries; outside of a transaction, by the only writer.

    Returns False if only a new index can be free of it.

    Raises:
        sqlite3.Error: the file cannot be written. The next refresh tries again; `in_passing`, nothing is raised.
    """
    meta = dict(connection.execute("SELECT name, value FROM meta"))
    if not is_purge_due(connection, meta, in_passing=in_passing):
        return True
    start = process_time()
    try:
        if meta["unpurged"] == _WORDS_STEP:
            _remove_words(connection)
            rebuild_vocabulary(connection)
            _remove_names(connection)
            _set_step(connection, _FILE_STEP)
        if meta["unpurged"] != _LOG_STEP:
            connection.execute("VACUUM")
            _set_step(connection, _LOG_STEP)
        _empty_log(connection, process_time() - start)
    except _UnstableWords:
        return False
    except sqlite3.OperationalError:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        if not in_passing:
            raise
    return True


def _set_step(connection: sqlite3.Connection, step: str) -> None:
    connection.execute("INSERT OR REPLACE INTO meta VALUES('unpurged', ?)", (step,))


def _file_bytes(connection: sqlite3.Connection) -> int:
    pages, page_size = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
    return int(pages) * int(page_size)


def _remove_words(connection: sqlite3.Connection) -> None:
    """Delete the words of entries that have no row any more, and write the full-text table without them."""
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(
        "CREATE TEMP TABLE deleted_docs AS SELECT id FROM text_docsize WHERE id NOT IN (SELECT entry_id FROM entries)"
    )
    try:
        first, last = connection.execute("SELECT MIN(id), MAX(id) FROM temp.deleted_docs").fetchone()
        if first is not None:
            _collect_words(connection, first, last)
            connection.executemany(_DELETE_WORDS, _words_by_doc(connection))
            connection.execute("DROP TABLE temp.deleted_words")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("DROP TABLE temp.deleted_docs")
    connection.execute("COMMIT")
    _merge_all(connection)


def _collect_words(connection: sqlite3.Connection, first: int, last: int) -> None:
    connection.execute("CREATE VIRTUAL TABLE temp.instances USING fts5vocab('main', 'text', 'instance')")
    # SQLite sorts on disk what does not fit into memory. The order of the words does not matter.
    connection.execute(
        """CREATE TEMP TABLE deleted_words AS
            SELECT doc, col, CAST(group_concat(term, ' ') AS BLOB) AS words FROM temp.instances
            WHERE doc BETWEEN ? AND ? AND doc IN (SELECT id FROM temp.deleted_docs) GROUP BY doc, col""",
        (first, last),
    )
    connection.execute("DROP TABLE temp.instances")


def _words_by_doc(connection: sqlite3.Connection) -> Iterator[tuple[int | str | None, ...]]:
    """Each deleted entry, and its words by field."""
    query = """SELECT id, col, words FROM temp.deleted_docs LEFT JOIN temp.deleted_words ON doc = id ORDER BY id"""
    current: int | None = None
    fields: dict[str, str] = {}
    for doc, field, words in connection.execute(query):
        if doc != current:
            if current is not None:
                yield current, *map(fields.get, FIELDS)
            current, fields = doc, {}
        if field is not None:
            fields[field] = _checked_words(words)
    if current is not None:
        yield current, *map(fields.get, FIELDS)


def _checked_words(words: bytes) -> str:
    try:
        text = words.decode()
    except UnicodeDecodeError:
        raise _UnstableWords from None
    if not text.isascii() and tokenize(text) != text.split(" "):
        raise _UnstableWords
    return text


def _merge_all(connection: sqlite3.Connection) -> None:
    """Merge all segments of the full-text table into one: only then the deleted words are gone from it.

    Some pages at a time, so that the log stays short.
    """
    pages = -_MERGE_PAGES  # a negative number begins a merge of everything
    while True:
        before = connection.total_changes
        connection.execute("INSERT INTO text(text, rank) VALUES('merge', ?)", (pages,))
        if connection.total_changes - before < 2:  # noqa: PLR2004 - as SQLite documents it
            return
        pages = _MERGE_PAGES


def _remove_names(connection: sqlite3.Connection) -> None:
    """Delete the paths, tools and models that only deleted entries named."""
    connection.execute("BEGIN IMMEDIATE")
    for table, condition in _UNUSED_NAMES.items():
        connection.execute(f"DELETE FROM {table} WHERE {condition}")  # noqa: S608 - our own names
    # Readers in other processes have cached the vocabulary.
    change_generation(connection)
    connection.execute("COMMIT")


def _empty_log(connection: sqlite3.Connection, seconds: float) -> None:
    """Move the log into the file and cut it off. If a reader still needs it, the next refresh tries again."""
    (timeout,) = connection.execute("PRAGMA busy_timeout").fetchone()
    connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
    try:
        is_busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    finally:
        connection.execute(f"PRAGMA busy_timeout = {timeout}")
    if not is_busy:
        connection.execute("DELETE FROM meta WHERE name IN ('unpurged', 'purged')")
        if seconds > _LONG_SECONDS:
            connection.execute("INSERT INTO meta VALUES('purged', ?)", (f"{seconds:.1f} {time():.0f}",))


def remove_stale_indexes(folder: Path, current: Path | None = None) -> None:
    """Remove the indexes in a folder that contain transcripts or lines which are gone, and those of older versions.

    They are those of other sets of homes than the `current` index, and are built again when they are needed. An index
    that another process is refreshing stays: that refresh removes what is gone.
    """
    for path in list_indexes(folder):
        with suppress(OSError, locks.LockBusy), locks.hold_lock(Path(f"{path}.lock")):
            remove_index(path.with_name(path.name + NEW_SUFFIX))  # left by a process that was killed
            if path != current and (is_older_version(path) or not path.exists() or _has_old_content(path)):
                remove_index(path)


def _has_old_content(index: Path) -> bool:
    """Whether an index contains transcripts that are gone, or lines that are no longer in them."""
    select = f"SELECT {KNOWN_COLUMNS} FROM transcripts"  # noqa: S608 - our own names
    try:
        with closing(open_read_only(index)) as connection:
            if connection.execute("SELECT 1 FROM meta WHERE name = 'unpurged'").fetchone() is not None:
                return True
            known = [
                TranscriptFingerprint(decode_path(path), *columns) for path, *columns in connection.execute(select)
            ]
        return any(map(_is_rewritten, known))
    except (Error, sqlite3.Error, OSError):
        return True


def _is_rewritten(known: TranscriptFingerprint) -> bool:
    """Whether a transcript no longer starts with the lines that were read.

    Raises:
        OSError: it cannot be read.
    """
    status = os.stat(known.path)  # noqa: PTH116 - thousands of files
    if (status.st_size, modified_time_ns(status), change_time_ns(status)) == (
        known.size,
        known.mtime_ns,
        known.ctime_ns,
    ):
        return False
    return not has_known_prefix(known.path, status, known)
