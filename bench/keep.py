"""The size and speed of a keep, compared with restic, borg and `tar | zstd -19` on the same files.

A home advances day by day through its last ten days; after each day, every contender stores it again. Times are those
of whole processes, including start-up. The first run is repeated several times, in turn, and the best one counts, since
noise only adds time. Sizes are sums of file sizes. restic is measured with its default settings and with its strongest
compression; borg uses zstd at the same level as ours. Nothing is installed: programs that are missing are skipped, with
a message.
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
from bench.homes import OUT, GrowingTranscript, generated_home, writable_copy
from bench.processes import ProcessResult, machine_info, run
from bench.targets import Target, print_targets

FOLDER = OUT / "keep"
REAL = Path(__file__).parents[2] / "shared/corpus/home"
ROUNDS = 3
APPENDED = (1, 100)
# restic requires a password; the repository is deleted afterwards.
RESTIC_PASSWORD = {"RESTIC_PASSWORD": "bench"}


class Contender(NamedTuple):
    """A program that stores a home: the command that creates its repository, and the command of each day (numbered)."""

    name: str
    program: str
    create: Callable[[Path], list[str] | None]
    store: Callable[[Path, Path, int], list[str]]
    is_whole: bool = False
    """Whether each run stores everything again. Such a program only runs on the first day and the last."""

    @property
    def is_installed(self) -> bool:
        """Whether the program is on the PATH."""
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
    Contender("tar | zstd -19", "zstd", lambda _repository: None, _tar, is_whole=True),
)


def environment(folder: Path) -> dict[str, str]:
    """Environment variables that keep the caches of a contender in a folder of this benchmark."""
    return {
        **RESTIC_PASSWORD,
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
    """The sizes of all files below a folder."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def check_result(result: ProcessResult, name: str) -> ProcessResult:
    """The result of a process; exits if the process failed."""
    if result.exit_code != 0:
        sys.exit(f"{name} ended with {result.exit_code}: {(result.stderr or result.stdout)[-500:]}")
    return result


def first_run(contender: Contender, home: Path, repository: Path) -> ProcessResult:
    """Store a home in a new repository."""
    folder = repository.parent
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    command = contender.create(repository)
    if command is not None:
        check_result(run(command, environment(folder)), contender.name)
    return next_run(contender, home, repository, 0)


def next_run(contender: Contender, home: Path, repository: Path, number: int) -> ProcessResult:
    """Store a home in an existing repository."""
    words = contender.store(home, repository, number)
    return check_result(run(words, environment(repository.parent)), contender.name)


def measure(home: Path, rounds: int, contenders: list[Contender]) -> dict[str, Any]:
    """Measure the first runs in turn, then the runs of the ten days."""
    days = Days(home, FOLDER / "home")
    raw = days.start()
    print(f"\n{home}: {raw / 1e6:,.1f} MB at first", flush=True)
    repositories = {
        contender.name: FOLDER / f"contender-{number}" / "repository" for number, contender in enumerate(contenders)
    }
    figures: dict[str, dict[str, Any]] = {}
    for turn in range(rounds):
        for contender in contenders:
            if turn and contender.is_whole:  # takes minutes, and no target depends on its speed
                continue
            result = first_run(contender, days.home, repositories[contender.name])
            before = figures.get(contender.name)
            if before is None or result.seconds < before["seconds"]:
                figures[contender.name] = {"seconds": result.seconds, "cpu": result.cpu, "peak": sum(result.peaks)}
            figures[contender.name]["first"] = size_of(repositories[contender.name])
    steps: dict[str, list[float]] = {contender.name: [] for contender in contenders}
    grown = raw
    for number, day in enumerate(days.days[1:], 1):
        grown = days.advance_to(day)
        for contender in contenders:
            if not contender.is_whole:
                steps[contender.name].append(
                    next_run(contender, days.home, repositories[contender.name], number).seconds
                )
    for contender in contenders:
        if contender.is_whole:  # only the last day
            first_run(contender, days.home, repositories[contender.name])
        own = figures[contender.name]
        own["after"] = size_of(repositories[contender.name])
        own["step"] = median(steps[contender.name]) if steps[contender.name] else None
    pack_and_verify(figures["threadline"], repositories["threadline"])
    return {"home": str(home), "raw": raw, "grown": grown, "days": len(days.days) - 1, "contenders": figures}


def pack_and_verify(figures: dict[str, Any], repository: Path) -> None:
    """Pack and verify the keep, and record its size."""
    for action in ("pack", "verify"):
        result = run(_threadline(action, "--keep", str(repository)), environment(repository.parent))
        check_result(result, f"keep {action}")
        figures[action] = result.seconds
    figures["packed"] = size_of(repository)


