"""Read the transcripts of whole homes into a ledger, every message counted once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

from threadline.account import Ledger, Rates, compute_charges, load_rates, with_origin
from threadline.find import drop_shared_transcripts, look
from threadline.find import homes as all_homes
from threadline.model.homes import Found, Home, Transcript, rank_homes
from threadline.model.places import Place, Problem, ProblemKind
from threadline.model.sightings import Sighting, TranscriptSightings
from threadline.parallel import map_transcripts
from threadline.parse import LineNumbers, read_agent_meta, read_sightings


def read_ledger(
    homes: Home | str | Path | Iterable[Home | str | Path] | None = None,
    *,
    prices: Rates | str | Path | Sequence[str | Path] = (),
    jobs: int | None = None,
) -> Ledger:
    """The ledger of all homes that are found, or of those given: every message counted once, over all transcripts.

    `prices` are files whose rates are added to those that threadline ships, or take their place; or the rates to take.

    Raises:
        NotFound: a home that was given is not there.
    """
    given = (homes,) if isinstance(homes, Home | str | Path) else tuple(homes or ())
    found = [look(home, side_files=False) for home in (given or all_homes())]
    files = (prices,) if isinstance(prices, str | Path) else prices
    made = build_ledger(found, files if isinstance(files, Rates) else load_rates(*files), jobs=jobs)
    fill_agent_types(found, made)
    return made


def build_ledger(
    found: Iterable[Found],
    table: Rates,
    *,
    jobs: int | None = None,
    progress: Callable[[int], None] | None = None,
    calls: bool = True,
) -> Ledger:
    """The ledger of homes that were looked at. `progress` is told the bytes of each transcript as it is read.

    Without `calls` it cannot be summed by tool, and takes less time.
    """
    looked = list(drop_shared_transcripts(found))
    problems = [problem for home in looked for problem in home.problems if problem.kind is ProblemKind.UNREADABLE]
    seen = map_transcripts(
        partial(read_sightings, calls=calls),
        [transcript for home in looked for transcript in home.transcripts],
        jobs=jobs,
    )
    every = chain.from_iterable(_placed_sightings(seen, looked, problems, progress))
    return Ledger(compute_charges(every, table), table, problems, calls=calls)


def _placed_sightings(
    told: Iterable[tuple[Transcript, TranscriptSightings]],
    found: list[Found],
    problems: list[Problem],
    progress: Callable[[int], None] | None,
) -> Iterator[list[Sighting]]:
    projects = {(one.home, project.folder): project.name for one in found for project in one.projects}
    places = rank_homes(str(one.home.path) for one in found)
    for transcript, seen in told:
        if seen.problem is not None:
            place = Place(str(transcript.path))
            problems.append(Problem(ProblemKind.UNREADABLE, place, seen.problem, recovered=False))
        project = projects.get((transcript.home, transcript.folder), transcript.folder)
        lines = LineNumbers(os.fspath(transcript.path))
        yield with_origin(seen, transcript, project, lines, places.get(str(transcript.home.path), 0))
        if progress is not None:
            progress(transcript.size)


def fill_agent_types(found: Iterable[Found], ledger: Ledger) -> None:
    """Give every charge of an agent the agent's type, where its rows do not say it and its side file does."""
    metas = {
        str(transcript.path): transcript.meta
        for home in found
        for transcript in home.transcripts
        if transcript.meta is not None
    }

    def read(transcript: str) -> str | None:
        path = metas.get(transcript)
        meta = read_agent_meta(path) if path is not None else None
        return meta.agent_type if meta is not None else None

    ledger.fill_agent_types(read)
