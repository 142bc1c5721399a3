"""Two refresh an index and ten read it at once, while transcripts grow: no error, and right answers.

`THREADLINE_SECONDS=60` does so for a minute instead of a few seconds.
"""

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
from tests.index.content import anew, content, differences
from tests.index.together import Counters, Writer
from tests.profiles import scale_examples

from threadline.find import homes
from threadline.index import refresh_index

SECONDS = 2.0 + scale_examples(6)
ROOT = Path(__file__).parents[2]
READERS = 10


def _started(*arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(  # noqa: S603 - our own code
        [sys.executable, "-m", "tests.index.together", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_who_waited_for_the_first_one_takes_it_as_it_is(tmp_path: Path) -> None:
    """Two find that there is no index: one makes it, and the other has nothing to make any more."""
    home, index = tmp_path / "home", tmp_path / "index.sqlite"
    writer = Writer(home, Counters(tmp_path / "counters"))
    for _ in range(20):
        writer.write()
    begun, goes_on = Event(), Event()

    def pause(_size: int) -> None:
        begun.set()
        goes_on.wait()

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(refresh_index, index, homes(home), planned=pause)
        begun.wait()
        second = pool.submit(refresh_index, index, homes(home))
        time.sleep(0.05)
        had_to_wait = not second.done()
        goes_on.set()
        assert had_to_wait
        assert first.result().entries
        assert not second.result().entries


@pytest.mark.crash
@pytest.mark.parametrize("rebuilds", [0, 3], ids=["refreshed", "made-anew-now-and-then"])
def test_two_refresh_and_ten_read_at_once(tmp_path: Path, rebuilds: int, record_property: Any) -> None:
    """One of the two waits for its turn, one gives up at once and says why; every answer is right for its moment."""
    home, index = tmp_path / "home", tmp_path / "index.sqlite"
    counters = Counters(tmp_path / "counters")
    writer = Writer(home, counters)
    for _ in range(40):
        writer.write()
    refresh_index(index, homes(home))
    given = (index, home, tmp_path / "counters", SECONDS)
    roles = ["refresh"] * 2 + ["read", "ask"] * (READERS // 2)
    processes = [
        *(_started("refresh", *given, wait_ms, rebuilds) for wait_ms in (5_000, 1)),
        *(_started(role, *given) for role in roles[2:]),
    ]
    while any(process.poll() is None for process in processes):
        writer.write()
        time.sleep(0.02)
    told = [process.communicate() for process in processes]
    assert not "".join(err for _out, err in told)
    answers = [json.loads(out) for out, _err in told]
    record_property("answers", answers)
    sys.stdout.write("\n".join(f"{role}: {answer}" for role, answer in zip(roles, answers, strict=True)))
    assert sum(answer["done"] for answer in answers[:2]) >= 2
    assert all(answer["done"] for answer in answers[2:])
    refresh_index(index, homes(home))
    assert differences(content(index), anew(home, tmp_path)) == {}
