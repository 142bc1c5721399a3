"""The content of an index, table by table, in a form that does not depend on the order in which it was built.

Ids depend on the order of reading, and are replaced by what they refer to. Tables and columns that are not named here
are compared as they are, so that additions to the schema are covered automatically.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec

from threadline.find import homes
from threadline.index import FIELDS, TABLES, VIEWS, Index, Vocabulary, refresh_index
from threadline.index.rows.state import decode_state
from threadline.index.sightings import StoredSightings

Content = dict[str, list[Any]]

_NAME_TABLES = ("models", "rates", "shares", "tools", "paths", "call_sources", "programs")
_REASON = "an unused name may remain: names are compared where they are used"
NOT_COMPARED = {
    **dict.fromkeys(_NAME_TABLES, _REASON),
    "terms": "depends on the order of reading; checked instead: it has the words of the full text, and no others",
    "text": "has no rows to list: every word is compared with its positions",
    "sightings": "a message that was read in parts has several rows: the joined sightings are compared",
    "owned": "an intermediate result; the final result is compared",
}
"""Tables that are not compared row by row, and why."""

COUNTERS = {
    "meta": ("next_entry", "generation", "terms_to", "leaves_to"),
}
"""Names in `meta` that count operations on the index and not its content."""

_LEFT_OUT = {
    "problems": {"problem_id"},
    # Whether a file was written just before it was read is a matter of seconds. States are compared separately.
    "transcripts": {"racy", "state"},
}
"""Columns that are not compared."""


def content(index: Path) -> Content:
    """The content of an index. A question completes its vocabulary, so that later refreshes have to update it."""
    with Index.open(index) as opened:
        opened.vocabulary.containing("a", 0)
    with closing(sqlite3.connect(f"{index.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)) as connection:
        connection.execute("BEGIN")  # read everything in one state
        reader = _ContentReader(connection)
        tables = {name: reader.rows(name) for name in (*TABLES, *VIEWS) if name not in NOT_COMPARED}
        tables["states"] = reader.states()
        tables["sightings"] = reader.sightings()
        words = reader.words()
        tables["text"] = words
        tables["terms"] = reader.vocabulary_differences({word for word, *_ in words})
        return tables


@contextmanager
def without_secure_delete() -> Iterator[None]:
    """SQLite as most systems build it: deleted rows stay in the file. Debian's overwrites them."""

    def connect(*arguments: Any, **named: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = original(*arguments, **named)
        connection.execute("PRAGMA secure_delete = 0")
        return connection

    original = sqlite3.connect
    with patch.object(sqlite3, "connect", connect):
        yield


def rebuilt_content(home: Path, folder: Path) -> Content:
    """The content of an index that is built from scratch."""
    path = folder / "rebuilt.sqlite"
    path.unlink(missing_ok=True)
    refresh_index(path, homes(home))
    return content(path)


def differences(content: Content, other: Content) -> dict[str, Any]:
    """The rows that only one of them has. Empty if they are equal."""
    return {
        name: {
            "more": [row for row in content[name] if row not in other[name]],
            "fewer": [row for row in other[name] if row not in content[name]],
            "rows": (len(content[name]), len(other[name])),
        }
        for name in content
        if content[name] != other[name]
    }


def _drop(mapping: dict[str, Any], names: set[str]) -> None:
    for name in names & mapping.keys():
        del mapping[name]


class _ContentReader:
    """Reads the content of one index."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._homes = self._names_by_id("SELECT home_id, path FROM homes")
        self._projects = self._names_by_id("SELECT project_id, home_id, folder FROM projects", self._homes)
        self._transcripts = self._names_by_id("SELECT transcript_id, path FROM transcripts")
        # A line may contain several entries, so the position within the line is a part of the place.
        self._entries = self._names_by_id(
            "SELECT entry_id, transcript_id, line,"
            " ROW_NUMBER() OVER (PARTITION BY transcript_id, line ORDER BY entry_id) FROM entries",
            self._transcripts,
        )
        self._origins = self._names_by_id(
            f"SELECT origin_id, {', '.join(self._columns('origins')[1:])} FROM origins",  # noqa: S608 - our own names
            self._transcripts,
        )
        entry = self._entries.get
        self._meanings: dict[str, Callable[[Any], Any]] = {
            "home_id": self._homes.get,
            "project_id": self._projects.get,
            "folder_id": self._projects.get,
            "transcript_id": self._transcripts.get,
            "entry_id": entry,
            "result_entry_id": entry,
            "origin_id": self._origins.get,
            **{
                self._columns(name)[0]: self._names_by_id(f"SELECT * FROM {name}").get  # noqa: S608 - our own names
                for name in ("message_ids", *_NAME_TABLES)
            },
            "sharers": lambda ids: sorted(repr(self._transcripts.get(int(number))) for number in ids.split()),
        }

    def states(self) -> list[Any]:
        """The state of each transcript.

        Of calls that are repeated, more or less may be remembered: not which calls with a known result are waiting, nor
        when a list was last written. The results are compared in their tables.
        """
        calls: dict[int, set[str]] = {}
        answered: dict[int, set[str]] = {}
        query = "SELECT transcript_id, call, result_entry_id FROM call_rows JOIN entries USING(entry_id)"
        for number, call, result in self._connection.execute(query):
            calls.setdefault(number, set()).add(call)
            if result is not None:
                answered.setdefault(number, set()).add(call)
        states = []
        for number, path, encoded in self._connection.execute("SELECT transcript_id, path, state FROM transcripts"):
            state = decode_state(encoded)
            if state.work is not None:
                _drop(state.work.calls.loose, calls.get(number, set()))
                _drop(state.work.calls.waiting, answered.get(number, set()))
                state.work.lists.times.clear()
            states.append((path, msgspec.to_builtins(state)))
        return sorted(states, key=repr)

    def _columns(self, table: str) -> list[str]:
        return [row[1] for row in self._connection.execute(f"PRAGMA table_info({table})")]

    def _names_by_id(self, query: str, parents: dict[int, Any] | None = None) -> dict[int, Any]:
        """Map ids to what they refer to. If that starts with another id, `parents` maps that one."""
        return {
            number: (parents.get(first, f"deleted: {first}") if parents is not None else first, *rest)
            for number, first, *rest in self._connection.execute(query)
        }

    def rows(self, table: str) -> list[Any]:
        """The rows of a table or view."""
        columns = self._columns(table)
        left_out = _LEFT_OUT.get(table, set())
        compared = [(at, self._meanings.get(name)) for at, name in enumerate(columns) if name not in left_out]
        names = COUNTERS.get(table, ())
        cursor = self._connection.execute(f"SELECT * FROM {table}")  # noqa: S608 - our own names
        rows = (
            tuple(
                row[at] if resolve is None or row[at] is None else (resolve(row[at]) or "nothing")
                for at, resolve in compared
            )
            for row in cursor
            if row[0] not in names
        )
        return sorted(rows, key=repr)

    def sightings(self) -> list[Any]:
        """The sightings of each message, joined if it was read in parts."""
        stored = StoredSightings(self._connection)
        return sorted(map(repr, self._sightings(stored)))

    def _sightings(self, stored: StoredSightings) -> Iterator[tuple[Any, ...]]:
        for _number, key, sightings in stored.groups("(SELECT DISTINCT message_id FROM sightings)"):
            for sighting in sightings:
                fields = {name: getattr(sighting, name) for name in sighting.__struct_fields__}
                fields |= {"origin_number": None, "origin": self._origins.get(sighting.origin_number)}
                yield key, sorted(fields.items(), key=str)

    def words(self) -> list[Any]:
        """Every word of the full text with its positions. Words of deleted entries have the entry "deleted"."""
        self._connection.execute("CREATE VIRTUAL TABLE temp.placed USING fts5vocab('main', 'text', 'instance')")
        cursor = self._connection.execute("SELECT CAST(term AS BLOB), col, offset, doc FROM temp.placed")
        rows = (
            (word, FIELDS.index(field), at, self._entries.get(entry, ("deleted", entry)))
            for word, field, at, entry in cursor
        )
        return sorted(rows, key=repr)

    def vocabulary_differences(self, words: set[bytes]) -> list[Any]:
        """The words that only the full text or only the vocabulary has. There should be none."""
        runs = self._connection.execute("SELECT words FROM terms").fetchall()
        known = {word for (run,) in runs for word in run.split(b"\n")}
        is_whole = Vocabulary(self._connection, Path("missing")).is_whole
        return [] if is_whole and words == known - {b""} else ["not equal", *sorted(words ^ known)]
