"""How fast a lake is filled and built beside the plain index, and what ten terabytes a month would take.

On generated homes of two sizes, in a folder, on this machine. CPU time of whole processes and their workers: other
work on the machine does not change it much.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
from bench.homes import OUT, generated, transcripts
from bench.processes import machine, run

LAKE, CACHE = OUT / "lake", OUT / "cache"
MONTH = 10e12
"""What 10,000 people write in a month, in bytes."""


def measure(home: Path) -> dict[str, Any]:
    """Push a home, build it, and index it."""
    size = sum(path.stat().st_size for path in transcripts(home))
    shutil.rmtree(LAKE, ignore_errors=True)
    threadline(home, "lake", "init", str(LAKE), "--policy", "full")
    steps = {
        "push": threadline(home, "lake", "push", str(LAKE), "--accept", "full"),
        "build": threadline(home, "lake", "build", str(LAKE)),
        "usage": threadline(home, "lake", "usage", str(LAKE), "--json"),
        "index": threadline(home, "index", "rebuild"),
    }
    stored = {
        name: sum(path.stat().st_size for path in (LAKE / name).rglob("*") if path.is_file())
        for name in ("bronze", "silver")
    }
    return {
        "megabytes": size / 1e6,
        "cpu_seconds": steps,
        "megabytes_per_cpu_second": {name: size / 1e6 / cpu for name, cpu in steps.items()},
        "stored_share": {name: stored[name] / size for name in stored},
    }


def threadline(home: Path, *words: str) -> float:
    """Run our command; return the CPU seconds that it took."""
    variables = {"CLAUDE_CONFIG_DIR": str(home), "THREADLINE_CACHE": str(CACHE), "XDG_DATA_HOME": str(OUT / "data")}
    ran = run([sys.executable, "-m", "threadline", *words], variables)
    if ran.code:
        sys.exit(f"threadline {' '.join(words)} ended with {ran.code}: {ran.complaint.strip()[-500:]}")
    return ran.cpu


def main() -> None:
    """Measure two sizes; print and store the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, nargs=2, default=[200, 2000])
    sizes = parser.parse_args().megabytes
    results = [measure(generated(megabytes)) for megabytes in sizes]
    small, large = results
    growth = {
        name: (large["cpu_seconds"][name] / large["megabytes"]) / (small["cpu_seconds"][name] / small["megabytes"])
        for name in ("push", "build")
    }
    per_byte = sum(large["cpu_seconds"][name] for name in ("push", "build")) / (large["megabytes"] * 1e6)
    month = {
        "core_hours": per_byte * MONTH / 3600,
        "stored_terabytes": {name: share * MONTH / 1e12 for name, share in large["stored_share"].items()},
    }
    report = {"machine": machine(), "sizes": results, "cpu_per_byte_growth": growth, "ten_terabytes": month}
    (OUT / "lake.json").write_text(json.dumps(report, indent=2))
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
