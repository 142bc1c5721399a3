"""Compare the size and speed of the keep with restic, borg and `tar | zstd -19` on the same files.

A home grows day by day for its last ten days, and every tool stores it after each day. Times are of whole processes.
The first run is repeated, the tools take turns, and the best round counts, because noise only adds. Sizes are sums of
file sizes. restic runs with its defaults, and again with its strongest compression; borg uses zstd at our level. Tools
that are not installed are skipped with a message.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent))
from bench.days import Days
from bench.homes import OUT, GrowingTranscript, copy_home, generate_home
from bench.processes import ProcessResult, machine, run
from bench.targets import Target, print_targets

FOLDER = OUT / "keep"
REAL = Path(__file__).parents[2] / "shared/corpus/home"
ROUNDS = 3
APPENDED = (1, 100)
# restic requires a password; the repository is deleted afterwards.
SECRET = {"RESTIC_PASSWORD": "bench"}


class Contender(NamedTuple):
    """A tool: the command that creates its repository, and the command for each (numbered) day."""

    name: str
    program: str
    create: Callable[[Path], list[str] | None]
    store: Callable[[Path, Path, int], list[str]]
    stores_everything: bool = False
    """Whether it stores everything again each time. It runs only on the first and the last day."""

    @property
    def is_installed(self) -> bool:
        """Whether its program is installed."""
        return shutil.which(self.program) is not None


def _threadline(*words: str) -> list[str]:
    return [sys.executable, "-m", "threadline", "keep", *words]


def _tar(home: Path, repository: Path, number: int) -> list[str]:
    script = 'mkdir -p "$2" && tar -C "$1" -cf - . | zstd -q -19 -o "$2/$3.tar.zst"'
    return ["sh", "-c", script, "sh", str(home), str(repository), str(number)]


CONTENDERS = (
    Contender(
        "threadline",
        sys.executable,
        lambda _repository: None,
        lambda home, repository, _number: _threadline("--quiet", "--home", str(home), "--keep", str(repository)),
    ),
    Contender(
        "restic",
        "restic",
        lambda repository: ["restic", "init", "--quiet", "--repo", str(repository)],
        lambda home, repository, _number: ["restic", "backup", "--quiet", "--repo", str(repository), str(home)],
    ),
    Contender(
        "restic, max",
        "restic",
        lambda repository: ["restic", "init", "--quiet", "--repo", str(repository)],
        lambda home, repository, _number: [
            "restic",
            "backup",
            "--quiet",
            "--compression=max",
            "--repo",
            str(repository),
            str(home),
        ],
    ),
    Contender(
        "borg, zstd 9",
        "borg",
        lambda repository: ["borg", "init", "--encryption=none", str(repository)],
        lambda home, repository, number: [
            "borg",
            "create",
            "--compression=zstd,9",
            f"{repository}::{number}",
            str(home),
        ],
    ),
    Contender("tar | zstd -19", "zstd", lambda _repository: None, _tar, stores_everything=True),
)


def environment(folder: Path) -> dict[str, str]:
    """Return variables that give each tool its own caches and hide other homes."""
    return {
        **SECRET,
        "HOME": str(folder),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "XDG_DATA_HOME": str(folder / "data"),
        "XDG_CONFIG_HOME": str(folder / "config"),
        "THREADLINE_CACHE": str(folder / "threadline"),
        "BORG_BASE_DIR": str(folder / "borg"),
        "BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK": "yes",
        "PYTHONPATH": str(Path(__file__).parents[1] / "src"),
    }


def size_of(folder: Path) -> int:
    """Return the total size of the files below a folder."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def run_checked(name: str, command: list[str], folder: Path) -> ProcessResult:
    """Run a command, and exit if it fails."""
    result = run(command, environment(folder))
    if result.code != 0:
        sys.exit(f"{name} failed with {result.code}: {(result.stderr or result.stdout)[-500:]}")
    return result


def store_first(contender: Contender, home: Path, repository: Path) -> ProcessResult:
    """Store a home in a new repository."""
    folder = repository.parent
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    create = contender.create(repository)
    if create is not None:
        run_checked(contender.name, create, folder)
    return store_again(contender, home, repository, 0)


def store_again(contender: Contender, home: Path, repository: Path, number: int) -> ProcessResult:
    """Store a home again."""
    return run_checked(contender.name, contender.store(home, repository, number), repository.parent)


def measure(home: Path, rounds: int, contenders: list[Contender]) -> dict[str, Any]:
    """Measure first runs, in turn, then ten days."""
    days = Days(home, FOLDER / "home")
    raw = days.start()
    print(f"\n{home}: {raw / 1e6:,.1f} MB at first", flush=True)
    repositories = {
        contender.name: FOLDER / f"contender-{number}" / "repository" for number, contender in enumerate(contenders)
    }
    figures: dict[str, dict[str, Any]] = {}
    for turn in range(rounds):
        for contender in contenders:
            if turn and contender.stores_everything:  # takes minutes, and its speed is not compared
                continue
            result = store_first(contender, days.home, repositories[contender.name])
            before = figures.get(contender.name)
            if before is None or result.seconds < before["seconds"]:
                figures[contender.name] = {
                    "seconds": result.seconds,
                    "cpu": result.cpu,
                    "peak": sum(result.peaks),
                }
            figures[contender.name]["first"] = size_of(repositories[contender.name])
    steps: dict[str, list[float]] = {contender.name: [] for contender in contenders}
    grown = raw
    for number, day in enumerate(days.days[1:], 1):
        grown = days.advance(day)
        for contender in contenders:
            if not contender.stores_everything:
                step = store_again(contender, days.home, repositories[contender.name], number)
                steps[contender.name].append(step.seconds)
    for contender in contenders:
        if contender.stores_everything:  # only the last day
            store_first(contender, days.home, repositories[contender.name])
        row = figures[contender.name]
        row["after"] = size_of(repositories[contender.name])
        row["step"] = median(steps[contender.name]) if steps[contender.name] else None
    pack(figures["threadline"], repositories["threadline"])
    return {"home": str(home), "raw": raw, "grown": grown, "days": len(days.days) - 1, "contenders": figures}


