"""All that an index tells, table by table as the schema has them, so that two that were made in other orders compare.

Numbers depend on the order of reading, and are replaced by what they stand for. A table or column that is not named
here is compared as it is: what is added to the schema is held to the same law without a word here.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from threadline.find import homes
from threadline.index import FIELDS, TABLES, VIEWS, Vocabulary, refresh_index
from threadline.index.sightings import StoredSightings
from threadline.index.state import decode_state

Content = dict[str, list[Any]]

_NAMED = ("models", "rates", "shares", "tools", "paths")
_NAMES = "a name may stay that nothing has any more: it is compared where it is used"
NOT_COMPARED = {
    **dict.fromkeys(_NAMED, _NAMES),
    "terms": "words of entries that are gone may stay; that none is missing is asked instead",
    "text": "has no rows to be listed: every word is compared with where it stands",
    "sightings": "one message is several rows where it was read in parts: what they come to is compared",
    "owned": "what was asked for along the way, and not what it was asked for",
}
"""Tables that are not compared row by row, and why."""

NOT_TOLD = {
    "meta": ("next_entry", "generation", "terms_to"),
}
"""Names of `meta` that count what was done to the index, not what is in it."""

_COUNTED = {
    "problems": {"problem_id"},
    # Whether it was written to just before it was looked at is a matter of seconds; states are compared by themselves.
    "transcripts": {"racy", "state"},
}
"""Columns that are left out."""


def content(index: Path) -> Content:
    """All that an index tells."""
    with closing(sqlite3.connect(f"{index.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)) as connection:
        connection.execute("BEGIN")  # all of it as it is at one moment
        reading = _Reading(connection)
        made = {name: reading.rows(name) for name in (*TABLES, *VIEWS) if name not in NOT_COMPARED}
        made["states"] = reading.states()
        made["sightings"] = reading.sightings()
        words = reading.words()
        made["text"] = words
        made["terms"] = reading.words_not_known({word for word, *_ in words})
        return made


def anew(home: Path, folder: Path) -> Content:
    """The content of an index that is made from nothing."""
    path = folder / "anew.sqlite"
    path.unlink(missing_ok=True)
    refresh_index(path, homes(home))
    return content(path)


def differences(content: Content, other: Content) -> dict[str, Any]:
    """What is told by only one of them: nothing, if they are the same."""
    return {
        name: {
            "more": [row for row in content[name] if row not in other[name]],
            "fewer": [row for row in other[name] if row not in content[name]],
            "rows": (len(content[name]), len(other[name])),
        }
        for name in content
        if content[name] != other[name]
    }


def _drop(some: dict[str, Any], names: set[str]) -> None:
    for name in names & some.keys():
        del some[name]


class _Reading:
    """One index, while it is read."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._homes = self._named("SELECT home_id, path FROM homes")
        self._projects = self._named("SELECT project_id, home_id, folder FROM projects", self._homes)
        self._transcripts = self._named("SELECT transcript_id, path FROM transcripts")
        # A line may hold several entries: which of them it is, is a part of its place.
        self._entries = self._named(
            "SELECT entry_id, transcript_id, line,"
            " ROW_NUMBER() OVER (PARTITION BY transcript_id, line ORDER BY entry_id) FROM entries",
            self._transcripts,
        )
        self._origins = self._named(
            f"SELECT origin_id, {', '.join(self._columns('origins')[1:])} FROM origins",  # noqa: S608 - our own names
            self._transcripts,
        )
        entry = self._entries.get
        self._meanings: dict[str, Callable[[Any], Any]] = {
            "home_id": self._homes.get,
            "project_id": self._projects.get,
            "transcript_id": self._transcripts.get,
            "entry_id": entry,
            "result_entry_id": entry,
            "origin_id": self._origins.get,
            **{self._columns(name)[0]: self._named(f"SELECT * FROM {name}").get for name in ("message_ids", *_NAMED)},  # noqa: S608 - our own names
            "sharers": lambda told: sorted(repr(self._transcripts.get(int(one))) for one in told.split()),
        }

    def states(self) -> list[Any]:
        """What the lines of each transcript come to.

        Of calls that are told again, more or less may be remembered: not who waits for what the index knows, nor when
        a list was told last. What comes of it is compared where it is written down.
        """
        known: dict[int, set[str]] = {}
        answered: dict[int, set[str]] = {}
        asked = "SELECT transcript_id, call, result_entry_id FROM call_rows JOIN entries USING(entry_id)"
        for number, call, result in self._connection.execute(asked):
            known.setdefault(number, set()).add(call)
            if result is not None:
                answered.setdefault(number, set()).add(call)
        made = []
        for number, path, packed in self._connection.execute("SELECT transcript_id, path, state FROM transcripts"):
            state = decode_state(packed)
            if state.work is not None:
                _drop(state.work.calls.loose, known.get(number, set()))
                _drop(state.work.calls.waiting, answered.get(number, set()))
                state.work.lists.times.clear()
            made.append((path, msgspec.to_builtins(state)))
        return sorted(made, key=repr)

    def _columns(self, table: str) -> list[str]:
        return [row[1] for row in self._connection.execute(f"PRAGMA table_info({table})")]

    def _named(self, asked: str, of: dict[int, Any] | None = None) -> dict[int, Any]:
        """What numbers stand for; where that begins with another number, `of` has what that one stands for."""
        return {
            number: (of.get(first, f"no longer there: {first}") if of is not None else first, *rest)
            for number, first, *rest in self._connection.execute(asked)
        }

    def rows(self, table: str) -> list[Any]:
        """The rows of a table or view."""
        columns = self._columns(table)
        left_out = _COUNTED.get(table, set())
        kept = [(at, self._meanings.get(name)) for at, name in enumerate(columns) if name not in left_out]
        names = NOT_TOLD.get(table, ())
        asked = self._connection.execute(f"SELECT * FROM {table}")  # noqa: S608 - our own names
        made = (
            tuple(row[at] if means is None or row[at] is None else (means(row[at]) or "nothing") for at, means in kept)
            for row in asked
            if row[0] not in names
        )
        return sorted(made, key=repr)

    def sightings(self) -> list[Any]:
        """What transcripts tell of each message, joined where it was read in parts."""
        seen = StoredSightings(self._connection)
        return sorted(map(repr, self._sightings(seen)))

    def _sightings(self, seen: StoredSightings) -> Iterator[tuple[Any, ...]]:
        for _number, key, some in seen.groups("(SELECT DISTINCT message_id FROM sightings)"):
            for one in some:
                told = {name: getattr(one, name) for name in one.__struct_fields__}
                told |= {"origin_number": None, "origin": self._origins.get(one.origin_number)}
                yield key, sorted(told.items(), key=str)

    def words(self) -> list[Any]:
        """Every word of full text with each place where it stands, as far as its entry is still there."""
        self._connection.execute("CREATE VIRTUAL TABLE temp.placed USING fts5vocab('main', 'text', 'instance')")
        asked = self._connection.execute("SELECT CAST(term AS BLOB), col, offset, doc FROM temp.placed")
        live = ((word, FIELDS.index(field), at, self._entries.get(entry)) for word, field, at, entry in asked)
        return sorted(row for row in live if row[-1] is not None)

    def words_not_known(self, words: set[bytes]) -> list[Any]:
        """The words of full text that the vocabulary lacks: none."""
        vocabulary = Vocabulary(self._connection)
        runs = self._connection.execute("SELECT words FROM terms").fetchall()
        known = {word for (run,) in runs for word in run.split(b"\n")}
        return [] if vocabulary.is_whole and words <= known else ["not whole", *sorted(words - known)]
