"""Compare what Claude Code reports was spent with the ledger, session by session."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, tzinfo
from decimal import Decimal
from functools import cache, partial

from msgspec import Struct

from threadline.account import (
    AncestorSession,
    Ledger,
    explain_row_amounts,
    explain_total,
    first_offset,
    model_namer,
    reported_tokens,
    split_into_runs,
    token_surplus,
    tokens_by_model,
    total_amount,
)
from threadline.find import drop_shared_transcripts
from threadline.model.charges import EXACT, Charge
from threadline.model.homes import Found, Transcript, TranscriptKind
from threadline.model.places import Problem
from threadline.model.reconciliation import CostState, ReportedSession, ReportedSource, ReportedUsage
from threadline.model.totals import sum_amounts
from threadline.parallel import map_transcripts
from threadline.parse import CostStates, find_compaction_offsets, read_cost_states
from threadline.reports.usage import find_deleted_days


def reconcile(found: Iterable[Found], ledger: Ledger, jobs: int | None = None, *, zone: tzinfo = UTC) -> ReportedUsage:
    """Every amount that Claude Code reports in these homes, beside what `ledger` makes of the same sessions.

    A total is of a whole session, and so the ledger has to be whole, too: do not give one of a few days. `zone` is the
    time zone that the days of `stats-cache.json` are in.
    """
    homes = list(found)
    problems: list[Problem] = []
    states = _read_totals(list(drop_shared_transcripts(homes)), problems, jobs)
    book = _SessionLedger(ledger, states)
    sessions = [book.reconcile_total(session) for session in states]
    sessions += [
        book.reconcile_rows(session) for session in book.charges if session not in states and book.has_rows(session)
    ]
    told = {session.session for session in sessions}
    silent = [some for session, some in book.charges.items() if session not in told]
    days = tuple(find_deleted_days(homes, ledger, problems, zone=zone))
    return ReportedUsage(
        tuple(sorted(sessions, key=lambda session: (EXACT.abs(session.difference).copy_negate(), session.session))),
        len(silent),
        sum_amounts(map(total_amount, silent)),
        days,
        tuple(problems),
    )


def _read_totals(found: list[Found], problems: list[Problem], jobs: int | None) -> dict[str, _SessionTotals]:
    """The totals of every session, from the one of its transcripts that says most, and of those the latest."""
    projects = {(one.home, project.folder): project.name for one in found for project in one.projects}
    best: dict[str, _SessionTotals] = {}
    mains = [one for home in found for one in home.transcripts if one.kind is TranscriptKind.MAIN]
    for transcript, told in map_transcripts(_read_cost_states, mains, jobs=jobs):
        problems += told.problems
        project = projects.get((transcript.home, transcript.folder), transcript.folder)
        for session, states in _split_by_session(told.states, transcript).items():
            one = _SessionTotals(states, project, (len(states), transcript.mtime_ns, str(transcript.path)))
            if session not in best or one.worth > best[session].worth:
                best[session] = one
    return dict(sorted(best.items()))


def _read_cost_states(transcript: Transcript) -> CostStates:
    return read_cost_states(transcript.path)


def _split_by_session(states: Sequence[CostState], transcript: Transcript) -> dict[str, tuple[CostState, ...]]:
    parted: dict[str, list[CostState]] = {}
    for state in states:
        parted.setdefault(state.session or transcript.session or str(transcript.path), []).append(state)
    return {session: tuple(some) for session, some in parted.items()}


class _SessionTotals(Struct, frozen=True):
    """A session's totals in file order, and how much this transcript is to be preferred to a copy of it."""

    states: tuple[CostState, ...]
    project: str
    worth: tuple[int, int, str]


class _SessionLedger:
    """The ledger by session, and who may go on from whom."""

    def __init__(self, ledger: Ledger, states: dict[str, _SessionTotals]) -> None:
        self._rates, self._states, self._name = ledger.rates, states, model_namer(ledger.rates)
        self.charges: dict[str, list[Charge]] = {}
        self._copies: dict[str, dict[str, list[Charge]]] = {}
        self._kin: dict[str, list[str]] = {}
        transcripts = {one.states[-1].place.transcript: session for session, one in states.items()}
        for charge in ledger:
            own = charge.session or ""
            self.charges.setdefault(own, []).append(charge)
            if len(charge.sightings) > 1:
                for session in {transcripts.get(sighting.origin.transcript) for sighting in charge.sightings} - {
                    own,
                    None,
                }:
                    self._copies.setdefault(session or "", {}).setdefault(own, []).append(charge)
        for session, one in states.items():
            for began in {state.began for state in one.states} - {None, "0", "null"}:
                self._kin.setdefault(began or "", []).append(session)

    def reconcile_total(self, session: str) -> ReportedSession:
        """A session that wrote its total, held against its charges."""
        totals = self._states[session]
        charges = self.charges.get(session, [])
        last = totals.states[-1]
        transcript = last.place.transcript
        parts = split_into_runs(totals.states, charges)
        return ReportedSession(
            session,
            totals.project,
            last.place,
            ReportedSource.COST_STATE,
            last.amount,
            total_amount(charges),
            tuple(
                explain_total(
                    parts, self._ancestors(session), cache(partial(find_compaction_offsets, transcript)), self._rates
                )
            ),
            len(charges),
            last.is_floor,
            token_surplus(reported_tokens(last, self._name), tokens_by_model(charges, self._name)),
        )

    def reconcile_rows(self, session: str) -> ReportedSession:
        """A session whose rows say what each message cost, held against its charges."""
        charges = self.charges[session]
        said = [charge for charge in charges if charge.reported is not None]
        return ReportedSession(
            session,
            said[0].project,
            said[-1].place,
            ReportedSource.COST_USD,
            sum_amounts(one.reported or Decimal(0) for one in said),
            total_amount(charges),
            tuple(explain_row_amounts(charges)),
            len(charges),
        )

    def has_rows(self, session: str) -> bool:
        """Whether any message of a session says what it cost."""
        return any(charge.reported is not None for charge in self.charges[session])

    def _ancestors(self, session: str) -> list[AncestorSession]:
        """The sessions that this one's total may go on from: first that of the last copied message."""
        totals = self._states[session].states
        transcript = totals[-1].place.transcript
        copied = self._copies.get(session, {})
        latest = {other: max(first_offset(one, transcript) or 0 for one in some) for other, some in copied.items()}
        kin = [other for state in totals for other in self._kin.get(state.began or "", ()) if other != session]
        names = dict.fromkeys([*sorted(latest, key=latest.__getitem__, reverse=True), *kin])
        return [AncestorSession(name, self._totals_of(name), tuple(copied.get(name, ()))) for name in names]

    def _totals_of(self, session: str) -> tuple[CostState, ...]:
        return self._states[session].states if session in self._states else ()
