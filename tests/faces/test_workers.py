"""Workers: all cores at work, and none left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from threadline.demo import write
from threadline.find import homes, look
from threadline.model.found import Transcript
from threadline.survey.each import each


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with some hundred transcripts."""
    place = tmp_path_factory.mktemp("workers") / "home"
    write(place, megabytes=8)
    return place


def size_of(transcript: Transcript) -> int:
    """What a worker is asked: something that another process can import."""
    return transcript.path.stat().st_size


def die_once(transcript: Transcript) -> int:
    """The same, but the first worker that is asked is ended from outside, as the system does for want of memory."""
    mark = Path(os.environ["THREADLINE_TEST_MARK"])
    if not mark.exists() and os.getpid() != int(os.environ["THREADLINE_TEST_PARENT"]):
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return size_of(transcript)


def test_workers_answer_for_every_transcript(home: Path) -> None:
    """Big transcripts go one by one and small ones together, and none is forgotten."""
    transcripts = look(homes(home)[0]).transcripts
    answers = dict(each(size_of, transcripts, jobs=2))
    assert answers == {one: one.size for one in transcripts}


def test_what_a_killed_worker_left_is_read_all_the_same(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that the system ends takes no answer with it."""
    monkeypatch.setenv("THREADLINE_TEST_MARK", str(tmp_path / "mark"))
    monkeypatch.setenv("THREADLINE_TEST_PARENT", str(os.getpid()))
    transcripts = look(homes(home)[0]).transcripts
    assert dict(each(die_once, transcripts, jobs=2)) == {one: one.size for one in transcripts}


_ASK = """
import sys, time
from threadline.find import homes, look
from threadline.survey.each import each

def slow(transcript):
    time.sleep(60)

print("ready", flush=True)
list(each(slow, look(homes(sys.argv[1])[0]).transcripts, jobs=3))
"""


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for the workers in /proc")
def test_workers_end_with_their_parent(home: Path, tmp_path: Path) -> None:
    """However the parent goes, its workers do not wait for work forever."""
    script = tmp_path / "ask.py"
    script.write_text(_ASK)
    command = [sys.executable, str(script), str(home)]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE)  # noqa: S603 - ourselves
    assert parent.stdout is not None
    assert parent.stdout.readline() == b"ready\n"
    workers = _wait_for(lambda: _children(parent.pid), least=2)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    left = [pid for pid in workers if _wait_until_gone(pid)]
    assert not left


def _children(pid: int) -> list[int]:
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(status.parent.name))
    return found


def _wait_for(ask: object, *, least: int) -> list[int]:
    assert callable(ask)
    found: list[int] = []
    for _ in range(200):
        found = ask()
        if len(found) >= least:
            break
        time.sleep(0.1)
    return found


def _wait_until_gone(pid: int) -> bool:
    """Whether it is still there after a while."""
    for _ in range(100):
        if not Path(f"/proc/{pid}").exists():
            return False
        time.sleep(0.1)
    return True
