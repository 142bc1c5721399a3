"""Compare the speed of search with claude-code-log, agentsview and ripgrep, with the same queries on the same home.

Queries are sampled with a fixed seed from the home's own words, a third each rare, middling and common: one word, three
words, a phrase, a prefix, a substring, a regular expression. threadline runs inside this process and returns a page of
hits with their text. The tools take turns, query by query. A slow tool gets fewer queries; the table says how many.
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
from bench.homes import OUT, copy_home, generate_home
from bench.processes import machine, run
from bench.queries import BANDS, KINDS, Query, digest, sample_queries
from bench.targets import Target, print_targets

CACHE = OUT / "cache"
QUERIES = 200
TIME_LIMIT = 40.0
"""Seconds that a tool may spend on one kind of query."""
MIN_QUERIES = 10
REFUSED = -1
PROCESS_QUERIES = 10


class Answer(NamedTuple):
    """The seconds a query took and the number of hits, `REFUSED` if the tool does not support the query."""

    query: Query
    seconds: float
    hits: int


def to_query_language(query: Query) -> str:
    """Return the query in threadline's query language."""
    return {
        "phrase": f'"{query.text}"',
        "prefix": f"{query.text}*",
        "substring": f"/{re.escape(query.text)}/",
        "regex": f"/{query.text}/",
    }.get(query.kind, query.text)


def open_threadline(home: Path) -> Any:
    """Update the index, and return a function that searches it in this process. It must be closed."""
    from threadline.errors import BadQuery
    from threadline.find import homes
    from threadline.index import Index, index_path, refresh_index
    from threadline.search import search

    configured = homes(home)
    path = index_path((entry.path for entry in configured), CACHE)
    refresh_index(path, configured)
    index = Index.open(path)

    class Search:
        """Searches an open index."""

        def __call__(self, query: Query) -> tuple[float, int]:
            """Return seconds and hits."""
            text = to_query_language(query)
            start = time.perf_counter()
            try:
                hits = len(search(index, text, limit=peers.PAGE).hits)
            except BadQuery:
                hits = REFUSED
            return time.perf_counter() - start, hits

        def close(self) -> None:
            """Close the index."""
            index.close()

    return Search()


def run_queries(queries: Sequence[Query], tools: dict[str, peers.SearchFunction]) -> dict[str, list[Answer]]:
    """Run the queries with each tool, in turn. One query of each kind warms a tool up and is not counted."""
    answers: dict[str, list[Answer]] = {name: [] for name in tools}
    for kind in KINDS:
        of_kind = [query for query in queries if query.kind == kind]
        spent = dict.fromkeys(tools, 0.0)
        for name, search in tools.items():
            search(of_kind[-1])
            print(f"{kind}: {name} is warm", file=sys.stderr)
        for number, query in enumerate(of_kind):
            for name, search in tools.items():
                if spent[name] > TIME_LIMIT and number >= MIN_QUERIES:
                    continue
                result = search(query)
                if result is None:
                    spent[name] = TIME_LIMIT + 1
                    continue
                spent[name] += result[0]
                answers[name].append(Answer(query, *result))
    return answers


def figures(answers: list[Answer]) -> dict[str, Any]:
    """Return median, p99 and more of each kind of query, in milliseconds."""
    by_kind = {}
    for kind in KINDS:
        of_kind = [answer for answer in answers if answer.query.kind == kind]
        if len(of_kind) < MIN_QUERIES:
            continue
        times = [answer.seconds * 1000 for answer in of_kind]
        slowest = max(of_kind, key=lambda answer: answer.seconds)
        by_kind[kind] = {
            "queries": len(of_kind),
            "median": median(times),
            "p99": quantiles(times, n=100, method="inclusive")[98],
            "longest": max(times),
            "slowest": slowest.query.text,
            "refused": sum(answer.hits == REFUSED for answer in of_kind),
            "found": sum(answer.hits > 0 for answer in of_kind) / len(of_kind),
            "median_by_band": {
                band: median([answer.seconds * 1000 for answer in of_kind if answer.query.band == band] or [0.0])
                for band in BANDS
            },
        }
    return by_kind


