"""What Claude Code reports was spent, over whole homes, held against the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, tzinfo
from decimal import Decimal
from functools import cache, partial

from msgspec import Struct

from threadline.account.ledger import Ledger
from threadline.account.reconcile import Ancestor, reasons
from threadline.account.row_amounts import rows_reported
from threadline.account.runs import amount_of, more, naming, offset_in, runs, tokens_of, tokens_said
from threadline.model.charge import Charge
from threadline.model.found import Found, Transcript, TranscriptKind
from threadline.model.problem import Problem
from threadline.model.rate import EXACT
from threadline.model.reported import CostState, Reported, ReportedSession, Source
from threadline.model.sum import added
from threadline.parse.cost_states import CostStates, compactions, cost_states
from threadline.survey.distinct import distinct
from threadline.survey.each import each
from threadline.survey.swept import swept


def reported(found: Iterable[Found], ledger: Ledger, jobs: int | None = None, *, zone: tzinfo = UTC) -> Reported:
    """Every amount that Claude Code reports in these homes, beside what `ledger` makes of the same sessions.

    A total is of a whole session, and so the ledger has to be whole, too: do not give one of a few days. `zone` is the
    time zone that the days of `stats-cache.json` are in.
    """
    homes = list(found)
    problems: list[Problem] = []
    states = _states(list(distinct(homes)), problems, jobs)
    book = _Book(ledger, states)
    sessions = [book.by_total(session) for session in states]
    sessions += [book.by_rows(session) for session in book.charges if session not in states and book.has_rows(session)]
    told = {one.session for one in sessions}
    silent = [some for session, some in book.charges.items() if session not in told]
    days = tuple(swept(homes, ledger, problems, zone=zone))
    return Reported(
        tuple(sorted(sessions, key=lambda one: (EXACT.abs(one.difference).copy_negate(), one.session))),
        len(silent),
        added(map(amount_of, silent)),
        days,
        tuple(problems),
    )


def _states(found: list[Found], problems: list[Problem], jobs: int | None) -> dict[str, _Totals]:
    """The totals of every session, from the one of its transcripts that says most, and of those the latest."""
    projects = {(one.home, project.folder): project.name for one in found for project in one.projects}
    best: dict[str, _Totals] = {}
    mains = [one for home in found for one in home.transcripts if one.kind is TranscriptKind.MAIN]
    for transcript, told in each(_told, mains, jobs=jobs):
        problems += told.problems
        project = projects.get((transcript.home, transcript.folder), transcript.folder)
        for session, states in _by_session(told.states, transcript).items():
            one = _Totals(states, project, (len(states), transcript.mtime_ns, str(transcript.path)))
            if session not in best or one.worth > best[session].worth:
                best[session] = one
    return dict(sorted(best.items()))


def _told(transcript: Transcript) -> CostStates:
    return cost_states(transcript.path)


def _by_session(states: Sequence[CostState], transcript: Transcript) -> dict[str, tuple[CostState, ...]]:
    parted: dict[str, list[CostState]] = {}
    for state in states:
        parted.setdefault(state.session or transcript.session or str(transcript.path), []).append(state)
    return {session: tuple(some) for session, some in parted.items()}


class _Totals(Struct, frozen=True):
    """A session's totals in file order, and how much this transcript is to be preferred to a copy of it."""

    states: tuple[CostState, ...]
    project: str
    worth: tuple[int, int, str]


class _Book:
    """The ledger by session, and who may go on from whom."""

    def __init__(self, ledger: Ledger, states: dict[str, _Totals]) -> None:
        self._rates, self._states, self._name = ledger.rates, states, naming(ledger.rates)
        self.charges: dict[str, list[Charge]] = {}
        self._copies: dict[str, dict[str, list[Charge]]] = {}
        self._kin: dict[str, list[str]] = {}
        transcripts = {one.states[-1].place.transcript: session for session, one in states.items()}
        for charge in ledger:
            own = charge.session or ""
            self.charges.setdefault(own, []).append(charge)
            if len(charge.sightings) > 1:
                for session in {transcripts.get(one.origin.transcript) for one in charge.sightings} - {own, None}:
                    self._copies.setdefault(session or "", {}).setdefault(own, []).append(charge)
        for session, one in states.items():
            for began in {state.began for state in one.states} - {None, "0", "null"}:
                self._kin.setdefault(began or "", []).append(session)

    def by_total(self, session: str) -> ReportedSession:
        """A session that wrote its total, held against its charges."""
        totals = self._states[session]
        charges = self.charges.get(session, [])
        last = totals.states[-1]
        transcript = last.place.transcript
        parts = runs(totals.states, charges)
        return ReportedSession(
            session,
            totals.project,
            last.place,
            Source.COST_STATE,
            last.amount,
            amount_of(charges),
            tuple(reasons(parts, self._ancestors(session), cache(partial(compactions, transcript)), self._rates)),
            len(charges),
            last.is_floor,
            more(tokens_said(last, self._name), tokens_of(charges, self._name)),
        )

    def by_rows(self, session: str) -> ReportedSession:
        """A session whose rows say what each message cost, held against its charges."""
        charges = self.charges[session]
        said = [one for one in charges if one.reported is not None]
        return ReportedSession(
            session,
            said[0].project,
            said[-1].place,
            Source.COST_USD,
            added(one.reported or Decimal(0) for one in said),
            amount_of(charges),
            tuple(rows_reported(charges)),
            len(charges),
        )

    def has_rows(self, session: str) -> bool:
        """Whether any message of a session says what it cost."""
        return any(one.reported is not None for one in self.charges[session])

    def _ancestors(self, session: str) -> list[Ancestor]:
        """The sessions that this one's total may go on from: first that of the last copied message."""
        totals = self._states[session].states
        transcript = totals[-1].place.transcript
        copied = self._copies.get(session, {})
        latest = {other: max(offset_in(one, transcript) or 0 for one in some) for other, some in copied.items()}
        kin = [other for state in totals for other in self._kin.get(state.began or "", ()) if other != session]
        names = dict.fromkeys([*sorted(latest, key=latest.__getitem__, reverse=True), *kin])
        return [Ancestor(name, self._totals_of(name), tuple(copied.get(name, ()))) for name in names]

    def _totals_of(self, session: str) -> tuple[CostState, ...]:
        return self._states[session].states if session in self._states else ()
