"""What a keep takes on disk, and how fast it is, beside restic, borg and `tar | zstd -19`, on the same files.

A home is brought from one of its days to the next, for the last ten; after each, every contender stores it once more.
Whole processes, start-up included; the first run is done several times, in turn, and the best counts, as noise only
adds. Sizes are the sums of the sizes of files. restic has its own settings, and once more its strongest compression;
borg is told zstd at the same level as ours. Nothing is installed: what is not there is left out, with a line.
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
from bench.homes import OUT, Growing, generated, writable
from bench.processes import Ran, machine, run
from bench.targets import Target, print_targets

FOLDER = OUT / "keep"
REAL = Path(__file__).parents[2] / "shared/corpus/home"
ROUNDS = 3
APPENDED = (1, 100)
# What restic wants is a password; the repository is thrown away.
SECRET = {"RESTIC_PASSWORD": "bench"}


class Contender(NamedTuple):
    """How something stores a home: what begins its repository, and what is run each day (numbered)."""

    name: str
    program: str
    begin: Callable[[Path], list[str] | None]
    store: Callable[[Path, Path, int], list[str]]
    is_whole: bool = False
    """Whether it stores all of it anew each time; it is run on the first day and the last."""

    @property
    def is_there(self) -> bool:
        """Whether it can be run here."""
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
    """Each contender has its caches in a folder of this measurement, and sees no other home."""
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
    """The sizes of all files below a folder."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def checked(ran: Ran, name: str) -> Ran:
    """What was run, if it went well."""
    if ran.code != 0:
        sys.exit(f"{name} ended with {ran.code}: {(ran.complaint or ran.said)[-500:]}")
    return ran


def first(contender: Contender, home: Path, repository: Path) -> Ran:
    """Store a home into a repository that is begun for it."""
    folder = repository.parent
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    begin = contender.begin(repository)
    if begin is not None:
        checked(run(begin, environment(folder)), contender.name)
    return again(contender, home, repository, 0)


def again(contender: Contender, home: Path, repository: Path, number: int) -> Ran:
    """Store a home once more."""
    words = contender.store(home, repository, number)
    return checked(run(words, environment(repository.parent)), contender.name)


def measure(home: Path, rounds: int, contenders: list[Contender]) -> dict[str, Any]:
    """First runs in turn, then ten days."""
    days = Days(home, FOLDER / "home")
    raw = days.begin()
    print(f"\n{home}: {raw / 1e6:,.1f} MB at first", flush=True)
    places = {one.name: FOLDER / f"contender-{number}" / "repository" for number, one in enumerate(contenders)}
    figures: dict[str, dict[str, Any]] = {}
    for turn in range(rounds):
        for contender in contenders:
            if turn and contender.is_whole:  # minutes each, and nobody's target is its speed
                continue
            ran = first(contender, days.home, places[contender.name])
            before = figures.get(contender.name)
            if before is None or ran.seconds < before["seconds"]:
                figures[contender.name] = {"seconds": ran.seconds, "cpu": ran.cpu, "peak": sum(ran.peaks)}
            figures[contender.name]["first"] = size_of(places[contender.name])
    steps: dict[str, list[float]] = {contender.name: [] for contender in contenders}
    grown = raw
    for number, day in enumerate(days.days[1:], 1):
        grown = days.go_on(day)
        for contender in contenders:
            if not contender.is_whole:
                steps[contender.name].append(again(contender, days.home, places[contender.name], number).seconds)
    for contender in contenders:
        if contender.is_whole:  # the last day alone
            first(contender, days.home, places[contender.name])
        told = figures[contender.name]
        told["after"] = size_of(places[contender.name])
        told["step"] = median(steps[contender.name]) if steps[contender.name] else None
    packed(figures["threadline"], places["threadline"])
    return {"home": str(home), "raw": raw, "grown": grown, "days": len(days.days) - 1, "contenders": figures}


def packed(told: dict[str, Any], repository: Path) -> None:
    """What the keep takes once it is packed; and that every byte of it is right."""
    for action in ("pack", "verify"):
        ran = run(_threadline(action, "--keep", str(repository)), environment(repository.parent))
        checked(ran, f"keep {action}")
        told[action] = ran.seconds
    told["packed"] = size_of(repository)


