"""Read the transcripts of whole homes into a ledger, every message counted once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

from threadline.account import (
    AgentResults,
    Ledger,
    Rates,
    ledger_from_sightings,
    load_rates,
    with_origin,
)
from threadline.find import drop_shared_transcripts, look
from threadline.find import homes as all_homes
from threadline.model.homes import Found, Home, Homes, Transcript
from threadline.model.places import Place, Problem, ProblemKind
from threadline.model.usage import Sighting, TranscriptSightings
from threadline.parallel import map_transcripts
from threadline.parse import LineNumbers, read_agent_meta, read_sightings


def read_ledger(
    homes: Home | str | Path | Iterable[Home | str | Path] | None = None,
    *,
    prices: Rates | str | Path | Sequence[str | Path] = (),
    jobs: int | None = None,
) -> Ledger:
    """Read the ledger of all homes, or of the given ones: every message counted once, over all transcripts.

    `prices` are files whose rates are added to the shipped ones or replace them, or the rates to use.

    Raises:
        NotFound: a given home does not exist.
    """
    paths = (homes,) if isinstance(homes, Home | str | Path) else tuple(homes or ())
    found = [look(home, side_files=False) for home in (paths or all_homes())]
    files = (prices,) if isinstance(prices, str | Path) else prices
    ledger = build_ledger(found, files if isinstance(files, Rates) else load_rates(*files), jobs=jobs)
    fill_agent_types(found, ledger)
    return ledger


def build_ledger(
    found: Iterable[Found],
    rates: Rates,
    *,
    jobs: int | None = None,
    progress: Callable[[int], None] | None = None,
    calls: bool = True,
) -> Ledger:
    """Read the ledger of homes that were listed. `progress` is called with the size of each transcript that was read.

    Without `calls`, the ledger cannot be summed by tool, and reading is faster.
    """
    homes_found = list(drop_shared_transcripts(found))
    problems = [problem for home in homes_found for problem in home.problems if problem.kind is ProblemKind.UNREADABLE]
    read = map_transcripts(
        partial(read_sightings, calls=calls),
        [transcript for home in homes_found for transcript in home.transcripts],
        jobs=jobs,
    )
    agents = AgentResults()
    sightings = chain.from_iterable(_placed_sightings(read, homes_found, problems, agents, progress))
    return ledger_from_sightings(sightings, rates, problems, missing=agents, calls=calls)


def _placed_sightings(
    read: Iterable[tuple[Transcript, TranscriptSightings]],
    found: list[Found],
    problems: list[Problem],
    agents: AgentResults,
    progress: Callable[[int], None] | None,
) -> Iterator[list[Sighting]]:
    projects = {(home.home, project.folder): project.name for home in found for project in home.projects}
    ranks = Homes(home.home for home in found).ranks()
    for transcript, sightings in read:
        if sightings.problem is not None:
            place = Place(str(transcript.path))
            problems.append(Problem(ProblemKind.UNREADABLE, place, sightings.problem, recovered=False))
        project = projects.get((transcript.home, transcript.folder), transcript.folder)
        lines = LineNumbers(os.fspath(transcript.path))
        agents.add(sightings, transcript, project, lines)
        yield with_origin(sightings, transcript, project, lines, ranks.get(str(transcript.home.path), 0))
        if progress is not None:
            progress(transcript.size)


def fill_agent_types(found: Iterable[Found], ledger: Ledger) -> None:
    """Set the type of agents whose rows do not say it, from their side files."""
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
