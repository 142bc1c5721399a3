"""Read the transcripts of whole homes into a ledger, every message counted once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from threadline.account import (
    AgentResults,
    Ledger,
    Rates,
    ledger_from_sightings,
    load_rates,
    with_origin,
)
from threadline.errors import Error
from threadline.find import TranscriptProjects, drop_shared_transcripts, look
from threadline.find import homes as all_homes
from threadline.model.homes import Found, Home, Homes, Transcript
from threadline.model.places import Place, Problem, ProblemKind
from threadline.model.usage import INLINE_AGENT, Origin, Sighting, TranscriptSightings
from threadline.parallel import map_transcripts
from threadline.parse import LineNumbers, named_session, read_agent_meta, read_sightings


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
    named = [home for path in paths for home in ((path,) if isinstance(path, Home) else all_homes(path))]
    found = [look(home, side_files=False) for home in (named or all_homes())]
    files = (prices,) if isinstance(prices, str | Path) else prices
    return build_ledger(found, files if isinstance(files, Rates) else load_rates(*files), jobs=jobs)


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
        progress=progress,
    )
    agents = AgentResults()
    sightings = chain.from_iterable(_placed_sightings(read, homes_found, problems, agents))
    ledger = ledger_from_sightings(sightings, rates, problems, missing=agents, calls=calls)
    ledger.fill_agent_types(AgentTypes(homes_found).read)
    return ledger


def _placed_sightings(
    read: Iterable[tuple[Transcript, TranscriptSightings]],
    found: list[Found],
    problems: list[Problem],
    agents: AgentResults,
) -> Iterator[list[Sighting]]:
    projects = TranscriptProjects(found, lambda agent: named_session(agent.path))
    ranks = Homes(home.home for home in found).ranks()
    for transcript, sightings in read:
        if sightings.problem is not None:
            place = Place(str(transcript.path))
            problems.append(Problem(ProblemKind.UNREADABLE, place, sightings.problem, recovered=False))
        project = projects.name_of(transcript)
        lines = LineNumbers(os.fspath(transcript.path))
        agents.add(sightings, transcript, project, lines)
        yield with_origin(sightings, transcript, project, lines, ranks.get(str(transcript.home.path), 0))


class AgentTypes:
    """Reads the types of agents as `threadline tree` knows them: from the side file, or else from the session."""

    def __init__(self, found: Sequence[Found]) -> None:
        self._found = found
        self._types: dict[tuple[object, ...], str | None] = {}
        self._sessions: dict[Path, _SessionTypes] = {}

    @cached_property
    def _metas(self) -> dict[str, Path]:
        return {str(t.path): t.meta for home in self._found for t in home.transcripts if t.meta is not None}

    @cached_property
    def _mains(self) -> dict[tuple[str, str], Path]:
        mains = (transcript for home in self._found for transcript in home.transcripts if transcript.is_main)
        # By the name of the home: its keep may have one of a session's files, and the home itself another.
        return {(main.home.name, str(main.session)): main.path for main in mains}

    def read(self, origin: Origin, uuids: Sequence[str]) -> str | None:
        """Return the type of the agent that wrote rows with these uuids."""
        key = (origin.transcript, origin.agent, *(uuids if origin.agent == INLINE_AGENT else ()))
        if key not in self._types:
            self._types[key] = self._type_in_meta(origin) or self._type_in_session(origin, uuids)
        return self._types[key]

    def _type_in_meta(self, origin: Origin) -> str | None:
        path = self._metas.get(origin.transcript)
        meta = read_agent_meta(path) if path is not None else None
        return meta.agent_type if meta is not None else None

    def _type_in_session(self, origin: Origin, uuids: Sequence[str]) -> str | None:
        main = self._mains.get((origin.home_name, str(origin.session)))
        if main is None:
            return None
        if main not in self._sessions:
            self._sessions[main] = _SessionTypes.of_transcript(main, [home.home for home in self._found])
        session = self._sessions[main]
        by_row = (session.by_row[uuid] for uuid in uuids if uuid in session.by_row)
        return session.by_agent.get(origin.agent or "") or next(by_row, None)


class _SessionTypes(NamedTuple):
    """The types of a session's agents, by id; and by the uuids of rows, for those inside the main transcript."""

    by_agent: Mapping[str, str]
    by_row: Mapping[str, str]

    @classmethod
    def of_transcript(cls, main: Path, homes: Sequence[Home]) -> _SessionTypes:
        """Read the session of a main transcript."""
        from threadline.load import read as read_session  # noqa: PLC0415 - loads the reader, which sums do without
        from threadline.thread import agents_in_progress  # noqa: PLC0415 - likewise

        try:
            session = read_session(main, continued=False, homes=homes)
        except Error:
            return cls({}, {})  # the ledger reports it
        # Agents without a transcript have charges, too: progress repeats their messages.
        calls = {call.id: call.input.get("subagent_type") for call in session.calls if isinstance(call.input, dict)}
        links = {str(agent): call for agent, call in agents_in_progress(session).items()}
        links |= {str(call.started): call.id for call in session.calls if call.started is not None}
        by_agent = {agent: kind for agent, call in links.items() if isinstance(kind := calls.get(call), str)}
        by_agent |= {str(agent.id): agent.type for agent in session.agents if agent.type is not None}
        by_row = {
            str(entry.uuid): agent.type
            for agent in session.agents
            if agent.kind == INLINE_AGENT and agent.type is not None
            for entry in agent.entries
            if entry.uuid is not None
        }
        return cls(by_agent, by_row)
