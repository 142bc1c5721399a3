"""A refresh may be killed at any moment, several may want the index at once: what it tells is right all the same."""

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
from tests.index.content import anew, content, differences
from tests.index.parts import PARTS, Pens
from tests.index.test_refresh import _refreshed
from tests.profiles import scale_examples
from tests.transcripts import SESSION, prompt, reply, transcript
from tests.transcripts import write as write_lines

from threadline.find import homes
from threadline.index import Index, refresh_index, store

SOURCE = str(Path(__file__).parents[2] / "src")
pytestmark = pytest.mark.crash

KILLS = max(3, scale_examples(20))
SMALL = [
    ("-work-lib", "1", ["prompt", "Bash", "title", "shared"]),
    ("-work-app", "1", ["prompt", "reply", "Edit", "compaction", "compact summary", "TodoWrite", "elsewhere"]),
    ("-work-app", "2", ["prompt", "shared", "Read", "WebSearch to come", "searched", "title", "summary", "cached"]),
    ("-work-app", "3", ["prompt", "Bash", "shared", "Agent to come", "agent done", "cached"]),
    ("-work-app", "1/a11", ["prompt", "shared", "Read", "growing", "TodoWrite"]),
    ("-work-app", "4", ["prompt", "reply", "two in one", "TaskCreate to come", "task made"]),
]
"""Transcripts by project and name, and what is in them."""
# Every transaction is short, so that kills fall between them as well as into them.
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
# Dies by its own hand when it comes to a statement of that number.
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
        told = connection.execute(
            "SELECT t.path, t.lines, COUNT(e.entry_id) FROM transcripts t LEFT JOIN entries e USING(transcript_id)"
            " GROUP BY transcript_id"
        ).fetchall()
        torn = [row for row in told if row[1] != row[2]]
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


