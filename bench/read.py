"""Compare reading a home with `json`, `orjson` and with only reading the bytes: time and memory.

Each contender runs in its own process, in turn, for several rounds; the best round counts, because noise only adds. All
read the same files from the page cache. `make bench` generates a home with the sizes of real ones.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from threadline.model.homes import Transcript

sys.path.insert(0, str(Path(__file__).parent.parent))
from bench.homes import OUT, generated_home, transcripts


def read_limit(paths: list[Path]) -> int:
    """Reading and splitting lines: no reader can be faster."""
    return sum(1 for path in paths for _line in path.open("rb"))


def json_loads(paths: list[Path]) -> int:
    """The standard library's decoder on every line."""
    return _loads(paths, json.loads)


def orjson_loads(paths: list[Path]) -> int:
    """Untyped decoding of every line, as fast as it gets in Python."""
    return _loads(paths, orjson.loads)


def _loads(paths: list[Path], loads: Callable[[bytes], object]) -> int:
    count = 0
    for path in paths:
        with path.open("rb") as file:
            for line in file:
                try:
                    loads(line)
                except ValueError:
                    continue
                count += 1
    return count


def threadline_heads(paths: list[Path]) -> int:
    """Heads and usage of every entry."""
    from threadline import heads

    return sum(1 for path in paths for _head in heads(path))


def threadline_entries(paths: list[Path]) -> int:
    """Every entry, typed, with its line; tool results as plain values."""
    from threadline import entries

    return sum(1 for path in paths for _entry in entries(path))


def threadline_everything(paths: list[Path]) -> int:
    """Every entry, typed, and every tool result typed, too."""
    from threadline import UserEntry, entries

    count = 0
    for path in paths:
        for entry in entries(path):
            count += 1
            if isinstance(entry, UserEntry):
                entry.result  # noqa: B018 - reading it is the work
    return count


def _count_heads(transcript: Transcript) -> int:
    return threadline_heads([transcript.path])


def _count_everything(transcript: Transcript) -> int:
    return threadline_everything([transcript.path])


def _on_all_cores(count: Callable[[Transcript], int], paths: list[Path]) -> int:
    from threadline import homes, look
    from threadline.parallel import map_transcripts

    return sum(figures for _transcript, figures in map_transcripts(count, look(homes(_home(paths))[0]).transcripts))


def threadline_heads_on_all_cores(paths: list[Path]) -> int:
    """Heads and usage of every entry, as every pass over a whole home does it."""
    return _on_all_cores(_count_heads, paths)


def threadline_everything_on_all_cores(paths: list[Path]) -> int:
    """Every entry and tool result, typed, as every pass over a whole home does it."""
    return _on_all_cores(_count_everything, paths)


def threadline_overview(paths: list[Path]) -> int:
    """What bare `threadline` does: heads of the whole home, on all cores."""
    from threadline import homes, look
    from threadline.summary import build_overview

    return build_overview([look(home) for home in homes(_home(paths))]).entries


def threadline_doctor(paths: list[Path]) -> int:
    """What `threadline doctor` does: everything, strictly, with drift, on all cores."""
    from threadline import homes, look
    from threadline.reports.doctor import examine_all

    return examine_all(look(homes(_home(paths))[0]).transcripts).entries


def _home(paths: list[Path]) -> Path:
    return next(parent for parent in paths[0].parents if parent.name == "projects").parent


CONTENDERS: dict[str, Callable[[list[Path]], int]] = {
    "read limit": read_limit,
    "json.loads": json_loads,
    "orjson.loads": orjson_loads,
    "threadline heads": threadline_heads,
    "threadline entries": threadline_entries,
    "threadline everything": threadline_everything,
    "threadline heads, all cores": threadline_heads_on_all_cores,
    "threadline everything, all cores": threadline_everything_on_all_cores,
    "threadline overview, all cores": threadline_overview,
    "threadline doctor, all cores": threadline_doctor,
}


def run_contender(name: str, home: Path) -> None:
    """Run one contender in this process; print its seconds, peak memory in MB and count as JSON."""
    paths = transcripts(home)
    start = time.perf_counter()
    count = CONTENDERS[name](paths)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    workers = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(json.dumps({"seconds": seconds, "peak": max(peak, workers) / 1024, "count": count}))


def measure(home: Path, rounds: int, names: Iterable[str]) -> dict[str, dict[str, float]]:
    """The best round of each contender, each in its own process."""
    best: dict[str, dict[str, float]] = {}
    for turn in range(rounds):
        for name in names:
            command = [sys.executable, __file__, "--contender", name, "--home", str(home)]
            figures = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)  # noqa: S603 - this file
            if turn == 0 or figures["seconds"] < best[name]["seconds"]:
                best[name] = figures
        print(f"round {turn + 1} of {rounds} done", file=sys.stderr)
    return best


def report(home: Path, best: dict[str, dict[str, float]]) -> None:
    """Print the figures, and save them in bench/out/read.json."""
    sizes = sorted(path.stat().st_size for path in transcripts(home))
    size = sum(sizes) / 1e6
    orjson_seconds = best["orjson.loads"]["seconds"]
    percentiles = {
        name: sizes[min(len(sizes) - 1, int(len(sizes) * share))]
        for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99))
    }
    spread = ", ".join(f"{name} {value / 1e3:,.0f} kB" for name, value in percentiles.items())
    print(f"{len(sizes):,} transcripts, {size:,.0f} MB; {spread}, largest {sizes[-1] / 1e6:,.1f} MB\n")
    print(f"{'':<34}{'seconds':>9}{'MB/s':>8}{'x orjson':>10}{'peak MB':>9}{'count':>10}")
    for name, figures in best.items():
        seconds = figures["seconds"]
        cells = f"{seconds:>9.2f}{size / seconds:>8.0f}{orjson_seconds / seconds:>10.2f}{figures['peak']:>9.0f}"
        print(f"{name:<34}{cells}{figures['count']:>10,}")
    OUT.mkdir(exist_ok=True)
    (OUT / "read.json").write_text(json.dumps({"transcripts": len(sizes), "megabytes": size, "best": best}, indent=1))


def main() -> None:
    """Measure all contenders on a home; by default on a generated one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path, help="a home to read; by default one is generated")
    parser.add_argument("--megabytes", type=float, default=1239, help="the size of the generated home")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--contender", help="run only this one, in this process, and print its figures as JSON")
    options = parser.parse_args()
    if options.contender:
        run_contender(options.contender, options.home)
        return
    home = options.home or generated_home(options.megabytes)
    report(home, measure(home, options.rounds, CONTENDERS))


if __name__ == "__main__":
    main()
