"""Measure `threadline watch`: latency, throughput, and the CPU time it uses when nothing happens.

The command runs in its own process on a generated home of many transcripts, and prints JSON Lines or its table into a
pipe. Entries contain the time when they were written, so each entry that arrives shows its latency.
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

OUT = Path(__file__).parent / "out"
SESSION = "5e551011-0000-4000-8000-{:012}"
AGENTS = 3  # of four transcripts, three belong to agents, as in real homes
SMALL = 100_000
WARM_UP = 3.0


def generate_home(path: Path, transcripts: int) -> list[Path]:
    """Generate a home of small transcripts, an hour to a year old, and return their paths."""
    paths = []
    now = time.time()
    for number in range(transcripts):
        session = number // (AGENTS + 1)
        folder = path / "projects" / f"-work-project-{session % 60}"
        main = folder / f"{SESSION.format(session)}.jsonl"
        agent = main.with_suffix("") / "subagents" / f"agent-{number:08x}.jsonl"
        transcript = agent if number % (AGENTS + 1) else main
        paths.append(transcript)
        if not transcript.exists() or transcript.stat().st_size > SMALL:  # an earlier measurement wrote to it
            transcript.parent.mkdir(parents=True, exist_ok=True)
            transcript.write_bytes(b"".join(row(line, session) for line in range(20)))
        old = now - 3600 - number * 31_536_000 / transcripts
        os.utime(transcript, (old, old))
    return paths


def row(number: int, session: int = 0) -> bytes:
    """Return a line of typical length, with its number and the time of writing."""
    now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    return _TEMPLATE % (SESSION.format(session).encode(), number, now.encode(), number)


def template() -> bytes:
    """Return the line with placeholders."""
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
    """A running command, with the arrival time of each line of its output."""

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
        """Wait until `count` lines have arrived, and return the seconds that took."""
        start = time.monotonic()
        while len(self.finished) < count and time.monotonic() - start < seconds:
            time.sleep(0.005)
        return time.monotonic() - start

    def cpu(self) -> float:
        """Return the CPU seconds that it has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> float:
        """Return its peak memory, in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024


@contextmanager
def run_watch(home: Path, *words: str) -> Iterator[Watch]:
    """Run the command on a home, and wait until it is warm."""
    command = [sys.executable, "-m", "threadline", "watch", "--home", str(home), *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)  # noqa: S603 - our own
    try:
        time.sleep(WARM_UP)
        yield Watch(process)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(10)


def latency(home: Path, path: Path, count: int) -> list[float]:
    """Write entries one by one at irregular intervals, and return the latency of each."""
    with run_watch(home, "--jsonl") as watch:
        for number in range(count):
            with path.open("ab") as file:
                file.write(row(number))
            time.sleep(0.037 + number % 7 * 0.023)
        watch.wait_for(count, 20)
        return [when - _written(line) for when, line in watch.finished]


def _written(line: bytes) -> float:
    return datetime.fromisoformat(json.loads(line)["timestamp"]).timestamp()


def throughput(home: Path, path: Path, rate: int, seconds: float, *words: str) -> dict[str, Any]:
    """Write `rate` lines per second for a while. Return how many arrived, and the delay at the end."""
    pause = 0.05
    batch = int(rate * pause)
    with run_watch(home, *words) as watch:
        start = time.monotonic()
        before = watch.cpu()
        sent = 0
        with path.open("ab", buffering=0) as file:
            while time.monotonic() - start < seconds:
                file.write(b"".join(row(sent + number) for number in range(batch)))
                sent += batch
                time.sleep(max(0.0, start + sent / rate - time.monotonic()))
        elapsed = time.monotonic() - start
        behind = watch.wait_for(sent, 120)
        cpu, memory = watch.cpu() - before, watch.memory()
        return {
            "lines_per_second": sent / elapsed,
            "sent": sent,
            "arrived": len(watch.finished),
            "seconds_behind": behind,
            "cpu": cpu / elapsed,
            "memory": memory,
        }


def idle(home: Path, seconds: float) -> float:
    """Return the share of a core that it uses while nothing happens."""
    with run_watch(home) as watch:
        before = watch.cpu()
        time.sleep(seconds)
        return (watch.cpu() - before) / seconds


def spread(values: list[float]) -> str:
    """Format the median, p99 and maximum, in milliseconds."""
    cuts = quantiles(values, n=100)
    return f"p50 {cuts[49] * 1000:.0f} ms, p99 {cuts[98] * 1000:.0f} ms, max {max(values) * 1000:.0f} ms"


def main() -> None:
    """Measure everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--transcripts", type=int, default=3000)
    parser.add_argument("--rate", type=int, default=10_000, help="lines per second")
    parser.add_argument("--seconds", type=float, default=60, help="how long to write at that rate")
    parser.add_argument("--idle", type=float, default=30, help="seconds without anything happening")
    parser.add_argument("--entries", type=int, default=200, help="entries whose latency is measured")
    options = parser.parse_args()
    home = OUT / f"watch-{options.transcripts}"
    paths = generate_home(home, options.transcripts)
    figures: dict[str, Any] = {"transcripts": len(paths)}
    figures["idle"] = idle(home, options.idle)
    print(f"idle, {len(paths):,} transcripts: {figures['idle']:.2%} of a core")
    for name, path in (("newest", paths[0]), ("oldest", paths[-4])):
        latencies = latency(home, path, options.entries)
        figures[name] = {"latencies": sorted(latencies), "arrived": len(latencies)}
        print(f"latency, {name} transcript: {spread(latencies)}; {len(latencies)} of {options.entries} arrived")
    for name, words in (("table", ()), ("jsonl", ("--jsonl",))):
        result = throughput(home, paths[0], options.rate, options.seconds, *words)
        figures[name] = result
        print(
            f"{name}: {result['lines_per_second']:,.0f} lines per second for {options.seconds:g} s:"
            f" {result['arrived']:,} of {result['sent']:,} arrived, {result['seconds_behind']:.2f} s behind at the end,"
            f" {result['cpu']:.0%} of a core, {result['memory']:.0f} MB"
        )
    (OUT / "watch.json").write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
