"""The quality of the ranking: judged queries on written sessions among those of a generated home.

Recall at ten is the share of the intended results that are among the first ten hits. The reciprocal rank is one if the
first hit is an intended result, a half if the second is, and zero if none of the ten is. Both are means over queries.
The queries, their intended results and the reasons are in `bench/relevance/queries.toml`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent))
from bench.homes import OUT, generated_home
from bench.relevance_noise import SESSIONS as NOISE_SESSIONS
from bench.relevance_noise import write_noise
from bench.relevance_sessions import SCRIPTS, scripts, write_scripts
from tools.demo import projects

from threadline.errors import BadQuery
from threadline.find import homes
from threadline.index import Index, refresh_index
from threadline.model.hits import Hit, Hits
from threadline.search import search

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
MEGABYTES = 50
HITS_SHOWN = 10
_TASK = "task:"
_HEAD_BYTES = 200_000

Predicate = Callable[[Hit], bool]


class JudgedQuery(NamedTuple):
    """A query, its kind, its intended results, and why those are intended."""

    kind: str
    text: str
    expected: tuple[str, ...]
    reason: str


class Outcome(NamedTuple):
    """The quality of the hits of a query: its intended results that are missing, and the hits that came instead."""

    query: JudgedQuery
    recall: float
    reciprocal: float
    missed: list[str]
    unexpected: list[str]
    note: str | None

    @property
    def is_perfect(self) -> bool:
        """Whether the hits could not be better."""
        return self.recall == self.reciprocal == 1


def queries() -> Iterator[JudgedQuery]:
    """The judged queries."""
    for kind, judgements in tomllib.loads((SCRIPTS / "queries.toml").read_text(encoding="utf-8")).items():
        for text, meant, why in judgements:
            yield JudgedQuery(kind, text, tuple(meant), why)


class Home:
    """Written sessions, alone or among generated ones, and their index."""

    def __init__(self, folder: Path, surroundings: Path | None = None, noise: int = NOISE_SESSIONS) -> None:
        self._home = folder / "home"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        if surroundings is not None:
            shutil.copytree(surroundings, self._home)
        self._tasks = (
            {title: _sessions_of(surroundings, text) for title, text in _tasks()} if surroundings is not None else {}
        )
        self._marks = write_scripts(self._home)
        write_noise(self._home, scripts().values(), noise)
        self._sessions = {name: script.session for name, script in scripts().items()}
        self._index = folder / "index.sqlite"
        refresh_index(self._index, homes(os.fspath(self._home)), jobs=1)

    def open(self) -> Index:
        """The index."""
        return Index.open(self._index)

    def expected_hits(self, query: JudgedQuery) -> dict[str, Predicate]:
        """The intended results of a query, each with its predicate; none of a generated home that is absent."""
        return {name: matches for text in query.expected for name, matches in self._predicates(text)}

    def _predicates(self, text: str) -> Iterator[tuple[str, Predicate]]:
        if text.startswith(_TASK):
            for session in self._tasks.get(text.removeprefix(_TASK), ()):
                yield session, _is_of_session(session)
            return
        either = [self._is_named(name) for name in text.split("|")]
        yield text, lambda hit: any(matches(hit) for matches in either)

    def _is_named(self, name: str) -> Predicate:
        session = self._sessions[name.partition(":")[0]]
        line = self._marks[name] if ":" in name else None
        return lambda hit: hit.session == session and line in {None, hit.place.line}


def _tasks() -> Iterator[tuple[str, str]]:
    yield from ((task.title, task.prompt) for project in projects.ALL for task in project.tasks)


def _sessions_of(home: Path, text: str) -> set[str]:
    """The sessions of a generated home that begin with the prompt of a task."""
    encoded = json.dumps(text, ensure_ascii=False)[1:-1].encode()
    paths = (path for path in home.glob("projects/*/*.jsonl") if encoded in path.open("rb").read(_HEAD_BYTES))
    return {path.stem for path in paths}


def outcomes(home: Home) -> Iterator[Outcome]:
    """The outcome of each query, from the hits that a user would be shown."""
    names = {script.session: name for name, script in scripts().items()}
    with home.open() as index:
        for query in queries():
            expected = home.expected_hits(query)
            if not expected:
                continue
            hits = _search(index, query.text)
            matched = [{name for name, matches in expected.items() if matches(hit)} for hit in hits.hits[:HITS_SHOWN]]
            found = set().union(*matched)
            ranks = [rank for rank, names_matched in enumerate(matched, 1) if names_matched]
            others = [hit for hit, names_matched in zip(hits.hits, matched, strict=False) if not names_matched]
            yield Outcome(
                query,
                min(1.0, len(found) / min(HITS_SHOWN, len(expected))),
                1 / ranks[0] if ranks else 0.0,
                sorted(expected.keys() - found)[:HITS_SHOWN],
                [_describe(index, hit, names) for hit in others[: (ranks[0] if ranks else HITS_SHOWN)]],
                hits.note,
            )


def _search(index: Index, text: str) -> Hits:
    try:
        return search(index, text, limit=HITS_SHOWN, now=NOW, zone=UTC, near=True)
    except BadQuery as error:
        return Hits((), 0, note=str(error).split("\n", maxsplit=1)[0])


def _describe(index: Index, hit: Hit, names: dict[str, str]) -> str:
    session = hit.session or ""
    name = names.get(session) or index.titles([session]).get(session, session)
    return f"{name} ({hit.field or hit.kind}: {' '.join(hit.snippet.split())[:60]})"


def figures(results: Iterable[Outcome]) -> dict[str, dict[str, float]]:
    """Mean recall and reciprocal rank of each kind of query, and of all together."""
    listed = list(results)
    kinds = dict.fromkeys(outcome.query.kind for outcome in listed)
    by_kind = {kind: [outcome for outcome in listed if outcome.query.kind == kind] for kind in kinds} | {"all": listed}
    return {
        kind: {
            "queries": len(group),
            "recall_at_10": round(fmean(outcome.recall for outcome in group), 4),
            "mrr": round(fmean(outcome.reciprocal for outcome in group), 4),
        }
        for kind, group in by_kind.items()
    }


def worst(results: Iterable[Outcome]) -> list[Outcome]:
    """The outcomes that could be better, the worst first."""
    return sorted(
        (outcome for outcome in results if not outcome.is_perfect),
        key=lambda outcome: (outcome.recall, outcome.reciprocal),
    )


def _is_of_session(session: str) -> Predicate:
    return lambda hit: hit.session == session


def main() -> None:
    """Measure, print, and write the figures to bench/out/relevance.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=MEGABYTES, help="size of the generated home; 0 for none")
    parser.add_argument("--worst", type=int, default=12, help="how many of the worst misses to show")
    options = parser.parse_args()
    surroundings = generated_home(options.megabytes) if options.megabytes else None
    home = Home(OUT / "relevance", surroundings)
    start = time.perf_counter()
    results = list(outcomes(home))
    taken = time.perf_counter() - start
    measures = figures(results)
    print(
        f"{len(scripts())} written sessions, among noise and {options.megabytes:g} MB of generated ones;"
        f" {taken:.1f} s for all queries"
    )
    for kind, mean in measures.items():
        print(
            f"  {kind:12} {mean['queries']:4.0f} queries  recall@10 {mean['recall_at_10']:.3f}  MRR {mean['mrr']:.3f}"
        )
    misses = worst(results)
    print(f"{len(misses)} outcomes could be better; the worst:")
    for miss in misses[: options.worst]:
        _print_miss(miss)
    report = {"figures": measures, "megabytes": options.megabytes, "misses": [_plain(outcome) for outcome in misses]}
    (OUT / "relevance.json").write_text(json.dumps(report, ensure_ascii=False, indent=1), encoding="utf-8")


def _print_miss(miss: Outcome) -> None:
    print(f"  {miss.query.kind}: {miss.query.text}   recall {miss.recall:.2f}, 1/rank {miss.reciprocal:.2f}")
    if miss.note:
        print(f"      note: {miss.note}")
    if miss.missed:
        print(f"      missed: {', '.join(miss.missed)}")
    for hit in miss.unexpected[:3]:
        print(f"      instead: {hit}")


def _plain(miss: Outcome) -> dict[str, object]:
    return {**miss._asdict(), "query": miss.query._asdict()}


if __name__ == "__main__":
    main()
