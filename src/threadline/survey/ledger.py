"""The ledger of whole homes: every transcript read for what was spent, every message counted once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

from threadline.account.charges import charges
from threadline.account.ledger import Ledger
from threadline.account.placed import placed
from threadline.account.rates import Rates, rates
from threadline.find import homes as all_homes
from threadline.find import look
from threadline.model.found import Found, Home, Transcript
from threadline.model.kept import ranks
from threadline.model.place import Place
from threadline.model.problem import Problem, ProblemKind
from threadline.model.sighting import Seen, Sighting
from threadline.parse.line_numbers import LineNumbers
from threadline.parse.sightings import sightings
from threadline.survey.agent_types import fill_agent_types
from threadline.survey.distinct import distinct
from threadline.survey.each import each


def ledger(
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
    made = ledger_of(found, files if isinstance(files, Rates) else rates(*files), jobs=jobs)
    fill_agent_types(found, made)
    return made


def ledger_of(
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
    looked = list(distinct(found))
    problems = [one for home in looked for one in home.problems if one.kind is ProblemKind.UNREADABLE]
    seen = each(partial(sightings, calls=calls), [one for home in looked for one in home.transcripts], jobs=jobs)
    every = chain.from_iterable(_every(seen, looked, problems, progress))
    return Ledger(charges(every, table), table, problems, calls=calls)


def _every(
    told: Iterable[tuple[Transcript, Seen]],
    found: list[Found],
    problems: list[Problem],
    progress: Callable[[int], None] | None,
) -> Iterator[list[Sighting]]:
    projects = {(one.home, project.folder): project.name for one in found for project in one.projects}
    places = ranks(str(one.home.path) for one in found)
    for transcript, seen in told:
        if seen.problem is not None:
            place = Place(str(transcript.path))
            problems.append(Problem(ProblemKind.UNREADABLE, place, seen.problem, recovered=False))
        project = projects.get((transcript.home, transcript.folder), transcript.folder)
        lines = LineNumbers(os.fspath(transcript.path))
        yield placed(seen, transcript, project, lines, places.get(str(transcript.home.path), 0))
        if progress is not None:
            progress(transcript.size)
