"""A refresh may be killed at any moment, several may want the index at once: what it tells is right all the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.index.test_refresh import _content, _refreshed

from threadline.demo import write

SOURCE = str(Path(__file__).parents[2] / "src")
KILLS = 12
# Every transaction is short, so that kills fall between them as well as into them.
REFRESH = """
import sys, pathlib
from threadline.find import homes
from threadline.index import refresh
refresh._COMMIT_EVERY = float(sys.argv[3])
refresh._WORTH_WORKERS = int(sys.argv[4])
print("begun", flush=True)
refresh.refresh(pathlib.Path(sys.argv[1]), homes(sys.argv[2]))
"""
REBUILD = """
import sys, pathlib
from threadline.find import homes
from threadline.index.rebuild import rebuild
print("begun", flush=True)
rebuild(pathlib.Path(sys.argv[1]), homes(sys.argv[2]))
"""
REFRESHING = """
import sys, pathlib, time
from threadline.errors import IndexBusy
from threadline.find import homes
from threadline.index import refresh, store
refresh._COMMIT_EVERY = 0.0
store._WAIT_MS = int(sys.argv[4])
until = time.monotonic() + float(sys.argv[3])
done = busy = 0
while time.monotonic() < until:
    try:
        refresh.refresh(pathlib.Path(sys.argv[1]), homes(sys.argv[2]))
        done += 1
    except IndexBusy:
        busy += 1
print(done, busy)
"""
READING = """
import sys, pathlib, time
from contextlib import closing
from threadline.index.store import open_to_read
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


class Growing:
    """A made-up home whose transcripts are half written; the rest comes bit by bit, as Claude Code writes it."""

    def __init__(self, path: Path, seed: int) -> None:
        write(path, megabytes=2)
        self.path = path
        self._random = Random(seed)  # noqa: S311 - seeded, so that a failure comes again
        self._whole = {one: one.read_bytes() for one in sorted(path.glob("projects/**/*.jsonl"))}
        for one, data in self._whole.items():
            os.truncate(one, self._random.randrange(len(data) // 2, len(data)))

    def change(self) -> None:
        """Some transcripts grow, up to anywhere in a line; one is cut, one replaced, one goes, one is renamed."""
        random = self._random
        for path in random.sample(sorted(self._whole), 12):
            with path.open("ab") as file:
                file.write(self._whole[path][file.tell() :][: random.randrange(1, 40_000)])
        cut = random.choice(sorted(self._whole))
        os.truncate(cut, cut.stat().st_size * 2 // 3)
        replaced, gone, renamed = random.sample(sorted(self._whole), 3)
        other = replaced.with_name("other.tmp")
        other.write_bytes(b"".join(reversed(self._whole.pop(replaced).splitlines(keepends=True))))
        other.replace(replaced)
        del self._whole[gone]
        gone.unlink()
        name = renamed.with_name(f"99{renamed.name[2:]}" if renamed.name[:2] != "ag" else f"agent-9{renamed.name[7:]}")
        self._whole[name] = self._whole.pop(renamed)
        renamed.rename(name)


@pytest.fixture
def growing(tmp_path: Path) -> Growing:
    """A home that grows."""
    return Growing(tmp_path / "home", 11)


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
        time.sleep(seconds)
        process.kill()
        _out, err = process.communicate()
    assert err == b""
    return process.returncode == -signal.SIGKILL


def _anew(home: Path, folder: Path) -> dict[str, list[Any]]:
    path = folder / "anew.sqlite"
    path.unlink(missing_ok=True)
    _refreshed(home, path)
    return _content(path)


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
def test_a_killed_refresh_is_gone_on_with(growing: Growing, tmp_path: Path, workers_from: int) -> None:
    """Killed at any moment, of a first refresh or a later one: the next leaves what one made anew would tell."""
    home = growing.path
    random = Random(5)  # noqa: S311 - seeded, so that a failure comes again
    index = tmp_path / "index.sqlite"
    options = (0.0, workers_from)
    whole = _how_long(home, tmp_path, *options)
    killed = 0
    for number in range(KILLS):
        if number == KILLS // 2:  # the first half dies while it is made from nothing, the second on the way to changes
            _refreshed(home, index)
        if number >= KILLS // 2:
            growing.change()
        killed += _killed(
            REFRESH, random.uniform(0, whole if number < KILLS // 2 else whole / 4), index, home, *options
        )
        if number % 3 == 2:
            _refreshed(home, index)
            assert _content(index) == _anew(home, tmp_path)
    assert killed >= KILLS // 3
    _refreshed(home, index)
    assert _content(index) == _anew(home, tmp_path)


def test_a_killed_rebuild_leaves_the_old_index_or_the_new_one(growing: Growing, tmp_path: Path) -> None:
    """Until it is whole nothing is replaced; what a killed one leaves is in nobody's way."""
    home = growing.path
    random = Random(7)  # noqa: S311 - seeded, so that a failure comes again
    index = tmp_path / "index.sqlite"
    _refreshed(home, index)
    before = _content(index)
    whole = _how_long(home, tmp_path, 2.0, 1 << 40)
    killed = sum(_killed(REBUILD, random.uniform(0, whole), index, home) for _ in range(KILLS // 3))
    assert killed
    assert _content(index) == before
    _refreshed(home, index)
    assert _content(index) == before


@pytest.mark.parametrize("wait_ms", [1, 5_000], ids=["impatient", "patient"])
def test_two_refresh_and_four_read_at_once(growing: Growing, tmp_path: Path, wait_ms: int) -> None:
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
    assert _content(index) == _anew(home, tmp_path)
