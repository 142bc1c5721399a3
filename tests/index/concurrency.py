"""Processes that use one index concurrently: `python -m tests.index.concurrency ROLE INDEX HOME …`.

A writer appends to transcripts, and counts in a file what it has begun and completed. The n-th reply of a transcript
has n tokens of output. So every reader can tell whether an answer is correct for some moment between before and after.
"""

from __future__ import annotations

import json
import mmap
import random
import sqlite3
import struct
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from tests.transcripts import Pen, lines, prompt, reply, transcript

import threadline
from threadline import locks
from threadline.errors import IndexBusy
from threadline.find import homes
from threadline.index import open_read_only, rebuild_index, refresh_index, store
from threadline.model.ledger import Row

SESSIONS = 4
_COUNTER = struct.Struct("<2q")
_LINES_PER_REPLY = 2
_PAUSE = 0.02  # otherwise some processes would starve the others on two cores


def session(number: int) -> str:
    """The id of a session."""
    return f"5e551011-0000-4000-8000-{number:012d}"


def transcript_path(home: Path, number: int) -> Path:
    """The path of a session's transcript."""
    return home / "projects" / ("-work-app", "-work-lib")[number % 2] / f"{session(number)}.jsonl"


def word(number: int, count: int) -> str:
    """A word that only one reply and its copies contain."""
    return f"w{number}x{count}"


