"""How good the ranking is: judged queries, asked of written sessions among a generated home.

Recall at ten is the share of what was meant that is among the first ten hits; the reciprocal rank is one for a first
hit that was meant, a half for a second, none beyond the tenth. Both are means over queries. The queries, what each of
them means and why are in `bench/relevance/queries.toml`.
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
from bench.homes import OUT, generated
from bench.relevance_noise import SESSIONS as NOISE
from bench.relevance_noise import bury
from bench.relevance_sessions import SCRIPTS, scripts, tell
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

Meant = Callable[[Hit], bool]


class Judged(NamedTuple):
    """A query, its kind, what is meant by it, and why."""

    kind: str
    text: str
    meant: tuple[str, ...]
    why: str


class Outcome(NamedTuple):
    """What a query found: which of the first ten were meant, out of how many, and what else came."""

    judged: Judged
    recall: float
    reciprocal: float
    missed: list[str]
    instead: list[str]
    note: str | None

    @property
    def is_whole(self) -> bool:
        """Whether nothing better could be wished for."""
        return self.recall == self.reciprocal == 1


def queries() -> Iterator[Judged]:
    """The judged queries."""
    for kind, some in tomllib.loads((SCRIPTS / "queries.toml").read_text(encoding="utf-8")).items():
        for text, meant, why in some:
            yield Judged(kind, text, tuple(meant), why)


class Home:
    """Written sessions, alone or among generated ones, and their index."""

    def __init__(self, folder: Path, around: Path | None = None, noise: int = NOISE) -> None:
        self._home = folder / "home"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        if around is not None:
            shutil.copytree(around, self._home)
        self._tasks = {title: _sessions_of(around, asked) for title, asked in _tasks()} if around is not None else {}
        self._marks = tell(self._home)
        bury(self._home, scripts().values(), noise)
        self._sessions = {name: script.session for name, script in scripts().items()}
        self._index = folder / "index.sqlite"
        refresh_index(self._index, homes(os.fspath(self._home)), jobs=1)

    def opened(self) -> Index:
        """The index."""
        return Index.open(self._index)

    def meant(self, judged: Judged) -> dict[str, Meant]:
        """What a query means, each thing with how to know it; without what only a generated home has."""
        return {name: known for one in judged.meant for name, known in self._known(one)}

    def _known(self, text: str) -> Iterator[tuple[str, Meant]]:
        if text.startswith(_TASK):
            for session in self._tasks.get(text.removeprefix(_TASK), ()):
                yield session, _of_session(session)
            return
        either = [self._is(name) for name in text.split("|")]
        yield text, lambda hit: any(same(hit) for same in either)

    def _is(self, name: str) -> Meant:
        session = self._sessions[name.partition(":")[0]]
        line = self._marks[name] if ":" in name else None
        return lambda hit: hit.session == session and line in {None, hit.place.line}


def _tasks() -> Iterator[tuple[str, str]]:
    yield from ((task.title, task.prompt) for project in projects.ALL for task in project.tasks)


def _sessions_of(home: Path, asked: str) -> set[str]:
    """The sessions of a generated home that begin with a task."""
    wanted = json.dumps(asked, ensure_ascii=False)[1:-1].encode()
    paths = (path for path in home.glob("projects/*/*.jsonl") if wanted in path.open("rb").read(_BEGINNING))
    return {path.stem for path in paths}


def outcomes(home: Home) -> Iterator[Outcome]:
    """What each query finds, as a person would be shown it."""
    names = {script.session: name for name, script in scripts().items()}
    with home.opened() as index:
        for judged in queries():
            meant = home.meant(judged)
            if not meant:
                continue
            found = _asked(index, judged.text)
            told = [{name for name, same in meant.items() if same(hit)} for hit in found.hits[:FIRST]]
            seen = set().union(*told)
            ranks = [at for at, some in enumerate(told, 1) if some]
            others = [hit for hit, some in zip(found.hits, told, strict=False) if not some]
            yield Outcome(
                judged,
                min(1.0, len(seen) / min(FIRST, len(meant))),
                1 / ranks[0] if ranks else 0.0,
                sorted(meant.keys() - seen)[:FIRST],
                [_named(index, hit, names) for hit in others[: (ranks[0] if ranks else FIRST)]],
                found.note,
            )


def _asked(index: Index, text: str) -> Hits:
    try:
        return search(index, text, limit=FIRST, now=NOW, zone=UTC, near=True)
    except BadQuery as error:
        return Hits((), 0, note=str(error).split("\n", maxsplit=1)[0])


def _named(index: Index, hit: Hit, names: dict[str, str]) -> str:
    session = hit.session or ""
    name = names.get(session) or index.titles([session]).get(session, session)
    return f"{name} ({hit.field or hit.kind}: {' '.join(hit.snippet.split())[:60]})"


def figures(found: Iterable[Outcome]) -> dict[str, dict[str, float]]:
    """Recall and reciprocal rank, for each kind and for all together."""
    listed = list(found)
    kinds = dict.fromkeys(outcome.judged.kind for outcome in listed)
    by_kind = {kind: [outcome for outcome in listed if outcome.judged.kind == kind] for kind in kinds} | {"all": listed}
    return {
        kind: {
            "queries": len(some),
            "recall_at_10": round(fmean(one.recall for one in some), 4),
            "mrr": round(fmean(one.reciprocal for one in some), 4),
        }
        for kind, some in by_kind.items()
    }


def worst(found: Iterable[Outcome]) -> list[Outcome]:
    """The queries that could be answered better, the worst first."""
    return sorted(
        (outcome for outcome in found if not outcome.is_whole), key=lambda outcome: (outcome.recall, outcome.reciprocal)
    )


def _of_session(session: str) -> Meant:
    return lambda hit: hit.session == session


def main() -> None:
    """Measure, print, and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=MEGABYTES, help="of the generated home; 0 for none")
    parser.add_argument("--worst", type=int, default=12, help="how many of the worst misses to show")
    options = parser.parse_args()
    around = generated(options.megabytes) if options.megabytes else None
    home = Home(OUT / "relevance", around)
    started = time.perf_counter()
    found = list(outcomes(home))
    taken = time.perf_counter() - started
    told = figures(found)
    print(
        f"{len(scripts())} written sessions, buried in noise and {options.megabytes:g} MB of generated ones;"
        f" {taken:.1f} s for all queries"
    )
    for kind, one in told.items():
        print(f"  {kind:12} {one['queries']:4.0f} queries  recall@10 {one['recall_at_10']:.3f}  MRR {one['mrr']:.3f}")
    misses = worst(found)
    print(f"{len(misses)} could be answered better; the worst:")
    for miss in misses[: options.worst]:
        _print_miss(miss)
    kept = {"figures": told, "megabytes": options.megabytes, "misses": [_plain(outcome) for outcome in misses]}
    (OUT / "relevance.json").write_text(json.dumps(kept, ensure_ascii=False, indent=1), encoding="utf-8")


def _print_miss(miss: Outcome) -> None:
    print(f"  {miss.judged.kind}: {miss.judged.text}   recall {miss.recall:.2f}, 1/rank {miss.reciprocal:.2f}")
    if miss.note:
        print(f"      note: {miss.note}")
    if miss.missed:
        print(f"      missed: {', '.join(miss.missed)}")
    for one in miss.instead[:3]:
        print(f"      came: {one}")


def _plain(miss: Outcome) -> dict[str, object]:
    return {**miss._asdict(), "judged": miss.judged._asdict()}


if __name__ == "__main__":
    main()
