"""Those that use one index at once, each a process of its own: `python -m tests.index.together ROLE INDEX HOME …`.

One writes to transcripts, and counts in a file what it has begun and what it has done. Of every transcript the first
replies are known by their counts: the n-th has n tokens of output. So whoever asks can tell whether an answer is right
for some moment between before and after, or for none.
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
_EACH = struct.Struct("<2q")
_LINES_EACH = 2
_PAUSE = 0.02  # those who never rest would leave the others nothing of two cores


def session(number: int) -> str:
    """The id of a session."""
    return f"5e551011-0000-4000-8000-{number:012d}"


def place(home: Path, number: int) -> Path:
    """Where its transcript lies."""
    return home / "projects" / ("-work-app", "-work-lib")[number % 2] / f"{session(number)}.jsonl"


def word(number: int, count: int) -> str:
    """A word that one reply has, and its copies."""
    return f"w{number}x{count}"


class Counters:
    """How many replies of each session were begun and done, in a file that all can see."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(bytes(_EACH.size * SESSIONS))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 0)

    def begun(self, number: int) -> int:
        """How many may be there."""
        return int(struct.unpack_from("<q", self._map, _EACH.size * number)[0])

    def done(self, number: int) -> int:
        """How many are there for sure."""
        return int(struct.unpack_from("<q", self._map, _EACH.size * number + 8)[0])

    def begin(self, number: int) -> None:
        """One more is begun."""
        struct.pack_into("<q", self._map, _EACH.size * number, self.begun(number) + 1)

    def end(self, number: int) -> None:
        """It is done."""
        struct.pack_into("<q", self._map, _EACH.size * number + 8, self.done(number) + 1)


class Writer:
    """Writes to all sessions by turns, and to a fork that has what the first session has."""

    def __init__(self, home: Path, counters: Counters) -> None:
        self._home = home
        self._counters = counters
        self._pens = [Pen(session(number)) for number in range(SESSIONS)]
        self._random = random.Random(3)  # noqa: S311 - seeded, so that a failure comes again
        self._fork = place(home, SESSIONS)
        for number in range(SESSIONS):
            place(home, number).parent.mkdir(parents=True, exist_ok=True)

    def write(self) -> None:
        """One more prompt and its reply, now and then in two pieces; and in the first session, its copy."""
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
            with place(self._home, number).open("ab", buffering=0) as file:
                file.write(piece)
        self._counters.end(number)
        if not number:
            with self._fork.open("ab", buffering=0) as file:
                file.write(data.replace(session(0).encode(), session(SESSIONS).encode()))


def _check_sentence(error: IndexBusy, index: Path) -> None:
    assert str(error) == f"Another threadline is refreshing {str(index)!r}; wait for it, or try again."


def refreshing(index: Path, home: Path, seconds: float, wait_ms: int, rebuilds: int) -> None:
    """Refresh as often as can be, with every so manyth an index made anew; being told to wait is no error."""
    store._BUSY_TIMEOUT_MS = wait_ms
    locks.TIMEOUT_SECONDS = wait_ms / 1000
    done = busy = 0
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            if rebuilds and done % rebuilds == rebuilds - 1:
                rebuild_index(index, homes(home))
            else:
                refresh_index(index, homes(home))
            done += 1
        except IndexBusy as error:
            _check_sentence(error, index)
            busy += 1
        time.sleep(_PAUSE)
    sys.stdout.write(json.dumps({"done": done, "busy": busy}))