def _started(code: str, *arguments: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - our own code
        [sys.executable, "-c", code, *map(str, arguments)],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": SOURCE},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def _killed(code: str, seconds: float, *arguments: object) -> bool:
    """Start it, and kill it so long after it has begun; whether it was still at work."""
    with _started(code, *arguments) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        process.kill()
        _out, err = process.communicate()
    assert err == b""
    return process.returncode == -signal.SIGKILL


def _gone_on_with(index: Path, home: Path, *, is_asked: bool) -> None:
    """What a killed one left is finished by the next refresh, or by the next one that asks; nothing else lies about."""
    if is_asked:
        made = Index.open_fresh(index, homes(home))
        assert made is not None
        made.close()
    else:
        _refreshed(home, index)
    beside = {one.name.removeprefix(index.name) for one in index.parent.glob(f"{index.name}*")}
    assert beside <= {"", "-wal", "-shm", ".lock", ".lock-journal"}
    told = differences(content(index), anew(home, index.parent))
    assert not told, pformat(told)


def _how_long(home: Path, folder: Path, *options: object) -> float:
    """How long a refresh from nothing takes here and now, so that kills are spread over all of it."""
    with _started(REFRESH, folder / "timed.sqlite", home, *options) as process:
        assert process.stdout is not None
        process.stdout.readline()
        began = time.monotonic()
        process.communicate()
    assert process.returncode == 0
    return time.monotonic() - began


@pytest.mark.parametrize("workers_from", [1 << 40, 0], ids=["alone", "with-workers"])
def test_a_killed_refresh_is_gone_on_with(growing: ChangingHome, tmp_path: Path, workers_from: int) -> None:
    """Killed at any moment, of a first refresh or a later one: the next leaves what one made anew would tell."""
    home = growing.path
    random = Random(5)  # noqa: S311 - seeded, so that a failure comes again
    index = tmp_path / "index.sqlite"
    options = (0.0, workers_from)
    lasts = {is_first: _how_long(home, tmp_path, *options) for is_first in (True, False)}
    killed = 0
    for number in count():
        is_first = killed < KILLS // 2  # while it is made from nothing; the second half on the way to changes
        if is_first and random.random() < 1 / 2:
            store.remove_index(index)
        else:
            growing.change()
        began = time.monotonic()
        if _killed(REFRESH, random.uniform(0, lasts[is_first]), index, home, *options):
            killed += 1
        else:  # it was done before: that is how long it takes, and kills are to be spread over that
            lasts[is_first] = min(lasts[is_first], time.monotonic() - began) * 0.9
        if random.random() < 1 / 2:
            _gone_on_with(index, home, is_asked=random.random() < 1 / 2)
        if killed >= KILLS or number > 5 * KILLS:
            break
    assert killed == KILLS
    _gone_on_with(index, home, is_asked=True)


@contextmanager
def _counting(counted: Callable[[int], object]) -> Iterator[None]:
    """Tell of each statement that is written meanwhile, by its number."""
    count = 0
    prepare = store._prepare

    def count_one(_statement: str) -> None:
        nonlocal count
        count += 1
        counted(count)

    def prepare_and_count(connection: sqlite3.Connection, *, is_new: bool) -> None:
        connection.set_trace_callback(count_one)
        prepare(connection, is_new=is_new)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(store, "_prepare", prepare_and_count)
        patched.setattr("threadline.index.refresh._COMMIT_SECONDS", 0.0)
        yield


def _statements(index: Path, home: Path) -> int:
    """How many statements a refresh of a copy of this index comes to."""
    copy = index.with_name("copy.sqlite")
    shutil.copy(index, copy)
    counts = [0]
    with _counting(counts.append):
        refresh_index(copy, homes(home))
    return counts[-1]


def test_killed_at_any_statement(growing: ChangingHome, tmp_path: Path) -> None:
    """Between any two things that it writes, and as often between the last ones, where transcripts are done with."""
    home = growing.path
    random = Random(13)  # noqa: S311 - seeded, so that a failure comes again
    index = tmp_path / "index.sqlite"
    _refreshed(home, index)
    for number in range(KILLS // 2):
        growing.change()
        count = _statements(index, home)
        at = random.randrange(count) if number % 2 else count - 1 - random.randrange(min(count, 60))
        assert _killed(REFRESH_UP_TO, 60.0, index, home, at)
        _gone_on_with(index, home, is_asked=number % 4 < 2)


def _small_home(home: Path) -> None:
    """Three projects, and all of that which a transcript can be to another."""
    pens = Pens()
    for folder, name, parts in SMALL:
        path = pens.place(home, folder, name)
        write_lines(path, *transcript(*(PARTS[part](pens) for part in parts), pen=pens.of(path)))


def _change_all(home: Path) -> None:
    """A project goes, one comes, and to each transcript that is left something else happens."""
    pens = Pens()
    gone, cut, grown, moved, agents, _replaced = (pens.place(home, folder, name) for folder, name, _ in SMALL)
    gone.unlink()
    os.truncate(cut, cut.stat().st_size // 2)
    data = grown.read_bytes()
    with grown.open("ab") as file:
        file.write(data[: len(data) // 2])
    to = pens.place(home, "-home-u-notes-", "4")
    to.parent.mkdir()
    moved.rename(to)
    agents.rename(agents.with_name("agent-a22.jsonl"))
    other = pens.place(home, "-home-u-notes-", "3")
    other.write_bytes(data)
    other.replace(pens.place(home, *SMALL[-1][:2]))


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _dies_at(statement: int, index: Path, home: Path) -> bool:
    """Refresh in another process that dies at that statement; whether it did."""
    child = os.fork()
    if not child:
        try:
            with _counting(lambda count: _die() if count > statement else None):
                refresh_index(index, homes(home), jobs=1)
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


@pytest.mark.smoke
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_killed_at_each_statement(tmp_path: Path) -> None:
    """Of a refresh after all kinds of changes, at each statement in turn, or at every so manyth of them."""
    home, before, index = tmp_path / "home", tmp_path / "before.sqlite", tmp_path / "index.sqlite"
    _small_home(home)
    refresh_index(before, homes(home))
    _change_all(home)
    at, every = 0, max(1, 120 // KILLS)
    told = anew(home, tmp_path)
    while True:
        store.remove_index(index)
        shutil.copy(before, index)
        if not _dies_at(at, index, home):
            break
        if at % 2:
            refresh_index(index, homes(home))
        else:
            made = Index.open_fresh(index, homes(home))
            assert made is not None
            made.close()
        differs = differences(content(index), told)
        assert not differs, f"{at} {pformat(differs, width=200)}"
        at += every
    assert at > 100


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_when_lines_began_is_not_taken_from_those_before_them(tmp_path: Path) -> None:
    """Killed after a transcript's messages went, and before their origins did: what comes then begins anew."""
    home, index = tmp_path / "home", tmp_path / "index.sqlite"
    told = transcript(prompt("a"), reply("b"), prompt("c"), reply("d"))
    path = write_lines(home / f"projects/-work-app/{SESSION}.jsonl", *reversed(told))
    refresh_index(index, homes(home))
    write_lines(path, told[0])
    for statement in count(0, max(1, 36 // KILLS)):
        copy = tmp_path / "copy.sqlite"
        store.remove_index(copy)
        shutil.copy(index, copy)
        if not _dies_at(statement, copy, home):
            break
        data = path.read_bytes()
        write_lines(path, *told)
        refresh_index(copy, homes(home))
        assert differences(content(copy), anew(home, tmp_path)) == {}
        path.write_bytes(data)


def test_a_killed_rebuild_leaves_the_old_index_or_the_new_one(growing: ChangingHome, tmp_path: Path) -> None:
    """Until it is whole nothing is replaced; what a killed one leaves is in nobody's way."""
    home = growing.path
    random = Random(7)  # noqa: S311 - seeded, so that a failure comes again
    index = tmp_path / "index.sqlite"
    _refreshed(home, index)
    before = content(index)
    whole = _how_long(home, tmp_path, 2.0, 1 << 40)
    killed = sum(_killed(REBUILD, random.uniform(0, whole / 2), index, home) for _ in range(KILLS // 3))
    assert killed
    assert content(index) == before
    _refreshed(home, index)
    assert content(index) == before


@pytest.mark.parametrize("wait_ms", [1, 5_000], ids=["impatient", "patient"])
def test_two_refresh_and_four_read_at_once(growing: ChangingHome, tmp_path: Path, wait_ms: int) -> None:
    """While transcripts change: no error but that it is busy, nobody reads half a transcript, and the end is right."""
    home = growing.path
    index = tmp_path / "index.sqlite"
    _refreshed(home, index)
    seconds = 4.0
    refreshing = [_started(REFRESHING, index, home, seconds, wait_ms) for _ in range(2)]
    reading = [_started(READING, index, seconds) for _ in range(4)]
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        growing.change()
        time.sleep(0.3)
    answers = [process.communicate() for process in (*refreshing, *reading)]
    assert [err.decode() for _out, err in answers] == [""] * 6
    assert [process.returncode for process in (*refreshing, *reading)] == [0] * 6
    assert sum(int(out.split()[0]) for out, _err in answers[:2]) >= 2
    assert all(int(out) for out, _err in answers[2:])
    _refreshed(home, index)
    assert content(index) == anew(home, tmp_path)
