"""How fast the index is made and brought up to date, and what it costs, beside claude-code-log and agentsview.

All on one generated home with the sizes of real ones. Whole processes, unless it says inside; contenders take turns,
and the best round counts, as noise only adds. Afterwards `threadline usage` is asked beside ccusage, and then searching
is measured as `bench/search.py` does. Targets are printed beside the figures; nothing fails where one is missed.
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
from bench.homes import OUT, Growing, generated, transcripts, writable
from bench.processes import Ran, machine, run
from bench.targets import Target, print_targets
from bench.usage import ccusage

CACHE = OUT / "cache"
ROUNDS = 3
REFRESHES = 15
WHOLE = 7
USAGES = 5


def threadline(home: Path, *words: str) -> Ran:
    """Our command, whole."""
    variables = {"CLAUDE_CONFIG_DIR": str(home), "THREADLINE_CACHE": str(CACHE), "TZ": "UTC"}
    ran = run([sys.executable, "-m", "threadline", *words], variables)
    if ran.code:
        sys.exit(f"threadline {' '.join(words)} ended with {ran.code}: {ran.complaint.strip()[-500:]}")
    return ran


def first_index(home: Path) -> dict[str, Any]:
    """The index made from nothing by our command."""
    ran = threadline(home, "index", "rebuild", "--json")
    told = json.loads(ran.said)
    files = Path(told["path"]).parent.glob(f"{Path(told['path']).name}*")
    return {
        "seconds": ran.seconds,
        "cpu_seconds": ran.cpu,
        "inside_seconds": told["seconds"],
        "peaks": ran.peaks,
        "index_megabytes": sum(file.stat().st_size for file in files) / 1e6,
        "counts": {name: told[name] for name in ("transcripts", "entries", "charges")},
    }


def refreshes(home: Path, growing: Growing) -> dict[str, Any]:
    """Nothing changed, a line more, and a line more with a fork beside it: inside the process, and whole."""
    told: dict[str, Any] = {"start_up": _whole(home, "index", "path")}
    told["nothing_changed"] = _both(home, None)
    told["appended"] = _both(home, growing)
    fork = growing.fork()
    try:
        threadline(home, "index", "refresh")
        told["appended_beside_a_fork"] = _both(home, growing)
    finally:
        fork.unlink()
        growing.cut_back()
    threadline(home, "index", "refresh")
    return told


def _both(home: Path, growing: Growing | None) -> dict[str, float]:
    command = [sys.executable, __file__, "--inside", str(home), *([str(growing.path)] if growing else [])]
    times = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)  # noqa: S603 - ourselves
    whole = []
    for _turn in range(WHOLE):
        if growing is not None:
            growing.grow()
        whole.append(threadline(home, "index", "refresh").seconds)
    return {
        "inside_median": median(times),
        "inside_best": min(times),
        "inside_longest": max(times),
        "seconds": min(whole),
        "seconds_median": median(whole),
    }


def _whole(home: Path, *words: str) -> dict[str, float]:
    times = [threadline(home, *words).seconds for _turn in range(WHOLE)]
    return {"seconds": min(times), "seconds_median": median(times)}


def run_inside(home: Path, grown: Path | None) -> None:
    """Refresh here, again and again, each time after one more line where a transcript is named; print the seconds."""
    from threadline.find import homes
    from threadline.index import index_path, refresh_index

    found = homes(home)
    index = index_path((one.path for one in found), CACHE)
    growing = Growing(grown) if grown else None
    refresh_index(index, found)
    times = []
    for _turn in range(REFRESHES):
        if growing is not None:
            growing.grow()
        start = time.perf_counter()
        refresh_index(index, found)
        times.append(time.perf_counter() - start)
    print(json.dumps(times))


def usage(home: Path, program: Path | None) -> dict[str, Any]:
    """The best of a few runs of `threadline usage` and of ccusage, in turn, everything warm."""
    try:
        rival = str(ccusage(program))
    except (SystemExit, OSError, subprocess.CalledProcessError) as error:
        print(f"ccusage is left out: {error}; name its program with --ccusage PATH.")
        return {}
    if shutil.which(rival) is None:
        print(f"ccusage is left out: {rival} cannot be run; name its program with --ccusage PATH.")
        return {}
    theirs, ours = [], []
    for turn in range(USAGES + 1):
        other = run([rival, "daily", "--json", "--offline"], {"CLAUDE_CONFIG_DIR": str(home), "TZ": "UTC"})
        own = threadline(home, "usage", "--by", "day", "--tz", "UTC", "--json")
        if turn:  # the first fills the caches
            theirs.append(other.seconds)
            ours.append(own.seconds)
    return {"threadline": min(ours), "ccusage": min(theirs), "times": min(theirs) / min(ours), "rounds": USAGES}


def measured_peers(home: Path, growing: Growing, told: dict[str, Any]) -> dict[str, Any]:
    """All of the peers' figures about indexing; those that are known are not measured again."""
    for peer in peers.indexing(home):
        if peer.name in told:
            print(f"{peer.name} is not measured again.")
            continue
        print(f"{peer.name} indexes …", file=sys.stderr)
        first = peers.first_index(peer, home)
        if first:
            told[peer.name] = {"first": first, **peers.refreshes(peer, home, growing)}
            peer.refresh(home)
            peers.keep("index", home, {peer.name: told[peer.name]})
    return told


