"""A refresh may be killed at any moment, and several may use the index at once. Its content is correct all the same."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from pprint import pformat
from random import Random

import pytest
from tests.changing_home import ChangingHome
from tests.index.content import content, differences, rebuilt_content
from tests.index.parts import PARTS, Pens
from tests.index.test_refresh import _refresh
from tests.profiles import scale_examples
from tests.transcripts import SESSION, prompt, reply, transcript
from tests.transcripts import write as write_lines

from threadline.find import homes
from threadline.index import Index, refresh_index, store

SOURCE = str(Path(__file__).parents[2] / "src")
pytestmark = pytest.mark.crash

KILLS = max(2, scale_examples(20))
SMALL = [
    ("-work-lib", "1", ["prompt", "Bash", "title", "shared"]),
    ("-work-app", "1", ["prompt", "reply", "Edit", "compaction", "compact summary", "TodoWrite", "elsewhere"]),
    ("-work-app", "2", ["prompt", "shared", "Read", "WebSearch to come", "searched", "title", "summary", "cached"]),
    ("-work-app", "3", ["prompt", "Bash", "shared", "Agent to come", "agent done", "cached"]),
    ("-work-app", "1/a11", ["prompt", "shared", "Read", "growing", "TodoWrite"]),
    ("-work-app", "4", ["prompt", "reply", "two in one", "TaskCreate to come", "task made"]),
]
"""Transcripts by project and name, with their parts."""
# Every transaction is short, so that kills hit between transactions as well as inside them.
REFRESH = """
import sys, pathlib
from unittest.mock import patch
from threadline.find import homes
from threadline.index import refresh_index
patch("threadline.index.refresh._COMMIT_SECONDS", float(sys.argv[3])).start()
patch("threadline.index.refresh._MIN_PARALLEL_BYTES", int(sys.argv[4])).start()
print("begun", flush=True)
refresh_index(pathlib.Path(sys.argv[1]), homes(sys.argv[2]))
"""
# Kills itself at the statement with that number.
REFRESH_UP_TO = """
import os, pathlib, signal, sys
from unittest.mock import patch
from threadline.find import homes
from threadline.index import refresh_index, store
patch("threadline.index.refresh._COMMIT_SECONDS", 0.0).start()
left = int(sys.argv[3])
def count(statement):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
prepare = store._prepare
def prepare_and_count(connection, *, is_new):
    connection.set_trace_callback(count)
    prepare(connection, is_new=is_new)
patch("threadline.index.store._prepare", prepare_and_count).start()
print("begun", flush=True)
refresh_index(pathlib.Path(sys.argv[1]), homes(sys.argv[2]))
"""
REBUILD = """
import sys, pathlib
from threadline.find import homes
from threadline.index.refresh import rebuild_index as rebuild
print("begun", flush=True)
rebuild(pathlib.Path(sys.argv[1]), homes(sys.argv[2]))
"""
REFRESHING = """
import sys, pathlib, time
from unittest.mock import patch
from threadline.errors import IndexBusy
from threadline.find import homes
from threadline.index import refresh_index, store
patch("threadline.index.refresh._COMMIT_SECONDS", 0.0).start()
patch("threadline.index.store._BUSY_TIMEOUT_MS", int(sys.argv[4])).start()
patch("threadline.locks.TIMEOUT_SECONDS", int(sys.argv[4]) / 1000).start()
until = time.monotonic() + float(sys.argv[3])
done = busy = 0
while time.monotonic() < until:
    try:
        refresh_index(pathlib.Path(sys.argv[1]), homes(sys.argv[2]))
        done += 1
    except IndexBusy:
        busy += 1
print(done, busy)
"""
READING = """
import sys, pathlib, time
from contextlib import closing
from threadline.index.store import open_read_only as open_to_read
until = time.monotonic() + float(sys.argv[2])
asked = 0
while time.monotonic() < until:
    with closing(open_to_read(pathlib.Path(sys.argv[1]))) as connection:
        connection.execute("BEGIN")
        rows = connection.execute(
            "SELECT t.path, t.lines, COUNT(e.entry_id) FROM transcripts t LEFT JOIN entries e USING(transcript_id)"
            " GROUP BY transcript_id"
        ).fetchall()
        torn = [row for row in rows if row[1] != row[2]]
        assert not torn, torn
        connection.execute("SELECT COUNT(*) FROM text WHERE text MATCH 'the'").fetchone()
        assert connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",)
    asked += 1