def print_figures(figures: dict[str, Any]) -> None:
    """Print the figures of one home."""
    raw, grown = figures["raw"], figures["grown"]
    print(f"{figures['days']} days later: {grown / 1e6:,.1f} MB, {(grown - raw) / 1e6:,.1f} MB more")
    heads = ("seconds", "CPU s", "MB/s", "peak MB", "MB", "% of raw", "MB then", "% of raw", "s a day")
    print(f"  {'':<16}" + "".join(f"{head:>9}" for head in heads))
    for name, own in figures["contenders"].items():
        day = f"{own['step']:>9.2f}" if own["step"] is not None else f"{'-':>9}"
        print(
            f"  {name:<16}{own['seconds']:>9.2f}{own['cpu']:>9.2f}{raw / 1e6 / own['seconds']:>9.0f}"
            f"{own['peak']:>9.0f}{own['first'] / 1e6:>9.2f}{own['first'] / raw:>9.2%}"
            f"{own['after'] / 1e6:>9.2f}{own['after'] / grown:>9.2%}{day}"
        )
    ours = figures["contenders"]["threadline"]
    print(
        f"  threadline, packed: {ours['packed'] / 1e6:.2f} MB, {ours['packed'] / grown:.2%} of raw"
        f" (pack {ours['pack']:.1f} s, verify {ours['verify']:.1f} s). tar holds only the last day."
    )


def measure_growth(home: Path) -> list[dict[str, Any]]:
    """Append lines to a large transcript, store the home again, and compare bytes on disk with the bytes appended."""
    copy, largest = writable_copy(home)
    ours = CONTENDERS[0]
    repository = FOLDER / "grown" / "repository"
    first_run(ours, copy, repository)
    growing = GrowingTranscript(largest)
    measurements = []
    for lines in APPENDED:
        stored_before, size_before = size_of(repository), largest.stat().st_size
        for _ in range(lines):
            growing.append_line()
        result = next_run(ours, copy, repository, lines)
        measurements.append(
            {
                "lines": lines,
                "file": largest.stat().st_size,
                "growth": largest.stat().st_size - size_before,
                "stored": size_of(repository) - stored_before,
                "seconds": result.seconds,
                "cpu": result.cpu,
            }
        )
        last = measurements[-1]
        print(
            f"{lines:>4} lines appended to a file of {last['file'] / 1e6:.0f} MB: {last['growth']:,} bytes of growth,"
            f" {last['stored']:,} bytes on disk ({last['stored'] / last['growth']:.0%}), {result.seconds:.2f} s"
        )
    shutil.rmtree(copy)
    return measurements


def targets(homes: list[dict[str, Any]], growth: list[dict[str, Any]]) -> list[Target]:
    """The targets and the figures measured."""
    rows = []
    for home in homes:
        ours = home["contenders"]["threadline"]
        name = "real home" if home["home"] == str(REAL) else Path(home["home"]).name
        restic = home["contenders"].get("restic, max")
        if home["home"] == str(REAL):
            rows.append(Target(f"{name}: % of raw, first run", "at most", 12, 100 * ours["first"] / home["raw"]))
            rows.append(Target(f"{name}: % of raw, ten days later", "at most", 12, 100 * ours["after"] / home["grown"]))
        share = 100 * ours["after"] / restic["after"] if restic is not None else None
        rows.append(Target(f"{name}: % of restic's strongest compression", "under", 100, share))
        rows.append(Target(f"{name}: first run, MB/s", "at least", 100, home["raw"] / 1e6 / ours["seconds"]))
    rows += [
        Target(
            f"{step['lines']} lines appended: % of the growth", "at most", 150, 100 * step["stored"] / step["growth"]
        )
        for step in growth
    ]
    return rows


def main() -> None:
    """Measure, print, and write the figures to bench/out/keep.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=200, help="size of the generated home; 0 for none")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often the first run is repeated")
    parser.add_argument("--without", action="append", default=[], help="skip a contender, such as 'tar'")
    options = parser.parse_args()
    chosen = [contender for contender in CONTENDERS if contender.name.split()[0].strip(",") not in options.without]
    for contender in chosen:
        if not contender.is_installed:
            print(f"{contender.name} is skipped: {contender.program} is not installed.")
    installed = [contender for contender in chosen if contender.is_installed]
    homes = [REAL] if REAL.is_dir() else []
    homes += [generated_home(options.megabytes)] if options.megabytes else []
    about = machine_info()
    measured = []
    for home in homes:
        measured.append(measure(home, options.rounds, installed))
        print_figures(measured[-1])
    growth = measure_growth(homes[-1]) if homes else []
    outcomes = print_targets(targets(measured, growth))
    print(f"load at the start {about['load_at_start'][0]:.1f}, at the end {os.getloadavg()[0]:.1f}")
    figures = {"machine": about, "homes": measured, "grown": growth, "targets": outcomes}
    (OUT / "keep.json").write_text(json.dumps(figures, indent=1))
    shutil.rmtree(FOLDER, ignore_errors=True)


if __name__ == "__main__":
    main()
