"""Two processes refresh an index and ten read it while transcripts grow: no errors, and correct answers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from tests.index.concurrency import Counters, Writer
from tests.index.content import content, differences, rebuilt_content
from tests.profiles import scale_examples

from threadline.find import homes
from threadline.index import refresh_index

SECONDS = 2.0 + scale_examples(6)
ROOT = Path(__file__).parents[2]
READERS = 10


def _start(*arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(  # noqa: S603 - our own code
        [sys.executable, "-m", "tests.index.concurrency", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_waiting_refresh_uses_the_index_of_the_first(tmp_path: Path) -> None:
    """Two processes find no index: one builds it, and the other has nothing left to do."""
    home, index = tmp_path / "home", tmp_path / "index.sqlite"
    writer = Writer(home, Counters(tmp_path / "counters"))
    for _ in range(20):
        writer.write()
    started, resume = Event(), Event()

    def pause(_size: int) -> None:
        started.set()
        resume.wait()

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(refresh_index, index, homes(home), planned=pause)
        started.wait()
        second = pool.submit(refresh_index, index, homes(home))
        time.sleep(0.05)
        was_waiting = not second.done()
        resume.set()
        assert was_waiting
        assert first.result().entries
        assert not second.result().entries


@pytest.mark.crash
@pytest.mark.parametrize("rebuilds", [0, 3], ids=["refreshed", "rebuilt-now-and-then"])
def test_two_processes_refresh_while_ten_read(tmp_path: Path, rebuilds: int, record_property: Any) -> None:
    """One refresher waits for its turn, the other gives up at once. Every answer is correct for its moment."""
    home, index = tmp_path / "home", tmp_path / "index.sqlite"
    counters = Counters(tmp_path / "counters")
    writer = Writer(home, counters)
    for _ in range(40):
        writer.write()
    refresh_index(index, homes(home))
    arguments = (index, home, tmp_path / "counters", SECONDS)
    roles = ["refresh"] * 2 + ["read", "ask"] * (READERS // 2)
    processes = [
        *(_start("refresh", *arguments, wait_ms, rebuilds) for wait_ms in (5_000, 1)),
        *(_start(role, *arguments) for role in roles[2:]),
    ]
    while any(process.poll() is None for process in processes):
        writer.write()
        time.sleep(0.02)
    outputs = [process.communicate() for process in processes]
    assert not "".join(err for _out, err in outputs)
    answers = [json.loads(out) for out, _err in outputs]
    record_property("answers", answers)
    sys.stdout.write("\n".join(f"{role}: {answer}" for role, answer in zip(roles, answers, strict=True)))
    assert sum(answer["done"] for answer in answers[:2]) >= 2
    assert all(answer["done"] for answer in answers[2:])
    refresh_index(index, homes(home))
    assert differences(content(index), rebuilt_content(home, tmp_path)) == {}
