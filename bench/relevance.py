"""Measure the ranking of search with judged queries on written sessions inside a generated home.

Recall at ten is the share of the expected results among the first ten hits. The reciprocal rank is 1 if the first hit
is expected, 1/2 if the second is, and 0 beyond the tenth. Both are means over all queries. The queries, the expected
results and the reasons are in `bench/relevance/queries.toml`.
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
from bench.homes import OUT, generate_home
from bench.relevance_noise import SESSIONS as NOISE_SESSIONS
from bench.relevance_noise import write_noise
from bench.relevance_sessions import SCRIPTS, scripts, write_sessions
from tools.demo import projects

from threadline.errors import BadQuery
from threadline.find import homes
from threadline.index import Index, refresh_index
from threadline.model.hits import Hit, Hits
from threadline.search import search

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
MEGABYTES = 50
FIRST = 10
_TASK = "task:"
_BEGINNING = 200_000

HitTest = Callable[[Hit], bool]


class JudgedQuery(NamedTuple):
    """A query, its kind, the expected results, and the reason."""

    kind: str
    text: str
    expected: tuple[str, ...]
    reason: str


class Outcome(NamedTuple):
    """The figures of a query, the expected results it missed, and the hits that came before them."""

    query: JudgedQuery
    recall: float
    reciprocal: float
    missed: list[str]
    unexpected: list[str]
    note: str | None

    @property
    def is_perfect(self) -> bool:
        """Whether the result could not be better."""
        return self.recall == self.reciprocal == 1


def queries() -> Iterator[JudgedQuery]:
    """Yield the judged queries."""
    for kind, rows in tomllib.loads((SCRIPTS / "queries.toml").read_text(encoding="utf-8")).items():
        for text, expected, reason in rows:
            yield JudgedQuery(kind, text, tuple(expected), reason)


class Home:
    """A home with the written sessions, alone or among generated ones, and its index."""

    def __init__(self, folder: Path, generated: Path | None = None, noise: int = NOISE_SESSIONS) -> None:
        self._home = folder / "home"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self._tasks = {}
        if generated is not None:
            shutil.copytree(generated, self._home)
            self._tasks = {title: _sessions_with_prompt(generated, prompt) for title, prompt in _tasks()}
        self._marks = write_sessions(self._home)
        write_noise(self._home, scripts().values(), noise)
        self._sessions = {name: script.session for name, script in scripts().items()}
        self._index = folder / "index.sqlite"
        refresh_index(self._index, homes(os.fspath(self._home)), jobs=1)

    def open_index(self) -> Index:
        """Open the index."""
        return Index.open(self._index)

    def expected_hits(self, query: JudgedQuery) -> dict[str, HitTest]:
        """Return a test for each expected result of a query. Results that this home lacks are left out."""
        return {name: test for text in query.expected for name, test in self._hit_tests(text)}

    def _hit_tests(self, text: str) -> Iterator[tuple[str, HitTest]]:
        if text.startswith(_TASK):
            for session in self._tasks.get(text.removeprefix(_TASK), ()):
                yield session, _of_session(session)
            return
        tests = [self._hit_test(name) for name in text.split("|")]
        yield text, lambda hit: any(test(hit) for test in tests)

    def _hit_test(self, name: str) -> HitTest:
        session = self._sessions[name.partition(":")[0]]
        line = self._marks[name] if ":" in name else None
        return lambda hit: hit.session == session and line in {None, hit.place.line}


def _tasks() -> Iterator[tuple[str, str]]:
    yield from ((task.title, task.prompt) for project in projects.ALL for task in project.tasks)


def _sessions_with_prompt(home: Path, prompt: str) -> set[str]:
    """Return the sessions of a generated home that begin with a prompt."""
    encoded = json.dumps(prompt, ensure_ascii=False)[1:-1].encode()
    paths = (path for path in home.glob("projects/*/*.jsonl") if encoded in path.open("rb").read(_BEGINNING))
    return {path.stem for path in paths}


def outcomes(home: Home) -> Iterator[Outcome]:
    """Run each query as the command does, and yield its outcome."""
    names = {script.session: name for name, script in scripts().items()}
    with home.open_index() as index:
        for query in queries():
            expected = home.expected_hits(query)
            if not expected:
                continue
            result = _search(index, query.text)
            matches = [{name for name, test in expected.items() if test(hit)} for hit in result.hits[:FIRST]]
            matched = set().union(*matches)
            ranks = [rank for rank, names_of_hit in enumerate(matches, 1) if names_of_hit]
            others = [hit for hit, names_of_hit in zip(result.hits, matches, strict=False) if not names_of_hit]
            yield Outcome(
                query,
                min(1.0, len(matched) / min(FIRST, len(expected))),
                1 / ranks[0] if ranks else 0.0,
                sorted(expected.keys() - matched)[:FIRST],
                [_describe(index, hit, names) for hit in others[: (ranks[0] if ranks else FIRST)]],
                result.note,
            )


def _search(index: Index, text: str) -> Hits:
    try:
        return search(index, text, limit=FIRST, now=NOW, zone=UTC, near=True)
    except BadQuery as error:
        return Hits((), 0, note=str(error).split("\n", maxsplit=1)[0])


def _describe(index: Index, hit: Hit, names: dict[str, str]) -> str:
    session = hit.session or ""
    name = names.get(session) or index.titles([session]).get(session, session)
    return f"{name} ({hit.field or hit.kind}: {' '.join(hit.snippet.split())[:60]})"


def figures(outcomes: Iterable[Outcome]) -> dict[str, dict[str, float]]:
    """Return recall and mean reciprocal rank, by kind and overall."""
    by_kind: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        by_kind.setdefault(outcome.query.kind, []).append(outcome)
    by_kind["all"] = [outcome for group in by_kind.values() for outcome in group]
    return {
        kind: {
            "queries": len(group),
            "recall_at_10": round(fmean(outcome.recall for outcome in group), 4),
            "mrr": round(fmean(outcome.reciprocal for outcome in group), 4),
        }
        for kind, group in by_kind.items()
    }


def worst(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Return the outcomes that are not perfect, the worst first."""
    return sorted(
        (outcome for outcome in outcomes if not outcome.is_perfect),
        key=lambda outcome: (outcome.recall, outcome.reciprocal),
    )


def _of_session(session: str) -> HitTest:
    return lambda hit: hit.session == session


def main() -> None:
    """Measure, print and save the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=MEGABYTES, help="size of the generated home; 0 for none")
    parser.add_argument("--worst", type=int, default=12, help="how many of the worst outcomes to show")
    options = parser.parse_args()
    home = Home(OUT / "relevance", generate_home(options.megabytes) if options.megabytes else None)
    started = time.perf_counter()
    results = list(outcomes(home))
    seconds = time.perf_counter() - started
    by_kind = figures(results)
    print(
        f"{len(scripts())} written sessions among noise and {options.megabytes:g} MB of generated ones;"
        f" {seconds:.1f} s for all queries"
    )
    for kind, row in by_kind.items():
        print(f"  {kind:12} {row['queries']:4.0f} queries  recall@10 {row['recall_at_10']:.3f}  MRR {row['mrr']:.3f}")
    misses = worst(results)
    print(f"{len(misses)} are not perfect; the worst:")
    for miss in misses[: options.worst]:
        _print_miss(miss)
    report = {"figures": by_kind, "megabytes": options.megabytes, "misses": [_plain(outcome) for outcome in misses]}
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
