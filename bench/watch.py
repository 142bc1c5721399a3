"""How soon `threadline watch` shows an entry, how many a second it holds, and what it costs when nothing happens.

The command runs in a process of its own and prints JSON Lines into a pipe, or its table; a home of many transcripts is
made for it. Entries carry the moment they were written at, so that each that comes out tells how long it took.
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
AGENTS = 3  # of four transcripts, so many are agents', as in real homes
SMALL = 100_000
WARM_UP = 3.0


def made_home(path: Path, transcripts: int) -> list[Path]:
    """A home of small transcripts, an hour to a year old."""
    paths = []
    now = time.time()
    for number in range(transcripts):
        session = number // (AGENTS + 1)
        folder = path / "projects" / f"-work-project-{session % 60}"
        main = folder / f"{SESSION.format(session)}.jsonl"
        agent = main.with_suffix("") / "subagents" / f"agent-{number:08x}.jsonl"
        one = agent if number % (AGENTS + 1) else main
        paths.append(one)
        if not one.exists() or one.stat().st_size > SMALL:  # a measurement before this one wrote to it
            one.parent.mkdir(parents=True, exist_ok=True)
            one.write_bytes(b"".join(row(line, session) for line in range(20)))
        old = now - 3600 - number * 31_536_000 / transcripts
        os.utime(one, (old, old))
    return paths


def row(number: int, session: int = 0) -> bytes:
    """A line as long as most are, that says when it was written, and its number."""
    when = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    return _TEMPLATE % (SESSION.format(session).encode(), number, when.encode(), number)


def template() -> bytes:
    """Such a line, with places for what differs."""
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
    """The command, and when each line of its answer came."""

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
        """Wait until so many lines have come; how long that took."""
        start = time.monotonic()
        while len(self.finished) < count and time.monotonic() - start < seconds:
            time.sleep(0.005)
        return time.monotonic() - start

    def cpu(self) -> float:
        """Seconds of a core that it has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> float:
        """The most memory it has held, in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024


@contextmanager
def watching(home: Path, *words: str) -> Iterator[Watch]:
    """The command on a home, warmed up."""
    command = [sys.executable, "-m", "threadline", "watch", "--home", str(home), *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)  # noqa: S603 - our own
    try:
        time.sleep(WARM_UP)
        yield Watch(process)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(10)


def latency(home: Path, path: Path, count: int) -> list[float]:
    """How long each of so many entries took, written one by one at uneven moments."""
    with watching(home, "--jsonl") as watch:
        for number in range(count):
            with path.open("ab") as file:
                file.write(row(number))
            time.sleep(0.037 + number % 7 * 0.023)
        watch.wait_for(count, 20)
        return [when - _written(line) for when, line in watch.finished]


def _written(line: bytes) -> float:
    return datetime.fromisoformat(json.loads(line)["timestamp"]).timestamp()


def throughput(home: Path, path: Path, rate: int, seconds: float, *words: str) -> dict[str, Any]:
    """Write so many lines a second for a while; what came, and how far behind it was at the end."""
    pause = 0.05
    each = int(rate * pause)
    with watching(home, *words) as watch:
        start = time.monotonic()
        before = watch.cpu()
        sent = 0
        with path.open("ab", buffering=0) as file:
            while time.monotonic() - start < seconds:
                file.write(b"".join(row(sent + one) for one in range(each)))
                sent += each
                time.sleep(max(0.0, start + sent / rate - time.monotonic()))
        took = time.monotonic() - start
        behind = watch.wait_for(sent, 120)
        cpu, memory = watch.cpu() - before, watch.memory()
        return {
            "a_second": sent / took,
            "sent": sent,
            "came": len(watch.finished),
            "seconds_behind": behind,
            "cpu": cpu / took,
            "memory": memory,
        }


def idle(home: Path, seconds: float) -> float:
    """The share of a core that is used while nothing happens."""
    with watching(home) as watch:
        before = watch.cpu()
        time.sleep(seconds)
        return (watch.cpu() - before) / seconds


def spread(values: list[float]) -> str:
    """Median, p99 and the longest, in milliseconds."""
    cuts = quantiles(values, n=100)
    return f"p50 {cuts[49] * 1000:.0f} ms, p99 {cuts[98] * 1000:.0f} ms, longest {max(values) * 1000:.0f} ms"


def main() -> None:
    """Measure all of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--transcripts", type=int, default=3000)
    parser.add_argument("--rate", type=int, default=10_000, help="lines a second")
    parser.add_argument("--seconds", type=float, default=60, help="how long that is held")
    parser.add_argument("--idle", type=float, default=30, help="seconds without anything happening")
    parser.add_argument("--entries", type=int, default=200, help="entries whose latency is measured")
    options = parser.parse_args()
    home = OUT / f"watch-{options.transcripts}"
    paths = made_home(home, options.transcripts)
    figures: dict[str, Any] = {"transcripts": len(paths)}
    figures["idle"] = idle(home, options.idle)
    print(f"idle, {len(paths):,} transcripts: {figures['idle']:.2%} of a core")
    for name, path in (("newest", paths[0]), ("oldest", paths[-4])):
        found = latency(home, path, options.entries)
        figures[name] = {"latencies": sorted(found), "came": len(found)}
        print(f"latency, {name} transcript: {spread(found)}; {len(found)} of {options.entries} came")
    for name, words in (("table", ()), ("jsonl", ("--jsonl",))):
        held = throughput(home, paths[0], options.rate, options.seconds, *words)
        figures[name] = held
        print(
            f"{name}: {held['a_second']:,.0f} lines a second for {options.seconds:g} s: {held['came']:,} of"
            f" {held['sent']:,} came, {held['seconds_behind']:.2f} s behind at the end,"
            f" {held['cpu']:.0%} of a core, {held['memory']:.0f} MB"
        )
    (OUT / "watch.json").write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
