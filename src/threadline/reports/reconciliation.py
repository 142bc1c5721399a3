"""Compare the costs that Claude Code reports with the ledger, session by session."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, tzinfo
from decimal import Decimal
from functools import cache, partial
from typing import Any

from msgspec import Struct

from threadline.account import Ledger
from threadline.find import drop_shared_transcripts
from threadline.model.homes import Found, ProjectNames, Transcript, TranscriptKind
from threadline.model.ledger import EXACT, Charge, sum_amounts
from threadline.model.places import Problem
from threadline.model.reported_costs import (
    CostState,
    DifferenceReason,
    ModelTokens,
    ReportedDay,
    ReportedSession,
    ReportedSource,
    ReportedUsage,
)
from threadline.model.text import plain_decimal
from threadline.parallel import map_transcripts
from threadline.parse import CostStates, find_compaction_offsets, read_cost_states
from threadline.reports.cost_differences import (
    AncestorSession,
    explain_row_amounts,
    explain_total,
    first_offset,
    reported_tokens,
    split_into_runs,
    token_surplus,
    tokens_by_model,
    total_amount,
)
from threadline.reports.usage import find_deleted_days


def reconcile(found: Iterable[Found], ledger: Ledger, jobs: int | None = None, *, zone: tzinfo = UTC) -> ReportedUsage:
    """Compare every amount that Claude Code reports in these homes with the ledger's for the same sessions.

    A total is that of a whole session, so the ledger must be complete: do not pass one of a few days. `zone` is the
    time zone of the days in `stats-cache.json`.
    """
    homes = list(found)
    problems: list[Problem] = []
    states = _read_totals(list(drop_shared_transcripts(homes)), problems, jobs)
    by_session = _SessionLedger(ledger, states)
    sessions = [by_session.reconcile_total(session) for session in states]
    sessions += [
        by_session.reconcile_rows(session)
        for session in by_session.charges
        if session not in states and by_session.has_rows(session)
    ]
    compared = {session.session for session in sessions}
    unreported = [charges for session, charges in by_session.charges.items() if session not in compared]
    days = tuple(find_deleted_days(homes, ledger, problems, zone=zone))
    return ReportedUsage(
        tuple(sorted(sessions, key=lambda session: (EXACT.abs(session.difference).copy_negate(), session.session))),
        len(unreported),
        sum_amounts(map(total_amount, unreported)),
        days,
        tuple(problems),
    )


def _read_totals(found: list[Found], problems: list[Problem], jobs: int | None) -> dict[str, _SessionTotals]:
    """Return the totals of every session, from its most complete transcript, or the latest of those."""
    projects = ProjectNames(found)
    totals: dict[str, _SessionTotals] = {}
    mains = [transcript for home in found for transcript in home.transcripts if transcript.kind is TranscriptKind.MAIN]
    for transcript, read in map_transcripts(_read_cost_states, mains, jobs=jobs):
        problems += read.problems
        # A total of the whole session counts, if there is one.
        closed = tuple(state for state in read.states if state.source is ReportedSource.COST_STATE)
        for session, states in _split_by_session(closed or read.states, transcript).items():
            worth = (len(states), transcript.mtime_ns, str(transcript.path))
            if session not in totals or worth > totals[session].worth:
                totals[session] = _SessionTotals(states, projects.of(transcript), worth)
    return dict(sorted(totals.items()))


def _read_cost_states(transcript: Transcript) -> CostStates:
    return read_cost_states(transcript.path)


def _split_by_session(states: Sequence[CostState], transcript: Transcript) -> dict[str, tuple[CostState, ...]]:
    by_session: dict[str, list[CostState]] = {}
    for state in states:
        by_session.setdefault(transcript.session or state.session or str(transcript.path), []).append(state)
    return {session: tuple(session_states) for session, session_states in by_session.items()}


class _SessionTotals(Struct, frozen=True):
    """A session's totals in file order. `worth` says how much this transcript is preferred to a copy of it."""

    states: tuple[CostState, ...]
    project: str
    worth: tuple[int, int, str]


