"""How fast and in how much memory a home's usage is counted, beside ccusage's native program, and what each counts.

Whole processes, start of the interpreter included, no index, several rounds in turn; the best round counts, as noise
only adds. Memory is the sum of the peaks of all processes of a contender. `make bench-usage` fetches ccusage with npm,
generates homes with the sizes of real ones, and tells where the totals part and why.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
from bench.differences import differences
from bench.homes import OUT, generated

# The newest release whose native program for this system is in the registry.
CCUSAGE = "ccusage@20.0.24"
SIZES = (200, 2000)
LOOK_EVERY = 0.01
FIGURES = {
    "input": "inputTokens",
    "output": "outputTokens",
    "cache_write": "cacheCreationTokens",
    "cache_read": "cacheReadTokens",
}


def ccusage(given: Path | None) -> Path:
    """The native program: the one named, or one that npm brings."""
    if given is not None:
        return given
    folder = OUT / "ccusage"
    folder.mkdir(parents=True, exist_ok=True)
    programs = list(folder.glob("node_modules/@ccusage/*/bin/ccusage"))
    if not programs:
        subprocess.run(["npm", "install", "--silent", "--prefix", str(folder), CCUSAGE], check=True)  # noqa: S603, S607 - the rival
        programs = list(folder.glob("node_modules/@ccusage/*/bin/ccusage"))
    if not programs:
        sys.exit(f"npm brought no native program for {CCUSAGE}; name one with --ccusage PATH.")
    programs[0].chmod(0o755)
    return programs[0]


def run(command: list[str], home: Path) -> tuple[float, float, dict[str, Any]]:
    """Seconds, peak memory in MB over all of its processes, and the answer."""
    environment = {**os.environ, "CLAUDE_CONFIG_DIR": str(home), "TZ": "UTC"}
    start = time.perf_counter()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)  # noqa: S603 - contenders
    if process.stdout is None:
        sys.exit("There is no pipe to read from.")
    os.set_blocking(process.stdout.fileno(), False)
    peaks: dict[int, int] = {}
    said = b""
    while process.poll() is None:
        for pid in (process.pid, *children(process.pid)):
            peaks[pid] = max(peaks.get(pid, 0), high_water(pid))
        said += process.stdout.read() or b""
        time.sleep(LOOK_EVERY)
    seconds = time.perf_counter() - start
    said += process.stdout.read() or b""
    return seconds, sum(peaks.values()) / 1024, json.loads(said)


def children(pid: int) -> list[int]:
    """The processes that a process has started; threads are not among them."""
    try:
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def high_water(pid: int) -> int:
    """The most memory that a process has held, in kB."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")), 0)


def contenders(program: Path) -> dict[str, list[str]]:
    """What is run, and how."""
    return {
        "ccusage": [str(program), "daily", "--json", "--offline"],
        "threadline": [sys.executable, "-m", "threadline", "usage", "--by", "day", "--tz", "UTC", "--json"],
    }


def measure(program: Path, home: Path, rounds: int) -> dict[str, tuple[float, float, dict[str, Any]]]:
    """The best round of each contender."""
    best: dict[str, tuple[float, float, dict[str, Any]]] = {}
    for turn in range(rounds + 1):
        for name, command in contenders(program).items():
            answer = run(command, home)
            if turn and (name not in best or answer[0] < best[name][0]):  # the first fills the page cache
                best[name] = answer
    return best


def report(home: Path, best: dict[str, tuple[float, float, dict[str, Any]]]) -> dict[str, Any]:
    """Print the figures of one home."""
    sizes = [path.stat().st_size for path in (home / "projects").rglob("*.jsonl")]
    theirs, ours = best["ccusage"], best["threadline"]
    print(f"\n{home.name}: {len(sizes):,} transcripts, {sum(sizes) / 1e6:,.0f} MB")
    print(f"  {'':<12}{'seconds':>9}{'peak MB':>9}")
    for name, (seconds, peak, _answer) in best.items():
        print(f"  {name:<12}{seconds:>9.2f}{peak:>9.0f}")
    print(f"  threadline is {theirs[0] / ours[0]:.2f} times as fast, in {ours[1] / theirs[1]:.2f} times the memory")
    totals = {name: (ours[2]["total"][name], theirs[2]["totals"][key]) for name, key in FIGURES.items()}
    print(f"  {'':<12}{'threadline':>16}{'ccusage':>16}{'difference':>14}")
    for name, (mine, other) in totals.items():
        print(f"  {name:<12}{mine:>16,}{other:>16,}{other - mine:>+14,}")
    amounts = float(ours[2]["total"]["amount"]), theirs[2]["totals"]["totalCost"]
    print(f"  {'amount':<12}{amounts[0]:>16,.2f}{amounts[1]:>16,.2f}{amounts[1] - amounts[0]:>+14,.2f}")
    return {
        "megabytes": sum(sizes) / 1e6,
        "faster": theirs[0] / ours[0],
        "memory": ours[1] / theirs[1],
        "seconds": {name: answer[0] for name, answer in best.items()},
        "peak": {name: answer[1] for name, answer in best.items()},
        "totals": totals,
    }


def main() -> None:
    """Measure both on each home, and explain where they part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path, action="append", help="a home to count; by default some are generated")
    parser.add_argument("--ccusage", type=Path, help="the native program; by default npm brings it")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    OUT.mkdir(exist_ok=True)
    program = ccusage(options.ccusage)
    figures = {}
    for home in options.home or [generated(size) for size in SIZES]:
        figures[str(home)] = report(home, measure(program, home, options.rounds))
        theirs = tuple(other for _mine, other in figures[str(home)]["totals"].values())
        for line in differences(home, theirs):
            print(f"  {line}")
    (OUT / "usage.json").write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
