"""The vocabulary: every word of full text once, so that words are found by any part of them.

Full text finds words by their beginnings only. What an expression spells out may stand in the middle of one, and a
misspelt word is like one that is there: both are looked for here, in a few megabytes that are searched as they lie.
Words of entries that are gone may stay; none that full text has is ever missing while `is_whole` holds.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from itertools import chain
from pathlib import Path
from threading import Thread

from threadline.index.tables.table import Topic
from threadline.index.words import tokens

VOCABULARY = Topic(
    tables={
        "terms": """CREATE TABLE terms(
        run INTEGER PRIMARY KEY, -- the run's number
        words BLOB NOT NULL -- words in their order, each with the end of a line before and after it
    )""",
    },
    private=("terms",),
)

_RUN = 1024 * 1024
_MANY = 20_000
# Above this share of what is there, asking full text for all words is quicker than to take new text apart.
_SHARE = 12
# As much as full text keeps of a word: what stood behind that may be anything.
_CUT_AT = 32_000
_COVERED = "SELECT name, CAST(value AS INTEGER) FROM meta WHERE name IN ('next_entry', 'terms_to')"


def _is_whole(connection: sqlite3.Connection) -> bool:
    known: dict[str, int] = dict(connection.execute(_COVERED).fetchall())
    return known.get("terms_to", -1) == known.get("next_entry")


class Vocabulary:
    """The words of an index, to be asked. Where it is not whole, it knows nothing."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.is_whole = _is_whole(connection)
        self._runs: list[bytes] | None = None

    def _read(self) -> list[bytes]:
        if self._runs is None:
            self._runs = [words for (words,) in self._connection.execute("SELECT words FROM terms")]
        return self._runs

    def containing(self, part: str, most: int, *, ends: bool = False) -> list[str] | None:
        """The words that have a part in them, or with `ends` at their end; None where there are more than `most`.

        A word that full text has cut off may have gone on with anything: it is always among them.
        """
        looked_for = part.encode() + (b"\n" if ends else b"")
        found: set[bytes] = set()
        for run in self._read():
            for word in chain(_long(run), _around(run, looked_for)):
                found.add(word)
                if len(found) > most:
                    return None
        return sorted(word.decode(errors="ignore") for word in found)

    def beginning(self, start: str) -> Iterator[str]:
        """The words that begin so; some may come twice."""
        looked_for = b"\n" + start.encode()
        for run in self._read():
            first = run.find(looked_for)
            if first >= 0:
                end = run.find(b"\n", run.rfind(looked_for) + 1)
                yield from run[first + 1 : end].decode(errors="ignore").split("\n")


def _around(run: bytes, part: bytes) -> Iterator[bytes]:
    """Each line of a run that has a part in it, once."""
    at = run.find(part)
    while at >= 0:
        end = run.find(b"\n", at)
        yield run[run.rfind(b"\n", 0, at) + 1 : end]
        at = run.find(part, end)


def _long(run: bytes) -> Iterator[bytes]:
    """The words that are so long that full text may have cut them off."""
    at = 0
    while (end := run.rfind(b"\n", at, at + _CUT_AT)) >= 0 and end + 1 < len(run):
        if end > at:
            at = end
            continue
        end = run.find(b"\n", at + 1)
        yield run[at + 1 : end]
        at = end


