"""What caused costs and which were avoidable, across sessions.

A period counts what was paid in it: every request by its own time, so that the sums are those of the ledger with the
same filter. A session whose charges are all selected, or none of them, is the usual case. Of others, only the selected
charges are attributed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from threadline.account import ChargeFilter
from threadline.find import SessionOwners, transcript_at
from threadline.model.homes import Found, Home, ProjectNames, Transcript
from threadline.model.insight.waste import WasteLimits
from threadline.model.places import SessionId

if TYPE_CHECKING:
    from threadline.account import Ledger, Rates
    from threadline.index import Index, NewInsight, StoredSession
    from threadline.insight import SessionInsight
    from threadline.model.ledger import Charge

STORED_LIMITS = WasteLimits(large_output=500, min_amount=Decimal(0))
"""The limits that stored waste is found with. Questions may narrow them."""


class SessionFiles(Struct, frozen=True):
    """The transcripts of a session: the main one, or one without a session, with the paths of all."""

    main: Transcript
    transcripts: frozenset[str]
    project: str


class CostFilter(Struct, frozen=True):
    """Which charges count: those of a time range, and of projects whose path contains a text."""

    since: datetime | None = None
    until: datetime | None = None
    project: str | None = None

    def apply(self, ledger: Ledger) -> Ledger:
        """Return the charges that count."""
        return ledger.where(since=self.since, until=self.until, project=self.project)

    @property
    def charge_filter(self) -> ChargeFilter:
        """The same for the index."""
        projects = (self.project.casefold(),) if self.project is not None else ()
        return ChargeFilter(self.since, self.until, projects)


NO_FILTER = CostFilter()


def group_by_session(
    found: Collection[Found], named: Callable[[Transcript], SessionId | None]
) -> Iterator[SessionFiles]:
    """Yield the transcripts of each session. `named` returns the session that an agent's entries name."""
    projects = ProjectNames(found)
    transcripts = [transcript for home in found for transcript in home.transcripts]
    owners = SessionOwners(transcripts, named)
    groups: dict[str, list[Transcript]] = {}
    for transcript in transcripts:
        main = owners.main_of(transcript) or transcript
        groups.setdefault(str(main.path), [main]).append(transcript)
    for main, *parts in groups.values():
        size = sum(part.size for part in parts)
        paths = frozenset(str(part.path) for part in parts)
        yield SessionFiles(replace(main, size=size), paths, projects.of(main))


def select_sessions(sessions: Iterable[SessionFiles], ledger: Ledger, selection: CostFilter) -> Iterator[SessionFiles]:
    """Yield the sessions that have selected charges."""
    selected = {row.keys["transcript"] for row in selection.apply(ledger).by("transcript")}
    return (session for session in sessions if not selected.isdisjoint(session.transcripts))


STORE_SECONDS = 2.0
"""How often results are stored, in seconds: as much work is lost if it is interrupted."""


class StoredInsights:
    """The insights into the sessions that a filter selects, with an index: stored ones, and the others in memory.

    Sessions that are not stored yet, or have changed, are read and stored first. Of sessions with charges that are not
    selected, those that are selected are attributed each time.
    """

    def __init__(
        self,
        index: Index,
        selection: CostFilter,
        *,
        find_sessions: Callable[[], Iterable[SessionFiles]],
        display: Callable[[int], AbstractContextManager[Callable[[int], None]]],
        jobs: int | None,
        homes: Sequence[Home],
    ) -> None:
        self._index = index
        self._display = display
        self._jobs = jobs
        self._homes = homes
        self._generation = index.generation
        insights = index.select_insights(selection.charge_filter)
        unknown = _with_any(find_sessions(), insights.unknown) if insights.unknown else []
        if (unknown or insights.is_outdated) and self._store(unknown):
            insights = index.select_insights(selection.charge_filter)
        others = [*map(_session_files, insights.partial)]
        if insights.unknown:
            others += _with_any(find_sessions(), insights.unknown)
        self.stored = insights.whole
        self.computed = [insight for _, insight in self._read(others, selection)]

    def _store(self, sessions: Collection[SessionFiles]) -> bool:
        """Read sessions and store the insights. Returns False if they cannot be stored."""
        from threadline.index import NewInsight

        batch: list[NewInsight] = []
        started = monotonic()
        for session, insight in self._read(sessions, NO_FILTER):
            batch.append(NewInsight(str(session.main.path), session.transcripts, insight))
            if monotonic() - started > STORE_SECONDS:
                if not self._index.store_insights(batch, self._generation):
                    return False
                batch, started = [], monotonic()
        return self._index.store_insights(batch, self._generation)

    def _read(
        self, sessions: Collection[SessionFiles], selection: CostFilter
    ) -> Iterator[tuple[SessionFiles, SessionInsight]]:
        if not sessions:
            return
        from threadline.account import shipped_rates

        with self._display(sum(session.main.size for session in sessions)) as advance:
            yield from read_insights(
                sessions,
                self._index.owned_charges,
                shipped_rates(),
                selection=selection,
                homes=self._homes,
                jobs=self._jobs,
                progress=advance,
            )


def _with_any(sessions: Iterable[SessionFiles], transcripts: frozenset[str]) -> list[SessionFiles]:
    """The sessions that have any of these transcripts."""
    return [session for session in sessions if not transcripts.isdisjoint(session.transcripts)]


def _session_files(session: StoredSession) -> SessionFiles:
    main = transcript_at(Path(session.main))
    return SessionFiles(main, session.transcripts, session.project)


ChargeReader = Callable[[Collection[str]], "Sequence[Charge]"]
"""Returns the charges that transcripts own, by their paths."""


def charges_in_memory(ledger: Ledger) -> ChargeReader:
    """Read charges from a ledger that is in memory."""
    charges: dict[str, list[Charge]] = {}
    for charge in ledger:
        charges.setdefault(charge.origin.transcript, []).append(charge)
    return lambda transcripts: [charge for path in transcripts for charge in charges.get(path, ())]


def read_insights(
    sessions: Collection[SessionFiles],
    read_charges: ChargeReader,
    rates: Rates,
    *,
    selection: CostFilter = NO_FILTER,
    limits: WasteLimits = STORED_LIMITS,
    homes: Sequence[Home] = (),
    jobs: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Iterator[tuple[SessionFiles, SessionInsight]]:
    """Read sessions, and attribute their selected charges; in several processes if there is much to read."""
    from threadline.parallel import map_transcripts, relaxed_gc

    by_path = {str(session.main.path): session for session in sessions}
    function = partial(
        _read_session,
        sessions=by_path,
        read_charges=read_charges,
        rates=rates,
        selection=selection,
        limits=limits,
        homes=homes,
    )
    mains = [session.main for session in sessions]
    with relaxed_gc():
        for main, insight in map_transcripts(function, mains, jobs=jobs, progress=progress):
            yield by_path[str(main.path)], insight


def _read_session(
    main: Transcript,
    *,
    sessions: Mapping[str, SessionFiles],
    read_charges: ChargeReader,
    rates: Rates,
    selection: CostFilter,
    limits: WasteLimits,
    homes: Sequence[Home],
) -> SessionInsight:
    from threadline.account import Ledger
    from threadline.insight import read_insight

    session = sessions[str(main.path)]
    ledger = selection.apply(Ledger(read_charges(session.transcripts), rates))
    return read_insight(main.path, ledger, limits, homes=homes, project=session.project)