def pack(row: dict[str, Any], repository: Path) -> None:
    """Pack and verify the keep, and add its times and size."""
    for action in ("pack", "verify"):
        command = _threadline(action, "--keep", str(repository))
        row[action] = run_checked(f"keep {action}", command, repository.parent).seconds
    row["packed"] = size_of(repository)


def print_home(report: dict[str, Any]) -> None:
    """Print the figures of one home."""
    raw, grown = report["raw"], report["grown"]
    print(f"after {report['days']} days: {grown / 1e6:,.1f} MB, {(grown - raw) / 1e6:,.1f} MB more")
    heads = ("seconds", "CPU s", "MB/s", "peak MB", "MB", "% of raw", "MB after", "% of raw", "s/day")
    print(f"  {'':<16}" + "".join(f"{head:>9}" for head in heads))
    for name, row in report["contenders"].items():
        day = f"{row['step']:>9.2f}" if row["step"] is not None else f"{'-':>9}"
        print(
            f"  {name:<16}{row['seconds']:>9.2f}{row['cpu']:>9.2f}{raw / 1e6 / row['seconds']:>9.0f}"
            f"{row['peak']:>9.0f}{row['first'] / 1e6:>9.2f}{row['first'] / raw:>9.2%}"
            f"{row['after'] / 1e6:>9.2f}{row['after'] / grown:>9.2%}{day}"
        )
    ours = report["contenders"]["threadline"]
    print(
        f"  threadline, packed: {ours['packed'] / 1e6:.2f} MB, {ours['packed'] / grown:.2%} of raw"
        f" (pack {ours['pack']:.1f} s, verify {ours['verify']:.1f} s). tar has only the last day."
    )


def measure_growth(home: Path) -> list[dict[str, Any]]:
    """Append lines to one large transcript, and compare the bytes stored with the bytes added."""
    copy, largest = copy_home(home)
    ours = CONTENDERS[0]
    repository = FOLDER / "grown" / "repository"
    store_first(ours, copy, repository)
    growing = GrowingTranscript(largest)
    rows = []
    for lines in APPENDED:
        stored_before, size_before = size_of(repository), largest.stat().st_size
        for _ in range(lines):
            growing.append_line()
        result = store_again(ours, copy, repository, lines)
        row = {
            "lines": lines,
            "file": largest.stat().st_size,
            "growth": largest.stat().st_size - size_before,
            "stored": size_of(repository) - stored_before,
            "seconds": result.seconds,
            "cpu": result.cpu,
        }
        rows.append(row)
        print(
            f"{lines:>4} lines appended to a file of {row['file'] / 1e6:.0f} MB: {row['growth']:,} bytes added,"
            f" {row['stored']:,} bytes stored ({row['stored'] / row['growth']:.0%}), {result.seconds:.2f} s"
        )
    shutil.rmtree(copy)
    return rows


def targets(reports: list[dict[str, Any]], growth: list[dict[str, Any]]) -> list[Target]:
    """Return the targets with the measured figures."""
    rows = []
    for report in reports:
        ours = report["contenders"]["threadline"]
        name = "real home" if report["home"] == str(REAL) else Path(report["home"]).name
        restic = report["contenders"].get("restic, max")
        if report["home"] == str(REAL):
            rows.append(Target(f"{name}: % of raw, first run", "at most", 12, 100 * ours["first"] / report["raw"]))
            rows.append(Target(f"{name}: % of raw, ten days", "at most", 12, 100 * ours["after"] / report["grown"]))
        share = 100 * ours["after"] / restic["after"] if restic is not None else None
        rows.append(Target(f"{name}: % of restic's best", "under", 100, share))
        rows.append(Target(f"{name}: first run, MB/s", "at least", 100, report["raw"] / 1e6 / ours["seconds"]))
    rows += [
        Target(f"{row['lines']} lines appended: % of growth", "at most", 150, 100 * row["stored"] / row["growth"])
        for row in growth
    ]
    return rows


def main() -> None:
    """Measure everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=200, help="size of the generated home; 0 for none")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often to repeat the first run")
    parser.add_argument("--without", action="append", default=[], help="a tool to skip, such as 'tar'")
    options = parser.parse_args()
    selected = [tool for tool in CONTENDERS if tool.name.split()[0].strip(",") not in options.without]
    for tool in selected:
        if not tool.is_installed:
            print(f"Skipping {tool.name}: {tool.program} is not installed.")
    installed = [tool for tool in selected if tool.is_installed]
    homes = [REAL] if REAL.is_dir() else []
    homes += [generate_home(options.megabytes)] if options.megabytes else []
    machine_info = machine()
    reports = []
    for home in homes:
        reports.append(measure(home, options.rounds, installed))
        print_home(reports[-1])
    growth = measure_growth(homes[-1]) if homes else []
    met = print_targets(targets(reports, growth))
    print(f"load at the start {machine_info['load_at_start'][0]:.1f}, at the end {os.getloadavg()[0]:.1f}")
    figures = {"machine": machine_info, "homes": reports, "growth": growth, "targets": met}
    (OUT / "keep.json").write_text(json.dumps(figures, indent=1))
    shutil.rmtree(FOLDER, ignore_errors=True)


if __name__ == "__main__":
    main()
