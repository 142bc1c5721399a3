"""Run whole processes, and measure their time and the peak memory of each process."""

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

_MAX_POLL_SECONDS = 0.01


class ProcessResult(NamedTuple):
    """The result of a process. `peaks` are in MB, one for each process that it consists of, the first its own."""

    seconds: float
    cpu: float
    peaks: list[float]
    stdout: str
    stderr: str
    exit_code: int


def run(command: list[str], environment: Mapping[str, str]) -> ProcessResult:
    """Run a command to its end, and sample its memory meanwhile."""
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        before = _cpu()
        start = time.perf_counter()
        process = subprocess.Popen(  # noqa: S603 - our own commands
            command, env={**os.environ, **environment}, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr
        )
        peaks: dict[int, int] = {}
        wait = 0.001  # short commands are sampled often, long ones less
        while process.poll() is None:
            for pid in process_tree(process.pid):
                peaks[pid] = max(peaks.get(pid, 0), peak_memory(pid))
            time.sleep(wait)
            wait = min(_MAX_POLL_SECONDS, wait * 1.1)
        seconds = time.perf_counter() - start
        peaks_mb = [peak / 1024 for peak in peaks.values() if peak]
        return ProcessResult(seconds, _cpu() - before, peaks_mb, _read(stdout), _read(stderr), process.returncode)


def _cpu() -> float:
    """The CPU seconds of child processes that have ended. Other work on the machine changes it little."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _read(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def process_tree(pid: int) -> list[int]:
    """The ids of a process and all its descendants."""
    pids = [pid]
    for parent in pids:
        try:
            threads = list(Path(f"/proc/{parent}/task").iterdir())
            pids += [int(child) for thread in threads for child in (thread / "children").read_text().split()]
        except OSError:  # it has ended
            continue
    return pids


def peak_memory(pid: int) -> int:
    """The peak memory of a process, in kB."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")), 0)


def cpu_seconds(pid: int) -> float:
    """The CPU seconds of a process and of its children that have ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def machine_info() -> dict[str, Any]:
    """The machine and versions that the figures depend on."""
    import sqlite3

    return {
        "load_at_start": os.getloadavg(),
        "cores": os.cpu_count(),
        "python": sys.version.split()[0],
        "sqlite": sqlite3.sqlite_version,
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