class _SessionLedger:
    """The ledger by session, and which session may continue which."""

    def __init__(self, ledger: Ledger, states: dict[str, _SessionTotals]) -> None:
        self._rates, self._states, self._name = ledger.rates, states, ledger.rates.model_name
        self.charges: dict[str, list[Charge]] = {}
        self._copies: dict[str, dict[str, list[Charge]]] = {}
        self._sessions_by_start: dict[str, list[str]] = {}
        transcripts = {totals.states[-1].place.transcript: session for session, totals in states.items()}
        for charge in ledger:
            owner = charge.session or ""
            self.charges.setdefault(owner, []).append(charge)
            if len(charge.sightings) > 1:
                for session in {transcripts.get(sighting.origin.transcript) for sighting in charge.sightings} - {
                    owner,
                    None,
                }:
                    self._copies.setdefault(session or "", {}).setdefault(owner, []).append(charge)
        for session, totals in states.items():
            for start in {state.began for state in totals.states} - {None, "0", "null"}:
                self._sessions_by_start.setdefault(start or "", []).append(session)

    def reconcile_total(self, session: str) -> ReportedSession:
        """Compare the total that a session wrote with its charges."""
        totals = self._states[session]
        charges = self.charges.get(session, [])
        last = totals.states[-1]
        transcript = last.place.transcript
        runs = split_into_runs(totals.states, charges)
        return ReportedSession(
            session,
            totals.project,
            last.place,
            last.source,
            last.amount,
            total_amount(charges),
            tuple(
                explain_total(
                    runs, self._ancestors(session), cache(partial(find_compaction_offsets, transcript)), self._rates
                )
            ),
            len(charges),
            last.is_floor,
            token_surplus(reported_tokens(last, self._name), tokens_by_model(charges, self._name)),
        )

    def reconcile_rows(self, session: str) -> ReportedSession:
        """Compare the amounts on the rows of a session with its charges."""
        charges = self.charges[session]
        reported = [charge for charge in charges if charge.reported is not None]
        return ReportedSession(
            session,
            reported[0].project,
            reported[-1].place,
            ReportedSource.COST_USD,
            sum_amounts(charge.reported or Decimal(0) for charge in reported),
            total_amount(charges),
            tuple(explain_row_amounts(charges)),
            len(charges),
        )

    def has_rows(self, session: str) -> bool:
        """Whether any row of a session has an amount."""
        return any(charge.reported is not None for charge in self.charges[session])

    def _ancestors(self, session: str) -> list[AncestorSession]:
        """Return the sessions that this one's total may continue, that of the last copied message first."""
        totals = self._states[session].states
        transcript = totals[-1].place.transcript
        copied = self._copies.get(session, {})
        latest = {
            other: max(first_offset(charge, transcript) or 0 for charge in charges) for other, charges in copied.items()
        }
        related = [
            other
            for state in totals
            for other in self._sessions_by_start.get(state.began or "", ())
            if other != session
        ]
        names = dict.fromkeys([*sorted(latest, key=latest.__getitem__, reverse=True), *related])
        return [AncestorSession(name, self._totals_of(name), tuple(copied.get(name, ()))) for name in names]

    def _totals_of(self, session: str) -> tuple[CostState, ...]:
        return self._states[session].states if session in self._states else ()


def reconciliation_record(usage: ReportedUsage) -> dict[str, Any]:
    """Return a comparison as JSON values. Amounts are exact decimals."""
    return {
        "reported": plain_decimal(usage.reported),
        "computed": plain_decimal(usage.computed),
        "difference": plain_decimal(usage.difference),
        "sessions": [reported_session_record(session) for session in usage.sessions],
        "agreeing": usage.agreeing,
        "silent": {"sessions": usage.silent, "computed": plain_decimal(usage.silent_computed)},
        "causes": {cause.value: plain_decimal(amount) for cause, amount in usage.by_cause.items()},
        **deleted_days_record(usage.swept),
        "problems": [str(problem) for problem in usage.problems],
    }


def deleted_days_record(days: Iterable[ReportedDay]) -> dict[str, Any]:
    """Return the days of which only statistics are left as JSON values."""
    all_days = tuple(days)
    return {
        "swept": [_day_record(day) for day in all_days if not day.is_partly],
        "partly_swept": [_day_record(day) for day in all_days if day.is_partly],
    }


def reported_session_record(session: ReportedSession) -> dict[str, Any]:
    """Return one session as JSON values."""
    return {
        "session": session.session,
        "project": session.project,
        "place": str(session.place),
        "source": session.source.value,
        "reported": plain_decimal(session.reported),
        "is_floor": session.is_floor,
        "computed": plain_decimal(session.computed),
        "charges": session.charges,
        "difference": plain_decimal(session.difference),
        "agrees": session.agrees,
        "why": [_why_record(why) for why in session.why],
        "tokens": [_tokens_record(tokens) for tokens in session.tokens],
    }


def _why_record(why: DifferenceReason) -> dict[str, Any]:
    return {"cause": why.cause.value, "amount": plain_decimal(why.amount), "words": why.words, "proven": why.proven}


def _tokens_record(tokens: ModelTokens) -> dict[str, Any]:
    return {name: getattr(tokens, name) for name in ModelTokens.__struct_fields__}


def _day_record(day: ReportedDay) -> dict[str, Any]:
    record: dict[str, Any] = {name: getattr(day, name) for name in ReportedDay.__struct_fields__}
    record["tokens"] = dict(day.tokens)
    del record["is_partly"]
    left = {name.removeprefix("left_"): record.pop(name) for name in tuple(record) if name.startswith("left_")}
    return record | ({"left": left} if day.is_partly else {})
