"""Generate a whole Claude home: which sessions it has, how large they are, and the files beside them.

Sizes were measured on a home of 3,142 transcripts and 1,239 MiB: median 105 KB, p90 654 KB, p99 5.4 MB, the largest
87 MB. The other points of the curve are fitted so that the mean matches.
"""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING

from tools.demo import projects, side_files, story, versions
from tools.demo.session import Plan, Session, SessionResult
from tools.demo.story import Story
from tools.demo.text import Pools
from tools.demo.writer import uuid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tools.demo.projects import Project
    from tools.demo.versions import VersionFeatures

_SMALL = 44
"""Transcripts in a small home: with fewer, some features would be missing."""
_POOL = 1_100_000
_AGENT_SHARE = 0.45
_AGENT_LIMIT = 1_500_000

REQUIRED_SESSIONS: tuple[tuple[str, frozenset[str], int], ...] = (
    ("2.1.325", frozenset({"live", "plan", "question", "named", "list"}), 2),
    ("2.1.311", frozenset({"workflow", "queue"}), 3),
    ("2.1.119", frozenset({"torn", "rewind", "queue"}), 1),
    ("2.1.81", frozenset({"compaction", "long output", "named"}), 2),
    ("2.1.41", frozenset({"compaction", "rewind", "picture"}), 2),
    ("1.0.35", frozenset({"compaction", "shell", "command", "list"}), 0),
    ("2.0.28", frozenset({"error", "queue", "plan"}), 2),
    ("1.0.108", frozenset({"resumed", "refused"}), 0),
    ("2.1.232", frozenset({"forked", "refused"}), 1),
    ("0.2.126", frozenset({"error"}), 0),
    ("1.0.3", frozenset({"command"}), 0),
    ("2.0.76", frozenset({"interrupt"}), 1),
    ("2.1.219", frozenset({"rewind", "picture", "command"}), 1),
)
"""Sessions that every home has: version, scenes, and the minimum number of agents."""


