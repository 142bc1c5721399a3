"""Compare building and updating the index with claude-code-log and agentsview, on one generated home.

Times are those of whole processes, except where they are called "inside". The tools take turns, and the best round
counts, because noise only adds. Then `threadline usage` is compared with ccusage, and search as in `bench/search.py`.
Targets are printed beside the figures; a missed target is not a failure.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
from bench import peers, search
from bench.homes import OUT, GrowingTranscript, generated_home, transcripts, writable_copy
from bench.processes import ProcessResult, machine_info, run
from bench.targets import Target, print_targets
from bench.usage import ccusage

CACHE = OUT / "cache"
ROUNDS = 3
REFRESHES = 15
COMMAND_RUNS = 7
USAGES = 5


def threadline(home: Path, *words: str) -> ProcessResult:
    """Run our command."""
    variables = {"CLAUDE_CONFIG_DIR": str(home), "THREADLINE_CACHE": str(CACHE), "TZ": "UTC"}
    result = run([sys.executable, "-m", "threadline", *words], variables)
    if result.exit_code:
        sys.exit(f"threadline {' '.join(words)} exited with {result.exit_code}: {result.stderr.strip()[-500:]}")
    return result


def first_index(home: Path) -> dict[str, Any]:
    """Build the index from scratch with our command."""
    result = threadline(home, "index", "rebuild", "--json")
    report = json.loads(result.stdout)
    path = Path(report["path"])
    files = path.parent.glob(f"{path.name}*")
    return {
        "seconds": result.seconds,
        "cpu_seconds": result.cpu,
        "inside_seconds": report["seconds"],
        "peaks": result.peaks,
        "index_megabytes": sum(file.stat().st_size for file in files) / 1e6,
        "counts": {name: report[name] for name in ("transcripts", "entries", "charges")},
    }


def time_refreshes(home: Path, growing: GrowingTranscript) -> dict[str, Any]:
    """Time refreshes after no change, one new line, and one new line with a fork beside the transcript."""
    figures: dict[str, Any] = {"start_up": _time_command(home, "index", "path")}
    figures["nothing_changed"] = _time_refresh(home, None)
    figures["appended"] = _time_refresh(home, growing)
    fork = growing.fork()
    try:
        threadline(home, "index", "refresh")
        figures["appended_beside_a_fork"] = _time_refresh(home, growing)
    finally:
        fork.unlink()
        growing.truncate()
    threadline(home, "index", "refresh")
    return figures


def _time_refresh(home: Path, growing: GrowingTranscript | None) -> dict[str, float]:
    """Time a refresh inside one process, and as a command."""
    command = [sys.executable, __file__, "--inside", str(home), *([str(growing.path)] if growing else [])]
    times = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)  # noqa: S603 - this file
    commands = []
    for _round in range(COMMAND_RUNS):
        if growing is not None:
            growing.append_line()
        commands.append(threadline(home, "index", "refresh").seconds)
    return {
        "inside_median": median(times),
        "inside_best": min(times),
        "inside_longest": max(times),
        "seconds": min(commands),
        "seconds_median": median(commands),
    }


def _time_command(home: Path, *words: str) -> dict[str, float]:
    times = [threadline(home, *words).seconds for _round in range(COMMAND_RUNS)]
    return {"seconds": min(times), "seconds_median": median(times)}


def run_inside(home: Path, transcript: Path | None) -> None:
    """Refresh in this process several times, each after a new line if a transcript is named; print the seconds."""
    from threadline.find import homes
    from threadline.index import index_path, refresh_index

    all_homes = homes(home)
    index = index_path((home.path for home in all_homes), CACHE)
    growing = GrowingTranscript(transcript) if transcript else None
    refresh_index(index, all_homes)
    times = []
    for _round in range(REFRESHES):
        if growing is not None:
            growing.append_line()
        start = time.perf_counter()
        refresh_index(index, all_homes)
        times.append(time.perf_counter() - start)
    print(json.dumps(times))


def compare_usage(home: Path, program: Path | None) -> dict[str, Any]:
    """The best of a few runs of `threadline usage` and ccusage in turn, with warm caches."""
    try:
        other = str(ccusage(program))
    except (SystemExit, OSError, subprocess.CalledProcessError) as error:
        print(f"Skipping ccusage: {error}. Name its program with --ccusage PATH.")
        return {}
    if shutil.which(other) is None:
        print(f"Skipping ccusage: {other} cannot be run. Name its program with --ccusage PATH.")
        return {}
    theirs, ours = [], []
    for round_number in range(USAGES + 1):
        their_run = run([other, "daily", "--json", "--offline"], {"CLAUDE_CONFIG_DIR": str(home), "TZ": "UTC"})
        our_run = threadline(home, "usage", "--by", "day", "--tz", "UTC", "--json")
        if round_number:  # the first round fills the caches
            theirs.append(their_run.seconds)
            ours.append(our_run.seconds)
    return {"threadline": min(ours), "ccusage": min(theirs), "times": min(theirs) / min(ours), "rounds": USAGES}


def measure_peers(home: Path, growing: GrowingTranscript, figures: dict[str, Any]) -> dict[str, Any]:
    """The figures of other tools, including `figures` of an earlier run, which are not measured again."""
    for peer in peers.indexing_peers(home):
        if peer.name in figures:
            print(f"{peer.name} is not measured again.")
            continue
        print(f"indexing with {peer.name} …", file=sys.stderr)
        first = peers.first_index(peer, home)
        if first:
            figures[peer.name] = {"first": first, **peers.time_refreshes(peer, home, growing)}
            peer.refresh(home)
            peers.save_figures("index", home, {peer.name: figures[peer.name]})
    return figures


def targets(megabytes: float, ours: dict[str, Any], others: dict[str, Any], usage: dict[str, Any]) -> list[Target]:
    """The targets for threadline."""
    rate = megabytes / ours["first"]["seconds"]
    rates = [megabytes / other["first"]["seconds"] for other in others.values()]
    share = ours["first"]["index_megabytes"] / megabytes
    return [
        Target("first index, times the faster peer", "at least", 3, rate / max(rates) if rates else None),
        Target("first index, MB/s", "at least", 60, rate),
        Target("peak memory, all processes, MB", "under", 400, sum(ours["first"]["peaks"])),
        Target("index, % of the transcripts", "at most", 25, share * 100),
        Target("nothing changed, inside, ms", "under", 50, ours["nothing_changed"]["inside_median"] * 1000),
        Target("a line appended, inside, ms", "under", 20, ours["appended"]["inside_median"] * 1000),
        Target("… beside a fork, ms", "under", 20, ours["appended_beside_a_fork"]["inside_median"] * 1000),
        Target("usage, times ccusage", "at least", 30, usage.get("times")),
    ]


def print_table(megabytes: float, tools: dict[str, dict[str, Any]]) -> None:
    """Print the figures of all tools side by side."""
    rows: dict[str, list[str]] = {name: [] for name in ("s", "s of a core", "MB/s", "peak MB", "index MB", "% of it")}
    for figures in tools.values():
        first = figures["first"]
        rows["s"].append(f"{first['seconds']:.1f}")
        rows["s of a core"].append(f"{first['cpu_seconds']:.1f}")
        rows["MB/s"].append(f"{megabytes / first['seconds']:.1f}")
        rows["peak MB"].append(f"{sum(first['peaks']):.0f}")
        rows["index MB"].append(f"{first['index_megabytes']:.0f}")
        rows["% of it"].append(f"{first['index_megabytes'] / megabytes:.1%}")
    for name in ("nothing_changed", "appended", "appended_beside_a_fork"):
        label = name.replace("_", " ")
        time_refreshes = [figures[name] for figures in tools.values()]
        rows[f"{label}, whole, ms"] = [f"{refresh['seconds'] * 1000:.0f}" for refresh in time_refreshes]
        inside = [refresh.get("inside_median", refresh.get("inside_seconds")) for refresh in time_refreshes]
        rows[f"{label}, inside, ms"] = [f"{seconds * 1000:.1f}" if seconds is not None else "-" for seconds in inside]
    print(f"\n{'':<36}" + "".join(f"{name:>17}" for name in tools))
    for label, cells in rows.items():
        print(f"{label:<36}" + "".join(f"{cell:>17}" for cell in cells))


def measure(options: argparse.Namespace) -> None:
    """Measure all tools on one home, print the table, and save the figures."""
    figures: dict[str, Any] = {"machine": machine_info()}
    home, transcript = writable_copy(options.home or generated_home(options.megabytes))
    growing = GrowingTranscript(transcript)
    sizes = [path.stat().st_size for path in transcripts(home)]
    megabytes = sum(sizes) / 1e6
    figures["home"] = {"transcripts": len(sizes), "megabytes": megabytes, "grown_megabytes": growing.size / 1e6}
    load = figures["machine"]["load_at_start"][0]
    print(f"{len(sizes):,} transcripts, {megabytes:,.0f} MB, the growing one {growing.size / 1e6:.0f}; load {load:.2f}")
    rounds = [first_index(home)]
    others = measure_peers(home, growing, peers.load_figures("index", options.peers_from))
    rounds += [first_index(home) for _round in range(options.rounds - 1)]
    ours = {"first": min(rounds, key=lambda figures: float(figures["seconds"])), "rounds": rounds}
    ours |= time_refreshes(home, growing)
    usage = compare_usage(home, options.ccusage)
    figures |= {"threadline": ours, "peers": others, "usage": usage}
    print_table(megabytes, {"threadline": ours, **others})
    if usage:
        print(f"\nusage, whole process: threadline {usage['threadline']:.3f} s, ccusage {usage['ccusage']:.3f} s")
    figures["targets"] = print_targets(targets(megabytes, ours, others, usage))
    (OUT / "index.json").write_text(json.dumps(figures, indent=1))


def main() -> None:
    """Measure indexing, then search."""
    parser = argparse.ArgumentParser(description=__doc__)
    search.add_options(parser)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often to build the first index")
    parser.add_argument("--ccusage", type=Path, help="its native program; by default it is installed with npm")
    parser.add_argument("--no-search", action="store_true", help="measure only indexing")
    parser.add_argument("--inside", nargs="+", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        run_inside(options.inside[0], options.inside[1] if len(options.inside) > 1 else None)
        return
    measure(options)
    if not options.no_search:
        search.measure(options)


if __name__ == "__main__":
    main()
