"""Read sessions and attribute their costs, in several processes if there is much to read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial

from threadline.account import Ledger, Rates
from threadline.archive.insight import NO_FILTER, STORED_LIMITS, CostFilter, SessionFiles
from threadline.insight import SessionInsight, read_insight
from threadline.model.homes import Home, Transcript
from threadline.model.ledger import Charge
from threadline.model.waste import WasteLimits
from threadline.parallel import map_transcripts, relaxed_gc

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
    limits: WasteLimits = STORED_LIMITS,
    homes: Sequence[Home] = (),
    jobs: int | None = None,
) -> Iterator[tuple[SessionFiles, SessionInsight]]:
    """Read sessions, and attribute their selected charges; in several processes if there is much to read."""
    by_path = {str(session.main.path): session for session in sessions}
    function = partial(_read_session, by_path, read_charges, rates, selection, limits, homes)
    with relaxed_gc():
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
