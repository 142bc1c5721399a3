"""How fast a lake is filled and built compared with the plain index, and what ten terabytes a month would take.

On generated homes of several sizes, in a folder, on this machine. CPU time of whole processes and their workers, the
least of several runs: other work on the machine does not change it much. A push or build costs a fixed part, for its
processes and for a file of each table and day, and a part for each MB. The report has both, how far each measurement
is from that line, and whether a further MB costs the same in a small home and in a large one.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
from bench.homes import OUT, generated_home, transcripts
from bench.processes import machine_info, run

LAKE, CACHE = OUT / "lake", OUT / "cache"
MONTH = 10e12
"""What 10,000 people write in a month, in bytes."""
STEPS = {"push": ("--accept", "full"), "build": (), "usage": ("--json",)}
LINEAR = 0.1
"""Growth is linear if no measurement, and no marginal cost, differs by more than this part."""


def measure(home: Path, runs: int) -> dict[str, Any]:
    """Push a home, build it, and index it, several times; the least CPU time of each step counts."""
    size = sum(path.stat().st_size for path in transcripts(home))
    attempts = [_run_steps(home) for _ in range(runs)]
    steps = {name: min(attempt[name] for attempt in attempts) for name in attempts[0]}
    stored = {name: _files_below(LAKE / name) for name in ("bronze", "silver")}
    return {
        "megabytes": size / 1e6,
        "cpu_seconds": steps,
        "megabytes_per_cpu_second": {name: size / 1e6 / cpu for name, cpu in steps.items()},
        "build_per_index": steps["build"] / steps["index"],
        "stored_share": {name: sum(sizes) / size for name, sizes in stored.items()},
        "stored_files": {name: len(sizes) for name, sizes in stored.items()},
    }


def _run_steps(home: Path) -> dict[str, float]:
    shutil.rmtree(LAKE, ignore_errors=True)
    threadline(home, "lake", "init", str(LAKE), "--policy", "full")
    cpu = {name: threadline(home, "lake", name, str(LAKE), *options) for name, options in STEPS.items()}
    return cpu | {"index": threadline(home, "index", "rebuild")}


def _files_below(folder: Path) -> list[int]:
    """The sizes of files."""
    return [path.stat().st_size for path in folder.rglob("*") if path.is_file()]


def threadline(home: Path, *words: str) -> float:
    """Run our command; return the CPU seconds that it took."""
    variables = {"CLAUDE_CONFIG_DIR": str(home), "THREADLINE_CACHE": str(CACHE), "XDG_DATA_HOME": str(OUT / "data")}
    result = run([sys.executable, "-m", "threadline", *words], variables)
    if result.exit_code:
        sys.exit(f"threadline {' '.join(words)} exited with {result.exit_code}: {result.stderr.strip()[-500:]}")
    return result.cpu


def growth(points: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """How CPU seconds grow with MB: a line through the points, and the marginal cost of both halves.

    The line has the least relative deviations, so that small sizes count as much as large ones.
    """
    fixed, slope = _fit_line(points)
    deviations = [seconds / (fixed + slope * size) - 1 for size, seconds in points]
    middle = min(points[1:-1], key=lambda point: abs(point[0] - (points[0][0] + points[-1][0]) / 2))
    lower, upper = ((b[1] - a[1]) / (b[0] - a[0]) for a, b in pairwise((points[0], middle, points[-1])))
    return {
        "fixed_cpu_seconds": fixed,
        "cpu_seconds_per_gigabyte": slope * 1000,
        "deviations_from_line": deviations,
        "is_a_line": max(map(abs, deviations)) <= LINEAR,
        "marginal_cpu_seconds_per_gigabyte": {"lower_half": lower * 1000, "upper_half": upper * 1000},
        "marginal_cost_is_constant": abs(upper / lower - 1) <= LINEAR,
        "cpu_per_byte_of_largest_to_smallest": (points[-1][1] / points[-1][0]) / (points[0][1] / points[0][0]),
    }


def _fit_line(points: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """The fixed part and the slope of the line with the least squares of relative deviations."""
    weighted = [(1 / y**2, x, y) for x, y in points]
    total = sum(w for w, _, _ in weighted)
    mean_x, mean_y = (sum(w * point[at] for w, *point in weighted) / total for at in (0, 1))
    slope = sum(w * (x - mean_x) * (y - mean_y) for w, x, y in weighted) / sum(
        w * (x - mean_x) ** 2 for w, x, _ in weighted
    )
    return mean_y - slope * mean_x, slope


def main() -> None:
    """Measure some sizes; print and store the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, nargs="+", default=[200, 600, 1100, 2000])
    parser.add_argument("--runs", type=int, default=2, help="how often to measure each size")
    options = parser.parse_args()
    if len(options.megabytes) < 3:  # noqa: PLR2004 - two points are always on a line
        parser.error("--megabytes needs three sizes or more")
    results = [measure(generated_home(megabytes), options.runs) for megabytes in sorted(options.megabytes)]
    lines = {
        name: growth([(result["megabytes"], result["cpu_seconds"][name]) for result in results])
        for name in ("push", "build", "index")
    }
    month = {
        "core_hours": {
            name: lines[name]["cpu_seconds_per_gigabyte"] * MONTH / 1e9 / 3600 for name in ("push", "build")
        },
        "stored_terabytes": {name: share * MONTH / 1e12 for name, share in results[-1]["stored_share"].items()},
    }
    report = {"machine": machine_info(), "sizes": results, "growth": lines, "ten_terabytes": month}
    (OUT / "lake.json").write_text(json.dumps(report, indent=2))
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