def targets(megabytes: float, ours: dict[str, Any], others: dict[str, Any], used: dict[str, Any]) -> list[Target]:
    """What was to be reached, and what was."""
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
        Target("usage, times ccusage", "at least", 30, used.get("times")),
    ]


def print_table(megabytes: float, told: dict[str, dict[str, Any]]) -> None:
    """All contenders side by side."""
    rows: dict[str, list[str]] = {name: [] for name in ("s", "s of a core", "MB/s", "peak MB", "index MB", "% of it")}
    for one in told.values():
        first = one["first"]
        rows["s"].append(f"{first['seconds']:.1f}")
        rows["s of a core"].append(f"{first['cpu_seconds']:.1f}")
        rows["MB/s"].append(f"{megabytes / first['seconds']:.1f}")
        rows["peak MB"].append(f"{sum(first['peaks']):.0f}")
        rows["index MB"].append(f"{first['index_megabytes']:.0f}")
        rows["% of it"].append(f"{first['index_megabytes'] / megabytes:.1%}")
    for name in ("nothing_changed", "appended", "appended_beside_a_fork"):
        said = name.replace("_", " ")
        rows[f"{said}, whole, ms"] = [f"{one[name]['seconds'] * 1000:.0f}" for one in told.values()]
        inside = [one[name].get("inside_median", one[name].get("inside_seconds")) for one in told.values()]
        rows[f"{said}, inside, ms"] = [f"{seconds * 1000:.1f}" if seconds is not None else "-" for seconds in inside]
    print(f"\n{'':<36}" + "".join(f"{name:>17}" for name in told))
    for label, cells in rows.items():
        print(f"{label:<36}" + "".join(f"{cell:>17}" for cell in cells))


def measure(options: argparse.Namespace) -> None:
    """Measure it all on one home."""
    figures: dict[str, Any] = {"machine": machine()}
    home, grown = writable(options.home or generated(options.megabytes))
    growing = Growing(grown)
    sizes = [path.stat().st_size for path in transcripts(home)]
    megabytes = sum(sizes) / 1e6
    figures["home"] = {"transcripts": len(sizes), "megabytes": megabytes, "grown_megabytes": growing.size / 1e6}
    load = figures["machine"]["load_at_start"][0]
    print(f"{len(sizes):,} transcripts, {megabytes:,.0f} MB, the growing one {growing.size / 1e6:.0f}; load {load:.2f}")
    rounds = [first_index(home)]
    others = measured_peers(home, growing, peers.known("index", options.peers_from))
    rounds += [first_index(home) for _turn in range(options.rounds - 1)]
    ours = {"first": min(rounds, key=lambda one: float(one["seconds"])), "rounds": rounds}
    ours |= refreshes(home, growing)
    used = usage(home, options.ccusage)
    figures |= {"threadline": ours, "peers": others, "usage": used}
    print_table(megabytes, {"threadline": ours, **others})
    if used:
        print(f"\nusage, whole process: threadline {used['threadline']:.3f} s, ccusage {used['ccusage']:.3f} s")
    figures["targets"] = print_targets(targets(megabytes, ours, others, used))
    (OUT / "index.json").write_text(json.dumps(figures, indent=1))


def main() -> None:
    """Measure indexing, then searching."""
    parser = argparse.ArgumentParser(description=__doc__)
    search.add_options(parser)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often our first index is made")
    parser.add_argument("--ccusage", type=Path, help="its native program; by default npm brings it")
    parser.add_argument("--no-search", action="store_true", help="measure indexing alone")
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