def process_times(home: Path, queries: Sequence[Query]) -> dict[str, float]:
    """Time whole processes of `threadline search`, as for ripgrep."""
    variables = {"CLAUDE_CONFIG_DIR": str(home), "THREADLINE_CACHE": str(CACHE)}
    words = [query for query in queries if query.kind == "word"][:PROCESS_QUERIES]
    command = [sys.executable, "-m", "threadline", "search", "--jsonl"]
    times = [run([*command, to_query_language(query)], variables).seconds * 1000 for query in words]
    return {"queries": len(times), "median": median(times), "longest": max(times)}


def print_table(tools: dict[str, dict[str, Any]]) -> None:
    """Print median, p99, the share of queries with hits and the number of queries, by kind and tool."""
    print(f"\n{'ms: median / p99 (found)':<26}" + "".join(f"{name:>36}" for name in tools))
    for kind in KINDS:
        cells = []
        for by_kind in tools.values():
            row = by_kind.get(kind)
            few = f" of {row['queries']}" if row and row["queries"] < QUERIES else ""
            cells.append(f"{row['median']:,.1f} / {row['p99']:,.1f} ({row['found']:.0%}{few})" if row else "-")
        print(f"{kind:<26}" + "".join(f"{cell:>36}" for cell in cells))


def targets(by_kind: dict[str, Any]) -> list[Target]:
    """Return the targets with the measured figures."""
    rows = []
    for kind in ("word", "words", "phrase"):
        rows.append(Target(f"{kind}, median, ms", "under", 15, by_kind[kind]["median"]))
        rows.append(Target(f"{kind}, p99, ms", "under", 60, by_kind[kind]["p99"]))
    return rows


def measure(options: argparse.Namespace) -> None:
    """Run the queries with every tool, and print and save the figures."""
    report: dict[str, Any] = {"machine": machine()}
    home = options.home or generate_home(options.megabytes)
    copy = home.with_name(f"{home.name}-grown")
    if not copy.exists():
        copy_home(home)
    queries = sample_queries(home, options.queries)  # not from the copy: an interrupted run may have left lines in it
    print(f"\n{options.queries} queries of each kind; load {report['machine']['load_at_start'][0]:.2f}")
    # Saved figures count only if they are of the same queries.
    saved = peers.load_figures("search", options.peers_from)
    others = {name: by_kind for name, by_kind in saved.items() if by_kind["queries"] == digest(queries)}
    with ExitStack() as stack:
        tools: dict[str, peers.SearchFunction] = {"threadline": stack.enter_context(closing(open_threadline(copy)))}
        for peer in peers.indexing_peers(copy):
            if peer.name not in others and refresh_peer(peer, copy):
                tools[peer.name] = stack.enter_context(peer.open_search(copy))
        if "ripgrep" not in others and (scanner := peers.ripgrep()) is not None:
            tools[scanner.name] = stack.enter_context(scanner.open_search(copy))
        by_tool = {name: figures(answers) for name, answers in run_queries(queries, tools).items()}
    for name in by_tool.keys() - {"threadline"}:
        others[name] = {**by_tool[name], "queries": digest(queries), "load": os.getloadavg()[0]}
    peers.save_figures("search", copy, others)
    report |= {"queries": digest(queries), "threadline": by_tool["threadline"], "peers": others}
    report["methods"] = {peer.name: peer.method for peer in (peers.Agentsview, peers.ClaudeCodeLog, peers.Ripgrep)}
    report["threadline_process"] = process_times(copy, queries)
    print_table({"threadline": by_tool["threadline"], **others})
    print(f"\n`threadline search WORD`, process: median {report['threadline_process']['median']:.0f} ms")
    report["targets"] = print_targets(targets(by_tool["threadline"]))
    (OUT / "search.json").write_text(json.dumps(report, indent=1))


def refresh_peer(peer: peers.Peer, home: Path) -> bool:
    """Update the index of a peer, and return whether that worked."""
    result = peer.refresh(home)
    if result.code:
        print(f"Skipping {peer.name}: it failed with {result.code}: {result.stderr.strip()[-300:]}")
    return not result.code


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that indexing and search have in common."""
    parser.add_argument("--home", type=Path, help="a home to measure on; generated by default")
    parser.add_argument("--megabytes", type=float, default=2000, help="the size of the generated home")
    parser.add_argument(
        "--peers-from", type=Path, help="saved figures of the peers, such as bench/out/peers-home-2000-grown.json"
    )
    parser.add_argument("--queries", type=int, default=QUERIES, help="how many of each kind")


def main() -> None:
    """Measure search."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_options(parser)
    measure(parser.parse_args())


if __name__ == "__main__":
    main()
