"""Compare indexing with claude-code-log and agentsview: the first index, refreshes, memory and size.

All tools index the same generated home, which has the size profile of real homes. Figures are of whole processes, or of
the work inside one where the label says so. The tools take turns, and the best round counts, because noise only adds.
Afterwards `threadline usage` is compared with ccusage, and search is measured as in `bench/search.py`. Targets are
printed with the figures; a missed target is not a failure.
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
from bench.homes import OUT, GrowingTranscript, copy_home, generate_home, transcripts
from bench.processes import ProcessResult, machine, run
from bench.targets import Target, print_targets
from bench.usage import ccusage

CACHE = OUT / "cache"
ROUNDS = 3
REFRESHES = 15
PROCESS_ROUNDS = 7
USAGE_ROUNDS = 5


def threadline(home: Path, *words: str) -> ProcessResult:
    """Run a threadline command."""
    variables = {"CLAUDE_CONFIG_DIR": str(home), "THREADLINE_CACHE": str(CACHE), "TZ": "UTC"}
    result = run([sys.executable, "-m", "threadline", *words], variables)
    if result.code:
        sys.exit(f"threadline {' '.join(words)} failed with {result.code}: {result.stderr.strip()[-500:]}")
    return result


def first_index(home: Path) -> dict[str, Any]:
    """Build the index from scratch."""
    result = threadline(home, "index", "rebuild", "--json")
    report = json.loads(result.stdout)
    files = Path(report["path"]).parent.glob(f"{Path(report['path']).name}*")
    return {
        "seconds": result.seconds,
        "cpu_seconds": result.cpu,
        "inside_seconds": report["seconds"],
        "peaks": result.peaks,
        "index_megabytes": sum(file.stat().st_size for file in files) / 1e6,
        "counts": {name: report[name] for name in ("transcripts", "entries", "charges")},
    }


def refreshes(home: Path, growing: GrowingTranscript) -> dict[str, Any]:
    """Refresh after no change, after one line, and after one line of a forked session."""
    figures: dict[str, Any] = {"start_up": _process_seconds(home, "index", "path")}
    figures["nothing_changed"] = _refresh_seconds(home, None)
    figures["appended"] = _refresh_seconds(home, growing)
    fork = growing.fork()
    try:
        threadline(home, "index", "refresh")
        figures["appended_beside_a_fork"] = _refresh_seconds(home, growing)
    finally:
        fork.unlink()
        growing.truncate()
    threadline(home, "index", "refresh")
    return figures


def _refresh_seconds(home: Path, growing: GrowingTranscript | None) -> dict[str, float]:
    command = [sys.executable, __file__, "--inside", str(home), *([str(growing.path)] if growing else [])]
    times = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)  # noqa: S603 - ourselves
    processes = []
    for _turn in range(PROCESS_ROUNDS):
        if growing is not None:
            growing.append_line()
        processes.append(threadline(home, "index", "refresh").seconds)
    return {
        "inside_median": median(times),
        "inside_best": min(times),
        "inside_longest": max(times),
        "seconds": min(processes),
        "seconds_median": median(processes),
    }


def _process_seconds(home: Path, *words: str) -> dict[str, float]:
    times = [threadline(home, *words).seconds for _turn in range(PROCESS_ROUNDS)]
    return {"seconds": min(times), "seconds_median": median(times)}


def run_inside(home: Path, grown: Path | None) -> None:
    """Refresh repeatedly in this process, each time after appending a line to `grown`, if any. Print the seconds."""
    from threadline.find import homes
    from threadline.index import index_path, refresh_index

    configured = homes(home)
    index = index_path((entry.path for entry in configured), CACHE)
    growing = GrowingTranscript(grown) if grown else None
    refresh_index(index, configured)
    times = []
    for _turn in range(REFRESHES):
        if growing is not None:
            growing.append_line()
        start = time.perf_counter()
        refresh_index(index, configured)
        times.append(time.perf_counter() - start)
    print(json.dumps(times))


def usage(home: Path, program: Path | None) -> dict[str, Any]:
    """Return the best of several runs of `threadline usage` and ccusage, in turn, with warm caches."""
    try:
        rival = str(ccusage(program))
    except (SystemExit, OSError, subprocess.CalledProcessError) as error:
        print(f"Skipping ccusage: {error}. Name its program with --ccusage PATH.")
        return {}
    if shutil.which(rival) is None:
        print(f"Skipping ccusage: cannot run {rival}. Name its program with --ccusage PATH.")
        return {}
    theirs, ours = [], []
    for turn in range(USAGE_ROUNDS + 1):
        other = run([rival, "daily", "--json", "--offline"], {"CLAUDE_CONFIG_DIR": str(home), "TZ": "UTC"})
        own = threadline(home, "usage", "--by", "day", "--tz", "UTC", "--json")
        if turn:  # the first fills the caches
            theirs.append(other.seconds)
            ours.append(own.seconds)
    return {"threadline": min(ours), "ccusage": min(theirs), "times": min(theirs) / min(ours), "rounds": USAGE_ROUNDS}


def measure_peers(home: Path, growing: GrowingTranscript, figures: dict[str, Any]) -> dict[str, Any]:
    """Add the indexing figures of the peers that are missing in `figures`."""
    for peer in peers.indexing_peers(home):
        if peer.name in figures:
            print(f"Using the saved figures of {peer.name}.")
            continue
        print(f"{peer.name} indexes …", file=sys.stderr)
        first = peers.first_index(peer, home)
        if first:
            figures[peer.name] = {"first": first, **peers.refreshes(peer, home, growing)}
            peer.refresh(home)
            peers.save_figures("index", home, {peer.name: figures[peer.name]})
    return figures


def targets(
    megabytes: float, ours: dict[str, Any], others: dict[str, Any], usage_seconds: dict[str, Any]
) -> list[Target]:
    """Return the targets with the measured figures."""
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
        Target("usage, times ccusage", "at least", 30, usage_seconds.get("times")),
    ]


def print_table(megabytes: float, contenders: dict[str, dict[str, Any]]) -> None:
    """Print the figures of all contenders side by side."""
    rows: dict[str, list[str]] = {
        label: [] for label in ("seconds", "CPU seconds", "MB/s", "peak MB", "index MB", "index, % of the home")
    }
    for figures in contenders.values():
        first = figures["first"]
        rows["seconds"].append(f"{first['seconds']:.1f}")
        rows["CPU seconds"].append(f"{first['cpu_seconds']:.1f}")
        rows["MB/s"].append(f"{megabytes / first['seconds']:.1f}")
        rows["peak MB"].append(f"{sum(first['peaks']):.0f}")
        rows["index MB"].append(f"{first['index_megabytes']:.0f}")
        rows["index, % of the home"].append(f"{first['index_megabytes'] / megabytes:.1%}")
    for name in ("nothing_changed", "appended", "appended_beside_a_fork"):
        label = name.replace("_", " ")
        refreshes = [figures[name] for figures in contenders.values()]
        rows[f"{label}, process, ms"] = [f"{refresh['seconds'] * 1000:.0f}" for refresh in refreshes]
        inside = [refresh.get("inside_median", refresh.get("inside_seconds")) for refresh in refreshes]
        rows[f"{label}, inside, ms"] = [f"{seconds * 1000:.1f}" if seconds is not None else "-" for seconds in inside]
    print(f"\n{'':<36}" + "".join(f"{name:>17}" for name in contenders))
    for label, cells in rows.items():
        print(f"{label:<36}" + "".join(f"{cell:>17}" for cell in cells))


def measure(options: argparse.Namespace) -> None:
    """Measure everything on one home."""
    figures: dict[str, Any] = {"machine": machine()}
    home, grown = copy_home(options.home or generate_home(options.megabytes))
    growing = GrowingTranscript(grown)
    sizes = [path.stat().st_size for path in transcripts(home)]
    megabytes = sum(sizes) / 1e6
    figures["home"] = {"transcripts": len(sizes), "megabytes": megabytes, "grown_megabytes": growing.size / 1e6}
    load = figures["machine"]["load_at_start"][0]
    print(f"{len(sizes):,} transcripts, {megabytes:,.0f} MB, the growing one {growing.size / 1e6:.0f}; load {load:.2f}")
    rounds = [first_index(home)]
    others = measure_peers(home, growing, peers.load_figures("index", options.peers_from))
    rounds += [first_index(home) for _turn in range(options.rounds - 1)]
    ours = {"first": min(rounds, key=lambda figures: float(figures["seconds"])), "rounds": rounds}
    ours |= refreshes(home, growing)
    usage_seconds = usage(home, options.ccusage)
    figures |= {"threadline": ours, "peers": others, "usage": usage_seconds}
    print_table(megabytes, {"threadline": ours, **others})
    if usage_seconds:
        ours_seconds, their_seconds = usage_seconds["threadline"], usage_seconds["ccusage"]
        print(f"\nusage, process: threadline {ours_seconds:.3f} s, ccusage {their_seconds:.3f} s")
    figures["targets"] = print_targets(targets(megabytes, ours, others, usage_seconds))
    (OUT / "index.json").write_text(json.dumps(figures, indent=1))


def main() -> None:
    """Measure indexing, then search."""
    parser = argparse.ArgumentParser(description=__doc__)
    search.add_options(parser)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often to build our first index")
    parser.add_argument("--ccusage", type=Path, help="its native program; installed with npm by default")
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