def show(found: dict[str, Any]) -> None:
    """Print the figures of one home."""
    raw, grown = found["raw"], found["grown"]
    print(f"{found['days']} days on: {grown / 1e6:,.1f} MB, {(grown - raw) / 1e6:,.1f} MB more")
    heads = ("seconds", "CPU s", "MB/s", "peak MB", "MB", "% of raw", "MB then", "% of raw", "s a day")
    print(f"  {'':<16}" + "".join(f"{head:>9}" for head in heads))
    for name, told in found["contenders"].items():
        day = f"{told['step']:>9.2f}" if told["step"] is not None else f"{'-':>9}"
        print(
            f"  {name:<16}{told['seconds']:>9.2f}{told['cpu']:>9.2f}{raw / 1e6 / told['seconds']:>9.0f}"
            f"{told['peak']:>9.0f}{told['first'] / 1e6:>9.2f}{told['first'] / raw:>9.2%}"
            f"{told['after'] / 1e6:>9.2f}{told['after'] / grown:>9.2%}{day}"
        )
    ours = found["contenders"]["threadline"]
    print(
        f"  threadline, packed: {ours['packed'] / 1e6:.2f} MB, {ours['packed'] / grown:.2%} of raw"
        f" (pack {ours['pack']:.1f} s, verify {ours['verify']:.1f} s). tar holds the last day alone."
    )


def one_grown_file(home: Path) -> list[dict[str, Any]]:
    """What an increment costs where one large transcript grew by some lines: bytes on disk beside bytes of growth."""
    copy, largest = writable(home)
    ours = CONTENDERS[0]
    repository = FOLDER / "grown" / "repository"
    first(ours, copy, repository)
    growing = Growing(largest)
    found = []
    for lines in APPENDED:
        before, was = size_of(repository), largest.stat().st_size
        for _ in range(lines):
            growing.grow()
        ran = again(ours, copy, repository, lines)
        found.append(
            {
                "lines": lines,
                "file": largest.stat().st_size,
                "growth": largest.stat().st_size - was,
                "stored": size_of(repository) - before,
                "seconds": ran.seconds,
                "cpu": ran.cpu,
            }
        )
        told = found[-1]
        print(
            f"{lines:>4} lines more in a file of {told['file'] / 1e6:.0f} MB: {told['growth']:,} bytes of growth,"
            f" {told['stored']:,} bytes on disk ({told['stored'] / told['growth']:.0%}), {ran.seconds:.2f} s"
        )
    shutil.rmtree(copy)
    return found


def targets(found: list[dict[str, Any]], grown: list[dict[str, Any]]) -> list[Target]:
    """What was to be reached."""
    made = []
    for one in found:
        ours = one["contenders"]["threadline"]
        name = "real home" if one["home"] == str(REAL) else Path(one["home"]).name
        restic = one["contenders"].get("restic, max")
        if one["home"] == str(REAL):
            made.append(Target(f"{name}: % of raw, first run", "at most", 12, 100 * ours["first"] / one["raw"]))
            made.append(Target(f"{name}: % of raw, ten days on", "at most", 12, 100 * ours["after"] / one["grown"]))
        share = 100 * ours["after"] / restic["after"] if restic is not None else None
        made.append(Target(f"{name}: % of restic's, at its best", "under", 100, share))
        made.append(Target(f"{name}: first run, MB/s", "at least", 100, one["raw"] / 1e6 / ours["seconds"]))
    made += [
        Target(f"{told['lines']} lines more: % of the growth", "at most", 150, 100 * told["stored"] / told["growth"])
        for told in grown
    ]
    return made


def main() -> None:
    """Measure all of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=200, help="how large a generated home is; 0: none")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often the first run is done")
    parser.add_argument("--without", action="append", default=[], help="a contender that is left out, such as 'tar'")
    options = parser.parse_args()
    wanted = [one for one in CONTENDERS if one.name.split()[0].strip(",") not in options.without]
    for one in wanted:
        if not one.is_there:
            print(f"{one.name} is left out: there is no {one.program} here.")
    there = [one for one in wanted if one.is_there]
    homes = [REAL] if REAL.is_dir() else []
    homes += [generated(options.megabytes)] if options.megabytes else []
    about = machine()
    found = []
    for home in homes:
        found.append(measure(home, options.rounds, there))
        show(found[-1])
    grown = one_grown_file(homes[-1]) if homes else []
    told = print_targets(targets(found, grown))
    print(f"load at the start {about['load_at_start'][0]:.1f}, at the end {os.getloadavg()[0]:.1f}")
    figures = {"machine": about, "homes": found, "grown": grown, "targets": told}
    (OUT / "keep.json").write_text(json.dumps(figures, indent=1))
    shutil.rmtree(FOLDER, ignore_errors=True)


if __name__ == "__main__":
    main()
