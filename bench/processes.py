"""Whole processes: how long one takes, and the most memory that it and its workers held."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

LOOK_EVERY = 0.01


class Ran(NamedTuple):
    """What a process took and said; `peaks` are in MB, one for each of its processes, the first its own."""

    seconds: float
    cpu: float
    peaks: list[float]
    said: str
    complaint: str
    code: int


def run(command: list[str], environment: Mapping[str, str]) -> Ran:
    """Run a command to its end, looking at its memory meanwhile."""
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as complaint:
        before = _cpu()
        start = time.perf_counter()
        process = subprocess.Popen(  # noqa: S603 - contenders
            command, env={**os.environ, **environment}, stdin=subprocess.DEVNULL, stdout=said, stderr=complaint
        )
        peaks: dict[int, int] = {}
        wait = 0.001  # short commands are timed finely, long ones are left in peace
        while process.poll() is None:
            for pid in family(process.pid):
                peaks[pid] = max(peaks.get(pid, 0), high_water(pid))
            time.sleep(wait)
            wait = min(LOOK_EVERY, wait * 1.1)
        seconds = time.perf_counter() - start
        held = [peak / 1024 for peak in peaks.values() if peak]
        return Ran(seconds, _cpu() - before, held, _read(said), _read(complaint), process.returncode)


def _cpu() -> float:
    """Seconds of a core that processes which have ended took: other work on the machine changes it little."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _read(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def family(pid: int) -> list[int]:
    """A process, those that it started, and those that they started."""
    found = [pid]
    for one in found:
        try:
            threads = list(Path(f"/proc/{one}/task").iterdir())
            found += [int(child) for thread in threads for child in (thread / "children").read_text().split()]
        except OSError:  # it has ended meanwhile
            continue
    return found


def high_water(pid: int) -> int:
    """The most memory that a process has held, in kB."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")), 0)


def cpu_seconds(pid: int) -> float:
    """Seconds of a core that a process has taken, with its children that have ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def machine() -> dict[str, Any]:
    """What the figures depend on besides the code."""
    import sqlite3

    return {
        "load_at_start": os.getloadavg(),
        "cores": os.cpu_count(),
        "python": sys.version.split()[0],
        "sqlite": sqlite3.sqlite_version,
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