class Noting:
    """Keeps the vocabulary while entries are written: `add` what they say, `commit` with them, and see to `finishing`.

    A refresh that is killed leaves a vocabulary that is not whole, and the next one makes it so.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._keeps_up = _is_whole(connection)
        self._texts = 0
        self._all = int(connection.execute("SELECT value FROM meta WHERE name = 'next_entry'").fetchone()[0])
        self._covered = self._all
        self._words: set[str] = set()

    def add(self, texts: Iterable[Iterable[str | None]]) -> None:
        """What entries say in each field, as it is handed to full text."""
        for said in texts:
            self._texts += 1
            if self._texts * _SHARE > self._all:
                self._keeps_up = False
            if not self._keeps_up:
                return
            for text in filter(None, said):
                self._words.update(tokens(text))

    def commit(self, next_entry: int) -> None:
        """Write the words down, in the transaction that their entries are written in."""
        if not self._keeps_up:
            return
        if self._words:
            self._merge({word.encode() for word in self._words})
            self._words.clear()
        if next_entry != self._covered:
            _cover(self._connection, next_entry)
            self._covered = next_entry

    def _merge(self, words: set[bytes]) -> None:
        """Add a run, together with those before it that are no longer: so there are few, and each grows seldom."""
        last = "SELECT run, length(words) FROM terms ORDER BY run DESC LIMIT 1"
        made = _joined(words)
        while (run := self._connection.execute(last).fetchone()) is not None and run[1] < min(2 * len(made), _RUN):
            (old,) = self._connection.execute("SELECT words FROM terms WHERE run = ?", run[:1]).fetchone()
            self._connection.execute("DELETE FROM terms WHERE run = ?", run[:1])
            words.update(old[1:-1].split(b"\n"))
            made = _joined(words)
        self._connection.execute("INSERT INTO terms(words) VALUES(?)", (made,))

    @contextmanager
    def finishing(self, beside: Path | None) -> Iterator[None]:
        """Make the vocabulary whole where it could not keep up; outside of a transaction.

        That takes a second or two for a large index. Of one at `beside` that nobody else sees, words are gathered by
        another thread while what is inside of the `with` is done: SQLite lets Python go on meanwhile.
        """
        if self._keeps_up:
            yield
        elif beside is None:
            rebuild(self._connection)
            yield
        else:
            self._connection.execute("PRAGMA journal_mode = WAL")  # one writes while another reads
            gathering = _Gathering(beside)
            gathering.start()
            try:
                yield
            finally:
                gathering.join()
            if gathering.failed is not None:
                raise gathering.failed
            write(self._connection, gathering.runs)
        self._keeps_up = True


class _Gathering(Thread):
    """Gathers the words of an index; `failed` says why it could not."""

    def __init__(self, index: Path) -> None:
        super().__init__(daemon=True)
        self._index = index
        self.runs: list[bytes] = []
        self.failed: sqlite3.Error | None = None

    def run(self) -> None:
        """Gather them."""
        try:
            with closing(sqlite3.connect(self._index, isolation_level=None)) as connection:
                self.runs += all_runs(connection)
        except sqlite3.Error as error:
            self.failed = error


def rebuild(connection: sqlite3.Connection) -> None:
    """Make the vocabulary anew of all that full text has."""
    write(connection, list(all_runs(connection)))


def all_runs(connection: sqlite3.Connection) -> Iterator[bytes]:
    """All that full text has, in runs; outside of a transaction."""
    # It cannot be made in a transaction, nor dropped in one: other statements may still read.
    connection.execute("CREATE VIRTUAL TABLE IF NOT EXISTS temp.all_words USING fts5vocab('main', 'text', 'row')")
    asked = connection.execute("SELECT CAST(term AS BLOB) FROM temp.all_words")
    words: list[bytes] = []
    size = 0
    while some := asked.fetchmany(_MANY):
        words += (word for (word,) in some)
        size += sum(map(len, words[-len(some) :]))
        if size > _RUN:
            yield _joined(words)
            words, size = [], 0
    yield _joined(words)
    connection.execute("DROP TABLE temp.all_words")


def write(connection: sqlite3.Connection, runs: Iterable[bytes]) -> None:
    """Write down a vocabulary that is whole."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute("DELETE FROM terms")
        connection.executemany("INSERT INTO terms(words) VALUES(?)", ((run,) for run in runs))
        _cover(connection, connection.execute("SELECT value FROM meta WHERE name = 'next_entry'").fetchone()[0])
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _cover(connection: sqlite3.Connection, next_entry: int | str) -> None:
    connection.execute("INSERT OR REPLACE INTO meta VALUES('terms_to', ?)", (str(next_entry),))


def _joined(words: Iterable[bytes]) -> bytes:
    return b"\n" + b"".join(word + b"\n" for word in sorted(words))