print(asked)
"""


@pytest.fixture
def growing(tmp_path: Path) -> ChangingHome:
    """A home that grows."""
    return ChangingHome(tmp_path / "home", 11, max_bytes=40_000)


def _start(code: str, *arguments: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - our own code
        [sys.executable, "-c", code, *map(str, arguments)],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": SOURCE},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def _start_and_kill(code: str, seconds: float, *arguments: object) -> bool:
    """Start a process and kill it that long after it has begun. Returns whether it was still running."""
    with _start(code, *arguments) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        process.kill()
        _out, err = process.communicate()
    assert err == b""
    return process.returncode == -signal.SIGKILL


def _check_recovery(index: Path, home: Path, *, is_asked: bool) -> None:
    """The next refresh or query repairs what a killed one left, and no other files remain."""
    if is_asked:
        opened = Index.open_fresh(index, homes(home))
        assert opened is not None
        opened.close()
    else:
        _refresh(home, index)
    suffixes = {path.name.removeprefix(index.name) for path in index.parent.glob(f"{index.name}*")}
    assert suffixes <= {"", "-wal", "-shm", ".lock", ".lock-journal"}
    difference = differences(content(index), rebuilt_content(home, index.parent))
    assert not difference, pformat(difference)


def _measure_refresh(home: Path, folder: Path, *options: object) -> float:
    """Measure how long a refresh from scratch takes here, so that kills are spread over all of it."""
    with _start(REFRESH, folder / "timed.sqlite", home, *options) as process:
        assert process.stdout is not None
        process.stdout.readline()
        started = time.monotonic()
        process.communicate()
    assert process.returncode == 0
    return time.monotonic() - started


@pytest.mark.parametrize("workers_from", [1 << 40, 0], ids=["alone", "with-workers"])
def test_recovers_from_a_killed_refresh(growing: ChangingHome, tmp_path: Path, workers_from: int) -> None:
    """After a first or later refresh is killed at any moment, the next one leaves the content of a rebuilt index."""
    home = growing.path
    random = Random(5)  # noqa: S311 - seeded, so that a failure comes again
    index = tmp_path / "index.sqlite"
    options = (0.0, workers_from)
    durations = {is_first: _measure_refresh(home, tmp_path, *options) for is_first in (True, False)}
    killed = 0
    for number in count():
        is_first = killed < KILLS // 2  # the first half while it is built, the second half during changes
        if is_first and random.random() < 1 / 2:
            store.remove_index(index)
        else:
            growing.change()
        started = time.monotonic()
        if _start_and_kill(REFRESH, random.uniform(0, durations[is_first]), index, home, *options):
            killed += 1
        else:  # it finished before the kill, so kills must come earlier
            durations[is_first] = min(durations[is_first], time.monotonic() - started) * 0.9
        if random.random() < 1 / 2:
            _check_recovery(index, home, is_asked=random.random() < 1 / 2)
        if killed >= KILLS or number > 5 * KILLS:
            break
    assert killed == KILLS
    _check_recovery(index, home, is_asked=True)


@contextmanager
def _count_statements(callback: Callable[[int], object]) -> Iterator[None]:
    """Call a function with the number of each statement that is executed."""
    count = 0
    prepare = store._prepare

    def count_one(_statement: str) -> None:
        nonlocal count
        count += 1
        callback(count)

    def prepare_and_count(connection: sqlite3.Connection, *, is_new: bool) -> None:
        connection.set_trace_callback(count_one)
        prepare(connection, is_new=is_new)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "_prepare", prepare_and_count)
        patch.setattr("threadline.index.refresh._COMMIT_SECONDS", 0.0)
        yield


def _number_of_statements(index: Path, home: Path) -> int:
    """The number of statements in a refresh of a copy of this index."""
    copy = index.with_name("copy.sqlite")
    shutil.copy(index, copy)
    counts = [0]
    with _count_statements(counts.append):
        refresh_index(copy, homes(home))
    return counts[-1]


def test_recovers_from_a_kill_at_a_random_statement(growing: ChangingHome, tmp_path: Path) -> None:
    """Between any two statements, and equally often between the last ones, where transcripts are completed."""
    home = growing.path
    random = Random(13)  # noqa: S311 - seeded, so that a failure comes again
    index = tmp_path / "index.sqlite"
    _refresh(home, index)
    for number in range(KILLS // 2):
        growing.change()
        count = _number_of_statements(index, home)
        statement = random.randrange(count) if number % 2 else count - 1 - random.randrange(min(count, 60))
        assert _start_and_kill(REFRESH_UP_TO, 60.0, index, home, statement)
        _check_recovery(index, home, is_asked=number % 4 < 2)


def _write_small_home(home: Path) -> None:
    """Three projects, with every relation that transcripts can have to each other."""
    pens = Pens()
    for folder, name, parts in SMALL:
        path = pens.place(home, folder, name)
        write_lines(path, *transcript(*(PARTS[part](pens) for part in parts), pen=pens.of(path)))


def _change_all(home: Path) -> None:
    """Delete one project, add one, and change each remaining transcript in a different way."""
    pens = Pens()
    deleted, truncated, grown, moved, agents, _replaced = (pens.place(home, folder, name) for folder, name, _ in SMALL)
    deleted.unlink()
    os.truncate(truncated, truncated.stat().st_size // 2)
    data = grown.read_bytes()
    with grown.open("ab") as file:
        file.write(data[: len(data) // 2])
    target = pens.place(home, "-home-u-notes-", "4")
    target.parent.mkdir()
    moved.rename(target)
    agents.rename(agents.with_name("agent-a22.jsonl"))
    other = pens.place(home, "-home-u-notes-", "3")
    other.write_bytes(data)
    other.replace(pens.place(home, *SMALL[-1][:2]))


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _refresh_and_die_at(statement: int, index: Path, home: Path) -> bool:
    """Refresh in another process that dies at that statement. Returns whether it did."""
    child = os.fork()
    if not child:
        try:
            with _count_statements(lambda count: _die() if count > statement else None):
                refresh_index(index, homes(home), jobs=1)
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


@pytest.mark.smoke
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_recovers_from_a_kill_at_each_statement(tmp_path: Path) -> None:
    """A refresh after all kinds of changes is killed at each statement in turn, or at every n-th."""
    home, before, index = tmp_path / "home", tmp_path / "before.sqlite", tmp_path / "index.sqlite"
    _write_small_home(home)
    refresh_index(before, homes(home))
    _change_all(home)
    statement, step = 0, max(1, 120 // KILLS)
    expected = rebuilt_content(home, tmp_path)
    while True:
        store.remove_index(index)
        shutil.copy(before, index)
        if not _refresh_and_die_at(statement, index, home):
            break
        if statement % 2:
            refresh_index(index, homes(home))
        else:
            opened = Index.open_fresh(index, homes(home))
            assert opened is not None
            opened.close()
        difference = differences(content(index), expected)
        assert not difference, f"{statement} {pformat(difference, width=200)}"
        statement += step
    assert statement > 100


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_first_times_are_not_taken_from_deleted_lines(tmp_path: Path) -> None:
    """Killed after a transcript's messages were deleted and before their origins were: new lines get new times."""
    home, index = tmp_path / "home", tmp_path / "index.sqlite"
    rows = transcript(prompt("a"), reply("b"), prompt("c"), reply("d"))
    path = write_lines(home / f"projects/-work-app/{SESSION}.jsonl", *reversed(rows))
    refresh_index(index, homes(home))
    write_lines(path, rows[0])
    for statement in count(0, max(1, 36 // KILLS)):
        copy = tmp_path / "copy.sqlite"
        store.remove_index(copy)
        shutil.copy(index, copy)
        if not _refresh_and_die_at(statement, copy, home):
            break
        data = path.read_bytes()
        write_lines(path, *rows)
        refresh_index(copy, homes(home))
        assert differences(content(copy), rebuilt_content(home, tmp_path)) == {}
        path.write_bytes(data)


def test_a_killed_rebuild_leaves_the_old_index(growing: ChangingHome, tmp_path: Path) -> None:
    """Nothing is replaced until the new index is complete, and leftovers of a killed rebuild do no harm."""
    home = growing.path
    random = Random(7)  # noqa: S311 - seeded, so that a failure comes again
    index = tmp_path / "index.sqlite"
    _refresh(home, index)
    before = content(index)
    duration = _measure_refresh(home, tmp_path, 2.0, 1 << 40)
    killed = sum(_start_and_kill(REBUILD, random.uniform(0, duration / 2), index, home) for _ in range(KILLS // 3))
    assert killed
    assert content(index) == before
    _refresh(home, index)
    assert content(index) == before


@pytest.mark.parametrize("wait_ms", [1, 5_000], ids=["impatient", "patient"])
def test_two_processes_refresh_while_four_read(growing: ChangingHome, tmp_path: Path, wait_ms: int) -> None:
    """While transcripts change: the only error is IndexBusy, nobody reads half a transcript, the result is right."""
    home = growing.path
    index = tmp_path / "index.sqlite"
    _refresh(home, index)
    seconds = 4.0
    refreshers = [_start(REFRESHING, index, home, seconds, wait_ms) for _ in range(2)]
    readers = [_start(READING, index, seconds) for _ in range(4)]
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        growing.change()
        time.sleep(0.3)
    answers = [process.communicate() for process in (*refreshers, *readers)]
    assert [err.decode() for _out, err in answers] == [""] * 6
    assert [process.returncode for process in (*refreshers, *readers)] == [0] * 6
    assert sum(int(out.split()[0]) for out, _err in answers[:2]) >= 2
    assert all(int(out) for out, _err in answers[2:])
    _refresh(home, index)
    assert content(index) == rebuilt_content(home, tmp_path)
