"""How long a search takes, beside claude-code-log, agentsview and ripgrep, asked for the same words of the same home.

Queries are drawn with a fixed seed from the home's own words, a third each of rare, middling and common ones: one word,
three words, a phrase, a prefix, a piece of text, an expression. Ours is asked inside this process for a page of hits
with their text. Contenders take turns, query by query. One that is slow gets fewer, and the table says how many.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent))
from bench import peers
from bench.homes import OUT, generated, writable
from bench.processes import machine, run
from bench.queries import BANDS, KINDS, Asked, digest, drawn
from bench.targets import Target, print_targets

CACHE = OUT / "cache"
QUERIES = 200
PATIENCE = 40.0
"""Seconds that one contender may spend on one kind of query."""
LEAST = 10
REFUSED = -1
WHOLE = 10


class Answer(NamedTuple):
    """How long one query took, and how many hits came back; less than none where it was refused."""

    asked: Asked
    seconds: float
    hits: int


def query(asked: Asked) -> str:
    """The query in our language."""
    return {
        "phrase": f'"{asked.text}"',
        "prefix": f"{asked.text}*",
        "substring": f"/{re.escape(asked.text)}/",
        "regex": f"/{asked.text}/",
    }.get(asked.kind, asked.text)


def ours(home: Path) -> Any:
    """Our search over an index that is up to date, inside this process: a way to ask it, to be closed."""
    from threadline.errors import BadQuery
    from threadline.find import homes
    from threadline.index import Index, index_path, refresh_index
    from threadline.search import search

    found = homes(home)
    index = index_path((one.path for one in found), CACHE)
    refresh_index(index, found)
    opened = Index.open(index)

    class Ask:
        """An open index."""

        def __call__(self, asked: Asked) -> tuple[float, int]:
            """Seconds and hits."""
            words = query(asked)
            start = time.perf_counter()
            try:
                hits = len(search(opened, words, limit=peers.PAGE).hits)
            except BadQuery:
                hits = REFUSED
            return time.perf_counter() - start, hits

        def close(self) -> None:
            """No more questions."""
            opened.close()

    return Ask()


def answers(queries: Sequence[Asked], asking: dict[str, peers.Asking]) -> dict[str, list[Answer]]:
    """What each contender answered, in turn; each is warmed up by one query of the kind that is not counted."""
    told: dict[str, list[Answer]] = {name: [] for name in asking}
    for kind in KINDS:
        some = [one for one in queries if one.kind == kind]
        spent = dict.fromkeys(asking, 0.0)
        for name, ask in asking.items():
            ask(some[-1])
            print(f"{kind}: {name} is warm", file=sys.stderr)
        for at, asked in enumerate(some):
            for name, ask in asking.items():
                if spent[name] > PATIENCE and at >= LEAST:
                    continue
                answer = ask(asked)
                if answer is None:
                    spent[name] = PATIENCE + 1
                    continue
                spent[name] += answer[0]
                told[name].append(Answer(asked, *answer))
    return told


def figures(told: list[Answer]) -> dict[str, Any]:
    """Median, p99 and more of each kind, in milliseconds."""
    made = {}
    for kind in KINDS:
        some = [answer for answer in told if answer.asked.kind == kind]
        if len(some) < LEAST:
            continue
        times = [answer.seconds * 1000 for answer in some]
        slowest = max(some, key=lambda answer: answer.seconds)
        made[kind] = {
            "queries": len(some),
            "median": median(times),
            "p99": quantiles(times, n=100, method="inclusive")[98],
            "longest": max(times),
            "slowest": slowest.asked.text,
            "refused": sum(answer.hits == REFUSED for answer in some),
            "found": sum(answer.hits > 0 for answer in some) / len(some),
            "median_by_band": {
                band: median([answer.seconds * 1000 for answer in some if answer.asked.band == band] or [0.0])
                for band in BANDS
            },
        }
    return made


def whole(home: Path, queries: Sequence[Asked]) -> dict[str, float]:
    """Our command from start to end, as ripgrep is measured."""
    variables = {"CLAUDE_CONFIG_DIR": str(home), "THREADLINE_CACHE": str(CACHE)}
    words = [one for one in queries if one.kind == "word"][:WHOLE]
    command = [sys.executable, "-m", "threadline", "search", "--jsonl"]
    times = [run([*command, query(one)], variables).seconds * 1000 for one in words]
    return {"queries": len(times), "median": median(times), "longest": max(times)}


def print_table(told: dict[str, dict[str, Any]]) -> None:
    """Median and p99 of each kind, side by side; the share that was found, and of how many queries."""
    print(f"\n{'ms: median / p99 (found)':<26}" + "".join(f"{name:>36}" for name in told))
    for kind in KINDS:
        cells = []
        for one in told.values():
            row = one.get(kind)
            few = f" of {row['queries']}" if row and row["queries"] < QUERIES else ""
            cells.append(f"{row['median']:,.1f} / {row['p99']:,.1f} ({row['found']:.0%}{few})" if row else "-")
        print(f"{kind:<26}" + "".join(f"{cell:>36}" for cell in cells))


def targets(told: dict[str, Any]) -> list[Target]:
    """What was to be reached, and what was."""
    made = []
    for kind in ("word", "words", "phrase"):
        made.append(Target(f"{kind}, median, ms", "under", 15, told[kind]["median"]))
        made.append(Target(f"{kind}, p99, ms", "under", 60, told[kind]["p99"]))
    return made


def measure(options: argparse.Namespace) -> None:
    """Ask everyone."""
    told: dict[str, Any] = {"machine": machine()}
    home = options.home or generated(options.megabytes)
    copy = home.with_name(f"{home.name}-grown")
    if not copy.exists():
        writable(home)
    queries = drawn(home, options.queries)  # not from the copy, which a run that was ended may have left grown
    print(f"\n{options.queries} queries of each kind; load {told['machine']['load_at_start'][0]:.2f}")
    # Figures about other queries than these say nothing here.
    others = {
        name: one for name, one in peers.known("search", options.peers_from).items() if one["asked"] == digest(queries)
    }
    with ExitStack() as stack:
        asking: dict[str, peers.Asking] = {"threadline": stack.enter_context(closing(ours(copy)))}
        for peer in peers.indexing(copy):
            if peer.name not in others and up_to_date(peer, copy):
                asking[peer.name] = stack.enter_context(peer.asking(copy))
        if "ripgrep" not in others and (scanner := peers.ripgrep()) is not None:
            asking[scanner.name] = stack.enter_context(scanner.asking(copy))
        found = {name: figures(some) for name, some in answers(queries, asking).items()}
    for name in found.keys() - {"threadline"}:
        others[name] = {**found[name], "asked": digest(queries), "load": os.getloadavg()[0]}
    peers.keep("search", copy, others)
    told |= {"queries": digest(queries), "threadline": found["threadline"], "peers": others}
    told["measured"] = {one.name: one.measured for one in (peers.Agentsview, peers.ClaudeCodeLog, peers.Ripgrep)}
    told["threadline_whole_process"] = whole(copy, queries)
    print_table({"threadline": found["threadline"], **others})
    print(f"\n`threadline search WORD`, whole process: median {told['threadline_whole_process']['median']:.0f} ms")
    told["targets"] = print_targets(targets(found["threadline"]))
    (OUT / "search.json").write_text(json.dumps(told, indent=1))


def up_to_date(peer: peers.Peer, home: Path) -> bool:
    """Whether a peer has indexed the home, now if not before."""
    ran = peer.refresh(home)
    if ran.code:
        print(f"{peer.name} is left out: it ended with {ran.code}: {ran.complaint.strip()[-300:]}")
    return not ran.code


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options that both benches have."""
    parser.add_argument("--home", type=Path, help="a home to measure on; by default one is generated")
    parser.add_argument("--megabytes", type=float, default=2000, help="how big a home to generate")
    parser.add_argument(
        "--peers-from", type=Path, help="the peers' figures of another run: bench/out/peers-home-2000-grown.json"
    )
    parser.add_argument("--queries", type=int, default=QUERIES, help="how many of each kind")


def main() -> None:
    """Measure searching."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_options(parser)
    measure(parser.parse_args())


if __name__ == "__main__":
    main()
