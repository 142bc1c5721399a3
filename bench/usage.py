"""The time and memory to count the usage of a home, compared with ccusage's native program, and their totals.

Times are those of whole processes, including the start of the interpreter, without an index, in several rounds in turn;
the best round counts, since noise only adds time. Memory is the sum of the peaks of all processes of a contender.
`make bench-usage` installs ccusage with npm, generates homes whose transcripts have realistic sizes, and explains where
the totals differ.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
from bench.differences import differences
from bench.homes import OUT, generated_home
from bench.processes import run

# The newest release whose native program for this system is in the registry.
CCUSAGE = "ccusage@20.0.24"
SIZES = (200, 2000)
FIGURES = {
    "input": "inputTokens",
    "output": "outputTokens",
    "cache_write": "cacheCreationTokens",
    "cache_read": "cacheReadTokens",
}


def ccusage(program: Path | None) -> Path:
    """The native program: the given path, or the one that npm installs."""
    if program is not None:
        return program
    folder = OUT / "ccusage"
    folder.mkdir(parents=True, exist_ok=True)
    programs = list(folder.glob("node_modules/@ccusage/*/bin/ccusage"))
    if not programs:
        subprocess.run(["npm", "install", "--silent", "--prefix", str(folder), CCUSAGE], check=True)  # noqa: S603, S607 - the package of a contender
        programs = list(folder.glob("node_modules/@ccusage/*/bin/ccusage"))
    if not programs:
        sys.exit(f"npm installed no native program for {CCUSAGE}; pass one with --ccusage PATH.")
    programs[0].chmod(0o755)
    return programs[0]


def count(command: list[str], home: Path) -> tuple[float, float, dict[str, Any]]:
    """Seconds, the peak memory of all its processes in MB, and its answer."""
    result = run(command, {"CLAUDE_CONFIG_DIR": str(home), "TZ": "UTC"})
    if result.exit_code != 0:
        sys.exit(f"{command[0]} ended with {result.exit_code}: {result.stderr[-500:]}")
    return result.seconds, sum(result.peaks), json.loads(result.stdout)


def contenders(program: Path) -> dict[str, list[str]]:
    """The commands by name."""
    return {
        "ccusage": [str(program), "daily", "--json", "--offline"],
        "threadline": [sys.executable, "-m", "threadline", "usage", "--by", "day", "--tz", "UTC", "--json"],
    }


def measure(program: Path, home: Path, rounds: int) -> dict[str, tuple[float, float, dict[str, Any]]]:
    """The best round of each contender."""
    best: dict[str, tuple[float, float, dict[str, Any]]] = {}
    for turn in range(rounds + 1):
        for name, command in contenders(program).items():
            answer = count(command, home)
            if turn and (name not in best or answer[0] < best[name][0]):  # the first round fills the page cache
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
    for name, (own, other) in totals.items():
        print(f"  {name:<12}{own:>16,}{other:>16,}{other - own:>+14,}")
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
    """Measure both on each home, and explain the differences of their totals."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path, action="append", help="a home to count; by default some are generated")
    parser.add_argument("--ccusage", type=Path, help="the native program; by default it is installed with npm")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    OUT.mkdir(exist_ok=True)
    program = ccusage(options.ccusage)
    figures = {}
    for home in options.home or [generated_home(size) for size in SIZES]:
        figures[str(home)] = report(home, measure(program, home, options.rounds))
        theirs = tuple(other for _own, other in figures[str(home)]["totals"].values())
        for line in differences(home, theirs):
            print(f"  {line}")
    (OUT / "usage.json").write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
