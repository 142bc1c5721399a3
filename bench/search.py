"""Compare the speed of search with claude-code-log, agentsview and ripgrep, with the same queries on the same home.

Queries are drawn with a fixed seed from the home's own words, a third each of rare, middling and common ones: one word,
three words, a phrase, a prefix, a substring, a regular expression. threadline runs in this process and returns a page
of hits with their text. The tools take turns, query by query. A slow one gets fewer queries; the table says how many.
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
from bench.homes import OUT, generated_home, writable_copy
from bench.processes import machine_info, run
from bench.queries import BANDS, KINDS, SearchQuery, draw_queries, queries_digest
from bench.targets import Target, print_targets

CACHE = OUT / "cache"
QUERIES = 200
MAX_SECONDS = 40.0
"""How long one tool may spend on one kind of query."""
MIN_QUERIES = 10
REFUSED = -1
COMMAND_RUNS = 10


class Answer(NamedTuple):
    """How long a query took, and how many hits it had; `REFUSED` if it was refused."""

    query: SearchQuery
    seconds: float
    hits: int


def to_language(query: SearchQuery) -> str:
    """The query in threadline's query language."""
    return {
        "phrase": f'"{query.text}"',
        "prefix": f"{query.text}*",
        "substring": f"/{re.escape(query.text)}/",
        "regex": f"/{query.text}/",
    }.get(query.kind, query.text)


def open_threadline(home: Path) -> Any:
    """Update the index, and return a function that searches it in this process. Close it at the end."""
    from threadline.errors import BadQuery
    from threadline.find import homes
    from threadline.index import Index, index_path, refresh_index
    from threadline.search import search

    all_homes = homes(home)
    path = index_path((home.path for home in all_homes), CACHE)
    refresh_index(path, all_homes)
    index = Index.open(path)

    class Ask:
        """Searches an open index."""

        def __call__(self, query: SearchQuery) -> tuple[float, int]:
            """Return seconds and the number of hits."""
            text = to_language(query)
            start = time.perf_counter()
            try:
                hits = len(search(index, text, limit=peers.PAGE).hits)
            except BadQuery:
                hits = REFUSED
            return time.perf_counter() - start, hits

        def close(self) -> None:
            """Close the index."""
            index.close()

    return Ask()


def run_queries(queries: Sequence[SearchQuery], asking: dict[str, peers.AskFunction]) -> dict[str, list[Answer]]:
    """Run the queries on each tool in turn. One query of each kind warms it up, and is not counted."""
    answers: dict[str, list[Answer]] = {name: [] for name in asking}
    for kind in KINDS:
        of_kind = [query for query in queries if query.kind == kind]
        spent = dict.fromkeys(asking, 0.0)
        for name, ask in asking.items():
            ask(of_kind[-1])
            print(f"{kind}: {name} is warm", file=sys.stderr)
        for at, query in enumerate(of_kind):
            for name, ask in asking.items():
                if spent[name] > MAX_SECONDS and at >= MIN_QUERIES:
                    continue
                answer = ask(query)
                if answer is None:
                    spent[name] = MAX_SECONDS + 1
                    continue
                spent[name] += answer[0]
                answers[name].append(Answer(query, *answer))
    return answers


def summarize(answers: list[Answer]) -> dict[str, Any]:
    """Median, p99 and more of each kind, in milliseconds."""
    figures = {}
    for kind in KINDS:
        some = [answer for answer in answers if answer.query.kind == kind]
        if len(some) < MIN_QUERIES:
            continue
        times = [answer.seconds * 1000 for answer in some]
        slowest = max(some, key=lambda answer: answer.seconds)
        figures[kind] = {
            "queries": len(some),
            "median": median(times),
            "p99": quantiles(times, n=100, method="inclusive")[98],
            "longest": max(times),
            "slowest": slowest.query.text,
            "refused": sum(answer.hits == REFUSED for answer in some),
            "found": sum(answer.hits > 0 for answer in some) / len(some),
            "median_by_band": {
                band: median([answer.seconds * 1000 for answer in some if answer.query.band == band] or [0.0])
                for band in BANDS
            },
        }
    return figures


