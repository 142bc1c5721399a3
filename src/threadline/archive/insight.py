"""What costs were caused by and what was spent without need, across sessions.

A period counts what was paid in it: every request by its own time, so that the sums are those of the ledger with the
same filter. A session whose charges are all selected, or none of them, is the usual case. Of others, only the selected
charges are attributed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from threadline.account import Ledger
from threadline.find import SessionOwners, drop_shared_transcripts
from threadline.insight import SessionInsight, read_insight
from threadline.model.homes import Found, Home, Transcript
from threadline.model.ledger import Charge, Row, Sum
from threadline.model.places import SessionId
from threadline.model.waste import WasteLimits
from threadline.parallel import map_transcripts

if TYPE_CHECKING:
    from threadline.account import Rates

ALL_WASTE = WasteLimits(large_output=500, min_amount=Decimal(0))
"""The limits with which waste is looked for, to be narrowed by those that somebody asks with."""


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


NO_FILTER = CostFilter()


def group_by_session(found: Iterable[Found], named: Callable[[Transcript], SessionId | None]) -> Iterator[SessionFiles]:
    """Yield the transcripts of each session. `named` returns the session that an agent's entries name."""
    homes = list(drop_shared_transcripts(found))
    names = {(project.home, project.folder): project.name for home in homes for project in home.projects}
    transcripts = [transcript for home in homes for transcript in home.transcripts]
    owners = SessionOwners(transcripts, named)
    groups: dict[str, list[Transcript]] = {}
    for transcript in transcripts:
        main = owners.main_of(transcript) or transcript
        groups.setdefault(str(main.path), [main]).append(transcript)
    for main, *parts in groups.values():
        size = sum(part.size for part in parts)
        paths = frozenset(str(part.path) for part in parts)
        yield SessionFiles(replace(main, size=size), paths, names.get((main.home, main.folder), main.folder))


def select_sessions(
    sessions: Iterable[SessionFiles], ledger: Ledger, selection: CostFilter
) -> Iterator[tuple[SessionFiles, bool]]:
    """Yield the sessions that have selected charges, and whether all of their charges are selected."""
    selected, every = _sums_by_transcript(selection.apply(ledger)), _sums_by_transcript(ledger)
    for session in sessions:
        sums = [selected[path] for path in session.transcripts if path in selected]
        if sums:
            yield session, _figures(sums) == _figures(every[path] for path in session.transcripts if path in every)


def _sums_by_transcript(ledger: Ledger) -> dict[str, Row]:
    return {row.keys["transcript"]: row for row in ledger.by("transcript")}


def _figures(rows: Iterable[Row]) -> tuple[int, ...]:
    """Figures that are equal for all charges and some of them only if the others are empty."""
    total = Sum.of(rows)
    return total.charges, total.tokens, total.output, total.cache_read, total.web_searches, total.unpriced


ChargeReader = Callable[[Collection[str]], Sequence[Charge]]
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
    limits: WasteLimits = ALL_WASTE,
    homes: Sequence[Home] = (),
    jobs: int | None = None,
) -> Iterator[tuple[SessionFiles, SessionInsight]]:
    """Read sessions, and attribute their selected charges; in several processes if there is much to read."""
    by_path = {str(session.main.path): session for session in sessions}
    function = partial(_read_session, by_path, read_charges, rates, selection, limits, homes)
    for transcript, insight in map_transcripts(function, [session.main for session in sessions], jobs=jobs):
        yield by_path[str(transcript.path)], insight


def _read_session(  # noqa: PLR0917 - bound by `read_insights`, except for the last
    sessions: Mapping[str, SessionFiles],
    read_charges: ChargeReader,
    rates: Rates,
    selection: CostFilter,
    limits: WasteLimits,
    homes: Sequence[Home],
    main: Transcript,
) -> SessionInsight:
    session = sessions[str(main.path)]
    ledger = selection.apply(Ledger(read_charges(session.transcripts), rates))
    return read_insight(main.path, ledger, limits, homes=homes, project=session.project)