class Counters:
    """How many replies of each session were begun and completed, in a shared file."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(bytes(_COUNTER.size * SESSIONS))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 0)

    def begun(self, number: int) -> int:
        """The number of replies that may exist."""
        return int(struct.unpack_from("<q", self._map, _COUNTER.size * number)[0])

    def done(self, number: int) -> int:
        """The number of replies that certainly exist."""
        return int(struct.unpack_from("<q", self._map, _COUNTER.size * number + 8)[0])

    def begin(self, number: int) -> None:
        """Count a reply that is begun."""
        struct.pack_into("<q", self._map, _COUNTER.size * number, self.begun(number) + 1)

    def end(self, number: int) -> None:
        """Count a reply that is complete."""
        struct.pack_into("<q", self._map, _COUNTER.size * number + 8, self.done(number) + 1)


class Writer:
    """Writes to all sessions in turn, and to a fork of the first session."""

    def __init__(self, home: Path, counters: Counters) -> None:
        self._home = home
        self._counters = counters
        self._pens = [Pen(session(number)) for number in range(SESSIONS)]
        self._random = random.Random(3)  # noqa: S311 - seeded, so that a failure comes again
        self._fork = transcript_path(home, SESSIONS)
        for number in range(SESSIONS):
            transcript_path(home, number).parent.mkdir(parents=True, exist_ok=True)

    def write(self) -> None:
        """Write a prompt and its reply, sometimes in two pieces, and copy them if it is the first session."""
        number = self._random.randrange(SESSIONS)
        count = self._counters.begun(number) + 1
        data = lines(
            *transcript(
                prompt(f"ask {word(number, count)}"),
                reply(f"say {word(number, count)}", output=count),
                pen=self._pens[number],
            )
        )
        self._counters.begin(number)
        cut = self._random.randrange(len(data)) if self._random.random() < 1 / 4 else len(data)
        for piece in (data[:cut], data[cut:]):
            with transcript_path(self._home, number).open("ab", buffering=0) as file:
                file.write(piece)
        self._counters.end(number)
        if not number:
            with self._fork.open("ab", buffering=0) as file:
                file.write(data.replace(session(0).encode(), session(SESSIONS).encode()))


def _check_message(error: IndexBusy, index: Path) -> None:
    assert str(error) == f"Another threadline is refreshing {str(index)!r}; wait for it, or try again."


def run_refreshes(index: Path, home: Path, seconds: float, wait_ms: int, rebuilds: int) -> None:
    """Refresh repeatedly, with a rebuild every few times. IndexBusy is not an error."""
    store._BUSY_TIMEOUT_MS = wait_ms
    locks.TIMEOUT_SECONDS = wait_ms / 1000
    done = busy = 0
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if rebuilds and done % rebuilds == rebuilds - 1:
                rebuild_index(index, homes(home))
            else:
                refresh_index(index, homes(home))
            done += 1
        except IndexBusy as error:
            _check_message(error, index)
            busy += 1
        time.sleep(_PAUSE)
    sys.stdout.write(json.dumps({"done": done, "busy": busy}))


class IndexReader:
    """Reads the index as it is, and never waits for a refresh."""

    def __init__(self, index: Path, counters: Counters) -> None:
        self._index = index
        self._counters = counters
        self._last = [0] * SESSIONS
        self._random = random.Random()  # noqa: S311 - any will do

    def check(self) -> None:
        """Check everything that must be consistent within one state."""
        with closing(open_read_only(self._index)) as connection:
            connection.execute("BEGIN")
            self._check_entries(connection)
            self._check_charges(connection)
            self._check_totals(connection)
            if self._random.random() < 1 / 20:
                assert connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",)

    def _check_entries(self, connection: sqlite3.Connection) -> None:
        rows = connection.execute(
            "SELECT t.session, t.lines, COUNT(e.entry_id), t.read_to, COALESCE(SUM(e.length), 0)"
            " FROM transcripts t LEFT JOIN entries e USING(transcript_id) GROUP BY transcript_id"
        ).fetchall()
        assert all(lines == entries and read_to == size for _, lines, entries, read_to, size in rows), rows
        for name, _lines, entries, _read_to, _size in rows:
            number = int(name[-12:])
            if number == SESSIONS:
                continue
            count = entries // _LINES_PER_REPLY
            assert self._last[number] <= count <= self._counters.begun(number), (number, count, self._last)
            self._last[number] = count
            if count:
                term = word(number, self._random.randint(1, count))
                matches = connection.execute(
                    "SELECT COUNT(*) FROM text JOIN said ON said.entry_id = text.rowid"
                    " WHERE text MATCH ? AND session = ?",
                    (term, name),
                ).fetchone()
                assert matches == (_LINES_PER_REPLY,), (term, matches)

    def _check_charges(self, connection: sqlite3.Connection) -> None:
        for name, count, messages, output in connection.execute(
            "SELECT session, COUNT(*), COUNT(DISTINCT message), SUM(output) FROM charges"
            " WHERE transcript_id IN (SELECT transcript_id FROM transcripts) GROUP BY session"
        ):
            assert count == messages, name
            if int(name[-12:]) not in {0, SESSIONS}:  # either of these may own a shared message
                assert output == count * (count + 1) // 2, (name, count, output)
        # Every message that is not stale is charged once for all its sightings, and nothing else is charged.
        uncharged = connection.execute(
            "SELECT COUNT(*) FROM (SELECT DISTINCT message_id FROM sightings EXCEPT SELECT message_id FROM stale"
            " EXCEPT SELECT message_id FROM charged)"
        ).fetchone()
        unseen = connection.execute(
            "SELECT COUNT(*) FROM (SELECT message_id FROM charged EXCEPT SELECT message_id FROM stale"
            " EXCEPT SELECT message_id FROM sightings)"
        ).fetchone()
        twice = connection.execute("SELECT message FROM charges GROUP BY message HAVING COUNT(*) > 1").fetchall()
        assert (uncharged, unseen, twice) == ((0,), (0,), [])

    def _check_totals(self, connection: sqlite3.Connection) -> None:
        query = "SELECT COALESCE(SUM(output), 0), COALESCE(SUM({}), 0) FROM {}"
        totals = connection.execute(query.format("1", "charged")).fetchone()
        assert totals == connection.execute(query.format("charges", "spent")).fetchone()


class ArchiveReader:
    """Queries the archive, which refreshes the index, so that answers are current."""

    def __init__(self, index: Path, home: Path, counters: Counters) -> None:
        self._index = index
        self._home = home
        self._counters = counters
        self._random = random.Random()  # noqa: S311 - any will do
        self.busy = 0

    def check(self) -> None:
        """Check sessions, spending and a search."""
        before = [self._counters.done(number) for number in range(SESSIONS)]
        with threadline.open(self._home, index=self._index) as archive:
            entries = {str(session.id): session.entries for session in archive.sessions().sessions}
            spent = {row.keys["session"]: row for row in archive.ledger().by("session")}
            number = self._random.randrange(SESSIONS)
            term = word(number, self._random.randint(1, max(1, before[number])))
            try:
                hits = archive.search(term, limit=None, every=True).hits
            except IndexBusy as error:
                _check_message(error, self._index)
                self.busy += 1
                hits = None
        after = [self._counters.begun(number) for number in range(SESSIONS)]
        for other in range(1, SESSIONS):
            count = entries.get(session(other), 0) // _LINES_PER_REPLY
            assert before[other] <= count <= after[other], (other, before, count, after)
            row = spent.get(session(other), Row())
            charges, output = row.charges, row.output
            assert before[other] <= charges <= after[other], (other, before, charges, after)
            assert output == charges * (charges + 1) // 2, (other, charges, output)
        outputs = [spent[name].output for name in (session(0), session(SESSIONS)) if name in spent]
        allowed = [count * (count + 1) // 2 for count in range(before[0], after[0] + 1)]
        assert sum(outputs) in allowed, (outputs, before[0], after[0])
        if hits is not None and before[number]:
            assert {str(hit.session) for hit in hits} >= {session(number)} if number else hits, (term, hits)


def run_checks(check: Callable[[], None], seconds: float, busy: Callable[[], int] = lambda: 0) -> None:
    """Check repeatedly."""
    count = 0
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        check()
        count += 1
        time.sleep(_PAUSE)
    sys.stdout.write(json.dumps({"done": count, "busy": busy()}))


def main(role: str, index: Path, home: Path, counters: Path, seconds: float, *options: str) -> None:
    """Run a role for the given number of seconds."""
    if role == "refresh":
        run_refreshes(index, home, seconds, *map(int, options))
    elif role == "read":
        run_checks(IndexReader(index, Counters(counters)).check, seconds)
    else:
        reader = ArchiveReader(index, home, Counters(counters))
        run_checks(reader.check, seconds, lambda: reader.busy)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4]), float(sys.argv[5]), *sys.argv[6:])