def time_command(home: Path, queries: Sequence[SearchQuery]) -> dict[str, float]:
    """The time of the whole command `threadline search`, as ripgrep is measured."""
    variables = {"CLAUDE_CONFIG_DIR": str(home), "THREADLINE_CACHE": str(CACHE)}
    words = [query for query in queries if query.kind == "word"][:COMMAND_RUNS]
    command = [sys.executable, "-m", "threadline", "search", "--jsonl"]
    times = [run([*command, to_language(word)], variables).seconds * 1000 for word in words]
    return {"queries": len(times), "median": median(times), "longest": max(times)}


def print_table(tools: dict[str, dict[str, Any]]) -> None:
    """Print median and p99 of each kind for each tool, with the share of queries that had hits."""
    print(f"\n{'ms: median / p99 (found)':<26}" + "".join(f"{name:>36}" for name in tools))
    for kind in KINDS:
        cells = []
        for figures in tools.values():
            row = figures.get(kind)
            few = f" of {row['queries']}" if row and row["queries"] < QUERIES else ""
            cells.append(f"{row['median']:,.1f} / {row['p99']:,.1f} ({row['found']:.0%}{few})" if row else "-")
        print(f"{kind:<26}" + "".join(f"{cell:>36}" for cell in cells))


def targets(figures: dict[str, Any]) -> list[Target]:
    """The targets for threadline."""
    rows = []
    for kind in ("word", "words", "phrase"):
        rows.append(Target(f"{kind}, median, ms", "under", 15, figures[kind]["median"]))
        rows.append(Target(f"{kind}, p99, ms", "under", 60, figures[kind]["p99"]))
    return rows


def measure(options: argparse.Namespace) -> None:
    """Measure all tools, print the table, and save the figures."""
    report: dict[str, Any] = {"machine": machine_info()}
    home = options.home or generated_home(options.megabytes)
    copy = home.with_name(f"{home.name}-grown")
    if not copy.exists():
        writable_copy(home)
    queries = draw_queries(home, options.queries)  # not from the copy, which an interrupted run may have left longer
    print(f"\n{options.queries} queries of each kind; load {report['machine']['load_at_start'][0]:.2f}")
    # Saved figures count only if they are for the same queries.
    saved = peers.load_figures("search", options.peers_from)
    others = {name: figures for name, figures in saved.items() if figures["asked"] == queries_digest(queries)}
    with ExitStack() as stack:
        asking: dict[str, peers.AskFunction] = {"threadline": stack.enter_context(closing(open_threadline(copy)))}
        for peer in peers.indexing_peers(copy):
            if peer.name not in others and refresh_peer(peer, copy):
                asking[peer.name] = stack.enter_context(peer.open_search(copy))
        if "ripgrep" not in others and (scanner := peers.ripgrep()) is not None:
            asking[scanner.name] = stack.enter_context(scanner.open_search(copy))
        measured = {name: summarize(answers) for name, answers in run_queries(queries, asking).items()}
    for name in measured.keys() - {"threadline"}:
        others[name] = {**measured[name], "asked": queries_digest(queries), "load": os.getloadavg()[0]}
    peers.save_figures("search", copy, others)
    report |= {"queries": queries_digest(queries), "threadline": measured["threadline"], "peers": others}
    report["measured"] = {peer.name: peer.method for peer in (peers.Agentsview, peers.ClaudeCodeLog, peers.Ripgrep)}
    report["threadline_whole_process"] = time_command(copy, queries)
    print_table({"threadline": measured["threadline"], **others})
    print(f"\n`threadline search WORD`, whole process: median {report['threadline_whole_process']['median']:.0f} ms")
    report["targets"] = print_targets(targets(measured["threadline"]))
    (OUT / "search.json").write_text(json.dumps(report, indent=1))


def refresh_peer(peer: peers.Peer, home: Path) -> bool:
    """Update a peer's index; return whether that succeeded."""
    result = peer.refresh(home)
    if result.exit_code:
        print(f"Skipping {peer.name}: it exited with {result.exit_code}: {result.stderr.strip()[-300:]}")
    return not result.exit_code


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that `bench/index.py` also has."""
    parser.add_argument("--home", type=Path, help="a home to measure on; by default one is generated")
    parser.add_argument("--megabytes", type=float, default=2000, help="the size of the generated home")
    parser.add_argument(
        "--peers-from",
        type=Path,
        help="figures of the other tools from an earlier run: bench/out/peers-home-2000-grown.json",
    )
    parser.add_argument("--queries", type=int, default=QUERIES, help="how many queries of each kind")


def main() -> None:
    """Measure search."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_options(parser)
    measure(parser.parse_args())


if __name__ == "__main__":
    main()