class Reading:
    """One that reads the index as it is, and never waits for it to be refreshed."""

    def __init__(self, index: Path, counters: Counters) -> None:
        self._index = index
        self._counters = counters
        self._last = [0] * SESSIONS
        self._random = random.Random()  # noqa: S311 - any will do

    def ask(self) -> None:
        """Ask all that must fit together, of one moment."""
        with closing(open_read_only(self._index)) as connection:
            connection.execute("BEGIN")
            self._entries(connection)
            self._charges(connection)
            self._sums(connection)
            if self._random.random() < 1 / 20:
                assert connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",)

    def _entries(self, connection: sqlite3.Connection) -> None:
        told = connection.execute(
            "SELECT t.session, t.lines, COUNT(e.entry_id), t.read_to, COALESCE(SUM(e.length), 0)"
            " FROM transcripts t LEFT JOIN entries e USING(transcript_id) GROUP BY transcript_id"
        ).fetchall()
        assert all(lines == entries and read_to == size for _, lines, entries, read_to, size in told), told
        for name, _lines, entries, _read_to, _size in told:
            number = int(name[-12:])
            if number == SESSIONS:
                continue
            count = entries // _LINES_EACH
            assert self._last[number] <= count <= self._counters.begun(number), (number, count, self._last)
            self._last[number] = count
            if count:
                looked_for = word(number, self._random.randint(1, count))
                found = connection.execute(
                    "SELECT COUNT(*) FROM text JOIN said ON said.entry_id = text.rowid"
                    " WHERE text MATCH ? AND session = ?",
                    (looked_for, name),
                ).fetchone()
                assert found == (_LINES_EACH,), (looked_for, found)

    def _charges(self, connection: sqlite3.Connection) -> None:
        for name, count, messages, output in connection.execute(
            "SELECT session, COUNT(*), COUNT(DISTINCT message), SUM(output) FROM charges"
            " WHERE transcript_id IN (SELECT transcript_id FROM transcripts) GROUP BY session"
        ):
            assert count == messages, name
            if int(name[-12:]) not in {0, SESSIONS}:  # of these, either may own what both have
                assert output == count * (count + 1) // 2, (name, count, output)
        # Whatever is not marked as stale is charged once for all its sightings, and nothing else is charged.
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

    def _sums(self, connection: sqlite3.Connection) -> None:
        asked = "SELECT COALESCE(SUM(output), 0), COALESCE(SUM({}), 0) FROM {}"
        one = connection.execute(asked.format("1", "charged")).fetchone()
        assert one == connection.execute(asked.format("charges", "spent")).fetchone()


class Asking:
    """One that asks the archive, which brings the index up to date: answers are those of now."""

    def __init__(self, index: Path, home: Path, counters: Counters) -> None:
        self._index = index
        self._home = home
        self._counters = counters
        self._random = random.Random()  # noqa: S311 - any will do
        self.busy = 0

    def ask(self) -> None:
        """Sessions, what was spent, and a word."""
        before = [self._counters.done(number) for number in range(SESSIONS)]
        with threadline.open(self._home, index=self._index) as archive:
            entries = {str(session.id): session.entries for session in archive.sessions().sessions}
            spent = {row.keys["session"]: row for row in archive.ledger().by("session")}
            number = self._random.randrange(SESSIONS)
            looked_for = word(number, self._random.randint(1, max(1, before[number])))
            try:
                hits = archive.search(looked_for, limit=None, every=True).hits
            except IndexBusy as error:
                _check_sentence(error, self._index)
                self.busy += 1
                hits = None
        after = [self._counters.begun(number) for number in range(SESSIONS)]
        for one in range(1, SESSIONS):
            count = entries.get(session(one), 0) // _LINES_EACH
            assert before[one] <= count <= after[one], (one, before, count, after)
            row = spent.get(session(one), Row())
            charges, output = row.charges, row.output
            assert before[one] <= charges <= after[one], (one, before, charges, after)
            assert output == charges * (charges + 1) // 2, (one, charges, output)
        both = [spent[name].output for name in (session(0), session(SESSIONS)) if name in spent]
        allowed = [count * (count + 1) // 2 for count in range(before[0], after[0] + 1)]
        assert sum(both) in allowed, (both, before[0], after[0])
        if hits is not None and before[number]:
            assert {str(hit.session) for hit in hits} >= {session(number)} if number else hits, (looked_for, hits)


def asking(ask: Callable[[], None], seconds: float, busy: Callable[[], int] = lambda: 0) -> None:
    """Ask again and again."""
    asked = 0
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        ask()
        asked += 1
        time.sleep(_PAUSE)
    sys.stdout.write(json.dumps({"done": asked, "busy": busy()}))


def main(role: str, index: Path, home: Path, counters: Path, seconds: float, *options: str) -> None:
    """Do what a role does, for so many seconds."""
    if role == "refresh":
        refreshing(index, home, seconds, *map(int, options))
    elif role == "read":
        asking(Reading(index, Counters(counters)).ask, seconds)
    else:
        one = Asking(index, home, Counters(counters))
        asking(one.ask, seconds, lambda: one.busy)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4]), float(sys.argv[5]), *sys.argv[6:])