class HomeGenerator:
    """Plans the sessions of a home and writes them in order of time."""

    def __init__(
        self, root: Path, *, seed: int, size: int, count: int | None, until: date, story: bool = False
    ) -> None:
        self._root = root
        self._story = story
        self._seed = seed
        self._rng = Random(f"{seed}/home")  # seeded, for invented text
        self._last = datetime.combine(until, time(20), UTC)
        self._count = count or max(min(_SMALL, size // 45_000 + 3), round(size / MEAN))
        self._sizes = split_sizes(size, self._count)
        self._projects = projects.choose(min(40, max(len(projects.ALL), self._count // 40)))
        self._pool = max(60_000, min(_POOL, size // 60))
        self._pools: dict[str, Pools] = {}

    def plans(self) -> list[Plan]:
        """The sessions, oldest first; a copy follows the session it copies."""
        rng = self._rng
        pool = self._sizes[:]
        rng.shuffle(pool)
        agents = set(range(int(len(pool) * _AGENT_SHARE)))
        required = self._required()
        mains = [size for index, size in enumerate(pool) if index not in agents or size >= _AGENT_LIMIT]
        spare = [size for index, size in enumerate(pool) if index in agents and size < _AGENT_LIMIT]
        mains.sort(reverse=True)
        plans = []
        for era, scenes, least in required[: max(1, len(mains) * 2 // 3)]:
            at = min(len(mains) - 1, rng.randrange(1 + len(mains) // 3))
            plan = self._plan(era, mains.pop(at), scenes)
            plan.agents = [spare.pop() for _ in range(min(least, len(spare)))]
            plans.append(plan)
        weights = [era.weight for era in versions.ERAS]
        plans.extend(self._plan(rng.choices(versions.ERAS, weights)[0], size, frozenset()) for size in mains)
        self._share(plans, spare)
        plans.sort(key=lambda plan: (plan.start, plan.identity))
        return [copied for plan in plans for copied in self._with_copy(plan)]

    def _required(self) -> list[tuple[VersionFeatures, frozenset[str], int]]:
        by_version = {era.version: era for era in versions.ERAS}
        return [(by_version[version], scenes, least) for version, scenes, least in REQUIRED_SESSIONS]

    def _share(self, plans: list[Plan], spare: list[int]) -> None:
        able = [plan for plan in plans if not plan.era.writes("inline agents") and "workflow" not in plan.scenes]
        if not able:
            return
        weights = [plan.size**0.6 for plan in able]
        for plan, size in zip(self._rng.choices(able, weights, k=len(spare)), spare, strict=True):
            plan.agents.append(size)

    def _plan(self, era: VersionFeatures, size: int, scenes: frozenset[str]) -> Plan:
        rng = self._rng
        project = rng.choices(self._projects, [project.weight for project in self._projects])[0]
        days = rng.uniform(era.last, era.first) if "live" not in scenes else 0.0
        start = self._last - timedelta(days=days)
        start = start.replace(hour=rng.randrange(7, 19), minute=rng.randrange(60), second=rng.randrange(60))
        # The duration at the pace of `Session.turn`: no session may continue after the last day.
        start = min(start, self._last - timedelta(hours=1 + size / 300_000))
        milliseconds = int(start.timestamp()) * 1000 + rng.randrange(1000)
        return Plan(
            identity=uuid(rng),
            project=project,
            era=era,
            size=size,
            start=milliseconds,
            task=rng.choice(project.tasks),
            agents=[],
            scenes=scenes,
        )

    def _with_copy(self, plan: Plan) -> Iterator[Plan]:
        if not plan.scenes & {"resumed", "forked"}:
            yield plan
            return
        half = max(SMALLEST, plan.size * 2 // 5)
        first = self._plan(plan.era, half, plan.scenes - {"resumed", "forked"})
        first.kept = True
        first.project, first.task = plan.project, plan.task
        plan.start = max(plan.start, first.start) + 7_200_000
        first.start = plan.start - 7_200_000
        plan.copies = first.identity
        plan.size -= half
        yield first
        plan.size += half
        yield plan

    def pools(self, project: Project) -> Pools:
        """The texts of a project; worktrees share those of their origin."""
        pools = self._pools.get(project.name)
        if pools is None:
            pools = self._pools[project.name] = Pools(project, Random(f"{self._seed}/{project.name}"), self._pool)
        return pools

    def write(self, progress: Callable[[int, int], None] | None) -> list[SessionResult]:
        """Write the home; returns the results of its sessions, without their rows."""
        results: list[SessionResult] = []
        plans = self.plans()
        goal = sum(plan.size + sum(plan.agents) for plan in plans)
        done = 0
        previous: SessionResult | None = None
        for plan in plans:
            rng = Random(f"{self._seed}/{plan.identity}")
            source = previous if previous is not None and plan.copies == previous.plan.identity else None
            previous = Session(plan, self._root, rng, self.pools(plan.project)).write(source)
            if source is not None:
                source.rows = None
            side_files.write_session_files(self._root, previous, rng, self.pools(plan.project))
            results.append(previous)
            done += previous.size
            if progress is not None:
                progress(min(done, goal), goal)
        if self._story:
            results.append(Story(self._root, self.pools(story.PROJECT)).write())
        side_files.write_home_files(self._root, results, self._rng)
        return results


CURVE = (
    (0.00, 1_800),
    (0.05, 9_000),
    (0.25, 41_000),
    (0.50, 105_000),
    (0.75, 262_000),
    (0.90, 654_000),
    (0.97, 2_000_000),
    (0.99, 5_400_000),
    (0.999, 20_000_000),
    (1.00, 50_000_000),
)
"""Shares of transcripts, each with the size that they do not exceed."""

LARGEST = 87_000_000
MEAN = 413_500
SMALLEST = 2_500
"""The minimum size of a transcript: a prompt and a reply."""

_BIG_HOME = 1_000
"""From this number of transcripts on, the largest transcript has the size `LARGEST`, as in real homes."""


def size_at(share: float) -> int:
    """The size that this share of transcripts does not exceed, interpolated logarithmically on the curve."""
    for (low, small), (high, big) in pairwise(CURVE):
        if share <= high:
            part = (share - low) / (high - low)
            return round(math.exp(math.log(small) + part * (math.log(big) - math.log(small))))
    return CURVE[-1][1]


def split_sizes(total: int, count: int) -> list[int]:
    """Sizes of `count` transcripts that add up to about `total`, smallest first, distributed like the curve."""
    shape = [size_at((index + 0.5) / count) for index in range(count)]
    if count >= _BIG_HOME:
        shape[-1] = LARGEST
    scale = total / sum(shape)
    return [max(SMALLEST, round(size * scale)) for size in shape]
