"""What sessions produced, from the index or, without one, from the transcripts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, tzinfo
from decimal import Decimal
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from msgspec import Struct

from threadline.archive.insight import STORE_SECONDS, SessionFiles
from threadline.errors import Error
from threadline.insight import OutcomeFacts, OutcomeReport, session_outcomes
from threadline.load import read
from threadline.model.homes import Homes, Transcript
from threadline.model.insight.outcomes import OutcomeGroups, OutcomeList
from threadline.model.ledger import EXACT, NONE
from threadline.model.places import CallId, Place
from threadline.parallel import map_transcripts, relaxed_gc

if TYPE_CHECKING:
    from threadline.account import Ledger
    from threadline.index import Index, TranscriptOutcomes, UnstoredTranscript


class OutcomePeriod(Struct, frozen=True):
    """The period that outcomes are listed for, and the repository they are compared with."""

    since: datetime | None = None
    until: datetime | None = None
    repo: str | Path | None = None


def read_outcomes(
    sessions: Iterable[SessionFiles], homes: Homes, *, jobs: int | None, advance: Callable[[int], None]
) -> OutcomeFacts:
    """What sessions produced, by reading them, including what one copied from another."""
    by_path = {str(session.main.path): session for session in sessions}
    facts = OutcomeFacts()
    mains = [session.main for session in by_path.values()]
    for _, own in map_transcripts(partial(_read_session, by_path, homes), mains, jobs=jobs, progress=advance):
        facts.outcomes += own.outcomes
        facts.changes += own.changes
        facts.messages |= own.messages
    return facts


def store_outcomes(
    index: Index, transcripts: Sequence[UnstoredTranscript], *, jobs: int | None, advance: Callable[[int], None]
) -> list[TranscriptOutcomes]:
    """Extract the outcomes of transcripts and store them. Returns those that cannot be stored."""
    batch: list[TranscriptOutcomes] = []
    unstored: list[TranscriptOutcomes] = []
    generation, started = index.generation, monotonic()
    with relaxed_gc():
        for _, outcomes in map_transcripts(index.outcome_reader, transcripts, jobs=jobs, progress=advance):
            batch.append(outcomes)
            if monotonic() - started > STORE_SECONDS:
                unstored += [] if index.store_outcomes(batch, generation) else batch
                batch, started = [], monotonic()
    if batch and not index.store_outcomes(batch, generation):
        unstored += batch
    return unstored


def drop_copies(facts: OutcomeFacts, ledger: Ledger) -> OutcomeFacts:
    """Without the calls of sessions whose messages another transcript is charged for: those are copies."""
    charged: dict[str, set[str]] = {}
    for charge in ledger.of_messages(set(facts.messages.values())):
        charged.setdefault(charge.message, set()).add(charge.origin.transcript)

    def is_own(call: CallId | None, place: Place) -> bool:
        message = facts.messages.get(call) if call is not None else None
        owners = charged.get(message) if message is not None else None
        return owners is None or place.transcript in owners

    return OutcomeFacts(
        [outcome for outcome in facts.outcomes if is_own(outcome.call, outcome.place)],
        [change for change in facts.changes if is_own(change.call, change.place)],
    )


def _read_session(sessions: dict[str, SessionFiles], homes: Homes, main: Transcript) -> OutcomeFacts:
    try:
        session = read(main.path, continued=False, homes=homes)
    except Error:
        return OutcomeFacts()
    return session_outcomes(session, sessions[str(main.path)].project)


def make_report(facts: OutcomeFacts, period: OutcomePeriod, *, is_scoped: bool) -> OutcomeReport:
    """The outcomes of a period, compared with the repository if there is one.

    Without a session or a project (`is_scoped`), only what was done in the repository is reported, with the cost of the
    sessions that worked there.
    """
    if period.repo is None:
        return OutcomeReport(facts, since=period.since, until=period.until)
    from threadline.insight import RepositoryCheck

    check = RepositoryCheck(period.repo)
    selected = facts if is_scoped else check.select(facts)
    sessions = {row.session for rows in (selected.outcomes, selected.changes) for row in rows}
    return OutcomeReport(
        selected,
        since=period.since,
        until=period.until,
        count_lines=check.count_lines,
        is_charged=None if is_scoped else lambda session, project: session in sessions or check.contains(project),
        check_commits=check.check_commits,
    )


def list_outcomes(report: OutcomeReport, kinds: tuple[str, ...], limit: int | None) -> OutcomeList:
    """The outcomes of these kinds, oldest first; with a limit, the newest."""
    rows = report.rows(kinds) if kinds else report.rows()
    shown = rows if limit is None else rows[max(0, len(rows) - limit) :]
    return OutcomeList(shown, len(rows) - len(shown))


def group_outcomes(report: OutcomeReport, ledger: Ledger, by: str, zone: tzinfo, limit: int | None) -> OutcomeGroups:
    """Outcomes added up by a key, with what was spent: the newest days in order of time, others by amount."""
    groups = report.groups(by, _spent(report, ledger, by, zone), zone)
    if by == "day":
        groups.sort(key=lambda group: group.key)
        shown = groups if limit is None else groups[max(0, len(groups) - limit) :]
    else:
        groups.sort(key=lambda group: (-(group.amount or Decimal(0)), group.key))
        shown = groups[:limit]
    return OutcomeGroups(shown, report.total(group.amount for group in groups), len(groups) - len(shown))


def _spent(report: OutcomeReport, ledger: Ledger, by: str, zone: tzinfo) -> dict[str, Decimal | None]:
    """What was spent, by a key: all of the ledger, or what the report charges."""
    if report.is_charged is None:
        return {row.keys[by] or NONE: row.amount for row in ledger.by(by, zone=zone)}
    amounts: dict[str, Decimal | None] = {}
    for row in ledger.by(*dict.fromkeys((by, "session", "project")), zone=zone):
        if report.is_charged(row.keys["session"], row.keys["project"]):
            key = row.keys[by] or NONE
            before = amounts.get(key)
            amounts[key] = row.amount if before is None else EXACT.add(before, row.amount or Decimal(0))
    return amounts
