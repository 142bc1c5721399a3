"""The latency of `threadline watch`, the entries per second it can follow, and its CPU time while nothing happens.

The command runs in its own process and prints JSON Lines or its table to a pipe, for a generated home of many
transcripts. The timestamp of each entry is the time it was written at, so its output shows how long it took.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from statistics import quantiles
from typing import IO, Any

sys.path.insert(0, str(Path(__file__).parent.parent))
from bench.homes import OUT
from bench.processes import cpu_seconds, peak_memory

SESSION = "5e551011-0000-4000-8000-{:012}"
AGENTS_PER_SESSION = 3  # as in real homes
MAX_TRANSCRIPT_BYTES = 100_000
WARM_UP_SECONDS = 3.0


def generated_home(path: Path, transcripts: int) -> list[Path]:
    """The paths of a home of small transcripts, an hour to a year old."""
    paths = []
    now = time.time()
    for number in range(transcripts):
        session = number // (AGENTS_PER_SESSION + 1)
        folder = path / "projects" / f"-work-project-{session % 60}"
        main = folder / f"{SESSION.format(session)}.jsonl"
        agent = main.with_suffix("") / "subagents" / f"agent-{number:08x}.jsonl"
        transcript = agent if number % (AGENTS_PER_SESSION + 1) else main
        paths.append(transcript)
        if (
            not transcript.exists() or transcript.stat().st_size > MAX_TRANSCRIPT_BYTES
        ):  # an earlier measurement appended to it
            transcript.parent.mkdir(parents=True, exist_ok=True)
            transcript.write_bytes(b"".join(row(line, session) for line in range(20)))
        old = now - 3600 - number * 31_536_000 / transcripts
        os.utime(transcript, (old, old))
    return paths


def row(number: int, session: int = 0) -> bytes:
    """A line of typical length, with its number and the current time."""
    when = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    return _TEMPLATE % (SESSION.format(session).encode(), number, when.encode(), number)


def template() -> bytes:
    """The line, with placeholders for session, number and time."""
    entry = {
        "parentUuid": None,
        "isSidechain": False,
        "cwd": "/work/project",
        "sessionId": "%s",
        "version": "2.1.232",
        "type": "user",
        "uuid": "%08d-0000-4000-8000-000000000000",
        "timestamp": "%s",
        "message": {"role": "user", "content": "entry %d " + "and what it is about " * 20},
    }
    return json.dumps(entry).encode() + b"\n"


_TEMPLATE = template()


class Watch:
    """The running command, and the time of each line that it prints."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.finished: list[tuple[float, bytes]] = []
        self._reader = threading.Thread(target=self._read, args=(process.stdout,), daemon=True)
        self._reader.start()

    def _read(self, stream: IO[bytes]) -> None:
        rest = b""
        while piece := os.read(stream.fileno(), 1 << 20):
            now = time.time()
            *lines, rest = (rest + piece).split(b"\n")
            self.finished += ((now, line) for line in lines)

    def wait_for(self, count: int, seconds: float) -> float:
        """Wait until that many lines are printed; returns how long that took."""
        start = time.monotonic()
        while len(self.finished) < count and time.monotonic() - start < seconds:
            time.sleep(0.005)
        return time.monotonic() - start

    def cpu(self) -> float:
        """The CPU seconds it has used."""
        return cpu_seconds(self.process.pid)

    def memory(self) -> float:
        """Its peak memory, in MB."""
        return peak_memory(self.process.pid) / 1024


@contextmanager
def start_watch(home: Path, *words: str) -> Iterator[Watch]:
    """Start the command on a home, and let it warm up."""
    command = [sys.executable, "-m", "threadline", "watch", "--home", str(home), *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)  # noqa: S603 - our own command
    try:
        time.sleep(WARM_UP_SECONDS)
        yield Watch(process)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(10)


def latency(home: Path, path: Path, count: int) -> list[float]:
    """The latencies of that many entries, written one by one at uneven intervals."""
    with start_watch(home, "--jsonl") as watch:
        for number in range(count):
            with path.open("ab") as file:
                file.write(row(number))
            time.sleep(0.037 + number % 7 * 0.023)
        watch.wait_for(count, 20)
        return [when - _written(line) for when, line in watch.finished]


def _written(line: bytes) -> float:
    return datetime.fromisoformat(json.loads(line)["timestamp"]).timestamp()


def throughput(home: Path, path: Path, rate: int, seconds: float, *words: str) -> dict[str, Any]:
    """Write lines at a rate for some time: how many were printed, and how far behind the command was at the end."""
    pause = 0.05
    batch = int(rate * pause)
    with start_watch(home, *words) as watch:
        start = time.monotonic()
        before = watch.cpu()
        sent = 0
        with path.open("ab", buffering=0) as file:
            while time.monotonic() - start < seconds:
                file.write(b"".join(row(sent + offset) for offset in range(batch)))
                sent += batch
                time.sleep(max(0.0, start + sent / rate - time.monotonic()))
        seconds_taken = time.monotonic() - start
        behind = watch.wait_for(sent, 120)
        cpu, memory = watch.cpu() - before, watch.memory()
        return {
            "a_second": sent / seconds_taken,
            "sent": sent,
            "came": len(watch.finished),
            "seconds_behind": behind,
            "cpu": cpu / seconds_taken,
            "memory": memory,
        }


def idle(home: Path, seconds: float) -> float:
    """The share of a core that is used while nothing is written."""
    with start_watch(home) as watch:
        before = watch.cpu()
        time.sleep(seconds)
        return (watch.cpu() - before) / seconds


def spread(values: list[float]) -> str:
    """Median, 99th percentile and maximum, in milliseconds."""
    cuts = quantiles(values, n=100)
    return f"p50 {cuts[49] * 1000:.0f} ms, p99 {cuts[98] * 1000:.0f} ms, longest {max(values) * 1000:.0f} ms"


def main() -> None:
    """Measure, print, and write the figures to bench/out/watch.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--transcripts", type=int, default=3000)
    parser.add_argument("--rate", type=int, default=10_000, help="lines per second")
    parser.add_argument("--seconds", type=float, default=60, help="how long lines are written")
    parser.add_argument("--idle", type=float, default=30, help="seconds in which nothing is written")
    parser.add_argument("--entries", type=int, default=200, help="entries whose latency is measured")
    options = parser.parse_args()
    home = OUT / f"watch-{options.transcripts}"
    paths = generated_home(home, options.transcripts)
    figures: dict[str, Any] = {"transcripts": len(paths)}
    figures["idle"] = idle(home, options.idle)
    print(f"idle, {len(paths):,} transcripts: {figures['idle']:.2%} of a core")
    for name, path in (("newest", paths[0]), ("oldest", paths[-4])):
        latencies = latency(home, path, options.entries)
        figures[name] = {"latencies": sorted(latencies), "came": len(latencies)}
        print(f"latency, {name} transcript: {spread(latencies)}; {len(latencies)} of {options.entries} printed")
    for name, words in (("table", ()), ("jsonl", ("--jsonl",))):
        result = throughput(home, paths[0], options.rate, options.seconds, *words)
        figures[name] = result
        print(
            f"{name}: {result['a_second']:,.0f} lines per second for {options.seconds:g} s: {result['came']:,} of"
            f" {result['sent']:,} printed, {result['seconds_behind']:.2f} s behind at the end,"
            f" {result['cpu']:.0%} of a core, {result['memory']:.0f} MB"
        )
    (OUT / "watch.json").write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
